"""Build a message from its definition and the values of an application.

The constraints that match messages also render them. All problems are reported, not only the first. The built message
is then matched against its own definition, so that a message that no receiver would accept is never sent.

Spec: message/spec.md#value, #message-definitions (a message definition is a template); docs/semantics.md D4, D12, D13,
D21-D25, D40.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from wirebook.bindings import CLASSES, WrittenMessage, with_slots, write_event, write_native
from wirebook.bindings.json_event import MEDIA_TYPE, canonical_text
from wirebook.bindings.write import WriteMode
from wirebook.definitions.build.options import Slots, carried_attributes, render_slots
from wirebook.definitions.build.rendering import Rendering, application_value, missing_names
from wirebook.definitions.build.request import BuildRequest, Built
from wirebook.definitions.build.round_trip import check_round_trip
from wirebook.definitions.compile.definition import ENVELOPE_MODES, Definition
from wirebook.definitions.compile.fit import preview
from wirebook.definitions.compile.mediatype import inferred_content_type, parse_media_type
from wirebook.definitions.compile.slots import ATTRIBUTES, BARE, ENVELOPE, EVENT_FORMAT, envelope_attribute, family
from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.definitions.normalize.names import is_cloudevents
from wirebook.problems import Problem, Severity
from wirebook.schema import Payload

__all__ = ["BuildRequest", "Built", "build", "content_type_of", "event_attributes", "payload_of", "protocol_of"]

SPECVERSION: Final = "1.0"
CONTENT_TYPE_PROPERTIES: Final = {
    "HTTP": "headers.content-type",
    "KAFKA": "headers.content-type",
    "MQTT": "content_type",
}


def payload_of(data: Any, schema_format: str | None = None) -> Payload | None:
    """Create a payload from bytes or a JSON value. None means no payload; a `Payload` is returned unchanged."""
    if data is None or isinstance(data, Payload):
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return Payload(bytes(data), content_type=inferred_content_type(schema_format))
    return Payload(None, data, "application/json")


def protocol_of(definition: Definition, request: BuildRequest) -> str:
    """The protocol of the definition, else that of the request, else HTTP."""
    return definition.protocol or request.protocol or "HTTP"


def build(definition: Definition, request: BuildRequest, options: MatchOptions = DEFAULT_OPTIONS) -> Built:
    """Build a message. Cost: linear in the size of the definition and the request."""
    rendering = Rendering(request, list(_check_request(definition, request)))
    protocol = protocol_of(definition, request)
    if protocol not in CLASSES:
        return Built(None, tuple(rendering.problems))
    slots = render_slots(definition, protocol, rendering)
    written = _write(definition, protocol, slots, rendering)
    if slots:
        with_options = with_slots(written.wire, slots)
        written = WrittenMessage(with_options.wire, (*written.problems, *with_options.problems))
    reported = rendering.empty | {p.slot for p in rendering.problems if p.severity is Severity.ERROR}
    rendering.problems += [problem for problem in written.problems if problem.slot not in reported - {None}]
    if not _has_errors(rendering.problems):
        rendering.problems += check_round_trip(definition, written.wire, request, options)
    problems = tuple(rendering.problems)
    return Built(None if _has_errors(problems) else written.wire, problems)


def _has_errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)


def _write(definition: Definition, protocol: str, slots: Slots, rendering: Rendering) -> WrittenMessage:
    """Write the envelope and the payload. The protocol slots are set later."""
    request = rendering.request
    payload = _payload_with_content_type(definition, request, rendering)
    if not definition.is_cloudevent:
        return write_native(protocol, payload)
    attributes = event_attributes(definition, rendering, dict(carried_attributes(protocol, slots)), payload)
    mode: WriteMode | None = definition.mode or request.mode  # type: ignore[assignment]
    return write_event(protocol, mode, attributes, payload, content_type=_event_format(definition, request))


# -- checks of the request ------------------------------------------------------------------------------------------


def _check_request(definition: Definition, request: BuildRequest) -> Iterator[Problem]:
    if definition.incomplete and not request.allow_incomplete:
        message = f"the base '{definition.incomplete}' of the definition is missing"
        yield Problem("not-buildable", message, xid=definition.xid, actual=definition.incomplete)
    if definition.envelope and not is_cloudevents(definition.envelope):
        message = f"the envelope '{definition.envelope}' is not supported; it must be CloudEvents/1.0"
        yield Problem("not-buildable", message, xid=definition.xid, slot="envelope", actual=definition.envelope)
    protocol = protocol_of(definition, request)
    if protocol not in CLASSES:
        known = sorted(CLASSES)
        message = f"'{protocol}' is not a supported protocol; it must be one of {', '.join(known)}"
        yield Problem("unknown-protocol", message, expected=known, actual=protocol)
    elif request.protocol not in (None, protocol):
        message = f"the definition is for {definition.protocol}, not {request.protocol}"
        yield Problem("wrong-protocol", message, slot="protocol", expected=definition.protocol, actual=request.protocol)
    yield from _check_mode(definition, request)
    if not definition.envelope:
        for name, value in request.attributes.items():
            if name != "datacontenttype":  # native messages have a content type, too
                message = f"the definition has no envelope, so the attribute '{name}' cannot be sent"
                slot = f"envelopemetadata.{name}"
                yield Problem("unknown-slot", message, slot=slot, expected=None, actual=preview(value))
    yield from _check_context(definition, request)


def _check_mode(definition: Definition, request: BuildRequest) -> Iterator[Problem]:
    if request.mode is None:
        return
    expected: Any
    if definition.mode and request.mode != definition.mode:
        message, expected = f"the definition is for {definition.mode} mode, not {request.mode}", definition.mode
    elif request.mode not in ENVELOPE_MODES:
        expected = sorted(ENVELOPE_MODES)
        message = f"'{request.mode}' is not a content mode; it must be one of {', '.join(expected)}"
    elif not definition.is_cloudevent:
        message, expected = "the definition has no envelope, so the content mode must not be set", None
    else:
        return
    yield Problem("wrong-mode", message, slot="envelopeoptions.mode", expected=expected, actual=request.mode)


def _check_context(definition: Definition, request: BuildRequest) -> Iterator[Problem]:
    """Yield a problem for each placeholder without a value (D22), or with a value that cannot become text."""
    for name in missing_names(definition.placeholders, request.context):
        labels = [c.label for c in definition.all_constraints if c.template and name in c.template.names]
        placeholder = f"the placeholder '{name}' of {', '.join(labels)}"
        value = request.context.get(name, "")
        if value == "":
            actual = request.context.get(name)
            message = f"{placeholder} has no value"
            yield Problem("missing-context", message, slot=labels[0], expected=name, actual=actual)
        elif isinstance(value, str):
            expected, actual = "valid Unicode text", preview(value)
            message = f"{placeholder} must be {expected}; got {actual!r}"
            yield Problem("illegal-character", message, slot=labels[0], expected=expected, actual=actual)
        else:
            expected, actual = "a string, a number or a boolean", _type_name(value)
            message = f"{placeholder} must be {expected}; got {'an ' * (actual in ('object', 'array'))}{actual}"
            yield Problem("missing-context", message, slot=labels[0], expected=expected, actual=actual)


def _type_name(value: Any) -> str:
    """The type of a value that cannot become text: in JSON, else in Python; NaN and infinity are named."""
    if isinstance(value, float):
        return str(value)
    names = {type(None): "null", dict: "object", list: "array", int: "an integer of more than 4096 bits"}
    return names.get(type(value), type(value).__name__)


# -- content type ---------------------------------------------------------------------------------------------------


def content_type_of(definition: Definition, request: BuildRequest) -> str | None:
    """The content type of the data: that of the definition, else that of the application, else inferred (D12).

    The application may add parameters to the content type that the definition declares.
    """
    declared = _declared_content_type(definition, request)
    protocol_family = family(protocol_of(definition, request))
    property_ = CONTENT_TYPE_PROPERTIES.get(protocol_family, "properties.content-type")
    properties = (value for key, value in request.properties.items() if key.lower() == property_)
    supplied = request.attributes.get("datacontenttype") or next(properties, None)
    of_payload = request.payload.content_type if request.payload else None
    for content_type in (supplied, of_payload):
        if isinstance(content_type, str) and (declared is None or _refines(content_type, declared)):
            return content_type
    return declared or inferred_content_type(definition.schema_format)


def _declared_content_type(definition: Definition, request: BuildRequest) -> str | None:
    protocol_family = family(protocol_of(definition, request))
    for constraint in definition.all_constraints:
        section, name = constraint.slot.section, constraint.slot.name
        is_attribute = name == "datacontenttype" and section in (ENVELOPE, BARE)
        if not is_attribute and envelope_attribute(protocol_family, section, name) != "datacontenttype":
            continue
        if constraint.template and not missing_names(constraint.template.names, request.context):
            return constraint.template.expand(request.context)
        if constraint.media_type and not constraint.media_type.is_cloudevents:
            return str(constraint.declared)
    return None


def _refines(content_type: str, declared: str) -> bool:
    """Whether `content_type` is the declared content type, possibly with more parameters."""
    media_type, declared_media_type = parse_media_type(content_type), parse_media_type(declared)
    if media_type is None or declared_media_type is None:
        return content_type == declared
    return media_type.satisfies(declared_media_type)


def _payload_with_content_type(definition: Definition, request: BuildRequest, rendering: Rendering) -> Payload | None:
    """Return the payload with its final content type. If its own content type differs, that is a problem (D23)."""
    payload = request.payload
    if payload is None:
        return None
    content_type = content_type_of(definition, request)
    if payload.raw is not None and payload.content_type and content_type:
        is_inferred = payload.content_type == inferred_content_type(definition.schema_format)
        if not is_inferred and not _refines(payload.content_type, content_type):
            message = f"the content type of the payload is '{payload.content_type}'; it must be '{content_type}'"
            problem = Problem("constant-override", message, slot="datacontenttype", expected=content_type)
            rendering.problems.append(problem.at(actual=payload.content_type))
    return Payload(payload.raw, payload.value, content_type)


def _event_format(definition: Definition, request: BuildRequest) -> str:
    """The content type of a structured event: the most specific that the definition declares, else that of JSON."""
    event_format = MEDIA_TYPE
    for constraint in definition.all_constraints:
        is_slot, template = constraint.slot.name == EVENT_FORMAT, constraint.template
        if is_slot and template and not missing_names(template.names, request.context):
            return template.expand(request.context)
        if not is_slot and not (constraint.media_type and constraint.media_type.is_cloudevents):
            continue
        declared = str(constraint.declared)
        if constraint.valued and (event_format is MEDIA_TYPE or _refines(declared, event_format)):
            event_format = declared
    return event_format


# -- envelope -------------------------------------------------------------------------------------------------------


def event_attributes(
    definition: Definition, rendering: Rendering, carried: Mapping[str, Any], payload: Payload | None
) -> dict[str, Any]:
    """Render the CloudEvents attributes, in the order of the CloudEvents specification.

    `carried` are the attributes that the definition declares as protocol slots. Required attributes without a value are
    generated if possible; otherwise they are a problem.
    """
    supplied = {name: application_value(value) for name, value in rendering.request.attributes.items()}
    declared = {c.slot.name: c for c in definition.constraints if c.slot.section == ENVELOPE}
    rendered = {name: rendering.render(constraint, supplied.get(name)) for name, constraint in declared.items()}
    undeclared = {name: value for name, value in supplied.items() if name not in declared}
    for name, value in supplied.items():
        by_definition = carried.get(name)
        if by_definition is None or value is None or canonical_text(by_definition) == canonical_text(value):
            continue
        expected, actual = preview(by_definition), preview(value)  # the protocol slot has another value (D23)
        message = f"the attribute '{name}' must be {expected!r} by the definition; got {actual!r}"
        slot = f"envelopemetadata.{name}"
        rendering.problems.append(Problem("constant-override", message, slot=slot, expected=expected, actual=actual))
    values = {**undeclared, **rendered, **carried}
    attributes = {name: value for name, value in values.items() if value is not None}
    _generate_attributes(definition, rendering, attributes, payload)
    rendering.require_values((constraint for name, constraint in declared.items() if name != "source"), attributes)
    if "source" not in attributes and "envelopemetadata.source" not in rendering.empty:
        message = "a CloudEvent requires a source; declare it in the definition, or set the attribute 'source'"
        rendering.problems.append(Problem("missing-required", message, slot="envelopemetadata.source"))
    ordered = (*(name for name in ATTRIBUTES if name in attributes), *attributes)
    return {name: attributes[name] for name in dict.fromkeys(ordered)}


def _generate_attributes(
    definition: Definition, rendering: Rendering, attributes: dict[str, Any], payload: Payload | None
) -> None:
    """Add `specversion`, `id`, `time`, the messageid as `type` (R19, D4), content type and schema (D12, D13)."""
    attributes.setdefault("specversion", SPECVERSION)
    attributes.setdefault("id", rendering.request.new_id())
    attributes.setdefault("time", rendering.request.now())
    if "type" not in attributes and "envelopemetadata.type" not in rendering.empty:
        attributes["type"] = definition.identity.rpartition("/")[2]
        message = f"no type is declared; the messageid '{attributes['type']}' is used"
        slot = "envelopemetadata.type"
        rendering.problems.append(Problem("inferred-type", message, slot=slot, actual=attributes["type"]))
    if payload is not None and payload.content_type:
        attributes["datacontenttype"] = payload.content_type
    for constraint in definition.soft:
        if constraint.slot.name == "dataschema":
            attributes.setdefault("dataschema", constraint.declared)
