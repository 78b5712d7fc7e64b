"""Append files to a local Delta table without reading its log, if this process wrote the last version.

For each transaction, `deltalake` reads a whole table. This cost grows with the number of files of the table, and a
stream commits to many tables per second. A transaction that only adds files is a single new file in the log, which
must not exist yet, so it is written here directly. Everything else is left to `deltalake`: the first transactions of
a run, new columns, comments or properties, table features, and tables to which another program has written.

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
"""The application id of Wirebook's ``txn`` actions, whose version is the batch number."""
ENGINE: Final = f"wirebook/{version_of('wirebook')}"

WRITER_VERSION: Final = 2
"""The highest writer version of the protocol whose features an append cannot violate (apart from invariants, which
are checked). Later versions have more features."""


class LogEnd:
    """The end of the log of a table: the last `version`, and the last batch that the table has. `configuration` has
    the table properties."""

    def __init__(self, log: Path, table: DeltaTable, batch: int, schema: pa.Schema, traits: TableTraits) -> None:
        self.configuration = table.metadata().configuration
        self._log, self._batch, self._schema, self._traits = log, batch, schema, traits
        self.version = table.version()
        self._identity = _identity(log_file(self._log, self.version))

    @staticmethod
    def of(log: Path, table: DeltaTable, batch: int, schema: pa.Schema, traits: TableTraits) -> LogEnd | None:
        """The end of the log of a table with these columns and traits; None if rows may be added only through
        `deltalake`, because the table has invariants or a later writer version."""
        has_invariants = any("delta.invariants" in field.metadata for field in table.schema().fields)
        if has_invariants or table.protocol().min_writer_version > WRITER_VERSION:
            return None
        return LogEnd(log, table, batch, schema, traits)

    def append(self, batch: int, actions: Sequence[Mapping[str, Any]], schema: pa.Schema, traits: TableTraits) -> bool:
        """Add the files of a batch in a new version, unless the table already has the batch. The version is durable
        when this returns. Returns False, without changing anything, if `deltalake` must add the files.

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
    """The inode, size and modification time of a file, which distinguish it from a later file of the same name. None
    if the file does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _create(path: Path, data: bytes) -> bool:
    """Create a file atomically and durably. Returns False if it already exists, or if the file system has no hard
    links."""
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
