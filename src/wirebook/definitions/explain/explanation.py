"""Explain the outcome of a message: compare it, slot by slot, with the definitions that match or are close.

    explanation = catalog.explain(message)
    explanation.comparisons[0].wrong         # the slots that do not match, each with a remedy

An explanation is data; `wirebook.cli.explain` prints it. `Selector` and the matcher run again, with a trial that
records the decisions, so the outcome and the verdicts are theirs. Matching itself does no extra work for explanations.

Spec: docs/explain.md; docs/semantics.md D48; docs/decisions/0062-explanations.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from wirebook.bindings import Received, read_message
from wirebook.bindings.attributes import MANDATORY
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.slots import ENVELOPE, Slot
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.explain.comparison import SlotReport, compare
from wirebook.definitions.explain.near_misses import distance
from wirebook.definitions.explain.payload_faults import PayloadReport, payload_report
from wirebook.definitions.explain.similar_names import nearest_name
from wirebook.definitions.explain.typos import Typos
from wirebook.definitions.match.matcher import Match, Rank
from wirebook.definitions.match.outcome import Outcome
from wirebook.definitions.match.selection import EndpointScope, Selector, view_for, views_of
from wirebook.schema import CompiledSchema, Unsupported

MAX_COMPARISONS: Final = 5
MAX_LISTED: Final = 5

SchemaOf = Callable[[Definition], CompiledSchema | Unsupported | None]
"""Returns the payload schema of a definition."""

CRITERIA: Final[dict[str, str]] = {
    "literals": "constant values",
    "template_characters": "literal characters in templates",
    "protocol": "protocol",
    "required": "required properties",
    "typed": "typed properties",
    "soft": "inferred values",
}
"""Descriptions of the members of a rank, the most significant first (D48)."""

ADVICE_FOR_AMBIGUOUS: Final = (
    "declare a value in one of the definitions that the others do not have, or specify the endpoint of the message"
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A definition compared with the message.

    `role` is ``chosen``, ``equal`` (matches and is as specific as another definition), ``beaten`` (matches, but another
    definition is more specific) or ``near`` (does not match). `slots` are in slot order. `rank` has the count of each
    criterion of specificity; None if the definition does not match. `payload` is None if the definition has no schema,
    is beaten, or is for another protocol or envelope.
    """

    definition: str
    role: str
    slots: tuple[SlotReport, ...]
    bindings: Mapping[str, str] = field(default_factory=dict)
    rank: Mapping[str, int] | None = None
    payload: PayloadReport | None = None

    @property
    def wrong(self) -> tuple[SlotReport, ...]:
        """The slots that prevent the message from matching."""
        return tuple(report for report in self.slots if report.verdict == "wrong")

    @property
    def fits(self) -> bool:
        """Whether no slot prevents the match, and the payload is valid if it was validated."""
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
    """Why a message has its outcome.

    `outcome` is that of `Catalog.match`. `reason` is one sentence. `comparisons` has at most five definitions that
    match or are close, the best first. `advice` has further suggestions, one sentence each.
    """

    outcome: Outcome
    reason: str
    comparisons: tuple[Comparison, ...] = ()
    advice: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The members that `explain --json` prints for a message: those of `match --json`, plus the explanation."""
        return {
            **self.outcome.to_dict(),
            "reason": self.reason,
            "advice": list(self.advice),
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
        }


class Explainer:
    """Explains outcomes of a selector."""

    def __init__(self, selector: Selector, schema_of: SchemaOf) -> None:
        self.selector = selector
        self.schema_of = schema_of

    def explain(self, received: Received, endpoint: str | None = None) -> Explanation:
        """Match and explain a message. `endpoint` (an XID) takes precedence over the endpoint of the record."""
        return self.explain_outcome(self.selector.select(received, endpoint), endpoint)

    def explain_outcome(self, outcome: Outcome, endpoint: str | None = None) -> Explanation:
        """Explain the outcome of a message. `endpoint` must be the one that the message was matched with.

        Cost: selecting the message again, and at most five comparisons.
        """
        xid = endpoint or outcome.received.endpoint
        scope = self.selector.scopes.get(xid) if xid else self.selector.default_scope
        if outcome.received.kind in ("malformed", "unsupported") and outcome.outcome != "unexpected":
            return Explanation(outcome, _first_message(outcome), (), tuple(_advice_for_missing_attributes(outcome)))
        if scope is None and xid:
            nearest, known = nearest_name(xid, self.selector.scopes), sorted(self.selector.scopes)[:MAX_LISTED]
            advice = (f"did you mean the endpoint '{nearest}'?",) if nearest else ()
            listed = f"has these endpoints: {', '.join(known)}" if known else "has no endpoints"
            return Explanation(outcome, _first_message(outcome), (), (*advice, f"the catalogue {listed}"))
        if scope is None or scope.empty:
            return Explanation(outcome, _first_message(outcome))
        views = _views(outcome.received)
        matches = sorted(self.selector.fitting(views, scope), key=lambda match: match[0].rank, reverse=True)
        if matches:
            return self._explain_matches(outcome, matches, scope)
        return self._explain_unexpected(outcome, views, scope, xid)

    # -- definitions match ------------------------------------------------------------------------------------------

    def _explain_matches(
        self, outcome: Outcome, matches: list[tuple[Match, MessageView]], scope: EndpointScope
    ) -> Explanation:
        """Explain which of the matching definitions was chosen, or why none was. `matches` has the best rank first."""
        best_rank = matches[0][0].rank
        comparisons = []
        for match, view in matches[:MAX_COMPARISONS]:
            definition, is_best = match.definition, match.rank == best_rank
            is_chosen = outcome.definition == definition.xid
            comparisons.append(
                Comparison(
                    definition.xid,
                    "chosen" if is_chosen else "equal" if is_best else "beaten",
                    compare(definition, view, self.selector.options, scope),
                    match.bindings,
                    match.rank._asdict(),
                    self._payload(definition, view) if is_best else None,
                )
            )
        comparisons.sort(key=_role_and_faults)
        advice = (ADVICE_FOR_AMBIGUOUS,) if outcome.outcome == "ambiguous" else ()
        reason = _reason_for_choice(outcome, [match.rank for match, _ in matches])
        return Explanation(outcome, reason, tuple(comparisons), advice)

    def _payload(self, definition: Definition, view: MessageView) -> PayloadReport | None:
        reading = self.selector.read_payload(definition, view.received)
        if reading is None:
            return None
        return payload_report(definition, reading, view.received.payload, self.schema_of(definition))

    # -- no definition matches --------------------------------------------------------------------------------------

    def _explain_unexpected(
        self, outcome: Outcome, views: Sequence[MessageView], scope: EndpointScope, xid: str | None
    ) -> Explanation:
        carries = scope.carries(views[0])
        comparisons = self._nearest(outcome, views, scope) if carries else ()
        advice = tuple(self._advice_for_other_endpoint(views, scope, xid))
        if comparisons:
            count = len(comparisons)
            reason = f"no definition matches; {count} are close" if count > 1 else "no definition matches; one is close"
            return Explanation(outcome, reason, comparisons, advice)
        if not advice and carries:
            counts = Counter(definition.protocol or "any protocol" for definition in self.selector.definitions)
            listed = ", ".join(f"{protocol} ({number:,})" for protocol, number in counts.most_common(MAX_LISTED))
            advice = (f"the catalogue has definitions for: {listed}" if listed else "the catalogue has no definitions",)
        return Explanation(outcome, _first_message(outcome), (), advice)

    def _nearest(self, outcome: Outcome, views: Sequence[MessageView], scope: EndpointScope) -> tuple[Comparison, ...]:
        """Compare definitions of the same type, the near misses of the outcome, and definitions of a similar type.

        Definitions of the same type come first; within both groups, the closest definition comes first.
        """
        event_types = self.selector.event_types
        types = event_types.of(views)
        same = event_types.same(types, views[0].protocol, scope.members)
        near = [self.selector.by_xid[near_miss.definition] for near_miss in outcome.near]
        if not same and not near:
            return ()
        similar = (definition for view in views for definition in event_types.similar(view, scope.members))
        ranked = []
        for definition in islice(dict.fromkeys((*same, *near, *similar)), MAX_COMPARISONS):
            comparison = self._compare_near(definition, views, scope)
            has_other_type = event_types.constants.get(definition.xid) not in types
            ranked.append(((has_other_type, *distance(comparison.slots, comparison.payload)), comparison))
        ranked.sort(key=lambda entry: entry[0])
        return tuple(comparison for _, comparison in ranked)

    def _compare_near(self, definition: Definition, views: Sequence[MessageView], scope: EndpointScope) -> Comparison:
        view = view_for(definition, views, scope)
        reports = compare(definition, view, self.selector.options, scope)
        wrong = {report.slot for report in reports if report.verdict == "wrong"}
        payload = self._payload(definition, view) if wrong.isdisjoint(("protocol", "envelope")) else None
        bindings = {name: text for report in reports for part in report.parts for name, text in part.bound.items()}
        return Comparison(definition.xid, "near", reports, bindings, None, payload)

    def _advice_for_other_endpoint(
        self, views: Sequence[MessageView], scope: EndpointScope, xid: str | None
    ) -> Iterator[str]:
        """Yield advice that names the definitions that the message would match without its endpoint."""
        if scope is self.selector.default_scope:
            return
        xids = [match.definition.xid for match, _ in self.selector.fitting(views, self.selector.default_scope)]
        members = [xid_ for xid_ in xids if scope.members is None or xid_ in scope.members]
        others = [xid_ for xid_ in xids if xid_ not in members]
        if members and not scope.carries(views[0]):
            yield f"the message matches {', '.join(members[:MAX_LISTED])} without the endpoint '{xid}'"
        if others:
            yield f"the message matches {', '.join(others[:MAX_LISTED])}, which the endpoint '{xid}' does not have"


def _role_and_faults(comparison: Comparison) -> tuple[int, int]:
    """A sort key: the chosen definition first, then equal ones, then beaten ones; fewer payload faults first."""
    role = ("chosen", "equal", "beaten").index(comparison.role)
    return role, len(comparison.payload.faults) if comparison.payload else 0


def _views(received: Received) -> list[MessageView]:
    """The views of the message that `Selector` used.

    For a structured event without a content type, the outcome may have only the event. The message as received is then
    read from the wire record again.
    """
    if received.kind == "cloudevent" and received.wire is not None and received.mode == "structured":
        first = read_message(received.wire)[:1]
        if first and first[0].kind == "native":
            return views_of(first[0])
    return views_of(received)


def _advice_for_missing_attributes(outcome: Outcome) -> Iterator[str]:
    """Yield how to add each mandatory attribute that a malformed CloudEvent does not have."""
    typos = Typos((), MessageView(outcome.received))
    faulty = {problem.slot for problem in outcome.problems}
    for name in MANDATORY:
        slot = Slot(ENVELOPE, name, f"envelopemetadata.{name}")
        if slot.label in faulty and name not in outcome.received.attributes:
            nearest = typos.nearest(slot)
            wire_name = typos.name_on_wire(slot)
            yield f"rename '{nearest}' to '{wire_name}'" if nearest else f"add '{wire_name}'"


def _first_message(outcome: Outcome) -> str:
    return next((problem.message for problem in outcome.problems), outcome.outcome)


def _reason_for_choice(outcome: Outcome, ranks: Sequence[Rank]) -> str:
    """Describe how the definition was chosen, or why none was. `ranks` are those of the matches, the best first."""
    best_count = ranks.count(ranks[0])
    is_invalid = outcome.outcome == "invalid-payload"
    if best_count > 1:
        counts = ", ".join(f"{CRITERIA[name]}: {count}" for name, count in ranks[0]._asdict().items() if count)
        equal = f"{best_count} definitions are equally specific" + (f" ({counts})" if counts else "")
        if outcome.outcome == "ambiguous":
            return f"{equal}, and the payload is valid for more than one of them"
        if outcome.definition:
            return f"{equal}; the payload is valid for this one only"
        return f"{equal}; the payload {'is valid for none of them' if is_invalid else 'cannot be validated'}"
    if outcome.outcome != "matched":
        return f"one definition was chosen, but the payload {'is invalid' if is_invalid else 'cannot be validated'}"
    if len(ranks) == 1:
        return "one definition matches"
    best, next_best = ranks[0], ranks[1]
    name = next(name for name in best._fields if getattr(best, name) != getattr(next_best, name))
    counts = f"{CRITERIA[name]}: {getattr(best, name)}, next: {getattr(next_best, name)}"
    return f"{len(ranks)} definitions match; this one is the most specific ({counts})"
