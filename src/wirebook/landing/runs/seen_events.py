"""The events that a target remembers, to find repeats: keys in files. A new batch merges its keys with small files.

Spec: docs/how-to/deduplicate.md; docs/decisions/0209
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import msgspec
import pyarrow as pa

from wirebook.landing.runs.event_keys import MERGE_RATIO, read_keys
from wirebook.landing.runs.task_events import decoded, keys_of
from wirebook.landing.stores.locations import Location
from wirebook.landing.stores.records import Records

__all__ = ["SeenEvents", "delete_unneeded", "record_events"]

KEY_FOLDER = "events"


class KeyFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of keys: its number of events, and when the last of them was received, in seconds since 1970."""

    name: str
    events: int
    newest: int


class SeenEvents(msgspec.Struct, frozen=True, kw_only=True):
    """The events that the target remembers. Those received more than the window before `horizon` are forgotten.

    Shape: `files` are ordered by size, largest first. `horizon` is a watermark, in seconds since 1970: each batch can
    raise it to the last time of receipt in the source file or partition that is furthest behind.
    """

    files: list[KeyFile] = []
    horizon: int = 0

    def locations(self, records: Records) -> tuple[Location, ...]:
        return tuple(records.location(f"{KEY_FOLDER}/{file.name}") for file in self.files)


def record_events(records: Records, seen: SeenEvents, batch: int, parts: Iterable[bytes], window: int) -> SeenEvents:
    """Write the keys of the events that a batch lands, merged with small files of earlier batches. Return the events
    that the target remembers once the batch is committed.

    Raises: broken-target, unwritable-target, store-failed
    """
    events = decoded(parts)
    landing = keys_of(events.filter(events["kept"]))
    latest = _latest_by_file(events)
    horizon = max(seen.horizon, min(latest, default=0))
    oldest = horizon - window
    files = [file for file in seen.files if file.newest >= oldest]
    new = landing.merged()
    while files and files[-1].events <= MERGE_RATIO * len(new):
        new = read_keys(records.location(f"{KEY_FOLDER}/{files.pop().name}")).merged(new)
    new = new.take(new.seconds >= oldest)
    if len(new):
        name = f"{batch}-{uuid.uuid4().hex[:8]}.keys"
        records.write(f"{KEY_FOLDER}/{name}", new.to_bytes())
        files.append(KeyFile(name=name, events=len(new), newest=int(new.seconds.max())))
    return SeenEvents(files=files, horizon=horizon)


def _latest_by_file(events: pa.Table) -> list[int]:
    """When the last event of each file was received."""
    seconds = pa.array(keys_of(events).seconds)
    files = pa.table({"file": events["_file"].combine_chunks().indices, "second": seconds}) if len(events) else None
    return files.group_by("file").aggregate([("second", "max")])["second_max"].to_pylist() if files else []


def delete_unneeded(records: Records, seen: SeenEvents) -> None:
    """Delete the files that the target no longer needs: merged ones, expired ones, and those of runs that were killed.

    Raises: OSError, store-failed
    """
    needed = {file.name for file in seen.files}
    for name in records.names(KEY_FOLDER):
        if name not in needed:
            records.delete(f"{KEY_FOLDER}/{name}")
