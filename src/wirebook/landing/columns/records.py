"""The records of a chunk, field by field, independent of the file format: the input of `message_columns`.

There are three implementations: `DecodedRecords` for records decoded from lines one by one, `JsonRecords` for lines
parsed by Arrow, and `ParquetRecords` for rows of Parquet files. Fields have the names of the capture format. Records
that are not certainly valid are left out of the fields; the reference reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, repeat
from operator import attrgetter, is_, itemgetter
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from wirebook.bindings.capture import MEMBERS
from wirebook.bindings.wire import CLASSES, AnyMessage, Base64
from wirebook.landing.columns.slot_columns import Mask, RepeatedColumns, Rows, SlotColumn, instants, mask_of, texts

# AMQP types whose values are strings.
TEXTUAL: Final = ("string", "symbol", "timestamp", "uuid")


class RecordFields(Protocol):
    """The fields of all records of one protocol."""

    def __len__(self) -> int: ...

    def text(self, name: str) -> SlotColumn:
        """A string field, or a field of bytes that are text; doubtful where the bytes are not valid UTF-8."""

    def nested(self, within: str, name: str) -> SlotColumn:
        """A string member of an object field."""

    def pairs(self, name: str, fold: Callable[[str], str]) -> RepeatedColumns:
        """A field of name-value pairs."""

    def section(self, name: str) -> RepeatedColumns:
        """A field that is an AMQP map, as name-value pairs. Values of a string type, such as symbols, are strings."""

    def data(self, name: str) -> pa.BinaryArray:
        """A field of bytes."""


class RecordColumns(Protocol):
    """All records of a chunk, in line or row order."""

    @property
    def received(self) -> tuple[pa.TimestampArray, Mask]:
        """The receive time of each record, and a mask of those that are certain."""

    @property
    def endpoints(self) -> pa.StringArray:
        """The endpoint XID of each record; null if it has none."""

    def by_protocol(self) -> Iterator[tuple[str, Rows, RecordFields]]:
        """Each protocol with the positions of its records and their fields."""


class DecodedRecords:
    """Decoded records; None for a record that the reference reads."""

    def __init__(self, records: Sequence[AnyMessage | None]) -> None:
        self._records = records

    @cached_property
    def received(self) -> tuple[pa.TimestampArray, Mask]:
        text, _ = texts([None if record is None else record.received for record in self._records])
        times, plain = instants(text)
        return times, plain | mask_of(text.is_null())

    @cached_property
    def endpoints(self) -> pa.StringArray:
        return pa.array([None if record is None else record.endpoint for record in self._records], pa.string())

    def by_protocol(self) -> Iterator[tuple[str, Rows, RecordFields]]:
        classes = _objects(list(map(type, self._records)))
        everything = _objects(self._records)
        for protocol, cls in CLASSES.items():
            rows = np.flatnonzero(classes == cls)
            if len(rows):
                yield protocol, rows, DecodedFields(cls, everything[rows].tolist())


class DecodedFields:
    """Decoded records of one class."""

    def __init__(self, cls: type[AnyMessage], records: list[Any]) -> None:
        self._names = MEMBERS[cls]
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    def _values(self, name: str) -> list[Any]:
        return list(map(attrgetter(self._names[name]), self._records))

    def text(self, name: str) -> SlotColumn:
        return _text(self._values(name))

    def nested(self, within: str, name: str) -> SlotColumn:
        holders = self._values(within)
        there = ~_is_none(holders)
        values = np.full(len(holders), None, dtype=object)
        values[there] = list(map(attrgetter(name), _objects(holders)[there]))
        return _text(values.tolist())

    def pairs(self, name: str, fold: Callable[[str], str]) -> RepeatedColumns:
        owners, filled = _owners(self._values(name))
        pairs = list(chain.from_iterable(filled))
        values, _ = texts(list(map(itemgetter(1), pairs)))
        return RepeatedColumns(len(self), owners, pa.array(map(itemgetter(0), pairs), pa.string()), values, fold)

    def section(self, name: str) -> RepeatedColumns:
        return section_of(self._values(name))

    def data(self, name: str) -> pa.BinaryArray:
        bodies = self._values(name)
        coded = np.fromiter(map(is_, map(type, bodies), repeat(Base64)), bool, len(bodies))
        if coded.any():
            array = _objects(bodies)
            array[coded] = list(map(attrgetter("base64"), array[coded]))
            bodies = array.tolist()
        return pa.array(bodies, pa.binary())


def section_of(maps: Sequence[dict[str, Any] | None]) -> RepeatedColumns:
    """AMQP maps as name-value pairs; None for an absent map."""
    owners, filled = _owners(maps)
    values, _ = texts(_untyped(list(chain.from_iterable(map(dict.values, filled)))))
    return RepeatedColumns(len(maps), owners, pa.array(chain.from_iterable(filled), pa.string()), values)


def _text(values: list[Any]) -> SlotColumn:
    text, odd = texts(values)
    return SlotColumn(text, odd & ~_is_none(values))


def _is_none(values: Sequence[Any]) -> Mask:
    return np.fromiter(map(is_, values, repeat(None)), bool, len(values))


def _objects(values: Sequence[Any]) -> Any:
    """Values as a NumPy array of objects."""
    return np.array([None, *values], dtype=object)[1:]


def _owners(sequences: Sequence[Any]) -> tuple[Rows, list[Any]]:
    """The index of the sequence that each item belongs to, and the sequences that are neither None nor empty."""
    filled = list(filter(None, sequences))
    indices = np.flatnonzero(np.fromiter(map(bool, sequences), bool, len(sequences)))
    counts = np.fromiter(map(len, filled), np.int64, len(filled))
    return np.repeat(indices, counts), filled


def _untyped(values: list[Any]) -> list[Any]:
    """AMQP values; those that name a string type are replaced by their strings."""
    typed = np.flatnonzero(np.fromiter(map(is_, map(type, values), repeat(dict)), bool, len(values)))
    if not len(typed):
        return values
    array = _objects(values)
    typed = typed[np.fromiter(map(len, array[typed]), np.int64, len(typed)) == 1]
    names = list(chain.from_iterable(array[typed]))
    inner = _objects(list(chain.from_iterable(map(dict.values, array[typed]))))
    chosen = np.isin(names, TEXTUAL) & np.fromiter(map(is_, map(type, inner), repeat(str)), bool, len(inner))
    array[typed[chosen]] = inner[chosen]
    return list(array)
