"""Append files to Delta tables of this machine whose log a run has just written, without reading the log again.

`deltalake` reads a whole table for each transaction: its cost grows with the files of the table, and a stream commits
many tables a second. Here a transaction that only adds files is one file of the log, which must not exist yet.
Whatever else a table may need is left to `deltalake`: its first transaction in a run, new columns, comments or
properties, table features, and tables to which another program has written.

Spec: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#delta-log-entries; docs/decisions/0210
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
import pyarrow as pa

from wirebook.landing.stores.records import sync_folder, write_durably
from wirebook.landing.tables.delta_checkpoints import has_checkpoint, log_file
from wirebook.landing.tables.formats import TableTraits

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["APPLICATION", "WRITER_VERSION", "LogEnd"]

APPLICATION: Final = "wirebook"
"""The name of the transactions, whose version is the number of the batch."""
ENGINE: Final = f"wirebook/{version_of('wirebook')}"

WRITER_VERSION: Final = 2
"""The highest version of the protocol for writers whose features an append cannot violate: later ones have more."""


class LogEnd:
    """The end of the log of a table: its last `version`, which has the batch `batch`. `configuration` are the
    properties of the table."""

    def __init__(self, log: Path, table: DeltaTable, batch: int, schema: pa.Schema, traits: TableTraits) -> None:
        self.configuration = table.metadata().configuration
        self._log, self._batch, self._schema, self._traits = log, batch, schema, traits
        self.version = table.version()
        self._identity = _identity(log_file(self._log, self.version))

    @staticmethod
    def of(log: Path, table: DeltaTable, batch: int, schema: pa.Schema, traits: TableTraits) -> LogEnd | None:
        """The end of the log of a table with these columns and traits; None if only `deltalake` may append to it."""
        has_invariants = any("delta.invariants" in field.metadata for field in table.schema().fields)
        if has_invariants or table.protocol().min_writer_version > WRITER_VERSION:
            return None
        return LogEnd(log, table, batch, schema, traits)

    def append(self, batch: int, actions: Sequence[Mapping[str, Any]], schema: pa.Schema, traits: TableTraits) -> bool:
        """Add the files of a batch in a new version, unless the table has the batch; returns False, and does nothing,
        if `deltalake` has to do it. The version is durable when this returns.

        Raises: OSError
        """
        if self._identity is None or _identity(log_file(self._log, self.version)) != self._identity:
            return False
        if batch <= self._batch:
            return True
        version = self.version + 1
        if traits != self._traits or not schema.equals(self._schema, check_metadata=True):
            return False
        information = {
            "timestamp": time.time_ns() // 1_000_000,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
            "isBlindAppend": True,
            "engineInfo": ENGINE,
        }
        entries = [{"commitInfo": information}, {"txn": {"appId": APPLICATION, "version": batch}}]
        lines = map(orjson.dumps, [*entries, *({"add": action} for action in actions)])
        if not _create(log_file(self._log, version), b"\n".join(lines)):
            return False
        self._batch, self.version, self._identity = batch, version, _identity(log_file(self._log, version))
        return True

    @property
    def has_checkpoint(self) -> bool:
        """Whether the last version gets a checkpoint."""
        return has_checkpoint(self._log.parent.name, self.version, self.configuration)


def _identity(path: Path) -> tuple[int, int, int] | None:
    """What tells a file from another one of the same name; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _create(path: Path, data: bytes) -> bool:
    """Write a file completely; returns False if it exists, or if the file system has no links."""
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        write_durably(partial, data)
        try:
            os.link(partial, path)
        except OSError:
            return False
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True
