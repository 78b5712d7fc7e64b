"""AMQP 1.0 by python-qpid-proton (extra ``amqp``): from and to `proton.Message`.

    outcome = catalog.match(record_of(event.message))
    sender.send(message_of(catalog.build(...)))

Messages of proton have no footer, and an absent property equals its default. Defaults are therefore omitted.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from wirebook.bindings import AmqpMessage, AnyMessage, Base64, bytes_of, from_bytes
from wirebook.bindings.amqp import check_sections
from wirebook.bindings.amqp_types import type_of
from wirebook.convert.checks import milliseconds_of, not_expressible, of_protocol, time_of
from wirebook.problems import WirebookError
from wirebook.problems.extras import library

if TYPE_CHECKING:
    from proton import Message

NAME = "python-qpid-proton"
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
# Types whose class in proton does not have the name of the AMQP type.
CLASSES: Final = {"int": "int32", "float": "float32"}
NUMBERS: Final = ("ubyte", "ushort", "uint", "ulong", "byte", "short", "int32", "float32")


def record_of(message: Message) -> AmqpMessage:
    """Return the record of a received message. Raises: WirebookError (``not-expressible``) for a structured body"""
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
    raise not_expressible(NAME, "the body", "bytes or a string", type(body).__name__)


def _header_of(message: Message) -> dict[str, Any]:
    values = {name: getattr(message, name.replace("-", "_")) for name in HEADER}
    values |= {"priority": message.priority, "ttl": round(message.ttl * 1000)}
    defaults = {**HEADER, "priority": message.DEFAULT_PRIORITY, "ttl": 0}
    return {name: value for name, value in values.items() if value != defaults[name]}


def _properties_of(message: Message) -> dict[str, Any]:
    values: dict[str, Any] = {name: _wire_value(getattr(message, own)) for name, own in IDS.items()}
    values = {name: {"ulong": value} if type(value) is int else value for name, value in values.items()}
    values |= {name: getattr(message, own) for name, own in TEXTS.items()}
    for name, own in SYMBOLS.items():
        text = getattr(message, own)
        values[name] = None if text in (None, "None") else str(text)  # proton returns symbol('None') for an absent one
    for name, own in TIMES.items():
        seconds = getattr(message, own)
        values[name] = {"timestamp": _text_of_time(round(seconds * 1000))} if seconds else None
    values["user-id"] = _wire_value(message.user_id) if message.user_id else None
    values["group-sequence"] = message.group_sequence or None
    return {name: value for name, value in values.items() if value is not None}


def _section_of(section: Mapping[Any, Any] | None) -> dict[str, Any] | None:
    return {str(name): _wire_value(value) for name, value in section.items()} if section else None


def _wire_value(value: Any) -> Any:
    """Return a value of a record. Types that JSON lacks become an object with one member, the name of the type."""
    class_name = type(value).__name__
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"binary": base64.b64encode(bytes(value)).decode()}
    if class_name == "timestamp":
        return {"timestamp": _text_of_time(int(value))}
    if isinstance(value, UUID):
        return {"uuid": str(value)}
    if class_name in NUMBERS:
        type_name = {own: name for name, own in CLASSES.items()}.get(class_name, class_name)
        return {type_name: float(value) if class_name == "float32" else int(value)}
    if class_name in ("symbol", "char"):
        return {class_name: str(value)}
    if isinstance(value, Mapping):
        return {"map": {str(name): _wire_value(item) for name, item in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"list": [_wire_value(item) for item in value]}
    if not isinstance(value, (str, bool, int, float, type(None))):
        raise not_expressible(NAME, "a value", "of a type of the capture format", class_name)
    return value


# -- sending ----------------------------------------------------------------------------------------------------------


def message_of(wire: AnyMessage) -> Message:
    """Return the message that a sender sends. Raises: WirebookError (``not-expressible``, ``missing-extra``)"""
    amqp = of_protocol(wire, NAME, AmqpMessage)
    if amqp.footer:
        raise not_expressible(NAME, "protocoloptions.footer", "absent", sorted(amqp.footer))
    if problems := tuple(check_sections(amqp)):
        raise WirebookError(*problems)
    proton = library("proton")
    message: Message = proton.Message()
    message.inferred = amqp.body_section != "amqp-value"
    message.body = bytes_of(amqp.body) if message.inferred or isinstance(amqp.body, Base64) else amqp.body
    for name, value in (amqp.header or {}).items():
        setattr(message, name.replace("-", "_"), value / 1000 if name == "ttl" else value)
    for name, value in (amqp.properties or {}).items():
        _fill_property(message, name, value)
    for field, own in ANNOTATIONS.items():
        if section := getattr(amqp, field):
            setattr(message, own, {proton.symbol(name): _own_value(value) for name, value in section.items()})
    applied = amqp.application_properties
    message.properties = {name: _own_value(value) for name, value in applied.items()} if applied else None
    return message


def _fill_property(message: Message, name: str, value: Any) -> None:
    own_value = _own_value(value)
    if name in TIMES:
        setattr(message, TIMES[name], int(own_value) / 1000)
    elif name == "user-id":
        message.user_id = own_value.encode() if isinstance(own_value, str) else own_value
    elif name == "group-sequence":
        message.group_sequence = own_value
    else:
        setattr(message, {**TEXTS, **SYMBOLS, **IDS}[name], own_value)


def _own_value(value: Any) -> Any:
    """Return a value as an object of proton."""
    type_ = type_of(value)
    if type_ is None:
        return value
    inner = value[type_]
    if type_ in PYTHON_TYPES:
        return PYTHON_TYPES[type_](inner)
    if type_ == "list":
        return [_own_value(item) for item in inner]
    if type_ == "map":
        return {key: _own_value(item) for key, item in inner.items()}
    own = getattr(library("proton"), CLASSES.get(type_, type_), None)
    if own is None or type_.startswith("decimal") or type_ == "array":
        raise not_expressible(NAME, "a value", f"of another type than {type_}", inner)
    if type_ == "timestamp":
        try:
            inner = milliseconds_of(inner)
        except ValueError as error:
            raise not_expressible(NAME, "a time", "of the years 1 to 9999 without a leap second", inner) from error
    return own(inner)


PYTHON_TYPES: Final[dict[str, Callable[[Any], Any]]] = {
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
        return time_of(milliseconds)
    except OverflowError as error:
        raise not_expressible(NAME, "a time", "of the years 1 to 9999", milliseconds) from error
