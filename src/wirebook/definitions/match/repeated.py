"""Choose the instance (header line, query item, user property) that each declared entry of a repeated name matches.

The choice depends on the placeholders of other slots (D18, D33): with the key ``{x}`` = 2 and the headers ``h: 1`` and
``h: 2``, the entry ``h: {x}`` matches the second line.

Algorithm: remove the candidates that contradict known placeholders until nothing changes, then choose a candidate for
one open entry; repeat. There is no backtracking over placeholders. Cost: linear in the number of instances for each
entry and each placeholder of its template.

Spec: docs/semantics.md D18, D30, D32, D33
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from operator import eq
from typing import Any, Final, NamedTuple

from wirebook.definitions.compile.definition import Constraint
from wirebook.definitions.compile.uritemplate import (
    PlaceholderConflict,
    Solver,
    Split,
    Template,
    UnsolvedSegment,
    units_of,
)

MAX_MOVES: Final = 100
"""Maximum number of entries that are moved to other instances to free one for another entry."""


class Instance(NamedTuple):
    """A line of a repeated name (`member` is None), or one member of a comma-separated line."""

    value: Any
    line: int
    member: int | None = None

    def overlaps(self, other: Instance) -> bool:
        return self.line == other.line and (self.member == other.member or None in (self.member, other.member))


class Candidate(NamedTuple):
    """An instance that satisfies the constraint of an entry.

    For a template, `split` has the captured placeholders of `text`, and `keys` their values in the form that is
    compared. `keys` is None if a placeholder has two values, or if the text can be split in several ways.
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
    """A declared entry and the instances that it may match.

    Entries of one name have the same `group` number. `exclusive`: no two of them match the same instance.
    `candidates` are the remaining candidates, `all_candidates` those at the start.
    """

    constraint: Constraint
    group: int
    exclusive: bool
    candidates: list[Candidate]
    all_candidates: list[Candidate] = field(init=False)

    def __post_init__(self) -> None:
        self.all_candidates = self.candidates

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self.constraint.template.names if self.constraint.template else ())

    def units(self, candidate: Candidate) -> list[UnsolvedSegment]:
        template = self.constraint.template
        return list(units_of(self.constraint.label, template, candidate.text)) if template else []


def instances_of(values: Sequence[Any], *, lists: bool) -> list[Instance]:
    """The lines; if `lists` is set, followed by the members of comma-separated lines (D30)."""
    instances = [Instance(value, line) for line, value in enumerate(values)]
    if lists:
        for line, value in enumerate(values):
            instances += (Instance(member, line, number) for number, member in enumerate(list_members(value)))
    return instances


def list_members(line: Any) -> list[str]:
    """The members of a comma-separated line, or an empty list if it has only one.

    Commas inside double quotes do not separate members; empty members are dropped.
    """
    if not isinstance(line, str) or "," not in line:
        return []
    members, is_quoted, start = [], False, 0
    for index, character in enumerate(line):
        if character == '"' and (index == 0 or line[index - 1] != "\\"):
            is_quoted = not is_quoted
        elif character == "," and not is_quoted:
            members.append(line[start:index].strip(" \t"))
            start = index + 1
    members.append(line[start:].strip(" \t"))
    return [member for member in members if member] if len(members) > 1 else []


# -- assignment -----------------------------------------------------------------------------------------------------


class Assignment:
    """Instances assigned to choices. An assigned line excludes its members, and an assigned member its line.

    `assign` uses augmenting paths (bipartite matching) to find an instance for as many choices as possible.
    """

    def __init__(self) -> None:
        self.chosen: dict[Choice, Candidate] = {}
        self._lines: dict[int, Choice] = {}
        self._members: dict[int, dict[int, Choice]] = {}

    @classmethod
    def of(cls, chosen: Mapping[Choice, Candidate]) -> Assignment:
        assignment = cls()
        for choice, candidate in chosen.items():
            assignment.reserve(choice, candidate.instance)
        return assignment

    def reserve(self, choice: Choice, instance: Instance) -> None:
        """Assign an instance that `assign` must not move to another choice."""
        if instance.member is None:
            self._lines[instance.line] = choice
        else:
            self._members.setdefault(instance.line, {})[instance.member] = choice

    def holders(self, instance: Instance) -> list[Choice]:
        """The choices to which the instance, its line or one of its members is assigned."""
        members = self._members.get(instance.line) or {}
        holders = [self._lines.get(instance.line)]
        holders += members.values() if instance.member is None else [members.get(instance.member)]
        return [holder for holder in holders if holder is not None]

    def assign(self, choice: Choice) -> bool:
        """Assign the first free candidate of `choice`, else move other choices to free one; return whether it works."""
        return self._assign(choice, {(choice, True), (choice, False)})

    def _assign(self, choice: Choice, moved: set[tuple[Choice, bool]]) -> bool:
        for candidate in choice.candidates:
            if not self.holders(candidate.instance):
                self._put(choice, candidate)
                return True
        for candidate in choice.candidates:
            holders = self.holders(candidate.instance)
            move = (holders[0], candidate.instance.member is None)
            if len(holders) != 1 or move in moved or holders[0] not in self.chosen:
                continue
            if len(moved) > MAX_MOVES:
                return False
            holder, previous = holders[0], self.chosen[holders[0]]
            moved.add(move)
            self._remove(holder)
            self._put(choice, candidate)
            if self._assign(holder, moved):
                return True
            self._remove(choice)
            self._put(holder, previous)
        return False

    def _put(self, choice: Choice, candidate: Candidate) -> None:
        self.chosen[choice] = candidate
        self.reserve(choice, candidate.instance)

    def _remove(self, choice: Choice) -> None:
        instance = self.chosen.pop(choice).instance
        if instance.member is None:
            del self._lines[instance.line]
        else:
            del self._members[instance.line][instance.member]


def assign_first(choices: Sequence[Choice]) -> dict[Choice, Candidate]:
    """Assign a candidate to as many choices of one group as possible. Earlier choices take precedence."""
    if not choices or not choices[0].exclusive:
        return {choice: choice.candidates[0] for choice in choices if choice.candidates}
    assignment = Assignment()
    for choice in choices:
        assignment.assign(choice)
    return assignment.chosen


# -- choices and placeholders ---------------------------------------------------------------------------------------


class ChoiceSolution(NamedTuple):
    """The chosen candidates. `failed` is the choice for which no candidate is left.

    `conflict` is the placeholder conflict that explains the failure, if known, and `value` the contradicting value.
    Conflicts between slots without choices are in the solution of the `Solver`.
    """

    chosen: dict[Choice, Candidate]
    failed: Choice | None = None
    conflict: PlaceholderConflict | None = None
    value: Any = None


class ChoiceSolver:
    """Solves all choices of a message. `solver` has the segments of the slots without choices."""

    def __init__(self, choices: Sequence[Choice], solver: Solver) -> None:
        self.open = list(choices)
        self.solver = solver
        self.chosen: dict[Choice, Candidate] = {}
        self.failed: Choice | None = None

    def solve(self) -> ChoiceSolution:
        """Choose a candidate for every choice. Choices with one candidate come first, then the first open choice."""
        newly_bound: AbstractSet[str] | None = None
        last: tuple[Choice, Candidate] | None = None
        while self.open and self.solver.solution.conflict is None and self._narrow(newly_bound, last):
            known = frozenset(self.solver.known)
            choice = next((choice for choice in self.open if len(choice.candidates) == 1), self.open[0])
            candidate = self._first_candidate(choice)
            self.open.remove(choice)
            self.chosen[choice] = candidate
            self.solver.add(choice.units(candidate))
            last, newly_bound = (choice, candidate), self.solver.known.keys() - known
        conflict, value = self._conflict(self.failed) if self.failed else (None, None)
        return ChoiceSolution(self.chosen, self.failed, conflict, value)

    # -- narrowing --------------------------------------------------------------------------------------------------

    def _narrow(self, newly_bound: AbstractSet[str] | None, last: tuple[Choice, Candidate] | None) -> bool:
        """Remove the candidates that are no longer possible. Return False if a choice has none left.

        `last` is the previous choice, and `newly_bound` the placeholders that it bound; both are None at first.
        """
        for choice in self.open:
            candidates = choice.candidates
            if last is not None and choice.exclusive and choice.group == last[0].group:
                used = last[1].instance
                candidates = [candidate for candidate in candidates if not candidate.instance.overlaps(used)]
            if newly_bound is None or not newly_bound.isdisjoint(choice.names):
                candidates = [candidate for candidate in candidates if self._agrees(choice, candidate)]
            if not candidates:
                self.failed = choice
                return False
            choice.candidates = candidates
        self._intersect()
        groups = dict.fromkeys(choice.group for choice in self.open if choice.exclusive)
        self.failed = next(filter(None, map(self._unassignable, groups)), None)
        return self.failed is None

    def _agrees(self, choice: Choice, candidate: Candidate) -> bool:
        """Whether a candidate agrees with the known placeholders."""
        keys, known = candidate.keys, self.solver.known
        if not choice.names:
            return True
        if keys is not None and any(name in known and known[name][1].key != key for name, key in keys.items()):
            return False
        if keys is not None and all(choice.names.isdisjoint(unit.piece.names) for unit in self.solver.waiting):
            return True
        return self.solver.admits(choice.units(candidate))

    def _intersect(self) -> None:
        """For placeholders that open choices share, keep only values that all of them allow, until nothing changes."""
        uses = Counter(name for choice in self.open for name in choice.names)
        shared = [name for name, count in uses.items() if count > 1]
        for _ in self.open if shared else ():
            has_changed = [self._intersect_name(name) for name in shared]
            if not any(has_changed):
                return

    def _intersect_name(self, name: str) -> bool:
        choices = [choice for choice in self.open if name in choice.names]
        values = [[candidate.keys and candidate.keys[name] for candidate in choice.candidates] for choice in choices]
        certain = [set(offered) for offered in values if None not in offered]
        common = set.intersection(*certain) if certain else set()
        if not common:  # nothing is certain, or the choices contradict each other: one is chosen, the other reported
            return False
        has_changed = False
        for choice, offered in zip(choices, values, strict=True):
            pairs = zip(choice.candidates, offered, strict=True)
            candidates = [candidate for candidate, value in pairs if value is None or value in common]
            has_changed = has_changed or len(candidates) < len(choice.candidates)
            choice.candidates = candidates
        return has_changed

    def _assignment_of(self, group: int) -> Assignment:
        """The instances assigned to the choices of a group so far."""
        return Assignment.of({choice: candidate for choice, candidate in self.chosen.items() if choice.group == group})

    def _unassignable(
        self, group: int, choice: Choice | None = None, candidate: Candidate | None = None
    ) -> Choice | None:
        """The first open choice of a group for which no instance is left if `candidate` is assigned to `choice`."""
        assignment = self._assignment_of(group)
        if choice is not None and candidate is not None:
            assignment.reserve(choice, candidate.instance)
        others = [other for other in self.open if other.group == group and other is not choice]
        return next((other for other in others if not assignment.assign(other)), None)

    def _first_candidate(self, choice: Choice) -> Candidate:
        """The first free candidate that leaves one for every other choice; else the first candidate."""
        if choice.exclusive:
            possible = (
                candidate
                for candidate in choice.candidates
                if self._unassignable(choice.group, choice, candidate) is None
            )
        else:
            used = {used.instance[1:] for other, used in self.chosen.items() if other.group == choice.group}
            possible = (candidate for candidate in choice.candidates if candidate.instance[1:] not in used)
        return next(possible, choice.candidates[0])

    # -- reporting --------------------------------------------------------------------------------------------------

    def _conflict(self, choice: Choice) -> tuple[PlaceholderConflict | None, Any]:
        """The first conflict of a free instance, with known placeholders or within itself, and the instance's value."""
        in_use = self._assignment_of(choice.group) if choice.exclusive else Assignment()
        free = (candidate for candidate in choice.all_candidates if not in_use.holders(candidate.instance))
        for candidate in free:
            for unit in choice.units(candidate):
                known = dict(self.solver.known)
                for bound in unit.read():
                    first_unit, first = known.setdefault(bound.name, (unit, bound))
                    if first.key != bound.key:
                        conflict = PlaceholderConflict(bound.name, first_unit.slot, first.value, unit.slot, bound.value)
                        return conflict, candidate.instance.value
        return None, None
