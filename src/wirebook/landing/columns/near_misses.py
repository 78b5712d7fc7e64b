"""Near misses by columns: what `Selector` reports for messages that match no definition, for many at once.

Messages that fail alike share the work. A message is reduced to what its values mean to the definitions: first the
candidates that the values vote for, then whether the values fit the constraints of these candidates. Each distinct
value and each distinct combination is compared once, by the functions of the reference. Only the actual values differ
among messages that fail alike; they are filled in by columns.

Cost: a few vectorised passes over all rows, then bounded work for each distinct value and each distinct combination.

Spec: docs/semantics.md D17-D20, D49; docs/decisions/0203-dead-letters-by-columns.md
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings import Received
from wirebook.bindings.json_event import MAX_EVENT_BYTES
from wirebook.bindings.received import Kind, Mode
from wirebook.definitions.compile.definition import Constraint, Definition
from wirebook.definitions.compile.fit import Mismatch, ValueMatch, ValueMismatch, fit, mismatch_of, preview
from wirebook.definitions.compile.slots import BARE
from wirebook.definitions.compile.uritemplate import PlaceholderConflict
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.match.event_types import TYPE, constant_type
from wirebook.definitions.match.matcher import (
    Trial,
    absence_mismatch,
    bind_placeholders,
    conflict_mismatch,
    selector_mismatch,
)
from wirebook.definitions.match.selection import MAX_NEAR, NO_DEFINITION, EndpointScope, Selector
from wirebook.landing.columns.frames import Frame, has_traces
from wirebook.landing.columns.match import CandidateFit, fit_column
from wirebook.landing.columns.patterns import compile_check
from wirebook.landing.columns.slot_columns import Mask, Rows, codes_of, mask_of
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA, REASON
from wirebook.landing.tables.reference_rows import reason, reason_text
from wirebook.problems import Problem
from wirebook.schema.json_lines import decode_column
from wirebook.text.json import MAX_DEPTH
from wirebook.text.preview import MAX_PREVIEW

NEAR: Final = DEAD_LETTER_SCHEMA.field("near").type
H = TypeVar("H", bound=Hashable)
R = TypeVar("R")

CACHE_SIZE: Final = 1 << 14
"""How many values, and how many combinations of them, are remembered from chunk to chunk."""
MAX_CACHED_VALUE: Final = 200
"""Characters of the longest value that is remembered."""
MAX_BY_COLUMNS: Final = 8
"""How many distinct constraints of a slot are compared with all of its values by columns."""
MIN_BY_COLUMNS: Final = 32
"""How many messages must contradict the same templates to be compared by columns."""
UNREADABLE: Final = frozenset({"AMQP/1.0"})
"""Protocols whose columns do not keep the types of values, which near misses depend on."""

Place = tuple[str, str]
"""Section and name of a slot."""


class Discrepancy(NamedTuple):
    """A problem of a dead letter. Without `actual`, its actual value is that of the slot."""

    code: str
    slot: str | None
    expected: str | None
    actual: str | None = None


FITS: Final = Discrepancy("fits", None, None)
CONFLICT: Final = Discrepancy("placeholder-conflict", None, None)
"""Stands for a contradiction between placeholders, which depends on several values of a message."""
UNDECIDED: Final = Discrepancy("undecided", None, None)
"""The reference must compare the message."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotConstraint:
    """A constraint of definitions on a slot, and what the absence of the slot means.

    `is_alone`: no other entry of the definition has the same repeated name. `is_list`: the value may be a
    comma-separated list. `discrepancies` has those with the declared value, by code.
    """

    place: Place
    constraint: Constraint
    if_absent: Discrepancy
    is_alone: bool = True
    is_list: bool = False
    discrepancies: dict[str, Discrepancy] = field(init=False, default_factory=dict)

    def match(self, value: str) -> ValueMatch | ValueMismatch:
        return fit(self.constraint, value)

    def discrepancy(self, value: str | None) -> Discrepancy:
        """What a value means for this constraint."""
        if value is None:
            return self.if_absent
        if not self.is_alone or (self.is_list and "," in value):
            return UNDECIDED
        result = self.match(value)
        if isinstance(result, ValueMatch):
            return FITS
        if result.expected is not self.constraint.declared:
            return _discrepancy(mismatch_of(result.code, self.constraint, None, result.expected))
        if result.code not in self.discrepancies:
            self.discrepancies[result.code] = _discrepancy(mismatch_of(result.code, self.constraint, None))
        return self.discrepancies[result.code]


@dataclass(frozen=True, slots=True, eq=False)
class CandidateDefinition:
    """A definition that may be a near miss. With a `discrepancy`, its protocol, envelope or mode differs, and its
    constraints are not compared."""

    definition: str
    discrepancy: Discrepancy | None
    constraints: tuple[SlotConstraint, ...]

    @property
    def templates(self) -> tuple[SlotConstraint, ...]:
        return tuple(member for member in self.constraints if member.constraint.template is not None)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidates of some messages, each with whether its type differs from theirs."""

    ranked: tuple[tuple[bool, CandidateDefinition], ...]

    @cached_property
    def constraints(self) -> dict[Place, tuple[SlotConstraint, ...]]:
        """All distinct constraints, by slot."""
        constraints: dict[Place, dict[SlotConstraint, None]] = {}
        for _, candidate in self.ranked:
            for constraint in candidate.constraints:
                constraints.setdefault(constraint.place, {})[constraint] = None
        return {place: tuple(members) for place, members in constraints.items()}


class NearCandidate(NamedTuple):
    """A near miss of messages that fail alike: its discrepancies, each with the slot that has the actual value."""

    candidate: CandidateDefinition
    discrepancies: tuple[tuple[Discrepancy, Place | None], ...]


Shape = tuple[NearCandidate, ...] | None
"""The near misses of messages that fail alike, the closest first; None if the reference must find them."""


class EncodedSlot(NamedTuple):
    """A slot of many messages.

    Shape: `values` are the distinct values, of which the first is None: the slot is absent. `codes` has the position of
    each message's value. `texts` are the values without the first.
    """

    values: list[str | None]
    codes: Rows
    texts: pa.StringArray


class NearMissRows(NamedTuple):
    """The columns `problems` and `near` of dead letters.

    Shape: `rows` are their positions in the frame. `codes` counts the dead letters that have a problem code.
    """

    rows: Rows
    problems: pa.ListArray
    near: pa.ListArray
    codes: Counter[str]


class NearMissFinder:
    """Finds the near misses of frames of one scope, protocol and mode."""

    def __init__(self, selector: Selector, scope: EndpointScope, frame: Frame) -> None:
        kind: Kind = "cloudevent" if frame.is_cloudevent else "native"
        self._view = MessageView(Received(frame.protocol, None, kind, mode=cast("Mode | None", frame.mode)))
        self._selector, self._scope = selector, scope
        self._index = selector.index(shows_protocol=self._view.shows_protocol)
        self._voting = self._index.near_miss_index.prepared
        self._constraints: dict[Hashable, SlotConstraint] = {}  # those of all definitions, each once
        self._types = frozenset(filter(None, map(constant_type, selector.definitions)))
        remembered = lru_cache(CACHE_SIZE)
        self._compiled = remembered(self._compile)
        self._candidates_of = remembered(self._find_candidates)
        self._with_candidates = remembered(Candidates)
        self._shape_of = remembered(_shape)
        self._votes_of = remembered(self._votes)
        self._discrepancies_of = remembered(_discrepancies)
        self._matches_of = remembered(SlotConstraint.match)
        self._check_of = remembered(lambda member: compile_check(member.constraint))

    def find(self, frame: Frame) -> NearMissRows:
        """The near misses of the messages of a frame, all of which certainly match no definition.

        Messages that the reference must compare are left out.
        """
        sure = np.full(len(frame), frame.protocol not in UNREADABLE and not frame.is_reinterpreted)
        if not frame.is_cloudevent:
            sure &= ~has_traces(frame.payload)  # the payload may be an event, and its type counts
        if frame.json_values:  # an event is malformed if its data is not JSON
            _, is_json = decode_column(frame.payload, MAX_DEPTH, MAX_EVENT_BYTES)
            sure &= is_json | mask_of(frame.payload.is_null())
        slots = _Slots(frame, sure)
        candidates, candidates_number = self._candidates(slots)
        shapes, shape = self._shapes(slots, candidates, candidates_number)
        decided = np.array([near is not None for near in shapes], bool)
        rows = np.flatnonzero(slots.sure & decided[shape])
        conflicts = self._conflicts(slots, shapes, shape, rows)
        rows = rows[[None not in conflicts.get(row, ()) for row in rows.tolist()]] if conflicts else rows
        return _columns(slots, [near or () for near in shapes], shape, rows, conflicts)

    # -- candidates -------------------------------------------------------------------------------------------------

    def _candidates(self, slots: _Slots) -> tuple[list[Candidates], Rows]:
        """The distinct candidates of the messages, and the number of each message's.

        They depend on the type of the message, if a definition has it, and on the votes of its values.
        """
        parts: list[tuple[list[Hashable], Rows]] = [([None], np.zeros(slots.count, np.int64))]
        if self._view.is_cloudevent and (types := slots.encoded((TYPE.section, TYPE.name))) is not None:
            known = [value if value in self._types else None for value in types.values]
            parts = [_distinct(known, types.codes)]
        for number, values in enumerate(self._voting):
            encoded = slots.encoded((values.slot.section, values.slot.name))
            if encoded is None:
                parts.append(([()], np.zeros(slots.count, np.int64)))
            else:
                votes = [_remember(self._votes_of, self._votes, number, value) for value in encoded.values]
                parts.append(_distinct(votes, encoded.codes))
        first, group = _grouped([codes for _, codes in parts])
        kinds = [tuple(values[codes[row]] for values, codes in parts) for row in first.tolist()]
        return _distinct([self._candidates_of(*kind) for kind in kinds], group)

    def _votes(self, number: int, value: str | None) -> tuple[tuple[int, float], ...]:
        votes: defaultdict[int, float] = defaultdict(float)
        if value is not None:
            self._voting[number].vote(value, votes)
        return tuple(votes.items())

    def _find_candidates(self, type_: str | None, *votes_of_slots: tuple[tuple[int, float], ...]) -> Candidates:
        votes: defaultdict[int, float] = defaultdict(float)
        for number, vote in chain.from_iterable(votes_of_slots):
            votes[number] += vote
        protocol = self._view.protocol if self._view.shows_protocol else None
        indexed = self._index.closest(votes, protocol, self._scope.members)
        types = frozenset(filter(None, (type_,)))
        ranked = self._selector.near_candidates(indexed, types, self._view.protocol, self._scope)
        return self._with_candidates(
            tuple((has_other_type, self._compiled(definition)) for has_other_type, definition in ranked)
        )

    def _compile(self, definition: Definition) -> CandidateDefinition:
        """A definition with the constraints that the reference compares, in its order."""
        view, options, endpoint = self._view, self._selector.options, self._scope.constraints
        if mismatch := selector_mismatch(definition, view, options, endpoint.mode):
            return CandidateDefinition(definition.xid, _discrepancy(mismatch), ())

        def slot_constraint(constraint: Constraint, place: Place, is_optional: bool, **how: bool) -> SlotConstraint:
            mismatch = None if is_optional else absence_mismatch(constraint, options)
            own = SlotConstraint(place, constraint, _discrepancy(mismatch) if mismatch else FITS, **how)
            try:
                return self._constraints.setdefault((place, constraint, is_optional, *how.values()), own)
            except TypeError:  # a constant that is an array or object
                return own

        def place_of(constraint: Constraint) -> Place:
            return constraint.slot.section, constraint.slot.name

        constraints = [
            slot_constraint(constraint, place_of(constraint), False)
            for constraint in definition.observed(True, view.shows_protocol, options.match_transport)
        ]
        if view.shows_protocol:
            for group in (*definition.entries, *endpoint.entries):
                entries = [entry for entry in group.entries if options.match_transport or not entry.kind.transport]
                place, is_alone = (group.section, group.name), len(entries) == 1
                constraints += (
                    slot_constraint(entry, place, group.optional, is_alone=is_alone, is_list=group.lists)
                    for entry in entries
                )
            constraints += (
                slot_constraint(constraint, place_of(constraint), True)
                for constraint in endpoint.constraints_for(definition)
            )
        return CandidateDefinition(definition.xid, None, tuple(constraints))

    # -- discrepancies ----------------------------------------------------------------------------------------------

    def _shapes(self, slots: _Slots, candidates: Sequence[Candidates], number: Rows) -> tuple[list[Shape], Rows]:
        """The distinct near misses of the messages, and the number of each message's. `number` has the number of each
        message's candidates."""
        if self._scope.constraints.entries and self._view.family == "HTTP":  # responses do not have those of requests
            method = slots.encoded((BARE, "method"))
            slots.sure &= method is not None and method.codes > 0
        places = list(dict.fromkeys(place for members in candidates for place in members.constraints))
        parts: list[tuple[list[tuple[Discrepancy, ...]], Rows]] = []
        for place in places:
            compared, kind = _distinct([members.constraints.get(place, ()) for members in candidates], number)
            encoded = slots.encoded(place)
            if encoded is None:  # only the reference can read the slot
                slots.sure &= np.array([not constraints for constraints in compared])[kind]
                encoded = EncodedSlot([None], np.zeros(slots.count, np.int64), pa.nulls(0, pa.string()))
            first, pair = _grouped([kind, encoded.codes])
            kinds, codes = kind[first], encoded.codes[first]
            fits = self._satisfied(compared, encoded)[kinds, codes]
            discrepancies = [
                (FITS,) * len(compared[number])
                if is_fit
                else _remember(self._discrepancies_of, _discrepancies, compared[number], encoded.values[code])
                for number, code, is_fit in zip(kinds.tolist(), codes.tolist(), fits.tolist(), strict=True)
            ]
            parts.append(_distinct(discrepancies, pair))
        first, shape = _grouped([number, *(codes for _, codes in parts)])
        shapes = []
        for row in first.tolist():
            members = candidates[number[row]]
            by_place = {place: values[codes[row]] for place, (values, codes) in zip(places, parts, strict=True)}
            shapes.append(self._shape_of(members, tuple(by_place[place] for place in members.constraints)))
        return shapes, shape

    def _satisfied(self, groups: Sequence[tuple[SlotConstraint, ...]], encoded: EncodedSlot) -> Mask:
        """For each group of constraints and each value of a slot, whether the value certainly satisfies all of them.
        Nothing is certain of many constraints, which would cost more by columns than one by one."""
        satisfied = np.zeros((len(groups), len(encoded.values)), bool)
        constraints = list(dict.fromkeys(chain.from_iterable(groups)))
        if len(constraints) > MAX_BY_COLUMNS:
            return satisfied
        fits = {constraint: self._fit_column(constraint, encoded.texts) for constraint in constraints}
        for number, group in enumerate(groups):
            of_group = [fits[constraint] for constraint in group]
            satisfied[number, 1:] = all(of_group) and np.logical_and.reduce(
                [fit.fits & fit.certain for fit in of_group if fit]
            )
        return satisfied

    def _fit_column(self, member: SlotConstraint, texts: pa.StringArray) -> CandidateFit | None:
        """Compare values with a constraint; None if columns cannot compare them."""
        compiled = self._check_of(member) if member.is_alone and not member.is_list else None
        return compiled and fit_column(compiled[0], texts, compiled[1])

    def _conflicts(
        self, slots: _Slots, shapes: Sequence[Shape], shape: Rows, rows: Rows
    ) -> dict[int, list[Discrepancy | None]]:
        """The contradictions between placeholders of the messages that have any, one for each `CONFLICT`; None for one
        that the reference must find."""
        contradictory = [
            [near.candidate for near in nears or () if near.discrepancies[0][0] is CONFLICT] for nears in shapes
        ]
        has_any = np.array([bool(candidates) for candidates in contradictory], bool)
        rows = rows[has_any[shape[rows]]]
        candidates_of = dict(zip(rows.tolist(), map(contradictory.__getitem__, shape[rows].tolist()), strict=True))
        contradicting: dict[tuple[SlotConstraint, ...], dict[int, None]] = defaultdict(dict)
        for row, candidates in candidates_of.items():
            for candidate in candidates:
                contradicting[candidate.templates][row] = None
        known = {
            templates: self._conflicts_by_columns(slots, templates, np.array(list(rows)))
            for templates, rows in contradicting.items()
            if len(rows) >= MIN_BY_COLUMNS
        }
        return {
            row: [
                known.get(candidate.templates, {}).get(row) or self._conflict(slots, candidate, row)
                for candidate in candidates
            ]
            for row, candidates in candidates_of.items()
        }

    def _conflicts_by_columns(
        self, slots: _Slots, templates: tuple[SlotConstraint, ...], rows: Rows
    ) -> dict[int, Discrepancy]:
        """The first contradiction between the placeholders of some templates in each of the rows, where columns can
        tell."""
        conflicts: dict[int, Discrepancy] = {}
        certain, bound = np.ones(len(rows), bool), dict[str, tuple[str, pa.StringArray]]()
        for member in templates:
            encoded, template = slots.encoded(member.place), member.constraint.template
            if encoded is None or template is None:
                return {}
            codes = encoded.codes[rows]
            texts = pa.concat_arrays([pa.array([""]), encoded.texts]).take(pa.array(codes))
            fit = self._fit_column(member, texts)
            if fit is None:
                return {}
            certain &= fit.fits & fit.certain & (codes > 0)
            for name, values in zip(template.names, fit.captures.values(), strict=True):
                label, first = bound.setdefault(name, (member.constraint.label, values))
                for place in np.flatnonzero(certain & mask_of(pc.not_equal(first, values))).tolist():
                    conflict = PlaceholderConflict(
                        name, label, first[place].as_py(), member.constraint.label, values[place].as_py()
                    )
                    conflicts.setdefault(int(rows[place]), _discrepancy(conflict_mismatch(conflict)))
        return {row: conflict for row, conflict in conflicts.items() if certain[np.searchsorted(rows, row)]}

    def _conflict(self, slots: _Slots, candidate: CandidateDefinition, row: int) -> Discrepancy | None:
        trial = Trial(self._selector.options, inf)
        for member in candidate.constraints:
            value = slots.value(member.place, row) if member.constraint.template is not None else None
            if value is not None:
                match = _remember(self._matches_of, SlotConstraint.match, member, value)
                if not isinstance(match, ValueMatch):
                    return None
                trial.accept(member.constraint, match, value)
        bind_placeholders(trial)
        return _discrepancy(trial.mismatches[0]) if trial.mismatches else None


class _Slots:
    """The slots of a frame, each encoded once. `sure` is a mask of the messages whose slots so far are certain."""

    def __init__(self, frame: Frame, sure: Mask) -> None:
        self.count = len(frame)
        self.sure = sure
        self._frame = frame
        self._encoded: dict[Place, EncodedSlot | None] = {}

    def encoded(self, place: Place) -> EncodedSlot | None:
        """A slot; None for a slot without a column."""
        if place not in self._encoded:
            column = self._frame.column(*place)
            self._encoded[place] = None
            if column is not None:
                self.sure &= ~column.doubtful
                encoded = column.text.dictionary_encode()
                values = [None, *encoded.dictionary.to_pylist()]
                self._encoded[place] = EncodedSlot(values, codes_of(encoded), encoded.dictionary)
        return self._encoded[place]

    def value(self, place: Place, row: int) -> str | None:
        encoded = self.encoded(place)
        return None if encoded is None else encoded.values[encoded.codes[row]]


def _discrepancies(constraints: tuple[SlotConstraint, ...], value: str | None) -> tuple[Discrepancy, ...]:
    return tuple(constraint.discrepancy(value) for constraint in constraints)


def _shape(candidates: Candidates, discrepancies: tuple[tuple[Discrepancy, ...], ...]) -> Shape:
    """The near misses: those with the type of the message first, then those with fewer problems. `discrepancies` has
    those of each slot of the candidates."""
    members = chain.from_iterable(candidates.constraints.values())
    of_constraint = dict(zip(members, chain.from_iterable(discrepancies), strict=True))
    near: list[tuple[bool, int, NearCandidate]] = []
    for has_other_type, candidate in candidates.ranked:
        problems: list[tuple[Discrepancy, Place | None]] = []
        for constraint in candidate.constraints:
            discrepancy = of_constraint[constraint]
            if discrepancy is UNDECIDED:
                return None
            if discrepancy is not FITS:
                problems.append((discrepancy, constraint.place))
        if not problems:
            problems = [(candidate.discrepancy or CONFLICT, None)]
        near.append((has_other_type, len(problems), NearCandidate(candidate, tuple(problems))))
    near.sort(key=itemgetter(0, 1))
    return tuple(member for _, _, member in near[:MAX_NEAR])


def _discrepancy(mismatch: Mismatch) -> Discrepancy:
    return Discrepancy(
        mismatch.code, mismatch.slot, reason_text(preview(mismatch.expected)), reason_text(preview(mismatch.actual))
    )


# -- columns --------------------------------------------------------------------------------------------------------


def _columns(
    slots: _Slots,
    shapes: Sequence[tuple[NearCandidate, ...]],
    shape: Rows,
    rows: Rows,
    conflicts: dict[int, list[Discrepancy | None]],
) -> NearMissRows:
    """The columns of the messages `rows`. `shape` has the number of each message's shape."""
    nears = list(chain.from_iterable(shapes))
    discrepancies = list(chain.from_iterable(near.discrepancies for near in nears))
    near_places, near_counts = _ragged(list(map(len, shapes)), shape[rows])
    places, counts = _ragged([len(near.discrepancies) for near in nears], near_places)
    owners = np.repeat(np.repeat(rows, near_counts), counts)

    distinct, number = _distinct([discrepancy for discrepancy, _ in discrepancies])
    is_conflict = np.array([discrepancy is CONFLICT for discrepancy in distinct], bool)
    number = number[places]
    own = [discrepancy for row in rows.tolist() for discrepancy in conflicts.get(row, ()) if discrepancy is not None]
    number[is_conflict[number]] = len(distinct) + np.arange(len(own))
    code, slot, expected, actual = (
        pa.array(column, pa.string()) for column in zip(*distinct, *own, reason_of(NO_DEFINITION), strict=True)
    )

    pool, origin = [actual], number.copy()
    of_slots, slot_number = _distinct([place for _, place in discrepancies])
    slot_number = slot_number[places]
    for position, place in enumerate(of_slots):
        encoded = None if place is None else slots.encoded(place)
        if encoded is not None:
            is_here = slot_number == position
            origin[is_here] = sum(map(len, pool)) + encoded.codes[owners[is_here]]
            pool += [pa.nulls(1, pa.string()), _previews(encoded.texts)]

    none = len(code) - 1  # the discrepancy of a message without near misses
    number, origin = np.append(number, none), np.append(origin, none)
    columns = [column.take(pa.array(number)) for column in (code, slot, expected)]
    columns.append(pa.concat_arrays(pool).take(pa.array(origin)))
    reasons = pa.StructArray.from_arrays(columns, fields=list(REASON))
    of_near = pa.ListArray.from_arrays(_offsets(np.append(counts, 1)), reasons)
    xids = pa.array([near.candidate.definition for near in nears], pa.string()).take(pa.array(near_places))
    near = pa.StructArray.from_arrays([xids, of_near.slice(0, len(near_places))], fields=list(NEAR.value_type))
    first = np.where(near_counts > 0, np.cumsum(near_counts) - near_counts, len(near_places))
    codes: Counter[str] = Counter()
    for candidates, count in zip(shapes, np.bincount(shape[rows], minlength=len(shapes)).tolist(), strict=True):
        problems = (
            [discrepancy for discrepancy, _ in candidates[0].discrepancies]
            if candidates
            else [reason_of(NO_DEFINITION)]
        )
        codes.update(dict.fromkeys((discrepancy.code for discrepancy in problems), count))
    near_lists = pa.ListArray.from_arrays(_offsets(near_counts), near)
    return NearMissRows(rows, of_near.take(pa.array(first)), near_lists, codes)


def reason_of(problem: Problem) -> Discrepancy:
    texts = reason(problem)
    return Discrepancy(problem.code, texts["slot"], texts["expected"], texts["actual"])


def _previews(texts: pa.StringArray) -> pa.StringArray:
    """Values as problems show them."""
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    return texts if longest <= MAX_PREVIEW else pa.array(map(preview, texts.to_pylist()), pa.string())


def _offsets(counts: Rows) -> pa.Int32Array:
    return pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())


def _ragged(sizes: Sequence[int], chosen: Rows) -> tuple[Rows, Rows]:
    """The positions of the items of some lists, which are stored one after the other, and the size of each list."""
    all_sizes = np.array(sizes, np.int64)
    starts, counts = np.cumsum(all_sizes) - all_sizes, all_sizes[chosen]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(starts[chosen], counts) + within, counts


def _distinct(values: Sequence[H], numbers: Rows | None = None) -> tuple[list[H], Rows]:
    """The distinct values, and the number of each value. With `numbers`, which are positions in `values`, the number of
    the value at each."""
    known: dict[H, int] = {}
    codes = np.array([known.setdefault(value, len(known)) for value in values], np.int64)
    return list(known), codes if numbers is None else codes[numbers]


def _grouped(columns: Sequence[Rows]) -> tuple[Rows, Rows]:
    """The first row of each distinct combination of numbers, and the number of each row's combination."""
    combined = columns[0]
    for column in columns[1:]:
        if column.max(initial=0):
            combined = np.unique(combined, return_inverse=True)[1] * (int(column.max()) + 1) + column
    _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
    return first, inverse


def _remember(cached: Callable[..., R], make: Callable[..., R], *arguments: object) -> R:
    """The cached result for the last argument, a value of a message; long values are not kept in the cache."""
    value = arguments[-1]
    return (make if isinstance(value, str) and len(value) > MAX_CACHED_VALUE else cached)(*arguments)
