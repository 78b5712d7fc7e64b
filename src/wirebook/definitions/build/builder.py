"""Building a message from its definition: constants, templates, id, time, mode, content type.

The same constraints that match a message fill one in. Everything that is wrong is listed at once; what is built is read
again, so that a message that its own definition would not take never leaves.

Spec: message/spec.md#value, #message-definitions (a message definition is a template); docs/semantics.md D4, D12, D13,
D21-D25, D40.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from wirebook.bindings import CLASSES, WrittenMessage, with_slots, write_event, write_native
from wirebook.bindings.jsonevent import MEDIA_TYPE
from wirebook.bindings.jsonwrite import canonical_text
from wirebook.bindings.write import WriteMode
from wirebook.definitions.build.options import Slots, carried_attributes, filled_slots
from wirebook.definitions.build.rendering import Filling, missing_names, plain
from wirebook.definitions.build.request import BuildRequest, Built
from wirebook.definitions.build.round_trip import check_built
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


def payload_of(data: Any, schema_format: str | None = None) -> Payload | None:
    """Bytes, or a JSON value, as a payload; None is no data."""
    if data is None or isinstance(data, Payload):
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return Payload(bytes(data), content_type=inferred_content_type(schema_format))
    return Payload(None, data, "application/json")


def protocol_of(definition: Definition, request: BuildRequest) -> str:
    return definition.protocol or request.protocol or "HTTP"


def build(definition: Definition, request: BuildRequest, options: MatchOptions = DEFAULT_OPTIONS) -> Built:
    """The message that `definition` and `request` say. Cost: linear in both."""
    filling = Filling(request, list(_preconditions(definition, request)))
    protocol = protocol_of(definition, request)
    if protocol not in CLASSES:
        return Built(None, tuple(filling.problems))
    slots = filled_slots(definition, protocol, filling)
    written = _written(definition, protocol, slots, filling)
    if slots:
        filled = with_slots(written.wire, slots)
        written = WrittenMessage(filled.wire, (*written.problems, *filled.problems))
    told = filling.open | {problem.slot for problem in filling.problems if problem.severity is Severity.ERROR}
    filling.problems += [problem for problem in written.problems if problem.slot is None or problem.slot not in told]
    if not _has_errors(filling.problems):
        filling.problems += check_built(definition, written.wire, request, options)
    problems = tuple(filling.problems)
    return Built(None if _has_errors(problems) else written.wire, problems)


def _has_errors(problems: Iterable[Problem]) -> bool:
    return any(problem.severity is Severity.ERROR for problem in problems)


def _preconditions(definition: Definition, request: BuildRequest) -> Iterator[Problem]:
    if definition.incomplete and not request.allow_incomplete:
        text = f"its base '{definition.incomplete}' is missing"
        yield Problem("not-buildable", text, xid=definition.xid, actual=definition.incomplete)
    if definition.envelope and not is_cloudevents(definition.envelope):
        text = f"nothing is known of the envelope '{definition.envelope}'"
        yield Problem("not-buildable", text, xid=definition.xid, slot="envelope", actual=definition.envelope)
    protocol = protocol_of(definition, request)
    if protocol not in CLASSES:
        yield Problem("unknown-protocol", f"'{protocol}' is no protocol", expected=sorted(CLASSES), actual=protocol)
    elif request.protocol not in (None, protocol):
        text = f"the definition is for {definition.protocol}"
        yield Problem("wrong-protocol", text, slot="protocol", expected=definition.protocol, actual=request.protocol)
    yield from _wrong_mode(definition, request)
    yield from _attributes_without_envelope(definition, request)
    yield from _missing_context(definition, request)


def _wrong_mode(definition: Definition, request: BuildRequest) -> Iterator[Problem]:
    slot = "envelopeoptions.mode"
    if definition.mode and request.mode not in (None, definition.mode):
        text = f"the definition is for {definition.mode} mode"
        yield Problem("wrong-mode", text, slot=slot, expected=definition.mode, actual=request.mode)
    elif request.mode not in (None, *ENVELOPE_MODES):
        text = f"'{request.mode}' is no mode of a message that is built"
        yield Problem("wrong-mode", text, slot=slot, expected=sorted(ENVELOPE_MODES), actual=request.mode)
    elif request.mode and not definition.is_cloudevent:
        text = "the definition has no envelope, so there is no mode"
        yield Problem("wrong-mode", text, slot=slot, expected=None, actual=request.mode)


def _missing_context(definition: Definition, request: BuildRequest) -> Iterator[Problem]:
    """One problem for each name without a value, or with an empty one, naming the slots that need it (D22)."""
    for name in missing_names(definition.placeholders, request.context):
        places = [c.label for c in definition.all_constraints if c.template and name in c.template.names]
        what = f"the placeholder '{name}' of {', '.join(places)}"
        if name not in request.context or request.context[name] == "":
            value = request.context.get(name)
            yield Problem("missing-context", f"{what} has no value", slot=places[0], expected=name, actual=value)
            continue
        value = request.context[name]
        if isinstance(value, str):
            code, expected, actual, found = (
                "illegal-character",
                "valid Unicode text",
                preview(value),
                repr(preview(value)),
            )
        else:
            code, expected, actual = "missing-context", "a string, a number or a boolean", _kind(value)
            found = f"an {actual}" if actual in ("object", "array") else actual
        text = f"{what} must be {expected}; got {found}"
        yield Problem(code, text, slot=places[0], expected=expected, actual=actual)


def _kind(value: Any) -> str:
    """A value that has no text, by the name of its kind in JSON where it has one."""
    if isinstance(value, float):
        return str(value)
    kinds = {type(None): "null", dict: "object", list: "array", int: "an integer of more than 4096 bits"}
    return kinds.get(type(value), type(value).__name__)


def _attributes_without_envelope(definition: Definition, request: BuildRequest) -> Iterator[Problem]:
    """Attributes that nothing would carry; the content type is one of the message, too."""
    for name, value in () if definition.envelope else request.attributes.items():
        if name != "datacontenttype":
            text = f"the definition has no envelope, so nothing carries the attribute '{name}'"
            yield Problem("unknown-slot", text, slot=f"envelopemetadata.{name}", expected=None, actual=preview(value))


def _written(definition: Definition, protocol: str, slots: Slots, filling: Filling) -> WrittenMessage:
    request = filling.request
    payload = _with_content_type(definition, request, filling)
    if not definition.is_cloudevent:
        return write_native(protocol, payload)
    attributes = event_attributes(definition, filling, dict(carried_attributes(protocol, slots)), payload)
    mode: WriteMode | None = definition.mode or request.mode  # type: ignore[assignment]
    return write_event(protocol, mode, attributes, payload, content_type=event_format(definition, request))


# -- content type -----------------------------------------------------------------------------------------------------


def content_type_of(definition: Definition, request: BuildRequest) -> str | None:
    """The content type of the data: as the definition states it, as the application gives it, else inferred (D12)."""
    stated = _stated_content_type(definition, request)
    given = request.attributes.get("datacontenttype") or _given_content_type(definition, request)
    own = request.payload.content_type if request.payload else None
    for more in (given, own):
        if isinstance(more, str) and (stated is None or _refines(more, stated)):
            return more
    return stated or inferred_content_type(definition.schema_format)


def _stated_content_type(definition: Definition, request: BuildRequest) -> str | None:
    kin = family(protocol_of(definition, request))
    for constraint in definition.all_constraints:
        section, name = constraint.slot.section, constraint.slot.name
        is_one = name == "datacontenttype" and section in (ENVELOPE, BARE)
        if not is_one and envelope_attribute(kin, section, name) != "datacontenttype":
            continue
        if constraint.template and not missing_names(constraint.template.names, request.context):
            return constraint.template.expand(request.context)
        if constraint.media_type and not constraint.media_type.is_cloudevents:
            return str(constraint.declared)
    return None


def _given_content_type(definition: Definition, request: BuildRequest) -> Any:
    """The content type among the properties that the application gives."""
    names = {"HTTP": "headers.content-type", "KAFKA": "headers.content-type", "MQTT": "content_type"}
    wanted = names.get(family(protocol_of(definition, request)), "properties.content-type")
    return next((value for key, value in request.properties.items() if key.lower() == wanted), None)


def _refines(given: str, stated: str) -> bool:
    """Is it the stated type, maybe with more parameters?"""
    one, other = parse_media_type(given), parse_media_type(stated)
    return given == stated if one is None or other is None else one.satisfies(other)


def _with_content_type(definition: Definition, request: BuildRequest, filling: Filling) -> Payload | None:
    """The payload under its content type; one of its own that the definition contradicts is a problem (D23)."""
    payload = request.payload
    if payload is None:
        return None
    content_type = content_type_of(definition, request)
    if payload.raw is not None and payload.content_type and content_type:
        inferred = payload.content_type == inferred_content_type(definition.schema_format)
        if not inferred and not _refines(payload.content_type, content_type):
            text = f"the data is {payload.content_type}, the message is to say {content_type}"
            found = Problem("constant-override", text, slot="datacontenttype", expected=content_type)
            filling.problems.append(found.at(actual=payload.content_type))
    return Payload(payload.raw, payload.value, content_type)


def event_format(definition: Definition, request: BuildRequest) -> str:
    """The content type of a structured event: what the definition's places that state it agree on, else JSON."""
    stated = MEDIA_TYPE
    for constraint in definition.all_constraints:
        if (
            constraint.slot.name == EVENT_FORMAT
            and constraint.template
            and not missing_names(constraint.template.names, request.context)
        ):
            return constraint.template.expand(request.context)
        is_format = constraint.slot.name == EVENT_FORMAT or (
            constraint.media_type and constraint.media_type.is_cloudevents
        )
        if is_format and constraint.valued and (stated is MEDIA_TYPE or _refines(str(constraint.declared), stated)):
            stated = str(constraint.declared)
    return stated


# -- envelope ---------------------------------------------------------------------------------------------------------


def event_attributes(
    definition: Definition, filling: Filling, carried: Mapping[str, Any], payload: Payload | None
) -> dict[str, Any]:
    """The CloudEvents attributes; what CloudEvents needs and nobody gives is generated or a problem.

    `carried` are those that protocol slots say.
    """
    given = {name: plain(value) for name, value in filling.request.attributes.items()}
    declared = {c.slot.name: c for c in definition.constraints if c.slot.section == ENVELOPE}
    values = {name: filling.value(each, given.get(name)) for name, each in declared.items()}
    undeclared = {name: value for name, value in given.items() if name not in declared}
    filling.problems += _contradicted(given, carried)
    attributes = {n: v for n, v in {**undeclared, **values, **carried}.items() if v is not None}
    _generate(definition, filling, attributes, payload)
    filling.add_missing((c for name, c in declared.items() if name != "source"), attributes)
    if "source" not in attributes and "envelopemetadata.source" not in filling.open:
        text = "a CloudEvent has a source, and nothing gives one"
        filling.problems.append(Problem("missing-required", text, slot="envelopemetadata.source"))
    known = [name for name in ATTRIBUTES if name in attributes]
    return {name: attributes[name] for name in dict.fromkeys((*known, *attributes))}


def _contradicted(given: Mapping[str, Any], carried: Mapping[str, Any]) -> Iterator[Problem]:
    """Attributes that the application gives, and a slot that carries them says otherwise (D23)."""
    for name, value in given.items():
        said = carried.get(name)
        if said is not None and value is not None and canonical_text(said) != canonical_text(value):
            text = (
                f"the message is to say {preview(said)!r} for the attribute '{name}', and {preview(value)!r} was given"
            )
            slot = f"envelopemetadata.{name}"
            yield Problem("constant-override", text, slot=slot, expected=preview(said), actual=preview(value))


def _generate(definition: Definition, filling: Filling, attributes: dict[str, Any], payload: Payload | None) -> None:
    """id, time, and type from the messageid (R19, D4); content type and schema as they are inferred (D12, D13)."""
    attributes.setdefault("specversion", SPECVERSION)
    attributes.setdefault("id", filling.request.new_id())
    attributes.setdefault("time", filling.request.now())
    if "type" not in attributes and "envelopemetadata.type" not in filling.open:
        attributes["type"] = definition.identity.rpartition("/")[2]
        text = f"nothing gives a type: the messageid '{attributes['type']}' is taken"
        slot = "envelopemetadata.type"
        filling.problems.append(Problem("inferred-type", text, slot=slot, actual=attributes["type"]))
    if payload is not None and payload.content_type:
        attributes["datacontenttype"] = payload.content_type
    for each in definition.soft:
        if each.slot.name == "dataschema":
            attributes.setdefault("dataschema", each.declared)
