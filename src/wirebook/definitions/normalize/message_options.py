"""Normalise the protocol options of a message: rewrite every known spelling and format to 1.0-rc4.

`OPTION_LAYOUTS` has one row for each protocol.

Spec: message/spec.md#message-protocols; docs/catalogues.md#dialects; docs/semantics.md D29-D34.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.definitions.normalize.names import CURRENT_TIME, OLD_CURRENT_TIMES, canonical_type
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.normalize.rewriting import RewriteCursor, RewrittenEntity


@dataclass(frozen=True, slots=True)
class OptionLayout:
    """The options of one protocol, by their structure.

    Shape: `bare` options are scalars, `lists` are arrays of ``{name, value, ...}``, `maps` are maps of such objects,
    `sections` are maps of property definitions. `lifted` are objects whose members belong one level up. `aliases` maps
    other known names to the current ones. `dropped` maps options of earlier specifications to the reason why they are
    ignored.
    """

    bare: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    sections: dict[str, tuple[str, ...]] = field(default_factory=dict)
    lifted: tuple[str, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All option names of the protocol."""
        return (*self.bare, *self.lists, *self.maps, *self.sections)


MQTT_3_OPTIONS: Final = ("qos", "retain", "topic_name")
MQTT_5_ONLY: Final = (
    "payload_format", "message_expiry_interval", "response_topic", "correlation_data", "content_type",
    "user_properties",
)  # fmt: skip
_MQTT: Final = OptionLayout(
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

OPTION_LAYOUTS: Final[dict[str, OptionLayout]] = {
    "HTTP": OptionLayout(bare=("path", "method", "status"), lists=("headers", "query")),
    "AMQP/1.0": OptionLayout(sections=AMQP_SECTIONS),
    "MQTT/3.1.1": _MQTT,
    "MQTT/5.0": _MQTT,
    "KAFKA": OptionLayout(
        bare=("topic", "partition", "key", "key_base64"),
        maps=("headers",),
        dropped={"timestamp": "since 1.0 the timestamp of a record is not part of a definition"},
    ),
    "NATS": OptionLayout(bare=("subject", "reply-to"), lists=("headers",), aliases={"reply": "reply-to"}),
}


def fold(name: str) -> str:
    """Fold a name: ``topic-name``, ``topic_name`` and ``topicName`` become ``topicname``."""
    return name.replace("-", "").replace("_", "").casefold()


def rename_options(options: dict[str, Any], names: tuple[str, ...], aliases: dict[str, str], at: RewriteCursor) -> None:
    """Rename, in place, the members of `options` that are other spellings or aliases of `names`."""
    unknown = [name for name in options if name not in names]
    known = {fold(name): name for name in (*names, *aliases)} if unknown else {}
    for old in unknown:
        if (new := known.get(fold(old))) is not None:
            at.rename(options, old, aliases.get(new, new))


def normalise_options(entity: RewrittenEntity, protocol: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `entity` normalised for `protocol`. For an unknown protocol, they are unchanged."""
    layout = OPTION_LAYOUTS.get(protocol or "")
    if layout is None:
        return options
    place = RewriteCursor(entity, entity.at("protocoloptions"))
    options = dict(options)
    for name in layout.lifted:
        lift(options, name, place)
    rename_options(options, layout.names, layout.aliases, place)
    for name, reason in layout.dropped.items():
        if name in options:
            message = f"'{name}' is ignored: {reason}; remove it"
            place.inside(name).report("dropped-attribute", message, actual=options[name])
            del options[name]
    for name in [name for name in options if name in layout.names and options[name] is not None]:
        _normalise_option(options, name, layout, place.inside(name))
    return options


def _normalise_option(options: dict[str, Any], name: str, layout: OptionLayout, place: RewriteCursor) -> None:
    value: Any
    if name in layout.sections:
        value = section(options[name], place, layout.sections[name], bare=name == "header")
    elif name in layout.lists:
        value = entries(options[name], place)
    elif name in layout.maps:
        value = entry_map(options[name], place)
    else:
        _normalise_bare(options, name, place)
        return
    if value is None:
        del options[name]
    else:
        options[name] = value


def lift(options: dict[str, Any], name: str, place: RewriteCursor) -> None:
    """Replace the object `name` by its members. An option that already exists takes precedence over a member."""
    members = options.get(name)
    if not isinstance(members, dict):
        return
    inner = place.inside(name)
    del options[name]
    for member, value in members.items():
        source = inner.inside(member).source
        if member in options and options[member] != value:
            message = f"'{name}.{member}' differs from '{member}', which is used; remove '{name}.{member}'"
            inner.inside(member).report("conflicting-names", message, expected=options[member], actual=value)
            continue
        options[member] = value
        place.inside(member).record_origin(source)
        message = f"'{name}.{member}' was read as '{member}', its place in 1.0-rc4"
        place.inside(member).report("misplaced-option", message, expected=member, actual=f"{name}.{member}")


# -- structure ------------------------------------------------------------------------------------------------------


def _normalise_bare(options: dict[str, Any], name: str, place: RewriteCursor) -> None:
    """Normalise a scalar option: unwrap ``{value}``, and drop an empty string (D3, D29).

    A Kafka `key` of the type ``binary`` becomes `key_base64`.
    """
    value, new_name = options[name], name
    if isinstance(value, dict) and "value" in value:
        if name == "key" and str(value.get("type")).casefold() == "binary":
            new_name = "key_base64"
        wrapped = value
        while isinstance(value, dict) and "value" in value:
            value = options[name] = value["value"]
        message = f"'{new_name}' is written without an object; write {preview(json.dumps(value))}"
        place.report("wrapped-value", message, expected=value, actual=wrapped)
    if value == "":
        place.report("empty-value", f"'{name}' is an empty string, which is ignored; write a value or remove '{name}'")
        del options[name]
    elif new_name != name:
        place.outside.rename(options, name, new_name)


def section(value: Any, place: RewriteCursor, names: tuple[str, ...], *, bare: bool = False) -> dict[str, Any] | None:
    """Normalise a map of property definitions. `names` are the names that the specification defines."""
    if not isinstance(value, dict):
        message = f"a map of properties must be an object; found '{preview(value)}'"
        place.report("wrong-shape", message, expected="an object", actual=value)
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
    """Normalise a property definition ``{type, value, required, ...}``; a scalar is read as its ``value``.

    Return `UNUSABLE` if it is an array.
    """
    if definition is None:
        return None
    if isinstance(definition, list):
        message = f"a property definition must be an object; found '{preview(definition)}'"
        place.report("wrong-shape", message, expected="an object", actual=definition)
        return UNUSABLE
    if not isinstance(definition, dict):
        if bare:
            return definition
        message = f"'{preview(definition)}' was read as the 'value' of a property; write {{\"value\": ...}}"
        place.report("bare-property", message, actual=definition)
        definition = {"value": definition}
        place.inside("value").record_origin(place.source)
    definition = dict(definition)
    declared = definition.get("type")
    if isinstance(declared, str) and (name := canonical_type(declared)) != declared:
        message = f"the type '{declared}' was read as '{name}', its name in 1.0-rc4"
        place.inside("type").report("old-type-name", message, expected=name, actual=declared)
        definition["type"] = name
    _normalise_value(definition, place.inside("value"))
    return definition


def _normalise_value(definition: dict[str, Any], place: RewriteCursor) -> None:
    value = definition.get("value")
    if value == "" and isinstance(value, str):
        place.report("empty-value", "'value' is an empty string, which is ignored; write a value or remove 'value'")
        del definition["value"]
    elif isinstance(value, str) and OLD_CURRENT_TIMES.match(value) and definition.get("type") in (None, "timestamp"):
        code = "old-current-time" if value.startswith("01-") else "guessed-current-time"
        message = f"'{value}' was read as the current time; write '{CURRENT_TIME}'"
        place.report(code, message, expected=CURRENT_TIME, actual=value)
        definition["value"] = CURRENT_TIME


def entries(value: Any, place: RewriteCursor) -> list[Any] | None:
    """Normalise entries to an array of ``{name, value, ...}``. An array of one-member maps and a map are converted.

    Return None if `value` is neither an array nor an object.
    """
    if not isinstance(value, (list, dict)):
        message = f"expected an array of objects with 'name' and 'value'; found '{preview(value)}'"
        place.report("wrong-shape", message, expected="an array", actual=value)
        return None
    normalised: list[Any] = []
    for source, name, definition in _named_entries(value, place):
        target = place.inside(len(normalised))
        target.record_origin(source.source)
        entry = property_definition(_entry_definition(definition, target), target, bare=False)
        if entry is UNUSABLE or entry is None:
            continue
        normalised.append({"name": name} | entry)
    if isinstance(value, dict):
        message = "expected an array of objects with 'name' and 'value'; the map was converted"
        place.report("old-shape", message, expected="an array")
    return normalised


def _named_entries(value: Any, place: RewriteCursor) -> Iterator[tuple[RewriteCursor, Any, Any]]:
    """Yield (place, name, definition) of each entry."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        at = place.inside(key)
        if isinstance(value, dict):
            name = item.get("name", key) if isinstance(item, dict) else key
            if name != key:
                message = f"the key '{preview(key)}' is ignored: 'name' is '{preview(name)}', which is used"
                at.report("dropped-attribute", message, expected=name, actual=key)
            yield at, name, item
        elif isinstance(item, dict) and "name" in item:
            yield at, item["name"], item
        elif isinstance(item, dict) and len(item) == 1 and DEFINITION_MEMBERS.isdisjoint(item):
            name, definition = next(iter(item.items()))
            message = f"an entry must have 'name' and 'value'; the map was read as the entry '{preview(name)}'"
            at.report("old-shape", message, actual=item)
            yield at.inside(name), name, definition
        else:
            message = f"an entry must be an object with 'name' and 'value'; found '{preview(item)}', which is ignored"
            at.report("wrong-shape", message, expected="an object with 'name'", actual=item)


def _entry_definition(item: Any, place: RewriteCursor) -> Any:
    """Return the entry of a map as a definition. A scalar becomes its ``value``, without another report."""
    if not isinstance(item, (str, int, float, bool)):
        return item
    place.inside("value").record_origin(place.source)
    return {"value": item}


def by_name(listed: list[tuple[str, Any, str]], place: RewriteCursor) -> dict[str, Any]:
    """Return the entries of an array, each as (name, value, source pointer), as a map.

    If a name is repeated, the first entry takes precedence.
    """
    normalised: dict[str, Any] = {}
    for name, value, source in listed:
        if name not in normalised:
            normalised[name] = value
            place.inside(name).record_origin(source)
            continue
        code, values = "conflicting-names", "different values; the first one is used"
        if normalised[name] == value:
            code, values = "repeated-attribute-name", "the same value"
        message = f"'{preview(name)}' occurs twice with {values}; a map has each name once, so remove one of them"
        place.report_source(code, source, message, expected=normalised[name], actual=value)
    return normalised


def entry_map(value: Any, place: RewriteCursor) -> dict[str, Any] | None:
    """Normalise Kafka `headers` to a map of ``{name, value, ...}``. A map of scalars and an array are converted.

    Return None if `value` is neither an array nor an object.
    """
    if isinstance(value, list):
        message = "Kafka 'headers' must be a map; the array form was converted"
        place.report("old-shape", message, expected="a map")
        listed = [
            (str(entry["name"]), entry, place.inside(index)) for index, entry in enumerate(entries(value, place) or ())
        ]
        sources = [(name, at.inside("value").source) for name, _, at in reversed(listed)]
        headers = by_name([(name, entry, at.source) for name, entry, at in listed], place)
        for name, source in sources:  # the first entry of a name, which is used, is last here
            place.inside(name).inside("value").record_origin(source)
        return headers
    if not isinstance(value, dict):
        message = f"Kafka 'headers' must be a map; found '{preview(value)}'"
        place.report("wrong-shape", message, expected="an object", actual=value)
        return None
    normalised: dict[str, Any] = {}
    for key, item in value.items():
        if item is not None and not (isinstance(item, dict) and "name" in item):
            place.inside(key).report(
                "old-shape",
                f"the header '{preview(key)}' has no 'name'; add it: \"name\": \"{preview(key)}\"",
                expected={"name": key},
                actual=item,
            )
        entry = property_definition(_entry_definition(item, place.inside(key)), place.inside(key))
        if entry is not UNUSABLE:
            normalised[key] = entry if entry is None else {"name": key} | entry
    return normalised
