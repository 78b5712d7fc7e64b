"""Rules for property definitions: their types, their values, the placeholders in these.

Spec: message/spec.md#property-definitions; docs/semantics.md R5-R8, D3, D9, D11, D15;
tests/vectors/matching 16, 29, 33.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.names import IDENTIFIER_IN_WORDS, is_identifier
from wirebook.definitions.compile import slots
from wirebook.definitions.compile.definition import TEMPLATE_TYPES
from wirebook.definitions.compile.slots import SlotKind
from wirebook.definitions.compile.uritemplate import (
    ILLEGAL_LITERAL,
    MQTT_TOPIC,
    NATS_SUBJECT,
    PLACEHOLDER,
    has_placeholder,
    percent_encode,
)
from wirebook.definitions.compile.values import DECLARABLE, NotOfType, canonical, is_current_time, type_name
from wirebook.definitions.explain.similar_names import nearest_typo
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.normalize.document_messages import DocumentMessage
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.resolve.messages import ResolvedMessage
from wirebook.text.pointers import child

# Types whose values the text gives placeholders (R8).
TEXT_TYPES: Final = frozenset({"any", "string", "symbol", "ascii", "uri", "urireference", "uritemplate"})
# What a property of one type may be declared as instead, where the text gives it a type.
TEXT_LIKE: Final = frozenset({"string", "symbol", "ascii", "uri", "urireference", "uritemplate", "stringified integer"})
NARROWER: Final = {
    "string": TEXT_LIKE,
    "ascii": TEXT_LIKE,
    "uritemplate": TEXT_LIKE,
    "timestamp": frozenset({"timestamp"}),
    "binary": frozenset({"binary"}),
    "boolean": frozenset({"boolean"}),
    "integer": frozenset({"integer", "ulong"}),
}
AMQP_ID_NAMES: Final = ("message-id", "correlation-id")
AMQP_IDS: Final = TEXT_LIKE | {"ulong", "uuid", "binary"}
TYPED_SECTIONS: Final = (slots.ENVELOPE, slots.BARE, "properties", "header")
URI_CHARACTERS: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+\Z")
OPERATOR: Final = re.compile(r"\{[+#./;?&=,!@|][^{}]*\}")
# What is meant as a placeholder, and is none: its name has more than letters, digits and underscores.
MISNAMED: Final = re.compile(r"\{[A-Za-z0-9_][A-Za-z0-9_.:*-]*\}")
# Types whose values are not JSON strings: what they are instead, and how that is written.
INTEGER: Final = ("an integer", re.compile(r"-?(?:0|[1-9][0-9]*)\Z"))
JSON_TYPES: Final = {
    "integer": INTEGER,
    "uint32": INTEGER,
    "number": ("a number", re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?\Z")),
    "boolean": ("true or false", re.compile(r"(?:true|false)\Z")),
}
ADJACENT: Final = re.compile(r"\{[A-Za-z0-9_]+\}\{[A-Za-z0-9_]+\}")


MEMBERS: Final = ("type", "value", "required", "description", "specurl")
NAMED_SECTIONS: Final = ("headers", "query", "user_properties")


def check_identifier(id_: str, pointer: str) -> Iterator[Finding]:
    """Whether the key of an entity can be its identifier."""
    if not is_identifier(id_):
        yield Finding("bad-identifier", pointer, f"'{preview(id_)}' is not a valid identifier", IDENTIFIER_IN_WORDS)


@dataclass(frozen=True, slots=True)
class Property:
    """One declaration of a definition: what it is called, where it stands, what kind of slot it is for.

    Shape: `fields` has ``type``, ``value``, ``required``; of a bare slot just the ``value``, and then `bare` is set.
    `plain`: the slot has a value of its own JSON type (``qos``), not a property definition, whose value may be a string
    whatever its type is.
    """

    section: str
    name: str
    pointer: str
    kind: SlotKind
    fields: Mapping[str, Any]
    bare: bool = False
    plain: bool = False

    def at(self, name: str) -> str:
        return self.pointer if self.bare else child(self.pointer, name)


def properties_of(attributes: Mapping[str, Any], protocol: str | None, pointer: str) -> Iterator[Property]:
    """Every declaration in a message's own attributes; `protocol` is the one that counts for it."""
    metadata = attributes.get("envelopemetadata")
    for name, fields in (metadata if isinstance(metadata, dict) else {}).items():
        at = child(f"{pointer}/envelopemetadata", name)
        yield from _property(slots.ENVELOPE, name, at, slots.attribute_kind(name), fields)
    options = attributes.get("protocoloptions")
    if protocol is not None and isinstance(options, dict):
        yield from _options(slots.family(protocol), options, f"{pointer}/protocoloptions")


def _options(family: str, options: Mapping[str, Any], pointer: str) -> Iterator[Property]:
    for name, value in options.items():
        at = child(pointer, name)
        if name in slots.BARE_SLOTS.get(family, {}) and value is not None:
            yield from _bare(name, at, slots.BARE_SLOTS[family][name], value)
        elif family == "AMQP" and name in slots.AMQP_SECTIONS and isinstance(value, dict):
            for key, fields in value.items():
                known = name not in ("properties", "header") or key in slots.AMQP_SECTIONS[name]
                kind = slots.amqp_kind(name, key) if known else SlotKind("any")
                yield from _amqp_property(name, key, child(at, key), kind, fields)
        elif name in slots.ENTRY_SECTIONS.get(family, ()) and isinstance(value, (list, dict)):
            yield from _entries(family, name, at, value)


def _bare(name: str, pointer: str, kind: SlotKind, value: Any, section: str = slots.BARE) -> Iterator[Property]:
    if isinstance(value, dict):
        yield Property(section, name, pointer, kind, value, plain=True)
    else:
        yield Property(section, name, pointer, kind, {"value": value}, bare=True, plain=True)


def _amqp_property(section: str, name: str, pointer: str, kind: SlotKind, fields: Any) -> Iterator[Property]:
    if section == "header":
        yield from _bare(name, pointer, kind, fields, section)
    else:
        yield from _property(section, name, pointer, kind, fields)


def _property(section: str, name: str, pointer: str, kind: SlotKind, fields: Any) -> Iterator[Property]:
    if isinstance(fields, dict):
        yield Property(section, name, pointer, kind, fields)


def _entries(family: str, section: str, pointer: str, value: Any) -> Iterator[Property]:
    for key, fields in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(fields, dict):
            name = slots.entry_name(family, section, str(fields.get("name", key)))
            yield Property(section, name, child(pointer, key), slots.entry_kind(family, section, name), fields)


@dataclass(frozen=True, slots=True)
class LintedMessage:
    """One message under the rules: as it is written, and as it comes out."""

    definition: DocumentMessage
    resolved: ResolvedMessage
    properties: tuple[Property, ...]

    @property
    def own(self) -> dict[str, Any]:
        return self.definition.attributes

    @property
    def effective(self) -> dict[str, Any]:
        return self.resolved.attributes

    def at(self, *tokens: object) -> str:
        pointer = self.definition.pointer
        for token in tokens:
            pointer = child(pointer, token)
        return pointer


# -- rules ----------------------------------------------------------------------------------------------------------


def check_property(declared: Property) -> Iterator[Finding]:
    """Everything that one declaration can break by itself."""
    yield from _check_members(declared)
    yield from _check_description(declared)
    yield from _check_required(declared)
    yield from _check_specurl(declared)
    if _has_known_type(declared):
        yield from _check_type(declared)
        yield from _check_value(declared)
    else:
        given = declared.fields.get("type")
        message = f"'{preview(given)}' is not a type of a property; it is read as 'any'"
        yield Finding("unknown-type", declared.at("type"), message, sorted(DECLARABLE), given)
    value = declared.fields.get("value")
    if isinstance(value, str) and len(value) > 0:
        yield from _check_placeholders(declared, value)


def _check_members(declared: Property) -> Iterator[Finding]:
    """The members of a property definition; others have no effect (R5)."""
    for name in () if declared.bare else declared.fields:
        if name in MEMBERS or (name == "name" and declared.section in NAMED_SECTIONS):
            continue
        pointer, allowed = child(declared.pointer, name), ", ".join(MEMBERS)
        unknown = f"the property '{preview(declared.name)}' has an unknown member '{preview(name)}'"
        if (meant := nearest_typo(name, MEMBERS)) is not None:
            yield Finding("misspelt-member", pointer, f"{unknown}; did you mean '{meant}'?", meant, name)
        else:
            message = f"{unknown}; it is ignored. Known members: {allowed}"
            yield Finding("unknown-property-member", pointer, message, list(MEMBERS), name)


def _has_known_type(declared: Property) -> bool:
    given = declared.fields.get("type")
    return given is None or type_name(given) is not None


def effective_type(declared: Property) -> str:
    """The type that counts: the declared one, else the slot's."""
    given = declared.fields.get("type")
    type_ = declared.kind.type if given is None else type_name(given) or "any"
    if type_ == "symbol" and declared.kind.type == "ascii":
        return "ascii"
    return declared.kind.integer if type_ == "integer" else type_


def _check_description(declared: Property) -> Iterator[Finding]:
    text = declared.fields.get("description")
    if text is not None and (not isinstance(text, str) or not text):
        message = f"'description' must be a non-empty string; found '{preview(text)}'"
        yield Finding("bad-description", declared.at("description"), message, "a string", text)


def _check_required(declared: Property) -> Iterator[Finding]:
    required = declared.fields.get("required")
    if required is not None and not isinstance(required, bool):
        message = f"'required' must be true or false; found '{preview(required)}'"
        yield Finding("bad-required", declared.at("required"), message, [True, False], required)


def _check_specurl(declared: Property) -> Iterator[Finding]:
    address = declared.fields.get("specurl")
    if address is not None and not is_uri(address):
        yield Finding("bad-uri", declared.at("specurl"), f"'{preview(address)}' is not a valid URI", "a URI", address)


def is_uri(value: Any) -> bool:
    """Is it a URI or a relative reference to one? Placeholders may stand in it."""
    return isinstance(value, str) and URI_CHARACTERS.match(PLACEHOLDER.sub("x", value)) is not None


def _check_type(declared: Property) -> Iterator[Finding]:
    """A declared type may narrow the one that the text gives to the property, and not replace it."""
    given, kind = type_name(declared.fields.get("type")), declared.kind.type
    allowed = AMQP_IDS if kind == "any" and declared.name in AMQP_ID_NAMES else NARROWER.get(kind)
    if given is None or given == "any" or allowed is None or declared.section not in TYPED_SECTIONS:
        return
    if declared.section == slots.ENVELOPE and declared.name not in slots.ATTRIBUTES.keys() - {"specversion"}:
        return
    if declared.section == "properties" and declared.name not in slots.AMQP_PROPERTIES:
        return
    if given not in allowed:
        message = f"'{declared.name}' is of the type '{kind}'; '{given}' is none that it can have"
        yield Finding("type-not-of-property", declared.at("type"), message, sorted(allowed), given)


def _check_value(declared: Property) -> Iterator[Finding]:
    value, type_ = declared.fields.get("value"), effective_type(declared)
    if value is None or (type_ == "timestamp" and is_current_time(value)):
        return
    is_template = _is_template(declared)
    if is_template and type_ in TEXT_TYPES:
        return
    # Reading: placeholders are for texts (R8); a time, and a value without a type, may have them too (D11, D15).
    if isinstance(value, str) and has_placeholder(value):
        read = "it is read as a template for such values" if is_template else "it is read literally"
        message = f"'{preview(value)}' has a placeholder, and the type '{_spoken(declared)}' has none; {read}"
        yield Finding("template-in-other-type", declared.at("value"), message, type_, value)
    if is_template:
        return
    try:
        canonical(type_, value)
    except NotOfType as error:
        yield _not_of_type(declared, str(error), value)
    else:
        if declared.plain and isinstance(value, str) and type_ in JSON_TYPES:
            yield _not_of_type(declared, JSON_TYPES[type_][0], value)
        if isinstance(value, dict | list) and not _has_objects(declared):
            yield _not_of_type(declared, "a text, a number or a boolean", value)


def _has_objects(declared: Property) -> bool:
    """Can a message have an object or an array there?"""
    return declared.kind.wire == "native" and declared.section != "application-properties"


def _not_of_type(declared: Property, allowed: str, value: Any) -> Finding:
    found = f"the string '{preview(value)}'" if isinstance(value, str) else preview(value)
    message = f"'{preview(declared.name)}' is of the type '{_spoken(declared)}': expected {allowed}, found {found}"
    if (instead := _respelt(declared, value)) is not None:
        message += f"; write {instead}"
    return Finding("value-not-of-type", declared.at("value"), message, allowed, value)


def _respelt(declared: Property, value: Any) -> str | None:
    """The same value as JSON of the property's type, where there is one: ``1`` for ``"1"``, ``"200"`` for ``200``."""
    type_ = effective_type(declared)
    if isinstance(value, str) and type_ in JSON_TYPES:
        text = value.strip().lower()
        return text if JSON_TYPES[type_][1].match(text) else None
    if isinstance(value, int) and type_ in ("string", "ascii", "uritemplate"):
        return json.dumps(json.dumps(value))
    return None


def _is_template(declared: Property) -> bool:
    """Whether matching and building read the value as a template, not as a constant (D15)."""
    value = declared.fields.get("value")
    has_templates = declared.fields.get("type") is None or effective_type(declared) in TEMPLATE_TYPES
    return isinstance(value, str) and has_templates and has_placeholder(value)


def _is_uri_template(declared: Property) -> bool:
    """Must the value be a URI template by RFC 6570? Topics of MQTT and subjects of NATS are no URIs."""
    place = declared.kind.place
    if place in (MQTT_TOPIC, NATS_SUBJECT) or effective_type(declared) not in TEMPLATE_TYPES:
        return False
    return place.has_uri_text or type_name(declared.fields.get("type")) == "uritemplate"


def _spoken(declared: Property) -> str:
    return str(declared.fields.get("type") or declared.kind.type)


def _check_placeholders(declared: Property, value: str) -> Iterator[Finding]:
    left = PLACEHOLDER.sub("", value)
    if _is_uri_template(declared) and (illegal := ILLEGAL_LITERAL.search(left)):
        message = f"'{preview(illegal[0])}' is not allowed in a URI template; write '{percent_encode(illegal[0])}'"
        yield Finding("illegal-literal", declared.at("value"), message, percent_encode(illegal[0]), value)
    if effective_type(declared) in TEXT_TYPES:
        if found := OPERATOR.search(left):
            message = f"'{found[0]}' has an operator, so it is treated literally; write {{name}} (RFC 6570 level 1)"
            yield Finding("malformed-placeholder", declared.at("value"), message, "{name}", value)
        elif found := MISNAMED.search(left):
            message = f"'{found[0]}' is not a placeholder: names have letters, digits and underscores only"
            yield Finding("malformed-placeholder", declared.at("value"), message, "{name}", value)
        elif effective_type(declared) == "uritemplate" and ("{" in left or "}" in left):
            message = f"'{preview(value)}' has an unclosed or empty placeholder; the braces are treated literally"
            yield Finding("malformed-placeholder", declared.at("value"), message, "{name}", value)
    if _is_template(declared) and ADJACENT.search(value):
        message = f"nothing separates two placeholders in '{preview(value)}', so their values cannot be told apart"
        yield Finding("adjacent-placeholders", declared.at("value"), message, None, value)
