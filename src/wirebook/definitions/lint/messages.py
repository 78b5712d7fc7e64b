"""Rules for message definitions: every MUST of the specification that a document can violate, and useful warnings.

There is one function for each part of the specification; each yields findings. A rule checks the attributes that a
message has itself, or the effective ones if inheritance matters. `RULES` lists the functions.

Spec: message/spec.md; docs/catalogues.md#lint; docs/semantics.md R1-R27.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from wirebook.definitions.build.options import decode_header
from wirebook.definitions.compile import slots
from wirebook.definitions.compile.definition import constraint_of
from wirebook.definitions.compile.mediatype import MediaType, parse_media_type
from wirebook.definitions.compile.uritemplate import has_placeholder
from wirebook.definitions.compile.values import RFC3339, is_current_time
from wirebook.definitions.explain.similar_names import nearest_typo
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.lint.overlap import shared_value
from wirebook.definitions.lint.properties import (
    LintedMessage,
    Property,
    check_identifier,
    check_property,
    is_uri,
    properties_of,
)
from wirebook.definitions.lint.protocol_options import check_options
from wirebook.definitions.normalize.document_messages import DocumentMessage
from wirebook.definitions.normalize.names import CLOUDEVENTS, PROTOCOLS, is_cloudevents
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.resolve.messages import ResolvedMessage
from wirebook.text.pointers import child, unescape

NAME_AND_VERSION: Final = re.compile(r"[^/\s]+/\S+\Z")
NAME: Final = re.compile(r"[^/\s]+(?:/\S+)?\Z")
ATTRIBUTE_NAME: Final = re.compile(r"[a-z0-9]+\Z")
SCHEMA_NAMES: Final = ("dataschema", "dataschemauri", "dataschemaxid")


def check_message(definition: DocumentMessage, resolved: ResolvedMessage) -> Iterator[Finding]:
    """Check one message against all rules. Aliases are not checked, because they have no attributes of their own."""
    if definition.xref is not None:
        return
    protocol = resolved.attributes.get("protocol")
    properties = tuple(properties_of(definition.attributes, protocol, definition.pointer))
    subject = LintedMessage(definition, resolved, properties)
    for rule in RULES:
        yield from rule(subject)


# -- identity, selectors --------------------------------------------------------------------------------------------


def check_identity(subject: LintedMessage) -> Iterator[Finding]:
    """Check the identifier, and report Versions that are never matched."""
    pointer = subject.definition.resource_pointer
    yield from check_identifier(unescape(pointer.rpartition("/")[2]), pointer)
    if len(subject.definition.resource.get("versions") or ()) > 1:
        message = "only the default Version of the message is matched; the others have no effect"
        yield Finding("several-versions", f"{pointer}/versions", message)


def check_selectors(subject: LintedMessage) -> Iterator[Finding]:
    """Check the syntax of `envelope` and `protocol`, what they require, and that they repeat the group's (R2-R4)."""
    patterns = {"envelope": (NAME_AND_VERSION, "<NAME>/<VERSION>"), "protocol": (NAME, "<NAME> or <NAME>/<VERSION>")}
    for name, (pattern, allowed) in patterns.items():
        value = subject.own.get(name)
        if isinstance(value, str) and not pattern.match(value):
            yield Finding(f"bad-{name}", subject.at(name), f"'{preview(value)}' is not a valid {name}", allowed, value)
    if subject.definition.container.startswith("/messagegroups/"):
        yield from _check_group(subject)
    if subject.resolved.incomplete is None:
        yield from _check_companions(subject)
        yield from _check_dependants(subject)


def _check_group(subject: LintedMessage) -> Iterator[Finding]:
    if any(problem.code == "base-cycle" for problem in subject.resolved.problems):
        return
    for name in sorted(subject.resolved.group_selectors):
        group = subject.definition.group.get(name)
        message = f'the message must repeat the {name} of its group: write "{name}": "{preview(group)}" (assumed here)'
        yield Finding(f"missing-{name}", subject.at(), message, group)


def _check_companions(subject: LintedMessage) -> Iterator[Finding]:
    """Check that `envelopemetadata` is present with an envelope and `protocoloptions` with a protocol (R3)."""
    for name, companion in (("envelope", "envelopemetadata"), ("protocol", "protocoloptions")):
        if subject.own.get(name) is not None and companion not in subject.effective:
            message = f"'{companion}' is required when '{name}' is set; add it (it may be empty: {{}})"
            yield Finding(f"missing-{companion}", subject.at(name), message, companion)


def _check_dependants(subject: LintedMessage) -> Iterator[Finding]:
    """Check that attributes that need an envelope or a protocol have one (message/model.json: siblingattributes)."""
    in_cycle = any(problem.code == "base-cycle" for problem in subject.resolved.problems)
    for selector, code, names in DEPENDANTS:
        if in_cycle or subject.effective.get(selector) is not None:
            continue
        for name in names:
            if subject.own.get(name):
                article = "an" if selector == "envelope" else "a"
                message = f"'{name}' has no effect without {article} '{selector}': add one, e.g. "
                message += f'"{selector}": "{EXAMPLES[selector]}"; neither the message nor its group has it'
                yield Finding(code, subject.at(name), message, selector)


DEPENDANTS: Final = (
    ("envelope", "metadata-without-envelope", ("envelopemetadata", "envelopeoptions")),
    ("protocol", "options-without-protocol", ("protocoloptions",)),
)
EXAMPLES: Final = {"envelope": CLOUDEVENTS, "protocol": "KAFKA"}


# -- the CloudEvents envelope ---------------------------------------------------------------------------------------


def check_envelope(subject: LintedMessage) -> Iterator[Finding]:
    """Check the attributes of CloudEvents/1.0 (R12-R15)."""
    if not is_cloudevents(subject.effective.get("envelope")):
        return
    for declared in subject.properties:
        if declared.section == slots.ENVELOPE:
            yield from _check_attribute_name(declared, declared.name)
            if rule := ATTRIBUTE_RULES.get(declared.name):
                yield from rule(declared)
        elif declared.section == "user_properties":  # in MQTT, CloudEvents attributes have no prefix
            yield from _check_attribute_typo(declared, declared.name)
        elif (attribute := _carried_attribute(declared, subject)) is not None:
            yield from _check_attribute_typo(declared, attribute)
    yield from _check_message_id(subject)


def _carried_attribute(declared: Property, subject: LintedMessage) -> str | None:
    """Return the CloudEvents attribute that a protocol property carries in binary mode (D24)."""
    family = slots.family(str(subject.effective.get("protocol") or ""))
    return slots.envelope_attribute(family, declared.section, declared.name)


def _check_attribute_name(declared: Property, name: str) -> Iterator[Finding]:
    if ATTRIBUTE_NAME.match(name) and name != "data":
        yield from _check_attribute_typo(declared, name)
        return
    if name == "data":
        reason = "'data' is the payload; describe it with 'dataschemauri' or 'dataschema'"
    else:
        plain = re.sub(r"[^a-z0-9]", "", name.lower())
        meant = plain if plain in slots.ATTRIBUTES else nearest_typo(plain, slots.ATTRIBUTES)
        reason = "use lower-case letters and digits only" + (f"; did you mean '{meant}'?" if meant else "")
    message = f"'{preview(name)}' is not a valid CloudEvents attribute name: {reason}"
    yield Finding("bad-attribute-name", declared.pointer, message, "a-z 0-9", name)


def _check_attribute_typo(declared: Property, name: str) -> Iterator[Finding]:
    """Report an extension attribute whose name is probably a typo of a CloudEvents attribute."""
    if name in slots.ATTRIBUTES or name in EXTENSIONS:
        return
    if (meant := nearest_typo(name, (*slots.ATTRIBUTES, *EXTENSIONS))) is not None:
        message = f"'{name}' is read as an extension attribute; did you mean '{meant}'?"
        yield Finding("misspelt-attribute", declared.pointer, message, meant, name)


# The documented extensions of CloudEvents whose names are too long to be confused with other words.
# Spec: https://github.com/cloudevents/spec/tree/main/cloudevents/extensions
EXTENSIONS: Final = (
    "authclaims", "causationid", "correlationid", "dataclassification", "expirytime", "partitionkey", "recordedtime",
    "sampledrate", "sequencetype", "severitynumber", "severitytext", "traceparent", "tracestate",
)  # fmt: skip


def check_overrides(subject: LintedMessage) -> Iterator[Finding]:
    """Check that a protocol property and the CloudEvents attribute that it carries can have the same value (D24)."""
    if not is_cloudevents(subject.effective.get("envelope")):
        return
    protocol = subject.effective.get("protocol")
    metadata = subject.effective.get("envelopemetadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    own = {declared.pointer for declared in subject.properties}
    for carrier in properties_of(subject.effective, protocol, subject.at()):
        attribute = None if carrier.section == slots.ENVELOPE else _carried_attribute(carrier, subject)
        if attribute in (None, "datacontenttype"):  # `check_content_type` checks content types
            continue
        declared = metadata.get(attribute, {"value": "1.0"} if attribute == "specversion" else None)
        places = (carrier.pointer, subject.at("envelopemetadata", attribute))
        pointer = next((place for place in places if place in own), "")
        if isinstance(declared, dict) and pointer:
            yield from _check_override(carrier, str(attribute), declared, pointer)


def _check_override(carrier: Property, attribute: str, declared: dict[str, Any], pointer: str) -> Iterator[Finding]:
    kind, value = slots.attribute_kind(attribute), carrier.fields.get("value")
    if isinstance(value, str) and carrier.section == "headers":
        value = decode_header(value)
    slot = slots.Slot(slots.ENVELOPE, attribute, attribute)
    carried, constraint = (
        constraint_of(slot, kind, {"type": declared.get("type"), "value": declared_value})
        for declared_value in (value, declared.get("value"))
    )
    if carried.fixed and constraint.fixed and shared_value(carried, constraint) is None:
        expected = declared.get("value")
        message = (
            f"'{preview(carrier.name)}' carries the attribute '{attribute}' and has the value '{preview(value)}', but "
            f"'envelopemetadata.{attribute}' is '{preview(expected)}'; no message can have both: "
            f"use one value, or remove '{preview(carrier.name)}'"
        )
        yield Finding("overridden-attribute", f"{pointer}/value", message, expected, value)


def _check_specversion(declared: Property) -> Iterator[Finding]:
    type_, value = declared.fields.get("type"), declared.fields.get("value")
    if type_ not in (None, "string") or value != "1.0":
        message = "'specversion' must have the type 'string' and the value '1.0'"
        yield Finding("bad-specversion", declared.pointer, message, "1.0", value)


def _check_implied(declared: Property) -> Iterator[Finding]:
    if declared.fields.get("required") is False:
        message = f"'{declared.name}' is always required; remove 'required: false'"
        yield Finding("not-required", declared.at("required"), message, True, False)


def _check_id(declared: Property) -> Iterator[Finding]:
    yield from _check_implied(declared)
    value = declared.fields.get("value")
    if value is not None and not (isinstance(value, str) and has_placeholder(value)):
        message = "'id' is constant, so all events have the same id; use a placeholder, or remove 'value'"
        yield Finding("fixed-id", declared.at("value"), message, None, value)


def _check_time(declared: Property) -> Iterator[Finding]:
    value = declared.fields.get("value")
    is_time = isinstance(value, str) and (RFC3339.match(value) or has_placeholder(value))
    if is_time and not is_current_time(value):
        message = (
            f"'time' is the constant '{preview(value)}'; write '0000-01-01T00:00:00Z', which means the current time"
        )
        yield Finding("fixed-time", declared.at("value"), message, "0000-01-01T00:00:00Z", value)


ATTRIBUTE_RULES: Final[dict[str, Callable[[Property], Iterator[Finding]]]] = {
    "specversion": _check_specversion,
    "id": _check_id,
    "type": _check_implied,
    "source": _check_implied,
    "time": _check_time,
}


def _check_message_id(subject: LintedMessage) -> Iterator[Finding]:
    type_ = _value_of(subject.effective, "type")
    if isinstance(type_, str) and not has_placeholder(type_) and type_ != subject.resolved.messageid:
        messageid = preview(subject.resolved.messageid)
        message = f"the id of the message is '{messageid}', but the type of its events is '{preview(type_)}'"
        yield Finding("id-is-not-type", subject.at(), message, type_, subject.resolved.messageid)


def check_envelope_options(subject: LintedMessage) -> Iterator[Finding]:
    """Check `mode` and `format` (R31), and that the options contain no CloudEvents attributes (D44)."""
    yield from envelope_option_findings(subject.own.get("envelopeoptions"), subject.at("envelopeoptions"))


def envelope_option_findings(options: Any, pointer: str) -> Iterator[Finding]:
    """Check the `envelopeoptions` of a message or of an endpoint."""
    if not isinstance(options, dict):
        return
    for name in options:
        if (meant := nearest_typo(name, ENVELOPE_OPTIONS)) is not None:
            message = f"unknown envelope option '{preview(name)}'; did you mean '{meant}'?"
            yield Finding("misspelt-option", child(pointer, name), message, meant, name)
    mode, format_ = options.get("mode"), options.get("format")
    if format_ is not None and not _may_be_media_type(format_):
        message = f"'{preview(format_)}' is not a valid media type"
        yield Finding("bad-event-format", f"{pointer}/format", message, "type/subtype", format_)
    if mode is not None and mode not in ("binary", "structured"):
        message = f"'{preview(mode)}' is not a valid content mode"
        yield Finding("bad-mode", f"{pointer}/mode", message, ["binary", "structured"], mode)
    if mode == "binary" and options.get("format") is not None:
        message = "'format' applies to structured mode only, but 'mode' is 'binary'; remove one of them"
        yield Finding("format-with-binary", f"{pointer}/format", message, None, options["format"])
    for name, value in options.items():
        if isinstance(value, dict) and {"type", "value", "required"} & value.keys():
            message = f"'{preview(name)}' looks like a CloudEvents attribute; write it in 'envelopemetadata'"
            yield Finding("metadata-in-options", child(pointer, name), message, "envelopemetadata", value)


ENVELOPE_OPTIONS: Final = ("mode", "format")


def _may_be_media_type(text: Any) -> bool:
    return isinstance(text, str) and (has_placeholder(text) or parse_media_type(text) is not None)


# -- the payload ----------------------------------------------------------------------------------------------------


def check_payload(subject: LintedMessage) -> Iterator[Finding]:
    """Check `dataschemaformat` and the three ways to specify a schema."""
    own, effective = subject.own, subject.effective
    format_ = own.get("dataschemaformat")
    if isinstance(format_, str) and not NAME_AND_VERSION.match(format_):
        message = f"'{preview(format_)}' is not a valid schema format, such as 'JsonSchema/draft-07'"
        yield Finding("bad-schema-format", subject.at("dataschemaformat"), message, "<NAME>/<VERSION>", format_)
    present = [name for name in SCHEMA_NAMES if own.get(name) is not None]
    if {"dataschema", "dataschemauri"} <= set(present):
        message = "'dataschema' and 'dataschemauri' are mutually exclusive; remove one"
        yield Finding("two-schemas", subject.at("dataschemauri"), message)
    if present and effective.get("dataschemaformat") is None:
        message = f"'dataschemaformat' is required when '{present[0]}' is set; add it, e.g. 'JsonSchema/draft-07'"
        yield Finding("schema-without-format", subject.at(present[0]), message)
    xid = own.get("dataschemaxid")
    if xid is not None and not is_schema_xid(xid):
        message = f"'{preview(xid)}' is not the XID of a schema"
        allowed = "/schemagroups/<ID>/schemas/<ID>"
        yield Finding("bad-schema-reference", subject.at("dataschemaxid"), message, allowed, xid)
    uri = own.get("dataschemauri")
    if isinstance(uri, str) and not is_uri(uri):
        yield Finding("bad-uri", subject.at("dataschemauri"), f"'{preview(uri)}' is not a valid URI", "a URI", uri)
    yield from _check_data_schema_attribute(subject)


def is_schema_xid(reference: Any) -> bool:
    """Return whether a reference is the XID of a schema or of one of its Versions; ``:Name`` may follow (D45)."""
    parts = reference.split("/") if isinstance(reference, str) else []
    return len(parts) in (5, 7) and parts[0] == "" and parts[1] == "schemagroups" and parts[3] == "schemas"


def _check_data_schema_attribute(subject: LintedMessage) -> Iterator[Finding]:
    """Check that the attribute `dataschema` of the envelope equals the `dataschemauri` of the message (R15)."""
    declared, uri = _value_of(subject.own, "dataschema"), subject.effective.get("dataschemauri")
    if isinstance(declared, str) and isinstance(uri, str) and declared not in (uri, f"#{uri}"):
        message = (
            f"the envelope's 'dataschema' is '{preview(declared)}', but must equal 'dataschemauri', '{preview(uri)}'"
        )
        pointer = subject.at("envelopemetadata", "dataschema", "value")
        yield Finding("dataschema-mismatch", pointer, message, uri, declared)


def check_content_type(subject: LintedMessage) -> Iterator[Finding]:
    """Check that all content types of a definition agree (R16, R17)."""
    stated = [place for place in _content_types(subject) if not has_placeholder(place[1])]
    parsed: list[tuple[str, str, MediaType]] = []
    for pointer, text in stated:
        media_type = parse_media_type(text)
        if media_type is None:
            yield Finding(
                "bad-media-type", pointer, f"'{preview(text)}' is not a valid media type", "type/subtype", text
            )
        else:
            parsed.append((pointer, text, media_type))
    yield from _check_wire_type(subject)
    for pointer, text, media_type in parsed[1:]:
        if media_type != parsed[0][2]:
            message = (
                f"the content type is '{preview(text)}' here, but '{preview(parsed[0][1])}' elsewhere in the "
                "definition; use one of them"
            )
            yield Finding("content-type-mismatch", pointer, message, parsed[0][1], text)


def _check_wire_type(subject: LintedMessage) -> Iterator[Finding]:
    """Check that `datacontenttype` of a structured message is the content type of the event, not of its data."""
    options, text = subject.effective.get("envelopeoptions"), subject.own.get("datacontenttype")
    if not isinstance(options, dict) or options.get("mode") != "structured" or options.get("format") is not None:
        return
    media_type = parse_media_type(text) if isinstance(text, str) else None
    if media_type is not None and not media_type.is_cloudevents:
        message = (
            f"in structured mode 'datacontenttype' is the media type of the event, not of its data: write "
            f"'application/cloudevents+json' instead of '{preview(text)}'"
        )
        yield Finding(
            "content-type-of-data", subject.at("datacontenttype"), message, "application/cloudevents+json", text
        )


def _content_types(subject: LintedMessage) -> Iterator[tuple[str, str]]:
    """Yield (pointer, text) of every content type of the message; in structured mode, not those of the data."""
    options = subject.effective.get("envelopeoptions")
    options = options if isinstance(options, dict) else {}
    structured = options.get("mode") == "structured" or _is_event_format(subject.effective.get("datacontenttype"))
    if isinstance(subject.own.get("datacontenttype"), str):
        yield subject.at("datacontenttype"), subject.own["datacontenttype"]
    if structured and isinstance(options.get("format"), str) and parse_media_type(options["format"]):
        yield subject.at("envelopeoptions", "format"), options["format"]
    for declared in subject.properties:
        value = declared.fields.get("value")
        is_attribute = declared.section == slots.ENVELOPE
        if declared.kind.media_type and isinstance(value, str) and not (structured and is_attribute):
            yield declared.at("value"), value


def _is_event_format(text: Any) -> bool:
    media_type = parse_media_type(text) if isinstance(text, str) else None
    return media_type is not None and media_type.is_cloudevents


# -- properties, and the definition as a whole ------------------------------------------------------------------------


def check_properties(subject: LintedMessage) -> Iterator[Finding]:
    """Check each property definition separately."""
    for declared in subject.properties:
        yield from check_property(declared)


def check_has_constraints(subject: LintedMessage) -> Iterator[Finding]:
    """Report a definition without constraints, which every message matches."""
    if subject.resolved.incomplete is not None or any(subject.effective.get(name) for name in SCHEMA_NAMES):
        return
    selectors = {name: subject.effective.get(name) for name in ("envelope", "protocol")}
    if any(selectors[selector] is None and subject.effective.get(names[0]) for selector, _, names in DEPENDANTS):
        return  # the missing envelope or protocol is reported
    foreign = selectors["envelope"] is not None and not is_cloudevents(selectors["envelope"])
    if foreign or selectors["protocol"] not in (None, *PROTOCOLS):
        return  # reported as unmatchable
    properties = properties_of(subject.effective, selectors["protocol"], subject.at())
    constrained = any(
        declared.fields.get("value") is not None or declared.fields.get("required") is True for declared in properties
    )
    if not constrained and subject.effective.get("datacontenttype") is None:
        message = (
            "the definition has no constraints, so every message matches it; set 'value' or 'required' for a property"
        )
        yield Finding("matches-everything", subject.at(), message)


def _value_of(attributes: dict[str, Any], name: str) -> Any:
    metadata = attributes.get("envelopemetadata")
    declared = metadata.get(name) if isinstance(metadata, dict) else None
    return declared.get("value") if isinstance(declared, dict) else None


RULES: Final[tuple[Callable[[LintedMessage], Iterator[Finding]], ...]] = (
    check_identity,
    check_selectors,
    check_envelope,
    check_overrides,
    check_envelope_options,
    check_payload,
    check_content_type,
    check_options,
    check_properties,
    check_has_constraints,
)
