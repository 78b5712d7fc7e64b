"""AMQP 1.0 by python-qpid-proton (extra ``amqp``): from and to `proton.Message`.

    outcome = catalog.match(record_of(event.message))
    sender.send(message_of(catalog.build(...)))

A proton message has no footer, and does not distinguish an absent property from its default. `record_of` therefore
omits defaults. `record_of_bytes` reads the bytes of a delivery (`Receiver.recv`) instead, and keeps everything.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

from wirebook.bindings import AmqpMessage, AnyMessage, Base64, bytes_of, from_bytes
from wirebook.bindings.amqp import check_sections
from wirebook.bindings.amqp_types import type_of
from wirebook.convert.checks import milliseconds_of, not_expressible, of_protocol, time_of
from wirebook.problems import Problem, WirebookError
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
# AMQP types whose class in proton has another name.
CLASSES: Final = {"int": "int32", "float": "float32"}
NUMBERS: Final = ("ubyte", "ushort", "uint", "ulong", "byte", "short", "int32")
DECIMALS: Final = {"decimal32": (32, 8, 101, 7), "decimal64": (64, 10, 398, 16), "decimal128": (128, 14, 6176, 34)}
"""Total bits, exponent bits, exponent bias, and decimal digits of each type."""
MAX_VALUES: Final = 65_535
"""Maximum number of values in a section that proton can decode."""
SECTIONS: Final = (
    *("header", "delivery-annotations", "message-annotations", "properties", "application-properties"),
    *("data", "amqp-sequence", "amqp-value", "footer"),
)
BODIES: Final = SECTIONS[5:8]
SECTION_TYPES: Final = ("list", "map", "map", "list", "map", "binary", "list", "*", "map")
DESCRIPTORS: Final[dict[int | str, str]] = {
    **{0x70 + number: name for number, name in enumerate(SECTIONS)},
    **{f"amqp:{name}:{type_}": name for name, type_ in zip(SECTIONS, SECTION_TYPES, strict=True)},
}
"""The section that each descriptor stands for. A descriptor may be a number or a symbol."""
FIELDS: Final = {
    "header": ("durable", "priority", "ttl", "first-acquirer", "delivery-count"),
    "properties": (
        *("message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding"),
        *("absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id"),
    ),
}


def record_of_bytes(encoded: bytes) -> AmqpMessage:
    """Return the record of an encoded message, with every section. The bytes of several data sections are joined.

    Raises: WirebookError (``malformed-record``; ``not-expressible`` for a value that the capture format lacks)
    """
    proton = library("proton")
    try:
        sections, bodies = dict[str, Any](), list[tuple[str, Any]]()
        decoded = list(_sections_of(encoded, proton))
        for name, value, _ in decoded:
            if name in BODIES:
                bodies.append((name, value))
            elif sections.setdefault(name, value) is not value:
                raise ValueError(f"the section {name} is repeated")
        body, body_section = _body_of_sections(bodies)
        return AmqpMessage(
            header=_fields_of("header", sections.get("header") or ()),
            delivery_annotations=_section_of(sections.get("delivery-annotations")),
            message_annotations=_section_of(sections.get("message-annotations")),
            properties=_fields_of("properties", sections.get("properties") or ()),
            application_properties=_section_of(sections.get("application-properties")),
            footer=_section_of(sections.get("footer")),
            body=from_bytes(body),
            body_section=body_section,
        )
    except (proton.ProtonException, ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
        message = f"the message is not valid AMQP, or has more than {MAX_VALUES} values: {error}"
        raise WirebookError(Problem("malformed-record", message)) from error


def _sections_of(encoded: bytes, proton: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name and the value of each section, and the decoder, which owns the memory of binary values."""
    rest = memoryview(encoded)
    while rest:
        data = proton.Data()
        size = data.decode(rest)
        data.rewind()
        data.next()
        section = data.get_object()
        if not isinstance(section, proton.Described) or section.descriptor not in DESCRIPTORS:
            raise ValueError(f"a section must be one of {', '.join(SECTIONS)}")
        yield DESCRIPTORS[section.descriptor], section.value, data
        rest = rest[size:]


def _body_of_sections(bodies: list[tuple[str, Any]]) -> tuple[bytes | None, str | None]:
    names = {name for name, _ in bodies}
    if len(names) > 1 or (names == {"amqp-value"} and len(bodies) > 1):
        raise ValueError(f"the sections {', '.join(sorted(names))} cannot be together in a body")
    if names == {"amqp-value"}:
        return _body_of_value(bodies[0][1])
    if names == {"amqp-sequence"}:
        return _body_of_sequences([value for _, value in bodies])
    return (b"".join(value for _, value in bodies) if bodies else None), None


def _fields_of(section: str, values: Any) -> dict[str, Any] | None:
    """Return the fields of a header or of properties by name. Only the ids have varying types and keep type names."""
    if len(values) > len(FIELDS[section]):
        raise ValueError(f"the section {section} has {len(values)} fields")
    fields = dict[str, Any]()
    for name, value in zip(FIELDS[section], map(_wire_value, values), strict=False):
        if value is not None:
            fields[name] = value[type_of(value)] if type_of(value) in ("ubyte", "uint", "symbol") else value
    return fields or None


def record_of(message: Message) -> AmqpMessage:
    """Return the record of a received message. Raises: WirebookError (``not-expressible``)"""
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
    if message.body is None:
        return None, None
    if message.inferred and isinstance(message.body, (bytes, bytearray, memoryview)):
        return bytes(message.body), None
    if message.inferred and isinstance(message.body, list):
        return _body_of_sequences([message.body])
    return _body_of_value(message.body)


def _body_of_value(value: Any) -> tuple[bytes | None, str]:
    """Return the body and the `body-section` of an amqp-value: a string or binary, or JSON text of any other value."""
    if value is None:
        return None, "amqp-value"
    if type(value) is str:
        return value.encode(), "amqp-value"
    if type(value) in (bytes, bytearray, memoryview):
        return bytes(value), "amqp-value"
    return msgspec.json.encode(_wire_value(value)), "amqp-value-json"


def _body_of_sequences(sequences: list[list[Any]]) -> tuple[bytes, str]:
    values = [[_wire_value(value) for value in sequence] for sequence in sequences]
    return msgspec.json.encode(values), "amqp-sequence-json"


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
    if section and not isinstance(section, Mapping):
        raise ValueError("a section of annotations, properties or the footer must be a map")
    if wrong := [name for name in section or () if not isinstance(name, str)]:
        raise not_expressible(NAME, "the name of a property", "a string or a symbol", wrong[0])
    return {str(name): _wire_value(value) for name, value in section.items()} if section else None


def _wire_value(value: Any) -> Any:
    """Return a value of a record. Types that JSON lacks become an object with one member, the name of the type."""
    class_name = type(value).__name__
    if class_name in DECIMALS:
        return {class_name: _text_of_decimal(value, *DECIMALS[class_name])}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"binary": base64.b64encode(bytes(value)).decode()}
    if class_name == "timestamp":
        return {"timestamp": _text_of_time(int(value))}
    if isinstance(value, UUID):
        return {"uuid": str(value)}
    if class_name in NUMBERS:
        return {"int" if class_name == "int32" else class_name: int(value)}
    if isinstance(value, float):
        number = float(value) if math.isfinite(value) else _not_finite(value)
        return {"float": number} if class_name == "float32" else number if type(number) is float else {"double": number}
    if class_name in ("symbol", "char"):
        return {class_name: str(value)}
    if isinstance(value, Mapping):
        items = [(_wire_value(name), _wire_value(item)) for name, item in value.items()]
        return {"map": dict(items) if all(type(name) is str for name, _ in items) else items}
    if class_name == "Array" and value.descriptor == library("proton").UNDESCRIBED:
        return {"array": [_wire_value(item) for item in value.elements]}
    if isinstance(value, (list, tuple)):
        return {"list": [_wire_value(item) for item in value]}
    if not isinstance(value, (str, bool, int, type(None))):
        raise not_expressible(NAME, "a value", "of a type of the capture format", class_name)
    return value


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text_of_decimal(value: int | bytes, bits: int, exponent_bits: int, bias: int, digits: int) -> str:
    """Return the text of a decimal number in the binary integer encoding of IEEE 754.

    The bits are the sign, the exponent and the coefficient. If the two bits after the sign are 11, the exponent begins
    after them, and the coefficient has the implicit prefix 100.
    """
    number = int.from_bytes(value, "big") if isinstance(value, bytes) else int(value)
    sign, rest = number >> (bits - 1) & 1, number & (1 << (bits - 1)) - 1
    first = rest >> (bits - 6)
    if first >= 0b11110:
        return f"{'-' if sign else ''}Infinity" if first == 0b11110 else "NaN"
    size = bits - 1 - exponent_bits
    if first >= 0b11000:
        size -= 2
        coefficient = 0b100 << size | rest & (1 << size) - 1
    else:
        coefficient = rest & (1 << size) - 1
    exponent = (rest >> size & (1 << exponent_bits) - 1) - bias
    if coefficient >= 10**digits:  # not canonical: the standard reads it as zero
        coefficient = 0
    return str(Decimal((sign, tuple(map(int, str(coefficient))), exponent)))


# -- sending ----------------------------------------------------------------------------------------------------------


def message_of(wire: AnyMessage) -> Message:
    """Return the message for `Sender.send`. Raises: WirebookError (``not-expressible``, ``missing-extra``)"""
    amqp = of_protocol(wire, NAME, AmqpMessage)
    if amqp.footer:
        raise not_expressible(NAME, "protocoloptions.footer", "absent", sorted(amqp.footer))
    if problems := tuple(check_sections(amqp)):
        raise WirebookError(*problems)
    proton = library("proton")
    message: Message = proton.Message()
    message.inferred = amqp.body_section in (None, "data", "amqp-sequence-json")
    message.body = _own_body(amqp)
    for name, value in (amqp.header or {}).items():
        setattr(message, name.replace("-", "_"), value / 1000 if name == "ttl" else value)
    for name, value in (amqp.properties or {}).items():
        _fill_property(message, name, value)
    for field, own in ANNOTATIONS.items():
        if section := getattr(amqp, field):
            setattr(message, own, {proton.symbol(name): own_value(value) for name, value in section.items()})
    applied = amqp.application_properties
    message.properties = {name: own_value(value) for name, value in applied.items()} if applied else None
    return message


def _own_body(amqp: AmqpMessage) -> Any:
    if amqp.body_section in (None, "data"):
        return bytes_of(amqp.body)
    if amqp.body_section == "amqp-value" or amqp.body is None:
        return amqp.body.base64 if isinstance(amqp.body, Base64) else amqp.body
    try:
        value = own_value(msgspec.json.decode(bytes_of(amqp.body) or b""))
    except ValueError as error:
        raise not_expressible(NAME, "the body", f"JSON text of AMQP values ({error})", amqp.body_section) from error
    if amqp.body_section == "amqp-value-json":
        return value
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], list):
        raise not_expressible(NAME, "the body", "an array of one array", amqp.body_section)
    return [own_value(item) for item in value[0]]


def _fill_property(message: Message, name: str, value: Any) -> None:
    own = own_value(value)
    if name in TIMES:
        setattr(message, TIMES[name], int(own) / 1000)
    elif name == "user-id":
        message.user_id = own.encode() if isinstance(own, str) else own
    elif name == "group-sequence":
        message.group_sequence = own
    else:
        setattr(message, {**TEXTS, **SYMBOLS, **IDS}[name], own)


def own_value(value: Any) -> Any:
    """Return a value as an object of proton."""
    type_ = type_of(value)
    if type_ is None:
        return value
    inner = value[type_]
    if type_ in PYTHON_TYPES:
        return PYTHON_TYPES[type_](inner)
    if type_ == "list":
        return [own_value(item) for item in inner]
    if type_ == "map":
        pairs = inner.items() if isinstance(inner, dict) else inner
        return {own_value(key): own_value(item) for key, item in pairs}
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
