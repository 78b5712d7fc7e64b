"""Rules for property definitions: types, values and placeholders.

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

# Types whose values may have placeholders (R8).
TEXT_TYPES: Final = frozenset({"any", "string", "symbol", "ascii", "uri", "urireference", "uritemplate"})
TEXT_LIKE: Final = frozenset({"string", "symbol", "ascii", "uri", "urireference", "uritemplate", "stringified integer"})
# Maps the type that the specification defines for a property to the types that may be declared for it.
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
# Text that looks like a placeholder, but whose name has characters other than letters, digits and underscores.
MISNAMED: Final = re.compile(r"\{[A-Za-z0-9_][A-Za-z0-9_.:*-]*\}")
# Maps types whose values are not JSON strings to a description, and to the pattern of their JSON text.
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
    """Check that the key of an entity is a valid identifier."""
    if not is_identifier(id_):
        yield Finding("bad-identifier", pointer, f"'{preview(id_)}' is not a valid identifier", IDENTIFIER_IN_WORDS)


@dataclass(frozen=True, slots=True)
class Property:
    """One declared property of a message, and the kind of slot that it constrains.

    Shape: `fields` has ``type``, ``value``, ``required``. `bare`: the document has a scalar, so `fields` has only
    ``value``. `plain`: the value must have the JSON type of the slot, such as ``qos``; the value of a property
    definition may always be a string.
    """

    section: str
    name: str
    pointer: str
    kind: SlotKind
    fields: Mapping[str, Any]
    bare: bool = False
    plain: bool = False

    def at(self, name: str) -> str:
        """Return the pointer of a field, or of the property if it is bare."""
        return self.pointer if self.bare else child(self.pointer, name)


def properties_of(attributes: Mapping[str, Any], protocol: str | None, pointer: str) -> Iterator[Property]:
    """Yield the properties that the attributes of a message declare. `protocol` is its effective protocol."""
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
    """A message to lint, as written (`definition`) and with references resolved (`resolved`)."""

    definition: DocumentMessage
    resolved: ResolvedMessage
    properties: tuple[Property, ...]

    @property
    def own(self) -> dict[str, Any]:
        """The attributes as written."""
        return self.definition.attributes

    @property
    def effective(self) -> dict[str, Any]:
        """The attributes, including inherited ones."""
        return self.resolved.attributes

    def at(self, *tokens: object) -> str:
        """Return the pointer of a value in the message."""
        pointer = self.definition.pointer
        for token in tokens:
            pointer = child(pointer, token)
        return pointer


# -- rules ----------------------------------------------------------------------------------------------------------


def check_property(declared: Property) -> Iterator[Finding]:
    """Check one property."""
    yield from _check_members(declared)
    yield from _check_description(declared)
    yield from _check_required(declared)
    yield from _check_specurl(declared)
    type_ = declared.fields.get("type")
    if type_ is None or type_name(type_) is not None:
        yield from _check_type(declared)
        yield from _check_value(declared)
    else:
        message = f"'{preview(type_)}' is not a property type; it is read as 'any'"
        yield Finding("unknown-type", declared.at("type"), message, sorted(DECLARABLE), type_)
    value = declared.fields.get("value")
    if isinstance(value, str) and len(value) > 0:
        yield from _check_placeholders(declared, value)


def _check_members(declared: Property) -> Iterator[Finding]:
    """Report members that the specification does not define; they have no effect (R5)."""
    for name in () if declared.bare else declared.fields:
        if name in MEMBERS or (name == "name" and declared.section in NAMED_SECTIONS):
            continue
        pointer, allowed = child(declared.pointer, name), ", ".join(MEMBERS)
        unknown = f"the property '{preview(declared.name)}' has an unknown member '{preview(name)}'"
        if (meant := nearest_typo(name, MEMBERS)) is not None:
            yield Finding("misspelt-member", pointer, f"{unknown}; did you mean '{meant}'?", meant, name)
        else:
            message = f"{unknown}, which is ignored; allowed: {allowed}"
            yield Finding("unknown-property-member", pointer, message, list(MEMBERS), name)


def effective_type(declared: Property) -> str:
    """Return the declared type; if none is declared, that of the slot."""
    declared_type = declared.fields.get("type")
    type_ = declared.kind.type if declared_type is None else type_name(declared_type) or "any"
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
    """Return whether a value is a URI or a relative reference, possibly with placeholders."""
    return isinstance(value, str) and URI_CHARACTERS.match(PLACEHOLDER.sub("x", value)) is not None


def _check_type(declared: Property) -> Iterator[Finding]:
    """Check that the declared type is allowed for the type that the specification defines for the property."""
    type_, kind = type_name(declared.fields.get("type")), declared.kind.type
    allowed = AMQP_IDS if kind == "any" and declared.name in AMQP_ID_NAMES else NARROWER.get(kind)
    if type_ is None or type_ == "any" or allowed is None or declared.section not in TYPED_SECTIONS:
        return
    if declared.section == slots.ENVELOPE and declared.name not in slots.ATTRIBUTES.keys() - {"specversion"}:
        return
    if declared.section == "properties" and declared.name not in slots.AMQP_PROPERTIES:
        return
    if type_ not in allowed:
        message = f"'{declared.name}' has the type '{kind}' and cannot be declared as '{type_}'"
        yield Finding("type-not-of-property", declared.at("type"), message, sorted(allowed), type_)


def _check_value(declared: Property) -> Iterator[Finding]:
    value, type_ = declared.fields.get("value"), effective_type(declared)
    if value is None or (type_ == "timestamp" and is_current_time(value)):
        return
    is_template = _is_template(declared)
    if is_template and type_ in TEXT_TYPES:
        return
    # Reading: string types may have placeholders (R8), as may timestamps and values without a type (D11, D15).
    if isinstance(value, str) and has_placeholder(value):
        effect = "the value is read as a template" if is_template else "it is read literally"
        message = (
            f"'{preview(value)}' has a placeholder, which values of the type '{_type_text(declared)}' cannot have; "
        )
        message += f'{effect}; write "type": "string", or a value without braces'
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
            yield _not_of_type(declared, "a string, a number or a boolean", value)


def _has_objects(declared: Property) -> bool:
    """Return whether the slot can hold an object or an array."""
    return declared.kind.wire == "native" and declared.section != "application-properties"


def _not_of_type(declared: Property, allowed: str, value: Any) -> Finding:
    actual = f"the string '{preview(value)}'" if isinstance(value, str) else preview(value)
    message = f"'{preview(declared.name)}' has the type '{_type_text(declared)}': expected {allowed}, found {actual}"
    if (correction := _corrected(declared, value)) is not None:
        message += f"; write {correction}"
    return Finding("value-not-of-type", declared.at("value"), message, allowed, value)


def _corrected(declared: Property, value: Any) -> str | None:
    """Return the value as JSON of the type of the property, if possible: ``1`` for ``"1"``, ``"200"`` for ``200``."""
    type_ = effective_type(declared)
    if isinstance(value, str) and type_ in JSON_TYPES:
        text = value.strip().lower()
        return text if JSON_TYPES[type_][1].match(text) else None
    if isinstance(value, int) and type_ in ("string", "ascii", "uritemplate"):
        return json.dumps(json.dumps(value))
    return None


def _is_template(declared: Property) -> bool:
    """Return whether matching and building read the value as a template, not as a constant (D15)."""
    value = declared.fields.get("value")
    has_templates = declared.fields.get("type") is None or effective_type(declared) in TEMPLATE_TYPES
    return isinstance(value, str) and has_templates and has_placeholder(value)


def _is_uri_template(declared: Property) -> bool:
    """Return whether the value must be a URI template (RFC 6570). MQTT topics and NATS subjects are not URIs."""
    place = declared.kind.place
    if place in (MQTT_TOPIC, NATS_SUBJECT) or effective_type(declared) not in TEMPLATE_TYPES:
        return False
    return place.has_uri_text or type_name(declared.fields.get("type")) == "uritemplate"


def _type_text(declared: Property) -> str:
    return str(declared.fields.get("type") or declared.kind.type)


def _check_placeholders(declared: Property, value: str) -> Iterator[Finding]:
    literals = PLACEHOLDER.sub("", value)
    if _is_uri_template(declared) and (illegal := ILLEGAL_LITERAL.search(literals)):
        message = f"'{preview(illegal[0])}' is not allowed in a URI template; write '{percent_encode(illegal[0])}'"
        yield Finding("illegal-literal", declared.at("value"), message, percent_encode(illegal[0]), value)
    if effective_type(declared) in TEXT_TYPES:
        if placeholder := OPERATOR.search(literals):
            message = (
                f"'{placeholder[0]}' has an operator, so it is read literally; write '{{name}}' (RFC 6570 level 1)"
            )
            yield Finding("malformed-placeholder", declared.at("value"), message, "{name}", value)
        elif placeholder := MISNAMED.search(literals):
            message = (
                f"'{placeholder[0]}' is not a placeholder (letters, digits and underscores), so it is read literally"
            )
            yield Finding("malformed-placeholder", declared.at("value"), message, "{name}", value)
        elif effective_type(declared) == "uritemplate" and ("{" in literals or "}" in literals):
            message = f"'{preview(value)}' has an unclosed or empty placeholder, so the braces are read literally"
            yield Finding("malformed-placeholder", declared.at("value"), message, "{name}", value)
    if _is_template(declared) and ADJACENT.search(value):
        message = f"'{preview(value)}' has adjacent placeholders, which cannot be separated; put text between them"
        yield Finding("adjacent-placeholders", declared.at("value"), message, None, value)
