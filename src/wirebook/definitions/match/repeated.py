"""Repeated names: which header line, query item or user property each declared entry takes.

An entry takes one instance of its name. The placeholders that other slots bind decide which (D18, D33): with
``key: {x}`` = 2 and the headers ``h: 1`` and ``h: 2``, the entry ``h: {x}`` takes the second.

Choices are narrowed until nothing changes; then the first open choice takes its first instance. Nothing is tried twice.
Cost: linear in the instances for each declared entry and each placeholder of its template.

Spec: docs/semantics.md D18, D30, D32, D33
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from operator import eq
from typing import Any, NamedTuple

from wirebook.definitions.compile.definition import Constraint
from wirebook.definitions.compile.uritemplate import (
    PlaceholderConflict,
    Solver,
    Split,
    Template,
    UnsolvedSegment,
    units_of,
)

MAX_MOVES = 100  # of entries that make room for one more


class Instance(NamedTuple):
    """A line of a repeated name, or one member of a comma-separated line; `member` None is the whole line."""

    value: Any
    line: int
    member: int | None = None

    def overlaps(self, other: Instance) -> bool:
        return self.line == other.line and (self.member == other.member or None in (self.member, other.member))


class Candidate(NamedTuple):
    """An instance that fits an entry by itself.

    Shape: where the entry is a template, `split` is how it reads `text`, and `keys` has the placeholders' texts as they
    compare; None when they contradict each other or the text can be split in several ways.
    """

    instance: Instance
    text: str = ""
    split: Split | None = None
    keys: dict[str, str] | None = None

    @classmethod
    def of(cls, instance: Instance, template: Template | None, text: str, split: Split | None) -> Candidate:
        if template is None or split is None or not split.unique:
            return cls(instance, text, split)
        texts = template.keys(split)
        keys = dict(zip(template.names, texts, strict=True))
        is_plain = len(keys) == len(texts) or all(map(eq, map(keys.get, template.names), texts))
        return cls(instance, text, split, keys if is_plain else None)


@dataclass(eq=False)
class Choice:
    """One declared entry and the instances that it may take.

    Shape: `group` numbers the entries of one name; with `each`, an instance belongs to at most one of them.
    """

    constraint: Constraint
    group: int
    each: bool
    candidates: list[Candidate]
    every: list[Candidate] = field(init=False)

    def __post_init__(self) -> None:
        self.every = self.candidates

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self.constraint.template.names if self.constraint.template else ())

    def units(self, candidate: Candidate) -> list[UnsolvedSegment]:
        template = self.constraint.template
        return list(units_of(self.constraint.label, template, candidate.text)) if template else []


def instances_of(values: Sequence[Any], *, lists: bool) -> list[Instance]:
    """The lines, then the members of those that are comma-separated lists (D30)."""
    found = [Instance(value, line) for line, value in enumerate(values)]
    for line, value in enumerate(values) if lists else ():
        found += (Instance(member, line, place) for place, member in enumerate(members(value)))
    return found


def members(line: Any) -> list[str]:
    """The comma-separated members of a field line; a comma inside quotes separates nothing. One member is none."""
    if not isinstance(line, str) or "," not in line:
        return []
    found, quoted, start = [], False, 0
    for index, char in enumerate(line):
        if char == '"' and (index == 0 or line[index - 1] != "\\"):
            quoted = not quoted
        elif char == "," and not quoted:
            found.append(line[start:index].strip(" \t"))
            start = index + 1
    found.append(line[start:].strip(" \t"))
    return [member for member in found if member] if len(found) > 1 else []


# -- an instance for each entry -------------------------------------------------------------------------------------


class Taken:
    """The instances in use: a whole line excludes its members, and the other way round."""

    def __init__(self) -> None:
        self.lines: dict[int, Choice] = {}
        self.parts: dict[int, dict[int, Choice]] = {}

    @classmethod
    def of(cls, chosen: Mapping[Choice, Candidate]) -> Taken:
        taken = cls()
        for choice, candidate in chosen.items():
            taken.take(choice, candidate.instance)
        return taken

    def take(self, choice: Choice, instance: Instance) -> None:
        if instance.member is None:
            self.lines[instance.line] = choice
        else:
            self.parts.setdefault(instance.line, {})[instance.member] = choice

    def release(self, instance: Instance) -> None:
        if instance.member is None:
            del self.lines[instance.line]
        else:
            del self.parts[instance.line][instance.member]

    def holders(self, instance: Instance) -> list[Choice]:
        """The choices that keep the instance from being taken."""
        whole, parts = self.lines.get(instance.line), self.parts.get(instance.line) or {}
        found = list(parts.values()) if instance.member is None else [parts.get(instance.member)]
        return [each for each in (whole, *found) if each is not None]


class Assignment:
    """An instance of its own for each choice of a group, as far as there are enough (augmenting paths)."""

    def __init__(self, taken: Taken) -> None:
        self.taken = taken
        self.chosen: dict[Choice, Candidate] = {}

    def place(self, choice: Choice) -> bool:
        """Give `choice` its first free candidate, or move others so that one becomes free."""
        return self._place(choice, {(choice, True), (choice, False)})

    def _place(self, choice: Choice, tried: set[tuple[Choice, bool]]) -> bool:
        for candidate in choice.candidates:
            if not self.taken.holders(candidate.instance):
                self._take(choice, candidate)
                return True
        for candidate in choice.candidates:
            holders = self.taken.holders(candidate.instance)
            move = (holders[0], candidate.instance.member is None)
            if len(holders) != 1 or move in tried or holders[0] not in self.chosen:
                continue
            if len(tried) > MAX_MOVES:
                return False
            holder, before = holders[0], self.chosen[holders[0]]
            tried.add(move)
            self._release(holder)
            self._take(choice, candidate)
            if self._place(holder, tried):
                return True
            self._release(choice)
            self._take(holder, before)
        return False

    def _take(self, choice: Choice, candidate: Candidate) -> None:
        self.chosen[choice] = candidate
        self.taken.take(choice, candidate.instance)

    def _release(self, choice: Choice) -> None:
        self.taken.release(self.chosen.pop(choice).instance)


def assigned(choices: Sequence[Choice]) -> dict[Choice, Candidate]:
    """A candidate for each choice of one group that can have one; earlier choices come first."""
    if not choices or not choices[0].each:
        return {choice: choice.candidates[0] for choice in choices if choice.candidates}
    assignment = Assignment(Taken())
    for choice in choices:
        assignment.place(choice)
    return assignment.chosen


# -- with what other slots bind -------------------------------------------------------------------------------------


class Settled(NamedTuple):
    """The candidates taken; `failed` is the choice that is left without one.

    Shape: `conflict`, if known, says why, with the `value` that contradicts.
    Contradictions among the segments are in the solver's solution.
    """

    chosen: dict[Choice, Candidate]
    failed: Choice | None = None
    conflict: PlaceholderConflict | None = None
    value: Any = None


class Settling:
    """Settles all choices of a message; `solver` has the segments of the slots that leave none."""

    def __init__(self, choices: Sequence[Choice], solver: Solver) -> None:
        self.open = list(choices)
        self.solver = solver
        self.chosen: dict[Choice, Candidate] = {}
        self.failed: Choice | None = None

    def run(self) -> Settled:
        """Narrow, take what is decided, and where nothing is, the first candidate of the first open choice."""
        changed: AbstractSet[str] | None = None
        last: tuple[Choice, Candidate] | None = None
        while self.open and self.solver.solution.conflict is None and self._narrow(changed, last):
            known = frozenset(self.solver.known)
            choice = next((each for each in self.open if len(each.candidates) == 1), self.open[0])
            last = choice, self._first(choice)
            self._take(*last)
            changed = self.solver.known.keys() - known
        conflict, value = self._conflict(self.failed) if self.failed else (None, None)
        return Settled(self.chosen, self.failed, conflict, value)

    def _take(self, choice: Choice, candidate: Candidate) -> None:
        self.open.remove(choice)
        self.chosen[choice] = candidate
        self.solver.add(choice.units(candidate))

    # -- narrowing --------------------------------------------------------------------------------------------------

    def _narrow(self, changed: AbstractSet[str] | None, last: tuple[Choice, Candidate] | None) -> bool:
        """Drop the candidates that cannot be taken any more; False when a choice is left without one.

        `last` is what was taken since the last time, and `changed` the placeholders that it bound; None the first time.
        """
        for choice in self.open:
            kept = choice.candidates
            if last is not None and choice.each and choice.group == last[0].group:
                kept = [each for each in kept if not each.instance.overlaps(last[1].instance)]
            if changed is None or not changed.isdisjoint(choice.names):
                kept = [each for each in kept if self._agrees(choice, each)]
            if not kept:
                self.failed = choice
                return False
            choice.candidates = kept
        self._intersect()
        groups = dict.fromkeys(choice.group for choice in self.open if choice.each)
        self.failed = next(filter(None, map(self._left_over, groups)), None)
        return self.failed is None

    def _taken(self, group: int) -> Taken:
        """The instances that entries of a group have."""
        return Taken.of({each: candidate for each, candidate in self.chosen.items() if each.group == group})

    def _agrees(self, choice: Choice, candidate: Candidate) -> bool:
        keys, known = candidate.keys, self.solver.known
        if not choice.names:
            return True
        if keys is not None and any(name in known and known[name][1].key != key for name, key in keys.items()):
            return False
        if keys is not None and all(choice.names.isdisjoint(unit.piece.names) for unit in self.solver.waiting):
            return True
        return self.solver.admits(choice.units(candidate))

    def _intersect(self) -> None:
        """Keep the texts of a placeholder that every open choice with it offers, until nothing changes."""
        uses = Counter(name for choice in self.open for name in choice.names)
        shared = [name for name, count in uses.items() if count > 1]
        for _ in self.open if shared else ():
            changed = [self._intersect_name(name) for name in shared]
            if not any(changed):
                return

    def _intersect_name(self, name: str) -> bool:
        choices = [choice for choice in self.open if name in choice.names]
        texts = [[c.keys and c.keys[name] for c in choice.candidates] for choice in choices]
        certain = [set(offered) for offered in texts if None not in offered]
        common = set.intersection(*certain) if certain else set()
        if not common:  # nothing is certain, or they contradict each other: then one is taken and the other reported
            return False
        changed = False
        for choice, offered in zip(choices, texts, strict=True):
            pairs = zip(choice.candidates, offered, strict=True)
            kept = [pair for pair, text in pairs if text is None or text in common]
            changed = changed or len(kept) < len(choice.candidates)
            choice.candidates = kept
        return changed

    def _left_over(self, group: int, choice: Choice | None = None, candidate: Candidate | None = None) -> Choice | None:
        """The first open choice of a group that gets no instance of its own, if `choice` takes `candidate`."""
        assignment = Assignment(self._taken(group))
        if choice is not None and candidate is not None:
            assignment.taken.take(choice, candidate.instance)
        others = [each for each in self.open if each.group == group and each is not choice]
        return next((other for other in others if not assignment.place(other)), None)

    def _first(self, choice: Choice) -> Candidate:
        """The first candidate that no other entry has and that leaves the others one each; else the first."""
        if choice.each:
            leaving = (
                candidate for candidate in choice.candidates if self._left_over(choice.group, choice, candidate) is None
            )
            return next(leaving, choice.candidates[0])
        used = {each.instance[1:] for other, each in self.chosen.items() if other.group == choice.group}
        return next(
            (candidate for candidate in choice.candidates if candidate.instance[1:] not in used), choice.candidates[0]
        )

    # -- reporting --------------------------------------------------------------------------------------------------

    def _conflict(self, choice: Choice) -> tuple[PlaceholderConflict | None, Any]:
        """How the choice contradicts what is known: by the first free instance that does, which comes with it."""
        known = self.solver.known
        taken = self._taken(choice.group) if choice.each else Taken()
        free = (each for each in choice.every if not taken.holders(each.instance))
        for candidate, unit in ((each, unit) for each in free for unit in choice.units(each)):
            for bound in unit.read():
                if bound.name in known and known[bound.name][1].key != bound.key:
                    first_unit, first = known[bound.name]
                    conflict = PlaceholderConflict(bound.name, first_unit.slot, first.value, unit.slot, bound.value)
                    return conflict, candidate.instance.value
        return None, None
