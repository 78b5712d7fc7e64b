"""Builds rows of typed tables and dead letters for many messages at once, as `reference_rows` does for one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.landing.columns.invalid_payloads import InvalidPayload
from wirebook.landing.columns.match import MatchedRows
from wirebook.landing.columns.message_columns import MessageColumns
from wirebook.landing.columns.near_misses import NearMissFinder
from wirebook.landing.columns.payloads import PayloadColumns
from wirebook.landing.columns.records import RecordColumns
from wirebook.landing.columns.slot_columns import Mask, Rows, instants, mask_of
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA, INSTANT, TableColumn, TableLayout
from wirebook.landing.tables.reference_rows import reason

RawRecords = Callable[[Rows], pa.BinaryArray]
"""Returns the raw records at the given positions in the chunk."""
PROBLEMS, NEAR = DEAD_LETTER_SCHEMA.field("problems").type, DEAD_LETTER_SCHEMA.field("near").type
INTEGER: Final = r"^(0|-?[1-9][0-9]{0,8})$"


class RowBlock(NamedTuple):
    """Rows of tables that have the same columns.

    Shape: `places` are positions in the chunk; `numbers` are definition numbers, ascending.
    """

    layout: TableLayout
    places: Rows
    numbers: Rows
    rows: pa.Table

    def only(self, chosen: Mask) -> RowBlock:
        return RowBlock(self.layout, self.places[chosen], self.numbers[chosen], self.rows.filter(pa.array(chosen)))


class DeadLetterBlock(NamedTuple):
    """Dead letters of messages that match no definition, or have invalid payloads.

    Shape: `places` are positions in the chunk; `outcomes` counts the dead letters by outcome, and `codes` by problem
    code. If the payloads are invalid, `invalid` has the match of each dead letter.
    """

    places: Rows
    rows: pa.Table
    outcomes: Counter[str]
    codes: Counter[str]
    invalid: Sequence[InvalidPayload] = ()


@dataclass
class ColumnRows:
    """Builds the rows and dead letters of one chunk. `numbers` are the line numbers of its `records`; `catalogue` is a
    fingerprint."""

    file: str
    numbers: Rows
    catalogue: str
    records: RecordColumns

    def block(self, matched: MatchedRows, layout: TableLayout, payload: PayloadColumns) -> RowBlock:
        """The rows that are certain, in the layout that all their definitions share."""
        messages, run = matched.messages, slice(matched.start, matched.stop)
        provenance, timely = messages.once("provenance", lambda: self._provenance(messages))
        attributes, exact = _attributes(matched, layout)
        columns, settled = payload.pick(matched)
        certain = exact & settled & timely[run]
        sources = {"attribute": attributes, "binding": matched.bindings, "payload": columns}
        whole = [_column(column, sources, provenance, matched) for column in layout.columns]
        table = pa.Table.from_arrays(whole, schema=layout.schema)
        block = RowBlock(layout, messages.rows[run], matched.numbers, table)
        return block if certain.all() else block.only(certain)

    def unexpected(self, messages: MessageColumns, finder: NearMissFinder, raw: RawRecords) -> DeadLetterBlock:
        """The dead letters of messages that match no definition. Messages that the reference must compare are left
        out."""
        near = finder.find(messages)
        messages = messages.take(near.rows)
        reasons = {
            "outcome": pa.repeat(pa.scalar("unexpected", pa.string()), len(messages)),
            "definition": pa.nulls(len(messages), pa.string()),
            "problems": near.problems,
            "near": near.near,
        }
        return DeadLetterBlock(
            messages.rows, self._dead_letters(messages, reasons, raw), Counter(unexpected=len(messages)), near.codes
        )

    def invalid(self, invalid: Sequence[InvalidPayload], xids: Sequence[str], raw: RawRecords) -> DeadLetterBlock:
        """The dead letters of messages with invalid payloads, all of one protocol and mode. `xids` has the XID of each
        definition, by number."""
        messages = invalid[0].matched.messages.take(np.array([payload.row for payload in invalid], np.int64))
        outcomes = [payload.outcome for payload in invalid]
        reasons = {
            "outcome": pa.array(outcomes, pa.string()),
            "definition": pa.array([xids[payload.number] for payload in invalid], pa.string()),
            "problems": pa.array([list(map(reason, payload.problems)) for payload in invalid], PROBLEMS),
            "near": pa.array([[]] * len(messages), NEAR),
        }
        codes = Counter(code for payload in invalid for code in {problem.code for problem in payload.problems})
        return DeadLetterBlock(
            messages.rows, self._dead_letters(messages, reasons, raw), Counter(outcomes), codes, invalid
        )

    def _dead_letters(self, messages: MessageColumns, reasons: dict[str, pa.Array], raw: RawRecords) -> pa.Table:
        """The dead letters of messages. `reasons` has the columns that explain them."""
        provenance, _ = self._provenance(messages)
        columns = {
            **{name: provenance[name] for name in ("_file", "_line", "_index", "_catalogue")},
            "received": provenance["_received"],
            "protocol": provenance["_protocol"],
            "endpoint": provenance["_endpoint"],
            "raw": raw(messages.rows),
            **reasons,
        }
        return pa.Table.from_arrays([columns[name] for name in DEAD_LETTER_SCHEMA.names], schema=DEAD_LETTER_SCHEMA)

    def timely(self, messages: MessageColumns) -> Mask:
        """A mask of the messages whose receive time is certain."""
        return messages.once("timely", lambda: self.records.received[1][messages.rows])

    def _provenance(self, messages: MessageColumns) -> tuple[dict[str, pa.Array], Mask]:
        """The provenance columns of messages, and a mask of the rows where they are certain."""
        count, places = len(messages), pa.array(messages.rows)
        times, _ = self.records.received
        return {
            "_file": pa.repeat(pa.scalar(self.file, pa.string()), count),
            "_line": pa.array(self.numbers[messages.rows], pa.int64()),
            "_index": pa.repeat(pa.scalar(0, pa.int32()), count),
            "_received": times.take(places),
            "_endpoint": self.records.endpoints.take(places),
            "_protocol": pa.repeat(pa.scalar(messages.protocol, pa.string()), count),
            "_catalogue": pa.repeat(pa.scalar(self.catalogue, pa.string()), count),
            "_tombstone": pa.array(messages.tombstones),
        }, self.timely(messages)


def _column(
    column: TableColumn, sources: dict[str, dict[str, pa.Array]], provenance: dict[str, pa.Array], matched: MatchedRows
) -> pa.Array:
    kind, name = column.source
    if kind == "binding" and name not in matched.bindings:  # its slots cannot be observed
        return pa.nulls(len(matched), column.type)
    values = matched.pick(provenance[name]) if kind == "provenance" else sources[kind][name]
    return values if values.type == column.type else values.cast(column.type)


# -- attributes -----------------------------------------------------------------------------------------------------


def _attributes(matched: MatchedRows, layout: TableLayout) -> tuple[dict[str, pa.Array], Mask]:
    """The ``ce_`` columns, and a mask of the rows in which they hold the attributes without loss."""
    messages, exact = matched.messages, np.ones(len(matched), bool)
    columns: dict[str, pa.Array] = {}
    for column in layout.attributes:
        if name := column.source[1]:
            values, certain = messages.once(("typed", name, column.type), partial(_typed, messages, name, column.type))
            columns[name] = matched.pick(values)
            exact &= certain[matched.start : matched.stop]
    if layout.attributes:
        others = tuple(sorted(messages.attributes.keys() - columns.keys() - {"specversion"}))
        columns[""] = matched.pick(messages.once(("rest", *others), partial(_rest, messages, others)))
    return columns, exact


def _typed(messages: MessageColumns, name: str, type_: pa.DataType) -> tuple[pa.Array, Mask]:
    """An attribute with the type of its column, and a mask of the rows that convert without loss."""
    column = messages.attributes.get(name)
    text = pa.nulls(len(messages), pa.string()) if column is None else column.text
    missing = mask_of(text.is_null())
    if type_ == pa.string():
        return text, np.ones(len(text), bool)
    if type_ == INSTANT:
        times, plain = instants(text)
        return times, plain | missing
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        pattern = INTEGER if pa.types.is_integer(type_) else "^(true|false)$"
        plain = mask_of(pc.match_substring_regex(text, pattern))
        plain_text = pc.if_else(pa.array(plain), text, pa.scalar(None, pa.string()))
        return plain_text.cast(type_), plain | missing
    return pa.nulls(len(text), type_), missing


def _rest(messages: MessageColumns, names: Sequence[str]) -> pa.StringArray:
    """Attributes without a column, as JSON text; null if there are none."""
    count = len(messages)
    others = {name: text for name in names if (text := messages.attributes[name].text).null_count < count}
    if not others:
        return pa.nulls(count, pa.string())
    present = np.stack([mask_of(text.is_valid()) for text in others.values()])
    patterns, inverse = np.unique(present, axis=1, return_inverse=True)
    json_texts = np.full(count, None, dtype=object)
    for number, pattern in enumerate(patterns.T):
        there = [name for name, is_there in zip(others, pattern, strict=True) if is_there]
        rows = np.flatnonzero(inverse.ravel() == number)
        if there:
            values = zip(*(others[name].take(pa.array(rows)).to_pylist() for name in there), strict=True)
            json_texts[rows] = list(map(bytes.decode, map(orjson.dumps, map(dict, map(zip, repeat(there), values)))))
    return pa.array(json_texts, pa.string())
