"""Finds repeats between tasks, on the driver: no task sees the events of another.

Each task returns its events to the driver. If several tasks have the same event, the one with the smallest place (file,
line, index) lands: the driver decides this, and the batch runs again with its decision.

Spec: docs/how-to/deduplicate.md; docs/decisions/0209
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from wirebook.landing.runs.event_keys import EventKeys, first_of_each, same_events

__all__ = ["EVENT_SCHEMA", "PLACE", "decide_events", "decoded", "encode", "keys_of"]

PLACE = ("_file", "_line", "_index")
EVENT_SCHEMA = pa.schema({
    "high": pa.uint64(),
    "rest": pa.uint64(),
    "_file": pa.dictionary(pa.int32(), pa.string()),
    "_line": pa.int64(),
    "_index": pa.int32(),
    "kept": pa.bool_(),
})  # fmt: skip
"""The events of a task that do not repeat one of an earlier batch: key, place, and whether the task landed them."""


def encode(events: pa.Table) -> bytes:
    """Encode events as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(events)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decoded(parts: Iterable[bytes]) -> pa.Table:
    """Decode the events of several tasks into one table."""
    tables = [pa.ipc.open_stream(part).read_all() for part in parts if part]
    return pa.concat_tables([EVENT_SCHEMA.empty_table(), *tables]).unify_dictionaries().combine_chunks()


def keys_of(events: pa.Table) -> EventKeys:
    """The keys of events."""
    return EventKeys(events["high"].to_numpy(), events["rest"].to_numpy())


def decide_events(parts: Iterable[bytes], window: int) -> bytes | None:
    """Decide which events land if several tasks have the same event: among equal events within the window, the one with
    the smallest file, line and index. Return the events that land, encoded; None if the tasks have already landed
    exactly these."""
    events = decoded(parts)
    dropped = np.flatnonzero(~events["kept"].to_numpy())
    rows = np.unique(np.concatenate([dropped, *same_events(keys_of(events))]))
    if not len(rows):
        return None
    several = events.take(pa.array(rows))
    several = several.set_column(2, "_file", several["_file"].cast(pa.string()))
    several = several.sort_by([(name, "ascending") for name in PLACE])
    keys = keys_of(several)
    kept = first_of_each(keys, window)
    is_wrong = kept != several["kept"].to_numpy()
    if not is_wrong.any():
        return None
    groups = [group for group in same_events(keys) if is_wrong[group].any()]
    rows = np.unique(np.concatenate([np.flatnonzero(is_wrong), *groups]))
    landing = several.take(pa.array(rows[kept[rows]]))
    return encode(landing.set_column(2, "_file", landing["_file"].dictionary_encode()))
