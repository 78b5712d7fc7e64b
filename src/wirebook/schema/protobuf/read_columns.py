"""Reads whole columns of Protobuf messages: parsed one by one in C, then converted field by field.

No Python function of this package runs for single values, except for JSON text. A row is given up, that is, left to
`ProtobufReader.read`, if it contains anything unusual: an unknown field, an enum value without a name, a timestamp that
is out of range or finer than microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.unknown_fields import UnknownFieldSet

from wirebook.schema.layout import ColumnLayout, List, Map, Struct, json_text
from wirebook.schema.protobuf.columns import (
    SCALARS,
    TIMESTAMP_NAME,
    UNSIGNED,
    WRAPPERS,
    Descriptor,
    FieldDescriptor,
    is_map,
)
from wirebook.schema.protobuf.read import BASE, KEYS, SECONDS, Message, MessageError, MessageReaders, names_of
from wirebook.schema.scalar_columns import JSON

Array = np.ndarray[Any, Any]
MAX_DEPTH: Final = 100
"""The deepest nesting of messages that the library's parser accepts."""


@dataclass
class Rows:
    """The rows of some messages or values.

    Shape: `owners` is the row of each value; `given_up` is a mask of all rows, which is shared.
    """

    owners: Array
    given_up: Array

    def give_up(self, where: Array) -> None:
        """Give up the rows of the values that a mask selects."""
        self.given_up[self.owners[where]] = True

    def of(self, owners: Array) -> Rows:
        """Return the same rows with other values."""
        return Rows(owners, self.given_up)


Read = Callable[[Sequence[Any], Rows], pa.Array]
"""Return the column of messages or field values. None of them may be None."""


def reader_of(descriptor: Descriptor, layout: ColumnLayout, values: MessageReaders) -> Read:
    """Return the column reader of a message type."""
    if isinstance(layout, Struct):
        return _struct(descriptor, layout, values)
    if layout is JSON:
        return _json(values.reader(descriptor, None))
    if descriptor.full_name == TIMESTAMP_NAME:
        return _known_only(_timestamps)
    assert descriptor.full_name in WRAPPERS
    inner = _single(descriptor.fields[0], layout, values)
    return _known_only(lambda messages, rows: inner(list(map(attrgetter("value"), messages)), rows))


def _known_only(read: Read) -> Read:
    """Return a reader that gives up the rows of messages with unknown fields."""

    def checked(messages: Sequence[Message], rows: Rows) -> pa.Array:
        counts = np.fromiter(map(len, map(UnknownFieldSet, messages)), np.int64, len(messages))
        if counts.any():
            rows.give_up(counts > 0)
        return read(messages, rows)

    return checked


def _struct(descriptor: Descriptor, layout: Struct, values: MessageReaders) -> Read:
    parts = [_field(field, layout.members[field.name], values) for field in descriptor.fields]
    fields = list(layout.arrow)

    def read(messages: Sequence[Message], rows: Rows) -> pa.Array:
        return pa.StructArray.from_arrays([part(messages, rows) for part in parts], fields=fields)

    return _known_only(read)


def _field(field: FieldDescriptor, layout: ColumnLayout, values: MessageReaders) -> Read:
    """Return the column reader of one field of a message type."""
    get = attrgetter(field.name)
    if is_map(field):
        assert isinstance(layout, Map)
        return _maps(field, layout, values)
    if field.is_repeated:
        assert isinstance(layout, List)
        return _lists(get, _single(field, layout.item, values))
    single = _single(field, layout, values)
    if not field.has_presence or field.is_required:
        return lambda messages, rows: single(list(map(get, messages)), rows)
    return _optional(field.name, single)


def _optional(name: str, single: Read) -> Read:
    get = attrgetter(name)

    def read(messages: Sequence[Message], rows: Rows) -> pa.Array:
        is_set = np.fromiter(map(BASE.HasField, messages, repeat(name)), bool, len(messages))
        if is_set.all():
            return single(list(map(get, messages)), rows)
        places = np.flatnonzero(is_set)
        present = list(map(get, map(messages.__getitem__, places.tolist())))
        column = single(present, rows.of(rows.owners[places]))
        return column.take(pa.array(np.cumsum(is_set) - 1, mask=~is_set))

    return read


def _single(field: FieldDescriptor, layout: ColumnLayout, values: MessageReaders) -> Read:
    """Return the column reader of the single values of a field."""
    if field.message_type is not None:
        return reader_of(field.message_type, layout, values)
    if field.enum_type is not None:
        return _names(field)
    if layout is UNSIGNED:
        return lambda items, rows: pa.array(items, pa.uint64()).cast(UNSIGNED.arrow)  # noqa: ARG005
    type_ = SCALARS[field.type].arrow
    return lambda items, rows: pa.array(items, type_)  # noqa: ARG005


def _lists(get: Callable[[Message], Any], single: Read) -> Read:
    def read(messages: Sequence[Message], rows: Rows) -> pa.Array:
        lists = list(map(get, messages))
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        column = single(list(chain.from_iterable(lists)), rows.of(np.repeat(rows.owners, lengths)))
        return pa.ListArray.from_arrays(_offsets(lengths), column)

    return read


def _maps(field: FieldDescriptor, layout: Map, values: MessageReaders) -> Read:
    """Return the column reader of a map. Entries are sorted by key, as a message does not define their order."""
    entry = field.message_type.fields_by_name
    get, key_of = attrgetter(field.name), KEYS.get(entry["key"].type, str)
    single = _single(entry["value"], layout.values, values)

    def read(messages: Sequence[Message], rows: Rows) -> pa.Array:
        maps = list(map(get, messages))
        lengths = np.fromiter(map(len, maps), np.int64, len(maps))
        keys = list(map(sorted, maps))
        items = [entries[key] for entries, own_keys in zip(maps, keys, strict=True) for key in own_keys]
        column = single(items, rows.of(np.repeat(rows.owners, lengths)))
        names = pa.array(list(map(key_of, chain.from_iterable(keys))), pa.string())
        return pa.MapArray.from_arrays(_offsets(lengths), names, column)

    return read


def _offsets(lengths: Array) -> pa.Array:
    return pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))


def _names(field: FieldDescriptor) -> Read:
    names = names_of(field)
    numbers = pa.array(list(names), pa.int32())
    texts = pa.array(list(names.values()), pa.string())

    def read(items: Sequence[int], rows: Rows) -> pa.Array:
        places = pc.index_in(pa.array(items, pa.int32()), value_set=numbers)
        if places.null_count:
            rows.give_up(np.asarray(places.is_null()))
        return texts.take(places)

    return read


def _timestamps(messages: Sequence[Message], rows: Rows) -> pa.Array:
    seconds = np.fromiter(map(attrgetter("seconds"), messages), np.int64, len(messages))
    nanos = np.fromiter(map(attrgetter("nanos"), messages), np.int64, len(messages))
    is_plain = (seconds >= SECONDS[0]) & (seconds <= SECONDS[1]) & (nanos >= 0) & (nanos < 10**9) & (nanos % 1000 == 0)
    if not is_plain.all():
        rows.give_up(~is_plain)
    moments = np.where(is_plain, seconds, 0) * 1_000_000 + nanos // 1000
    return pa.array(moments).view(pa.timestamp("us", tz="UTC"))


def _json(convert: Callable[[Message, int], Any]) -> Read:
    def read(messages: Sequence[Message], rows: Rows) -> pa.Array:
        texts: list[str | None] = []
        for place, message in enumerate(messages):
            try:
                value = convert(message, MAX_DEPTH)
                texts.append(None if value is None else json_text(value))
            except MessageError:
                texts.append(None)
                rows.given_up[rows.owners[place]] = True
        return pa.array(texts, pa.string())

    return read
