"""Candidates by columns: for each message, the definitions that may match it, found in the index.

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
    """Pairs of a message (its row) and a candidate definition (its number)."""

    rows: Rows
    definitions: Rows


class CandidateFinder:
    """Finds the candidates for messages in an index. `in_scope` is a mask of the definitions that may be returned."""

    def __init__(self, index: Index, in_scope: Mask) -> None:
        self._index, self._in_scope = index, in_scope
        self._tables: dict[tuple[str | None, IndexMask], _MaskTable] = {}

    def find(self, messages: MessageColumns) -> CandidatePairs:
        """All candidates in scope, for all rows.

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
        """A mask of the rows for which `find` may miss candidates: the index has percent-encoded URIs, but the URI of
        the message is not encoded."""
        found = np.zeros(len(messages), bool)
        for section, name in URI_SLOTS & self._index.slots:
            column = messages.column(section, name)
            if column is not None:
                found |= messages.once(("not in a URI", name), partial(not_in_uri, column.text))
        return found


class _KeyText(NamedTuple):
    """One position of the keys of a table, which are tuples of texts.

    Shape: `values` are the distinct texts at this position. `combinations` are the distinct pairs of a prefix (the
    texts at earlier positions) and a text, ascending. A pair is stored as the number of the prefix, times the number of
    values, plus the position of the text in `values`. Its position in `combinations` is the number of the longer
    prefix.
    """

    values: pa.StringArray
    combinations: Rows


class _MaskTable:
    """The table of one mask of the index, as columns.

    The number of a key is computed text by text, so that numbers stay small however many texts the keys have.
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
        self._counts = np.array([*map(len, candidates), 0])  # by key number; the last is for unknown keys
        self._definitions = np.array([*chain.from_iterable(candidates)], np.int64)

    def find(self, messages: MessageColumns) -> CandidatePairs:
        """The candidates of all rows."""
        positions, counts = ragged(self._counts, self._numbers(messages))
        return CandidatePairs(np.repeat(np.arange(len(messages)), counts), self._definitions[positions])

    def _numbers(self, messages: MessageColumns) -> Rows:
        """The number of each row's key; for a key that is not in the table, the number of unknown keys."""
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
    """The texts of a key, whose parts are texts or tuples of texts."""
    for part in key:
        yield from part if isinstance(part, tuple) else (part,)


def _key_columns(messages: MessageColumns, part: MaskPart) -> Iterator[pa.StringArray]:
    """The columns of key texts for one part of a mask; null where a row has no such text."""
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
