"""Checkpoints of Delta tables: which versions get one, and a thread that writes them while the next batch runs.

Spec: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#checkpoints; docs/decisions/0210
"""

from __future__ import annotations

import time
import zlib
from bisect import bisect_left
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import timedelta
from functools import reduce
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.stores.locations import Location
from wirebook.landing.stores.objects import RETRY_OPTIONS
from wirebook.landing.stores.records import open_atomically, write_atomically
from wirebook.problems import WirebookError

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = ["STORAGE", "Checkpoints", "extend_checkpoint", "has_checkpoint", "log_file", "write_checkpoint"]

STORAGE: Final = {"allow_http": "true", **RETRY_OPTIONS}
"""Options of the object store. Credentials and endpoints come from the environment or the cloud instance."""
CHECKPOINT_INTERVAL: Final = 100
"""Number of versions between two checkpoints, unless the table has the property `delta.checkpointInterval`."""
LAST_CHECKPOINT: Final = "_last_checkpoint"
LOG_RETENTION: Final = timedelta(days=30)
"""How long log files are kept by default. Tables with a retention of their own are left to `deltalake`."""
ACTIONS_AT_ONCE: Final = 2_000
"""Maximum number of checkpoint actions in memory at a time."""
OTHER_CHECKPOINTS: Final = (
    "delta.checkpoint.",
    "delta.checkpointPolicy",
    "delta.enableExpiredLogCleanup",
    "delta.logRetentionDuration",
)
"""Table properties, or prefixes of them, that change the checkpoints or the cleanup of the log. The checkpoints of
tables with such properties are left to `deltalake`."""
ADD_FIELDS: Final = {"path", "partitionValues", "size", "modificationTime", "dataChange", "stats"}


def log_file(log: Path, version: int) -> Path:
    """The file of the log with the transaction that creates a version."""
    return log / f"{version:020}.json"


def has_checkpoint(folder: str, version: int, configuration: Mapping[str, str | None]) -> bool:
    """Whether a version of the table in a folder of this name gets a checkpoint. A hash of the name shifts these
    versions, so that tables that are committed in the same batches get their checkpoints in different ones."""
    stated = configuration.get("delta.checkpointInterval") or ""
    interval = int(stated) if stated.isdecimal() and int(stated) else CHECKPOINT_INTERVAL  # Delta refuses other values
    return version > 0 and (version + zlib.crc32(folder.encode())) % interval == 0


def write_checkpoint(table: DeltaTable) -> None:
    """Write a checkpoint of the loaded version, and delete expired files of the log.

    Raises: DeltaError, OSError
    """
    table.create_checkpoint()
    table.cleanup_metadata()


class Checkpoints:
    """Writes checkpoints in a thread, one at a time, because `deltalake` needs memory for all files of the table."""

    def __init__(self) -> None:
        self._requested: dict[Location, Future[None]] = {}
        self._thread: ThreadPoolExecutor | None = None
        self._lock = Lock()  # tables are committed by several threads

    def request(self, folder: Location, appended: int | None = None) -> None:
        """Request a checkpoint of a table: of the version `appended`, if only files were added since the previous
        checkpoint, else of the version that is current when the checkpoint is written. A failure is ignored, because
        the next checkpoint covers the same files."""
        with self._lock:
            self._thread = self._thread or ThreadPoolExecutor(1, "wirebook-checkpoints")
            self._requested = {table: written for table, written in self._requested.items() if not written.done()}
            if folder not in self._requested:
                self._requested[folder] = self._thread.submit(_checkpoint, folder, appended)

    def wait(self) -> None:
        """Wait for all requested checkpoints. The process also waits for them before it exits."""
        with self._lock:
            requested = list(self._requested.values())
        wait(requested)


def _checkpoint(folder: Location, appended: int | None) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 (an extra)
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    with suppress(DeltaError, OSError, WirebookError):
        if isinstance(folder, Path) and appended is not None and extend_checkpoint(folder / "_delta_log", appended):
            return
        write_checkpoint(DeltaTable(str(folder), storage_options=STORAGE))


# -- checkpoints without `deltalake` ----------------------------------------------------------------------------------


def extend_checkpoint(log: Path, version: int) -> bool:
    """Write the checkpoint of a version from the previous checkpoint and the files that were added since.

    Returns False, without writing anything, if `deltalake` must write the checkpoint: the previous one is missing or
    has another layout, a version since then does more than add files, or log files have exceeded their retention.

    Raises: OSError, unwritable-target
    """
    last = _last_checkpoint(log)
    if last is None or _is_due_for_cleanup(log, version):
        return False
    if last >= version:  # another program has written a later one
        return True
    with pq.ParquetFile(_checkpoint_file(log, last)) as before:
        since = _appended(log, range(last + 1, version + 1)) if _is_plain(before) else None
        if since is None:
            return False
        with open_atomically(_checkpoint_file(log, version)) as file:
            rows = _write_extended(before, since, file)
    write_atomically(log / LAST_CHECKPOINT, orjson.dumps({"version": version, "size": rows}))
    return True


def _write_extended(before: pq.ParquetFile, since: _Appended, file: BinaryIO) -> int:
    """Write the actions of the previous checkpoint and those since then to `file`, one batch at a time, because a
    table may have millions of files. Returns the number of actions."""
    replaced = (("add", "path", since.files), ("remove", "path", since.files), ("txn", "appId", since.transactions))
    values = [(action, member, pa.array(known, pa.string())) for action, member, known in replaced]
    actions = [{"add": add} for add in since.files.values()] + [{"txn": txn} for txn in since.transactions.values()]
    rows = len(actions)
    with pq.ParquetWriter(file, before.schema_arrow, compression="snappy") as writer:
        for batch in before.iter_batches(ACTIONS_AT_ONCE):
            is_replaced = [pc.is_in(pc.struct_field(batch[action], member), known) for action, member, known in values]
            kept = batch.filter(pc.invert(reduce(pc.or_, is_replaced)))
            writer.write_batch(kept)
            rows += len(kept)
        writer.write_table(pa.Table.from_pylist(actions, before.schema_arrow))
    return rows


def _checkpoint_file(log: Path, version: int) -> Path:
    return log / f"{version:020}.checkpoint.parquet"


def _last_checkpoint(log: Path) -> int | None:
    """The version of the last checkpoint; None if there is none, or if it is not a single file."""
    try:
        last = orjson.loads((log / LAST_CHECKPOINT).read_bytes())
        is_one_file = _checkpoint_file(log, last["version"]).exists() and not {"parts", "v2Checkpoint"} & last.keys()
    except (FileNotFoundError, ValueError, KeyError):
        return None
    return int(last["version"]) if is_one_file else None


def _is_due_for_cleanup(log: Path, version: int) -> bool:
    """Whether the oldest file of the log exceeds its retention by a day. Files are deleted oldest first, so the
    oldest is found by bisection."""
    first = bisect_left(range(version), True, key=lambda number: log_file(log, number).exists())
    age = time.time() - log_file(log, first).stat().st_mtime
    return age > (LOG_RETENTION + timedelta(days=1)).total_seconds()


def _is_plain(checkpoint: pq.ParquetFile) -> bool:
    """Whether a checkpoint can be extended: it has no parsed columns and no sidecar files, and the table has no
    properties that affect checkpoints."""
    columns = {field.name: {*field.type.names} for field in checkpoint.schema_arrow}
    if not columns["add"] >= ADD_FIELDS or any(name.endswith("_parsed") for name in columns["add"]):
        return False
    others = sorted({"sidecar", "checkpointMetadata"} & columns.keys())
    few = checkpoint.read(["metaData", *others])
    if any(len(few[name].drop_null()) for name in others):
        return False
    (metadata,) = few["metaData"].drop_null().to_pylist()
    return not any(name.startswith(OTHER_CHECKPOINTS) for name, _ in metadata["configuration"])


class _Appended(NamedTuple):
    """The ``add`` actions of some versions by path, and their ``txn`` actions by application id."""

    files: dict[str, Any]
    transactions: dict[str, Any]


def _appended(log: Path, versions: range) -> _Appended | None:
    """The files and transactions that some versions add; None if a version does anything else."""
    files: dict[str, Any] = {}
    transactions: dict[str, Any] = {}
    for version in versions:
        for line in log_file(log, version).read_bytes().splitlines():
            for action, value in orjson.loads(line).items():
                members = {name: member for name, member in value.items() if member is not None}
                if action == "add" and members.keys() <= ADD_FIELDS:
                    files[members["path"]] = members | {"partitionValues": [*members["partitionValues"].items()]}
                elif action == "txn":
                    transactions[members["appId"]] = members
                elif action != "commitInfo":
                    return None
    return _Appended(files, transactions)
