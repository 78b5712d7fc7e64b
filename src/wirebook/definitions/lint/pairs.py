"""Find pairs of definitions that may match the same messages, without comparing all pairs.

Two definitions can match the same message only if they agree in every place where both have literals. Definitions are
grouped by pattern, the set of places with literals, and joined on the values of the places that two patterns share. The
cost depends on the number of definitions and patterns; the number of pairs is limited.
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
PAIRS_PER_DEFINITION = 20  # on average
MIN_PAIRS = 10_000

Literals = dict[tuple[Any, ...], Any]
Pattern = frozenset[tuple[Any, ...]]


class DefinitionPairs:
    """The pairs of `definitions` to compare, as indexes. `complete` becomes False if a limit is reached."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self.remaining = MIN_PAIRS + PAIRS_PER_DEFINITION * len(definitions)
        self.share = self.remaining // 4  # limit for one pattern, or one pair of patterns
        self.complete = True
        self.literals = [_literals(definition) for definition in definitions]
        self.patterns = self._by_pattern()

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield each pair once, the lower index first."""
        for number, pattern in enumerate(self.patterns):
            yield from self._bounded(self._within(pattern))
            for other in list(self.patterns)[number + 1 :]:
                yield from self._bounded(self._between(pattern, other))

    def _bounded(self, pairs: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        share = self.share
        for one, other in pairs:
            if not self.remaining or not share:
                self.complete = False
                return
            self.remaining, share = self.remaining - 1, share - 1
            yield min(one, other), max(one, other)

    def _within(self, pattern: Pattern) -> Iterator[tuple[int, int]]:
        for members in self._table(pattern, tuple(pattern)).values():
            yield from combinations(members, 2)

    def _between(self, one: Pattern, other: Pattern) -> Iterator[tuple[int, int]]:
        common = tuple(one & other)
        here, there = self._table(one, common), self._table(other, common)
        for key in [key for key in here if key in there]:
            yield from product(here[key], there[key])

    def _table(self, pattern: Pattern, common: tuple[tuple[Any, ...], ...]) -> dict[tuple[Any, ...], list[int]]:
        table: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for number in self.patterns[pattern]:
            table[tuple(self.literals[number][place] for place in common)].append(number)
        return table

    def _by_pattern(self) -> dict[Pattern, list[int]]:
        """Group the definitions by pattern. Rare patterns are reduced to the places that most definitions have."""
        patterns = [frozenset(literals) for literals in self.literals]
        frequent = {pattern for pattern, _ in Counter(patterns).most_common(MAX_PATTERNS)}
        places = Counter(place for pattern in patterns for place in pattern)
        usual = {place for place, count in places.items() if count > len(patterns) // 2}
        groups: defaultdict[Pattern, list[int]] = defaultdict(list)
        for number, pattern in enumerate(patterns):
            groups[pattern if pattern in frequent else frozenset(pattern & usual)].append(number)
        return dict(groups)


def _literals(definition: Definition) -> Literals:
    """Return the literals of a definition by place: whole values, or segments and their number."""
    literals: Literals = {} if definition.protocol is None else {("protocol",): definition.protocol}
    for constraint in definition.constraints:
        if constraint.fixed and not constraint.kind.transport:
            literals.update(_literals_of(constraint))
    for group in definition.entries:
        if len(group.entries) == 1 and _is_plain(group.entries[0]):
            literals[group.section, group.name, "="] = group.entries[0].literal
    return literals


def _literals_of(constraint: Constraint) -> Iterator[tuple[tuple[Any, ...], Any]]:
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
    """Yield prefixes of a value with one segment (``order-{id}``); overlapping values agree in those of both."""
    yield from (((*place, "^", length), text[:length]) for length in LENGTHS if length <= len(text))


def _is_plain(constraint: Constraint) -> bool:
    """Return whether the constraint has a constant that can be a key, that is, no array or object."""
    return constraint.literal is not None and not isinstance(constraint.declared, list | dict)
