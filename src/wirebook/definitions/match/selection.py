"""From a message to its outcome: candidates, metadata, rank, payload.

Spec: message/spec.md#message-definition-matching (R33); docs/semantics.md D25-D27, D40, D48-D50.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from wirebook.bindings import Received, as_structured
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.explain.near_misses import Types, constant_type
from wirebook.definitions.match import tolerated_faults as faults
from wirebook.definitions.match.index import Index
from wirebook.definitions.match.matcher import (
    DEFAULT_OPTIONS,
    NO_ENDPOINT,
    EndpointConstraints,
    Match,
    MatchOptions,
    Mismatch,
    explain_metadata,
    match_metadata,
)
from wirebook.problems import Problem
from wirebook.schema import DecodedPayload, Payload
from wirebook.text.json import JsonError, parse_json
from wirebook.text.mediatypes import is_json

if TYPE_CHECKING:
    from cloudevents.core.v1.event import CloudEvent

    from wirebook.convert.cloudevents import PlainCloudEvent

MAX_NEAR = 3
MAX_TRIED = 5
OVERSIZED_CODES = frozenset({"too-large", "too-deep", "payload-too-large", "payload-too-deep"})

PayloadReader = Callable[[Definition, Received], DecodedPayload | None]


@dataclass(frozen=True, slots=True)
class Near:
    """A definition that came near, and what keeps the message from fitting."""

    definition: str
    problems: tuple[Problem, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"definition": self.definition, "problems": [problem.reason() for problem in self.problems]}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a message is.

    Shape: `outcome` is a word of the table in docs/outcomes.md (``matched``, ``unexpected`` ...); `definition` the XID,
    None unless exactly one was chosen; `bindings` placeholder to text; `reading` the decoded payload where there is a
    schema; `near` at most three, best first; `template` the definition that makes a CloudEvent of one that is none.
    """

    outcome: str
    received: Received
    definition: str | None = None
    bindings: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    near: tuple[Near, ...] = ()
    reading: DecodedPayload | None = None
    ambiguous_bindings: bool = False
    synthesized: bool = False
    template: Definition | None = field(default=None, repr=False, compare=False)

    @property
    def matched(self) -> bool:
        return self.outcome == "matched"

    @property
    def payload(self) -> Payload | None:
        """The data as received; a body of zero bytes that the schema took for a value is data, too. None: no data."""
        if self.received.is_empty and self.reading is not None and self.reading.outcome is None:
            return Payload(b"", content_type=self.received.content_type)
        return self.received.payload

    @property
    def data(self) -> Any:
        """The payload as decoded by its schema; without a schema, a JSON value or bytes.

        Without a schema the content mode makes no difference: data whose content type is JSON is the decoded value, any
        other data is bytes, and so is JSON that does not parse. None: no data.
        """
        if self.reading is not None:
            return self.reading.value
        payload = self.received.payload
        if payload is None:
            return None
        if payload.raw is None:
            return payload.value
        if not is_json(payload.content_type):
            return payload.raw
        try:
            return parse_json(payload.raw)
        except JsonError:
            return payload.raw

    def to_cloudevent(self) -> CloudEvent | PlainCloudEvent | None:
        """The message as an event of the CloudEvents SDK (extra ``cloudevents``); without it one with the same getters.

        A matched message that is not a CloudEvent gives the event that its definition makes of it (`accept_native`,
        `synthesized`). None: it gives none, because the definition has no envelope or leaves open what an event must
        have, such as `source`. A matched message never raises.

        Raises: WirebookError (``no-cloudevent``) for a message that did not match and is not a CloudEvent.
        """
        from wirebook.convert.cloudevents import event_of  # noqa: PLC0415 (only here)
        from wirebook.definitions.match.cloudevent import event_in  # noqa: PLC0415 (it knows the builder)

        event = event_in(self)
        return None if event is None else event_of(*event)

    def to_dict(self) -> dict[str, Any]:
        """The members that `match --json` prints for a message."""
        return {
            "outcome": self.outcome,
            "definition": self.definition,
            "bindings": dict(self.bindings),
            "problems": [problem.reason() for problem in self.problems],
            "near": [near.to_dict() for near in self.near],
        }


@dataclass(frozen=True, slots=True)
class EndpointScope:
    """The candidates that an endpoint allows, and what it adds to each (D19, D25, R29).

    `members` None: every definition. `empty`: the endpoint names no definitions at all (D50).
    """

    members: frozenset[str] | None = None
    protocol: str | None = None
    constraints: EndpointConstraints = NO_ENDPOINT
    empty: bool = False

    def carries(self, view: MessageView) -> bool:
        """Does the message come over the endpoint's protocol, as far as it shows one (D27)?"""
        return not self.protocol or not view.shows_protocol or self.protocol == view.protocol


EVERYTHING = EndpointScope()


def messages_once(candidates: Iterable[Definition]) -> list[Definition]:
    """Each message once: the message itself where it is among the candidates, else the first of its aliases."""
    chosen: dict[str, Definition] = {}
    for candidate in candidates:
        if candidate.source is None or candidate.identity not in chosen:
            chosen[candidate.identity] = candidate
    return list(chosen.values())


class Selector:
    """Selects the definition of each message.

    `scopes` by endpoint XID, `everything` without one; `read_payload` reads a message's payload by a definition's
    schema (None: no schema). Incomplete definitions are no candidates (D40), and of a message and its aliases only one
    is (D41).
    """

    def __init__(
        self,
        definitions: Iterable[Definition],
        scopes: Mapping[str, EndpointScope],
        read_payload: PayloadReader,
        options: MatchOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.definitions = [definition for definition in definitions if not definition.incomplete]
        self.everything = self._with_messages_once(EVERYTHING)
        self.scopes = {xid: self._with_messages_once(scope) for xid, scope in scopes.items()}
        self.read_payload = read_payload
        self.options = options
        self.observed = Index(self.definitions)

    @cached_property
    def _by_xid(self) -> dict[str, Definition]:
        return {definition.xid: definition for definition in self.definitions}

    @cached_property
    def unobserved(self) -> Index:
        """The index for events from plain files, whose protocol slots cannot be observed."""
        return Index(self.definitions, protocol_slots=False)

    def select(self, received: Received, endpoint: str | None = None) -> Outcome:
        """The outcome of one message. `endpoint` wins over the record's own. Cost: the index, then the payload."""
        if received.kind == "unsupported" or (received.kind == "malformed" and not faults.only_values(received)):
            return _unreadable(received)
        xid = endpoint or received.endpoint
        scope = self.scopes.get(xid) if xid else self.everything
        if scope is None:
            return Outcome("malformed", received, problems=(_unknown_endpoint(xid, self.scopes),))
        if scope.empty and received.kind == "malformed":
            return _unreadable(received)
        if scope.empty:
            message = "the endpoint has neither messages nor message groups"
            problem = Problem(code="no-candidates", slot="endpoint", actual=xid, message=message)
            return Outcome("unconstrained", received, problems=(problem,))
        return self._select(received, scope)

    def _with_messages_once(self, scope: EndpointScope) -> EndpointScope:
        """The scope with the source of each message instead of its aliases; without the source the first alias."""
        if not self._has_aliases:
            return scope
        members = self._by_xid if scope.members is None else scope.members
        chosen = messages_once(definition for definition in self.definitions if definition.xid in members)
        return replace(scope, members=frozenset(each.xid for each in chosen))

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
        usable = [(match, faults.accepted(match.definition, found)) for match, found in best]
        sound = [(match, found) for match, found in usable if found is not None]
        if not sound:  # the event is malformed, whatever it fits
            return _unreadable(best[0][1])
        return self._settle(*sound[0]) if len(sound) == 1 else self._settle_several(sound)

    def fitting(self, views: Sequence[MessageView], scope: EndpointScope) -> list[tuple[Match, MessageView]]:
        """Every definition of the scope whose metadata fits, in their order, each with the view that it fits.

        With `accept_native` a definition may fit an event that only the context indicates, and the native message that
        carries it: the event counts (D26).
        """
        found = [
            (match, view)
            for view in views
            for definition in self._candidates(view, scope)
            if (match := self._match(definition, view, scope))
        ]
        if len(views) == 1 or not self.options.accept_native:
            return found
        events = {match.definition for match, _ in found if not match.synthesized}
        return [each for each in found if not each[0].synthesized or each[0].definition not in events]

    def _match(self, definition: Definition, view: MessageView, scope: EndpointScope) -> Match | None:
        return match_metadata(definition, view, self.options, endpoint=scope.constraints)

    # -- candidates -------------------------------------------------------------------------------------------------

    @cached_property
    def types(self) -> Types:
        return Types(self.definitions)

    def index(self, view: MessageView) -> Index:
        return self.observed if view.shows_protocol else self.unobserved

    def _candidates(self, view: MessageView, scope: EndpointScope) -> Sequence[Definition]:
        if not scope.carries(view):
            return []
        prunes = self.options.values_imply_presence and not self.options.accept_native
        found = self.index(view).candidates(view) if prunes else self.definitions
        if view.is_reinterpreted:
            found = [each for each in found if each.is_cloudevent]
        return found if scope.members is None else [each for each in found if each.xid in scope.members]

    # -- payload ----------------------------------------------------------------------------------------------------

    def _settle(self, match: Match, received: Received) -> Outcome:
        """The outcome of the one best match: its payload decides between matched and the rest."""
        reading = self.read_payload(match.definition, received)
        outcome, problems = ("matched", ()) if reading is None else (reading.outcome or "matched", reading.problems)
        return Outcome(
            outcome,
            received,
            match.definition.xid,
            match.bindings,
            (*received.problems, *_ambiguity(match), *problems),
            reading=reading,
            ambiguous_bindings=match.ambiguous_bindings,
            synthesized=match.synthesized,
            template=match.definition if match.synthesized else None,
        )

    def _settle_several(self, best: list[tuple[Match, Received]]) -> Outcome:
        """Several equal best: the payload is held against each schema (R33, D48)."""
        tried = [self._settle(match, received) for match, received in best]
        valid = [outcome for outcome in tried if outcome.matched]
        unread = [outcome for outcome in tried if outcome.outcome in ("unsupported", "oversized")]
        if len(valid) == 1 and not unread:
            return valid[0]
        near = tuple(Near(outcome.definition or "", outcome.problems) for outcome in tried)[:MAX_NEAR]
        if unread:
            return Outcome(unread[0].outcome, best[0][1], problems=_each(unread), near=near)
        if not valid:
            return Outcome("invalid-payload", best[0][1], problems=_each(tried), near=near)
        xids = [outcome.definition for outcome in valid]
        message = f"{len(xids)} definitions fit equally well, payload included"
        problem = Problem(code="ambiguous-match", slot="definition", actual=xids, message=message)
        near = tuple(Near(xid or "", ()) for xid in xids)[:MAX_NEAR]
        return Outcome("ambiguous", best[0][1], problems=(problem,), near=near)

    # -- none -------------------------------------------------------------------------------------------------------

    def _unexpected(self, views: Sequence[MessageView], scope: EndpointScope) -> Outcome:
        view = views[0]
        if not scope.carries(view):
            message = f"the endpoint's protocol is '{scope.protocol}', the message came over '{view.protocol}'"
            problem = Problem(
                code="wrong-protocol", slot="protocol", expected=scope.protocol, actual=view.protocol, message=message
            )
            return Outcome("unexpected", view.received, problems=(problem,))
        near = self._near(views, scope)
        problems = near[0].problems if near else (_nothing_near(),)
        event = views[-1].received
        # Where only the context says that it is an event, the nearest definition is the context.
        is_event = len(views) == 1 or (near and self._by_xid[near[0].definition].is_cloudevent)
        if event.kind == "malformed" and is_event and not faults.are_reported(event, problems):
            return _unreadable(event)
        return Outcome("unexpected", view.received, problems=problems, near=near)

    def _near(self, views: Sequence[MessageView], scope: EndpointScope) -> tuple[Near, ...]:
        """At most three definitions that came near, each with every problem.

        Order: those of the message's type first, then by the number of problems.
        """
        types = self.types.of(views)
        nearest = chain.from_iterable(self.index(view).near(view, scope.members) for view in reversed(views))
        same = self.types.same(types, views[0].protocol, scope.members)
        tried = _each_once((*islice(_each_once(nearest), MAX_TRIED), *same))
        kept: list[tuple[bool, list[Mismatch], Definition]] = []
        for is_other, definition in sorted(
            ((constant_type(each) not in types, each) for each in tried), key=itemgetter(0)
        ):
            enough = len(kept[-1][1]) if len(kept) == MAX_NEAR else inf
            if enough <= 1 or (len(kept) == MAX_NEAR and is_other > kept[-1][0]):  # none comes before those
                break
            found = self._findings(definition, views, scope, enough)
            insort(kept, (is_other, found, definition), key=lambda each: (each[0], len(each[1])))
            del kept[MAX_NEAR:]
        return tuple(Near(each.xid, tuple(finding.problem() for finding in found)) for _, found, each in kept)

    def _findings(
        self, definition: Definition, views: Sequence[MessageView], scope: EndpointScope, enough: float
    ) -> list[Mismatch]:
        view = view_for(definition, views, scope)
        return explain_metadata(definition, view, self.options, endpoint=scope.constraints, enough=enough)


def _ambiguity(match: Match) -> Iterator[Problem]:
    """A note that the placeholders could be split in another way (D18)."""
    if match.ambiguous_bindings:
        message = "the placeholders could be split in more than one way"
        yield Problem("ambiguous-bindings", message, slot="bindings", actual=match.bindings)


def views_of(received: Received) -> list[MessageView]:
    """The message as it came and, where only context can tell (MQTT 3.1.1), as a structured CloudEvent too."""
    structured = as_structured(received)
    views = [MessageView(received)]
    return views if structured is None else [*views, MessageView(structured, is_reinterpreted=True)]


def view_for(definition: Definition, views: Sequence[MessageView], scope: EndpointScope) -> MessageView:
    """The view that a definition which does not fit is explained by."""
    last, mode = views[-1], definition.mode or scope.constraints.mode
    asks_for_it = definition.is_cloudevent and (mode == "structured" or not last.needs_stated_mode)
    return last if asks_for_it else views[0]


def _unreadable(received: Received) -> Outcome:
    codes = {problem.code for problem in received.problems}
    if codes & OVERSIZED_CODES:
        return Outcome("oversized", received, problems=received.problems)
    return Outcome(received.kind, received, problems=received.problems)


def _each_once(definitions: Iterable[Definition]) -> Iterator[Definition]:
    seen: set[Definition] = set()
    for definition in definitions:
        if definition not in seen:
            seen.add(definition)
            yield definition


def _nothing_near() -> Problem:
    message = "no definition shares a literal value with the message"
    return Problem(code="no-definition", slot="definition", message=message)


def _unknown_endpoint(xid: str | None, known: Iterable[str]) -> Problem:
    return Problem(
        code="unknown-endpoint",
        slot="endpoint",
        expected=sorted(known)[:10],
        actual=xid,
        message=f"the catalogue has no endpoint '{xid}'",
    )


def _each(outcomes: Iterable[Outcome]) -> tuple[Problem, ...]:
    """The problems of several definitions, each naming its definition."""
    return tuple(problem.at(xid=outcome.definition) for outcome in outcomes for problem in outcome.problems)
