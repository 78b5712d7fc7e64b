"""Classes of values of a slot that definitions treat alike, so that near misses are found once for each class.

A value such as a topic is a path of segments. Definitions name some of the segments; any other segment can only be the
value of a placeholder. Values that differ only in such segments match the same templates and literals, have the same
problems and vote for the same definitions, except for the neighbours in sorted order (`ValueClasses.positions`).

Cost: a few vectorised passes over the segments of all values.

Spec: docs/semantics.md D17-D20, D49; docs/decisions/0203-dead-letters-by-columns.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.definitions.compile.definition import Constraint
from wirebook.definitions.match.index import SlotValues
from wirebook.landing.columns.match import TEXT_TYPES
from wirebook.landing.columns.slot_columns import Rows, mask_of

ORDINARY: Final = r"^[A-Za-z0-9._~-]+$"
"""A segment that every placeholder matches, and that percent-encoding does not change."""


class ValueClasses:
    """The classes of the values of one slot. `values` has the values that definitions declare for it."""

    def __init__(self, values: SlotValues) -> None:
        self._separator = values.separator
        self._known: defaultdict[int, set[str]] = defaultdict(set)  # segments of definitions, by position
        for literal in values.by_literal:
            if isinstance(literal, tuple):
                position, segment = literal
                self._known[position].add(segment)
        self._known_columns = {  # only ASCII: Arrow cannot store lone surrogates
            position: pa.array([segment for segment in segments if segment.isascii()], pa.string())
            for position, segments in self._known.items()
        }
        self._any_other = "~"
        while any(self._any_other in segments for segments in self._known.values()):
            self._any_other += "~"
        counted = [(text, len(list(equal))) for text, equal in groupby(text for text, _ in values.declared)]
        self._declared = _bytes_of(text for text, _ in counted)
        self._starts = np.cumsum([0, *(count for _, count in counted)])

    def covers(self, constraint: Constraint) -> bool:
        """Whether the constraint treats all values of each class alike."""
        if constraint.media_type is not None or constraint.type not in TEXT_TYPES:
            return False
        if constraint.literal is not None:
            is_text = constraint.literal.kind == "text"
            return is_text and self._knows(enumerate(str(constraint.declared).split(self._separator)))
        template = constraint.template
        if template is None or template.spanning:
            return True
        has_only_whole = all(piece.literals == ("", "") for _, piece in template.varying)
        return has_only_whole and template.place.separator == self._separator and self._knows(template.fixed)

    def _knows(self, segments: Iterable[tuple[int, str]]) -> bool:
        return all(segment in self._known.get(position, ()) for position, segment in segments)

    def reduce(self, texts: pa.StringArray) -> pa.StringArray:
        """Replace each value by the representative of its class. A value without a known class is not changed."""
        cut = pc.split_pattern(texts, self._separator)
        segments, offsets = cut.flatten(), cut.offsets.to_numpy() - cut.offsets[0].as_py()
        starts, counts = offsets[:-1], np.diff(offsets)
        is_known = np.zeros(len(segments), bool)
        for position, known in self._known_columns.items():
            places = starts[counts > position] + position
            is_known[places] = mask_of(pc.is_in(segments.take(pa.array(places)), known))
        is_certain = is_known | mask_of(pc.match_substring_regex(segments, ORDINARY))
        has_class = np.logical_and.reduceat(is_certain, starts) if len(starts) else np.zeros(0, bool)
        replaced = pc.if_else(pa.array(is_known), segments, self._any_other)
        joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), replaced), self._separator)
        return joined if has_class.all() else pc.if_else(pa.array(has_class), joined, texts)

    def positions(self, texts: pa.StringArray) -> Rows:
        """The position of each value among all declared values in sorted order, as `SlotValues.position` returns it."""
        both = pa.concat_arrays([texts.cast(pa.binary()), self._declared])
        order = pc.sort_indices(both).to_numpy()  # stable: a value precedes an equal one that is declared
        is_declared = order >= len(texts)
        before = np.empty(len(both), np.int64)
        before[order] = np.cumsum(is_declared)
        return np.asarray(self._starts[before[: len(texts)]])


def _bytes_of(texts: Iterable[str]) -> pa.BinaryArray:
    """The texts as UTF-8, which sorts in the order of code points. Lone surrogates are encoded, too."""
    return pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.binary())
