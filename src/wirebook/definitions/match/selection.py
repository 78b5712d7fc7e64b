"""Select the definition of a message: find candidates, match metadata, compare ranks, validate the payload.

Spec: message/spec.md#message-definition-matching (R33); docs/semantics.md D25-D27, D40, D48-D50.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from math import inf
from operator import itemgetter
from typing import Final

from wirebook.bindings import Received, as_structured
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.fit import Mismatch
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.match import tolerated_faults
from wirebook.definitions.match.definition_list import DefinitionList, DefinitionMap
from wirebook.definitions.match.event_types import EventTypes
from wirebook.definitions.match.index import Index
from wirebook.definitions.match.matcher import NO_ENDPOINT, EndpointConstraints, Match, match_metadata, mismatches_of
from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.definitions.match.outcome import NearMiss, Outcome
from wirebook.problems import Problem
from wirebook.schema import DecodedPayload

MAX_NEAR: Final = 3
"""Maximum number of near misses of an outcome."""
MAX_COMPARED: Final = 5
"""Maximum number of definitions from the index that are compared to find near misses."""
NO_DEFINITION: Final = Problem(
    "no-definition", "no definition has a constant value that the message has", slot="definition"
)
OVERSIZED_CODES: Final = frozenset({"too-large", "too-deep", "payload-too-large", "payload-too-deep"})

PayloadReader = Callable[[Definition, Received], DecodedPayload | None]
"""Decodes the payload of a message with the schema of a definition; None if the definition has no schema."""


@dataclass(frozen=True, slots=True)
class EndpointScope:
    """The definitions that may match at an endpoint, and its constraints on every message (D19, D25, R29).

    `members` are XIDs; None means all definitions. `empty`: the endpoint has neither messages nor message groups (D50).
    """

    members: frozenset[str] | None = None
    protocol: str | None = None
    constraints: EndpointConstraints = NO_ENDPOINT
    empty: bool = False

    def carries(self, view: MessageView) -> bool:
        """Whether the message has the protocol of the endpoint; true if it does not show its protocol (D27)."""
        return not self.protocol or not view.shows_protocol or self.protocol == view.protocol


ALL_DEFINITIONS = EndpointScope()


def messages_once(candidates: Iterable[Definition]) -> list[Definition]:
    """Keep one definition of each message and its aliases: the message if it is a candidate, else the first alias."""
    chosen: dict[str, Definition] = {}
    for candidate in candidates:
        if candidate.source is None or candidate.identity not in chosen:
            chosen[candidate.identity] = candidate
    return list(chosen.values())


class Selector:
    """Selects the definition of each message.

    `scopes` are by endpoint XID. Incomplete definitions never match (D40). A message and its aliases count once (D41).
    """

    def __init__(
        self,
        definitions: Iterable[Definition],
        scopes: Mapping[str, EndpointScope],
        read_payload: PayloadReader,
        options: MatchOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.definitions = DefinitionList(definition for definition in definitions if not definition.incomplete)
        self.default_scope = self._without_duplicates(ALL_DEFINITIONS)
        self.scopes = {xid: self._without_duplicates(scope) for xid, scope in scopes.items()}
        self.read_payload = read_payload
        self.options = options
        self._index = Index(self.definitions)

    def reading(self, read_payload: PayloadReader) -> Selector:
        """Return a copy with another payload reader. Both share the definitions and the index."""
        selector = copy(self)
        selector.read_payload = read_payload
        return selector

    @cached_property
    def by_xid(self) -> DefinitionMap:
        """The definitions that can match, by XID."""
        return DefinitionMap(self.definitions)

    @cached_property
    def _index_without_protocol(self) -> Index:
        """The index for events from plain files, which have no protocol options."""
        return Index(self.definitions, protocol_slots=False)

    def select(self, received: Received, endpoint: str | None = None) -> Outcome:
        """Match one message. `endpoint` (an XID) takes precedence over the endpoint of the captured record."""
        if received.kind == "unsupported" or (
            received.kind == "malformed" and not tolerated_faults.has_only_wrong_values(received)
        ):
            return _unreadable(received)
        xid = endpoint or received.endpoint
        scope = self.scopes.get(xid) if xid else self.default_scope
        if scope is None:
            known, message = sorted(self.scopes)[:10], f"the catalogue has no endpoint '{xid}'"
            problem = Problem("unknown-endpoint", message, slot="endpoint", expected=known, actual=xid)
            return Outcome("malformed", received, problems=(problem,))
        if scope.empty and received.kind == "malformed":
            return _unreadable(received)
        if scope.empty:
            message = "the endpoint has neither messages nor message groups"
            problem = Problem(code="no-candidates", slot="endpoint", actual=xid, message=message)
            return Outcome("unconstrained", received, problems=(problem,))
        return self._select(received, scope)

    def _without_duplicates(self, scope: EndpointScope) -> EndpointScope:
        """Return the scope with one definition for each message and its aliases."""
        if not self._has_aliases:
            return scope
        members = self.by_xid if scope.members is None else scope.members
        chosen = messages_once(definition for definition in self.definitions if definition.xid in members)
        return replace(scope, members=frozenset(definition.xid for definition in chosen))

    @cached_property
    def _has_aliases(self) -> bool:
        return any(definition.source for definition in self.definitions)

    def _select(self, received: Received, scope: EndpointScope) -> Outcome:
        views = views_of(received)
        matches = self.fitting(views, scope)
        if not matches:
            return self._unexpected(views, scope)
        best_rank = max(match.rank for match, _ in matches)
        best = [(match, view.received) for match, view in matches if match.rank == best_rank]
        accepted = [(match, tolerated_faults.tolerate(match.definition, message)) for match, message in best]
        valid = [(match, message) for match, message in accepted if message is not None]
        if not valid:  # the event is malformed, and no definition accepts it
            return _unreadable(best[0][1])
        return self._decode(*valid[0]) if len(valid) == 1 else self._decode_several(valid)

    def fitting(self, views: Sequence[MessageView], scope: EndpointScope) -> list[tuple[Match, MessageView]]:
        """Return all definitions of the scope whose metadata matches, in catalogue order, with the view that matches.

        With `accept_native`, a definition may match both views of a message that may be a structured event. The view as
        an event then takes precedence (D26).
        """
        matches = [
            (match, view)
            for view in views
            for definition in self._candidates(view, scope)
            if (match := match_metadata(definition, view, self.options, endpoint=scope.constraints))
        ]
        if len(views) == 1 or not self.options.accept_native:
            return matches
        events = {match.definition for match, _ in matches if not match.synthesized}
        return [(match, view) for match, view in matches if not match.synthesized or match.definition not in events]

    # -- candidates -------------------------------------------------------------------------------------------------

    @cached_property
    def event_types(self) -> EventTypes:
        return EventTypes(self.definitions)

    def index(self, *, shows_protocol: bool) -> Index:
        return self._index if shows_protocol else self._index_without_protocol

    def _candidates(self, view: MessageView, scope: EndpointScope) -> Sequence[Definition]:
        if not scope.carries(view):
            return []
        uses_index = self.options.values_imply_presence and not self.options.accept_native
        candidates = self.index(shows_protocol=view.shows_protocol).candidates(view) if uses_index else self.definitions
        if view.is_reinterpreted:
            candidates = [candidate for candidate in candidates if candidate.is_cloudevent]
        members = scope.members
        return candidates if members is None else [candidate for candidate in candidates if candidate.xid in members]

    # -- payload ----------------------------------------------------------------------------------------------------

    def _decode(self, match: Match, received: Received) -> Outcome:
        """Return the outcome of the single best match, which depends on its payload."""
        reading = self.read_payload(match.definition, received)
        outcome, problems = ("matched", ()) if reading is None else (reading.outcome or "matched", reading.problems)
        if match.ambiguous_bindings:  # the text could be split into placeholders in another way (D18)
            message = "the placeholders could be split in more than one way"
            note = Problem("ambiguous-bindings", message, slot="bindings", actual=match.bindings)
            problems = (note, *problems)
        return Outcome(
            outcome,
            received,
            match.definition.xid,
            match.bindings,
            (*received.problems, *problems),
            reading=reading,
            ambiguous_bindings=match.ambiguous_bindings,
            synthesized=match.synthesized,
            template=match.definition if match.synthesized else None,
        )

    def _decode_several(self, best: list[tuple[Match, Received]]) -> Outcome:
        """Return the outcome of several matches of the same rank: validate the payload with each schema (R33, D48)."""
        tried = [self._decode(match, received) for match, received in best]
        valid = [outcome for outcome in tried if outcome.matched]
        unread = [outcome for outcome in tried if outcome.outcome in ("unsupported", "oversized")]
        if len(valid) == 1 and not unread:
            return valid[0]
        near = tuple(NearMiss(outcome.definition or "", outcome.problems) for outcome in tried)[:MAX_NEAR]
        if unread:
            return Outcome(unread[0].outcome, best[0][1], problems=_with_xids(unread), near=near)
        if not valid:
            return Outcome("invalid-payload", best[0][1], problems=_with_xids(tried), near=near)
        xids = [outcome.definition for outcome in valid]
        message = f"{len(xids)} definitions match equally well, and so does the payload"
        problem = Problem(code="ambiguous-match", slot="definition", actual=xids, message=message)
        near = tuple(NearMiss(xid or "", ()) for xid in xids)[:MAX_NEAR]
        return Outcome("ambiguous", best[0][1], problems=(problem,), near=near)

    # -- no match ---------------------------------------------------------------------------------------------------

    def _unexpected(self, views: Sequence[MessageView], scope: EndpointScope) -> Outcome:
        view = views[0]
        if not scope.carries(view):
            message = f"the endpoint's protocol is '{scope.protocol}', the message came over '{view.protocol}'"
            problem = Problem(
                code="wrong-protocol", slot="protocol", expected=scope.protocol, actual=view.protocol, message=message
            )
            return Outcome("unexpected", view.received, problems=(problem,))
        near = self._near(views, scope)
        problems = near[0].problems if near else (NO_DEFINITION,)
        event = views[-1].received
        # A message that may be an event counts as one if the closest definition describes an event.
        is_event = len(views) == 1 or (near and self.by_xid[near[0].definition].is_cloudevent)
        if event.kind == "malformed" and is_event and not tolerated_faults.reports_wrong_value(event, problems):
            return _unreadable(event)
        return Outcome("unexpected", view.received, problems=problems, near=near)

    def _near(self, views: Sequence[MessageView], scope: EndpointScope) -> tuple[NearMiss, ...]:
        """Return at most three definitions that almost match, each with all of its problems.

        Definitions of the message's type come first; within both groups, those with fewer problems come first.
        """
        types = self.event_types.of(views)
        indexes = ((self.index(shows_protocol=view.shows_protocol), view) for view in reversed(views))
        indexed = _unique(chain.from_iterable(index.near(view, scope.members) for index, view in indexes))
        nearest: list[tuple[bool, list[Mismatch], Definition]] = []
        for has_other_type, definition in self.near_candidates(indexed, types, views[0].protocol, scope):
            is_full = len(nearest) == MAX_NEAR
            max_mismatches = len(nearest[-1][1]) if is_full else inf
            if max_mismatches <= 1 or (is_full and has_other_type > nearest[-1][0]):  # no other can precede these
                break
            view = view_for(definition, views, scope)
            mismatches = mismatches_of(
                definition, view, self.options, endpoint=scope.constraints, max_mismatches=max_mismatches
            )
            insort(nearest, (has_other_type, mismatches, definition), key=lambda near: (near[0], len(near[1])))
            del nearest[MAX_NEAR:]
        return tuple(
            NearMiss(definition.xid, tuple(mismatch.problem() for mismatch in mismatches))
            for _, mismatches, definition in nearest
        )

    def near_candidates(
        self, indexed: Iterable[Definition], types: frozenset[str], protocol: str, scope: EndpointScope
    ) -> list[tuple[bool, Definition]]:
        """Return the definitions to compare for near misses, and whether each has another type than the message.

        `indexed` are definitions from the index, the closest first. Definitions of the message's types come first.
        """
        same_type = self.event_types.same(types, protocol, scope.members)
        candidates = _unique((*islice(indexed, MAX_COMPARED), *same_type))
        constants = self.event_types.constants
        ranked = ((constants.get(candidate.xid) not in types, candidate) for candidate in candidates)
        return sorted(ranked, key=itemgetter(0))


def views_of(received: Received) -> list[MessageView]:
    """Return the message as received and, if it may be a structured CloudEvent without a marker, as that event, too."""
    structured = as_structured(received)
    views = [MessageView(received)]
    return views if structured is None else [*views, MessageView(structured, is_reinterpreted=True)]


def view_for(definition: Definition, views: Sequence[MessageView], scope: EndpointScope) -> MessageView:
    """Return the view of a message that is compared with a definition to explain why it does not match."""
    last, mode = views[-1], definition.mode or scope.constraints.mode
    asks_for_it = definition.is_cloudevent and (mode == "structured" or not last.needs_stated_mode)
    return last if asks_for_it else views[0]


def _unreadable(received: Received) -> Outcome:
    codes = {problem.code for problem in received.problems}
    if codes & OVERSIZED_CODES:
        return Outcome("oversized", received, problems=received.problems)
    return Outcome(received.kind, received, problems=received.problems)


def _unique(definitions: Iterable[Definition]) -> Iterator[Definition]:
    seen: set[Definition] = set()
    for definition in definitions:
        if definition not in seen:
            seen.add(definition)
            yield definition


def _with_xids(outcomes: Iterable[Outcome]) -> tuple[Problem, ...]:
    """The problems of several outcomes, each with the XID of its definition."""
    return tuple(problem.at(xid=outcome.definition) for outcome in outcomes for problem in outcome.problems)
