"""Orphan files: files in the folder of an Iceberg table that belong to none of its snapshots. Killed runs, failed
commits and expired snapshots leave them.

Files are compared by name only, because writers make the names unique. So a file is kept even if a snapshot refers to
it by another scheme or path, or with escaped characters.

Spec: docs/how-to/maintain.md
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from wirebook.landing.stores.locations import Location
from wirebook.landing.stores.objects import OBJECTS_AT_ONCE
from wirebook.landing.tables.iceberg_catalog import uri_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

__all__ = ["delete_files", "files_before", "find_orphans"]

METADATA: Final = re.compile(r".+\.metadata\.json(\.gz)?")
KNOWN: Final = re.compile(rf"[^._].*\.(parquet|orc|avro|puffin|stats)|{METADATA.pattern}")
"""The names of files that Iceberg writers create. Other files are never deleted."""
COMMIT_MILLISECONDS: Final = 3_600_000
"""Maximum time from the writing of a manifest to the timestamp of its snapshot."""


def files_before(folder: Location, limit: int) -> dict[Location, int]:
    """The Iceberg files below a folder that were last written before `limit`, with the time of that write. Units:
    milliseconds.

    Raises: OSError, store-failed
    """
    return {path: written for path, written in _below(folder) if written < limit and KNOWN.fullmatch(path.name)}


def _below(folder: Location) -> Iterator[tuple[Location, int]]:
    if not isinstance(folder, Path):
        yield from ((path, status.milliseconds) for path, status in folder.below())
        return
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # deleted in the meantime
            if path.is_file():
                yield path, path.stat().st_mtime_ns // 1_000_000


def find_orphans(table: Table, files: dict[Location, int], expired: Collection[int], limit: int) -> list[Location]:
    """The files that no snapshot of the table refers to, except the `expired` ones.

    `files` are all files that were written before `limit`. The table must have been read after they were listed. The
    newest metadata file is kept, because readers may have opened it within the retention period. All files are kept
    if the folder has the metadata of another table with rows, such as a table whose catalogue was lost.

    Raises: OSError, store-failed, and those of `pyiceberg`
    """
    metadata = sorted((written, path) for path, written in files.items() if METADATA.fullmatch(path.name))
    unknown: dict[str, list[Location]] = {}
    for path in files.keys() - {path for written, path in metadata if written == metadata[-1][0]}:
        unknown.setdefault(_plain(path.name), []).append(path)
    for reference in _references(table, expired, limit):
        unknown.pop(_plain(reference.rpartition("/")[2]), None)
        if not unknown:
            return []
    orphans = {path for paths in unknown.values() for path in paths}
    if _are_of_another(table, [path for _, path in metadata if path in orphans]):
        return []
    return sorted(orphans)


def _references(table: Table, expired: Collection[int], limit: int) -> Iterator[str]:
    """The paths that the current metadata refers to, directly or through other files. Paths of files that cannot have
    been written before `limit` may be missing."""
    metadata, seen = table.metadata, set[str]()
    yield table.metadata_location
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (file.statistics_path for file in metadata.statistics if file.snapshot_id not in expired)
    yield from (file.statistics_path for file in metadata.partition_statistics)
    kept = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id not in expired}
    yield from (snapshot.manifest_list for snapshot in kept.values())
    extended = {snapshot.parent_snapshot_id for snapshot in kept.values() if _is_append(snapshot)}
    with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
        for snapshot in reversed(kept.values()):
            # A stream creates thousands of snapshots. Recent appends are skipped: the files that one adds are younger
            # than the limit, its other files are in the snapshot before it, and all of them are in the one after it.
            is_young = snapshot.timestamp_ms >= limit + COMMIT_MILLISECONDS and _is_append(snapshot)
            if is_young and snapshot.parent_snapshot_id in kept and snapshot.snapshot_id in extended:
                continue
            manifests = [file for file in snapshot.manifests(table.io) if file.manifest_path not in seen]
            seen.update(manifest.manifest_path for manifest in manifests)
            yield from (manifest.manifest_path for manifest in manifests)
            for entries in pool.map(lambda manifest: manifest.fetch_manifest_entry(table.io), manifests):
                yield from (entry.data_file.file_path for entry in entries)


def _is_append(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation.value == "append"


def _are_of_another(table: Table, metadata: list[Location]) -> bool:
    """Whether the first metadata file with a snapshot belongs to another table. Later ones are not read: they may be
    large."""
    from pyiceberg.serializers import FromInputFile  # noqa: PLC0415 (an extra)

    for path in metadata:
        found = FromInputFile.table_metadata(table.io.new_input(uri_of(path)))
        if found.snapshots:
            return found.table_uuid != table.metadata.table_uuid
    return False


def _plain(name: str) -> str:
    """A name without percent-encoding, even if it was encoded several times."""
    while (plain := unquote(name)) != name:
        name = plain
    return name


def delete_files(files: Collection[Location]) -> None:
    """Raises: OSError, store-failed"""
    with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
        list(pool.map(_unlink, files))


def _unlink(file: Location) -> None:
    with suppress(FileNotFoundError):  # another upkeep was faster
        file.unlink()
