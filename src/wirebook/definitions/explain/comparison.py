"""One definition held against one message, slot by slot: what fits, what does not, and what would make it fit.

The verdicts are the matcher's own: a `Trace` is a trial that keeps what the matcher tells it.

Spec: docs/explain.md; docs/semantics.md D17-D20, D24-D34
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal

from wirebook.definitions.compile.definition import Constraint, Definition
from wirebook.definitions.compile.fit import Mismatch, ValueMatch, fit, preview, template_text
from wirebook.definitions.compile.slots import ENTRY_SECTIONS, ENVELOPE, EVENT_FORMAT
from wirebook.definitions.compile.uritemplate import Template, parse_template, uri_text
from wirebook.definitions.compile.view import ABSENT, MessageView
from wirebook.definitions.explain.alignment import AlignedSegment, filled, nearest_name, parted
from wirebook.definitions.explain.typos import Slips
from wirebook.definitions.match.matcher import Trial, bind_placeholders, mismatches_of
from wirebook.definitions.match.options import MatchOptions
from wirebook.definitions.match.selection import EndpointScope
from wirebook.definitions.normalize.names import CLOUDEVENTS, is_cloudevents
from wirebook.problems import Problem, quoted

Verdict = Literal["fits", "wrong", "open", "ignored"]
SELECTORS = frozenset({"wrong-protocol", "wrong-envelope", "wrong-mode"})
ALIGNED = frozenset({"mismatch", "template-mismatch", "placeholder-conflict"})


@dataclass(frozen=True, slots=True)
class SlotReport:
    """What the message has in one slot, under what the definition says of it.

    Shape: `verdict` is ``fits``; ``wrong``, with the `problem` and a `remedy`; ``open``: not there, and need not be;
    ``ignored``: not compared. `expected` is the definition's value, a template as it was written, or the type where it
    gives none; `actual` the message's, None when it has none. `parts` sets a template over the value, segment by
    segment, which `separator` parts. `remedy`: what would make it fit; `nearest`: the name or text that a slip was
    probably meant to be.
    """

    slot: str
    verdict: Verdict
    expected: Any
    actual: Any = None
    problem: Problem | None = None
    parts: tuple[AlignedSegment, ...] = ()
    remedy: str | None = None
    nearest: str | None = None
    separator: str = "/"

    def to_dict(self) -> dict[str, Any]:
        problem = None if self.problem is None else {"code": self.problem.code, "message": self.problem.message}
        return {
            "slot": self.slot,
            "verdict": self.verdict,
            "expected": self.expected,
            "actual": self.actual,
            "problem": problem,
            "parts": [part.to_dict() for part in self.parts],
            "remedy": self.remedy,
            "nearest": self.nearest,
        }


@dataclass(slots=True)
class Trace(Trial):
    """A trial that records the result and the value of each constraint."""

    results: dict[int, ValueMatch | Mismatch] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)

    def reject(self, constraint: Constraint, mismatch: Mismatch, value: Any) -> None:
        Trial.reject(self, constraint, mismatch, value)
        self.results[id(constraint)] = mismatch
        self.values[id(constraint)] = value

    def accept(self, constraint: Constraint, match: ValueMatch, value: Any) -> None:
        Trial.accept(self, constraint, match, value)
        self.results[id(constraint)] = match
        self.values[id(constraint)] = value

    @property
    def bound(self) -> dict[str, str]:
        """The value of each placeholder in its first slot."""
        values: dict[str, str] = {}
        for text in self.template_texts:
            for name, raw in zip(text.template.names, text.split.captures, strict=True):
                values.setdefault(name, text.template.bind(name, raw).value)
        return values


def compare(
    definition: Definition, view: MessageView, options: MatchOptions, scope: EndpointScope
) -> tuple[SlotReport, ...]:
    """Every slot that the definition, or the endpoint for it, says something about, in slot order.

    Where protocol, envelope or mode are wrong, which decides, the rest is compared all the same as far as it can be.
    """
    selectors, trace = _held(definition, view, options, scope)
    return tuple(Comparing(definition, view, options, scope, selectors, trace).reports())


def _held(
    definition: Definition, view: MessageView, options: MatchOptions, scope: EndpointScope
) -> tuple[list[Mismatch], Trace]:
    """What is wrong with the selectors, and the trace of everything else."""
    selectors: list[Mismatch] = []
    endpoint = scope.constraints
    while True:
        trace = Trace(options, inf)
        found = mismatches_of(definition, view, options, endpoint=endpoint, trial=trace)
        wrong = [each for each in found if each.code in SELECTORS]
        if not wrong:
            if found:
                bind_placeholders(trace)  # adds a conflict among the slots that fit, which else comes to light later
            return selectors, trace
        selectors += wrong
        endpoint = replace(endpoint, mode=None) if wrong[0].code == "wrong-mode" else endpoint
        definition = _relaxed(definition, wrong[0].code)


def _relaxed(definition: Definition, code: str) -> Definition:
    """The definition without a selector, and without what only makes sense with it."""
    if code == "wrong-mode":
        return replace(definition, mode=None)
    if code == "wrong-envelope":
        kept = tuple(constraint for constraint in definition.constraints if constraint.slot.section != ENVELOPE)
        return replace(definition, envelope=None, mode=None, constraints=kept, soft=())
    kept = tuple(constraint for constraint in definition.constraints if not _is_of_protocol(constraint))
    return replace(definition, protocol=None, constraints=kept, entries=())


def _is_of_protocol(constraint: Constraint) -> bool:
    return constraint.label.startswith("protocoloptions.")


@dataclass(frozen=True, slots=True)
class Comparing:
    """One comparison on its way: what was held against what, and what came of it."""

    definition: Definition
    view: MessageView
    options: MatchOptions
    scope: EndpointScope
    selectors: Sequence[Mismatch]
    trace: Trace

    def reports(self) -> Iterator[SlotReport]:
        slips = Slips((each.slot for each in self.definition.all_constraints), self.view)
        known = {id(each) for each in self.trace.results.values()}
        found = (finding for finding in self.trace.mismatches if finding.code == "placeholder-conflict")
        conflicts = {each.slot: each for each in found if id(each) not in known}
        yield from self._selectors(slips)
        for constraint in (*self.definition.all_constraints, *self._endpoint()):
            conflict = conflicts.pop(constraint.label, None) if constraint.template else None
            yield self._report(constraint, conflict or self.trace.results.get(id(constraint)), slips)
        loose = (
            finding for finding in self.trace.mismatches if finding.code in ("vacuous-match", "undeclared-property")
        )
        yield from (_loose(found, slips) for found in (*conflicts.values(), *loose))

    # -- protocol, envelope, mode -----------------------------------------------------------------------------------

    def _selectors(self, slips: Slips) -> Iterator[SlotReport]:
        wrong = {selector.slot: selector for selector in self.selectors}
        mode = self.definition.mode or self.scope.constraints.mode
        rows = (
            ("protocol", self.definition.protocol, self.view.protocol if self.view.shows_protocol else None),
            ("envelope", self.definition.envelope, "CloudEvents/1.0" if self.view.is_cloudevent else None),
            ("envelopeoptions.mode", mode if self.definition.is_cloudevent else None, self.view.mode),
        )
        for slot, expected, actual in rows:
            if expected and slot in wrong:
                remedy, nearest = _selected(wrong[slot], slips)
                yield SlotReport(slot, "wrong", expected, actual, wrong[slot].problem(), (), remedy, nearest)
            elif expected:
                yield SlotReport(slot, "ignored" if actual is None else "fits", expected, actual)

    def _endpoint(self) -> Iterator[Constraint]:
        endpoint = self.scope.constraints
        entries = (entry for group in endpoint.entries for entry in group.entries)
        return (constraint for constraint in (*endpoint.constraints, *entries) if id(constraint) in self.trace.results)

    # -- one slot ---------------------------------------------------------------------------------------------------

    def _report(self, constraint: Constraint, held: ValueMatch | Mismatch | None, slips: Slips) -> SlotReport:
        expected = _expected(constraint)
        value = self._value(constraint)
        if held is None:
            verdict: Verdict = "open" if value is ABSENT and self._is_compared(constraint) else "ignored"
            slip = slips.nearest(constraint.slot) if verdict == "open" else None
            note = slip and f"'{slip}' is not declared; rename it to '{slips.spelled(constraint.slot)}' if it is meant"
            return SlotReport(
                constraint.label, verdict, expected, _present(value), remedy=note or None, nearest=slip or None
            )
        if isinstance(held, ValueMatch):
            parts = self._parts(constraint, value)
            separator = constraint.kind.place.separator
            return SlotReport(constraint.label, "fits", expected, _present(value), parts=parts, separator=separator)
        value = held.actual if value is ABSENT and held.actual is not None else value
        return self._wrong(constraint, held, value, slips)

    def _wrong(self, constraint: Constraint, finding: Mismatch, value: Any, slips: Slips) -> SlotReport:
        parts = self._parts(constraint, value) if finding.code in ALIGNED else ()
        if value is ABSENT:
            nearest = slips.nearest(constraint.slot)
            remedy = self._missing(constraint, slips, nearest)
        else:
            nearest = _nearest_text(parts)
            remedy = self._remedy(constraint, finding, parts)
        expected, problem = _expected(constraint), finding.problem()
        separator = constraint.kind.place.separator
        return SlotReport(
            constraint.label, "wrong", expected, _present(value), problem, parts, remedy, nearest, separator
        )

    def _value(self, constraint: Constraint) -> Any:
        """The message's value at the slot: of several of one name, the one that was compared, else the first."""
        if id(constraint) in self.trace.values:
            return self.trace.values[id(constraint)]
        slot = constraint.slot
        if slot.section not in ENTRY_SECTIONS.get(self.view.family, ()):
            return self.view.value(slot)
        return next(iter(self.view.values(slot.section, slot.name)), ABSENT)

    def _fits(self, constraint: Constraint, value: Any) -> bool:
        return isinstance(fit(constraint, value, rfc6570=self.options.placeholders == "rfc6570"), ValueMatch)

    def _is_compared(self, constraint: Constraint) -> bool:
        if constraint.kind.transport and not self.options.match_transport:
            return False
        if any(selector.code == "wrong-protocol" for selector in self.selectors) and _is_of_protocol(constraint):
            return False
        if constraint.slot.section == ENVELOPE:
            return self.view.is_cloudevent
        if constraint.slot.name == EVENT_FORMAT and self.view.mode == "binary":
            return False
        return self.view.shows_protocol or constraint.slot.name == "datacontenttype"

    # -- what would make it fit -------------------------------------------------------------------------------------

    def _parts(self, constraint: Constraint, value: Any) -> tuple[AlignedSegment, ...]:
        template = _template(constraint)
        if template is None or not isinstance(value, str):
            return ()
        text = template_text(value)
        return parted(template, uri_text(text) if template.place.has_uri_text else text)

    def _missing(self, constraint: Constraint, slips: Slips, nearest: str | None) -> str:
        name = slips.spelled(constraint.slot)
        if nearest:
            return f"rename '{nearest}' to '{name}'"
        if constraint.template is not None:
            return f"add {name}: '{filled(constraint.template, (), self.trace.bound)}'"
        return f"add {name}: {_quoted(constraint.declared)}" if constraint.fixed else f"add {name}, {constraint.type}"

    def _remedy(self, constraint: Constraint, finding: Mismatch, parts: Sequence[AlignedSegment]) -> str:
        if constraint.fixed and constraint.template is None:
            is_bytes = constraint.kind.wire == "octets" and constraint.type == "binary"
            return f"set it to {'the bytes of base64 ' if is_bytes else ''}{_quoted(constraint.declared)}"
        if finding.code == "wrong-type":
            return f"use {finding.expected}"
        if finding.code == "placeholder-conflict" and constraint.template:
            known = self.trace.bound | {finding.expected["placeholder"]: finding.expected["value"]}
            other = finding.expected["slot"]
            return f"set it to '{filled(constraint.template, (), known)}', or set {other} to '{finding.actual}'"
        if constraint.template is not None:
            return self._refilled(constraint, constraint.template, parts)
        return f"use {finding.expected}"

    def _refilled(self, constraint: Constraint, template: Template, parts: Sequence[AlignedSegment]) -> str:
        """A value of the template's form that keeps what the message says; one that would not fit is not proposed."""
        text = filled(template, parts, self.trace.bound)
        proposed = text if self._fits(constraint, text) else filled(template, (), {})
        is_whole = template.match(proposed) is not None and "{" not in proposed
        return f"{'set it to' if is_whole else 'use the form'} '{preview(proposed)}'"


# -- texts ----------------------------------------------------------------------------------------------------------


def _template(constraint: Constraint) -> Template | None:
    """The constraint's template; a constant text is one without placeholders."""
    if constraint.template is not None:
        return constraint.template
    is_text = constraint.literal is not None and constraint.literal.kind == "text"
    return parse_template(constraint.literal.value, constraint.kind.place) if is_text and constraint.literal else None


def _expected(constraint: Constraint) -> Any:
    return preview(constraint.declared) if constraint.fixed else {"type": constraint.type}


def _present(value: Any) -> Any:
    return None if value is ABSENT else preview(value)


def _quoted(value: Any) -> str:
    return f"'{preview(value)}'" if isinstance(value, str) else quoted(preview(value))


def _nearest_text(parts: Sequence[AlignedSegment]) -> str | None:
    """The literal that the first wrong segment is a slip for."""
    wrong = [part for part in parts if not part.fits and part.template and part.value]
    return next((part.template for part in wrong if nearest_name(part.value, [part.template])), None)


def _selected(finding: Mismatch, slips: Slips) -> tuple[str, str | None]:
    if finding.code == "wrong-protocol":
        return f"send it over {finding.expected}", None
    if finding.code == "wrong-mode":
        return f"send it in {finding.expected} mode", None
    if not is_cloudevents(finding.expected):
        return f"set the definition's envelope to '{CLOUDEVENTS}'", None
    if (remedy := slips.missing_content_type()) is not None:
        return remedy, None
    nearest = slips.nearest_marker()
    if nearest:
        return f"rename '{nearest[0]}' to '{nearest[1]}'", nearest[0]
    return "send it as a CloudEvent", None


def _loose(finding: Mismatch, slips: Slips) -> SlotReport:
    """A finding that belongs to no single constraint."""
    problem = finding.problem()
    if finding.code != "undeclared-property":
        return SlotReport(finding.slot, "wrong", problem.expected, problem.actual, problem)
    name = finding.slot.rpartition(".")[2]
    nearest = nearest_name(name, (slot.name for slot in slips.declared))
    remedy = f"rename it to '{nearest}'" if nearest else "leave it out"
    return SlotReport(finding.slot, "wrong", None, None, problem, (), remedy, nearest)
