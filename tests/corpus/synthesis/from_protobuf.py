"""Generate messages that are valid by a Protobuf type, in binary or as JSON, by the Protobuf runtime."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from google.protobuf import json_format, message_factory
from google.protobuf.timestamp_pb2 import Timestamp

from synthesis import texts
from synthesis.dice import Dice
from synthesis.scalars import integer

Descriptor = Any  # google.protobuf.descriptor's classes are made in C
FieldDescriptor = Any
Message = Any

DEEP = 5  # levels below which nothing optional is there
TRIES = 50
# The functions of all messages: on a message itself a field may have the name.
BASE: Any = next(base for base in Timestamp.__mro__ if "ListFields" in vars(base))
SIGNED_32, SIGNED_64 = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
UNSIGNED_32, UNSIGNED_64 = (0, 2**32 - 1), (0, 2**64 - 1)
# By the numbers of FieldDescriptorProto.Type.
INTEGERS = {
    3: SIGNED_64, 4: UNSIGNED_64, 5: SIGNED_32, 6: UNSIGNED_64, 7: UNSIGNED_32, 13: UNSIGNED_32, 15: SIGNED_32,
    16: SIGNED_64, 17: SIGNED_32, 18: SIGNED_64,
}  # fmt: skip
DOUBLE, FLOAT, BOOL, STRING, BYTES, ENUM = 1, 2, 8, 9, 12, 14
ODD_FLOATS = (float("nan"), float("inf"), float("-inf"), -0.0)
FLOATS = (0.0, 0.5, -2.25, 1024.125)
DOUBLES = (*FLOATS, 0.1, -1e300, 5e-324)
SECONDS = (-62135596800, 253402300799)  # the years 1 to 9999
LONGEST = 315_576_000_000  # seconds of a Duration


def protobuf(descriptor: Descriptor, dice: Dice, *, as_json: bool) -> Any:
    """A valid message: its bytes, or the value of the JSON mapping.

    A message of defaults alone is no bytes at all, which HTTP, MQTT and NATS cannot tell from no data: it is drawn only
    where the type has no other.
    """
    for _ in range(TRIES):
        message = message_factory.GetMessageClass(descriptor)()
        _fill(message, descriptor, dice, 0)
        if BASE.ByteSize(message):
            break
    return _json(message, descriptor, dice) if as_json else BASE.SerializeToString(message, deterministic=True)


def _json(message: Message, descriptor: Descriptor, dice: Dice) -> Any:
    """In one of the spellings that the mapping allows; in order, as the library's own is another in each process."""
    text = json_format.MessageToJson(
        message,
        preserving_proto_field_name=dice.random() < 0.5,
        always_print_fields_with_no_presence=dice.random() < 0.3,
        use_integers_for_enums=dice.random() < 0.3,
        descriptor_pool=descriptor.file.pool,
        sort_keys=True,
    )
    return json.loads(text)


def _fill(message: Message, descriptor: Descriptor, dice: Dice, level: int) -> None:
    special = _WELL_KNOWN.get(descriptor.full_name)
    if special is not None:
        special(message, dice, level)
        return
    for oneof in descriptor.oneofs:
        if dice.random() < 0.7:
            _one(message, dice.choice(oneof.fields), dice, level)
    for field in descriptor.fields:
        if field.containing_oneof is None and _is_there(field, dice, level):
            _set(message, field, dice, level)


def _is_there(field: FieldDescriptor, dice: Dice, level: int) -> bool:
    deep = field.message_type is not None and level >= DEEP
    return bool(field.is_required) or (not deep and dice.random() < 0.75)


def _set(message: Message, field: FieldDescriptor, dice: Dice, level: int) -> None:
    if not field.is_repeated:
        _one(message, field, dice, level)
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        _map(getattr(message, field.name), field.message_type.fields_by_name, dice, level)
    else:
        _list(getattr(message, field.name), field, dice, level)


def _one(message: Message, field: FieldDescriptor, dice: Dice, level: int) -> None:
    """A message may be there without anything in it, a scalar with presence as what it would be without."""
    if field.message_type is None:
        setattr(message, field.name, _scalar(field, dice))
    elif level < DEEP or field.is_required:
        inner = getattr(message, field.name)
        _fill(inner, field.message_type, dice, level + 1)
        BASE.SetInParent(inner)


def _list(items: Any, field: FieldDescriptor, dice: Dice, level: int) -> None:
    for _ in range(dice.randint(0, 3)):
        if field.message_type is None:
            items.append(_scalar(field, dice))
        else:
            _fill(items.add(), field.message_type, dice, level + 1)


def _map(entries: Any, parts: Any, dice: Dice, level: int) -> None:
    for _ in range(dice.randint(0, 2)):
        key = _scalar(parts["key"], dice)
        if parts["value"].message_type is None:
            entries[key] = _scalar(parts["value"], dice)
        else:
            _fill(entries[key], parts["value"].message_type, dice, level + 1)


def _scalar(field: FieldDescriptor, dice: Dice) -> Any:
    if field.type in INTEGERS:
        return integer(dice, *INTEGERS[field.type])
    makers: dict[int, Callable[[], Any]] = {
        DOUBLE: lambda: dice.choice(ODD_FLOATS if dice.odd else (*DOUBLES, dice.random())),
        FLOAT: lambda: dice.choice(ODD_FLOATS if dice.odd else FLOATS),
        BOOL: lambda: dice.random() < 0.5,
        STRING: lambda: texts.text(dice),
        BYTES: lambda: bytes(dice.choices(range(256), k=dice.randint(0, 4))),
        ENUM: lambda: _enum(field.enum_type, dice),
    }
    return makers[field.type]()


def _enum(type_: Any, dice: Dice) -> int:
    """A value of the enum; now and then one that a later version of an open enum may have."""
    if not type_.is_closed and dice.odd and dice.random() < 0.3:
        return dice.choice((-1, 77, 2**31 - 1))
    return int(dice.choice(type_.values).number)


# -- well-known types whose values are fewer than their fields say ----------------------------------------------------


def _timestamp(message: Message, dice: Dice, level: int) -> None:
    message.seconds = integer(dice, *SECONDS)
    message.nanos = dice.choice((0, 1, 999_999_999, 500_000_000, 123_456_000))


def _duration(message: Message, dice: Dice, level: int) -> None:
    sign = dice.choice((-1, 1))
    message.seconds = sign * integer(dice, 0, LONGEST - 1)
    message.nanos = sign * dice.choice((0, 1, 999_999_999, 250_000_000))


def _mask(message: Message, dice: Dice, level: int) -> None:
    message.paths.extend(f"{texts.word(dice).lower()}_x.y" for _ in range(dice.randint(0, 2)))


def _any(message: Message, dice: Dice, level: int) -> None:
    """Nothing, or a message that whoever reads it knows: another of these."""
    if dice.random() < 0.7:
        descriptor = message.DESCRIPTOR
        inner = message_factory.GetMessageClass(descriptor)()
        if level < DEEP and dice.random() < 0.5:
            _any(inner, dice, level + 1)
        message.type_url = f"type.googleapis.com/{descriptor.full_name}"
        message.value = BASE.SerializeToString(inner, deterministic=True)


def _value(message: Message, dice: Dice, level: int) -> None:
    kinds = ["null_value", "number_value", "string_value", "bool_value"]
    kind = dice.choice(kinds if level >= DEEP else [*kinds, "struct_value", "list_value"])
    if kind == "number_value":
        message.number_value = dice.choice(DOUBLES)  # JSON has no others
    else:
        _one(message, message.DESCRIPTOR.fields_by_name[kind], dice, level)


_WELL_KNOWN: dict[str, Callable[[Message, Dice, int], None]] = {
    "google.protobuf.Timestamp": _timestamp,
    "google.protobuf.Duration": _duration,
    "google.protobuf.FieldMask": _mask,
    "google.protobuf.Any": _any,
    "google.protobuf.Value": _value,
}
