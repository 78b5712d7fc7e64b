"""Reads dead letters back as records, and lands those that match the corrected catalogue.

A dead letter keeps its place in the source (file, line, index). If its record is a batch of events, only the event at
its index lands.

Spec: docs/land.md#replay; docs/decisions/0058
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.chunks import PROBLEM_OUTCOMES, UNKNOWN_TABLE, Chunk, Engine, Landed, Numbers
from wirebook.landing.sources.dataframes import are_events
from wirebook.landing.sources.lines import Sizes
from wirebook.landing.sources.splits import FileSplit
from wirebook.landing.stores.locations import Location, parquet_source, source_location
from wirebook.landing.tables.evolution import conform
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA, RESOLVED, RESOLVED_SCHEMA

__all__ = ["DeadLetterRecords", "MessageTwice", "ReplaySelection", "read_dead_letters", "resolve"]

Mask = npt.NDArray[np.bool_]

PLACE = ["_file", "_line", "_index"]
COLUMNS = [*PLACE, "raw", "definition", "problems", "near"]
MAX_ROWS = 1 << 16
TRUNCATED = tuple(PROBLEM_OUTCOMES)
"""Problem codes of dead letters without a complete record; no catalogue can land them."""


class MessageTwice(Exception):
    """An engine returned two rows for one message."""


@dataclass(frozen=True, slots=True)
class ReplaySelection:
    """Selects the dead letters of a replay. All of its tasks share it.

    Shape: `codes` and `definitions` select dead letters (empty: all). `resolved` are the files that list the dead
    letters that earlier replays have landed. `events` are the source files that contain events, `captures` those that
    contain captures (None: all others). The records of sources in neither are classified by their content. `file` is
    the name of the column `_file` in the table format. `deleted` maps file names to the positions of rows that have
    been deleted from the table.
    """

    codes: Set[str]
    definitions: Set[str]
    resolved: tuple[Location, ...]
    events: Set[str]
    captures: Set[str] | None = None
    file: str = "_file"
    deleted: Mapping[str, pa.Int64Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeadLetterRecords:
    """Dead letters of one file type and the records that they came from.

    Shape: `chunk` has each record once, numbered from 1. `dead_letters` has the place of each dead letter. `keys` has
    the (record number, index) pair of each, packed into one number, in ascending order. `size` is the approximate size
    of the records in bytes.
    """

    chunk: Chunk
    dead_letters: pa.Table
    keys: Numbers
    size: int

    def places_of(self, rows: pa.Table) -> tuple[Mask, Numbers]:
        """A mask of the `rows` that belong to these dead letters, and for each of them its position in
        `dead_letters`."""
        keys = _key(_numbers(rows, "_line"), _numbers(rows, "_index"))
        places = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        is_here = self.keys[places] == keys if len(self.keys) else np.zeros(len(keys), np.bool_)
        return is_here, places[is_here]


def read_dead_letters(split: FileSplit, selection: ReplaySelection, sizes: Sizes) -> Iterator[DeadLetterRecords]:
    """Read the selected dead letters of a split (row groups `start` to `end` of a file).

    Raises: OSError
    """
    deleted = selection.deleted.get(split.file.rpartition("/")[2])
    with pq.ParquetFile(parquet_source(source_location(split.path)), read_dictionary=["raw"]) as file:
        position = sum(file.metadata.row_group(group).num_rows for group in range(split.start))
        for group in range(split.start, split.end):
            metadata = file.metadata.row_group(group)
            at_a_time = min(max(sizes.chunk * metadata.num_rows // max(metadata.total_byte_size, 1), 1), MAX_ROWS)
            for batch in file.iter_batches(at_a_time, row_groups=[group], columns=[selection.file, *COLUMNS[1:]]):
                table = pa.Table.from_batches([batch]).rename_columns({selection.file: "_file"})
                position += len(table)
                if deleted is not None:
                    own = np.arange(position - len(table), position)
                    table = table.filter(pa.array(~np.isin(own, deleted.to_numpy(), assume_unique=True)))
                # Another program may have written the file, with types such as string_view.
                types = {name: DEAD_LETTER_SCHEMA.field(name).type for name in COLUMNS} | {"raw": table["raw"].type}
                table = conform(table, pa.schema(types))
                table = table.filter(pa.array(_is_chosen(table, selection))).combine_chunks()
                is_event = _are_events(table, selection)
                for file_type, mask in (("capture", ~is_event), ("events", is_event)):
                    if mask.any():
                        yield _records(file_type, table.filter(pa.array(mask)))


def _are_events(table: pa.Table, selection: ReplaySelection) -> Mask:
    files: list[str] = table["_file"].to_pylist()
    is_event = np.array([name in selection.events for name in files], np.bool_)
    if selection.captures is not None:
        of_frames = ~is_event & ~np.array([name in selection.captures for name in files], np.bool_)
        if of_frames.any():
            is_event |= of_frames & are_events(table["raw"].combine_chunks().cast(pa.large_binary()))
    return is_event


def _records(file_type: str, dead_letters: pa.Table) -> DeadLetterRecords:
    """Group dead letters of the same file and line into one record."""
    order = dead_letters.append_column("at", pa.array(np.arange(len(dead_letters)))).select([*PLACE, "at"])
    dead_letters = dead_letters.take(order.sort_by([(name, "ascending") for name in PLACE])["at"]).combine_chunks()
    files, lines = (
        dead_letters["_file"].combine_chunks().dictionary_encode().indices.to_numpy(),
        _numbers(dead_letters, "_line"),
    )
    starts = np.ones(len(dead_letters), np.bool_)
    starts[1:] = (files[1:] != files[:-1]) | (lines[1:] != lines[:-1])
    numbers = np.cumsum(starts, dtype=np.int64)
    raw = dead_letters["raw"].filter(pa.array(starts)).combine_chunks().cast(pa.large_binary())
    chunk = Chunk("", file_type, raw, np.arange(1, len(raw) + 1, dtype=np.int64))
    return DeadLetterRecords(
        chunk, dead_letters.select(PLACE), _key(numbers, _numbers(dead_letters, "_index")), raw.nbytes
    )


def _key(records: Numbers, indexes: Numbers) -> Numbers:
    return (records << 32) | indexes


def _numbers(table: pa.Table, name: str) -> Numbers:
    numbers: Numbers = table[name].to_numpy().astype(np.int64)
    return numbers


# -- selecting dead letters -----------------------------------------------------------------------------------------


def _is_chosen(table: pa.Table, selection: ReplaySelection) -> Mask:
    chosen = ~_has_code(table, TRUNCATED)
    if selection.codes:
        chosen &= _has_code(table, selection.codes)
    if selection.definitions:
        names = pa.array(sorted(selection.definitions), pa.string())
        own: Mask = pc.is_in(table["definition"], names).to_numpy()
        chosen &= own | _any_of(table["near"].combine_chunks(), "definition", selection.definitions)
    return chosen & _is_open(table, selection)


def _has_code(table: pa.Table, codes: Any) -> Mask:
    return _any_of(table["problems"].combine_chunks(), "code", codes)


def _any_of(lists: pa.ListArray, member: str, values: Any) -> Mask:
    """A mask of the lists that contain a struct whose `member` is one of `values`."""
    mask: Mask = np.zeros(len(lists), np.bool_)
    hits = pc.is_in(pc.struct_field(pc.list_flatten(lists), member), pa.array(sorted(values), pa.string()))
    mask[pc.list_parent_indices(lists).filter(hits).to_numpy()] = True
    return mask


def _is_open(table: pa.Table, selection: ReplaySelection) -> Mask:
    """A mask of the dead letters that no earlier replay has landed."""
    is_open = np.ones(len(table), np.bool_)
    if selection.resolved:
        landed = _landed_messages(selection.resolved, selection.file)
        for name, rows in _rows_by_file(table):
            if name in landed:
                lines, indexes = (_numbers(table, column)[rows] for column in PLACE[1:])
                is_open[rows] = ~landed[name].contain(lines, indexes)
    return is_open


class LandedMessages(NamedTuple):
    """A set of messages of one source file, each identified by line and index.

    Shape: `lines` are distinct and ascending. `keys` are ascending; the key of a message is the position of its line in
    `lines` times `width`, plus its index.
    """

    lines: Numbers
    keys: Numbers
    width: int

    @classmethod
    def of(cls, lines: Numbers, indexes: Numbers) -> LandedMessages:
        distinct, positions = np.unique(lines, return_inverse=True)
        width = int(indexes.max()) + 1
        return cls(distinct, np.sort(positions * width + indexes), width)

    def contain(self, lines: Numbers, indexes: Numbers) -> Mask:
        """A mask of the messages that are in this set."""
        positions = np.minimum(np.searchsorted(self.lines, lines), len(self.lines) - 1)
        keys = positions * self.width + indexes
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        there: Mask = (self.lines[positions] == lines) & (indexes < self.width) & (self.keys[at] == keys)
        return there


@lru_cache(maxsize=1)
def _landed_messages(files: tuple[Location, ...], file_column: str) -> dict[str, LandedMessages]:
    """The messages listed in files of the table `resolved`, by source file. Cached: a process reads them once."""
    columns = [file_column, *PLACE[1:]]
    read = (pq.read_table(parquet_source(file), columns=columns, partitioning=None) for file in files)
    table = pa.concat_tables([part.select(columns).rename_columns(PLACE) for part in read])
    lines, indexes = (_numbers(table, column) for column in PLACE[1:])
    return {name: LandedMessages.of(lines[rows], indexes[rows]) for name, rows in _rows_by_file(table)}


def _rows_by_file(table: pa.Table) -> Iterator[tuple[str, Numbers]]:
    """The source files in a table of messages, each with the positions of its rows."""
    encoded = table["_file"].combine_chunks().cast(pa.string()).dictionary_encode()
    codes = encoded.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    for name, start, stop in zip(encoded.dictionary.to_pylist(), bounds[:-1], bounds[1:], strict=True):
        yield name, order[start:stop]


# -- landing --------------------------------------------------------------------------------------------------------


def resolve(engine: Engine, records: DeadLetterRecords, catalogue: str, file_column: str = "_file") -> Landed:
    """Land the dead letters that the engine now accepts: return rows for their tables and for `resolved`.

    The result contains no dead letters, because they exist already; its `read` counts all dead letters in `records`.
    `file_column` is the name of `_file` in the rows of the engine.

    Raises: MessageTwice
    """
    landed = engine.land(records.chunk)
    tables: dict[str, pa.Table] = {}
    rows_of = np.zeros(len(records.dead_letters), np.int64)
    resolved = []
    for name, rows in landed.tables.items():
        is_dead_letter, places = records.places_of(rows)
        np.add.at(rows_of, places, 1)
        if len(places):
            dead_letters = records.dead_letters.take(pa.array(places)).rename_columns({"_file": file_column})
            tables[name] = _put_back(rows.filter(pa.array(is_dead_letter)), dead_letters)
            definition = landed.info.get(name, UNKNOWN_TABLE).definition
            resolved.append(_resolved_rows(dead_letters, name, definition, catalogue))
    if rows_of.max(initial=0) > 1:
        raise MessageTwice(f"{int((rows_of > 1).sum())} messages have more than one row")
    none = RESOLVED_SCHEMA.empty_table().rename_columns({"_file": file_column})
    outcomes, reasons = _still_dead(landed.dead_letters, records)
    return Landed(
        tables=tables | {RESOLVED: pa.concat_tables([none, *resolved])},
        dead_letters=landed.dead_letters.slice(0, 0),
        read=len(records.dead_letters),
        outcomes={"matched": int(rows_of.sum()), **outcomes},
        reasons=reasons,
        info=landed.info,
    )


def _put_back(rows: pa.Table, dead_letters: pa.Table) -> pa.Table:
    """Set the file and line of rows to those of their dead letters."""
    for name in dead_letters.column_names[:2]:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), dead_letters[name])
    return rows


def _resolved_rows(dead_letters: pa.Table, table: str, definition: str | None, catalogue: str) -> pa.Table:
    same = {"table": table, "definition": definition, "_catalogue": catalogue}
    columns = [*dead_letters.columns, *(pa.array([value] * len(dead_letters), pa.string()) for value in same.values())]
    return pa.Table.from_arrays(columns, [*dead_letters.column_names, *same])


def _still_dead(dead: pa.Table, records: DeadLetterRecords) -> tuple[Counter[str], Counter[str]]:
    """Count outcomes and problem codes of the dead letters that still do not land; a code counts once for each."""
    dead = dead.filter(pa.array(records.places_of(dead)[0]))
    problems = dead["problems"].combine_chunks()
    codes = pc.struct_field(pc.list_flatten(problems), "code").to_pylist()
    distinct = set(zip(pc.list_parent_indices(problems).to_pylist(), codes, strict=True))
    return Counter(dead["outcome"].to_pylist()), Counter(code for _, code in distinct)
