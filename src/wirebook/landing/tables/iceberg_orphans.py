"""Files in the folder of an Iceberg table that belong to none of its snapshots: those of killed runs, of commits that
failed and of snapshots that have expired.

Files are compared by their names, which writers make unique. So a file stays if a snapshot names it in another way:
with another scheme or path to the same folder, or with escaped characters.

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
"""The names of files that writers of Iceberg leave. All others stay."""
COMMIT_MILLISECONDS: Final = 3_600_000
"""The manifests of a snapshot are not written longer before the time that it has."""


def files_before(folder: Location, limit: int) -> dict[Location, int]:
    """The files of Iceberg below a folder that were last written before a moment, with the time. Units: milliseconds.

    Raises: OSError, store-failed
    """
    return {path: written for path, written in _below(folder) if written < limit and KNOWN.fullmatch(path.name)}


def _below(folder: Location) -> Iterator[tuple[Location, int]]:
    if not isinstance(folder, Path):
        yield from ((path, status.milliseconds) for path, status in folder.below())
        return
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # deleted meanwhile
            if path.is_file():
                yield path, path.stat().st_mtime_ns // 1_000_000


def find_orphans(table: Table, files: dict[Location, int], expired: Collection[int], limit: int) -> list[Location]:
    """Those of the files that no snapshot of the table refers to, except the `expired` ones.

    The files are all that were written before `limit`. The table must have been read after they were listed.
    The newest metadata stays: readers may have opened it within the retention. All files stay if the folder has the
    metadata of another table with rows, such as one whose catalogue was lost.

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
    """The paths that the current metadata refers to, directly or through other files, of files that may have been
    written before `limit`."""
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
            # A stream makes thousands. What such a snapshot adds is young, what it has else was in the one before, and
            # the one after it has all its files.
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
    """Whether the first file of metadata with a snapshot is of another table. Many are not read: they may be large."""
    from pyiceberg.serializers import FromInputFile  # noqa: PLC0415 (an extra)

    for path in metadata:
        found = FromInputFile.table_metadata(table.io.new_input(uri_of(path)))
        if found.snapshots:
            return found.table_uuid != table.metadata.table_uuid
    return False


def _plain(name: str) -> str:
    """A name without escapes, however often it was escaped."""
    while (plain := unquote(name)) != name:
        name = plain
    return name


def delete_files(files: Collection[Location]) -> None:
    """Raises: OSError, store-failed"""
    with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
        list(pool.map(_unlink, files))


def _unlink(file: Location) -> None:
    with suppress(FileNotFoundError):  # other upkeep was faster
        file.unlink()
