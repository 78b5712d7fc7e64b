"""Near misses by columns: for messages that match no definition, the closest definitions and why they do not match.

`Selector` finds the same for one message at a time. Here, messages that fail in the same way share the work. Each
message is reduced to the results of comparing its values with the definitions: first the candidates that the values
vote for, then whether the values fit the constraints of these candidates. Each distinct value and each distinct
combination is compared once, with the functions of the reference. Messages with equal results have the same *shape*:
the same near misses and problems, except for the actual values, which are filled in from the columns.

Cost: a few vectorised passes over all rows, then bounded work for each distinct value and each distinct combination.

Spec: docs/semantics.md D17-D20, D49; docs/decisions/0203-dead-letters-by-columns.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Final, cast

import numpy as np
import pyarrow as pa

from wirebook.bindings import Received
from wirebook.bindings.json_event import MAX_EVENT_BYTES
from wirebook.bindings.received import Kind, Mode
from wirebook.definitions.compile.definition import Constraint, Definition
from wirebook.definitions.compile.slots import BARE
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.match.event_types import TYPE
from wirebook.definitions.match.matcher import absence_mismatch, selector_mismatch
from wirebook.definitions.match.selection import EndpointScope, Selector
from wirebook.landing.columns.caches import bounded_cache, from_cache
from wirebook.landing.columns.message_columns import MessageColumns, has_traces
from wirebook.landing.columns.near_candidates import (
    CONFLICT,
    FITS,
    CandidateDefinition,
    Candidates,
    Discrepancy,
    Shape,
    SlotConstraint,
    SlotKey,
    discrepancies_of_value,
    discrepancy_of,
    shape_of,
)
from wirebook.landing.columns.near_miss_rows import (
    EncodedSlot,
    NearMissRows,
    Slots,
    near_miss_rows,
)
from wirebook.landing.columns.placeholder_conflicts import ConflictFinder
from wirebook.landing.columns.slot_columns import Mask, Rows, distinct, grouped, mask_of, ragged
from wirebook.landing.columns.value_classes import ValueClasses
from wirebook.schema.json_lines import decode_column
from wirebook.text.json import MAX_DEPTH

MAX_BY_COLUMNS: Final = 8
"""The maximum number of distinct constraints of a slot that are compared with all of its values by columns."""


class NearMissFinder:
    """Finds the near misses of messages of one scope, protocol and mode."""

    def __init__(self, selector: Selector, scope: EndpointScope, messages: MessageColumns) -> None:
        kind: Kind = "cloudevent" if messages.is_cloudevent else "native"
        self._view = MessageView(Received(messages.protocol, None, kind, mode=cast("Mode | None", messages.mode)))
        self._selector, self._scope = selector, scope
        self._index = selector.index(shows_protocol=self._view.shows_protocol)
        self._voting = {
            (values.slot.section, values.slot.name): values for values in self._index.near_miss_index.prepared
        }
        self._classes = {slot_key: ValueClasses(values) for slot_key, values in self._voting.items()}
        self._constraints: dict[Hashable, SlotConstraint] = {}  # the distinct ones of all definitions
        self._types = frozenset(selector.event_types.constants.values())
        self._compiled = bounded_cache(self._compile)
        self._candidates_of = bounded_cache(self._find_candidates)
        self._with_candidates = bounded_cache(Candidates)
        self._shape_of = bounded_cache(shape_of)
        self._votes_of = bounded_cache(self._votes)
        self._discrepancies_of = bounded_cache(discrepancies_of_value)
        self._conflict_finder = ConflictFinder(selector.options)

    def find(self, messages: MessageColumns) -> NearMissRows:
        """The near misses of messages, all of which certainly match no definition.

        Messages that the reference must compare are left out.
        """
        sure = np.full(len(messages), not messages.is_reinterpreted)
        if not messages.is_cloudevent:
            sure &= ~has_traces(messages.payload)  # the payload may be an event, whose type matters
        if messages.json_values:  # an event is malformed if its data is not JSON
            _, is_json = decode_column(messages.payload, MAX_DEPTH, MAX_EVENT_BYTES)
            sure &= is_json | mask_of(messages.payload.is_null())
        slots = Slots(messages, sure, self._classes)
        candidates, candidates_number = self._candidates(slots)
        shapes, shape = self._shapes(slots, candidates, candidates_number)
        decided = np.array([near is not None for near in shapes], bool)
        rows = np.flatnonzero(slots.sure & decided[shape])
        rows, conflicts = self._conflicts(slots, shapes, shape, rows)
        return near_miss_rows(slots, [near or () for near in shapes], shape, rows, conflicts)

    # -- candidates -------------------------------------------------------------------------------------------------

    def _candidates(self, slots: Slots) -> tuple[list[Candidates], Rows]:
        """The distinct sets of candidates, and the position of each message's set among them.

        The candidates depend on the type of the message, if a definition has this type, and on the votes of its values.
        """
        parts: list[tuple[list[Hashable], Rows]] = [([None], np.zeros(slots.count, np.int64))]
        if self._view.is_cloudevent and (types := slots.encoded((TYPE.section, TYPE.name))) is not None:
            known = [value if value in self._types else None for value in types.values]
            parts = [distinct(known, types.codes)]
        for slot_key in self._voting:
            encoded = slots.encoded(slot_key)
            if encoded is None:
                parts.append(([()], np.zeros(slots.count, np.int64)))
            else:
                reduced = slots.reduced(slot_key, encoded)
                positions = np.append(0, self._classes[slot_key].positions(encoded.texts))[encoded.codes]
                first, group = grouped([reduced.codes, positions])
                votes = [
                    from_cache(self._votes_of, self._votes, slot_key, position, reduced.values[code])
                    for code, position in zip(reduced.codes[first].tolist(), positions[first].tolist(), strict=True)
                ]
                parts.append(distinct(votes, group))
        first, group = grouped([codes for _, codes in parts])
        kinds = [tuple(values[codes[row]] for values, codes in parts) for row in first.tolist()]
        return distinct([self._candidates_of(*kind) for kind in kinds], group)

    def _votes(self, slot_key: SlotKey, position: int, value: str | None) -> tuple[tuple[int, float], ...]:
        votes: defaultdict[int, float] = defaultdict(float)
        if value is not None:
            self._voting[slot_key].vote(value, position, votes)
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
        """A definition with the constraints that the reference compares, in the same order."""
        view, options, endpoint = self._view, self._selector.options, self._scope.constraints
        if mismatch := selector_mismatch(definition, view, options, endpoint.mode):
            return CandidateDefinition(definition.xid, discrepancy_of(mismatch), ())

        def slot_constraint(
            constraint: Constraint, slot_key: SlotKey, is_optional: bool, **how: bool
        ) -> SlotConstraint:
            mismatch = None if is_optional else absence_mismatch(constraint, options)
            by_class = slot_key in self._classes and self._classes[slot_key].covers(constraint)
            if_absent = discrepancy_of(mismatch) if mismatch else FITS
            own = SlotConstraint(slot_key, constraint, if_absent, by_class=by_class, **how)
            try:
                return self._constraints.setdefault((slot_key, constraint, is_optional, *how.values()), own)
            except TypeError:  # not hashable: the constant is an array or object
                return own

        def key_of(constraint: Constraint) -> SlotKey:
            return constraint.slot.section, constraint.slot.name

        constraints = [
            slot_constraint(constraint, key_of(constraint), False)
            for constraint in definition.observed(True, view.shows_protocol, options.match_transport)
        ]
        if view.shows_protocol:
            for group in (*definition.entries, *endpoint.entries):
                entries = [entry for entry in group.entries if options.match_transport or not entry.kind.transport]
                slot_key, is_alone = (group.section, group.name), len(entries) == 1
                constraints += (
                    slot_constraint(entry, slot_key, group.optional, is_alone=is_alone, is_list=group.lists)
                    for entry in entries
                )
            constraints += (
                slot_constraint(constraint, key_of(constraint), True)
                for constraint in endpoint.constraints_for(definition)
            )
        return CandidateDefinition(definition.xid, None, tuple(constraints))

    # -- discrepancies ----------------------------------------------------------------------------------------------

    def _shapes(self, slots: Slots, candidates: Sequence[Candidates], number: Rows) -> tuple[list[Shape], Rows]:
        """The distinct shapes of the messages, and the position of each message's shape among them. `number` has the
        position of each message's set in `candidates`."""
        if self._scope.constraints.entries and self._view.family == "HTTP":  # the entries apply only to requests
            method = slots.encoded((BARE, "method"))
            slots.sure &= method is not None and method.codes > 0
        slot_keys = list(dict.fromkeys(slot_key for members in candidates for slot_key in members.constraints))
        parts: list[tuple[list[tuple[Discrepancy, ...]], Rows]] = []
        for slot_key in slot_keys:
            compared, kind = distinct([members.constraints.get(slot_key, ()) for members in candidates], number)
            encoded = slots.encoded(slot_key)
            if encoded is None:  # only the reference can read the slot
                slots.sure &= np.array([not constraints for constraints in compared])[kind]
                encoded = EncodedSlot([None], np.zeros(slots.count, np.int64), pa.nulls(0, pa.string()))
            elif slot_key in self._classes:
                by_class = np.array([all(member.by_class for member in constraints) for constraints in compared], bool)
                encoded = encoded.joined(slots.reduced(slot_key, encoded), by_class[kind])
            first, pair = grouped([kind, encoded.codes])
            kinds, codes = kind[first], encoded.codes[first]
            fits = self._satisfied(compared, encoded)[kinds, codes]
            discrepancies = [
                (FITS,) * len(compared[group])
                if is_fit
                else from_cache(self._discrepancies_of, discrepancies_of_value, compared[group], encoded.values[code])
                for group, code, is_fit in zip(kinds.tolist(), codes.tolist(), fits.tolist(), strict=True)
            ]
            parts.append(distinct(discrepancies, pair))
        first, shape = grouped([number, *(codes for _, codes in parts)])
        shapes = []
        for row in first.tolist():
            members = candidates[number[row]]
            by_slot = {slot_key: values[codes[row]] for slot_key, (values, codes) in zip(slot_keys, parts, strict=True)}
            shapes.append(self._shape_of(members, tuple(by_slot[slot_key] for slot_key in members.constraints)))
        return shapes, shape

    def _satisfied(self, groups: Sequence[tuple[SlotConstraint, ...]], encoded: EncodedSlot) -> Mask:
        """For each group of constraints and each value of a slot, whether the value certainly satisfies all of them.
        All False if there are many constraints, because comparing these by columns costs more than one by one."""
        satisfied = np.zeros((len(groups), len(encoded.values)), bool)
        constraints = list(dict.fromkeys(chain.from_iterable(groups)))
        if len(constraints) > MAX_BY_COLUMNS:
            return satisfied
        fits = {constraint: constraint.fit_column(encoded.texts) for constraint in constraints}
        for number, group in enumerate(groups):
            of_group = [fits[constraint] for constraint in group]
            satisfied[number, 1:] = all(of_group) and np.logical_and.reduce(
                [fit.fits & fit.certain for fit in of_group if fit]
            )
        return satisfied

    # -- placeholder conflicts --------------------------------------------------------------------------------------

    def _conflicts(
        self, slots: Slots, shapes: Sequence[Shape], shape: Rows, rows: Rows
    ) -> tuple[Rows, list[Discrepancy]]:
        """The rows, without those whose placeholder conflicts only the reference can find, and a discrepancy for each
        `CONFLICT` of each of these rows, in order."""
        contradicted = [
            [near.candidate for near in nears or () if near.discrepancies[0][0] is CONFLICT] for nears in shapes
        ]
        numbers, counts = ragged(list(map(len, contradicted)), shape[rows])
        owners = np.repeat(rows, counts)
        found = self._conflict_finder.find(slots, list(chain.from_iterable(contradicted)), numbers, owners)
        undecided = {row for row, conflict in zip(owners.tolist(), found, strict=True) if conflict is None}
        conflicts = [
            conflict
            for row, conflict in zip(owners.tolist(), found, strict=True)
            if conflict is not None and row not in undecided
        ]
        return rows[[row not in undecided for row in rows.tolist()]] if undecided else rows, conflicts
