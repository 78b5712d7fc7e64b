"""Explanations: which definitions came near a message, slot by slot why or why not, and what would make it fit.

    explanation = catalog.explain(message)
    explanation.comparisons[0].wrong         # the slots that do not fit, each with a remedy

Data only; `cli.explain` renders it. Outcome and verdicts are those of `selection` and `matcher`, asked again with a
trial that remembers. Nothing here runs when messages are matched.

Spec: docs/explain.md; docs/semantics.md D48
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from wirebook.bindings import Received, read_message
from wirebook.bindings.attributes import MANDATORY
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.slots import ENVELOPE, Slot
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.explain.alignment import nearest_name
from wirebook.definitions.explain.comparison import SlotReport, compare
from wirebook.definitions.explain.near_misses import Types, constant_type, distance
from wirebook.definitions.explain.payload_faults import PayloadReport, payload_report
from wirebook.definitions.explain.typos import Slips
from wirebook.definitions.match.matcher import Match, Rank
from wirebook.definitions.match.outcome import Outcome
from wirebook.definitions.match.selection import EndpointScope, Selector, view_for, views_of
from wirebook.schema import CompiledSchema, Unsupported

MAX_RIVALS = 5

SchemaOf = Callable[[Definition], CompiledSchema | Unsupported | None]

CRITERIA: dict[str, str] = {
    "literals": "constant values",
    "template_characters": "fixed characters in templates",
    "protocol": "protocol named",
    "required": "required properties",
    "typed": "typed properties",
    "soft": "implied values that hold",
}
"""The members of a rank in words, the weightiest first (D48)."""


TELL_APART = "give one of them a value that the others do not have, or name the endpoint that the message came by"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One definition held against the message.

    Shape: `role` is ``chosen``, ``equal`` (fits as well as another), ``beaten`` (fits, another is more specific),
    ``near`` (does not fit). `slots` in slot order. `rank`, where it fits: criterion to count. `payload` None: there is
    no schema, or the slots already say that this is another kind of message.
    """

    definition: str
    role: str
    slots: tuple[SlotReport, ...]
    bindings: Mapping[str, str] = field(default_factory=dict)
    rank: Mapping[str, int] | None = None
    payload: PayloadReport | None = None

    @property
    def wrong(self) -> tuple[SlotReport, ...]:
        """The slots that keep the message from fitting."""
        return tuple(report for report in self.slots if report.verdict == "wrong")

    @property
    def fits(self) -> bool:
        """Does everything fit, payload included?"""
        return not self.wrong and (self.payload is None or self.payload.fits)

    def to_dict(self) -> dict[str, Any]:
        return {
            "definition": self.definition,
            "role": self.role,
            "bindings": dict(self.bindings),
            "rank": None if self.rank is None else dict(self.rank),
            "slots": [report.to_dict() for report in self.slots],
            "payload": None if self.payload is None else self.payload.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message is what it is.

    Shape: `outcome` as `Catalog.match` gives it; `reason` one sentence; `comparisons` the definitions that fit or came
    near, best first, at most five; `advice` sentences on what else would help, where no single slot is the cause.
    """

    outcome: Outcome
    reason: str
    comparisons: tuple[Comparison, ...] = ()
    advice: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The members that `explain --json` prints for a message: those of `match --json`, and the explanation."""
        return {
            **self.outcome.to_dict(),
            "reason": self.reason,
            "advice": list(self.advice),
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
        }


class Explainer:
    """Explains what a selector decides; `schema_of` gives a definition's payload schema."""

    def __init__(self, selector: Selector, schema_of: SchemaOf) -> None:
        self.selector = selector
        self.schema_of = schema_of

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        return {definition.xid: definition for definition in self.selector.definitions}

    @property
    def types(self) -> Types:
        return self.selector.types

    def explain(self, received: Received, endpoint: str | None = None) -> Explanation:
        """One message; `endpoint` wins over the record's own."""
        return self.explain_outcome(self.selector.select(received, endpoint), endpoint)

    def explain_outcome(self, outcome: Outcome, endpoint: str | None = None) -> Explanation:
        """A message that was selected already, through the same endpoint.

        Cost: that of selecting it again, and a few comparisons of bounded size.
        """
        xid = endpoint or outcome.received.endpoint
        scope = self.selector.scopes.get(xid) if xid else self.selector.default_scope
        if outcome.received.kind in ("malformed", "unsupported") and outcome.outcome != "unexpected":
            return Explanation(outcome, _first_message(outcome), (), tuple(_lacking_attributes(outcome)))
        if scope is None or scope.empty:
            return Explanation(outcome, _first_message(outcome), (), tuple(self._about_endpoint(xid, scope)))
        views = _views(outcome.received)
        matches = sorted(self.selector.fitting(views, scope), key=lambda each: each[0].rank, reverse=True)
        if matches:
            return self._fitting(outcome, matches, scope)
        return self._unexpected(outcome, views, scope, xid)

    # -- some fit ----------------------------------------------------------------------------------------------------

    def _fitting(self, outcome: Outcome, matches: list[tuple[Match, MessageView]], scope: EndpointScope) -> Explanation:
        best = [match_ for match_ in matches if match_[0].rank == matches[0][0].rank]
        found = [self._matched(outcome, match, view, scope, best) for match, view in matches[:MAX_RIVALS]]
        comparisons = tuple(sorted(found, key=_of_interest))
        advice = (TELL_APART,) if outcome.outcome == "ambiguous" else ()
        return Explanation(outcome, _why(outcome, matches, best), comparisons, advice)

    def _matched(
        self,
        outcome: Outcome,
        match: Match,
        view: MessageView,
        scope: EndpointScope,
        best: Sequence[tuple[Match, MessageView]],
    ) -> Comparison:
        definition = match.definition
        chosen = outcome.definition == definition.xid
        role = "chosen" if chosen else "equal" if match.rank == best[0][0].rank else "beaten"
        return Comparison(
            definition.xid,
            role,
            compare(definition, view, self.selector.options, scope),
            match.bindings,
            match.rank._asdict(),
            self._payload(definition, view) if match.rank == best[0][0].rank else None,
        )

    def _payload(self, definition: Definition, view: MessageView) -> PayloadReport | None:
        reading = self.selector.read_payload(definition, view.received)
        if reading is None:
            return None
        return payload_report(definition, reading, view.received.payload, self.schema_of(definition))

    # -- none fits ---------------------------------------------------------------------------------------------------

    def _unexpected(
        self, outcome: Outcome, views: Sequence[MessageView], scope: EndpointScope, xid: str | None
    ) -> Explanation:
        comparisons = self._nearest(outcome, views, scope) if scope.carries(views[0]) else ()
        advice = tuple(self._elsewhere(views, scope, xid))
        if not comparisons and not advice and scope.carries(views[0]):
            advice = (self._bound_protocols(),)
        if not comparisons:
            return Explanation(outcome, _first_message(outcome), (), advice)
        count = len(comparisons)
        reason = f"no definition fits; {count} came near" if count > 1 else "no definition fits; one came near"
        return Explanation(outcome, reason, comparisons, advice)

    def _nearest(self, outcome: Outcome, views: Sequence[MessageView], scope: EndpointScope) -> tuple[Comparison, ...]:
        """Definitions of the message's type, near misses that selection found, and definitions of a similar type.

        Order: those of the message's type first, then by distance.
        """
        types = self.types.of(views)
        same = self.types.same(types, views[0].protocol, scope.members)
        near = [self.definitions[each.definition] for each in outcome.near]
        alike = (each for view in views for each in self.types.alike(view, scope.members))
        named = islice(dict.fromkeys((*same, *near, *alike)), MAX_RIVALS) if same or near else ()
        found = [self._near(each, views, scope) for each in named]
        first = {xid for xid in (each.definition for each in found) if constant_type(self.definitions[xid]) in types}
        return tuple(
            sorted(found, key=lambda each: (each.definition not in first, *distance(each.slots, each.payload)))
        )

    def _near(self, definition: Definition, views: Sequence[MessageView], scope: EndpointScope) -> Comparison:
        view = view_for(definition, views, scope)
        reports = compare(definition, view, self.selector.options, scope)
        same_kind = not any(report.slot in ("protocol", "envelope") for report in reports if report.verdict == "wrong")
        payload = self._payload(definition, view) if same_kind else None
        bindings = {name: text for report in reports for part in report.parts for name, text in part.bound.items()}
        return Comparison(definition.xid, "near", reports, bindings, None, payload)

    def _elsewhere(self, views: Sequence[MessageView], scope: EndpointScope, xid: str | None) -> Iterator[str]:
        """Definitions outside of the endpoint that the message fits; its own where the protocol is another."""
        if scope is self.selector.default_scope:
            return
        fitting = [match.definition.xid for match, _ in self.selector.fitting(views, self.selector.default_scope)]
        own = [each for each in fitting if scope.members is None or each in scope.members]
        others = [each for each in fitting if each not in own]
        if own and not scope.carries(views[0]):
            yield f"it fits {', '.join(own[:MAX_RIVALS])} when it is not matched for the endpoint '{xid}'"
        if others:
            yield f"it fits {', '.join(others[:MAX_RIVALS])}, which the endpoint '{xid}' does not carry"

    def _bound_protocols(self) -> str:
        counted = Counter(definition.protocol or "any protocol" for definition in self.selector.definitions)
        named = ", ".join(f"{protocol} ({count:,})" for protocol, count in counted.most_common(MAX_RIVALS))
        return f"the catalogue has definitions for: {named}" if named else "the catalogue has no definitions"

    def _about_endpoint(self, xid: str | None, scope: EndpointScope | None) -> Iterator[str]:
        """What else an endpoint that the catalogue does not have could be."""
        if scope is not None or not xid:
            return
        if near := nearest_name(xid, self.selector.scopes):
            yield f"did you mean the endpoint '{near}'?"
        known = ", ".join(sorted(self.selector.scopes)[:MAX_RIVALS])
        yield f"the catalogue has these endpoints: {known}" if known else "the catalogue has no endpoints"


def _of_interest(comparison: Comparison) -> tuple[int, int]:
    """What was chosen comes first, then, of those that fit equally well, the ones that the payload fits best."""
    role = ("chosen", "equal", "beaten").index(comparison.role)
    return role, len(comparison.payload.faults) if comparison.payload else 0


def _views(received: Received) -> list[MessageView]:
    """The views that the message was selected by; an event that only the context tells comes with its native self."""
    if received.kind == "cloudevent" and received.wire is not None and received.mode == "structured":
        first = read_message(received.wire)[:1]
        if first and first[0].kind == "native":
            return views_of(first[0])
    return views_of(received)


def _lacking_attributes(outcome: Outcome) -> Iterator[str]:
    """What a CloudEvent lacks that it must have, and the slip that may be why."""
    slips = Slips((), MessageView(outcome.received))
    told = {problem.slot for problem in outcome.problems}
    slots = (Slot(ENVELOPE, name, f"envelopemetadata.{name}") for name in MANDATORY)
    for slot in (each for each in slots if each.label in told and each.name not in outcome.received.attributes):
        near = slips.nearest(slot)
        yield f"rename '{near}' to '{slips.spelled(slot)}'" if near else f"add '{slips.spelled(slot)}'"


def _first_message(outcome: Outcome) -> str:
    return next((problem.message for problem in outcome.problems), outcome.outcome)


def _why(
    outcome: Outcome, matches: Sequence[tuple[Match, MessageView]], best: Sequence[tuple[Match, MessageView]]
) -> str:
    """One sentence on how the one, or none, was chosen among those that fit."""
    if outcome.outcome == "ambiguous":
        return f"{_same(best)}, and the payload fits no fewer of them"
    if len(best) > 1 and outcome.definition:
        return f"{_same(best)}; the payload fits this one alone"
    if len(best) > 1:
        return f"{_same(best)}; the payload fits none of them"
    if outcome.outcome != "matched":
        return "one definition was chosen; its payload does not fit"
    if len(matches) == 1:
        return "one definition fits"
    criterion, more, fewer = _decisive(matches[0][0].rank, matches[len(best)][0].rank)
    return f"{len(matches)} definitions fit; this one is the most specific: {criterion} {more}, the next has {fewer}"


def _same(best: Sequence[tuple[Match, MessageView]]) -> str:
    rank = best[0][0].rank
    counted = ", ".join(f"{CRITERIA[name]} {count}" for name, count in rank._asdict().items() if count)
    return f"{len(best)} definitions fit equally well" + (f" ({counted})" if counted else "")


def _decisive(first: Rank, second: Rank) -> tuple[str, int, int]:
    """The criterion that tells two ranks apart, with both counts."""
    name = next(each for each in first._fields if getattr(first, each) != getattr(second, each))
    return CRITERIA[name], getattr(first, name), getattr(second, name)
