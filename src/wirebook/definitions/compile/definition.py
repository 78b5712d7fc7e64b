"""Compile a resolved message definition into constraints on slots.

Matching, building, lint and the column engine all read the compiled form. A message must satisfy every constraint. A
value for a protocol slot replaces the envelope constraint on the attribute that the slot carries (D24).

Spec: message/spec.md#property-definitions; docs/semantics.md D1-D34.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final
from urllib.parse import quote

from wirebook.bindings.http import normal_path
from wirebook.definitions.compile import slots
from wirebook.definitions.compile.mediatype import MediaType, inferred_content_type, parse_media_type
from wirebook.definitions.compile.slots import (
    BARE,
    ENVELOPE,
    EVENT_FORMAT,
    EVENT_FORMAT_KIND,
    MAX_SHARED,
    Slot,
    SlotKind,
    family,
    shared_slot,
)
from wirebook.definitions.compile.uritemplate import (
    PATH,
    PLACEHOLDER,
    Template,
    has_placeholder,
    parse_template,
    uri_literals,
)
from wirebook.definitions.compile.values import Canonical, NotOfType, canonical, is_current_time, type_name
from wirebook.definitions.normalize.names import is_cloudevents

TEMPLATE_TYPES = frozenset({"string", "symbol", "ascii", "uri", "urireference", "uritemplate", "timestamp"})
ENVELOPE_MODES = frozenset({"binary", "structured"})
MAX_SHARED_TEXT: Final = 256
"""Maximum characters of a value whose constraint is cached, so that other definitions can share it."""


@dataclass(frozen=True)
class Constraint:
    """The constraint of a definition on one slot.

    At most one of `literal`, `media_type` and `template` is set. `declared` is the declared value, for reports and for
    building; URIs and paths are percent-encoded, and HTTP methods are upper case. `required` is declared, or implied by
    CloudEvents or by an address with a value (`_bare_constraint`). `current_time`: the value is the time of building,
    and messages are not constrained (R11). `ranks` is False for constraints of endpoints, which all candidates share.
    """

    slot: Slot
    kind: SlotKind
    type: str
    required: bool = False
    declared: Any = None
    literal: Canonical | None = None
    media_type: MediaType | None = None
    template: Template | None = None
    current_time: bool = False
    ranks: bool = True

    @property
    def label(self) -> str:
        return self.slot.label

    @cached_property
    def valued(self) -> bool:
        """Whether the value is a constant."""
        return self.literal is not None or self.media_type is not None

    @cached_property
    def fixed(self) -> bool:
        """Whether the value is declared: as a constant or as a template."""
        return self.valued or self.template is not None

    @cached_property
    def implies_presence(self) -> bool:
        """Whether the value makes the property required (D1).

        The exceptions are `time`, whose value is a default, and the event format, which only structured messages have.
        """
        return self.fixed and (self.slot.section, self.slot.name) not in ((ENVELOPE, "time"), (BARE, EVENT_FORMAT))

    @cached_property
    def typed(self) -> bool:
        return self.type not in ("any", "string", "ascii", "uritemplate")


@dataclass(frozen=True, slots=True)
class Entries:
    """The declared entries of one name in a section whose names repeat (headers, query, user properties).

    `exclusive`: no two entries match the same instance (D30, D32); otherwise they may (D33). `lists`: a line may be a
    comma-separated list of instances (D30). `entries` has constants first, then templates, then the rest (D18);
    `declared` has the same entries in document order. `optional`: a message without the name satisfies all entries.
    """

    section: str
    name: str
    entries: tuple[Constraint, ...]
    exclusive: bool
    lists: bool
    declared: tuple[Constraint, ...]
    optional: bool = False


@dataclass(frozen=True, eq=False)
class Definition:
    """A compiled message definition.

    `constraints` and `entries` are in slot order. `soft` constraints affect only the rank (D12, D13). `envelope` is
    ``CloudEvents/1.0``, an unknown envelope, or None. `incomplete` is the reference to a missing base message or alias
    target, which makes the definition unusable. `source` is the XID of the target if this definition is an alias.
    """

    xid: str
    container: str
    attributes: Mapping[str, Any]
    envelope: str | None
    protocol: str | None
    mode: str | None
    constraints: tuple[Constraint, ...]
    entries: tuple[Entries, ...]
    soft: tuple[Constraint, ...]
    incomplete: str | None = None
    source: str | None = None

    @property
    def identity(self) -> str:
        """The XID of the message; for an alias, that of its target."""
        return self.source or self.xid

    @cached_property
    def is_cloudevent(self) -> bool:
        return self.envelope is not None

    @cached_property
    def has_unknown_envelope(self) -> bool:
        """Whether the envelope is not CloudEvents/1.0. Such a definition matches no message (R3)."""
        return self.envelope is not None and not is_cloudevents(self.envelope)

    def observed(self, envelope: bool, protocol: bool, transport: bool) -> tuple[Constraint, ...]:
        """The `constraints` to compare (cached). Each flag tells whether slots of that kind are compared."""
        key = (envelope, protocol, transport)
        if key not in self._observed:
            self._observed[key] = tuple(constraint for constraint in self.constraints if _is_observed(constraint, *key))
        return self._observed[key]

    @cached_property
    def _observed(self) -> dict[tuple[bool, bool, bool], tuple[Constraint, ...]]:
        return {}

    @property
    def all_constraints(self) -> Iterator[Constraint]:
        yield from self.constraints
        for group in self.entries:
            yield from group.entries

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The names of all placeholders, in slot order, each once."""
        templates = (constraint.template for constraint in self.all_constraints)
        return tuple(dict.fromkeys(name for template in templates if template for name in template.names))

    @property
    def has_schema(self) -> bool:
        return any(self.attributes.get(name) for name in ("dataschema", "dataschemauri", "dataschemaxid"))

    @property
    def schema_format(self) -> str | None:
        return self.attributes.get("dataschemaformat")


def _is_observed(constraint: Constraint, envelope: bool, protocol: bool, transport: bool) -> bool:
    """Whether a constraint applies to a message if only some of its slots are compared (D26, D28)."""
    slot = constraint.slot
    is_readable = envelope if slot.section == ENVELOPE else protocol or slot.name == "datacontenttype"
    return is_readable and (transport or not constraint.kind.transport)


def compile_definition(
    xid: str,
    container: str,
    attributes: Mapping[str, Any],
    *,
    incomplete: str | None = None,
    source: str | None = None,
) -> Definition:
    """Compile the attributes of a resolved message (see `wirebook.definitions.resolve.messages`)."""
    protocol, envelope = attributes.get("protocol"), attributes.get("envelope")
    options = _mapping(attributes.get("protocoloptions"))
    bare, entries = _protocol_constraints(protocol, options) if protocol else ([], [])
    attribute_constraints = list(_attribute_constraints(protocol, bare, entries)) if protocol else []
    covered = frozenset(name for name, constraint in attribute_constraints if constraint.fixed)  # D24
    metadata = _envelope_constraints(attributes) if envelope else []
    uncovered = (constraint for constraint in metadata if constraint.slot.name not in covered)
    stated = [constraint.declared for name, constraint in attribute_constraints if name == "datacontenttype"]
    mode = _mode(attributes, covered, stated) if envelope else None
    format_ = format_constraints(attributes, mode, "envelopeoptions.format") if envelope else ()
    return Definition(
        xid=xid,
        container=container,
        attributes=attributes,
        envelope=envelope,
        protocol=protocol,
        mode=mode,
        constraints=(*uncovered, *_content_type(attributes, metadata, covered), *format_, *bare),
        entries=tuple(entries),
        soft=tuple(_soft(attributes, metadata)) if envelope else (),
        incomplete=incomplete,
        source=source,
    )


def constraint_of(slot: Slot, kind: SlotKind, declaration: Any, *, required: bool = False) -> Constraint:
    """Compile a property definition or a bare value (D29).

    `required`: the property is required even if it is not declared as required.
    """
    fields = declaration if isinstance(declaration, Mapping) else {"value": declaration}
    value = fields.get("value")
    required = required or bool(fields.get("required"))
    type_ = _type(kind, fields)
    reads_placeholders = type_ in TEMPLATE_TYPES or fields.get("type") is None  # D15
    is_short = value is None or (isinstance(value, str) and len(value) <= MAX_SHARED_TEXT)
    compile_ = _shared_constraint if is_short else _constraint
    return compile_(slot, kind, type_, required, value, reads_placeholders=reads_placeholders)


def _constraint(
    slot: Slot, kind: SlotKind, type_: str, required: bool, value: Any, *, reads_placeholders: bool
) -> Constraint:
    if type_ == "timestamp" and is_current_time(value):  # D10
        return Constraint(slot, kind, type_, required, current_time=True)
    if value is None or value == "":  # D3
        return Constraint(slot, kind, type_, required)
    if kind.place.has_uri_text and isinstance(value, str):
        value = uri_literals(value)
    if kind.place == PATH and isinstance(value, str):
        # normal form: only the characters that are not allowed in paths are percent-encoded (D30)
        value = normal_path(quote(value, safe="/%{}:@!$&'()*+,;=~"))
    if (slot.section, slot.name) == (BARE, "method") and isinstance(value, str):
        value = _upper(value)
    if reads_placeholders and isinstance(value, str) and has_placeholder(value):
        return Constraint(slot, kind, type_, required, value, template=parse_template(value, kind.place))
    if kind.media_type and isinstance(value, str) and (media_type := parse_media_type(value)):
        return Constraint(slot, kind, type_, required, value, media_type=media_type)
    try:
        return Constraint(slot, kind, type_, required, value, canonical(type_, value))
    except NotOfType:  # a lint error; the constant is compared unchanged
        return Constraint(slot, kind, "any", required, value, canonical("any", value))


_shared_constraint = lru_cache(maxsize=MAX_SHARED)(_constraint)
"""The cached `_constraint`. Definitions share equal constraints, because most templates occur in many definitions."""


def _upper(value: str) -> str:
    """A declared HTTP method in upper case (D30). Placeholders keep their case (D16)."""
    names = PLACEHOLDER.findall(value)
    literals = PLACEHOLDER.sub("\0", value).upper().split("\0")
    return literals[0] + "".join(f"{{{name}}}{literal}" for name, literal in zip(names, literals[1:], strict=True))


def _type(kind: SlotKind, fields: Mapping[str, Any]) -> str:
    declared = fields.get("type")
    if declared is None:
        value = fields.get("value")
        natural = "boolean" if isinstance(value, bool) else "integer" if isinstance(value, int) else kind.type
        declared = natural if kind.type in ("string", "uritemplate") else kind.type
    name = type_name(declared) or (declared if declared in ("ascii", "uint32") else "any")
    if name == "symbol" and kind.type == "ascii":
        return "ascii"  # D7: where the specification's tables declare a `symbol`, it means ASCII text
    return kind.integer if name == "integer" else name


# -- envelope -------------------------------------------------------------------------------------------------------


def _envelope_constraints(attributes: Mapping[str, Any]) -> list[Constraint]:
    declared = _mapping(attributes.get("envelopemetadata"))
    known = [name for name in slots.ATTRIBUTES if name in declared]
    others = [name for name in declared if name not in slots.ATTRIBUTES]
    return [
        constraint_of(
            shared_slot(ENVELOPE, name, f"envelopemetadata.{name}"),
            slots.attribute_kind(name),
            declared[name],
            required=name in slots.REQUIRED_ATTRIBUTES,
        )
        for name in (*known, *others)
    ]


def _content_type(
    attributes: Mapping[str, Any], metadata: Iterable[Constraint], covered: frozenset[str]
) -> Iterator[Constraint]:
    """Compile the message-level `datacontenttype` (R16), which is the content type of the event or of its data."""
    declared = attributes.get("datacontenttype")
    if not isinstance(declared, str) or "datacontenttype" in covered:
        return
    slot = shared_slot(BARE, "datacontenttype", "datacontenttype")
    constraint = constraint_of(slot, slots.ATTRIBUTES["datacontenttype"], declared)
    if constraint.media_type and constraint.media_type.is_cloudevents:
        yield replace(constraint, slot=shared_slot(BARE, "wire-content-type", "datacontenttype"))
    elif not any(other.media_type == constraint.media_type for other in metadata if other.media_type):
        yield constraint


def _mode(attributes: Mapping[str, Any], covered: frozenset[str], stated: Iterable[Any]) -> str | None:
    """The content mode that the definition requires, or None (R31, D25).

    `stated` are the values of the protocol's constraints on the content type.
    """
    mode = str(_mapping(attributes.get("envelopeoptions")).get("mode") or "").lower()
    if mode in ENVELOPE_MODES:
        return mode
    texts = [text for text in (attributes.get("datacontenttype"), *stated) if isinstance(text, str)]
    types = map(parse_media_type, texts)
    if any(media_type and media_type.is_cloudevents for media_type in types):
        return "structured"
    return "binary" if "datacontenttype" in covered else None


def format_constraints(attributes: Mapping[str, Any], mode: str | None, label: str) -> Iterator[Constraint]:
    """Compile `envelopeoptions.format`, the content type of structured messages (R31); binary messages have none."""
    declared = _mapping(attributes.get("envelopeoptions")).get("format")
    if isinstance(declared, str) and declared and mode != "binary":
        yield constraint_of(shared_slot(BARE, EVENT_FORMAT, label), EVENT_FORMAT_KIND, declared)


def _soft(attributes: Mapping[str, Any], metadata: list[Constraint]) -> Iterator[Constraint]:
    """Constraints from inferred values (D12, D13). They affect only the rank and never reject a message."""
    fixed = {constraint.slot.name for constraint in metadata if constraint.fixed}
    inferred = {
        "datacontenttype": inferred_content_type(attributes.get("dataschemaformat")),
        "dataschema": attributes.get("dataschemauri"),
    }
    for name, value in inferred.items():
        if name not in fixed and isinstance(value, str) and value and (name != "dataschema" or "://" in value):
            slot = shared_slot(ENVELOPE, name, f"envelopemetadata.{name}")
            yield constraint_of(slot, slots.INFERRED_KINDS[name], value)


# -- protocol -------------------------------------------------------------------------------------------------------


def _protocol_constraints(protocol: str, options: Mapping[str, Any]) -> tuple[list[Constraint], list[Entries]]:
    kin = family(protocol)
    if kin not in slots.BARE_SLOTS:
        return [], []
    bare_slots = slots.bare_slots(protocol)
    bare = [_bare_constraint(name, kind, options[name]) for name, kind in bare_slots.items() if name in options]
    sections = list(_section_constraints(options)) if kin == "AMQP" else []
    named = () if slots.is_mqtt_3(protocol) else slots.ENTRY_SECTIONS[kin]
    return [*bare, *sections], [group for section in named for group in entries_of(kin, section, options.get(section))]


def _bare_constraint(name: str, kind: SlotKind, declaration: Any) -> Constraint:
    slot = shared_slot(BARE, name, f"protocoloptions.{name}")
    addressing = name in ("topic_name", "topic", "path", "method", "subject", "key", "key_base64", "status")
    constraint = constraint_of(slot, kind, declaration)
    return replace(constraint, required=True) if addressing and constraint.fixed else constraint


def _section_constraints(options: Mapping[str, Any]) -> Iterator[Constraint]:
    for section, table in slots.AMQP_SECTIONS.items():
        declared = _mapping(options.get(section))
        for name in (*(name for name in table if name in declared), *(name for name in declared if name not in table)):
            slot = shared_slot(section, name, f"protocoloptions.{section}.{name}")
            yield constraint_of(slot, slots.amqp_kind(section, name), declared[name])


def entries_of(kin: str, section: str, declared: Any, prefix: str = "protocoloptions") -> Iterator[Entries]:
    """Compile a section whose names may repeat, grouped by name. Labels begin with `prefix`."""
    grouped: dict[str, list[Constraint]] = {}
    trims = section == "headers" and kin in ("HTTP", "NATS")
    for declared_name, declaration in _named(declared):
        name = slots.entry_name(kin, section, declared_name)
        slot = shared_slot(section, name, f"{prefix}.{section}.{declared_name}")
        constraint = constraint_of(
            slot, slots.entry_kind(kin, section, name), _trimmed(declaration) if trims else declaration
        )
        grouped.setdefault(name, []).append(constraint)
    exclusive = section != "query" and kin != "KAFKA"
    for name, constraints in grouped.items():
        lists = (kin, section) == ("HTTP", "headers") and name != "set-cookie"
        ordered = sorted(constraints, key=lambda entry: 0 if entry.valued else 1 if entry.template else 2)
        yield Entries(section, name, tuple(ordered), exclusive, lists, tuple(constraints))


def _trimmed(declaration: Any) -> Any:
    """A declared header without leading and trailing blanks, which receivers remove (D30)."""
    if isinstance(declaration, str):
        return declaration.strip(" \t")
    if isinstance(declaration, Mapping) and isinstance(value := declaration.get("value"), str):
        return {**declaration, "value": value.strip(" \t")}
    return declaration


def _named(declared: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, declaration) from an array of named entries, or from a map, where `name` overrides the key (D33)."""
    if isinstance(declared, Mapping):
        for key, declaration in declared.items():
            name = declaration.get("name") if isinstance(declaration, Mapping) else None
            yield (name if isinstance(name, str) and name else key), declaration
    elif isinstance(declared, list):
        for entry in declared:
            if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                yield entry["name"], entry


def _attribute_constraints(
    protocol: str, bare: Iterable[Constraint], entries: Iterable[Entries]
) -> Iterator[tuple[str, Constraint]]:
    """Yield the protocol constraints on slots that carry CloudEvents attributes, each with the attribute's name."""
    for constraint in (*bare, *(entry for group in entries for entry in group.entries)):
        name = slots.envelope_attribute(family(protocol), constraint.slot.section, constraint.slot.name)
        if name:
            yield name, constraint


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
