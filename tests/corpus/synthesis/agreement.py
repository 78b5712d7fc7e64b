"""Compare the two engines: rows and dead letters of the column engine with those of the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from synthesis.messages import Message
from wirebook.catalog import Catalog
from wirebook.landing.chunks import Chunk, Landed
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.spark.matching import outcomes_of

DEAD_LETTERS = "dead_letters"
Places = dict[tuple[int, int], list[tuple[str, dict[str, Any]]]]
"""The rows of each (line, index), each with the name of its table."""


@dataclass(frozen=True)
class Difference:
    """One message, and what each engine made of it: (table or outcome, row)."""

    message: Message | None
    what: str
    columns: Any
    reference: Any

    def __str__(self) -> str:
        answers = (f"  columns:   {self.columns}", f"  reference: {self.reference}")
        return "\n".join((self.what, f"  message:   {self.message}", *answers))


@dataclass
class Result:
    """What came of a chunk: the reference's answer, where the two differ, and which records the columns settled."""

    landed: Landed
    differences: list[Difference]
    settled: frozenset[int]
    rows: Places


@dataclass
class Engines:
    """Both engines over one catalogue; `endpoint` as given on the command line."""

    catalog: Catalog
    endpoint: str | None = None

    def __post_init__(self) -> None:
        prepared = CatalogueEngine(self.catalog.compiled(), endpoint=self.endpoint).prepared()
        self.columns = CatalogueEngine.restored(prepared)  # as in a worker
        self.reference = CatalogueEngine(self.catalog, endpoint=self.endpoint, columns=False)

    def compare(self, chunk: Chunk, messages: Sequence[Message] = ()) -> Result:
        settled = [block.places for block in self.columns.settled(chunk)]
        columns, reference = self.columns.land(chunk), self.reference.land(chunk)
        ours, theirs = places_in(columns), places_in(reference)
        differences = [*_other_sums(columns, reference), *_other_rows(ours, theirs, messages)]
        return Result(reference, differences, frozenset(np.concatenate([[], *settled]).astype(int).tolist()), theirs)

    def compare_outcomes(self, messages: Sequence[Message]) -> list[Difference]:
        """The rows of `wirebook.spark.match` against the outcomes of the reference, problems and near misses too."""
        batch = pa.RecordBatch.from_pydict({"value": pa.array([message.line for message in messages], pa.binary())})
        ours = _by_line(outcomes_of(batch, self.columns).to_pylist())
        theirs = _by_line(outcomes_of(batch, self.reference).to_pylist())
        wrong = [place for place in sorted({*ours, *theirs}) if not same(ours.get(place), theirs.get(place))]
        return [Difference(None, f"outcome of {place}", ours.get(place), theirs.get(place)) for place in wrong]


def _by_line(rows: list[dict[str, Any]]) -> dict[tuple[bytes, int], dict[str, Any]]:
    """Rows by the line they are about and their index; equal lines have equal rows."""
    return {(row.pop("value"), row.pop("index")): row for row in rows}


def _other_sums(columns: Landed, reference: Landed) -> Iterator[Difference]:
    """Counts and schemas in which two landings differ."""
    for name in ("read", "empty", "outcomes", "reasons"):
        ours, theirs = _counts(getattr(columns, name)), _counts(getattr(reference, name))
        if ours != theirs:
            yield Difference(None, name, ours, theirs)
    for table, other in reference.tables.items():
        if table in columns.tables and columns.tables[table].schema != other.schema:
            yield Difference(None, f"schema of {table}", columns.tables[table].schema, other.schema)
        if columns.info.get(table) != reference.info[table]:
            yield Difference(None, f"what is known about {table}", columns.info.get(table), reference.info[table])


def _other_rows(ours: Places, theirs: Places, messages: Sequence[Message]) -> Iterator[Difference]:
    """Rows in which they differ, by line and index."""
    for line, index in sorted({*ours, *theirs}):
        one, other = ours.get((line, index)), theirs.get((line, index))
        if not same(one, other):
            message = messages[line - 1] if messages else None
            yield Difference(message, f"line {line}, index {index}", *_narrowed(one, other))


def _counts(value: Any) -> Any:
    return {name: count for name, count in value.items() if count} if isinstance(value, dict) else value


def places_in(landed: Landed) -> Places:
    """All rows by (line, index), each with its table."""
    places: Places = {}
    for name, table in (*landed.tables.items(), (DEAD_LETTERS, landed.dead_letters)):
        for row in _plain(table).to_pylist():
            places.setdefault((row["_line"], row["_index"]), []).append((name, row))
    return places


def _plain(table: pa.Table) -> pa.Table:
    """Instants as numbers: an instant that no Python datetime can be is one that can be compared all the same."""
    for place, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(place, column.name, table[column.name].cast(pa.int64()))
    return table


def same(one: Any, other: Any) -> bool:
    """Equal, with 1 and 1.0 and True apart, 0.0 and -0.0 apart, and NaN equal to itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _narrowed(one: Any, other: Any) -> tuple[Any, Any]:
    """Only the columns that differ, where both are one row of one table."""
    if not (one and other and len(one) == len(other) == 1 and one[0][0] == other[0][0]):
        return one, other
    ((table, ours),), ((_, theirs),) = one, other
    names = [name for name in ours if not same(ours[name], theirs.get(name))]
    return (table, {name: ours[name] for name in names}), (table, {name: theirs.get(name) for name in names})
