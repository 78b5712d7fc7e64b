"""Placeholder conflicts: a placeholder has different values in several slots of a message that otherwise fits the
definition.

Definitions whose templates differ only in their literal segments are compared with their messages at once, by the
column checks of matching. The functions of the reference compare messages one by one if there are only a few, or if
columns cannot decide.

Spec: docs/semantics.md D18-D20, D49; docs/decisions/0203-dead-letters-by-columns.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.definitions.compile.fit import ValueMatch
from wirebook.definitions.compile.uritemplate import PlaceholderConflict
from wirebook.definitions.match.matcher import Trial, bind_placeholders, conflict_mismatch
from wirebook.definitions.match.options import MatchOptions
from wirebook.landing.columns.caches import bounded_cache, from_cache
from wirebook.landing.columns.match import fit_column
from wirebook.landing.columns.near_candidates import (
    CandidateDefinition,
    Discrepancy,
    SlotConstraint,
    SlotKey,
    discrepancy_of,
)
from wirebook.landing.columns.near_miss_rows import Slots, previews
from wirebook.landing.columns.patterns import SlotCheck
from wirebook.landing.columns.slot_columns import Rows, distinct, mask_of

MIN_BY_COLUMNS: Final = 32
"""The minimum number of messages, for templates of the same structure, to compare them by columns."""


class TemplateCheck(NamedTuple):
    """The check of a template without its literal segments: its slot, its placeholders and the check of its values."""

    slot_key: SlotKey
    label: str
    names: tuple[str, ...]
    check: SlotCheck


@dataclass(frozen=True, slots=True, eq=False)
class TemplateStructure:
    """The templates of a definition, without their literal segments. Definitions with the same structure share one
    object, so that structures can be compared by identity."""

    checks: tuple[TemplateCheck, ...]


class ConflictFinder:
    """Finds the placeholder conflicts of messages."""

    def __init__(self, options: MatchOptions) -> None:
        self._options = options
        self._structures: dict[tuple[TemplateCheck, ...], TemplateStructure] = {}
        self._structure_of = bounded_cache(self._structure)
        self._matches_of = bounded_cache(SlotConstraint.match)
        self._conflict_of = bounded_cache(_conflict)

    def find(
        self, slots: Slots, candidates: Sequence[CandidateDefinition], numbers: Rows, rows: Rows
    ) -> list[Discrepancy | None]:
        """The first conflict of each message in `rows` with its candidate, whose position in `candidates` is at the
        same place in `numbers`; None if only the reference can find it. The messages must have all values that the
        candidates require."""
        found: list[Discrepancy | None] = [None] * len(rows)
        structures, structure_of = distinct([self._structure_of(candidate) for candidate in candidates])
        order = np.argsort(structure_of[numbers], kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(structure_of[numbers][order])) + 1):
            structure = structures[structure_of[numbers[places[0]]]] if len(places) >= MIN_BY_COLUMNS else None
            if structure is not None:
                first, member = np.unique(numbers[places], return_inverse=True)
                texts = [_literals(candidates[number]) for number in first.tolist()]
                for place, conflict in self._by_columns(slots, structure, texts, member, rows[places]):
                    found[places[place]] = conflict
        return [
            conflict or self._by_reference(slots, candidates[number], row)
            for conflict, number, row in zip(found, numbers.tolist(), rows.tolist(), strict=True)
        ]

    def _structure(self, candidate: CandidateDefinition) -> TemplateStructure | None:
        """The structure of the templates of a definition; None if columns cannot compare them."""
        checks = []
        for member in candidate.templates:
            template = member.constraint.template
            if member.check is None or template is None:
                return None
            checks.append(TemplateCheck(member.slot_key, member.constraint.label, template.names, member.check[0]))
        key = tuple(checks)
        return self._structures.setdefault(key, TemplateStructure(key))

    def _by_columns(
        self, slots: Slots, structure: TemplateStructure, texts: Sequence[Sequence[str]], member: Rows, rows: Rows
    ) -> Iterator[tuple[int, Discrepancy]]:
        """The first conflict of each row, with the position of the row, where columns can decide.

        `texts` has the literal segments of each definition; `member` has the position of each row's definition in it.
        """
        literals = iter([pa.array(column, pa.string()).take(pa.array(member)) for column in zip(*texts, strict=True)])
        certain, has_conflict = np.ones(len(rows), bool), np.zeros(len(rows), bool)
        bound, conflicts = dict[str, tuple[str, pa.StringArray]](), list[tuple[int, Discrepancy]]()
        for slot_key, label, names, check in structure.checks:
            encoded = slots.encoded(slot_key)
            if encoded is None:
                return
            codes = encoded.codes[rows]
            values = pa.concat_arrays([pa.array([""]), encoded.texts]).take(pa.array(codes))
            fit = fit_column(check, values, [next(literals) for _ in range(check.literals)])
            certain &= fit.fits & fit.certain & (codes > 0)
            for name, captured in zip(names, fit.captures.values(), strict=True):
                first_label, first = bound.setdefault(name, (label, captured))
                contradicting = np.flatnonzero(certain & ~has_conflict & mask_of(pc.not_equal(first, captured)))
                has_conflict[contradicting] = True
                chosen = pa.array(contradicting)
                for row, expected, actual in zip(
                    contradicting.tolist(),
                    first.take(chosen).to_pylist(),
                    previews(captured.take(chosen)).to_pylist(),
                    strict=True,
                ):
                    conflict = from_cache(self._conflict_of, _conflict, name, first_label, label, expected)
                    conflicts.append((row, Discrepancy(conflict.code, conflict.slot, conflict.expected, actual)))
        yield from ((row, conflict) for row, conflict in conflicts if certain[row])

    def _by_reference(self, slots: Slots, candidate: CandidateDefinition, row: int) -> Discrepancy | None:
        trial = Trial(self._options, inf)
        for member in candidate.templates:
            value = slots.value(member.slot_key, row)
            if value is not None:
                match = from_cache(self._matches_of, SlotConstraint.match, member, value)
                if not isinstance(match, ValueMatch):
                    return None
                trial.accept(member.constraint, match, value)
        bind_placeholders(trial)
        return discrepancy_of(trial.mismatches[0]) if trial.mismatches else None


def _literals(candidate: CandidateDefinition) -> list[str]:
    """The literal segments of all templates of a definition that has a structure."""
    return [text for member in candidate.templates if member.check for text in member.check[1]]


def _conflict(name: str, first_slot: str, second_slot: str, first: str) -> Discrepancy:
    """The conflict of a placeholder, without the value in the second slot."""
    return discrepancy_of(conflict_mismatch(PlaceholderConflict(name, first_slot, first, second_slot, "")))
