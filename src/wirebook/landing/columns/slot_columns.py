"""Columns of slots: the value of one slot in many messages, and a mask of the rows where it is uncertain.

A row that a column cannot decide is `doubtful`; the reference reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import repeat
from operator import is_
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.landing.tables.layout import INSTANT

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
H = TypeVar("H", bound=Hashable)

# Printable ASCII, which every check on texts accepts. A column with any other byte is checked row by row.
FIRST_PRINTABLE, LAST_PRINTABLE = 0x20, 0x7E
UNPRINTABLE: Final = r"[\x00-\x1f\x7f-\x{9f}\x{fdd0}-\x{fdef}\x{fffe}\x{ffff}]|[^\x00-\x{ffff}]"
# A character that is not valid in a URI, or a percent sign that does not begin an escape (`uritemplate.NOT_IN_URI`
# for RE2).
NOT_IN_URI: Final = r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]|%([^0-9A-Fa-f]|$|[0-9A-Fa-f]([^0-9A-Fa-f]|$))"
# An RFC 3339 time up to its fraction, on a valid day, in a year that stays in the range of Python and Arrow with any
# offset.
_DAY = r"(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31"
_LEAP_YEAR = r"([12][0-9](0[48]|[2468][048]|[13579][26])|1[26]00|2[048]00)"
SECOND: Final = rf"^([12][0-9]{{3}}-({_DAY})|{_LEAP_YEAR}-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
OFFSET: Final = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
# Times that Arrow parses: at most microseconds, with an offset, without a leap second.
INSTANT_PATTERN: Final = SECOND + r"(\.[0-9]{1,6})?" + OFFSET


def mask_of(array: pa.Array | pa.ChunkedArray) -> Mask:
    """A boolean Arrow array as a NumPy mask; null is False."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), bool)


def not_in_uri(text: pa.StringArray) -> Mask:
    """A mask of the texts that are not valid as a URI or a part of one."""
    return mask_of(pc.match_substring_regex(text, NOT_IN_URI))


def any_of(masks: Iterable[Mask], length: int) -> Mask:
    """The union of masks."""
    return np.asarray(np.logical_or.reduce([np.zeros(length, bool), *masks]))


def codes_of(encoded: pa.DictionaryArray) -> Rows:
    """The position of each value in the dictionary, from 1; 0 for null."""
    return np.asarray(pc.fill_null(pc.add(encoded.indices, 1), 0).to_numpy(zero_copy_only=False), np.int64)


def ragged(sizes: Sequence[int] | Rows, chosen: Rows) -> tuple[Rows, Rows]:
    """For lists of these `sizes` that are stored one after the other: the positions of the items of the lists `chosen`,
    and the size of each of these lists."""
    all_sizes = np.array(sizes, np.int64)
    starts, counts = np.cumsum(all_sizes) - all_sizes, all_sizes[chosen]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts[chosen], counts) + within, counts


def distinct(values: Sequence[H], numbers: Rows | None = None) -> tuple[list[H], Rows]:
    """The distinct values, and the position among them of each value; with `numbers`, of each of the values at these
    positions."""
    known: dict[H, int] = {}
    codes = np.array([known.setdefault(value, len(known)) for value in values], np.int64)
    return list(known), codes if numbers is None else codes[numbers]


def grouped(columns: Sequence[Rows]) -> tuple[Rows, Rows]:
    """The first row of each distinct combination of numbers, and the number of each row's combination."""
    combined = columns[0]
    for column in columns[1:]:
        if column.max(initial=0):
            combined = np.unique(combined, return_inverse=True)[1] * (int(column.max()) + 1) + column
    _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
    return first, inverse


def texts(values: Sequence[Any]) -> tuple[pa.StringArray, Mask]:
    """Python values as a string column, and a mask of the values that are not strings (null in the column)."""
    is_text = np.fromiter(map(is_, map(type, values), repeat(str)), bool, len(values))
    if is_text.all():
        return pa.array(values, pa.string()), ~is_text
    chosen = np.array([None, *values], dtype=object)[1:]
    chosen[~is_text] = None
    return pa.array(chosen, pa.string()), ~is_text


def instants(text: pa.StringArray) -> tuple[pa.TimestampArray, Mask]:
    """RFC 3339 times as timestamps in microseconds, and a mask of the texts that convert without loss."""
    plain = mask_of(pc.match_substring_regex(text, INSTANT_PATTERN))
    plain_text = text if plain.all() else pc.if_else(pa.array(plain), text, pa.scalar(None, pa.string()))
    return plain_text.cast(INSTANT), plain


@dataclass(frozen=True, slots=True)
class SlotColumn:
    """A slot of many messages.

    Shape: `text` is null where the slot is absent; `doubtful` marks rows that the reference must read.
    """

    text: pa.StringArray
    doubtful: Mask

    @property
    def present(self) -> Mask:
        """A mask of the rows in which the slot is present."""
        return mask_of(self.text.is_valid())

    def take(self, rows: Rows) -> SlotColumn:
        """The column with these rows."""
        return SlotColumn(self.text.take(pa.array(rows)), self.doubtful[rows])


def absent(length: int) -> SlotColumn:
    """The column of a slot that is absent in all rows."""
    return SlotColumn(pa.nulls(length, pa.string()), np.zeros(length, bool))


class RepeatedColumns:
    """Name-value pairs of many messages, such as headers, as one column for each requested name.

    Shape: pair i belongs to message `owners[i]` (ascending) and has the name `names[i]` and the value `values[i]`, null
    if it is not a string. `fold` maps a name to its comparison key.
    Cost: a few vectorised passes over all pairs, then one for each name.
    """

    def __init__(
        self, length: int, owners: Rows, names: pa.StringArray, values: pa.StringArray, fold: Callable[[str], str] = str
    ) -> None:
        self.length = length
        self._owners = owners
        encoded = names.dictionary_encode()
        self._codes = encoded.indices.to_numpy(zero_copy_only=False)
        self.names: dict[str, list[int]] = {}
        for code, name in enumerate(encoded.dictionary.to_pylist()):
            self.names.setdefault(fold(name), []).append(code)
        self._values, self._odd = values, mask_of(values.is_null())
        self._columns: dict[str, SlotColumn] = {}

    @property
    def owning(self) -> Mask:
        """A mask of the messages that have at least one pair."""
        return np.bincount(self._owners, minlength=self.length) > 0

    def trimmed(self) -> RepeatedColumns:
        """The same pairs, with values stripped of surrounding blanks."""
        copied = copy(self)
        copied._values, copied._columns = pc.ascii_trim(self._values, " \t"), {}
        return copied

    def column(self, name: str) -> SlotColumn:
        """The first value of a name; doubtful if the name repeats or the value is not a string."""
        if name not in self._columns:
            self._columns[name] = self._pivot(self.names.get(name, ()))
        return self._columns[name]

    def _pivot(self, codes: Sequence[int]) -> SlotColumn:
        if not codes:
            return absent(self.length)
        chosen = np.flatnonzero(np.isin(self._codes, codes) if len(codes) > 1 else self._codes == codes[0])
        owners = self._owners[chosen]
        place = np.full(self.length, -1, np.int64)
        place[owners[::-1]] = chosen[::-1]
        doubtful = np.bincount(owners, minlength=self.length) > 1
        copied = place >= 0
        doubtful[copied] |= self._odd[place[copied]]
        return SlotColumn(self._values.take(pa.array(place, mask=~copied)), doubtful)


def is_plain(text: pa.StringArray, but: bytes = b"") -> bool:
    """Whether all values of a column have only printable ASCII characters, and none of those in `but`.

    Cost: one pass over its bytes.
    """
    data = text.buffers()[2]
    if data is None:
        return True
    offsets = np.frombuffer(text.buffers()[1], np.int32)
    raw = np.frombuffer(data, np.uint8)[offsets[text.offset] : offsets[text.offset + len(text)]]
    if raw.size and (raw.min() < FIRST_PRINTABLE or raw.max() > LAST_PRINTABLE):
        return False
    return not any((raw == character).any() for character in but)
