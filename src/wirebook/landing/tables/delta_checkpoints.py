"""Checkpoints of Delta tables: which versions get one, and a thread that writes them while the next batch runs.

Spec: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#checkpoints; docs/decisions/0210
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Final

from wirebook.landing.stores.locations import Location
from wirebook.landing.stores.objects import RETRY_OPTIONS

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["STORAGE", "Checkpoints", "has_checkpoint", "write_checkpoint"]

STORAGE: Final = {"allow_http": "true", **RETRY_OPTIONS}
"""Options of the object store; credentials and addresses come from the environment or the instance."""
CHECKPOINT_INTERVAL: Final = 100
"""How many versions are between two checkpoints, unless the table says otherwise."""


def has_checkpoint(folder: str, version: int, configuration: Mapping[str, str | None]) -> bool:
    """Whether a version of the table in the folder of this name gets a checkpoint. The versions of tables that are
    written in the same batches differ."""
    interval = int(configuration.get("delta.checkpointInterval") or CHECKPOINT_INTERVAL)
    return version > 0 and (version + zlib.crc32(folder.encode())) % interval == 0


def write_checkpoint(table: DeltaTable) -> None:
    """Write a checkpoint of the loaded version, and delete the files of the log whose retention is over.

    Raises: DeltaError, OSError
    """
    table.create_checkpoint()
    table.cleanup_metadata()


class Checkpoints:
    """Writes checkpoints one at a time, because each takes memory for all files of its table."""

    def __init__(self) -> None:
        self._requested: dict[Location, Future[None]] = {}

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "wirebook-checkpoints")

    def request(self, folder: Location) -> None:
        """Have a checkpoint written of the version that the table has then. One that fails is left to the next."""
        self._requested = {table: written for table, written in self._requested.items() if not written.done()}
        if folder not in self._requested:
            self._requested[folder] = self._thread.submit(_checkpoint, folder)

    def wait(self) -> None:
        """Wait for the checkpoints that are not written yet. The end of the process does so, too."""
        wait(self._requested.values())


def _checkpoint(folder: Location) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 (an extra)
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    with suppress(DeltaError, OSError):
        write_checkpoint(DeltaTable(str(folder), storage_options=STORAGE))
