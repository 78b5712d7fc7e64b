"""Columns: one slot of many messages, with the places where a column cannot be trusted.

A row about which a column cannot be sure is `doubtful`, and the reference reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import repeat
from operator import is_
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.landing.tables.layout import INSTANT

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

# Printable ASCII: what every check on texts lets pass. Any other byte makes a column look twice.
FIRST_PRINTABLE, LAST_PRINTABLE = 0x20, 0x7E
UNPRINTABLE: Final = r"[\x00-\x1f\x7f-\x{9f}\x{fdd0}-\x{fdef}\x{fffe}\x{ffff}]|[^\x00-\x{ffff}]"
# A character that no URI has, or a percent sign that begins no escape (`uritemplate.NOT_IN_URI`, for RE2).
NOT_IN_URI: Final = r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]|%([^0-9A-Fa-f]|$|[0-9A-Fa-f]([^0-9A-Fa-f]|$))"
# An RFC 3339 time up to its fraction, on a day that exists, in years that no offset takes beyond Python's and Arrow's.
_DAY = r"(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31"
_LEAP_YEAR = r"([12][0-9](0[48]|[2468][048]|[13579][26])|1[26]00|2[048]00)"
SECOND: Final = rf"^([12][0-9]{{3}}-({_DAY})|{_LEAP_YEAR}-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
OFFSET: Final = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
# Times that Arrow reads as they stand: microseconds at most, an offset, no leap second.
INSTANT_PATTERN: Final = SECOND + r"(\.[0-9]{1,6})?" + OFFSET


def mask_of(array: pa.Array | pa.ChunkedArray) -> Mask:
    """A boolean Arrow array as a numpy mask; null is False."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), bool)


def any_of(masks: Iterable[Mask], length: int) -> Mask:
    return np.asarray(np.logical_or.reduce([np.zeros(length, bool), *masks]))


def codes_of(encoded: pa.DictionaryArray) -> Rows:
    """The place of each value in the dictionary, from 1; 0 for null."""
    return np.asarray(pc.fill_null(pc.add(encoded.indices, 1), 0).to_numpy(zero_copy_only=False), np.int64)


def texts(values: Sequence[Any]) -> tuple[pa.StringArray, Mask]:
    """Python values as a column of texts, and where a value is no text (None and bytes: null in the column)."""
    is_text = np.fromiter(map(is_, map(type, values), repeat(str)), bool, len(values))
    if is_text.all():
        return pa.array(values, pa.string()), ~is_text
    chosen = np.array([None, *values], dtype=object)[1:]
    chosen[~is_text] = None
    return pa.array(chosen, pa.string()), ~is_text


def instants(text: pa.StringArray) -> tuple[pa.TimestampArray, Mask]:
    """RFC 3339 times as instants of microseconds, and where a text is certainly one that says no more than that."""
    plain = mask_of(pc.match_substring_regex(text, INSTANT_PATTERN))
    kept = text if plain.all() else pc.if_else(pa.array(plain), text, pa.scalar(None, pa.string()))
    return kept.cast(INSTANT), plain


@dataclass(frozen=True, slots=True)
class SlotColumn:
    """A slot of every message: its text, null where it is absent, and where the column is not to be trusted."""

    text: pa.StringArray
    doubtful: Mask

    @property
    def present(self) -> Mask:
        return mask_of(self.text.is_valid())

    def take(self, rows: Rows) -> SlotColumn:
        return SlotColumn(self.text.take(pa.array(rows)), self.doubtful[rows])


def absent(length: int) -> SlotColumn:
    return SlotColumn(pa.nulls(length, pa.string()), np.zeros(length, bool))


class RepeatedColumns:
    """Named values that may repeat (headers, properties) of many messages, one column for each name asked for.

    Shape: pair number i belongs to message `owners[i]` (in order), has the name `names[i]` and the value `values[i]`,
    null where it is no text. `fold` gives a name as it compares.
    Cost: a few C-level passes over all pairs, then one for each name.
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
        """Which messages have any."""
        return np.bincount(self._owners, minlength=self.length) > 0

    def trimmed(self) -> RepeatedColumns:
        """The same pairs, their values without blanks at the ends."""
        found = copy(self)
        found._values, found._columns = pc.ascii_trim(self._values, " \t"), {}
        return found

    def column(self, name: str) -> SlotColumn:
        """The first value of a name; doubtful where it repeats, or is no text."""
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
        found = place >= 0
        doubtful[found] |= self._odd[place[found]]
        return SlotColumn(self._values.take(pa.array(place, mask=~found)), doubtful)


def is_plain(text: pa.StringArray, but: bytes = b"") -> bool:
    """Has the whole column only printable ASCII, without the characters of `but`? Cost: one pass over its bytes."""
    data = text.buffers()[2]
    if data is None:
        return True
    offsets = np.frombuffer(text.buffers()[1], np.int32)
    raw = np.frombuffer(data, np.uint8)[offsets[text.offset] : offsets[text.offset + len(text)]]
    if raw.size and (raw.min() < FIRST_PRINTABLE or raw.max() > LAST_PRINTABLE):
        return False
    return not any((raw == character).any() for character in but)
