"""Building a message from its definition: constants, templates, id, time, mode, content type.

The same constraints that match a message fill one in. Everything that is wrong is listed at once.

Spec: message/spec.md#value, #message-definitions (a message definition is a template); docs/semantics.md D4, D12, D13,
D21-D25.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from wirebook.bindings import AnyMessage, with_slots, write_event, write_native
from wirebook.bindings.http import Escaped
from wirebook.bindings.wire import CLASSES
from wirebook.bindings.write import WriteMode
from wirebook.message.definition import Constraint, Definition
from wirebook.message.matcher import Unfit, fit, problem
from wirebook.message.mediatype import inferred_content_type
from wirebook.message.slots import AMQP_SECTIONS, BARE, ENTRY_SECTIONS, ENVELOPE, family
from wirebook.message.uritemplate import QUERY, percent_encode, placeholders
from wirebook.message.values import URI_REFERENCE
from wirebook.problems import Problem, Severity
from wirebook.schema import Payload

SPECVERSION: Final = "1.0"


def current_time() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Request:
    """What the application gives for one message.

    Shape: `context` placeholder to text; `attributes` by CloudEvents name and `properties` by slot (``key``,
    ``headers.X-Trace``, ``application-properties.n``) are what the definition leaves open.
    """

    context: Mapping[str, str] = field(default_factory=dict)
    payload: Payload | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    protocol: str | None = None
    mode: WriteMode | None = None
    now: Callable[[], str] = current_time
    new_id: Callable[[], str] = lambda: str(uuid4())


@dataclass(frozen=True, slots=True)
class Built:
    """A message, and what is to be said about it; with an error it must not be sent."""

    wire: AnyMessage | None
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(each for each in self.problems if each.severity is Severity.ERROR)


def payload_of(data: Any, schema_format: str | None = None) -> Payload | None:
    """Bytes, or a JSON value, as a payload; None is no data."""
    if data is None or isinstance(data, Payload):
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return Payload(bytes(data), content_type=inferred_content_type(schema_format))
    return Payload(None, data, "application/json")


def build(definition: Definition, request: Request) -> Built:
    """The message that `definition` and `request` say. Cost: linear in both."""
    problems = list(_preconditions(definition, request))
    if problems:
        return Built(None, tuple(problems))
    protocol = definition.protocol or request.protocol or "HTTP"
    slots = _protocol_slots(definition, request, problems)
    if definition.is_cloudevent:
        attributes = _attributes(definition, request, problems)
        mode = _mode(definition, request)
        written = write_event(protocol, mode, attributes, request.payload)
    else:
        written = write_native(protocol, _native_payload(definition, request))
    filled = with_slots(written.wire, slots) if slots else written
    problems += written.problems
    problems += filled.problems if slots else ()
    return Built(filled.wire, tuple(problems))


def _preconditions(definition: Definition, request: Request) -> Iterator[Problem]:
    if definition.incomplete:
        text = f"its base '{definition.incomplete}' is missing"
        yield Problem("not-buildable", text, xid=definition.xid, actual=definition.incomplete)
    protocol = definition.protocol or request.protocol or "HTTP"
    if protocol not in CLASSES:
        yield Problem("unknown-protocol", f"'{protocol}' is no protocol", expected=sorted(CLASSES), actual=protocol)
    elif definition.protocol and request.protocol not in (None, definition.protocol):
        text = f"the definition is for {definition.protocol}"
        yield Problem("wrong-protocol", text, slot="protocol", expected=definition.protocol, actual=request.protocol)
    if definition.mode and request.mode not in (None, definition.mode):
        text = f"the definition is for {definition.mode} mode"
        yield Problem("wrong-mode", text, slot="envelopeoptions.mode", expected=definition.mode, actual=request.mode)
    yield from _missing_context(definition, request.context)


def _missing_context(definition: Definition, context: Mapping[str, str]) -> Iterator[Problem]:
    """One problem for each name without a value, or with an empty one, naming the slots that need it (D22)."""
    for name in definition.placeholders:
        value = context.get(name)
        if not isinstance(value, str) or not value:
            places = [c.label for c in definition.all_constraints if c.template and name in c.template.names]
            text = f"the placeholder '{name}' of {', '.join(places)} has no value"
            yield Problem("missing-context", text, slot=places[0], expected=name, actual=value)


def _mode(definition: Definition, request: Request) -> WriteMode | None:
    mode = definition.mode or request.mode
    return mode if mode in ("binary", "structured") else None  # type: ignore[return-value]


# -- values ---------------------------------------------------------------------------------------------------------


def _value(constraint: Constraint, given: Any, request: Request, problems: list[Problem]) -> Any:
    """The slot's value: what the definition fixes, else what the application gives; None when there is none."""
    fixed = _fixed_value(constraint, request.context, problems)
    if fixed is None and given is None and constraint.current_time:
        return request.now()
    if fixed is None:
        return _checked(constraint, given, problems)
    if given is not None and given != fixed and isinstance(fit(constraint, given), Unfit):
        problems.append(problem("constant-override", constraint, given, fixed))
    return fixed


def _fixed_value(constraint: Constraint, context: Mapping[str, str], problems: list[Problem]) -> Any:
    if constraint.template is None:
        return constraint.declared
    if constraint.template.place is QUERY:
        return _query_value(constraint.template.text, context)
    text = constraint.template.expand(context)
    place, split = constraint.template.place, constraint.template.match(text)
    if split is None or (place.uri and not URI_REFERENCE.match(text)):
        # a value brought in a character that the slot forbids, or would read as something else
        problems.append(problem("illegal-character", constraint, text, constraint.declared))
        return text
    return _checked(constraint, text, problems)


def _query_value(text: str, context: Mapping[str, str]) -> Escaped:
    """A query value, encoded: a slash of the template stays, one of a value is escaped, so that they stay apart."""
    for name in dict.fromkeys(placeholders(text)):
        text = text.replace(f"{{{name}}}", f"\0{name}\0")
    parts = text.split("\0")
    encoded = [percent_encode(context[part]) if n % 2 else _literal(part) for n, part in enumerate(parts)]
    return Escaped("".join(encoded))


def _literal(text: str) -> str:
    return percent_encode(text).replace("%2F", "/")


def _checked(constraint: Constraint, value: Any, problems: list[Problem]) -> Any:
    """`value`, with a problem when it does not fit the slot's type."""
    if value is not None and isinstance(found := fit(constraint, value), Unfit):
        problems.append(problem(found.code, constraint, value, found.expected))
    return value


# -- envelope -------------------------------------------------------------------------------------------------------


def _attributes(definition: Definition, request: Request, problems: list[Problem]) -> dict[str, Any]:
    """The CloudEvents attributes; what CloudEvents needs and nobody gives is generated or a problem."""
    declared = {c.slot.name: c for c in definition.constraints if c.slot.section == ENVELOPE}
    values = {
        name: _value(constraint, request.attributes.get(name), request, problems)
        for name, constraint in declared.items()
    }
    attributes = {**request.attributes, **{name: value for name, value in values.items() if value is not None}}
    attributes.setdefault("specversion", SPECVERSION)
    _generate(definition, request, attributes)
    problems += _missing(declared.values(), attributes)
    if "source" not in attributes:
        text = "a CloudEvent has a source, and nothing gives one"
        problems.append(Problem("missing-required", text, slot="envelopemetadata.source"))
    return {name: value for name, value in attributes.items() if value is not None}


def _generate(definition: Definition, request: Request, attributes: dict[str, Any]) -> None:
    """id, time, and type from the messageid (R19, D4); content type and schema as they are inferred (D12, D13)."""
    attributes.setdefault("id", request.new_id())
    attributes.setdefault("time", request.now())
    attributes.setdefault("type", definition.xid.rpartition("/")[2])
    inferred = {each.slot.name: each.declared for each in definition.soft}
    content_type = request.payload.content_type if request.payload else None
    content_type = content_type or inferred.get("datacontenttype")
    if content_type and request.payload is not None:
        attributes.setdefault("datacontenttype", content_type)
    if "dataschema" in inferred:
        attributes.setdefault("dataschema", inferred["dataschema"])


def _missing(constraints: Iterable[Constraint], values: Mapping[str, Any]) -> Iterator[Problem]:
    for constraint in constraints:
        if constraint.required and values.get(constraint.slot.name) is None and constraint.slot.name != "source":
            yield problem("missing-required", constraint, None)


# -- protocol -------------------------------------------------------------------------------------------------------


def _native_payload(definition: Definition, request: Request) -> Payload | None:
    payload = request.payload
    if payload is None:
        return None
    declared = definition.attributes.get("datacontenttype")
    content_type = declared or payload.content_type or inferred_content_type(definition.schema_format)
    return Payload(payload.raw, payload.value, content_type)


def _protocol_slots(definition: Definition, request: Request, problems: list[Problem]) -> dict[str, Any]:
    """Protocol slots by name, as the bindings' writers take them; hop-dependent ones too (D28)."""
    protocol = definition.protocol or request.protocol or "HTTP"
    slots: dict[str, Any] = {}
    given = dict(request.properties)
    for constraint in definition.constraints:
        section, name = constraint.slot.section, constraint.slot.name
        if section == ENVELOPE or name in ("datacontenttype", "wire-content-type"):
            continue
        value = _slot_value(constraint, given.pop(_key(section, name), None), request, problems)
        if value is not None and section == BARE:
            slots["key" if name == "key_base64" else name] = value
        elif value is not None:
            slots.setdefault(section, {})[name] = value
    _add_entries(definition, request, given, slots, problems)
    _add_given(protocol, given, slots)
    if protocol == "HTTP" and "status" not in slots:
        slots.setdefault("method", "POST")  # endpoint/spec.md#http-endpoints: the default
    return slots


def _slot_value(constraint: Constraint, given: Any, request: Request, problems: list[Problem]) -> Any:
    value = _value(constraint, given, request, problems)
    if value is None and constraint.required:
        problems.append(problem("missing-required", constraint, None))
    if constraint.type == "binary" and constraint.literal is not None:
        return constraint.literal.value
    return value


def _add_entries(
    definition: Definition, request: Request, given: dict[str, Any], slots: dict[str, Any], problems: list[Problem]
) -> None:
    for group in definition.entries:
        for constraint in group.entries:
            shown = constraint.label.removeprefix(f"protocoloptions.{group.section}.")
            value = _slot_value(constraint, given.pop(_key(group.section, shown), None), request, problems)
            if value is not None:
                slots.setdefault(group.section, []).append((shown, value if isinstance(value, str) else str(value)))


def _add_given(protocol: str, given: Mapping[str, Any], slots: dict[str, Any]) -> None:
    """Properties that the definition does not declare: allowed (D2), written as given."""
    for key, value in given.items():
        section, _, name = key.partition(".")
        if name and section in ENTRY_SECTIONS.get(family(protocol), ()):
            slots.setdefault(section, []).append((name, value))
        elif name and section in AMQP_SECTIONS:
            slots.setdefault(section, {})[name] = value
        else:
            slots[key] = value


def _key(section: str, name: str) -> str:
    return f"{section}.{name}" if section else name
