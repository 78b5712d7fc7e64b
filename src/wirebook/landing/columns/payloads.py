"""Decodes the payloads of matched messages as columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.landing.columns.match import MatchedRows
from wirebook.landing.columns.message_columns import MessageColumns
from wirebook.landing.columns.slot_columns import Mask, Rows, codes_of, mask_of
from wirebook.schema import CompiledSchema, Payload, column_without_prefix
from wirebook.text.json import JsonError, parse_json


@dataclass(frozen=True, slots=True)
class PayloadColumns:
    """The payloads of adjacent messages, starting at row `start`.

    Shape: `encoded` has the payloads, null where there is none. `columns` has the decoded columns by name. `settled` is
    a mask of the rows in which these are certain.
    """

    start: int
    encoded: pa.BinaryArray
    columns: dict[str, pa.Array]
    settled: Mask

    def pick(self, matched: MatchedRows) -> tuple[dict[str, pa.Array], Mask]:
        """The payloads of the rows of one definition."""
        first, count = matched.start - self.start, len(matched)
        return {name: column.slice(first, count) for name, column in self.columns.items()}, self.settled[
            first : first + count
        ]

    def uncertain(self, messages: MessageColumns, sure: Mask) -> Iterator[tuple[int, Payload]]:
        """The payloads that are not settled, with their rows. Only messages in the mask `sure` are included."""
        rows = slice(self.start, self.start + len(self.encoded))
        left = ~self.settled & sure[rows]
        if not left.any():
            return
        present = mask_of(self.encoded.is_valid()) & mask_of(messages.payload[rows].is_valid())
        places = np.flatnonzero(left & present)
        types = _content_types(messages).take(pa.array(places + self.start)).to_pylist()
        texts = self.encoded.take(pa.array(places)).to_pylist()
        for row, text, content_type in zip((places + self.start).tolist(), texts, types, strict=True):
            if not messages.json_values:
                yield row, Payload(text, content_type=content_type)
                continue
            with suppress(JsonError):  # the reference reports the malformed event
                yield row, Payload(None, parse_json(text), content_type)

    def missing(self, messages: MessageColumns, sure: Mask) -> Iterator[tuple[int, str | None]]:
        """The rows of messages without data that are not settled, with their content types. Only messages in the mask
        `sure` are included."""
        rows = slice(self.start, self.start + len(self.encoded))
        places = np.flatnonzero(~self.settled & sure[rows] & mask_of(messages.payload[rows].is_null()))
        types = _content_types(messages).take(pa.array(places + self.start)).to_pylist()
        yield from zip((places + self.start).tolist(), types, strict=True)


def read_payloads(
    messages: MessageColumns, start: int, stop: int, schema: CompiledSchema | None, *, confluent_prefix: bool = False
) -> PayloadColumns:
    """Decode the payloads of the rows from `start` to `stop`. Without a schema, the payload itself is the only
    column."""
    payloads = messages.payload.slice(start, stop - start)
    if messages.has_empty_bodies and schema is not None and payloads.null_count:
        payloads = pc.fill_null(payloads, b"")  # the protocol has no null, and the schema may accept zero bytes
    if confluent_prefix and schema is not None and messages.protocol == "KAFKA" and messages.mode != "structured":
        payloads = column_without_prefix(payloads, schema)
    there, tombstones = mask_of(payloads.is_valid()), messages.tombstones[start:stop]
    if schema is None:  # the reference writes the JSON data of structured events
        settled = ~there if messages.json_values else np.ones(len(there), bool)
        return PayloadColumns(start, payloads, {"": payloads}, settled)
    readings = [
        (rows, schema.read_column(payloads if rows is None else payloads.take(pa.array(rows)), content_type))
        for content_type, rows in _by_content_type(messages, start, stop)
    ]
    if len(readings) == 1 and readings[0][0] is None:
        return PayloadColumns(start, payloads, readings[0][1].columns, readings[0][1].settled & there | tombstones)
    order = pa.array(np.argsort(np.concatenate([rows for rows, _ in readings])))
    names = readings[0][1].columns
    columns = {name: pa.concat_arrays([reading.columns[name] for _, reading in readings]).take(order) for name in names}
    settled = np.concatenate([reading.settled for _, reading in readings])[order.to_numpy()]
    return PayloadColumns(start, payloads, columns, settled & there | tombstones)


def _by_content_type(messages: MessageColumns, start: int, stop: int) -> Iterator[tuple[str | None, Rows | None]]:
    """Each content type with the positions of the rows that have it, or None if all rows have it."""
    encoded = _content_types(messages)
    codes = codes_of(encoded.slice(start, stop - start))
    distinct = np.unique(codes).tolist()
    for code in distinct:
        content_type = encoded.dictionary[code - 1].as_py() if code else None
        yield content_type, None if len(distinct) == 1 else np.flatnonzero(codes == code)


def _content_types(messages: MessageColumns) -> pa.DictionaryArray:
    return messages.once("content types", lambda: pc.dictionary_encode(messages.payload_type))
