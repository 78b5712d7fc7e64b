"""Dead letters as records again: those that are chosen and not yet resolved, and what a catalogue makes of them now.

A letter keeps its place (file, line, index) and takes part for its own index alone, also when its record is a batch.

Spec: docs/land.md#replay; docs/decisions/0058
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.sources.batches import PROBLEM_OUTCOMES, Chunk, Engine, Landed, Numbers
from wirebook.landing.sources.lines import Sizes
from wirebook.landing.sources.splits import Split
from wirebook.landing.tables.layout import RESOLVED, RESOLVED_SCHEMA

__all__ = ["DeadLetterRecords", "Letters", "MessageTwice", "read_letters", "resolve"]

Mask = npt.NDArray[np.bool_]

PLACE = ["_file", "_line", "_index"]
COLUMNS = [*PLACE, "raw", "definition", "problems", "near"]
MAX_ROWS = 1 << 16
KEPT_IN_PART = tuple(PROBLEM_OUTCOMES)
"""Problems of letters that hold no whole record, and that no catalogue can mend."""


class MessageTwice(Exception):
    """An engine gave one message two rows."""


@dataclass(frozen=True, slots=True)
class Letters:
    """What tasks of a replay share: which letters are chosen (of an empty set: all), the files that say which are
    resolved, the sources that were files of events, not of captures, and the name that `_file` has in the tables."""

    codes: Set[str]
    definitions: Set[str]
    resolved: tuple[str, ...]
    events: Set[str]
    file: str = "_file"


@dataclass(frozen=True, slots=True)
class DeadLetterRecords:
    """Letters of one kind of source, and the records they are part of.

    Shape: `chunk` has each record once, numbered from 1; `letters` the places, `keys` (record, index) of each letter,
    rising. `size` is about how many bytes they are.
    """

    chunk: Chunk
    letters: pa.Table
    keys: Numbers
    size: int

    def places_of(self, rows: pa.Table) -> tuple[Mask, Numbers]:
        """Which rows of an engine's table are letters here, and which letters those are."""
        wanted = _key(_numbers(rows, "_line"), _numbers(rows, "_index"))
        places = np.minimum(np.searchsorted(self.keys, wanted), max(len(self.keys) - 1, 0))
        found = self.keys[places] == wanted if len(self.keys) else np.zeros(len(wanted), np.bool_)
        return found, places[found]


def read_letters(unit: Split, letters: Letters, sizes: Sizes) -> Iterator[DeadLetterRecords]:
    """The letters of a unit (row groups `start` to `end` of a file) that are to be tried. Raises: OSError"""
    with pq.ParquetFile(pa.OSFile(unit.path), read_dictionary=["raw"]) as file:
        for group in range(unit.start, unit.end):
            facts = file.metadata.row_group(group)
            at_a_time = min(max(sizes.chunk * facts.num_rows // max(facts.total_byte_size, 1), 1), MAX_ROWS)
            for batch in file.iter_batches(at_a_time, row_groups=[group], columns=[letters.file, *COLUMNS[1:]]):
                table = pa.Table.from_batches([batch]).rename_columns({letters.file: "_file"})
                table = table.filter(pa.array(_is_chosen(table, letters))).combine_chunks()
                is_event = np.array([name in letters.events for name in table["_file"].to_pylist()], np.bool_)
                for kind, mask in (("capture", ~is_event), ("events", is_event)):
                    if mask.any():
                        yield _records(kind, table.filter(pa.array(mask)))


def _records(kind: str, letters: pa.Table) -> DeadLetterRecords:
    """Neighbours of one file and line are one record."""
    order = letters.append_column("at", pa.array(np.arange(len(letters)))).select([*PLACE, "at"])
    letters = letters.take(order.sort_by([(name, "ascending") for name in PLACE])["at"]).combine_chunks()
    files, lines = letters["_file"].combine_chunks().dictionary_encode().indices.to_numpy(), _numbers(letters, "_line")
    starts = np.ones(len(letters), np.bool_)
    starts[1:] = (files[1:] != files[:-1]) | (lines[1:] != lines[:-1])
    numbers = np.cumsum(starts, dtype=np.int64)
    raw = letters["raw"].filter(pa.array(starts)).combine_chunks().cast(pa.large_binary())
    chunk = Chunk("", kind, raw, np.arange(1, len(raw) + 1, dtype=np.int64))
    return DeadLetterRecords(chunk, letters.select(PLACE), _key(numbers, _numbers(letters, "_index")), raw.nbytes)


def _key(records: Numbers, indexes: Numbers) -> Numbers:
    return (records << 32) | indexes


def _numbers(table: pa.Table, name: str) -> Numbers:
    numbers: Numbers = table[name].to_numpy().astype(np.int64)
    return numbers


# -- which letters -------------------------------------------------------------------------------------------------


def _is_chosen(table: pa.Table, letters: Letters) -> Mask:
    chosen = ~_has_code(table, KEPT_IN_PART)
    if letters.codes:
        chosen &= _has_code(table, letters.codes)
    if letters.definitions:
        chosen &= _names_definition(table, letters.definitions)
    return chosen & _is_open(table, letters)


def _has_code(table: pa.Table, codes: Any) -> Mask:
    return _any_of(table["problems"].combine_chunks(), "code", codes)


def _names_definition(table: pa.Table, definitions: Set[str]) -> Mask:
    own: Mask = pc.is_in(table["definition"], pa.array(sorted(definitions), pa.string())).to_numpy()
    return own | _any_of(table["near"].combine_chunks(), "definition", definitions)


def _any_of(lists: pa.ListArray, member: str, values: Any) -> Mask:
    """Which lists of structs have one whose `member` is among `values`."""
    found: Mask = np.zeros(len(lists), np.bool_)
    hits = pc.is_in(pc.struct_field(pc.list_flatten(lists), member), pa.array(sorted(values), pa.string()))
    found[pc.list_parent_indices(lists).filter(hits).to_numpy()] = True
    return found


def _is_open(table: pa.Table, letters: Letters) -> Mask:
    """Which letters have not landed since."""
    if not letters.resolved:
        return np.ones(len(table), np.bool_)
    places = table.select(PLACE).append_column("at", pa.array(np.arange(len(table))))
    still = places.join(_places_in(letters.resolved, letters.file), keys=PLACE, join_type="left anti")["at"].to_numpy()
    is_open = np.zeros(len(table), np.bool_)
    is_open[still] = True
    return is_open


@lru_cache(maxsize=1)
def _places_in(files: tuple[str, ...], file_column: str) -> pa.Table:
    columns = [file_column, *PLACE[1:]]
    read = (pq.read_table(file, columns=columns, partitioning=None) for file in files)
    return pa.concat_tables([each.select(columns).rename_columns(PLACE) for each in read])


# -- what they are now ---------------------------------------------------------------------------------------------


def resolve(engine: Engine, records: DeadLetterRecords, catalogue: str, file_column: str = "_file") -> Landed:
    """What an engine makes of letters: rows for the tables and for `resolved`, none for the dead letters, where they
    are already. `read` counts the letters, `file_column` is the name of `_file` in the engine's rows.

    Raises: MessageTwice
    """
    landed = engine.land(records.chunk)
    tables: dict[str, pa.Table] = {}
    taken = np.zeros(len(records.letters), np.int64)
    said = []
    for name, rows in landed.tables.items():
        found, places = records.places_of(rows)
        np.add.at(taken, places, 1)
        if len(places):
            letters = records.letters.take(pa.array(places)).rename_columns({"_file": file_column})
            tables[name] = _put_back(rows.filter(pa.array(found)), letters)
            said.append(_resolved(letters, name, landed.definitions.get(name), catalogue))
    if taken.max(initial=0) > 1:
        raise MessageTwice(f"{int((taken > 1).sum())} messages have more than one row")
    none = RESOLVED_SCHEMA.empty_table().rename_columns({"_file": file_column})
    outcomes, reasons = _still_dead(landed.dead_letters, records)
    return Landed(
        tables=tables | {RESOLVED: pa.concat_tables([none, *said])},
        dead_letters=landed.dead_letters.slice(0, 0),
        read=len(records.letters),
        outcomes={"matched": int(taken.sum()), **outcomes},
        reasons=reasons,
        definitions={name: xid for name, xid in landed.definitions.items() if name in tables},
    )


def _put_back(rows: pa.Table, letters: pa.Table) -> pa.Table:
    """Rows with the file and line of their letters."""
    for name in letters.column_names[:2]:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), letters[name])
    return rows


def _resolved(letters: pa.Table, table: str, definition: str | None, catalogue: str) -> pa.Table:
    same = {"table": table, "definition": definition, "_catalogue": catalogue}
    columns = [*letters.columns, *(pa.array([value] * len(letters), pa.string()) for value in same.values())]
    return pa.Table.from_arrays(columns, [*letters.column_names, *same])


def _still_dead(dead: pa.Table, records: DeadLetterRecords) -> tuple[Counter[str], Counter[str]]:
    """Outcomes, and codes of problems, of the letters that do not land: each code once for a letter."""
    dead = dead.filter(pa.array(records.places_of(dead)[0]))
    problems = dead["problems"].combine_chunks()
    codes = pc.struct_field(pc.list_flatten(problems), "code").to_pylist()
    once = set(zip(pc.list_parent_indices(problems).to_pylist(), codes, strict=True))
    return Counter(dead["outcome"].to_pylist()), Counter(code for _, code in once)
