"""Pairs of definitions that may share messages, found without comparing each with each.

What definitions say literally is put into tables, one for each pattern of places that are literal; two definitions can
only share messages if they agree where both are literal. So the cost grows with the number of definitions and of
patterns, and the number of pairs that are looked at is bounded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

from wirebook.definitions.compile.definition import Constraint, Definition
from wirebook.definitions.lint.overlap import Place, place_of

MAX_PATTERNS = 64
MAX_SEGMENTS = 6
LENGTHS = (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48)
PAIRS_EACH = 20  # of a definition, on average
PAIRS_AT_LEAST = 10_000

Says = dict[tuple[Any, ...], Any]
Pattern = frozenset[tuple[Any, ...]]


class DefinitionPairs:
    """The pairs of `definitions` to be compared, as numbers. `complete` is false once some were left out."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self.left = PAIRS_AT_LEAST + PAIRS_EACH * len(definitions)
        self.share = self.left // 4  # of one pair of patterns, so that no one takes it all
        self.complete = True
        self.says = [_literals(definition) for definition in definitions]
        self.patterns = self._by_pattern()

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Each pair once, the lower number first."""
        for number, pattern in enumerate(self.patterns):
            yield from self._bounded(self._within(pattern))
            for other in list(self.patterns)[number + 1 :]:
                yield from self._bounded(self._between(pattern, other))

    def _bounded(self, pairs: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        share = self.share
        for one, other in pairs:
            if not self.left or not share:
                self.complete = False
                return
            self.left, share = self.left - 1, share - 1
            yield min(one, other), max(one, other)

    def _within(self, pattern: Pattern) -> Iterator[tuple[int, int]]:
        for members in self._table(pattern, tuple(pattern)).values():
            yield from combinations(members, 2)

    def _between(self, one: Pattern, other: Pattern) -> Iterator[tuple[int, int]]:
        common = tuple(one & other)
        here, there = self._table(one, common), self._table(other, common)
        for key in here.keys() & there.keys():
            yield from product(here[key], there[key])

    def _table(self, pattern: Pattern, common: tuple[tuple[Any, ...], ...]) -> dict[tuple[Any, ...], list[int]]:
        found: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for number in self.patterns[pattern]:
            found[tuple(self.says[number][place] for place in common)].append(number)
        return found

    def _by_pattern(self) -> dict[Pattern, list[int]]:
        """The definitions of each pattern; rare patterns are cut down to what is common to many."""
        patterns = [frozenset(says) for says in self.says]
        kept = {pattern for pattern, _ in Counter(patterns).most_common(MAX_PATTERNS)}
        places = Counter(place for pattern in patterns for place in pattern)
        usual = {place for place, count in places.items() if count > len(patterns) // 2}
        found: defaultdict[Pattern, list[int]] = defaultdict(list)
        for number, pattern in enumerate(patterns):
            found[pattern if pattern in kept else frozenset(pattern & usual)].append(number)
        return dict(found)


def _literals(definition: Definition) -> Says:
    """What a definition says literally, by place: a whole value, or its segments and their number."""
    says: Says = {} if definition.protocol is None else {("protocol",): definition.protocol}
    for constraint in definition.constraints:
        if constraint.fixed and not constraint.kind.transport:
            says.update(_said(constraint))
    for group in definition.entries:
        if len(group.entries) == 1 and _is_plain(group.entries[0]):
            says[group.section, group.name, "="] = group.entries[0].literal
    return says


def _said(constraint: Constraint) -> Iterator[tuple[tuple[Any, ...], Any]]:
    place, template = place_of(constraint), constraint.template
    if template is not None:
        if not template.spanning:
            yield (*place, "#"), len(template.pieces)
            if len(template.pieces) == 1:
                yield from _beginnings(place, template.pieces[0].literals[0])
            yield from (((*place, position), text) for position, text in template.fixed if position < MAX_SEGMENTS)
    elif constraint.literal is not None and isinstance(constraint.declared, str):
        segments = constraint.declared.split(constraint.kind.place.separator)
        yield (*place, "#"), len(segments)
        if len(segments) == 1:
            yield from _beginnings(place, segments[0])
        yield from (((*place, position), text) for position, text in enumerate(segments[:MAX_SEGMENTS]))
    elif _is_plain(constraint):
        yield (*place, "="), constraint.literal


def _beginnings(place: Place, text: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """How a value of one segment begins (``order-{id}``): two that share messages begin alike as far as both go."""
    yield from (((*place, "^", length), text[:length]) for length in LENGTHS if length <= len(text))


def _is_plain(constraint: Constraint) -> bool:
    """Is there a constant that is no array and no object? Those are in no table."""
    return constraint.literal is not None and not isinstance(constraint.declared, list | dict)
