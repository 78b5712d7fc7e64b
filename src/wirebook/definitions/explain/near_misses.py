"""How near definitions come to a message: for people, who see the slip of one letter before they count slots.

`selection` finds near misses by the message's `type` and in an index, with little work for each message. An explanation
can look at more: at the definitions whose `type` is like the message's, and at how much the slots differ that do not
fit.

Spec: docs/explain.md#which-definitions-are-shown
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher, get_close_matches
from functools import cached_property
from heapq import nlargest, nsmallest
from typing import TYPE_CHECKING

from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.slots import ENVELOPE, Slot
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.explain.alignment import begin_alike
from wirebook.definitions.explain.typos import unmarked_event

if TYPE_CHECKING:
    from wirebook.definitions.explain.comparison import SlotReport
    from wirebook.definitions.explain.payload_faults import PayloadReport

TYPE = Slot(ENVELOPE, "type", "envelopemetadata.type")
MAX_LOOKED_AT, MAX_TYPES, LIKENESS = 100, 3, 0.6
MAX_TEXT = 200
HALF = 0.5


class Types:
    """Definitions by the constant `type` that they ask for; letters' case does not matter here."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self.definitions = definitions

    @cached_property
    def by_type(self) -> dict[str, list[Definition]]:
        found: dict[str, list[Definition]] = {}
        for definition in self.definitions:
            if definition.is_cloudevent and (type_ := constant_type(definition)):
                found.setdefault(_text(type_), []).append(definition)
        return found

    def of(self, views: Iterable[MessageView]) -> frozenset[str]:
        """The types that the message has, if definitions ask for types at all."""
        return frozenset(filter(None, map(type_of, views))) if self.by_type else frozenset()

    def same(self, types: Iterable[str], protocol: str, members: frozenset[str] | None) -> list[Definition]:
        """At most three definitions of these types, whatever their protocol; those for the protocol first."""
        found = [
            each
            for type_ in types
            for each in self.by_type.get(_text(type_), ())
            if constant_type(each) == type_ and (members is None or each.xid in members)
        ]
        return nsmallest(MAX_TYPES, found, key=lambda max_type: max_type.protocol not in (None, protocol))

    def alike(self, view: MessageView, members: frozenset[str] | None) -> Iterator[Definition]:
        """Definitions for the message's protocol whose type is like its own, the likest first.

        Cost: linear in the number of types, with little for each: only those that begin and end most alike are looked
        at closely.
        """
        type_ = type_of(view)
        if type_ is None:
            return
        text = _text(type_)
        looked_at = nlargest(MAX_LOOKED_AT, self.by_type, key=lambda each: _ends_alike(text, each))
        for get_close_match in get_close_matches(text, looked_at, n=MAX_TYPES, cutoff=LIKENESS):
            for definition in self.by_type[get_close_match]:
                if definition.protocol in (None, view.protocol) and (members is None or definition.xid in members):
                    yield definition


def _ends_alike(one: str, other: str) -> int:
    """How many characters two texts begin and end with alike: for one slip, all but those of the slip."""
    start = begin_alike(one, other)
    return start + begin_alike(one[start:][::-1], other[start:][::-1])


def type_of(view: MessageView) -> str | None:
    """The `type` of a CloudEvent, or of the event in the payload of a message that is not marked as one."""
    if view.is_cloudevent:
        found = view.value(TYPE)
    else:
        event = unmarked_event(view)
        found = (event[0] if isinstance(event, list) else event or {}).get("type")
    return found if isinstance(found, str) and found else None


def constant_type(definition: Definition) -> str | None:
    """The type that a definition asks for, if it is a constant."""
    declared = (
        constraint.declared
        for constraint in definition.constraints
        if constraint.slot == TYPE and constraint.template is None
    )
    found = next(declared, None)
    return found if isinstance(found, str) and found else None


def _text(value: object) -> str:
    return str(value)[:MAX_TEXT].lower()


def distance(slots: Sequence[SlotReport], payload: PayloadReport | None) -> tuple[float, ...]:
    """How far a definition is from the message.

    Rule: the slots that do not fit count, then how much they differ, then the payload's faults, then what does fit.
    """
    wrong = [report for report in slots if report.verdict == "wrong"]
    faults = len(payload.faults) if payload is not None else 0
    fitting = sum(report.verdict == "fits" for report in slots)
    return len(wrong), round(sum(map(_difference, wrong)), 3), faults, -fitting


def _difference(report: SlotReport) -> float:
    """From 0 to 1; what is not there differs less when something else was probably meant to be it."""
    unfit = [part for part in report.parts if not part.fits]
    if unfit:
        return sum(_unlike(part.template, part.value) for part in unfit) / len(report.parts)
    if report.actual is None:
        return HALF if report.nearest else 1
    texts = isinstance(report.expected, str) and isinstance(report.actual, str)
    return _unlike(report.expected, report.actual) if texts else HALF


def _unlike(one: object, other: object) -> float:
    return 1 - SequenceMatcher(None, _text(one), _text(other), autojunk=False).ratio()
