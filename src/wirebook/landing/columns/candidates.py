"""Candidates by columns: the definitions that the index returns for each message.

Spec: docs/semantics.md D49
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.definitions.match.index import URI_SLOTS, Index, MaskPart
from wirebook.definitions.match.index import Mask as IndexMask
from wirebook.landing.columns.message_columns import MessageColumns
from wirebook.landing.columns.slot_columns import Mask, Rows, distinct, not_in_uri, ragged

__all__ = ["CandidateFinder", "CandidatePairs"]


class CandidatePairs(NamedTuple):
    """Pairs of a row and the number of a candidate definition."""

    rows: Rows
    definitions: Rows


class CandidateFinder:
    """Finds the candidates of messages by an index. `in_scope` is a mask of the definitions."""

    def __init__(self, index: Index, in_scope: Mask) -> None:
        self._index, self._in_scope = index, in_scope
        self._tables: dict[tuple[str | None, IndexMask], _MaskTable] = {}

    def find(self, messages: MessageColumns) -> CandidatePairs:
        """All candidates of all rows within the scope.

        Cost: one lookup for each mask and row.
        """
        tables = self._index.tables
        pairs = [CandidatePairs(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for protocol in (messages.protocol, None) if messages.shows_protocol else tuple(tables):
            for mask, table in tables.get(protocol, {}).items():
                if (protocol, mask) not in self._tables:
                    self._tables[protocol, mask] = _MaskTable(mask, table)
                pairs.append(self._tables[protocol, mask].find(messages))
        rows, definitions = map(np.concatenate, zip(*pairs, strict=True))
        allowed = self._in_scope[definitions]
        return (
            CandidatePairs(rows, definitions) if allowed.all() else CandidatePairs(rows[allowed], definitions[allowed])
        )

    def unindexed(self, messages: MessageColumns) -> Mask:
        """A mask of the rows with a URI that the index holds in percent-encoded form."""
        found = np.zeros(len(messages), bool)
        for section, name in URI_SLOTS & self._index.slots:
            column = messages.column(section, name)
            if column is not None:
                found |= messages.once(("not in a URI", name), partial(not_in_uri, column.text))
        return found


class _KeyText(NamedTuple):
    """One text of the keys of a table: its distinct `values`, and the distinct combinations of the key so far with it,
    ascending. A combination is the number of the key so far, times the number of values, plus that of the value."""

    values: pa.StringArray
    combinations: Rows


class _MaskTable:
    """The keys of one mask, by columns.

    A key gets its number text by text, so that the numbers stay small however many texts it has.
    """

    def __init__(self, mask: IndexMask, table: Mapping[tuple[object, ...], Sequence[int]]) -> None:
        self._mask = mask
        self._texts: list[_KeyText] = []
        numbers = np.zeros(len(table), np.int64)
        for texts in zip(*map(_texts_of, table), strict=True):
            values, codes = distinct(texts)
            combinations, numbers = np.unique(numbers * len(values) + codes, return_inverse=True)
            self._texts.append(_KeyText(pa.array(values, pa.string()), combinations))
        candidates = [definitions for _, definitions in sorted(zip(numbers.tolist(), table.values(), strict=True))]
        self._counts = np.array([*map(len, candidates), 0])  # by number of a key; the last is that of no key
        self._definitions = np.array([*chain.from_iterable(candidates)], np.int64)

    def find(self, messages: MessageColumns) -> CandidatePairs:
        """The candidates of all rows."""
        positions, counts = ragged(self._counts, self._numbers(messages))
        return CandidatePairs(np.repeat(np.arange(len(messages)), counts), self._definitions[positions])

    def _numbers(self, messages: MessageColumns) -> Rows:
        """The number of each row's key; that of no key if the table does not have it."""
        numbers, found = np.zeros(len(messages), np.int64), np.ones(len(messages), bool)
        columns = chain.from_iterable(_key_columns(messages, part) for part in self._mask)
        for column, (values, combinations) in zip(columns, self._texts, strict=True):
            places = pc.fill_null(pc.index_in(column, value_set=values), -1).to_numpy()
            combined = numbers * len(values) + places
            numbers = np.minimum(np.searchsorted(combinations, combined), len(combinations) - 1)
            found &= (places >= 0) & (combinations[numbers] == combined)
        numbers[~found] = len(self._counts) - 1
        return numbers


def _texts_of(key: tuple[object, ...]) -> Iterator[object]:
    """The texts of a key, whose parts are texts and tuples of texts."""
    for part in key:
        yield from part if isinstance(part, tuple) else (part,)


def _key_columns(messages: MessageColumns, part: MaskPart) -> Iterator[pa.StringArray]:
    """The texts of each row for one part of a mask; null where it has none."""
    column = messages.column(part.section, part.name)
    if column is None:
        yield from [pa.nulls(len(messages), pa.string())] * max(1, len(part.positions))
        return
    if not part.separator:
        yield column.text
        return
    segments = pc.split_pattern(column.text, part.separator)
    counts = pc.fill_null(pc.list_value_length(segments), 0).to_numpy(zero_copy_only=False)
    fits = counts == part.segments if part.segments else counts > max(part.positions)
    if not fits.all():
        segments = segments.take(pa.array(np.arange(len(messages)), mask=~fits))
    for position in part.positions:
        yield pc.list_element(segments, position)
