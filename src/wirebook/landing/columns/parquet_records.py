"""The records of a Parquet capture, field by field, directly from its columns.

A row is certain if every member has the type of the capture format. `wirebook.bindings.parquet` reads all other rows
one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings.amqp import SECTIONS
from wirebook.bindings.capture import EXPECTED, MEMBERS, is_plain_section
from wirebook.bindings.parquet import UNITS, is_instant, object_of
from wirebook.bindings.wire import BODY_SECTIONS, CLASSES, AnyMessage, Mqtt5Publish, MqttProperties
from wirebook.landing.columns.records import RecordFields, section_of
from wirebook.landing.columns.slot_columns import (
    INSTANT_PATTERN,
    Mask,
    RepeatedColumns,
    Rows,
    SlotColumn,
    codes_of,
    instants,
    mask_of,
    texts,
)
from wirebook.landing.columns.text_columns import (
    as_texts,
    is_bytes,
    is_strings,
    is_strings_or_bytes,
    without_dictionary,
)
from wirebook.landing.tables.layout import INSTANT

Columns = Mapping[str, pa.Array]
UNSURE: Final = object()  # stands for a value that the reference must read


class ParquetRecords:
    """The rows of a batch. Columns that are not members of the capture format are ignored."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._count = len(batch)
        names = [name for name in ("protocol", *EXPECTED) if name in batch.schema.names]
        has_distinct_names = len({*batch.schema.names}) == len(batch.schema.names)
        self._columns = {name: without_dictionary(batch.column(name)) for name in names if has_distinct_names}

    def _column(self, name: str, type_: pa.DataType) -> pa.Array:
        return self._columns[name] if name in self._columns else pa.nulls(self._count, type_)

    @cached_property
    def received(self) -> tuple[pa.TimestampArray, Mask]:
        column = self._column("received", INSTANT)
        if pa.types.is_timestamp(column.type):
            return _micros(column), np.ones(self._count, bool)
        text, _ = as_texts(column)
        times, plain = instants(text)
        return times, plain | mask_of(column.is_null())

    @cached_property
    def endpoints(self) -> pa.StringArray:
        return as_texts(self._column("endpoint", pa.string()))[0]

    def by_protocol(self) -> Iterator[tuple[str, Rows, RecordFields]]:
        encoded = as_texts(self._column("protocol", pa.string()))[0].dictionary_encode()
        protocols = np.array(["", *(name.upper() for name in encoded.dictionary.to_pylist())])[codes_of(encoded)]
        for protocol, cls in CLASSES.items():
            rows = np.flatnonzero(protocols == protocol)
            if not len(rows):
                continue
            fields = ParquetFields(cls, _taken(self._columns, rows))
            certain = fields.certain
            if not certain.all():
                rows = rows[certain]
                fields = ParquetFields(cls, _taken(self._columns, rows))
            if len(rows):
                yield protocol, rows, fields


def _taken(columns: Columns, rows: Rows) -> Columns:
    """The columns at these rows; columns that are entirely null are dropped."""
    whole = len(rows) == len(next(iter(columns.values())))
    present = {name: column for name, column in columns.items() if column.null_count < len(column)}
    return present if whole else {name: column.take(pa.array(rows)) for name, column in present.items()}


class ParquetFields:
    """Rows of one protocol. Implements `RecordFields`."""

    def __init__(self, cls: type[AnyMessage], columns: Columns) -> None:
        self._cls = cls
        self._columns = columns
        self._objects: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return len(self._columns["protocol"])

    @property
    def certain(self) -> Mask:
        """A mask of the rows in which every member is certainly valid."""
        certain = np.ones(len(self), bool)
        for name, column in self._columns.items():
            if name != "protocol":
                certain &= mask_of(column.is_null()) | self._sound(name, column)
        return certain

    def _sound(self, name: str, column: pa.Array) -> Mask:
        """A mask of the rows in which a member is certainly valid."""
        if name not in MEMBERS[self._cls]:
            return np.zeros(len(column), bool)
        if name in PAIRS:
            return self._pairs(name).sound(nullable=self._cls is CLASSES["KAFKA"])
        if name in _SECTIONS:
            return np.array([value is not UNSURE for value in self._object(name)], bool)
        return _CHECKS[name](column)

    def _object(self, name: str) -> list[Any]:
        """The objects in a column of JSON texts; equal texts are parsed once."""
        if name not in self._objects:
            read = _mqtt_properties if self._cls is Mqtt5Publish else _amqp_section
            text, odd = as_texts(self._columns[name])
            encoded = text.dictionary_encode()
            distinct = [None, *(read(object_of(name, text)) for text in encoded.dictionary.to_pylist())]
            pairs = zip(codes_of(encoded).tolist(), odd.tolist(), strict=True)
            self._objects[name] = [UNSURE if is_odd else distinct[code] for code, is_odd in pairs]
        return self._objects[name]

    def text(self, name: str) -> SlotColumn:
        if name not in self._columns:
            return SlotColumn(pa.nulls(len(self), pa.string()), np.zeros(len(self), bool))
        return SlotColumn(*as_texts(self._columns[name]))

    def nested(self, within: str, name: str) -> SlotColumn:
        objects = self._object(within) if within in self._columns else [None] * len(self)
        values = [None if object_ is None else getattr(object_, name) for object_ in objects]
        return SlotColumn(texts(values)[0], np.zeros(len(self), bool))

    def pairs(self, name: str, fold: Callable[[str], str]) -> RepeatedColumns:
        pairs = self._pairs(name) if name in self._columns else _NO_PAIRS
        return RepeatedColumns(len(self), pairs.owners, as_texts(pairs.names)[0], as_texts(pairs.values)[0], fold)

    def _pairs(self, name: str) -> FlatPairs:
        return _list_of_pairs(self._columns[name])

    def section(self, name: str) -> RepeatedColumns:
        return section_of(self._object(name) if name in self._columns else [None] * len(self))

    def data(self, name: str) -> pa.BinaryArray:
        column = self._columns.get(name)
        if column is None or not is_strings_or_bytes(column.type):
            return pa.nulls(len(self), pa.binary())
        return column.cast(pa.binary())


# -- columns --------------------------------------------------------------------------------------------------------


def _micros(column: pa.TimestampArray) -> pa.TimestampArray:
    """Timestamps in microseconds, truncated; null where the year is out of range."""
    mine, theirs = UNITS["us"], UNITS[column.type.unit]
    present = pc.if_else(pa.array(is_instant(column)), column, pa.scalar(None, column.type)).cast(pa.int64())
    values = present.fill_null(0).to_numpy()
    scaled = values // (theirs // mine) if theirs > mine else values * (mine // theirs)
    return pa.array(np.ma.masked_array(scaled, mask_of(present.is_null())), pa.int64()).cast(INSTANT)


class FlatPairs(NamedTuple):
    """The name-value pairs of a column: the row of each pair (`owners`), its name and its value. `fits` is a mask of
    the rows that hold pairs, or a flag for the whole column."""

    length: int
    owners: Rows
    names: pa.Array
    values: pa.Array
    fits: bool | Mask = True

    def sound(self, *, nullable: bool) -> Mask:
        """A mask of the rows in which every pair has a name and, unless values are `nullable`, a value."""
        names, _ = as_texts(self.names)
        broken = mask_of(names.is_null())
        if not nullable:
            broken |= mask_of(self.values.is_null())
        return np.asarray((np.bincount(self.owners[broken], minlength=self.length) == 0) & self.fits)


_NO_TEXTS: Final = pa.nulls(0, pa.string())  # pa.array([]) would import pandas
_NO_PAIRS: Final = FlatPairs(0, np.zeros(0, np.int64), _NO_TEXTS, _NO_TEXTS, False)


def _list_of_pairs(column: pa.Array) -> FlatPairs:
    """The pairs of a column of type ``list<struct<name, value>>`` or map."""
    lists = column
    if pa.types.is_map(column.type):
        whole = column.take(pa.array(np.arange(len(column))))  # `keys` and `items` of a slice are those of the whole
        entries = pa.StructArray.from_arrays([whole.keys, whole.items], ["name", "value"])
        lists = pa.ListArray.from_arrays(whole.offsets, entries, mask=whole.is_null())
    if not _is_list_of_pairs(lists.type):
        return _NO_PAIRS._replace(length=len(column))
    pairs = lists.flatten()
    counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    owners = np.repeat(np.arange(len(column)), counts)
    return FlatPairs(len(column), owners, pc.struct_field(pairs, "name"), pc.struct_field(pairs, "value"))


def _is_list_of_pairs(type_: pa.DataType) -> bool:
    if not (pa.types.is_list(type_) or pa.types.is_large_list(type_)) or not pa.types.is_struct(type_.value_type):
        return False
    places = [type_.value_type.get_field_index(name) for name in ("name", "value")]
    return all(place >= 0 and is_strings_or_bytes(type_.value_type.field(place).type) for place in places)


# -- checks of members ----------------------------------------------------------------------------------------------


def _mqtt_properties(value: Any) -> Any:
    """MQTT 5.0 properties; UNSURE if a member is unknown or invalid."""
    if not isinstance(value, dict) or not value.keys() <= MEMBERS[MqttProperties].keys():
        return None if value is None else UNSURE
    try:
        return msgspec.convert(value, MqttProperties)
    except msgspec.ValidationError:
        return UNSURE


def _amqp_section(value: Any) -> Any:
    if value is None or (isinstance(value, dict) and is_plain_section(value)):
        return value
    return UNSURE


def _texts(column: pa.Array) -> Mask:
    if not is_strings(column.type):
        return np.zeros(len(column), bool)
    return ~as_texts(column)[1]


def _bytes(column: pa.Array) -> Mask:
    return np.ones(len(column), bool) if is_bytes(column.type) else _texts(column)


def _times(column: pa.Array) -> Mask:
    if pa.types.is_timestamp(column.type):
        return is_instant(column)
    return mask_of(pc.match_substring_regex(as_texts(column)[0], INSTANT_PATTERN)) & _texts(column)


def is_within(low: int, high: int, column: pa.Array) -> Mask:
    if not pa.types.is_integer(column.type):
        return np.zeros(len(column), bool)
    values = column.fill_null(low).to_numpy(zero_copy_only=False)
    return np.asarray((values >= low) & (values <= high))


def _booleans(column: pa.Array) -> Mask:
    return np.full(len(column), pa.types.is_boolean(column.type))


def _body_section(column: pa.Array) -> Mask:
    return _texts(column) & mask_of(pc.is_in(as_texts(column)[0], pa.array(BODY_SECTIONS)))


PAIRS: Final = ("headers", "user_properties")
_SECTIONS: Final = frozenset(SECTIONS)
_CHECKS: Final[dict[str, Callable[[pa.Array], Mask]]] = {
    **dict.fromkeys(("endpoint", "method", "target", "topic", "subject", "reply-to"), _texts),
    **dict.fromkeys(("body", "key", "value", "payload", "data"), _bytes),
    **dict.fromkeys(("received", "timestamp"), _times),
    "status": partial(is_within, 100, 999),
    "partition": partial(is_within, 0, 2**63 - 1),
    "offset": partial(is_within, 0, 2**63 - 1),
    "qos": partial(is_within, 0, 2),
    "retain": _booleans,
    "body-section": _body_section,
}
