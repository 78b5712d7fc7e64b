"""The engine: turns chunks of records into rows of typed tables and dead letters.

Two paths produce the same result. The column path splits, matches, validates and decodes whole batches without running
Python code for each message. The reference path (`wirebook.catalog`, `tables.reference_rows`) processes one message at
a time; it gets the messages that the column path cannot decide with certainty.

Spec: docs/semantics.md#one-meaning-two-engines; docs/land.md
"""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeVar

import numpy as np
import orjson
import pyarrow as pa

from wirebook.bindings import (
    Parsed,
    Received,
    read_events,
    read_parquet_batch,
    read_record,
    received_of,
    to_line,
)
from wirebook.catalog import Catalog
from wirebook.core.collector import freeze, without_collector
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.definitions.match.outcome import Outcome
from wirebook.definitions.match.selection import EndpointScope
from wirebook.landing.chunks import PROBLEM_OUTCOMES, BlockTables, Chunk, Landed, TableBlock, TableInfo
from wirebook.landing.columns.candidates import CandidateFinder
from wirebook.landing.columns.events import messages_by_mode, messages_of_events
from wirebook.landing.columns.invalid_payloads import InvalidPayload, invalid_payloads, unsupported_payloads
from wirebook.landing.columns.json_records import JsonRecords
from wirebook.landing.columns.match import MatchedRows, MessageMatches, match_messages
from wirebook.landing.columns.message_columns import MessageColumns
from wirebook.landing.columns.near_misses import NearMissFinder
from wirebook.landing.columns.parquet_records import ParquetRecords
from wirebook.landing.columns.patterns import Patterns
from wirebook.landing.columns.payloads import read_payloads
from wirebook.landing.columns.record_lines import record_lines
from wirebook.landing.columns.records import DecodedRecords, RecordColumns
from wirebook.landing.columns.rows import ColumnRows, DeadLetterBlock, RawRecords, RowBlock
from wirebook.landing.columns.slot_columns import Rows, codes_of
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA, TableLayout, layout_key, layout_of
from wirebook.landing.tables.reference_rows import MessageOrigin, dead_letter, json_text, table_row
from wirebook.problems import Problem
from wirebook.schema import CompiledSchema, Unsupported

MAX_FINDERS: Final = 64
"""Maximum number of cached near-miss finders. Each serves the messages of one endpoint, protocol and mode."""
DEFERRED_SHARE: Final = 8
"""At most one in this many messages is deferred, because deferred messages are matched twice."""


@dataclass(slots=True)
class Tally:
    """Collects the rows of a `Landed`: `rows` and `dead` from the reference path, `blocks` and `dead_blocks` from the
    column path. Table names are the XIDs of definitions."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    blocks: list[TableBlock] = field(default_factory=list)
    dead: list[dict[str, Any]] = field(default_factory=list)
    dead_blocks: list[pa.Table] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    deferred: list[Rows] = field(default_factory=list)  # positions in the chunk
    read: int = 0
    empty: int = 0

    def add_block(self, block: TableBlock) -> None:
        self.blocks.append(block)
        self.outcomes["matched"] += len(block.rows)
        self.read += len(block.rows)

    def add_dead_letters(self, block: DeadLetterBlock) -> None:
        self.dead_blocks.append(block.rows)
        self.outcomes.update(block.outcomes)
        self.reasons.update(block.codes)
        self.read += len(block.rows)

    def landed(self, layout: Callable[[str], TableLayout], info: Mapping[str, TableInfo]) -> Landed:
        """Everything that was added. `layout` returns the layout of a table."""
        from_reference = [
            TableBlock.of(name, pa.Table.from_pylist(rows, schema=layout(name).schema))
            for name, rows in self.rows.items()
        ]
        return Landed(
            tables=BlockTables([*self.blocks, *from_reference]),
            dead_letters=pa.concat_tables(
                [pa.Table.from_pylist(self.dead, schema=DEAD_LETTER_SCHEMA), *self.dead_blocks]
            ),
            read=self.read,
            empty=self.empty,
            outcomes=dict(self.outcomes),
            reasons=dict(self.reasons),
            info=info,
            deferred=np.concatenate([np.zeros(0, np.int64), *self.deferred]),
        )


class CatalogueEngine:
    """Lands chunks with one catalogue: each message becomes a row in the table of its definition, or a dead letter.

    Table names are the XIDs of definitions; `EvolvingEngine` replaces them with the names in the target. `endpoint`
    overrides the endpoints in records. Only the reference path is used if `columns` is False, or if match options are
    set that the column path does not support.
    """

    def __init__(self, catalog: Catalog, *, endpoint: str | None = None, columns: bool = True) -> None:
        self.catalog = catalog
        self.endpoint = endpoint
        self.columns = columns and replace(catalog.options, confluent_prefix=False) == DEFAULT_OPTIONS
        self._layouts: dict[str, TableLayout] = {}
        self._table_names: dict[int, str] = {}  # by definition number
        self._info: dict[str, TableInfo] = {}
        self._layouts_by_key: dict[Any, TableLayout] = {}
        self._finders: dict[tuple[int, str, bool, str | None], NearMissFinder] = {}
        self._compiled: dict[tuple[int, bool], tuple[Patterns, Rows]] = {}
        self._candidates: dict[tuple[int, bool], CandidateFinder] = {}

    def prepared(self) -> bytes:
        """Serialise the engine with its compiled definitions, for processes that run the same version of Wirebook.

        Call this before the engine lands anything. The result includes everything that is derived from all definitions,
        because the other processes load only the definitions of their messages.
        """
        selector = self.catalog.selector
        _ = self.extensions, selector.event_types.constants, selector.event_types.by_type
        scope = selector.default_scope if self.endpoint is None else selector.scopes[self.endpoint]
        patterns = self._patterns(scope, shows_protocol=True) if self.columns else None
        return zlib.compress(pickle.dumps((self, scope, patterns)), 1)

    @staticmethod
    def restored(prepared: bytes) -> CatalogueEngine:
        """Restore an engine from the result of `prepared`. Pass only bytes from this program: unpickling can run
        code."""
        engine: CatalogueEngine
        engine, scope, patterns = pickle.loads(zlib.decompress(prepared))  # noqa: S301
        engine._compiled = {} if patterns is None else {(id(scope), True): patterns}
        return engine

    @cached_property
    def extensions(self) -> frozenset[str]:
        """The envelope attributes that at least one definition names."""
        definitions = self.catalog.definitions.values()
        return frozenset(c.slot.name for d in definitions for c in d.constraints if c.slot.section == "envelope")

    def layout(self, xid: str) -> TableLayout:
        """The table layout of a definition. An alias shares the table of its source definition."""
        if xid not in self._layouts:
            definition = self.catalog.definitions[xid]
            self._layouts[xid] = self._layout(self._owner(definition))
        return self._layouts[xid]

    def _describe(self, table: str, layout: TableLayout) -> None:
        """Add a table to the `info` of the results of this engine."""
        if table not in self._info:
            self._info[table] = TableInfo(table, layout.descriptions, bool(layout.attributes))

    def _tables_of(self, numbers: Sequence[int], layout: TableLayout) -> tuple[str, ...]:
        """The tables of definitions, given by number, that share a layout."""
        for number in set(numbers).difference(self._table_names):
            definition = self.catalog.selector.definitions[number]
            self._table_names[number] = table = self._owner(definition).xid
            self._describe(table, layout)
        return tuple(map(self._table_names.__getitem__, numbers))

    def _owner(self, definition: Definition) -> Definition:
        """The definition whose table the messages go to: the source of an alias, else the definition itself."""
        return self.catalog.definitions.get(definition.identity, definition)

    def _layout(self, definition: Definition) -> TableLayout:
        """The layout of a definition. Definitions with equal keys share their columns."""
        key = (*layout_key(definition), self.numbers.get(definition.xid, definition.xid))
        if key not in self._layouts_by_key:
            self._layouts_by_key[key] = layout_of(definition, self.catalog.schema_of(definition))
        return replace(self._layouts_by_key[key], definition=definition.xid)

    def outcomes(self, chunk: Chunk) -> Iterator[tuple[MessageOrigin, Outcome | None]]:
        """Match each message of a chunk with the reference path, in order. The outcome is None for a record without
        messages."""
        if chunk.problem is not None:
            yield self._problem_outcome(chunk, chunk.problem)
            return
        assert chunk.numbers is not None
        for place, raw, messages in _messages(chunk):
            origin = MessageOrigin(chunk.file, int(chunk.numbers[place]), raw, self.catalog.fingerprint)
            if not messages:
                yield origin, None
            for received in messages:
                yield origin, self.catalog.selector.select(received, self.endpoint)

    def land(self, chunk: Chunk, *, may_defer: bool = False) -> Landed:
        """Land a chunk: return its rows and dead letters. With `may_defer`, a few records that match no definition may
        be returned as `deferred` instead."""
        tally = Tally()
        rest = np.ones(len(chunk), bool)
        for block in self.settled(chunk, tally.deferred if may_defer else None):
            rest[block.places] = False
            if isinstance(block, DeadLetterBlock):
                tally.add_dead_letters(block)
                continue
            numbers, starts = np.unique(block.numbers, return_index=True)
            names = self._tables_of(numbers.tolist(), block.layout)
            tally.add_block(TableBlock(names, np.append(starts, len(block.numbers)), block.rows))
        for places in tally.deferred:
            rest[places] = False
        for origin, outcome in self.outcomes(chunk.only(rest)):
            self._add(outcome, origin, tally)
        return tally.landed(self.layout, self._info)

    def _problem_outcome(self, chunk: Chunk, problem: Problem) -> tuple[MessageOrigin, Outcome]:
        """The outcome of a chunk that stands for one dead letter."""
        raw = chunk.lines[0].as_py() if chunk.lines is not None and len(chunk.lines) else b""
        outcome = PROBLEM_OUTCOMES.get(problem.code, "malformed")
        received = Received(protocol="", wire=None, kind="malformed", problems=(problem,))
        origin = MessageOrigin(chunk.file, problem.line or 0, raw, self.catalog.fingerprint)
        return origin, Outcome(outcome, received, problems=(problem,))

    # -- columns ----------------------------------------------------------------------------------------------------

    def settled(self, chunk: Chunk, deferred: list[Rows] | None = None) -> Iterator[RowBlock | DeadLetterBlock]:
        """Yield the messages that the column path decides with certainty: matches, in blocks of definitions that share
        a layout, and dead letters.

        With `deferred`, the positions of records that match no definition are added to it instead if they are few among
        the messages of their kind: dead letters for a handful of records cost as much as for thousands.
        """
        if not self.columns or chunk.problem is not None or chunk.numbers is None:
            return
        records, raw = _records(chunk), partial(record_lines, chunk)
        rows = ColumnRows(chunk.file, chunk.numbers, self.catalog.fingerprint, records)
        for messages, scope in self._messages_in_scopes(chunk, records):
            matches = self._matches(messages, scope)
            yield from self._matched_blocks(rows, matches.matched, raw)
            unmatched = matches.unmatched[rows.timely(messages)[matches.unmatched]]
            if not len(unmatched) or scope.empty:
                continue
            if deferred is not None and len(unmatched) * DEFERRED_SHARE <= len(messages):
                deferred.append(messages.rows[unmatched])
            else:
                yield rows.unexpected(messages.take(unmatched), self._finder(messages, scope), raw)

    def _matched_blocks(
        self, rows: ColumnRows, matches: Iterator[MatchedRows], raw: RawRecords
    ) -> Iterator[RowBlock | DeadLetterBlock]:
        """The rows of the matches, and the dead letters of those with invalid payloads."""
        invalid: list[InvalidPayload] = []
        for run in self._runs(matches):
            messages = run[0].messages
            _, schema = self._described(run[0])
            if isinstance(schema, Unsupported):
                invalid += unsupported_payloads(run, schema, rows.timely(messages))
                continue
            prefixed = self.catalog.options.confluent_prefix
            payloads = read_payloads(messages, run[0].start, run[-1].stop, schema, confluent_prefix=prefixed)
            for matched in run:
                layout, _ = self._described(matched)
                block = rows.block(matched, layout, payloads)
                if len(block.places):
                    yield block
            if schema is not None:
                definitions = self.catalog.selector.definitions
                invalid += invalid_payloads(run, payloads, schema, definitions, rows.timely(messages))
        if invalid:
            yield rows.invalid(invalid, self._xids, raw)

    def _messages_in_scopes(
        self, chunk: Chunk, records: RecordColumns
    ) -> Iterator[tuple[MessageColumns, EndpointScope]]:
        if chunk.file_type == "events" and chunk.lines is not None:
            selector = self.catalog.selector
            scope = selector.default_scope if self.endpoint is None else selector.scopes[self.endpoint]
            yield messages_of_events(chunk.lines, self.extensions), scope
            return
        scopes, of_record = self._scopes(records)
        for messages in messages_by_mode(records, self.extensions):
            numbers = of_record[messages.rows]
            for number in np.unique(numbers).tolist():
                scope = scopes[number]
                if scope is not None and scope.protocol in (None, messages.protocol):
                    yield messages.take(np.flatnonzero(numbers == number)), scope

    def _described(self, matched: MatchedRows) -> tuple[TableLayout, CompiledSchema | None]:
        """The table layout and the schema that all definitions in `matched` share."""
        xid = self._xids[matched.numbers[0]]
        return self.layout(xid), self.catalog.schema_of(self.catalog.definitions[xid])

    def _matches(self, messages: MessageColumns, scope: EndpointScope) -> MessageMatches:
        patterns, groups = self._patterns(scope, shows_protocol=messages.shows_protocol)
        key = (id(scope), messages.shows_protocol)
        if key not in self._candidates:
            index = self.catalog.selector.index(shows_protocol=messages.shows_protocol)
            self._candidates[key] = CandidateFinder(index, patterns.in_scope)
        return match_messages(messages, self._candidates[key], patterns, groups)

    def _finder(self, messages: MessageColumns, scope: EndpointScope) -> NearMissFinder:
        """The near-miss finder for a kind of messages. Its caches are reused from chunk to chunk."""
        key = (id(scope), messages.protocol, messages.is_cloudevent, messages.mode)
        if key not in self._finders:
            if len(self._finders) >= MAX_FINDERS:
                self._finders.clear()
            self._finders[key] = NearMissFinder(self.catalog.selector, scope, messages)
        return self._finders[key]

    def _runs(self, matches: Iterator[MatchedRows]) -> Iterator[list[MatchedRows]]:
        """Matches, grouped by the schema of their payloads."""
        for _, run in groupby(matches, key=lambda matched: self._schema_numbers[matched.numbers[0]]):
            yield list(run)

    def _patterns(self, scope: EndpointScope, *, shows_protocol: bool) -> tuple[Patterns, Rows]:
        """The patterns of a scope, and the group number of each definition. Definitions of a group share pattern,
        schema, columns and placeholders. Groups with the same schema are adjacent."""
        key = (id(scope), shows_protocol)
        if key not in self._compiled:
            patterns = Patterns(self.catalog.selector.definitions, scope, shows_protocol=shows_protocol)
            group_keys = list(
                zip(
                    self._schema_numbers.tolist(),
                    patterns.pattern_of.tolist(),
                    patterns.names,
                    map(layout_key, patterns.definitions),
                    strict=True,
                )
            )
            distinct = sorted(dict.fromkeys(group_keys), key=itemgetter(0))
            numbers = {group: number for number, group in enumerate(distinct)}
            self._compiled[key] = patterns, np.array([numbers[group] for group in group_keys], np.int64)
        return self._compiled[key]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each definition's schema, by the XID of the definition. Definitions that refer to the same
        schema share a number. Compiles no schema."""
        numbers: dict[Any, int] = {}
        return {
            definition.xid: numbers.setdefault(schema_key(definition), len(numbers))
            for definition in self.catalog.selector.definitions
        }

    @cached_property
    def _xids(self) -> list[str]:
        return [definition.xid for definition in self.catalog.selector.definitions]

    @cached_property
    def _schema_numbers(self) -> Rows:
        return np.array([self.numbers[xid] for xid in self._xids], np.int64)

    def xids_of(self, block: RowBlock) -> pa.StringArray:
        """The XID of the definition of each row."""
        return pa.array(self._xids, pa.string()).take(pa.array(block.numbers))

    def _scopes(self, records: RecordColumns) -> tuple[list[EndpointScope | None], Rows]:
        """The scopes of a chunk and the scope number of each record. The scope is None for an unknown endpoint; the
        reference path reports it."""
        selector = self.catalog.selector
        if self.endpoint is not None:
            return [selector.scopes[self.endpoint]], np.zeros(len(records.endpoints), np.int64)
        encoded = records.endpoints.dictionary_encode()
        named = [selector.scopes.get(endpoint) for endpoint in encoded.dictionary.to_pylist()]
        return [selector.default_scope, *named], codes_of(encoded)

    # -- one message ------------------------------------------------------------------------------------------------

    def _add(self, outcome: Outcome | None, origin: MessageOrigin, tally: Tally) -> None:
        if outcome is None:
            tally.empty += 1
            return
        tally.read += 1
        tally.outcomes[outcome.outcome] += 1
        if outcome.matched and outcome.definition is not None:
            layout = self.layout(outcome.definition)
            self._describe(layout.definition, layout)
            tally.rows.setdefault(layout.definition, []).append(table_row(layout, outcome, origin))
            return
        tally.dead.append(dead_letter(outcome, origin))
        tally.reasons.update({problem.code for problem in outcome.problems})


def schema_key(definition: Definition) -> tuple[Any, ...] | None:
    """A key that definitions share if they refer to the same schema; None for a definition without a schema."""
    if not definition.has_schema:
        return None
    reference = {name: definition.attributes.get(name) for name in ("dataschema", "dataschemauri", "dataschemaxid")}
    return definition.schema_format, orjson.dumps(reference, default=str, option=orjson.OPT_SORT_KEYS)


def _records(chunk: Chunk) -> RecordColumns:
    """The records of a chunk as columns."""
    if chunk.batch is not None:
        return ParquetRecords(chunk.batch)
    if chunk.file_type == "events" or chunk.lines is None:
        return DecodedRecords([None] * len(chunk))
    return JsonRecords(chunk.lines)


def _line(parsed: Parsed) -> bytes:
    return to_line(parsed.wire) if parsed.wire is not None else json_text(parsed.value).encode()


def _messages(chunk: Chunk) -> Iterator[tuple[int, bytes, tuple[Received, ...]]]:
    """The position of each record in the chunk, its raw bytes, and its messages."""
    if chunk.batch is not None:
        for place, parsed in enumerate(read_parquet_batch(chunk.batch)):
            yield place, _line(parsed), received_of(parsed)
        return
    read = read_events if chunk.file_type == "events" else read_record
    for place, line in enumerate(chunk.lines.to_pylist() if chunk.lines is not None else ()):
        yield place, line, read(line)


Key = TypeVar("Key")
Value = TypeVar("Value")
MAX_CACHED: Final = 2
"""Maximum number of entries in each of the caches below."""
_engines: dict[tuple[bytes, str | None, bool, MatchOptions], CatalogueEngine] = {}
"""Engines by the bytes that they were made from (prepared engine or catalogue document), and their options."""
_prepared: dict[tuple[str, str | None, MatchOptions], bytes] = {}


def _recent(cache: dict[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
    """Return the value of a key from an LRU cache; `make` creates a missing one."""
    value = cache.pop(key) if key in cache else make()
    cache[key] = value
    while len(cache) > MAX_CACHED:
        del cache[next(iter(cache))]
    return value


def engine_for(catalogue: bytes, options: Mapping[str, Any]) -> CatalogueEngine:
    """The engine of a catalogue (the normalised document as JSON), cached per worker process.

    `options`: ``endpoint`` (XID or None), ``columns`` (False: reference only), ``match`` (`MatchOptions`), and
    ``prepared`` (as `prepared_engine` returns it, or None).
    """
    match, prepared = options.get("match", DEFAULT_OPTIONS), options.get("prepared")
    endpoint, columns = options.get("endpoint"), options.get("columns", True)

    def make() -> CatalogueEngine:
        if prepared is not None:  # only in a worker: the driver has the engine in its cache
            with without_collector():
                engine = CatalogueEngine.restored(prepared)
            freeze(after_collecting=len(_engines) == MAX_CACHED)
            engine.catalog.selector.definitions.on_read = partial(freeze, after_collecting=False)
            return engine
        loaded = Catalog.load(orjson.loads(catalogue), options=match)
        return CatalogueEngine(loaded, endpoint=endpoint, columns=columns)

    return _recent(_engines, (prepared or catalogue, endpoint, columns, match), make)


def prepared_engine(catalog: Catalog, endpoint: str | None) -> bytes:
    """The serialised engine of a catalogue, so that workers need not compile it. Cached, and so is the engine itself,
    for tasks in this process."""

    def make() -> bytes:
        with without_collector():
            engine = CatalogueEngine(catalog.compiled(), endpoint=endpoint)
            prepared = engine.prepared()
        _recent(_engines, (prepared, endpoint, True, catalog.options), lambda: engine)
        return prepared

    return _recent(_prepared, (catalog.fingerprint, endpoint, catalog.options), make)
