"""Evaluate a filter: select the entities that a response contains.

An expression that holds for an entity also holds for everything below it. A response contains the lowest entities for
which all expressions of one term hold, and everything above them. A term whose levels are nested in each other is
therefore evaluated from the target down: on each level, it selects the entities for which its expressions hold, among
those below the entities selected on the level above. The response contains the entities selected on the last level,
and everything above and below them.

Spec: core/spec.md#filter-flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wirebook.core.query.filters import Expression, Filter, Level


@dataclass(frozen=True, slots=True)
class Step:
    """The expressions of a term that apply to the entities of one level."""

    level: Level
    expressions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """The part of a filter term below the target.

    Shape: `index` is the position of the term in the filter, `steps` go from the top down.
    """

    index: int
    steps: tuple[Step, ...]


@dataclass(slots=True)
class FilterResult:
    """The entities that a filter selects.

    Shape: `left`: by level, the keys of the selected entities by the key of their parent. `whole`: by level, the keys
    of entities that are selected with everything below them. `passed`: by term and level, the keys of the entities for
    which the term's expressions down to that level hold.
    """

    filter: Filter
    left: dict[Level, dict[int, set[int]]] = field(default_factory=dict)
    whole: dict[Level, set[int]] = field(default_factory=dict)
    passed: dict[tuple[int, Level], set[int]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no entity is selected."""
        return not self.left and not self.whole

    def has(self, level: Level, key: int, parent: int) -> bool:
        """Return whether an entity is selected."""
        if parent in self.whole.get(level[:-1], ()):
            self.whole.setdefault(level, set()).add(key)
            return True
        return key in self.left.get(level, {}).get(parent, ())

    def count(self, level: Level, parent: int, every: int) -> int:
        """Return how many entities of a level are selected below a parent that has `every` of them in total."""
        return every if parent in self.whole.get(level[:-1], ()) else len(self.left.get(level, {}).get(parent, ()))

    def add(self, index: int, level: Level, parents: Sequence[int], keys: set[int]) -> None:
        """Add entities that a term selects, with everything below them.

        `parents` are the keys of the entities above, from the target down.
        """
        self._leave(index, level, parents[-1], keys)
        for up, (parent, key) in enumerate(zip(parents[-2::-1], parents[:0:-1], strict=True), 1):
            self._leave(index, level[:-up], parent, {key})
        if len(level) < 3:
            self.whole.setdefault(level, set()).update(keys)

    def _leave(self, index: int, level: Level, parent: int, keys: set[int]) -> None:
        self.left.setdefault(level, {}).setdefault(parent, set()).update(keys)
        self.passed.setdefault((index, level), set()).update(keys)

    def residual(self, level: Level, collection: str, parent: int) -> list[str]:
        """Return the terms of the filter for the URL of a collection below an entity; none if it needs no filter."""
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
        """Return whether a term's expressions on the level of an entity and above hold for the entity."""
        about = [expression.level for expression in self.filter[index] if len(expression.level) <= len(level)]
        return not about or key in self.passed.get((index, level), ())


class FilterEvaluation:
    """The evaluation of a filter for a target and the entities below it.

    `level` and `key` are those of the target entity; for a collection, those of the entity that contains it. `terms`
    are the terms that remain to be evaluated after `enter`.
    """

    def __init__(self, filter_: Filter, level: Level = (), key: int = 0) -> None:
        self.result = FilterResult(filter_)
        self.level, self.key = level, key
        self.terms: list[Term] = []

    def enter(self, entity: Mapping[str, Any] | None = None, meta: Mapping[str, Any] | None = None) -> None:
        """Evaluate the expressions on the target entity: its members and, for a Resource, those of its meta."""
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
    """Return whether an expression holds for an entity, or for its meta."""
    return expression.holds(meta if expression.meta else entity)


def _steps(expressions: Iterable[Expression]) -> tuple[Step, ...]:
    """Return the steps of expressions from the top down.

    There are none if the levels are not nested in each other, since no entity is then below all of them.
    """
    by_level: dict[Level, list[Expression]] = {}
    for expression in expressions:
        by_level.setdefault(expression.level, []).append(expression)
    levels = sorted(by_level, key=len)
    if any(levels[-1][: len(level)] != level for level in levels):
        return ()
    return tuple(Step(level, tuple(by_level[level])) for level in levels)
