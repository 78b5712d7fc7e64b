"""Rows of a typed table from columns: what `spark.rows.table_row` does for one message, for many at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from operator import attrgetter, is_
from typing import Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings.wire import AnyMessage
from wirebook.schema import CompiledSchema
from wirebook.spark.columnmatch import Matched
from wirebook.spark.frames import Column, Frame, Mask, Rows, absent, mask_of, texts
from wirebook.spark.layout import INSTANT, Layout
from wirebook.spark.layout import Column as TableColumn

# Times that Arrow reads as they stand: microseconds at most, an offset, no leap second.
INSTANT_PATTERN: Final = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
YEAR_ZERO: Final = "0000"
INTEGER: Final = r"^(0|-?[1-9][0-9]{0,8})$"


def instants(text: pa.StringArray) -> tuple[pa.TimestampArray, Mask]:
    """RFC 3339 times as instants of microseconds, and where a text is certainly one that says no more than that."""
    plain = mask_of(pc.match_substring_regex(text, INSTANT_PATTERN)) & ~mask_of(pc.starts_with(text, YEAR_ZERO))
    kept = text if plain.all() else pc.if_else(pa.array(plain), text, pa.scalar(None, pa.string()))
    return kept.cast(INSTANT), plain


@dataclass
class ColumnRows:
    """The rows of one chunk of capture records."""

    file: str
    numbers: Rows
    catalogue: str
    records: Sequence[AnyMessage | None]

    @cached_property
    def received(self) -> tuple[pa.TimestampArray, Mask]:
        """The time of receipt of every record; and where it certainly is what the column says."""
        given = [None if record is None else record.received for record in self.records]
        text, _ = texts(given)
        times, plain = instants(text)
        return times, plain | mask_of(text.is_null())

    def table(
        self,
        frame: Frame,
        matched: Matched,
        layout: Layout,
        schema: CompiledSchema | None,
        content_type: str | None,
    ) -> tuple[Rows, pa.Table]:
        """The rows that are certain, as places in the chunk and as the layout's table."""
        attributes, certain = _attributes(frame, matched.rows, layout)
        payload, settled = _payload(frame, matched.rows, schema, content_type)
        certain &= settled & self.received[1][frame.rows[matched.rows]]
        kept = None if certain.all() else pa.array(np.flatnonzero(certain))
        chosen = matched.rows if kept is None else matched.rows[certain]
        places = frame.rows[chosen]
        sources = {"attribute": attributes, "binding": matched.bindings, "payload": payload}
        provenance = self._provenance(frame, chosen, places)
        columns = [_column(column, sources, provenance, kept) for column in layout.columns]
        return places, pa.Table.from_arrays(columns, schema=layout.schema)

    def _provenance(self, frame: Frame, chosen: Rows, places: Rows) -> dict[str, pa.Array]:
        count = len(places)
        records = map(frame.records.__getitem__, chosen.tolist() if frame.records else ())
        endpoints = map(attrgetter("endpoint"), records) if frame.records else repeat(None, count)
        payload = list(map(frame.payload.__getitem__, chosen.tolist()))
        return {
            "_file": pa.repeat(pa.scalar(self.file, pa.string()), count),
            "_line": pa.array(self.numbers[places], pa.int64()),
            "_index": pa.repeat(pa.scalar(0, pa.int32()), count),
            "_received": self.received[0].take(pa.array(places)),
            "_endpoint": pa.array(list(endpoints), pa.string()),
            "_protocol": pa.repeat(pa.scalar(frame.protocol, pa.string()), count),
            "_catalogue": pa.repeat(pa.scalar(self.catalogue, pa.string()), count),
            "_tombstone": pa.array(np.fromiter(map(is_, payload, repeat(None)), bool, count)),
        }


def _column(
    column: TableColumn,
    sources: dict[str, dict[str, pa.Array]],
    provenance: dict[str, pa.Array],
    kept: pa.Array | None,
) -> pa.Array:
    kind, name = column.source
    if kind == "provenance":
        return provenance[name]
    values = sources[kind][name]
    values = values if kept is None else values.take(kept)
    return values if values.type == column.type else values.cast(column.type)


# -- attributes -----------------------------------------------------------------------------------------------------


def _attributes(frame: Frame, rows: Rows, layout: Layout) -> tuple[dict[str, pa.Array], Mask]:
    """The ``ce_`` columns, and where they certainly say all that the attributes say."""
    certain = np.ones(len(rows), bool)
    columns: dict[str, pa.Array] = {}
    for column in layout.attributes:
        name = column.source[1]
        if name:
            columns[name], exact = _typed(_attribute(frame, name, rows).text, column.type)
            certain &= exact
    if layout.attributes:
        named = {*columns, "specversion"}
        others = {name: _attribute(frame, name, rows).text for name in sorted(frame.attributes) if name not in named}
        columns[""] = _rest(others, len(rows))
    return columns, certain


def _attribute(frame: Frame, name: str, rows: Rows) -> Column:
    column = frame.attributes.get(name) or absent(len(frame))
    return column if len(rows) == len(frame) else column.take(rows)


def _typed(text: pa.StringArray, type_: pa.DataType) -> tuple[pa.Array, Mask]:
    if type_ == pa.string():
        return text, np.ones(len(text), bool)
    missing = mask_of(text.is_null())
    if type_ == INSTANT:
        times, plain = instants(text)
        return times, plain | missing
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        pattern = INTEGER if pa.types.is_integer(type_) else "^(true|false)$"
        plain = mask_of(pc.match_substring_regex(text, pattern))
        kept = pc.if_else(pa.array(plain), text, pa.scalar(None, pa.string()))
        return kept.cast(type_), plain | missing
    return pa.nulls(len(text), type_), missing


def _rest(others: dict[str, pa.StringArray], count: int) -> pa.StringArray:
    """Attributes without a column as JSON text; null where there is none."""
    others = {name: text for name, text in others.items() if text.null_count < count}
    if not others:
        return pa.nulls(count, pa.string())
    present = np.stack([mask_of(text.is_valid()) for text in others.values()])
    patterns, inverse = np.unique(present, axis=1, return_inverse=True)
    made = np.full(count, None, dtype=object)
    for number, pattern in enumerate(patterns.T):
        names = [name for name, there in zip(others, pattern, strict=True) if there]
        rows = np.flatnonzero(inverse.ravel() == number)
        if names:
            values = zip(*(others[name].take(pa.array(rows)).to_pylist() for name in names), strict=True)
            made[rows] = list(map(bytes.decode, map(orjson.dumps, map(dict, map(zip, repeat(names), values)))))
    return pa.array(made, pa.string())


# -- payload --------------------------------------------------------------------------------------------------------


def _payload(
    frame: Frame, rows: Rows, schema: CompiledSchema | None, content_type: str | None
) -> tuple[dict[str, pa.Array], Mask]:
    """The payload's columns, and where they are certain. Absent data (tombstones, say) is the reference's."""
    chosen = frame.payload if len(rows) == len(frame) else list(map(frame.payload.__getitem__, rows.tolist()))
    payloads = pa.array(chosen, pa.binary())
    there = mask_of(payloads.is_valid())
    if schema is None:  # the JSON value of a structured event is written anew, which the reference does
        return {"": payloads}, ~there if frame.json_values else np.ones(len(rows), bool)
    reading = schema.read_column(payloads, content_type)
    return reading.columns, reading.settled & there


def by_content_type(frame: Frame, matched: Matched) -> Iterator[tuple[str | None, Matched]]:
    """The matched rows of each content type of the data: it says how a payload is encoded."""
    column = frame.data_content_type.text
    encoded = (column if len(matched.rows) == len(frame) else column.take(pa.array(matched.rows))).dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    distinct = encoded.dictionary.to_pylist()
    for code in np.unique(codes).tolist():
        content_type = None if code < 0 else distinct[code]
        chosen = codes == code
        yield content_type, matched if chosen.all() else matched.only(chosen)
