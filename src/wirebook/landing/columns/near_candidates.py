"""The definitions that may be near misses of some messages, and how the values of a message differ from them.

Spec: docs/semantics.md D17-D20, D49; docs/decisions/0203-dead-letters-by-columns.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Final, NamedTuple

import pyarrow as pa

from wirebook.definitions.compile.definition import Constraint
from wirebook.definitions.compile.fit import Mismatch, ValueMatch, ValueMismatch, fit, mismatch_of, preview
from wirebook.definitions.match.selection import MAX_NEAR
from wirebook.landing.columns.match import CandidateFit, fit_column
from wirebook.landing.columns.patterns import SlotCheck, compile_check
from wirebook.landing.tables.reference_rows import reason_text

SlotKey = tuple[str, str]
"""Section and name of a slot."""


class Discrepancy(NamedTuple):
    """A difference between a message and a definition: a problem of the dead letter. If `actual` is None, the actual
    value is that of the slot."""

    code: str
    slot: str | None
    expected: str | None
    actual: str | None = None


FITS: Final = Discrepancy("fits", None, None)
CONFLICT: Final = Discrepancy("placeholder-conflict", None, None)
"""Stands for a placeholder with different values in several slots. The details depend on these values; see
`placeholder_conflicts`."""
UNDECIDED: Final = Discrepancy("undecided", None, None)
"""The reference must compare the message."""


@dataclass(frozen=True, eq=False)
class SlotConstraint:
    """A constraint on a slot, which several definitions may share, and the discrepancy if the slot is absent.

    `is_alone`: no other entry of the definition has the same repeated name. `is_list`: the value may be a
    comma-separated list. `by_class`: the constraint treats all values of a class alike (see `value_classes`).
    `discrepancies` caches the discrepancies that expect the declared value, by problem code.
    """

    slot_key: SlotKey
    constraint: Constraint
    if_absent: Discrepancy
    is_alone: bool = True
    is_list: bool = False
    by_class: bool = False
    discrepancies: dict[str, Discrepancy] = field(init=False, default_factory=dict)

    @cached_property
    def check(self) -> tuple[SlotCheck, list[str]] | None:
        """The column check of this constraint, and its texts; None if columns cannot check it."""
        return compile_check(self.constraint) if self.is_alone and not self.is_list else None

    def fit_column(self, texts: pa.StringArray) -> CandidateFit | None:
        """Compare many values; None if columns cannot compare them."""
        return self.check and fit_column(self.check[0], texts, [pa.scalar(text, pa.string()) for text in self.check[1]])

    def match(self, value: str) -> ValueMatch | ValueMismatch:
        return fit(self.constraint, value)

    def discrepancy(self, value: str | None) -> Discrepancy:
        """The discrepancy of a value: `FITS` if there is none, `UNDECIDED` if only the reference can compare it."""
        if value is None:
            return self.if_absent
        if not self.is_alone or (self.is_list and "," in value):
            return UNDECIDED
        result = self.match(value)
        if isinstance(result, ValueMatch):
            return FITS
        if result.expected is not self.constraint.declared:
            return discrepancy_of(mismatch_of(result.code, self.constraint, None, result.expected))
        if result.code not in self.discrepancies:
            self.discrepancies[result.code] = discrepancy_of(mismatch_of(result.code, self.constraint, None))
        return self.discrepancies[result.code]


@dataclass(frozen=True, eq=False)
class CandidateDefinition:
    """A definition that may be a near miss. If its protocol, envelope or mode differs, `discrepancy` says so, and the
    constraints are not compared."""

    definition: str
    discrepancy: Discrepancy | None
    constraints: tuple[SlotConstraint, ...]

    @cached_property
    def templates(self) -> tuple[SlotConstraint, ...]:
        """The constraints that bind placeholders."""
        return tuple(member for member in self.constraints if member.constraint.template is not None)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates for some messages. Each has a flag: whether its `type` differs from that of the messages."""

    ranked: tuple[tuple[bool, CandidateDefinition], ...]

    @cached_property
    def constraints(self) -> dict[SlotKey, tuple[SlotConstraint, ...]]:
        """All distinct constraints, by slot."""
        constraints: dict[SlotKey, dict[SlotConstraint, None]] = {}
        for _, candidate in self.ranked:
            for constraint in candidate.constraints:
                constraints.setdefault(constraint.slot_key, {})[constraint] = None
        return {slot_key: tuple(members) for slot_key, members in constraints.items()}


class NearCandidate(NamedTuple):
    """A near miss of messages that fail in the same way. Each discrepancy comes with the slot of its actual value."""

    candidate: CandidateDefinition
    discrepancies: tuple[tuple[Discrepancy, SlotKey | None], ...]


Shape = tuple[NearCandidate, ...] | None
"""The near misses of messages that fail in the same way, closest first; None if the reference must find them."""


def discrepancies_of_value(constraints: tuple[SlotConstraint, ...], value: str | None) -> tuple[Discrepancy, ...]:
    return tuple(constraint.discrepancy(value) for constraint in constraints)


def shape_of(candidates: Candidates, discrepancies: tuple[tuple[Discrepancy, ...], ...]) -> Shape:
    """The near misses among the candidates: those with the type of the message first, then those with the fewest
    problems. `discrepancies` has one tuple for each slot in `candidates.constraints`."""
    members = chain.from_iterable(candidates.constraints.values())
    of_constraint = dict(zip(members, chain.from_iterable(discrepancies), strict=True))
    near: list[tuple[bool, int, NearCandidate]] = []
    for has_other_type, candidate in candidates.ranked:
        problems: list[tuple[Discrepancy, SlotKey | None]] = []
        for constraint in candidate.constraints:
            discrepancy = of_constraint[constraint]
            if discrepancy is UNDECIDED:
                return None
            if discrepancy is not FITS:
                problems.append((discrepancy, constraint.slot_key))
        if not problems:
            problems = [(candidate.discrepancy or CONFLICT, None)]
        near.append((has_other_type, len(problems), NearCandidate(candidate, tuple(problems))))
    near.sort(key=itemgetter(0, 1))
    return tuple(member for _, _, member in near[:MAX_NEAR])


def discrepancy_of(mismatch: Mismatch) -> Discrepancy:
    return Discrepancy(
        mismatch.code, mismatch.slot, reason_text(preview(mismatch.expected)), reason_text(preview(mismatch.actual))
    )
