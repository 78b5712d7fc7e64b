"""Finds repeats: events that have already landed, or occur earlier in the same batch, within a time window.

A task finds repeats of events of earlier batches, whose keys are in files of the target (`seen_events`), and repeats
within the task. The driver finds repeats between tasks (`task_events`).

Spec: docs/how-to/deduplicate.md; docs/decisions/0209
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.landing.chunks import BlockTables, Landed, Numbers, TableBlock
from wirebook.landing.runs.event_keys import EventIndex, EventKeys, Mask, find_in, first_of_each, load_keys
from wirebook.landing.runs.task_events import EVENT_SCHEMA, PLACE, decoded, encode, keys_of
from wirebook.landing.stores.locations import Location
from wirebook.landing.tables.layout import REPEATED, REPEATED_SCHEMA

__all__ = ["Deduplication", "RepeatFinder", "RepeatSearch"]

ANY_TIME = 1 << 32
"""A window that includes all times."""
_NUMBERED = EVENT_SCHEMA.set(2, pa.field("_file", pa.int32()))


class Deduplication(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the search for repeats in a batch.

    Units: `window` in seconds. `begun` is when the batch began, in seconds since 1970. A message without a time of
    receipt, or with a later one, counts as received at `begun`.
    """

    window: int
    begun: int


@dataclass(frozen=True, slots=True)
class RepeatSearch:
    """The search for repeats that all tasks of a batch share.

    Shape: `known` are the files with the keys of earlier batches. `decision` is the result of `decide_events`, empty
    when the tasks run for the first time. The target has forgotten events received before `oldest`, in seconds since
    1970.
    """

    deduplication: Deduplication
    known: tuple[Location, ...] = ()
    decision: bytes = b""
    oldest: int = 0


class RepeatFinder:
    """Finds the repeats in the rows of a task. `column` returns the name of a column in the table format. `late` counts
    events that landed and were received so long ago that the target has forgotten the events of that time."""

    def __init__(self, search: RepeatSearch, column: Callable[[str], str]) -> None:
        self.late = 0
        self._search, self._column = search, column
        self._window = search.deduplication.window
        self._landed = EventIndex()
        self._files: dict[str, int] = {}
        self._events: list[pa.RecordBatch] = []

    @cached_property
    def _decided(self) -> tuple[EventKeys, set[tuple[int, int, str, int, int]]]:
        """The keys of the events that the decision of the driver covers, and keys and places of the rows that land."""
        events = decoded([self._search.decision])
        keys = keys_of(events)
        places = zip(*(events[name].to_pylist() for name in PLACE), strict=True)
        pairs = zip(keys.high.tolist(), keys.low.tolist(), places, strict=True)
        return keys.merged(), {(high, low, *place) for high, low, place in pairs}

    def separate(self, landed: Landed, read: Landed, raw: Callable[[Numbers], pa.Array]) -> Landed:
        """Move the rows of repeats to the table of repeats.

        `read` is the same as `landed`, but its line numbers are those of the chunk that the engine read; `raw` returns
        the records with such numbers.
        """
        blocks = [*landed.blocks]
        own = [
            number for number, block in enumerate(blocks) if len(block.rows) and landed.info[block.names[0]].is_event
        ]
        if not own:
            return landed
        names = {name: self._column(name) for name in (*PLACE, "_received", "ce_source", "ce_id")}
        selected = [blocks[number].rows.select([*names.values()]).rename_columns([*names]) for number in own]
        rows = pa.concat_tables(selected).combine_chunks()
        lines: Numbers = np.concatenate([read.blocks[number].rows["_line"].to_numpy() for number in own])
        order = np.lexsort((rows["_index"].to_numpy(), lines))
        is_identified: Mask = pc.and_(rows["ce_source"].is_valid(), rows["ce_id"].is_valid()).to_numpy()
        order = order[is_identified[order]]
        repeated = np.zeros(len(rows), np.bool_)
        repeated[order] = self._repeated(rows.take(pa.array(order)).combine_chunks())
        if not repeated.any():
            return landed
        moved = []
        for number, is_repeat in zip(
            own, np.split(repeated, np.cumsum([len(part) for part in selected])[:-1]), strict=True
        ):
            block = blocks[number]
            if is_repeat.any():
                of_block = raw(read.blocks[number].rows["_line"].to_numpy()[is_repeat])
                moved.append(self._rows(block, is_repeat, of_block, landed))
                bounds = np.concatenate(([0], np.cumsum(~is_repeat)))[block.bounds]
                blocks[number] = TableBlock(block.names, bounds, block.rows.filter(pa.array(~is_repeat)))
        count = int(repeated.sum())
        outcomes = dict(landed.outcomes)
        outcomes["matched"] -= count
        outcomes[REPEATED] = count
        return replace(
            landed, tables=BlockTables([*blocks, TableBlock.of(REPEATED, pa.concat_tables(moved))]), outcomes=outcomes
        )

    def _repeated(self, rows: pa.Table) -> Mask:
        """A mask of the rows that are repeats."""
        begun = self._search.deduplication.begun
        received = rows["_received"].cast(pa.int64()).combine_chunks()
        seconds = pc.fill_null(received, begun * 1_000_000).to_numpy() // 1_000_000
        sources, ids = rows["ce_source"].combine_chunks(), rows["ce_id"].combine_chunks()
        keys = EventKeys.of(sources, ids, np.minimum(seconds, begun))
        is_known = find_in(load_keys(self._search.known), keys, self._window)
        new = np.flatnonzero(~is_known)
        keys, places = keys.take(new), rows.select(PLACE).take(pa.array(new)).combine_chunks()
        kept = ~self._landed.find(keys, self._window)
        candidates = np.flatnonzero(kept)
        kept[candidates] = first_of_each(keys.take(candidates), self._window)
        if self._search.decision:
            self._apply_decision(keys, places, kept)
        self._landed.add(keys.take(kept))
        self.late += int(np.count_nonzero(keys.seconds[kept] < self._search.oldest))
        columns = [keys.high, keys.rest, self._encoded(places["_file"]), places["_line"], places["_index"], kept]
        arrays = [
            array.combine_chunks() if isinstance(array, pa.ChunkedArray) else pa.array(array) for array in columns
        ]
        self._events.append(pa.RecordBatch.from_arrays(arrays, schema=_NUMBERED))
        repeated = is_known
        repeated[new] = ~kept
        return repeated

    def _apply_decision(self, keys: EventKeys, places: pa.Table, kept: Mask) -> None:
        """Apply the decision of the driver to `kept`."""
        decided_keys, landing = self._decided
        rows = np.flatnonzero(decided_keys.find(keys, ANY_TIME))
        decided, of_rows = keys.take(rows), places.take(pa.array(rows))
        columns = [decided.high.tolist(), decided.low.tolist(), *(of_rows[name].to_pylist() for name in PLACE)]
        kept[rows] = [event in landing for event in zip(*columns, strict=True)]

    def _encoded(self, files: pa.ChunkedArray) -> pa.Array:
        """Encode file names as their numbers in `_files`."""
        encoded = files.combine_chunks().dictionary_encode()
        numbers = [self._files.setdefault(file, len(self._files)) for file in encoded.dictionary.to_pylist()]
        return pa.array(numbers, pa.int32()).take(encoded.indices)

    def _rows(self, block: TableBlock, is_repeat: Mask, raw: pa.Array, landed: Landed) -> pa.Table:
        """The rows that the repeats in a block add to the table of repeats."""
        rows = block.rows.filter(pa.array(is_repeat))
        counts = np.diff(block.bounds)
        tables = pa.array(block.names, pa.string()).take(pa.array(np.repeat(np.arange(len(counts)), counts)[is_repeat]))
        sources = {"received": "_received", "source": "ce_source", "id": "ce_id"}
        columns = {name: rows[self._column(sources.get(name, name))] for name in (*PLACE, *sources, "_catalogue")}
        names = [landed.info[table].definition for table in tables.to_pylist()]
        columns |= {"definition": pa.array(names, pa.string()), "table": tables, "raw": raw}
        typed = [columns[field.name].cast(field.type) for field in REPEATED_SCHEMA]
        return pa.Table.from_arrays(typed, [self._column(field.name) for field in REPEATED_SCHEMA])

    def encoded(self) -> bytes:
        """The events of the task, as in `EVENT_SCHEMA`."""
        files = pa.array([*self._files], pa.string())
        rows = pa.Table.from_batches(self._events, _NUMBERED).combine_chunks()
        indices = rows["_file"].combine_chunks() if len(rows) else pa.array([], pa.int32())
        dictionary = pa.DictionaryArray.from_arrays(indices, files)
        return encode(rows.set_column(2, EVENT_SCHEMA.field("_file"), dictionary))
