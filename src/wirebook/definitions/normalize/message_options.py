"""Protocol options of a message, in every spelling seen, brought into one shape.

One table row for each protocol says which names it has and which shape each has: `bare` slots are plain values,
`lists` are arrays of ``{name, value, ...}``, `maps` are maps of such, `sections` are maps of property definitions,
and the members of `lifted` belong one level up.

Spec: message/spec.md#message-protocols; docs/catalogues.md#dialects; docs/semantics.md D29-D34.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.definitions.normalize.names import CURRENT_TIME, OLD_CURRENT_TIMES, canonical_type
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.normalize.rewriting import RewriteCursor, RewrittenEntity


@dataclass(frozen=True, slots=True)
class ProtocolShape:
    """The options of one protocol."""

    bare: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    sections: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lifted: tuple[str, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.bare, *self.lists, *self.maps, *self.sections)


MQTT_3_OPTIONS: Final = ("qos", "retain", "topic_name")
MQTT_5_ONLY: Final = (
    "payload_format", "message_expiry_interval", "response_topic", "correlation_data", "content_type",
    "user_properties",
)  # fmt: skip
_MQTT: Final = ProtocolShape(
    bare=(*MQTT_3_OPTIONS, *MQTT_5_ONLY[:-1]),
    lists=("user_properties",),
    lifted=("properties",),
    aliases={"topic": "topic_name", "payload_format_indicator": "payload_format"},
)
AMQP_SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "properties": (
        "message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding",
        "absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id",
    ),
    "application-properties": (),
    "message-annotations": (),
    "delivery-annotations": (),
    "header": ("durable", "priority", "ttl", "first-acquirer", "delivery-count"),
    "footer": (),
}  # fmt: skip

SHAPES: Final[dict[str, ProtocolShape]] = {
    "HTTP": ProtocolShape(bare=("path", "method", "status"), lists=("headers", "query")),
    "AMQP/1.0": ProtocolShape(sections=AMQP_SECTIONS),
    "MQTT/3.1.1": _MQTT,
    "MQTT/5.0": _MQTT,
    "KAFKA": ProtocolShape(
        bare=("topic", "partition", "key", "key_base64"),
        maps=("headers",),
        dropped={"timestamp": "a record's time is no part of a definition since 1.0"},
    ),
    "NATS": ProtocolShape(bare=("subject", "reply-to"), lists=("headers",), aliases={"reply": "reply-to"}),
}


def fold(name: str) -> str:
    """A name without its separators and case: ``topic-name``, ``topic_name`` and ``topicName`` are one."""
    return name.replace("-", "").replace("_", "").casefold()


def rename_options(options: dict[str, Any], names: tuple[str, ...], aliases: dict[str, str], at: RewriteCursor) -> None:
    """Give the members of `options` the names of the table, in place."""
    unknown = [name for name in options if name not in names]
    known = {fold(name): name for name in (*names, *aliases)} if unknown else {}
    for old in unknown:
        if (new := known.get(fold(old))) is not None:
            at.rename(options, old, aliases.get(new, new))


def normalise_options(entity: RewrittenEntity, protocol: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The options of `entity` for `protocol`, canonical; those of a protocol that is not ours as they are."""
    shape = SHAPES.get(protocol or "")
    if shape is None:
        return options
    place = RewriteCursor(entity, entity.at("protocoloptions"))
    options = dict(options)
    for name in shape.lifted:
        lift(options, name, place)
    rename_options(options, shape.names, shape.aliases, place)
    for name, reason in shape.dropped.items():
        _drop(options, name, reason, place)
    for name in [name for name in options if name in shape.names and options[name] is not None]:
        _normalise_option(options, name, shape, place.inside(name))
    return options


def _normalise_option(options: dict[str, Any], name: str, shape: ProtocolShape, place: RewriteCursor) -> None:
    value: Any
    if name in shape.sections:
        value = section(options[name], place, shape.sections[name], bare=name == "header")
    elif name in shape.lists:
        value = entries(options[name], place)
    elif name in shape.maps:
        value = entry_map(options[name], place)
    else:
        _normalise_bare(options, name, place)
        return
    if value is None:
        del options[name]
    else:
        options[name] = value


def lift(options: dict[str, Any], name: str, place: RewriteCursor) -> None:
    """Move the members of the object `name` up to where it stands; what is there already counts."""
    held = options.get(name)
    if not isinstance(held, dict):
        return
    inner = place.inside(name)
    del options[name]
    for member, value in held.items():
        source = inner.inside(member).source
        if member in options and options[member] != value:
            message = f"'{member}' is also outside '{name}', with another value, which counts"
            inner.inside(member).report("conflicting-names", message, expected=options[member], actual=value)
            continue
        options[member] = value
        place.inside(member).record_origin(source)
        message = f"'{member}' was lifted out of '{name}'"
        place.inside(member).report("misplaced-option", message, expected=member, actual=f"{name}.{member}")


def _drop(options: dict[str, Any], name: str, reason: str, place: RewriteCursor) -> None:
    if name in options:
        place.inside(name).report("dropped-attribute", f"'{name}' was dropped: {reason}", actual=options[name])
        del options[name]


# -- shapes ---------------------------------------------------------------------------------------------------------


def _normalise_bare(options: dict[str, Any], name: str, place: RewriteCursor) -> None:
    """A slot that is a plain value: taken out of a ``{value}``; empty text is no value (D3, D29)."""
    value = options[name]
    if isinstance(value, dict) and "value" in value:
        place.report("wrapped-value", f"'{name}' is a plain value", expected=value["value"], actual=value)
        binary = name == "key" and str(value.get("type")).casefold() == "binary"
        if binary:
            del options[name]
            name = "key_base64"
        while isinstance(value, dict) and "value" in value:
            value = options[name] = value["value"]
    if value == "":
        place.report("empty-value", f"'{name}' is an empty text, read as no value")
        del options[name]


def section(value: Any, place: RewriteCursor, names: tuple[str, ...], *, bare: bool = False) -> dict[str, Any] | None:
    """A map of property definitions; `names` are those that the text fixes, in one spelling."""
    if not isinstance(value, dict):
        place.report("wrong-shape", "a map of properties is an object", expected="an object", actual=value)
        return None
    properties = dict(value)
    rename_options(properties, names, {}, place)
    for name in list(properties):
        definition = property_definition(properties[name], place.inside(name), bare=bare)
        if definition is UNUSABLE:
            del properties[name]
        else:
            properties[name] = definition
    return properties


UNUSABLE: Final = object()
DEFINITION_MEMBERS: Final = frozenset({"value", "type", "required", "description", "specurl"})


def property_definition(definition: Any, place: RewriteCursor, *, bare: bool = False) -> Any:
    """One property definition ``{type, value, required, ...}``; a plain value stands for its ``value``."""
    if definition is None:
        return None
    if isinstance(definition, list):
        place.report("wrong-shape", "a property definition is an object", expected="an object", actual=definition)
        return UNUSABLE
    if not isinstance(definition, dict):
        if bare:
            return definition
        place.report("bare-property", "a plain value was read as the 'value' of a property", actual=definition)
        definition = {"value": definition}
        place.inside("value").record_origin(place.source)
    definition = dict(definition)
    _normalise_type(definition, place.inside("type"))
    _normalise_value(definition, place.inside("value"))
    return definition


def _normalise_type(definition: dict[str, Any], place: RewriteCursor) -> None:
    declared = definition.get("type")
    if isinstance(declared, str) and (name := canonical_type(declared)) != declared:
        place.report("old-type-name", f"the type '{declared}' is '{name}'", expected=name, actual=declared)
        definition["type"] = name


def _normalise_value(definition: dict[str, Any], place: RewriteCursor) -> None:
    value = definition.get("value")
    if value == "" and isinstance(value, str):
        place.report("empty-value", "an empty text, read as no value")
        del definition["value"]
    elif isinstance(value, str) and OLD_CURRENT_TIMES.match(value) and definition.get("type") in (None, "timestamp"):
        code = "old-current-time" if value.startswith("01-") else "guessed-current-time"
        place.report(code, f"'{value}' stands for the current time", expected=CURRENT_TIME, actual=value)
        definition["value"] = CURRENT_TIME


def entries(value: Any, place: RewriteCursor) -> list[Any] | None:
    """An array of ``{name, value, ...}``: from such an array, a list of one-member maps, or a map."""
    if not isinstance(value, (list, dict)):
        place.report("wrong-shape", "an array of names and values was expected", expected="an array", actual=value)
        return None
    found: list[Any] = []
    for source, name, definition in _pairs(value, place):
        target = place.inside(len(found))
        target.record_origin(source.source)
        entry = property_definition(definition, target, bare=False)
        if entry is UNUSABLE or entry is None:
            continue
        found.append({"name": name} | entry)
    if isinstance(value, dict):
        place.report("old-shape", "a map was read as an array of names and values", expected="an array")
    return found


def _pairs(value: Any, place: RewriteCursor) -> Iterator[tuple[RewriteCursor, Any, Any]]:
    """(place, name, definition) of each entry."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        at = place.inside(key)
        if isinstance(value, dict):
            yield at, (item.get("name", key) if isinstance(item, dict) else key), _of_map(item)
        elif isinstance(item, dict) and "name" in item:
            yield at, item["name"], item
        elif isinstance(item, dict) and len(item) == 1 and DEFINITION_MEMBERS.isdisjoint(item):
            name, definition = next(iter(item.items()))
            at.report("old-shape", f"a map with one member was read as the entry '{preview(name)}'", actual=item)
            yield at.inside(name), name, _of_map(definition)
        else:
            at.report("wrong-shape", "an entry has a 'name'", expected="an object with 'name'", actual=item)


def _of_map(item: Any) -> Any:
    """An entry of a map: its plain value is what a definition calls ``value``, and needs no remark of its own."""
    return {"value": item} if isinstance(item, (str, int, float, bool)) else item


def entry_map(value: Any, place: RewriteCursor) -> dict[str, Any] | None:
    """A map of name to ``{name, value, ...}``: from such a map, a map of plain values, or an array of entries."""
    if isinstance(value, list):
        place.report("old-shape", "an array was read as a map", expected="a map")
        listed = entries(value, place) or []
        for index, entry in enumerate(listed):
            place.inside(entry["name"]).record_origin(place.inside(index).source)
        return {str(entry["name"]): entry for entry in listed}
    if not isinstance(value, dict):
        place.report("wrong-shape", "a map was expected", expected="an object", actual=value)
        return None
    found: dict[str, Any] = {}
    for key, item in value.items():
        if item is not None and not (isinstance(item, dict) and "name" in item):
            place.inside(key).report(
                "old-shape", f"write 'name': '{preview(key)}'", expected={"name": key}, actual=item
            )
        entry = property_definition(_of_map(item), place.inside(key))
        if entry is not UNUSABLE:
            found[key] = entry if entry is None else {"name": key} | entry
    return found
