"""Content models as regular expressions over element names, and whether one includes another.

Shape: an expression is a tuple: (SYMBOL, name), (SEQUENCE, parts), (CHOICE, parts), (REPEAT, part, least, most or
None), (ALL, parts), EMPTY (accepts only the empty content), or NOTHING (accepts no content).

Rule: inclusion by Brzozowski derivatives. The new model must accept each element that the old one accepts, and after it
everything that may follow; where the old model may end, the new one must be able to end. The result is exact, because
content models are deterministic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from wirebook.schema.incompatibilities import Steps

SYMBOL, SEQUENCE, CHOICE, REPEAT, ALL = "symbol", "sequence", "choice", "repeat", "all"
Model = tuple[Any, ...]
EMPTY: Model = ("empty",)
NOTHING: Model = ("nothing",)
Accepts = Callable[[Any, Any], bool]
"""Whether a symbol of a model accepts a symbol of a document."""


@dataclass(frozen=True)
class Difference:
    """A place where the new model is narrower.

    Shape: after the elements `word` (the first 8 at most), the old model accepts `symbol` (None: the end), and the new
    one only `expected`.
    """

    word: tuple[Any, ...]
    symbol: Any
    expected: tuple[Any, ...]


def sequence(parts: list[Model]) -> Model:
    """Return the model of all parts, in order."""
    flat = [inner for part in parts for inner in (part[1] if part[0] == SEQUENCE else (part,)) if inner != EMPTY]
    if NOTHING in flat:
        return NOTHING
    return (SEQUENCE, tuple(flat)) if len(flat) > 1 else (flat[0] if flat else EMPTY)


def choice(parts: list[Model]) -> Model:
    """Return the model of one of the parts."""
    flat = [inner for part in parts for inner in (part[1] if part[0] == CHOICE else (part,)) if inner != NOTHING]
    once = tuple(dict.fromkeys(flat))
    return (CHOICE, once) if len(once) > 1 else (once[0] if once else NOTHING)


def repeat(part: Model, least: int, most: int | None) -> Model:
    """Return the model of a repeated part. If `most` is None, it is unbounded."""
    if most == 0 or part == EMPTY:
        return EMPTY
    if part == NOTHING:
        return EMPTY if least == 0 else NOTHING
    return part if least == most == 1 else (REPEAT, part, least, most)


def interleaved(parts: list[Model]) -> Model:
    """Return the model of all parts, in any order."""
    remaining = tuple(part for part in parts if part != EMPTY)
    if NOTHING in remaining:
        return NOTHING
    return (ALL, remaining) if len(remaining) > 1 else (remaining[0] if remaining else EMPTY)


def may_end(model: Model) -> bool:
    """Whether a model accepts the empty content."""
    kind = model[0]
    if kind in (SEQUENCE, ALL):
        return all(map(may_end, model[1]))
    if kind == CHOICE:
        return any(map(may_end, model[1]))
    if kind == REPEAT:
        return model[2] == 0 or may_end(model[1])
    return bool(model == EMPTY)


def first(model: Model) -> Iterator[Any]:
    """Yield the symbols that a model may begin with."""
    kind = model[0]
    if kind == SYMBOL:
        yield model[1]
    elif kind == REPEAT:
        yield from first(model[1])
    elif kind == SEQUENCE:
        for part in model[1]:
            yield from first(part)
            if not may_end(part):
                return
    elif kind in (CHOICE, ALL):
        for part in model[1]:
            yield from first(part)


def symbols(model: Model) -> Iterator[Any]:
    """Yield all symbols of a model."""
    if model[0] == SYMBOL:
        yield model[1]
    elif model[0] == REPEAT:
        yield from symbols(model[1])
    elif model[0] in (SEQUENCE, CHOICE, ALL):
        for part in model[1]:
            yield from symbols(part)


@dataclass
class Inclusion:
    """Compares models. `accepts` decides whether a symbol of the new model accepts a symbol of the old one."""

    accepts: Accepts
    steps: Steps
    known: dict[Any, Model] = field(default_factory=dict)

    def difference(self, old: Model, new: Model) -> Difference | None:
        """Return where the new model does not accept what the old one does; None if it always does.

        Raises: TooComplexError
        """
        if self._is_within(old, new):
            return None
        waiting: deque[tuple[Model, Model, tuple[Any, ...]]] = deque([(old, new, ())])
        seen = {(old, new)}
        while waiting:
            before, after, word = waiting.popleft()
            if may_end(before) and not may_end(after):
                return Difference(word, None, tuple(first(after)))
            for symbol in dict.fromkeys(first(before)):
                pair = (self._after(before, symbol, _is_same), self._after(after, symbol, self.accepts))
                if pair[1] == NOTHING:
                    return Difference(word, symbol, tuple(first(after)))
                if pair not in seen:
                    self.steps.take(1 + len(seen) // 1000)
                    seen.add(pair)
                    waiting.append((*pair, (*word, symbol)[:8]))
        return None

    def _is_within(self, old: Model, new: Model) -> bool:
        """Whether comparing part by part proves inclusion.

        This also works for numbers of occurrences that are too large to enumerate.
        """
        self.steps.take()
        if old == new:
            return True
        if new[0] == REPEAT and old[0] != REPEAT:
            old = (REPEAT, old, 1, 1)
        if old[0] != new[0]:
            return False
        if old[0] == SYMBOL:
            return self.accepts(new[1], old[1])
        if old[0] == REPEAT:
            most = new[3] is None or (old[3] is not None and old[3] <= new[3])
            return bool(new[2] <= old[2] and most and self._is_within(old[1], new[1]))
        if old[0] not in (SEQUENCE, ALL) or len(old[1]) != len(new[1]):
            return False
        return all(self._is_within(*pair) for pair in zip(old[1], new[1], strict=True))

    def _after(self, model: Model, symbol: Any, accepts: Accepts) -> Model:
        """Return the model of what may follow a symbol: the derivative."""
        key = (accepts is _is_same, model, symbol)
        if key not in self.known:
            self.steps.take()
            self.known[key] = self._derived(model, symbol, accepts)
        return self.known[key]

    def _derived(self, model: Model, symbol: Any, accepts: Accepts) -> Model:
        kind = model[0]
        if kind == SYMBOL:
            return EMPTY if accepts(model[1], symbol) else NOTHING
        if kind == CHOICE:
            return choice([self._after(inner, symbol, accepts) for inner in model[1]])
        if kind == REPEAT:
            _, part, least, most = model
            rest = repeat(part, max(least - 1, 0), None if most is None else most - 1)
            return sequence([self._after(part, symbol, accepts), rest])
        if kind == SEQUENCE:
            alternatives: list[Model] = []
            for at, inner in enumerate(model[1]):
                alternatives.append(sequence([self._after(inner, symbol, accepts), *model[1][at + 1 :]]))
                if not may_end(inner):
                    break
            return choice(alternatives)
        if kind == ALL:
            parts = model[1]
            return choice([
                interleaved([self._after(inner, symbol, accepts), *parts[:at], *parts[at + 1 :]])
                for at, inner in enumerate(parts)
            ])  # fmt: skip
        return NOTHING


def _is_same(one: Any, other: Any) -> bool:
    return bool(one == other)
