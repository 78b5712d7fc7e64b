"""The engine: a chunk of records in, rows of typed tables and dead letters out.

Two ways to one meaning. Columns settle what is plain: whole batches are taken apart, matched, validated and decoded at
once, and no Python runs for a single message. Whatever a column check is not certain of goes to the reference
(`catalog`, `spark.rows`), message by message.

Spec: docs/semantics.md#one-meaning-two-engines, docs/land.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from wirebook.bindings import (
    Received,
    read_events,
    read_parquet_batch,
    read_record,
    received_of,
    to_line,
)
from wirebook.bindings.capture import Parsed
from wirebook.catalog import Catalog
from wirebook.message.matcher import DEFAULT_OPTIONS, MatchOptions
from wirebook.message.selection import EVERYTHING, Outcome, Scope
from wirebook.problems import Problem
from wirebook.schema import CompiledSchema, Unsupported
from wirebook.spark.chunks import PROBLEM_OUTCOMES, Chunk, Landed
from wirebook.spark.columnmatch import Matched, match_frame
from wirebook.spark.columnrows import ColumnRows, read_payloads
from wirebook.spark.columns import Rows, codes_of
from wirebook.spark.events import frame_of_events, frames_of
from wirebook.spark.frames import Frame
from wirebook.spark.layout import DEAD_LETTER_SCHEMA, Layout, layout_of
from wirebook.spark.linerecords import ParsedLines
from wirebook.spark.patterns import Patterns
from wirebook.spark.records import LineRecords, Records
from wirebook.spark.rowrecords import RowRecords
from wirebook.spark.rows import Origin, dead_letter, json_text, table_row


@dataclass(slots=True)
class Tally:
    """Rows on their way to a `Landed`: `rows` from the reference, `tables` from the columns."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    tables: dict[str, list[pa.Table]] = field(default_factory=dict)
    layouts: dict[str, Layout] = field(default_factory=dict)
    dead: list[dict[str, Any]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    read: int = 0
    empty: int = 0

    def add_table(self, layout: Layout, table: pa.Table) -> None:
        self.layouts[layout.name] = layout
        self.tables.setdefault(layout.name, []).append(table)
        self.outcomes["matched"] += len(table)
        self.read += len(table)

    def landed(self) -> Landed:
        for name, rows in self.rows.items():
            table = pa.Table.from_pylist(rows, schema=self.layouts[name].schema)
            self.tables.setdefault(name, []).append(table)
        return Landed(
            tables={name: pa.concat_tables(tables) for name, tables in self.tables.items()},
            dead_letters=pa.Table.from_pylist(self.dead, schema=DEAD_LETTER_SCHEMA),
            read=self.read,
            empty=self.empty,
            outcomes=dict(self.outcomes),
            reasons=dict(self.reasons),
            definitions={name: layout.definition for name, layout in self.layouts.items()},
        )


class CatalogueEngine:
    """Lands chunks by one catalogue.

    `endpoint` wins over the records' own; with `columns` False the reference does everything, as it does when options
    of matching are asked for that columns do not know.
    """

    def __init__(self, catalog: Catalog, *, endpoint: str | None = None, columns: bool = True) -> None:
        self.catalog = catalog
        self.endpoint = endpoint
        self.columns = columns and replace(catalog.options, confluent_prefix=False) == DEFAULT_OPTIONS
        self.schemas: list[CompiledSchema | None] = []
        self._layouts: dict[str, Layout] = {}
        self._compiled: dict[tuple[int, bool], Patterns] = {}

    @cached_property
    def extensions(self) -> frozenset[str]:
        """The attributes that some definition names."""
        definitions = self.catalog.definitions.values()
        return frozenset(c.slot.name for d in definitions for c in d.constraints if c.slot.section == "envelope")

    def layout(self, xid: str) -> Layout:
        if xid not in self._layouts:
            definition = self.catalog.definitions[xid]
            self._layouts[xid] = layout_of(definition, self.catalog.schema_of(definition))
        return self._layouts[xid]

    def outcomes(self, chunk: Chunk) -> Iterator[tuple[Origin, Outcome | None]]:
        """What each message of a chunk is, by the reference, in order; None for a record that holds no message."""
        if chunk.problem is not None:
            yield self._problem_outcome(chunk, chunk.problem)
            return
        for place, raw, messages in _messages(chunk):
            origin = self._origin(chunk, place, raw)
            if not messages:
                yield origin, None
            for received in messages:
                yield origin, self.catalog.selector.select(received, self.endpoint)

    def land(self, chunk: Chunk) -> Landed:
        """The rows and dead letters of a chunk."""
        tally = Tally()
        rest = np.ones(len(chunk), bool)
        for layout, places, table in self.settled(chunk):
            tally.add_table(layout, table)
            rest[places] = False
        for origin, outcome in self.outcomes(chunk.only(rest)):
            self._add(outcome, origin, tally)
        return tally.landed()

    def _problem_outcome(self, chunk: Chunk, problem: Problem) -> tuple[Origin, Outcome]:
        """A chunk that stands for one dead letter."""
        raw = chunk.lines[0].as_py() if chunk.lines is not None and len(chunk.lines) else b""
        kind = PROBLEM_OUTCOMES.get(problem.code, "malformed")
        received = Received(protocol="", wire=None, kind="malformed", problems=(problem,))
        origin = Origin(chunk.file, problem.line or 0, raw, self.catalog.fingerprint)
        return origin, Outcome(kind, received, problems=(problem,))

    # -- columns ----------------------------------------------------------------------------------------------------

    def settled(self, chunk: Chunk) -> Iterator[tuple[Layout, Rows, pa.Table]]:
        """The messages that columns are certain of: their places in the chunk and their rows, table by table."""
        if not self.columns or chunk.problem is not None or chunk.numbers is None:
            return
        records = _records(chunk)
        rows = ColumnRows(chunk.file, chunk.numbers, self.catalog.fingerprint, records)
        for frame, scope in self._frames(chunk, records):
            for run in self._runs(frame, scope):
                schema = self.schemas[self.numbers[run[0].definition.xid]]
                if isinstance(schema, Unsupported):  # nothing of it lands
                    continue
                prefixed = self.catalog.options.confluent_prefix
                payloads = read_payloads(run[0].frame, run[0].start, run[-1].stop, schema, confluent_prefix=prefixed)
                for matched in run:
                    layout = self.layout(matched.definition.xid)
                    places, table = rows.table(matched, layout, payloads)
                    if len(places):
                        yield layout, places, table

    def _frames(self, chunk: Chunk, records: Records) -> Iterator[tuple[Frame, Scope]]:
        if chunk.kind == "events" and chunk.lines is not None:
            scope = EVERYTHING if self.endpoint is None else self.catalog.scopes[self.endpoint]
            yield frame_of_events(chunk.lines, self.extensions), scope
            return
        scopes, of_record = self._scopes(records)
        for frame in frames_of(records, self.extensions):
            numbers = of_record[frame.rows]
            for number in np.unique(numbers).tolist():
                scope = scopes[number]
                if scope is not None and scope.protocol in (None, frame.protocol):
                    yield frame.take(np.flatnonzero(numbers == number)), scope

    def _runs(self, frame: Frame, scope: Scope) -> Iterator[list[Matched]]:
        """The matches of a frame; those whose payloads have the same schema together."""
        selector = self.catalog.selector
        index = selector.observed if frame.shows_protocol else selector.unobserved
        patterns = self._patterns(scope, shows_protocol=frame.shows_protocol)
        matches = match_frame(frame, index, patterns, self._groups)
        for _, run in groupby(matches, key=lambda matched: self.numbers[matched.definition.xid]):
            yield list(run)

    def _patterns(self, scope: Scope, *, shows_protocol: bool) -> Patterns:
        key = (id(scope), shows_protocol)
        if key not in self._compiled:
            definitions = self.catalog.selector.definitions
            self._compiled[key] = Patterns(definitions, scope, shows_protocol=shows_protocol)
        return self._compiled[key]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Each definition's schema by number, by XID: those that share a compiled schema share the number."""
        found: dict[int, int] = {}
        numbers = {}
        for definition in self.catalog.selector.definitions:
            schema = self.catalog.schema_of(definition)
            numbers[definition.xid] = found.setdefault(id(schema), len(found))
            if len(found) > len(self.schemas):
                self.schemas.append(schema)
        return numbers

    @cached_property
    def _groups(self) -> Rows:
        return np.array([self.numbers[each.xid] for each in self.catalog.selector.definitions], np.int64)

    def _scopes(self, records: Records) -> tuple[list[Scope | None], Rows]:
        """The scopes of a chunk, and the number of each record's; None for an endpoint that the catalogue lacks, whose
        messages are the reference's."""
        if self.endpoint is not None:
            return [self.catalog.scopes[self.endpoint]], np.zeros(len(records.endpoints), np.int64)
        encoded = records.endpoints.dictionary_encode()
        named = [self.catalog.scopes.get(endpoint) for endpoint in encoded.dictionary.to_pylist()]
        return [EVERYTHING, *named], codes_of(encoded)

    # -- one message ------------------------------------------------------------------------------------------------

    def _add(self, outcome: Outcome | None, origin: Origin, tally: Tally) -> None:
        if outcome is None:
            tally.empty += 1
            return
        tally.read += 1
        tally.outcomes[outcome.outcome] += 1
        if outcome.matched and outcome.definition is not None:
            layout = self.layout(outcome.definition)
            tally.layouts[layout.name] = layout
            tally.rows.setdefault(layout.name, []).append(table_row(layout, outcome, origin))
            return
        tally.dead.append(dead_letter(outcome, origin))
        tally.reasons.update({problem.code for problem in outcome.problems})

    def _origin(self, chunk: Chunk, place: int, raw: bytes) -> Origin:
        assert chunk.numbers is not None
        return Origin(chunk.file, int(chunk.numbers[place]), raw, self.catalog.fingerprint)


def _records(chunk: Chunk) -> Records:
    """The records of a chunk as columns."""
    if chunk.batch is not None:
        return RowRecords(chunk.batch)
    if chunk.kind == "events" or chunk.lines is None:
        return LineRecords([None] * len(chunk))
    return ParsedLines(chunk.lines)


def _messages(chunk: Chunk) -> Iterator[tuple[int, bytes, tuple[Received, ...]]]:
    """Each record's place in the chunk, its raw bytes, and the messages in it."""
    if chunk.batch is not None:
        for place, parsed in enumerate(read_parquet_batch(chunk.batch)):
            yield place, _raw(parsed), received_of(parsed)
        return
    read = read_events if chunk.kind == "events" else read_record
    for place, line in enumerate(chunk.lines.to_pylist() if chunk.lines is not None else ()):
        yield place, line, read(line)


def _raw(parsed: Parsed) -> bytes:
    """A record of a Parquet capture as a line of JSON, which replay reads."""
    return to_line(parsed.wire) if parsed.wire is not None else json_text(parsed.value).encode()


@lru_cache(maxsize=2)
def _cached_engine(catalogue: bytes, endpoint: str | None, columns: bool, match: MatchOptions) -> CatalogueEngine:
    loaded = Catalog.load(orjson.loads(catalogue), options=match)
    return CatalogueEngine(loaded, endpoint=endpoint, columns=columns)


def engine_for(catalogue: bytes, options: Mapping[str, Any]) -> CatalogueEngine:
    """The engine of a catalogue (the normalised document as JSON), one for each worker process and catalogue.

    `options`: ``endpoint`` (XID or None), ``columns`` (False: the reference alone), ``match`` (`MatchOptions`).
    """
    match = options.get("match", DEFAULT_OPTIONS)
    return _cached_engine(catalogue, options.get("endpoint"), options.get("columns", True), match)
