"""The Confluent prefix of Kafka values: a zero byte, an id of four bytes, and for Protobuf the message indexes."""

from __future__ import annotations

import base64
from typing import Any

from synthesis.changes import change
from synthesis.dice import Dice
from synthesis.messages import Message, Record
from synthesis.records import raw_of
from wirebook.schema.protobuf.compile import ProtobufReader


def with_prefix(message: Message, schema: Any, dice: Dice) -> Message:
    """The message with a prefix that is right for its schema, where the option looks for one."""
    if message.way.protocol != "KAFKA" or message.way.mode == "structured" or schema is None:
        return message
    record = message.record
    if record.get("value") is None:
        return message
    return message.with_record(_prefixed(record, _prefix(schema, dice)))


def _prefix(schema: Any, dice: Dice) -> bytes:
    head = b"\0" + dice.randbytes(4)
    if not isinstance(schema, ProtobufReader):
        return head
    if schema.place == (0,) and dice.random() < 0.5:
        return head + b"\0"
    return head + bytes(2 * place for place in (len(schema.place), *schema.place))


def _prefixed(record: Record, prefix: bytes) -> Record:
    return record | {"value": {"base64": base64.b64encode(prefix + raw_of(record["value"])).decode()}}


@change
def confluents_prefix(record: Record, dice: Dice) -> Record | None:
    """A prefix where none is looked for, a second one, another one, or a part of one."""
    if str(record.get("protocol")).upper() != "KAFKA":
        return None
    raw = raw_of(record.get("value"))
    prefix = dice.choice((b"\0\0\0\0\1", b"\0\0\0\0\1\0", b"\0\0\0\0\1\2\2", b"\0\0", b"\1\0\0\0\1", b"\0\0\0\0\1\xff"))
    changed = dice.choice((prefix + raw, raw[1:], raw[5:], raw[6:], prefix))
    return record | {"value": {"base64": base64.b64encode(changed).decode()}}
