"""Generate random messages of a definition, over every protocol and in every mode that it allows.

`Catalog.build` writes the envelope and the slots; the context, the payload, and what the definition leaves open are
drawn here.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

import orjson

from synthesis import texts
from synthesis.dice import Dice
from synthesis.payloads import Made, payload_for, spelled
from wirebook.bindings import PROTOCOLS, Timestamp, to_record
from wirebook.catalog import Catalog
from wirebook.definitions.compile.definition import Constraint, Definition
from wirebook.definitions.compile.mediatype import parse_media_type
from wirebook.definitions.compile.slots import BARE, ENVELOPE, EVENT_FORMAT
from wirebook.definitions.compile.uritemplate import Template
from wirebook.definitions.match.selection import EndpointScope
from wirebook.problems import WirebookError
from wirebook.schema import Payload, Unsupported

Record = dict[str, Any]
PAYLOAD_MEMBERS = {
    "HTTP": "body", "KAFKA": "value", "MQTT/3.1.1": "payload", "MQTT/5.0": "payload", "AMQP/1.0": "body", "NATS": "data",
}  # fmt: skip
EVENTS = "CLOUDEVENTS"  # a plain file of events: no protocol at all
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"


@dataclass(frozen=True)
class Way:
    """How a message travels: protocol (or `EVENTS`) and content mode (None: no envelope)."""

    protocol: str
    mode: str | None

    def __str__(self) -> str:
        return f"{self.protocol} {self.mode or 'native'}"


MQTT3_NATIVE = Way("MQTT/3.1.1", None)  # has no place for a content type


@dataclass(frozen=True)
class Message:
    """One line of a capture, or of a file of events, and what it was made from."""

    line: bytes
    way: Way
    definition: str
    context: Mapping[str, str] = field(default_factory=dict)
    mutations: tuple[str, ...] = ()

    @property
    def is_event_file(self) -> bool:
        return self.way.protocol == EVENTS

    @property
    def record(self) -> Record:
        parsed: Record = orjson.loads(self.line)
        return parsed

    def with_record(self, record: Record) -> Message:
        return replace(self, line=orjson.dumps(record))


def ways_of(definition: Definition) -> Iterator[Way]:
    """Every protocol and mode that a definition allows; a batch is one HTTP record of one event."""
    protocols = (definition.protocol,) if definition.protocol else PROTOCOLS
    for protocol in protocols:
        if not definition.is_cloudevent:
            yield Way(protocol, None)
            continue
        if definition.mode != "structured" and protocol != "MQTT/3.1.1":
            yield Way(protocol, "binary")
        if definition.mode != "binary":
            yield Way(protocol, "structured")
            if protocol == "HTTP":
                yield Way(protocol, "batch")
    if definition.is_cloudevent and definition.mode != "binary":
        yield Way(EVENTS, "structured")
        yield Way(EVENTS, "batch")


def message_of(catalog: Catalog, definition: Definition, way: Way, dice: Dice) -> Message:
    """A message of the definition. Raises: WirebookError when even the plainest context cannot be built."""
    payload = _payload(catalog, definition, way, dice)
    endpoint = _endpoint(catalog, definition, way, dice)
    try:
        context = {name: _value(definition, name, dice) for name in definition.placeholders}
        record = _record(catalog, definition, way, dice, context, payload, endpoint)
    except WirebookError:
        context = {name: _plain(definition, name, dice) for name in definition.placeholders}
        record = _record(catalog, definition, way, dice, context, payload, endpoint)
    return Message(_line(record, way, dice), way, definition.xid, context)


# -- context --------------------------------------------------------------------------------------------------------


def _uses(definition: Definition, name: str) -> list[Constraint]:
    return [
        constraint
        for constraint in definition.all_constraints
        if constraint.template is not None and name in constraint.template.names
    ]


def _value(definition: Definition, name: str, dice: Dice) -> str:
    """A value with surprises, as far as the slots bear them."""
    uses = _uses(definition, name)
    plain = any(use.type in ("timestamp", "symbol", "uri", "urireference") for use in uses)
    if plain or not dice.odd:
        return _plain(definition, name, dice)
    value = texts.strange(dice)
    wholes = [_is_whole(use) and use.template.place.uri for use in uses]  # type: ignore[union-attr]
    if any(wholes) and not all(wholes):  # an escape would be decoded in one slot and not in the other
        return texts.word(dice)
    if any(wholes):
        value = dice.choice((texts.uri(dice), f"{texts.word(dice)}/{texts.word(dice)}", f"%41{texts.word(dice)}"))
    forbidden = "".join(_forbidden(use.template) for use in uses if use.template)
    return "".join(character for character in value if character not in forbidden) or "x"


def _is_whole(constraint: Constraint) -> bool:
    return constraint.template is not None and constraint.template.whole


def _forbidden(template: Template) -> str:
    encoded = template.place.uri and not template.whole
    return "" if encoded or template.spanning else template.place.separator + template.place.forbidden


def _plain(definition: Definition, name: str, dice: Dice) -> str:
    times = [use for use in _uses(definition, name) if use.type == "timestamp"]
    return texts.word(dice) if not times else _part_of_time(times[0], name, dice)


def _part_of_time(constraint: Constraint, name: str, dice: Dice) -> str:
    """A whole time, a date or a clock: whatever makes the template a time."""
    template = constraint.template
    assert template is not None
    for draw in (texts.instant, texts.date, texts.clock):
        value = draw(dice)
        try:
            datetime.fromisoformat(template.expand(dict.fromkeys(template.names, value)).upper())
        except ValueError:
            continue
        return value
    return texts.word(dice)


# -- the record -----------------------------------------------------------------------------------------------------


def _record(
    catalog: Catalog,
    definition: Definition,
    way: Way,
    dice: Dice,
    context: dict[str, str],
    payload: Payload | None,
    endpoint: str | None,
) -> Record:
    protocol = definition.protocol or ("HTTP" if way.protocol == EVENTS else way.protocol)
    unread = isinstance(catalog.schema_of(definition), Unsupported)
    scope = catalog.scopes[endpoint] if endpoint else EndpointScope()
    built = catalog.build(
        definition.xid,
        context,
        None if unread else payload,
        attributes=_attributes(definition, protocol, dice),
        properties=_properties(definition, protocol, dice, context, scope),
        protocol=protocol,
        mode="structured" if way.mode in ("structured", "batch") else way.mode,  # type: ignore[arg-type]
    )
    record = to_record(built)
    if unread and payload is not None:
        _put_payload(record, payload.raw or b"", way)
    if endpoint is not None:
        record["endpoint"] = endpoint
    if dice.random() < 0.8:
        record["received"] = texts.instant(dice).upper()
    return record


def _put_payload(record: Record, raw: bytes, way: Way) -> None:
    """Data that the builder would not take, because nothing here can read its format."""
    member = PAYLOAD_MEMBERS[record["protocol"]]
    if way.mode in ("structured", "batch"):
        event = orjson.loads(record[member]) | {"data_base64": base64.b64encode(raw).decode()}
        raw = orjson.dumps(event)
    record[member] = raw.decode()


def _line(record: Record, way: Way, dice: Dice) -> bytes:
    """The record as it is written: structured events in one of many spellings, a batch as an array."""
    if way.mode not in ("structured", "batch"):
        return orjson.dumps(record)
    member = PAYLOAD_MEMBERS[record["protocol"]]
    event = orjson.loads(record[member])
    value = [event] if way.mode == "batch" else event
    if way.protocol == EVENTS:
        return orjson.dumps(value)
    if way.mode == "batch":
        record["headers"] = [[n, BATCH if n == "content-type" else v] for n, v in record["headers"]]
    return orjson.dumps(record | {member: spelled(dice, value).decode()})


def _payload(catalog: Catalog, definition: Definition, way: Way, dice: Dice) -> Payload | None:
    if not definition.has_schema and dice.random() < 0.2:
        return None
    declared = declared_type(definition)
    says_type = way != MQTT3_NATIVE
    as_json = says_type and dice.random() < 0.5 if declared is None else _is_json(declared)
    drawn = payload_for(catalog, definition, dice, as_json=as_json)
    return Payload(
        _raw(drawn, dice), content_type=declared or ("application/json" if drawn.is_json else drawn.media_type)
    )


def _raw(drawn: Made, dice: Dice) -> bytes:
    return drawn.raw if drawn.raw is not None else spelled(dice, drawn.value)


def declared_type(definition: Definition) -> str | None:
    """The content type that a definition states for its data."""
    stated = (constraint.declared for constraint in definition.all_constraints if constraint.media_type is not None)
    return next(
        (content_type for content_type in stated if not str(content_type).startswith("application/cloudevents")), None
    )


def _is_json(content_type: str) -> bool:
    media_type = parse_media_type(content_type)
    return media_type is not None and media_type.is_json


# -- what the definition leaves open --------------------------------------------------------------------------------


def _attributes(definition: Definition, protocol: str, dice: Dice) -> dict[str, Any]:
    if not definition.is_cloudevent:
        return {}
    declared = {
        constraint.slot.name: constraint for constraint in definition.constraints if constraint.slot.section == ENVELOPE
    }
    open_ = {
        name: constraint
        for name, constraint in declared.items()
        if not constraint.fixed and not constraint.current_time
    }
    attributes = {
        name: _of_type(constraint, protocol, dice)
        for name, constraint in open_.items()
        if constraint.required or dice.random() < 0.5
        if name not in ("specversion", "datacontenttype")
    }
    for name, draw in _USUAL.items():
        if name not in declared and dice.random() < 0.7:
            attributes[name] = draw(dice)
    if "source" not in declared:
        attributes["source"] = dice.choice(("/s", texts.uri(dice)))
    if "id" not in attributes and not (declared.get("id") and declared["id"].fixed):
        attributes["id"] = texts.uuid(dice)  # the builder's own would be another one each time
    if dice.odd and dice.random() < 0.2:
        attributes["undeclared"] = texts.text(dice) or "x"
    if "time" not in attributes and not (declared.get("time") and declared["time"].fixed):
        attributes["time"] = _instant(protocol, dice)
    return attributes


_USUAL = {
    "id": lambda dice: texts.text(dice) or "1",
    "subject": lambda dice: texts.text(dice) or "s",
}


def _instant(protocol: str, dice: Dice) -> str:
    instant = texts.instant(dice)
    return Timestamp(instant.upper()) if protocol == "AMQP/1.0" and dice.random() < 0.5 else instant


def _of_type(constraint: Constraint, protocol: str, dice: Dice) -> Any:
    if constraint.type == "integer":
        return dice.randint(-(2**31), 2**31 - 1)
    if constraint.type == "boolean":
        return dice.random() < 0.5
    if constraint.type == "timestamp":
        return _instant(protocol, dice)
    if constraint.type in ("uri", "urireference") or constraint.kind.place.uri:
        return texts.uri(dice)
    return texts.text(dice) or "x"


def _properties(
    definition: Definition, protocol: str, dice: Dice, context: Mapping[str, str], scope: EndpointScope
) -> dict[str, Any]:
    """Protocol slots that must be there, and addresses where the definition names none."""
    properties: dict[str, Any] = {}
    for constraint in definition.all_constraints:
        section = constraint.slot.section
        if section != ENVELOPE and constraint.required and not constraint.fixed:
            name = constraint.label.removeprefix("protocoloptions.")
            properties[name] = _of_type(constraint, protocol, dice)
    declared = {constraint.slot.name for constraint in definition.constraints if constraint.slot.section == BARE}
    properties |= {name: draw(dice) for name, draw in _ADDRESSES.get(protocol, {}).items() if name not in declared}
    for constraint in _address_constraints(scope):
        if constraint.slot.name not in declared:
            properties[constraint.slot.name] = _option_value(constraint, context, dice)
    return properties


def _address_constraints(scope: EndpointScope) -> Iterator[Constraint]:
    """The endpoint's constraints on addresses, which messages show."""
    return (constraint for constraint in scope.constraints.constraints if constraint.slot.name != EVENT_FORMAT)


def _option_value(constraint: Constraint, context: Mapping[str, str], dice: Dice) -> Any:
    if constraint.template is None:
        return constraint.declared
    return constraint.template.expand(
        {name: context.get(name) or texts.word(dice) for name in constraint.template.names}
    )


_ADDRESSES = {
    "HTTP": {"path": lambda dice: f"/{texts.word(dice)}?x=1"[: dice.choice((None, -4))]},
    "KAFKA": {"topic": texts.word, "key": texts.text},
    "MQTT/3.1.1": {"topic_name": lambda dice: f"{texts.word(dice)}/t"},
    "MQTT/5.0": {"topic_name": lambda dice: f"{texts.word(dice)}/t"},
    "NATS": {"subject": lambda dice: f"{texts.word(dice)}.t"},
}


def _endpoint(catalog: Catalog, definition: Definition, way: Way, dice: Dice) -> str | None:
    """An endpoint that the message may come through, named in a third of the records."""
    if way.protocol == EVENTS or dice.random() < 0.6:
        return None
    fitting = [xid for xid, scope in _scopes(catalog) if _allows(scope, definition, way)]
    return dice.choice(fitting) if fitting else None


@cache
def _scopes(catalog: Catalog) -> tuple[tuple[str, EndpointScope], ...]:
    return tuple(catalog.scopes.items())


def _allows(scope: EndpointScope, definition: Definition, way: Way) -> bool:
    mode = "structured" if way.mode == "batch" else way.mode
    right_mode = mode is None or mode == (definition.mode or scope.constraints.mode or mode)
    is_member = definition.xid in (scope.members or ()) and scope.protocol in (None, way.protocol)
    return (
        is_member and right_mode and all(_agrees(constraint, definition) for constraint in _address_constraints(scope))
    )


def _agrees(option: Constraint, definition: Definition) -> bool:
    """Does the endpoint's option say the same as the definition about their slot? (Some real ones do not.)"""
    own = (
        constraint
        for constraint in definition.constraints
        if constraint.slot.section == BARE and constraint.slot.name == option.slot.name
    )
    return all(not constraint.fixed or constraint.declared == option.declared for constraint in own)
