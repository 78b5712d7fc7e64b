"""Compare one definition with one message, slot by slot: what matches, what does not, and how to fix it.

The verdicts are those of the matcher: `Trace` is a trial that records each decision of the matcher.

Spec: docs/explain.md; docs/semantics.md D17-D20, D24-D34; docs/decisions/0062-explanations.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final, Literal

from wirebook.definitions.compile.definition import Constraint, Definition
from wirebook.definitions.compile.fit import Mismatch, ValueMatch, fit, preview, template_text
from wirebook.definitions.compile.slots import ENTRY_SECTIONS, ENVELOPE, EVENT_FORMAT
from wirebook.definitions.compile.uritemplate import Template, parse_template, uri_text
from wirebook.definitions.compile.view import ABSENT, MessageView
from wirebook.definitions.explain.alignment import AlignedSegment, align, fill_template
from wirebook.definitions.explain.similar_names import nearest_name
from wirebook.definitions.explain.typos import Typos
from wirebook.definitions.match.matcher import Trial, bind_placeholders, mismatches_of
from wirebook.definitions.match.options import MatchOptions
from wirebook.definitions.match.selection import EndpointScope
from wirebook.definitions.normalize.names import CLOUDEVENTS, is_cloudevents
from wirebook.problems import Problem, quoted

Verdict = Literal["fits", "wrong", "open", "ignored"]
SELECTOR_CODES: Final = frozenset({"wrong-protocol", "wrong-envelope", "wrong-mode"})
ALIGNED_CODES: Final = frozenset({"mismatch", "template-mismatch", "placeholder-conflict"})
"""Mismatches whose value is shown aligned with the template."""
UNATTACHED_CODES: Final = frozenset({"vacuous-match", "undeclared-property"})
"""Mismatches that belong to no constraint."""


@dataclass(frozen=True, slots=True)
class SlotReport:
    """The value of a message in one slot, compared with the definition.

    `verdict` is ``fits``, ``wrong`` (with `problem` and `remedy`), ``open`` (absent, and not required) or ``ignored``
    (not compared). `expected` is the value that the definition declares (a template is not expanded), or an object with
    the type if it declares no value. `actual` is None if the message has no value. `parts` aligns a template with the
    value, segment by segment; `separator` separates the segments. `remedy` tells the user how to fix the message. If
    there is a typo, `nearest` is the name or text that is probably meant.
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
    """A trial that records the result and the compared value of each constraint, by the id of the constraint."""

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
    """Report every slot that the definition or its endpoint constrains, in slot order.

    The matcher stops at a wrong protocol, envelope or mode. This comparison continues without the wrong selector, so
    that the other slots are reported, too.
    """
    wrong_selectors: list[Mismatch] = []
    relaxed, endpoint = definition, scope.constraints
    while True:
        trace = Trace(options, inf)
        mismatches = mismatches_of(relaxed, view, options, endpoint=endpoint, trial=trace)
        wrong = [mismatch for mismatch in mismatches if mismatch.code in SELECTOR_CODES]
        if not wrong:
            break
        wrong_selectors += wrong
        if wrong[0].code == "wrong-mode":
            endpoint = replace(endpoint, mode=None)
        relaxed = _without_selector(relaxed, wrong[0].code)
    if mismatches:
        bind_placeholders(trace)  # the matcher skips this after a mismatch; it adds conflicts between matching slots
    return tuple(SlotReporter(definition, view, options, scope, wrong_selectors, trace).reports())


def _without_selector(definition: Definition, code: str) -> Definition:
    """The definition without the wrong selector and the constraints that depend on it."""
    if code == "wrong-mode":
        return replace(definition, mode=None)
    if code == "wrong-envelope":
        constraints = tuple(constraint for constraint in definition.constraints if constraint.slot.section != ENVELOPE)
        return replace(definition, envelope=None, mode=None, constraints=constraints, soft=())
    constraints = tuple(constraint for constraint in definition.constraints if not _is_protocol_option(constraint))
    return replace(definition, protocol=None, constraints=constraints, entries=())


def _is_protocol_option(constraint: Constraint) -> bool:
    return constraint.label.startswith("protocoloptions.")


@dataclass(frozen=True, slots=True)
class SlotReporter:
    """Creates the slot reports of one comparison from the trace of the matcher and the wrong selectors."""

    definition: Definition
    view: MessageView
    options: MatchOptions
    scope: EndpointScope
    wrong_selectors: Sequence[Mismatch]
    trace: Trace

    def reports(self) -> Iterator[SlotReport]:
        typos = Typos((constraint.slot for constraint in self.definition.all_constraints), self.view)
        results = self.trace.results
        reported = {id(result) for result in results.values()}
        conflicts = {
            mismatch.slot: mismatch
            for mismatch in self.trace.mismatches
            if mismatch.code == "placeholder-conflict" and id(mismatch) not in reported
        }
        yield from self._selector_reports(typos)

        endpoint = self.scope.constraints
        entries = (entry for group in endpoint.entries for entry in group.entries)
        compared = (constraint for constraint in (*endpoint.constraints, *entries) if id(constraint) in results)
        for constraint in (*self.definition.all_constraints, *compared):
            conflict = conflicts.pop(constraint.label, None) if constraint.template else None
            yield self._report(constraint, conflict or results.get(id(constraint)), typos)

        unattached = (mismatch for mismatch in self.trace.mismatches if mismatch.code in UNATTACHED_CODES)
        yield from (_unattached_report(mismatch, typos) for mismatch in (*conflicts.values(), *unattached))

    # -- protocol, envelope, mode -----------------------------------------------------------------------------------

    def _selector_reports(self, typos: Typos) -> Iterator[SlotReport]:
        wrong = {mismatch.slot: mismatch for mismatch in self.wrong_selectors}
        mode = self.definition.mode or self.scope.constraints.mode
        rows = (
            ("protocol", self.definition.protocol, self.view.protocol if self.view.shows_protocol else None),
            ("envelope", self.definition.envelope, "CloudEvents/1.0" if self.view.is_cloudevent else None),
            ("envelopeoptions.mode", mode if self.definition.is_cloudevent else None, self.view.mode),
        )
        for slot, expected, actual in rows:
            if expected and slot in wrong:
                remedy, nearest = _selector_remedy(wrong[slot], typos)
                yield SlotReport(slot, "wrong", expected, actual, wrong[slot].problem(), (), remedy, nearest)
            elif expected:
                yield SlotReport(slot, "ignored" if actual is None else "fits", expected, actual)

    # -- one slot ---------------------------------------------------------------------------------------------------

    def _report(self, constraint: Constraint, result: ValueMatch | Mismatch | None, typos: Typos) -> SlotReport:
        value = self._value(constraint)
        if isinstance(result, Mismatch):
            if value is ABSENT and result.actual is not None:
                value = result.actual
            return self._wrong_report(constraint, result, value, typos)
        slot, expected, actual = constraint.label, _expected(constraint), _actual(value)
        if isinstance(result, ValueMatch):
            parts = self._align(constraint, value)
            return SlotReport(slot, "fits", expected, actual, parts=parts, separator=constraint.kind.place.separator)
        if value is not ABSENT or not self._is_compared(constraint):
            return SlotReport(slot, "ignored", expected, actual)
        typo = typos.nearest(constraint.slot)
        note = f"'{typo}' is not declared; did you mean '{typos.name_on_wire(constraint.slot)}'?" if typo else None
        return SlotReport(slot, "open", expected, actual, remedy=note, nearest=typo)

    def _wrong_report(self, constraint: Constraint, mismatch: Mismatch, value: Any, typos: Typos) -> SlotReport:
        parts = self._align(constraint, value) if mismatch.code in ALIGNED_CODES else ()
        if value is ABSENT:
            nearest = typos.nearest(constraint.slot)
            remedy = self._remedy_for_absence(constraint, typos, nearest)
        else:
            # the literal of the first differing segment whose text is similar to it
            differing = (part for part in parts if not part.fits and part.template and part.value)
            nearest = next((part.template for part in differing if nearest_name(part.value, [part.template])), None)
            remedy = self._remedy(constraint, mismatch, parts)
        return SlotReport(
            constraint.label,
            "wrong",
            _expected(constraint),
            _actual(value),
            mismatch.problem(),
            parts,
            remedy,
            nearest,
            constraint.kind.place.separator,
        )

    def _value(self, constraint: Constraint) -> Any:
        """The value of the slot in the message. For a repeated name: the instance that was compared, else the first."""
        if id(constraint) in self.trace.values:
            return self.trace.values[id(constraint)]
        slot = constraint.slot
        if slot.section not in ENTRY_SECTIONS.get(self.view.family, ()):
            return self.view.value(slot)
        return next(iter(self.view.values(slot.section, slot.name)), ABSENT)

    def _is_compared(self, constraint: Constraint) -> bool:
        """Whether the matcher would compare the slot if the message had a value."""
        if constraint.kind.transport and not self.options.match_transport:
            return False
        has_wrong_protocol = any(mismatch.code == "wrong-protocol" for mismatch in self.wrong_selectors)
        if has_wrong_protocol and _is_protocol_option(constraint):
            return False
        if constraint.slot.section == ENVELOPE:
            return self.view.is_cloudevent
        if constraint.slot.name == EVENT_FORMAT and self.view.mode == "binary":
            return False
        return self.view.shows_protocol or constraint.slot.name == "datacontenttype"

    def _align(self, constraint: Constraint, value: Any) -> tuple[AlignedSegment, ...]:
        template = _template(constraint)
        if template is None or not isinstance(value, str):
            return ()
        text = template_text(value)
        return align(template, uri_text(text) if template.place.has_uri_text else text)

    # -- remedies ---------------------------------------------------------------------------------------------------

    def _remedy_for_absence(self, constraint: Constraint, typos: Typos, nearest: str | None) -> str:
        name = typos.name_on_wire(constraint.slot)
        if nearest:
            return f"rename '{nearest}' to '{name}'"
        if constraint.template is not None:
            return f"add {name}: '{fill_template(constraint.template, (), self.trace.bound)}'"
        return f"add {name}: {_quoted(constraint.declared)}" if constraint.fixed else f"add {name} ({constraint.type})"

    def _remedy(self, constraint: Constraint, mismatch: Mismatch, parts: Sequence[AlignedSegment]) -> str:
        template = constraint.template
        if constraint.fixed and template is None:
            is_binary = constraint.kind.wire == "octets" and constraint.type == "binary"
            return f"set it to {'the bytes with the base64 ' if is_binary else ''}{_quoted(constraint.declared)}"
        if mismatch.code == "wrong-type" or template is None:
            return f"use {mismatch.expected}"
        if mismatch.code == "placeholder-conflict":
            values = self.trace.bound | {mismatch.expected["placeholder"]: mismatch.expected["value"]}
            other_slot = mismatch.expected["slot"]
            return f"set it to '{fill_template(template, (), values)}', or set {other_slot} to '{mismatch.actual}'"
        # Suggest a value that keeps the matching segments of the message, if it matches; else the template itself.
        text = fill_template(template, parts, self.trace.bound)
        if not isinstance(fit(constraint, text, rfc6570=self.options.placeholders == "rfc6570"), ValueMatch):
            text = template.text
        is_complete = template.match(text) is not None and "{" not in text
        return f"{'set it to' if is_complete else 'use a value of the form'} '{preview(text)}'"


def _selector_remedy(mismatch: Mismatch, typos: Typos) -> tuple[str, str | None]:
    """The remedy for a wrong protocol, envelope or mode, and the name in the message that is probably a typo."""
    if mismatch.code == "wrong-protocol":
        return f"send the message over {mismatch.expected}", None
    if mismatch.code == "wrong-mode":
        return f"send the message in {mismatch.expected} mode", None
    if not is_cloudevents(mismatch.expected):
        return f"set the definition's envelope to '{CLOUDEVENTS}'", None
    if (remedy := typos.missing_content_type()) is not None:
        return remedy, None
    if (rename := typos.nearest_specversion()) is not None:
        return f"rename '{rename[0]}' to '{rename[1]}'", rename[0]
    return "send the message as a CloudEvent", None


def _unattached_report(mismatch: Mismatch, typos: Typos) -> SlotReport:
    """The report of a mismatch that belongs to no constraint."""
    problem = mismatch.problem()
    if mismatch.code != "undeclared-property":
        return SlotReport(mismatch.slot, "wrong", problem.expected, problem.actual, problem)
    name = mismatch.slot.rpartition(".")[2]
    nearest = nearest_name(name, (slot.name for slot in typos.declared))
    remedy = f"rename it to '{nearest}'" if nearest else "remove it"
    return SlotReport(mismatch.slot, "wrong", None, None, problem, (), remedy, nearest)


def _template(constraint: Constraint) -> Template | None:
    """The template of a constraint; a constant text counts as a template without placeholders."""
    if constraint.template is not None:
        return constraint.template
    literal = constraint.literal
    is_text = literal is not None and literal.kind == "text"
    return parse_template(literal.value, constraint.kind.place) if is_text and literal else None


def _expected(constraint: Constraint) -> Any:
    return preview(constraint.declared) if constraint.fixed else {"type": constraint.type}


def _actual(value: Any) -> Any:
    return None if value is ABSENT else preview(value)


def _quoted(value: Any) -> str:
    return f"'{preview(value)}'" if isinstance(value, str) else quoted(preview(value))
