"""Does a message fit a definition? The reference answer; every other engine is held to it.

`match_metadata` looks at envelope and protocol, never at the payload: the order is metadata, rank, payload
(`message.selection`).

Spec: message/spec.md#message-definition-matching; docs/semantics.md D1, D5, D14, D17-D20, D24-D34, D48.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any, Literal, NamedTuple

from wirebook.definitions.compile.definition import Constraint, Definition, Entries
from wirebook.definitions.compile.mediatype import parse_media_type
from wirebook.definitions.compile.slots import (
    ATTRIBUTES,
    BARE,
    DEFAULT_METHOD,
    ENVELOPE,
    EVENT_FORMAT,
    envelope_attribute,
)
from wirebook.definitions.compile.uritemplate import (
    Bound,
    PlaceholderConflict,
    Solver,
    Split,
    Template,
    units_of,
    uri_text,
)
from wirebook.definitions.compile.values import CHECKS, NotOfType, is_text_of
from wirebook.definitions.compile.view import ABSENT, MessageView, QueryText
from wirebook.definitions.match.repeated import Candidate, Choice, Instance, Settling, Taken, assigned, instances_of
from wirebook.definitions.normalize.names import CLOUDEVENTS
from wirebook.problems import CODES, Problem, quoted

SHOWN_LENGTH = 200


@dataclass(frozen=True, slots=True)
class MatchOptions:
    """What the texts leave open, one name for each decision.

    `values_imply_presence` (D1); `closed` lists undeclared properties (D2); `placeholders` (D17); `match_transport`
    also compares what changes from hop to hop (D28); `accept_native` matches a message that is no CloudEvent by the
    protocol part alone (D26); `confluent_prefix` takes Confluent's prefix off the values of Kafka records.
    """

    values_imply_presence: bool = True
    closed: bool = False
    placeholders: Literal["segment", "rfc6570"] = "segment"
    match_transport: bool = False
    accept_native: bool = False
    confluent_prefix: bool = False

    def over(self, others: MatchOptions) -> MatchOptions:
        """These, and of `others` those that are left at their defaults here."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(
            others, **{name: value for name, value in given.items() if value != getattr(DEFAULT_OPTIONS, name)}
        )


DEFAULT_OPTIONS = MatchOptions()


class Rank(NamedTuple):
    """How specific a match is; the greater wins (D48)."""

    literals: int
    template_characters: int
    protocol: int
    required: int
    typed: int
    soft: int


@dataclass(frozen=True, slots=True)
class Match:
    """A definition whose metadata fits. `synthesized`: its envelope was not in the message (D26)."""

    definition: Definition
    rank: Rank
    bindings: dict[str, str]
    ambiguous_bindings: bool = False
    synthesized: bool = False


TextSplit = tuple[str, Template, str, Split]  # the slot's label, its template, the text there, how it splits


class Mismatch(NamedTuple):
    """Something that keeps a message from fitting, not yet put into words: few of those found are ever reported."""

    code: str
    slot: str
    expected: Any = None
    actual: Any = None
    message: str = ""

    def problem(self) -> Problem:
        """The finding as reports show it. The default message is the rule of the code, with both values."""
        expected, actual = shown(self.expected), shown(self.actual)
        stated = f"{self.slot}: {CODES[self.code].title}; expected {quoted(expected)}"
        if actual is not None:
            stated += f", got {quoted(actual)}"
        return Problem(self.code, self.message or stated, slot=self.slot, expected=expected, actual=actual)


@dataclass(slots=True)
class Trial:
    """One definition tried on one message: what is counted and found on the way.

    Shape: `choices` are declared entries of repeated names, whose instances depend on the placeholders of other slots;
    `slot_order` has the labels of all slots with placeholders, in slot order.
    Rule: it ends at the latest with the finding number `enough`: one decides that there is no match.
    """

    options: MatchOptions
    enough: float
    findings: list[Mismatch] = field(default_factory=list)
    splits: list[TextSplit] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    slot_order: list[str] = field(default_factory=list)
    literals: int = 0
    template_characters: int = 0
    valued: int = 0
    required: int = 0
    typed: int = 0

    @property
    def over(self) -> bool:
        return len(self.findings) >= self.enough

    def add(self, constraint: Constraint, found: Mismatch, value: Any) -> None:  # noqa: ARG002 (for subclasses)
        self.findings.append(found)

    def count(self, constraint: Constraint, found: ValueMatch, value: Any) -> None:  # noqa: ARG002 (for subclasses)
        if constraint.ranks:
            self.literals += constraint.valued
            self.template_characters += constraint.template.literal_length if constraint.template else 0
            self.required += constraint.required
            self.typed += constraint.typed
        if constraint.template is not None and found.split is not None:
            self.splits.append((constraint.label, constraint.template, found.text, found.split))
            self.slot_order.append(constraint.label)

    def defer(self, choice: Choice) -> None:
        """Leave the instance of an entry open until all slots have been read."""
        self.choices.append(choice)
        self.slot_order.append(choice.constraint.label)


@dataclass(frozen=True, slots=True)
class EndpointConstraints:
    """What the endpoint in play adds to each candidate (D19, D25): its content mode, and its options that a message
    shows, each as a constraint on the messages that have the slot."""

    mode: str | None = None
    constraints: tuple[Constraint, ...] = ()
    entries: tuple[Entries, ...] = ()

    def observed(self, definition: Definition) -> Iterator[Constraint]:
        """Those that hold for a definition: the event format is for CloudEvents alone, and a definition's own method or
        status takes precedence over the default method."""
        for constraint in self.constraints:
            if constraint.slot.name == EVENT_FORMAT and not definition.is_cloudevent:
                continue
            if constraint.declared == DEFAULT_METHOD and constraint.slot.name == "method" and _has_method(definition):
                continue
            yield constraint


NO_ENDPOINT = EndpointConstraints()


def _has_method(definition: Definition) -> bool:
    named = (constraint.slot for constraint in definition.constraints if constraint.fixed)
    return any(slot.section == BARE and slot.name in ("method", "status") for slot in named)


class ValueMatch(NamedTuple):
    """A value that fits its constraint; `split` when a template was read."""

    text: str = ""
    split: Split | None = None


class ValueMismatch(NamedTuple):
    """A value that does not fit: the problem's code and what is allowed."""

    code: str
    expected: Any


FITS = ValueMatch()


def match_metadata(
    definition: Definition,
    view: MessageView,
    options: MatchOptions = DEFAULT_OPTIONS,
    *,
    endpoint: EndpointConstraints = NO_ENDPOINT,
) -> Match | None:
    """The match, or None; `explain_metadata` says why. Cost: linear in the message."""
    trial = Trial(options, enough=1)
    _try(definition, view, trial, endpoint)
    if trial.findings:
        return None
    bindings, ambiguous = agreed_bindings(trial)
    if trial.findings:
        return None
    return Match(definition, _rank(definition, view, trial), bindings, ambiguous, _is_synthesized(definition, view))


def explain_metadata(
    definition: Definition,
    view: MessageView,
    options: MatchOptions = DEFAULT_OPTIONS,
    *,
    endpoint: EndpointConstraints = NO_ENDPOINT,
    enough: float = inf,
    trial: Trial | None = None,
) -> list[Mismatch]:
    """What keeps the message from fitting, in slot order; nothing when it fits.

    Everything, or `enough` of it: whoever wants the definition with the fewest findings need not know how many more.
    A `trial` of the caller's own is told of each constraint as it fits (`count`) or does not (`add`).
    """
    trial = trial or Trial(options, enough)
    _try(definition, view, trial, endpoint)
    if not trial.findings:
        agreed_bindings(trial)
    return trial.findings


def _try(definition: Definition, view: MessageView, trial: Trial, endpoint: EndpointConstraints) -> None:
    if wrong := _wrong_selector(definition, view, trial.options, endpoint.mode):
        trial.findings.append(wrong)
        return
    for constraint in _observed(definition, view, trial.options):
        if trial.over:
            return
        _try_constraint(constraint, view.value(constraint.slot), trial)
    if view.shows_protocol:
        asked = () if view.is_response else endpoint.entries  # headers and query are those of the request
        _try_repeated((*definition.entries, *asked), view, trial)
        for constraint in endpoint.observed(definition):
            if (value := view.value(constraint.slot)) is not ABSENT:
                _try_value(constraint, value, trial)
    _check_vacuity(definition, trial)
    if trial.options.closed:
        trial.findings += undeclared(definition, view)


def _observed(definition: Definition, view: MessageView, options: MatchOptions) -> Iterable[Constraint]:
    """The constraints that this message can be held to (D26, D28)."""
    return definition.observed(not _is_synthesized(definition, view), view.shows_protocol, options.match_transport)


# -- selectors ------------------------------------------------------------------------------------------------------


def _wrong_selector(
    definition: Definition, view: MessageView, options: MatchOptions, mode: str | None
) -> Mismatch | None:
    """Protocol, envelope and content mode: when one differs, nothing else is worth comparing."""
    if definition.protocol and view.shows_protocol and definition.protocol != view.protocol:
        return _selector("wrong-protocol", "protocol", definition.protocol, view.protocol)
    if definition.has_unknown_envelope:
        return _selector("wrong-envelope", "envelope", definition.envelope, CLOUDEVENTS if view.is_cloudevent else None)
    if not definition.is_cloudevent:
        if definition.protocol and not view.shows_protocol:
            return _selector("wrong-protocol", "protocol", definition.protocol, view.protocol)
    elif not view.is_cloudevent or (view.needs_stated_mode and (definition.mode or mode) != "structured"):
        if not (options.accept_native and definition.protocol and view.kind == "native"):
            return _selector("wrong-envelope", "envelope", definition.envelope, None)
    elif (wanted := definition.mode or mode) and not _is_in_mode(view, wanted):
        return _selector("wrong-mode", "envelopeoptions.mode", wanted, view.mode)
    return None


def _is_in_mode(view: MessageView, wanted: str) -> bool:
    return view.mode in (wanted, None) or (view.mode == "batch" and wanted == "structured")


def _selector(code: str, slot: str, expected: Any, actual: Any) -> Mismatch:
    return Mismatch(code, slot, expected, actual, f"{slot} is not '{expected}'")


def _is_synthesized(definition: Definition, view: MessageView) -> bool:
    return definition.is_cloudevent and not view.is_cloudevent


# -- one slot -------------------------------------------------------------------------------------------------------


def _try_constraint(constraint: Constraint, value: Any, trial: Trial) -> None:
    if value is not ABSENT:
        _try_value(constraint, value, trial)
    elif constraint.fixed and (constraint.required or _implied(constraint, trial.options)):
        trial.add(constraint, finding("missing-value", constraint, None), ABSENT)
    elif constraint.required:
        trial.add(constraint, finding("missing-required", constraint, None), ABSENT)
    trial.valued += constraint.fixed


def _implied(constraint: Constraint, options: MatchOptions) -> bool:
    return options.values_imply_presence and constraint.implies_presence


def _try_value(constraint: Constraint, value: Any, trial: Trial) -> None:
    found = fit(constraint, value, rfc6570=trial.options.placeholders == "rfc6570")
    if isinstance(found, ValueMismatch):
        trial.add(constraint, finding(found.code, constraint, value, found.expected), value)
    else:
        trial.count(constraint, found, value)


def fit(constraint: Constraint, value: Any, *, rfc6570: bool = False) -> ValueMatch | ValueMismatch:
    """Does one value, as it is on the wire, satisfy one constraint?

    A URI that was sent with characters that no URI has compares as if they were percent-encoded, as literals are.
    """
    if constraint.kind.wire == "octets":
        value = _of_octets(constraint, value)
    found = _fit(constraint, value, rfc6570=rfc6570)
    if isinstance(found, ValueMatch) or rfc6570 or not constraint.kind.place.has_uri_text or not isinstance(value, str):
        return found
    if found.code == "wrong-type" or (encoded := uri_text(value)) == value:
        return found
    again = _fit(constraint, encoded)
    return again if isinstance(again, ValueMatch) else found


def _fit(constraint: Constraint, value: Any, *, rfc6570: bool = False) -> ValueMatch | ValueMismatch:
    if constraint.media_type is not None:
        return _fit_media_type(constraint, value)
    if constraint.literal is not None and type(value) is str and value == constraint.declared:
        return FITS
    try:
        actual = CHECKS[constraint.type](value)
    except NotOfType as wrong:
        return ValueMismatch("wrong-type", str(wrong))
    if constraint.literal is not None:
        same = actual == constraint.literal
        if not same and constraint.type == "any" and isinstance(value, str):
            same = is_text_of(constraint.literal, value)
        return FITS if same else ValueMismatch("mismatch", constraint.declared)
    if constraint.template is not None:
        text = template_text(value)
        split = constraint.template.match(text, rfc6570=rfc6570)
        return ValueMatch(text, split) if split else ValueMismatch("template-mismatch", constraint.declared)
    return FITS


def _of_octets(constraint: Constraint, value: Any) -> Any:
    """A value of a slot that has bytes without a type: these bytes for ``binary``, else the text that they are."""
    if constraint.type == "binary":
        return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def template_text(value: Any) -> str:
    """The text that a template is held against; a query value keeps escaped slashes apart."""
    if isinstance(value, str):
        return value.raw if isinstance(value, QueryText) else value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fit_media_type(constraint: Constraint, value: Any) -> ValueMatch | ValueMismatch:
    actual = parse_media_type(value) if isinstance(value, str) else None
    if actual is None:
        return ValueMismatch("wrong-type", "a media type (RFC 9110 section 8.3.1)")
    fits = constraint.media_type is not None and actual.satisfies(constraint.media_type)
    return FITS if fits else ValueMismatch("mismatch", constraint.declared)


# -- repeated names -------------------------------------------------------------------------------------------------


def _try_repeated(groups: Iterable[Entries], view: MessageView, trial: Trial) -> None:
    for number, group in enumerate(groups):
        if trial.over:
            return
        _try_entries(group, number, view.values(group.section, group.name), trial)


def _try_entries(group: Entries, number: int, values: list[Any], trial: Trial) -> None:
    """Hold the entries of one name against its instances; with a choice among them, placeholders decide later."""
    entries = [entry for entry in group.entries if trial.options.match_transport or not entry.kind.transport]
    if not values and group.optional:
        return
    instances = instances_of(values, lists=group.lists)
    if not values or len(entries) == len(instances) == 1:
        for constraint in entries:
            _try_constraint(constraint, values[0] if values else ABSENT, trial)
        return
    rfc6570 = trial.options.placeholders == "rfc6570"
    choices = [Choice(entry, number, group.each, _candidates(entry, instances, rfc6570)) for entry in entries]
    chosen = assigned(choices)
    for choice in choices:
        if choice not in chosen:
            _try_left_over(choice, instances, chosen, trial)
    trial.valued += sum(entry.fixed and entry.ranks for entry in entries)
    if any(choice.constraint.template for choice in chosen):
        for choice in filter(chosen.__contains__, choices):
            trial.defer(choice)
    else:
        for choice, candidate in chosen.items():
            trial.count(choice.constraint, FITS, candidate.instance.value)


def _candidates(constraint: Constraint, instances: Sequence[Instance], rfc6570: bool) -> list[Candidate]:
    tried = ((instance, fit(constraint, instance.value, rfc6570=rfc6570)) for instance in instances)
    template = constraint.template
    return [
        Candidate.of(each, template, found.text, found.split) for each, found in tried if isinstance(found, ValueMatch)
    ]


def _try_left_over(
    choice: Choice, instances: Sequence[Instance], chosen: Mapping[Choice, Candidate], trial: Trial
) -> None:
    """An entry that no instance is left for: none is free, or none of the free ones fits."""
    taken = Taken.of(chosen) if choice.each else Taken()
    free = next((instance for instance in instances if not taken.holders(instance)), None)
    _try_constraint(choice.constraint, ABSENT if free is None else free.value, trial)


# -- the whole ------------------------------------------------------------------------------------------------------


def agreed_bindings(trial: Trial) -> tuple[dict[str, str], bool]:
    """Placeholder values that agree in every slot (D18-D20), and whether other values would, too.

    Takes an instance for each entry that was left open. A conflict is added to the trial.
    """
    agreed, ambiguous = None if trial.choices else _agreed(trial.splits), False
    if agreed is None:
        solver = Solver()
        solver.add(unit for label, template, text, _ in trial.splits for unit in units_of(label, template, text))
        if trial.choices and not _settle_choices(trial, solver):
            return {}, False
        solver.finish()
        agreed = solver.solution.conflict or solver.solution.bindings(list(dict.fromkeys(trial.slot_order)))
        ambiguous = solver.solution.ambiguous
    if isinstance(agreed, PlaceholderConflict):
        trial.findings.append(_contradiction(agreed))
        return {}, ambiguous
    return agreed, ambiguous


def _settle_choices(trial: Trial, solver: Solver) -> bool:
    """Take an instance for each open choice; False, with a finding, when one contradicts what other slots bind."""
    settled = Settling(trial.choices, solver).run()
    for choice in trial.choices:
        constraint, first = choice.constraint, choice.every[0]
        if choice is not settled.failed:
            candidate = settled.chosen.get(choice, first)
            trial.count(constraint, ValueMatch(candidate.text, candidate.split), candidate.instance.value)
        elif settled.conflict is not None:
            trial.add(constraint, _contradiction(settled.conflict), settled.value)
        else:
            code = "mismatch" if constraint.template is None else "template-mismatch"
            trial.add(constraint, finding(code, constraint, first.instance.value), first.instance.value)
    trial.choices = []
    return settled.failed is None


def _agreed(splits: Sequence[TextSplit]) -> dict[str, str] | PlaceholderConflict | None:
    """The plain case, nothing to solve: every text has one reading, and they agree or they do not. None otherwise."""
    keys: dict[str, str] = {}
    escaped = False
    for label, template, text, split in splits:
        if not split.unique:
            return None
        for name, raw, key in zip(template.names, split.captures, template.keys(split), strict=True):
            if keys.setdefault(name, key) != key:
                return _conflict(splits, label, template.bind(name, raw))
        escaped = escaped or template.keeps_escapes(text)
    return _reported(splits, keys) if escaped else keys


def _conflict(splits: Sequence[TextSplit], slot: str, bound: Bound) -> PlaceholderConflict:
    """What a placeholder is where it first stands, and what it is in another slot."""
    name = bound.name
    first_slot, template, _, split = next(each for each in splits if name in each[1].names)
    first = template.bind(name, split.captures[template.names.index(name)])
    return PlaceholderConflict(name, first_slot, first.value, slot, bound.value)


def _reported(splits: Sequence[TextSplit], names: Iterable[str]) -> dict[str, str]:
    """Names that agree, each with its text in the first slot that is no URI, else in the first slot (D20)."""
    values: dict[str, str] = {}
    for _, template, _, split in sorted(splits, key=lambda each: each[1].place.uri):
        for name, raw in zip(template.names, split.captures, strict=True):
            values.setdefault(name, template.bind(name, raw).value)
    return {name: values[name] for name in names}


def _contradiction(conflict: PlaceholderConflict) -> Mismatch:
    message = f"'{conflict.name}' is '{conflict.first}' in {conflict.first_slot}, '{conflict.second}' here"
    expected = {"placeholder": conflict.name, "slot": conflict.first_slot, "value": shown(conflict.first)}
    return Mismatch("placeholder-conflict", conflict.second_slot, expected, conflict.second, message)


def _rank(definition: Definition, view: MessageView, trial: Trial) -> Rank:
    protocol = 0 if definition.protocol is None else 1 if view.shows_protocol else -1
    soft = _softness(definition, view)
    return Rank(trial.literals, trial.template_characters, protocol, trial.required, trial.typed, soft)


def _softness(definition: Definition, view: MessageView) -> int:
    """How many inferred values the message bears out (D12, D13)."""
    values = ((constraint, view.value(constraint.slot)) for constraint in definition.soft)
    return sum(value is not ABSENT and isinstance(fit(constraint, value), ValueMatch) for constraint, value in values)


def _check_vacuity(definition: Definition, trial: Trial) -> None:
    """Under the relaxed reading of `value`, one of the definition's values must be there (D1)."""
    if trial.options.values_imply_presence or trial.findings or not trial.valued:
        return
    if not trial.literals and not trial.splits and not trial.choices:
        message = "none of the values that the definition gives is present"
        trial.findings.append(Mismatch("vacuous-match", definition.xid, message=message))


def undeclared(definition: Definition, view: MessageView) -> Iterator[Mismatch]:
    """What the message has and neither CloudEvents nor the definition declares (D2)."""
    declared = {(c.slot.section, c.slot.name) for c in definition.all_constraints}
    declared |= {(ENVELOPE, name) for name in ATTRIBUTES}
    for section, name in view.extras():
        carries = envelope_attribute(view.family, section, name) if section != ENVELOPE else None
        if (section, name) not in declared and not (carries and view.is_cloudevent):
            label = f"{'envelopemetadata' if section == ENVELOPE else 'protocoloptions.' + section}.{name}"
            yield Mismatch("undeclared-property", label, message=f"{label} is not declared")


def finding(code: str, constraint: Constraint, actual: Any, expected: Any = None) -> Mismatch:
    """What is wrong with one slot, in the words of the definition."""
    allowed = constraint.declared if expected is None else expected
    if constraint.kind.wire == "octets" and constraint.type == "binary" and allowed is constraint.declared:
        allowed = {"base64": allowed}  # as bytes are shown: the message may have the text that the definition has
    return Mismatch(code, constraint.label, constraint.type if code == "missing-required" else allowed, actual)


def problem(code: str, constraint: Constraint, actual: Any, expected: Any = None) -> Problem:
    return finding(code, constraint, actual, expected).problem()


def shown(value: Any) -> Any:
    """A value as reports show it: bytes as base64, long texts cut, integers that 64 bits do not hold as text."""
    if isinstance(value, (bytes, bytearray)):
        return {"base64": shown(base64.b64encode(bytes(value[:SHOWN_LENGTH])).decode())}
    if not isinstance(value, str):
        return str(value) if type(value) is int and abs(value) >= 2**63 else value
    if len(value) > SHOWN_LENGTH:
        return value[: SHOWN_LENGTH - 1] + "…"
    return value if value.isascii() else value.encode("utf-8", "replace").decode()
