"""Applying a filter: which entities an answer has.

Whatever expression holds for an entity holds for all that is below it. An answer has the leaves for which all
expressions of one term hold, and what is above them. So a term whose expressions are on one line of levels is decided
from the target down: the entities of a level for which those of the level hold, below those that were left before. What
the last level leaves is in the answer, with everything that is above and below it.

Spec: core/spec.md#filter-flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wirebook.core.query.filters import Expression, Filter, Level


@dataclass(frozen=True, slots=True)
class Step:
    """The expressions of a term that are about the entities of one level."""

    level: Level
    expressions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """What a term of the filter, with its place there, asks below the target: steps down, the last one for leaves."""

    index: int
    steps: tuple[Step, ...]


@dataclass(slots=True)
class FilterResult:
    """What a filter left.

    Shape: `left`: by level, the keys of the entities that are left below each parent. `whole`: those of which
    everything is left. `passed`: by term and level, those for which its expressions hold, so far.
    """

    filter: Filter
    left: dict[Level, dict[int, set[int]]] = field(default_factory=dict)
    whole: dict[Level, set[int]] = field(default_factory=dict)
    passed: dict[tuple[int, Level], set[int]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.left and not self.whole

    def has(self, level: Level, key: int, parent: int) -> bool:
        if parent in self.whole.get(level[:-1], ()):
            self.whole.setdefault(level, set()).add(key)
            return True
        return key in self.left.get(level, {}).get(parent, ())

    def count(self, level: Level, parent: int, every: int) -> int:
        """How many of a level are left below an entity that has `every` of them."""
        return every if parent in self.whole.get(level[:-1], ()) else len(self.left.get(level, {}).get(parent, ()))

    def add(self, index: int, level: Level, parents: Sequence[int], keys: set[int]) -> None:
        """Entities of a level that a term leaves, with all below them. `parents` are the keys of what they are in, from
        the target's down."""
        self._leave(index, level, parents[-1], keys)
        for up, (parent, key) in enumerate(zip(parents[-2::-1], parents[:0:-1], strict=True), 1):
            self._leave(index, level[:-up], parent, {key})
        if len(level) < 3:
            self.whole.setdefault(level, set()).update(keys)

    def _leave(self, index: int, level: Level, parent: int, keys: set[int]) -> None:
        self.left.setdefault(level, {}).setdefault(parent, set()).update(keys)
        self.passed.setdefault((index, level), set()).update(keys)

    def residual(self, level: Level, collection: str, parent: int) -> list[str]:
        """The filter of the URL of a collection below an entity: what is left to be asked; no text asks for all."""
        if parent in self.whole.get(level, ()):
            return []
        inner = (*level, collection)
        texts: list[str] = []
        for index, term in enumerate(self.filter):
            below = [expression for expression in term if len(expression.level) > len(level)]
            if all(expression.level[: len(inner)] == inner for expression in below) and self._has_passed(
                index, level, parent
            ):
                texts.append(",".join(expression.text_below(len(inner)) for expression in below))
        return list(dict.fromkeys(texts))

    def _has_passed(self, index: int, level: Level, key: int) -> bool:
        """Whether the expressions of a term hold for an entity, as far as they are about it or what is above it."""
        about = [expression.level for expression in self.filter[index] if len(expression.level) <= len(level)]
        return not about or key in self.passed.get((index, level), ())


class FilterEvaluation:
    """A filter on what is below a target, or on the target itself. `level` and `key` are those of the target entity; of
    a collection, those of the entity that has it."""

    def __init__(self, filter_: Filter, level: Level = (), key: int = 0) -> None:
        self.result = FilterResult(filter_)
        self.level, self.key = level, key
        self.terms: list[Term] = []
        """What is still to be decided, once the target was entered."""

    def enter(self, entity: Mapping[str, Any] | None = None, meta: Mapping[str, Any] | None = None) -> None:
        """Decides what is about the target entity: its members and, of a Resource, its meta's."""
        for index, term in enumerate(self.result.filter):
            own = [expression for expression in term if expression.level == self.level]
            if not all(holds(expression, entity or {}, meta or {}) for expression in own):
                continue
            self.result.passed[index, self.level] = {self.key}
            deeper = [expression for expression in term if expression.level != self.level]
            if not deeper:
                self.result.whole[self.level] = {self.key}
            elif steps := _steps(deeper):
                self.terms.append(Term(index, steps))
        if self.result.whole:
            self.terms.clear()


def holds(expression: Expression, entity: Mapping[str, Any], meta: Mapping[str, Any]) -> bool:
    return expression.holds(meta if expression.meta else entity)


def _steps(expressions: Iterable[Expression]) -> tuple[Step, ...]:
    """The levels of expressions, from above; none if they are not on one line, for then no leaf is below all."""
    by_level: dict[Level, list[Expression]] = {}
    for expression in expressions:
        by_level.setdefault(expression.level, []).append(expression)
    levels = sorted(by_level, key=len)
    if any(levels[-1][: len(level)] != level for level in levels):
        return ()
    return tuple(Step(level, tuple(by_level[level])) for level in levels)
