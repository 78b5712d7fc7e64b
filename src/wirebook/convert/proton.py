"""AMQP 1.0 by python-qpid-proton (extra ``amqp``): `proton.Message`, both ways.

    outcome = catalog.match(record_of(event.message))
    sender.send(message_of(catalog.build(...)))

Proton's message has no footer, and does not tell an absent property from its default: defaults are left out.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from wirebook.bindings import AmqpMessage, AnyMessage, Base64, bytes_of, from_bytes
from wirebook.bindings.amqp import check_sections
from wirebook.bindings.typed import type_of
from wirebook.convert.refusal import refuse, require
from wirebook.problems import WirebookError
from wirebook.problems.extras import library

if TYPE_CHECKING:
    from proton import Message

NAME = "python-qpid-proton"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS: Final = {
    "to": "address",
    "subject": "subject",
    "reply-to": "reply_to",
    "group-id": "group_id",
    "reply-to-group-id": "reply_to_group_id",
}
SYMBOLS: Final = {"content-type": "content_type", "content-encoding": "content_encoding"}
TIMES: Final = {"absolute-expiry-time": "expiry_time", "creation-time": "creation_time"}
IDS: Final = {"message-id": "id", "correlation-id": "correlation_id"}
HEADER: Final = {"durable": False, "first-acquirer": False, "delivery-count": 0}
ANNOTATIONS: Final = {"delivery_annotations": "instructions", "message_annotations": "annotations"}
# Types whose class in proton has another name than AMQP gives them.
CLASSES: Final = {"int": "int32", "float": "float32"}
NUMBERS: Final = ("ubyte", "ushort", "uint", "ulong", "byte", "short", "int32", "float32")


def record_of(message: Message) -> AmqpMessage:
    """The message that was received. Raises: WirebookError (``not-expressible``) for a body of another kind."""
    body, section = _body_of(message)
    return AmqpMessage(
        header=_header_of(message) or None,
        delivery_annotations=_section_of(message.instructions),
        message_annotations=_section_of(message.annotations),
        properties=_properties_of(message) or None,
        application_properties=_section_of(message.properties),
        body=from_bytes(body),
        body_section=section,
    )


def _body_of(message: Message) -> tuple[bytes | None, str | None]:
    body = message.body
    if body is None:
        return None, None
    if isinstance(body, str):
        return body.encode(), "amqp-value"
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body), None if message.inferred else "amqp-value"
    raise refuse(NAME, "the body", "bytes or a text", type(body).__name__)


def _header_of(message: Message) -> dict[str, Any]:
    found = {name: getattr(message, name.replace("-", "_")) for name in HEADER}
    found |= {"priority": message.priority, "ttl": round(message.ttl * 1000)}
    defaults = {**HEADER, "priority": message.DEFAULT_PRIORITY, "ttl": 0}
    return {name: value for name, value in found.items() if value != defaults[name]}


def _properties_of(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {name: _wire_value(getattr(message, own)) for name, own in IDS.items()}
    found = {name: {"ulong": value} if type(value) is int else value for name, value in found.items()}
    found |= {name: getattr(message, own) for name, own in TEXTS.items()}
    for name, own in SYMBOLS.items():
        text = getattr(message, own)
        found[name] = None if text in (None, "None") else str(text)  # proton says symbol('None') where there is none
    for name, own in TIMES.items():
        seconds = getattr(message, own)
        found[name] = {"timestamp": _text_of_time(round(seconds * 1000))} if seconds else None
    found["user-id"] = _wire_value(message.user_id) if message.user_id else None
    found["group-sequence"] = message.group_sequence or None
    return {name: value for name, value in found.items() if value is not None}


def _section_of(section: Mapping[Any, Any] | None) -> dict[str, Any] | None:
    return {str(name): _wire_value(value) for name, value in section.items()} if section else None


def _wire_value(value: Any) -> Any:
    """A value as records have it: what JSON cannot say is a one-member object named after its type."""
    kind = type(value).__name__
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"binary": base64.b64encode(bytes(value)).decode()}
    if kind == "timestamp":
        return {"timestamp": _text_of_time(int(value))}
    if isinstance(value, UUID):
        return {"uuid": str(value)}
    if kind in NUMBERS:
        named = {own: name for name, own in CLASSES.items()}.get(kind, kind)
        return {named: float(value) if kind == "float32" else int(value)}
    if kind in ("symbol", "char"):
        return {kind: str(value)}
    if isinstance(value, Mapping):
        return {"map": {str(name): _wire_value(each) for name, each in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"list": [_wire_value(each) for each in value]}
    if not isinstance(value, (str, bool, int, float, type(None))):
        raise refuse(NAME, "a value", "of a type that captures have", kind)
    return value


# -- sending ----------------------------------------------------------------------------------------------------------


def message_of(wire: AnyMessage) -> Message:
    """What a sender sends. Raises: WirebookError (``not-expressible``, ``missing-extra``, what a writer refuses)."""
    require(wire, NAME, AmqpMessage)
    assert isinstance(wire, AmqpMessage)
    if wire.footer:
        raise refuse(NAME, "protocoloptions.footer", "absent", sorted(wire.footer))
    if problems := tuple(check_sections(wire)):
        raise WirebookError(*problems)
    message: Message = library("proton").Message()
    _fill_body(message, wire)
    for name, value in (wire.header or {}).items():
        setattr(message, name.replace("-", "_"), value / 1000 if name == "ttl" else value)
    for name, value in (wire.properties or {}).items():
        _fill_property(message, name, value)
    for field, own in ANNOTATIONS.items():
        section = getattr(wire, field)
        if section:
            symbol = library("proton").symbol
            setattr(message, own, {symbol(name): _own_value(value) for name, value in section.items()})
    applied = wire.application_properties
    message.properties = {name: _own_value(value) for name, value in applied.items()} if applied else None
    return message


def _fill_body(message: Message, wire: AmqpMessage) -> None:
    is_value = wire.body_section == "amqp-value"
    message.inferred = not is_value
    message.body = wire.body if is_value and not isinstance(wire.body, Base64) else bytes_of(wire.body)


def _fill_property(message: Message, name: str, value: Any) -> None:
    made = _own_value(value)
    if name in TIMES:
        setattr(message, TIMES[name], int(made) / 1000)
    elif name == "user-id":
        message.user_id = made.encode() if isinstance(made, str) else made
    elif name == "group-sequence":
        message.group_sequence = made
    else:
        setattr(message, {**TEXTS, **SYMBOLS, **IDS}[name], made)


def _own_value(value: Any) -> Any:
    """The value as proton has it."""
    kind = type_of(value)
    if kind is None:
        return value
    inner = value[kind]
    if kind in MADE:
        return MADE[kind](inner)
    if kind in ("list", "map"):
        each = inner if kind == "list" else inner.values()
        made = [_own_value(item) for item in each]
        return made if kind == "list" else dict(zip(inner, made, strict=True))
    own = getattr(library("proton"), CLASSES.get(kind, kind), None)
    if own is None or kind.startswith("decimal") or kind == "array":
        raise refuse(NAME, "a value", f"of another type than {kind}", inner)
    return own(_milliseconds(inner) if kind == "timestamp" else inner)


MADE: Final[dict[str, Callable[[Any], Any]]] = {
    "null": lambda _: None,
    "boolean": bool,
    "long": int,
    "double": float,
    "string": str,
    "uuid": UUID,
    "binary": base64.b64decode,
}


def _text_of_time(milliseconds: int) -> str:
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise refuse(NAME, "a time", "of the years 1 to 9999", milliseconds) from error
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds(text: str) -> int:
    try:
        return (datetime.fromisoformat(text.upper()) - _EPOCH) // timedelta(milliseconds=1)
    except ValueError as error:
        raise refuse(NAME, "a time", "of the years 1 to 9999, without leap second", text) from error
