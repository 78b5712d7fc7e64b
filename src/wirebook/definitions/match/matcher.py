"""Match the metadata of a message (envelope and protocol options) against one definition.

This is the reference engine; the column engine (`wirebook.landing.columns`) returns the same results. Payloads are
validated later, by `wirebook.definitions.match.selection`, and only for the definitions with the highest rank.

Spec: message/spec.md#message-definition-matching; docs/semantics.md D1, D5, D14, D17-D20, D24-D34, D48.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from wirebook.definitions.compile.definition import Constraint, Definition, Entries
from wirebook.definitions.compile.fit import MATCH, Mismatch, ValueMatch, ValueMismatch, fit, mismatch_of, preview
from wirebook.definitions.compile.slots import (
    ATTRIBUTES,
    BARE,
    DEFAULT_METHOD,
    ENVELOPE,
    EVENT_FORMAT,
    envelope_attribute,
)
from wirebook.definitions.compile.uritemplate import PlaceholderConflict, Solver, Split, Template, units_of
from wirebook.definitions.compile.view import ABSENT, MessageView
from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.definitions.match.repeated import (
    Assignment,
    Candidate,
    Choice,
    ChoiceSolver,
    Instance,
    assign_first,
    instances_of,
)
from wirebook.definitions.normalize.names import CLOUDEVENTS


class Rank(NamedTuple):
    """How specific a match is. The definition with the highest rank is chosen (D48)."""

    literals: int
    template_characters: int
    protocol: int
    required: int
    typed: int
    soft: int


@dataclass(frozen=True, slots=True)
class Match:
    """A definition whose metadata matches. `synthesized`: the message itself has no envelope (D26)."""

    definition: Definition
    rank: Rank
    bindings: dict[str, str]
    ambiguous_bindings: bool = False
    synthesized: bool = False


class TemplateText(NamedTuple):
    """A text of the message that matches a template; `label` is that of the slot, `split` has the placeholders."""

    label: str
    template: Template
    text: str
    split: Split


@dataclass(slots=True)
class Trial:
    """The state of comparing one message with one definition.

    The trial ends early when it has `max_mismatches`; one is enough to know that the definition does not match.
    `choices` are entries of repeated names whose instance depends on the placeholders of other slots. `slot_order` has
    the labels of the slots with placeholders and of the `choices`. The numbers are for the rank; `valued` counts the
    compared constraints with a value.
    """

    options: MatchOptions
    max_mismatches: float
    mismatches: list[Mismatch] = field(default_factory=list)
    template_texts: list[TemplateText] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    slot_order: list[str] = field(default_factory=list)
    literals: int = 0
    template_characters: int = 0
    valued: int = 0
    required: int = 0
    typed: int = 0

    @property
    def is_over(self) -> bool:
        return len(self.mismatches) >= self.max_mismatches

    def reject(self, constraint: Constraint, mismatch: Mismatch, value: Any) -> None:  # noqa: ARG002 (for subclasses)
        """Record that `value` does not satisfy `constraint`."""
        self.mismatches.append(mismatch)

    def accept(self, constraint: Constraint, match: ValueMatch, value: Any) -> None:  # noqa: ARG002 (for subclasses)
        """Record that `value` satisfies `constraint`, for the rank and the placeholders."""
        if constraint.ranks:
            self.literals += constraint.valued
            self.template_characters += constraint.template.literal_length if constraint.template else 0
            self.required += constraint.required
            self.typed += constraint.typed
        if constraint.template is not None and match.split is not None:
            self.template_texts.append(TemplateText(constraint.label, constraint.template, match.text, match.split))
            self.slot_order.append(constraint.label)

    def defer(self, choice: Choice) -> None:
        """Defer the choice of an instance for an entry until the placeholders of the other slots are known."""
        self.choices.append(choice)
        self.slot_order.append(choice.constraint.label)


@dataclass(frozen=True, slots=True)
class EndpointConstraints:
    """What an endpoint requires of every message (D19, D25): its content mode and its protocol options.

    A message that does not have the slot of a constraint or entry satisfies it.
    """

    mode: str | None = None
    constraints: tuple[Constraint, ...] = ()
    entries: tuple[Entries, ...] = ()

    def constraints_for(self, definition: Definition) -> Iterator[Constraint]:
        """The constraints that apply to a definition.

        The event format applies to CloudEvents only. The method or status of a definition takes precedence over the
        default method of an HTTP endpoint.
        """
        for constraint in self.constraints:
            if constraint.slot.name == EVENT_FORMAT and not definition.is_cloudevent:
                continue
            if constraint.declared == DEFAULT_METHOD and constraint.slot.name == "method":
                slots = (other.slot for other in definition.constraints if other.fixed)
                if any(slot.section == BARE and slot.name in ("method", "status") for slot in slots):
                    continue
            yield constraint


NO_ENDPOINT = EndpointConstraints()


def match_metadata(
    definition: Definition,
    view: MessageView,
    options: MatchOptions = DEFAULT_OPTIONS,
    *,
    endpoint: EndpointConstraints = NO_ENDPOINT,
) -> Match | None:
    """Match a message against a definition. Returns None if it does not match; `mismatches_of` returns the reasons.

    Cost: linear in the size of the message.
    """
    trial = Trial(options, max_mismatches=1)
    _compare(definition, view, trial, endpoint)
    if trial.mismatches:
        return None
    bindings, is_ambiguous = bind_placeholders(trial)
    if trial.mismatches:
        return None
    protocol = 0 if definition.protocol is None else 1 if view.shows_protocol else -1
    soft = sum(_is_confirmed(constraint, view) for constraint in definition.soft)
    rank = Rank(trial.literals, trial.template_characters, protocol, trial.required, trial.typed, soft)
    return Match(definition, rank, bindings, is_ambiguous, _is_synthesized(definition, view))


def mismatches_of(
    definition: Definition,
    view: MessageView,
    options: MatchOptions = DEFAULT_OPTIONS,
    *,
    endpoint: EndpointConstraints = NO_ENDPOINT,
    max_mismatches: float = inf,
    trial: Trial | None = None,
) -> list[Mismatch]:
    """Return why a message does not match a definition, in slot order; an empty list if it matches.

    Pass a `trial` of a subclass to observe each constraint that is accepted or rejected.
    """
    trial = trial or Trial(options, max_mismatches)
    _compare(definition, view, trial, endpoint)
    if not trial.mismatches:
        bind_placeholders(trial)
    return trial.mismatches


def _compare(definition: Definition, view: MessageView, trial: Trial, endpoint: EndpointConstraints) -> None:
    """Compare all slots and record the result in `trial`. The placeholders of different slots are compared later."""
    options = trial.options
    if mismatch := selector_mismatch(definition, view, options, endpoint.mode):
        trial.mismatches.append(mismatch)
        return
    has_envelope = not _is_synthesized(definition, view)
    for constraint in definition.observed(has_envelope, view.shows_protocol, options.match_transport):
        if trial.is_over:
            return
        _compare_slot(constraint, view.value(constraint.slot), trial)
    if view.shows_protocol:
        endpoint_entries = () if view.is_response else endpoint.entries  # the options of an endpoint describe requests
        for number, entries in enumerate((*definition.entries, *endpoint_entries)):
            if trial.is_over:
                break
            _compare_entries(entries, number, view.values(entries.section, entries.name), trial)
        for constraint in endpoint.constraints_for(definition):
            if (value := view.value(constraint.slot)) is not ABSENT:
                _compare_value(constraint, value, trial)
    has_value = trial.literals or trial.template_texts or trial.choices
    if not options.values_imply_presence and trial.valued and not has_value and not trial.mismatches:  # D1
        message = "the message has none of the values that the definition declares"
        trial.mismatches.append(Mismatch("vacuous-match", definition.xid, message=message))
    if options.closed:
        trial.mismatches += undeclared_properties(definition, view)


def _is_synthesized(definition: Definition, view: MessageView) -> bool:
    return definition.is_cloudevent and not view.is_cloudevent


def _is_confirmed(constraint: Constraint, view: MessageView) -> bool:
    """Whether the message has the inferred value of a soft constraint (D12, D13)."""
    value = view.value(constraint.slot)
    return value is not ABSENT and isinstance(fit(constraint, value), ValueMatch)


def selector_mismatch(
    definition: Definition, view: MessageView, options: MatchOptions, endpoint_mode: str | None
) -> Mismatch | None:
    """Compare protocol, envelope and content mode. If one differs, the slots are not compared."""
    mode = definition.mode or endpoint_mode
    if definition.protocol and view.shows_protocol and definition.protocol != view.protocol:
        return _wrong("protocol", "protocol", definition.protocol, view.protocol)
    if definition.has_unknown_envelope:
        return _wrong("envelope", "envelope", definition.envelope, CLOUDEVENTS if view.is_cloudevent else None)
    if not definition.is_cloudevent:
        if definition.protocol and not view.shows_protocol:
            return _wrong("protocol", "protocol", definition.protocol, view.protocol)
    elif not view.is_cloudevent or (view.needs_stated_mode and mode != "structured"):
        if not (options.accept_native and definition.protocol and view.kind == "native"):
            return _wrong("envelope", "envelope", definition.envelope, None)
    elif mode and view.mode not in (mode, None) and not (view.mode == "batch" and mode == "structured"):
        return _wrong("mode", "envelopeoptions.mode", mode, view.mode)
    return None


def _wrong(selector: str, slot: str, expected: Any, actual: Any) -> Mismatch:
    return Mismatch(f"wrong-{selector}", slot, expected, actual, f"{slot} is not '{expected}'")


# -- one slot -------------------------------------------------------------------------------------------------------


def _compare_slot(constraint: Constraint, value: Any, trial: Trial) -> None:
    """Compare a value, or its absence, with a constraint."""
    if value is not ABSENT:
        _compare_value(constraint, value, trial)
    elif mismatch := absence_mismatch(constraint, trial.options):
        trial.reject(constraint, mismatch, ABSENT)
    trial.valued += constraint.fixed


def absence_mismatch(constraint: Constraint, options: MatchOptions) -> Mismatch | None:
    """The mismatch of a message that does not have the slot of `constraint`; None if the slot is optional."""
    is_implied = options.values_imply_presence and constraint.implies_presence
    if constraint.fixed and (constraint.required or is_implied):
        return mismatch_of("missing-value", constraint, None)
    return mismatch_of("missing-required", constraint, None) if constraint.required else None


def _compare_value(constraint: Constraint, value: Any, trial: Trial) -> None:
    result = fit(constraint, value, rfc6570=trial.options.placeholders == "rfc6570")
    if isinstance(result, ValueMismatch):
        trial.reject(constraint, mismatch_of(result.code, constraint, value, result.expected), value)
    else:
        trial.accept(constraint, result, value)


# -- repeated names -------------------------------------------------------------------------------------------------


def _compare_entries(group: Entries, number: int, values: list[Any], trial: Trial) -> None:
    """Compare the entries of one name (a header, query item or user property) with its instances in the message.

    If there are several instances and an entry is a template, the choice is deferred.
    """
    entries = [entry for entry in group.entries if trial.options.match_transport or not entry.kind.transport]
    if not values and group.optional:
        return
    instances = instances_of(values, lists=group.lists)
    if not values or len(entries) == len(instances) == 1:
        for entry in entries:
            _compare_slot(entry, values[0] if values else ABSENT, trial)
        return
    rfc6570 = trial.options.placeholders == "rfc6570"
    choices = [Choice(entry, number, group.exclusive, _candidates(entry, instances, rfc6570)) for entry in entries]
    assigned = assign_first(choices)
    for choice in choices:
        if choice not in assigned:
            _reject_unassigned(choice, instances, assigned, trial)
    trial.valued += sum(entry.fixed and entry.ranks for entry in entries)
    if any(choice.constraint.template for choice in assigned):
        for choice in choices:
            if choice in assigned:
                trial.defer(choice)
    else:
        for choice, candidate in assigned.items():
            trial.accept(choice.constraint, MATCH, candidate.instance.value)


def _candidates(constraint: Constraint, instances: Sequence[Instance], rfc6570: bool) -> list[Candidate]:
    """The instances that satisfy `constraint` by themselves."""
    results = ((instance, fit(constraint, instance.value, rfc6570=rfc6570)) for instance in instances)
    return [
        Candidate.of(instance, constraint.template, result.text, result.split)
        for instance, result in results
        if isinstance(result, ValueMatch)
    ]


def _reject_unassigned(
    choice: Choice, instances: Sequence[Instance], assigned: Mapping[Choice, Candidate], trial: Trial
) -> None:
    """Reject an entry without an instance: compare it with the first instance that no other entry uses."""
    in_use = Assignment.of(assigned if choice.exclusive else {})
    first_free = next((instance for instance in instances if not in_use.holders(instance)), None)
    _compare_slot(choice.constraint, ABSENT if first_free is None else first_free.value, trial)


# -- placeholders ---------------------------------------------------------------------------------------------------


def bind_placeholders(trial: Trial) -> tuple[dict[str, str], bool]:
    """Return the value of each placeholder, and whether other values are possible (D18-D20).

    Chooses an instance for each deferred entry. Adds a contradiction to the mismatches of the trial.
    """
    result, is_ambiguous = None if trial.choices else _bind_unique(trial.template_texts), False
    if result is None:
        solver = Solver()
        solver.add(unit for text in trial.template_texts for unit in units_of(text.label, text.template, text.text))
        if trial.choices and not _choose_instances(trial, solver):
            return {}, False
        solver.finish()
        result = solver.solution.conflict or solver.solution.bindings(list(dict.fromkeys(trial.slot_order)))
        is_ambiguous = solver.solution.ambiguous
    if isinstance(result, PlaceholderConflict):
        trial.mismatches.append(conflict_mismatch(result))
        return {}, is_ambiguous
    return result, is_ambiguous


def _choose_instances(trial: Trial, solver: Solver) -> bool:
    """Choose an instance for each deferred entry. If an entry contradicts other slots, reject it and return False."""
    solution = ChoiceSolver(trial.choices, solver).solve()
    for choice in trial.choices:
        constraint, first = choice.constraint, choice.all_candidates[0]
        if choice is not solution.failed:
            candidate = solution.chosen.get(choice, first)
            trial.accept(constraint, ValueMatch(candidate.text, candidate.split), candidate.instance.value)
        elif solution.conflict is not None:
            trial.reject(constraint, conflict_mismatch(solution.conflict), solution.value)
        else:
            code = "mismatch" if constraint.template is None else "template-mismatch"
            trial.reject(constraint, mismatch_of(code, constraint, first.instance.value), first.instance.value)
    trial.choices = []
    return solution.failed is None


def _bind_unique(template_texts: Sequence[TemplateText]) -> dict[str, str] | PlaceholderConflict | None:
    """Bind placeholders without a solver, if every text can be split in only one way; else return None."""
    keys: dict[str, str] = {}
    has_escapes = False
    for label, template, text, split in template_texts:
        if not split.unique:
            return None
        for name, raw, key in zip(template.names, split.captures, template.keys(split), strict=True):
            if keys.setdefault(name, key) != key:
                first = next(other for other in template_texts if name in other.template.names)
                first_raw = first.split.captures[first.template.names.index(name)]
                first_value, value = first.template.bind(name, first_raw).value, template.bind(name, raw).value
                return PlaceholderConflict(name, first.label, first_value, label, value)
        has_escapes = has_escapes or template.keeps_escapes(text)
    return _decoded_values(template_texts, keys) if has_escapes else keys


def _decoded_values(template_texts: Sequence[TemplateText], names: Iterable[str]) -> dict[str, str]:
    """The value of each placeholder in its first slot that is not a URI, else in its first slot (D20)."""
    values: dict[str, str] = {}
    for text in sorted(template_texts, key=lambda text: text.template.place.uri):
        for name, raw in zip(text.template.names, text.split.captures, strict=True):
            values.setdefault(name, text.template.bind(name, raw).value)
    return {name: values[name] for name in names}


def conflict_mismatch(conflict: PlaceholderConflict) -> Mismatch:
    """The mismatch of a placeholder with different values in two slots."""
    message = f"'{conflict.name}' is '{conflict.first}' in {conflict.first_slot}, '{conflict.second}' here"
    expected = {"placeholder": conflict.name, "slot": conflict.first_slot, "value": preview(conflict.first)}
    return Mismatch("placeholder-conflict", conflict.second_slot, expected, conflict.second, message)


# -- closed definitions ---------------------------------------------------------------------------------------------


def undeclared_properties(definition: Definition, view: MessageView) -> Iterator[Mismatch]:
    """Mismatches for the properties of a message that neither CloudEvents nor the definition declares (D2)."""
    declared = {(constraint.slot.section, constraint.slot.name) for constraint in definition.all_constraints}
    declared |= {(ENVELOPE, name) for name in ATTRIBUTES}
    for section, name in view.extras():
        attribute = envelope_attribute(view.family, section, name) if section != ENVELOPE else None
        if (section, name) not in declared and not (attribute and view.is_cloudevent):
            label = f"{'envelopemetadata' if section == ENVELOPE else 'protocoloptions.' + section}.{name}"
            yield Mismatch("undeclared-property", label, message=f"{label} is not declared")
