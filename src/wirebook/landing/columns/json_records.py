"""Reads the records of a capture in JSON lines as columns, with Arrow's JSON reader, one protocol at a time.

Lines that Arrow cannot parse with certainty (an unknown or duplicate member, bytes in base64, AMQP maps with arbitrary
keys) are decoded one by one by `wirebook.bindings.decode_records`. The reference reads the lines that are still
uncertain.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings import decode_records
from wirebook.bindings.capture import MAX_RECORD_BYTES, MEMBERS
from wirebook.bindings.wire import CLASSES, AmqpMessage, AnyMessage, MqttProperties
from wirebook.landing.columns.parquet_records import Columns, FlatPairs, ParquetFields, is_within
from wirebook.landing.columns.records import DecodedRecords, RecordFields
from wirebook.landing.columns.slot_columns import Mask, Rows, SlotColumn, instants, mask_of
from wirebook.landing.sources.lines import PIECE, Bytes
from wirebook.text.json_tables import FEW, parse_lines

HEAD: Final = 128  # bytes at the start of a line that are searched for its protocol
PARSED: Final = {protocol: cls for protocol, cls in CLASSES.items() if cls is not AmqpMessage}

_PAIRS: Final = pa.list_(pa.list_(pa.string()))
_INTEGERS: Final = {"payload_format": (0, 1), "message_expiry_interval": (0, 2**32 - 1)}
_PROPERTIES: Final = pa.struct(
    [(name, pa.int64() if name in _INTEGERS else pa.string()) for name in MEMBERS[MqttProperties]]
)
_TYPES: Final[dict[str, pa.DataType]] = {
    **dict.fromkeys(("headers", "user_properties"), _PAIRS),
    **dict.fromkeys(("status", "partition", "offset", "qos"), pa.int64()),
    "retain": pa.bool_(),
    "properties": _PROPERTIES,
}


class _Part(NamedTuple):
    """Lines of one protocol: their positions in the chunk and their members."""

    protocol: str
    rows: Rows
    fields: JsonFields


class JsonRecords:
    """The records of JSON lines: most parsed as columns, the rest decoded one by one. Implements `RecordColumns`."""

    def __init__(self, lines: pa.LargeBinaryArray) -> None:
        self._parts = list(_parts(lines))
        parsed = np.zeros(len(lines), bool)
        for part in self._parts:
            parsed[part.rows] = True
        self._places = np.flatnonzero(~parsed)
        self._rest = DecodedRecords(decode_records(lines.take(pa.array(self._places)).to_pylist()))
        every = np.concatenate([*(part.rows for part in self._parts), self._places])
        self._order = pa.array(np.argsort(every))

    @cached_property
    def received(self) -> tuple[pa.TimestampArray, Mask]:
        text = self._of_all([part.fields.text("received").text for part in self._parts])
        times, plain = instants(text)
        rest, rest_plain = self._rest.received
        whole = pa.concat_arrays([times, rest]).take(self._order)
        return whole, np.concatenate([plain | mask_of(text.is_null()), rest_plain])[self._order.to_numpy()]

    @cached_property
    def endpoints(self) -> pa.StringArray:
        endpoints = self._of_all([part.fields.text("endpoint").text for part in self._parts])
        return pa.concat_arrays([endpoints, self._rest.endpoints]).take(self._order)

    def _of_all(self, texts: list[pa.StringArray]) -> pa.StringArray:
        return pa.concat_arrays([pa.array([], pa.string()), *texts])

    def by_protocol(self) -> Iterator[tuple[str, Rows, RecordFields]]:
        yield from self._parts
        for protocol, rows, fields in self._rest.by_protocol():
            yield protocol, self._places[rows], fields


def _parts(lines: pa.LargeBinaryArray) -> Iterator[_Part]:
    """The lines of each protocol that can be parsed as columns."""
    left, named = _is_plain(lines), _named(lines)
    for protocol, cls in PARSED.items():
        of_protocol = left & named[protocol]
        if np.count_nonzero(of_protocol) < FEW:
            continue
        left &= ~of_protocol
        rows = np.flatnonzero(of_protocol)
        part = _part(lines if len(rows) == len(lines) else lines.take(pa.array(rows)), rows, protocol, cls)
        if part is not None:
            yield part


def _named(lines: pa.LargeBinaryArray) -> dict[str, Mask]:
    """Masks of the lines that seem to be of each protocol. Most writers put the member `protocol` first, and comparing
    the first bytes costs a tenth of a search. Only the other lines are searched."""
    heads = pc.binary_slice(lines, 0, HEAD)
    named = {protocol: mask_of(pc.starts_with(heads, f'{{"protocol":"{protocol}"')) for protocol in PARSED}
    others = np.flatnonzero(~np.logical_or.reduce([*named.values()]))
    if others.size:
        heads = heads.take(pa.array(others))
        for protocol, mask in named.items():
            mask[others] = mask_of(pc.match_substring(heads, f'"{protocol}"'))
    return named


def _is_plain(lines: pa.LargeBinaryArray) -> Mask:
    """A mask of the lines that begin and end like an object, are not too long, and contain no bytes in base64."""
    _, offsets, data = lines.buffers()
    bounds = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    octets = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    starts, ends = bounds[:-1], bounds[1:]
    plain = (ends - starts > 1) & (ends - starts <= MAX_RECORD_BYTES)
    first, last = octets[np.where(plain, starts, 0)], octets[np.where(plain, ends, 1) - 1]
    plain &= (first == ord("{")) & (last == ord("}"))
    encoded = _places_of(b'"base64"', octets)
    encoded = encoded[(encoded >= bounds[0]) & (encoded < bounds[-1])]
    plain[np.searchsorted(starts, encoded, side="right") - 1] = False
    return np.asarray(plain)


def _places_of(word: bytes, text: Bytes) -> Rows:
    """The offsets of a word in a text. The text is copied in pieces, because a copy of all of it would allocate new
    memory each time."""
    places = []
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE + len(word) - 1].tobytes()
        place = piece.find(word)
        while place >= 0:
            places.append(start + place)
            place = piece.find(word, place + len(word))
    return np.array(places, np.int64)


def _part(lines: pa.LargeBinaryArray, rows: Rows, protocol: str, cls: type[AnyMessage]) -> _Part | None:
    schema = pa.schema([(name, _TYPES.get(name, pa.string())) for name in ("protocol", *MEMBERS[cls])])
    table, places = read_lines(lines, schema)
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    columns = {name: column for name, column in columns.items() if column.null_count < len(column)}
    if "protocol" not in columns:
        return None
    certain = mask_of(pc.equal(columns["protocol"], protocol)) & JsonFields(cls, columns).certain
    if not certain.all():
        columns = {name: column.filter(pa.array(certain)) for name, column in columns.items()}
    return _Part(protocol, rows[places[certain]], JsonFields(cls, columns))


def read_lines(lines: pa.LargeBinaryArray, schema: pa.Schema) -> tuple[pa.Table, Rows]:
    """The columns of the lines that are objects of `schema` without unknown or repeated members, and the positions of
    these lines."""
    tables, places = [schema.empty_table()], [np.zeros(0, np.int64)]
    for begin, table in parse_lines(lines, schema):
        tables.append(table)
        places.append(np.arange(begin, begin + len(table)))
    return pa.concat_tables(tables), np.concatenate(places)


# -- members --------------------------------------------------------------------------------------------------------


class JsonFields(ParquetFields):
    """The members of lines of one protocol, typed as in the capture format."""

    def __init__(self, cls: type[AnyMessage], columns: Columns) -> None:
        super().__init__(cls, columns)
        self._nothing = np.zeros(len(columns["protocol"]), bool)

    def _sound(self, name: str, column: pa.Array) -> Mask:
        if name == "received":  # checked by `JsonRecords.received`
            return ~self._nothing
        if name == "properties":
            ranges = [is_within(low, high, column.field(inner)) for inner, (low, high) in _INTEGERS.items()]
            return np.asarray(np.logical_and.reduce(ranges))
        return super()._sound(name, column)

    def text(self, name: str) -> SlotColumn:
        column = self._columns.get(name)
        return SlotColumn(pa.nulls(len(self), pa.string()) if column is None else column, self._nothing)

    def nested(self, within: str, name: str) -> SlotColumn:
        if within not in self._columns:
            return super().nested(within, name)
        return SlotColumn(pc.struct_field(self._columns[within], name), self._nothing)

    def _pairs(self, name: str) -> FlatPairs:
        """The pairs of a column in which each pair is a list of two strings. A row that has a list of another length
        does not fit."""
        column = self._columns[name]
        counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        owners = np.repeat(np.arange(len(column)), counts)
        lists = column.flatten()
        is_pair = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False) == 2
        fits = np.bincount(owners[~is_pair], minlength=len(column)) == 0
        if not is_pair.all():
            lists, owners = lists.filter(pa.array(is_pair)), owners[is_pair]
        texts, even = lists.flatten(), np.arange(0, 2 * len(lists), 2)
        return FlatPairs(len(column), owners, texts.take(pa.array(even)), texts.take(pa.array(even + 1)), fits)
