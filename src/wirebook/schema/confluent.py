"""Confluent's prefix of Kafka values: a zero byte, the id of a schema in four bytes, and then the payload.

Rule: only by option, and only where it is there: a value that begins with a zero byte and has five or more. Before a
Protobuf message stand also the indexes that lead to it in its file; they must be those of the message that the
definition names. The id is that of another registry and is not looked at.

Spec: docs.confluent.io "Wire format"; docs/decisions/0052.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wirebook.problems import Problem
from wirebook.schema.payload import Payload
from wirebook.schema.varint import WireFault, read_varint

MAGIC = b"\0"
SIZE = 5


def without_prefix(payload: Payload, schema: Any) -> Payload | Problem:
    """The payload behind the prefix, if it has one; or why it is not one of the schema."""
    bare = None if payload.raw is None else _bare(payload.raw, schema)
    if bare is None or isinstance(bare, Problem):
        return bare or payload
    return Payload(bare, content_type=payload.content_type)


def column_without_prefix(payloads: pa.BinaryArray, schema: Any) -> pa.BinaryArray:
    """The same for a column; null in place of what is not of the schema."""
    if not pc.any(pc.starts_with(payloads, pattern=MAGIC)).as_py():
        return payloads
    bare = (None if raw is None else _bare(raw, schema) for raw in payloads.to_pylist())
    return pa.array([each if isinstance(each, bytes) else None for each in bare], pa.binary())


def _bare(raw: bytes, schema: Any) -> bytes | Problem:
    if len(raw) < SIZE or raw[:1] != MAGIC:
        return raw
    expected = getattr(schema, "place", None)  # of Protobuf: the indexes of the message in its file
    if expected is None:
        return raw[SIZE:]
    try:
        place, end = _indexes(raw)
    except WireFault as fault:
        message = f"the prefix is not followed by the indexes of a message: {fault.message}"
        return Problem("payload-syntax", message, slot="payload", expected=list(expected), actual=fault.message)
    if place != expected:
        message = f"the prefix names message {list(place)} of the file, the definition {list(expected)}"
        return Problem("payload-invalid", message, slot="payload", expected=list(expected), actual=list(place))
    return raw[end:]


def _indexes(raw: bytes) -> tuple[tuple[int, ...], int]:
    """The indexes behind the first five bytes, zigzag, after their count; none stand for the first message."""
    count, at = _zigzag(raw, SIZE)
    if not 0 <= count <= len(raw) - at:
        raise WireFault(f"{count} indexes", SIZE, [])
    place = []
    for _ in range(count):
        index, at = _zigzag(raw, at)
        place.append(index)
    return tuple(place) or (0,), at


def _zigzag(raw: bytes, at: int) -> tuple[int, int]:
    number, end = read_varint(raw, at, len(raw))
    return (number >> 1) ^ -(number & 1), end
