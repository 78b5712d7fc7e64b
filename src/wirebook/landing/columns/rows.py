"""Rows of typed tables from columns: what `reference_rows.table_row` does for one message, for many at once."""

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

from wirebook.landing.columns.frames import Frame
from wirebook.landing.columns.invalid_payloads import InvalidPayload
from wirebook.landing.columns.match import MatchedRows
from wirebook.landing.columns.near_misses import NearMissFinder
from wirebook.landing.columns.payloads import PayloadColumns
from wirebook.landing.columns.records import RecordColumns
from wirebook.landing.columns.slot_columns import Mask, Rows, instants, mask_of
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA, INSTANT, TableColumn, TableLayout
from wirebook.landing.tables.reference_rows import reason

RawRecords = Callable[[Rows], pa.BinaryArray]
"""Returns the records at some places of the chunk."""
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

    Shape: `places` are positions in the chunk; `outcomes` counts the dead letters by outcome, and `codes` those that
    have a problem code. `invalid` says what each of them matches, if their payloads are invalid.
    """

    places: Rows
    rows: pa.Table
    outcomes: Counter[str]
    codes: Counter[str]
    invalid: Sequence[InvalidPayload] = ()


@dataclass
class ColumnRows:
    """Makes the rows of one chunk from its line numbers and records."""

    file: str
    numbers: Rows
    catalogue: str
    records: RecordColumns

    def block(self, matched: MatchedRows, layout: TableLayout, payload: PayloadColumns) -> RowBlock:
        """The certain rows, with the columns of the layout, which all their definitions share."""
        frame, run = matched.frame, slice(matched.start, matched.stop)
        provenance, timely = frame.once("provenance", lambda: self._provenance(frame))
        attributes, exact = _attributes(matched, layout)
        columns, settled = payload.pick(matched)
        certain = exact & settled & timely[run]
        sources = {"attribute": attributes, "binding": matched.bindings, "payload": columns}
        whole = [_column(column, sources, provenance, matched) for column in layout.columns]
        table = pa.Table.from_arrays(whole, schema=layout.schema)
        block = RowBlock(layout, frame.rows[run], matched.numbers, table)
        return block if certain.all() else block.only(certain)

    def unexpected(self, frame: Frame, finder: NearMissFinder, raw: RawRecords) -> DeadLetterBlock:
        """The dead letters of a frame whose messages match no definition."""
        near = finder.find(frame)
        frame = frame.take(near.rows)
        reasons = {
            "outcome": pa.repeat(pa.scalar("unexpected", pa.string()), len(frame)),
            "definition": pa.nulls(len(frame), pa.string()),
            "problems": near.problems,
            "near": near.near,
        }
        return DeadLetterBlock(
            frame.rows, self._dead_letters(frame, reasons, raw), Counter(unexpected=len(frame)), near.codes
        )

    def invalid(self, invalid: Sequence[InvalidPayload], xids: Sequence[str], raw: RawRecords) -> DeadLetterBlock:
        """The dead letters of messages of one frame. `xids` are those of the definitions, by number."""
        frame = invalid[0].matched.frame.take(np.array([message.row for message in invalid], np.int64))
        outcomes = [message.outcome for message in invalid]
        reasons = {
            "outcome": pa.array(outcomes, pa.string()),
            "definition": pa.array([xids[message.number] for message in invalid], pa.string()),
            "problems": pa.array([list(map(reason, message.problems)) for message in invalid], PROBLEMS),
            "near": pa.array([[]] * len(frame), NEAR),
        }
        codes = Counter(code for message in invalid for code in {problem.code for problem in message.problems})
        return DeadLetterBlock(frame.rows, self._dead_letters(frame, reasons, raw), Counter(outcomes), codes, invalid)

    def _dead_letters(self, frame: Frame, reasons: dict[str, pa.Array], raw: RawRecords) -> pa.Table:
        """The dead letters of a frame. `reasons` are the columns that say why."""
        provenance, _ = self._provenance(frame)
        columns = {
            **{name: provenance[name] for name in ("_file", "_line", "_index", "_catalogue")},
            "received": provenance["_received"],
            "protocol": provenance["_protocol"],
            "endpoint": provenance["_endpoint"],
            "raw": raw(frame.rows),
            **reasons,
        }
        return pa.Table.from_arrays([columns[name] for name in DEAD_LETTER_SCHEMA.names], schema=DEAD_LETTER_SCHEMA)

    def timely(self, frame: Frame) -> Mask:
        """A mask of the rows of a frame whose receive time is certain."""
        return frame.once("timely", lambda: self.records.received[1][frame.rows])

    def _provenance(self, frame: Frame) -> tuple[dict[str, pa.Array], Mask]:
        """The provenance columns of a frame, and a mask of the rows where they are certain."""
        count, places = len(frame), pa.array(frame.rows)
        times, _ = self.records.received
        return {
            "_file": pa.repeat(pa.scalar(self.file, pa.string()), count),
            "_line": pa.array(self.numbers[frame.rows], pa.int64()),
            "_index": pa.repeat(pa.scalar(0, pa.int32()), count),
            "_received": times.take(places),
            "_endpoint": self.records.endpoints.take(places),
            "_protocol": pa.repeat(pa.scalar(frame.protocol, pa.string()), count),
            "_catalogue": pa.repeat(pa.scalar(self.catalogue, pa.string()), count),
            "_tombstone": pa.array(frame.tombstones),
        }, self.timely(frame)


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
    frame, exact = matched.frame, np.ones(len(matched), bool)
    columns: dict[str, pa.Array] = {}
    for column in layout.attributes:
        if name := column.source[1]:
            values, certain = frame.once((name, column.type), partial(_typed, frame, name, column.type))
            columns[name] = matched.pick(values)
            exact &= certain[matched.start : matched.stop]
    if layout.attributes:
        others = tuple(sorted(frame.attributes.keys() - columns.keys() - {"specversion"}))
        columns[""] = matched.pick(frame.once(others, partial(_rest, frame, others)))
    return columns, exact


def _typed(frame: Frame, name: str, type_: pa.DataType) -> tuple[pa.Array, Mask]:
    """An attribute with the type of its column, and a mask of the rows that convert without loss."""
    column = frame.attributes.get(name)
    text = pa.nulls(len(frame), pa.string()) if column is None else column.text
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


def _rest(frame: Frame, names: Sequence[str]) -> pa.StringArray:
    """Attributes without a column, as JSON text; null if there are none."""
    count = len(frame)
    others = {name: text for name in names if (text := frame.attributes[name].text).null_count < count}
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
