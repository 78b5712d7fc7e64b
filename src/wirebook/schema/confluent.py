"""Remove Confluent's prefix of Kafka values: a zero byte and a four-byte schema id before the payload.

Rule: the prefix is removed only by option, and only from values that begin with a zero byte and have five or more
bytes. In Protobuf, the indexes of the message in its file follow the prefix. They must be those of the message that the
definition names. The schema id belongs to another registry and is ignored.

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
    """Return the payload without its prefix, or the problem if its message indexes are invalid or of another type.

    Problems: payload-syntax, payload-invalid
    """
    bare = None if payload.raw is None else _bare(payload.raw, schema)
    if bare is None or isinstance(bare, Problem):
        return bare or payload
    return Payload(bare, content_type=payload.content_type)


def column_without_prefix(payloads: pa.BinaryArray, schema: Any) -> pa.BinaryArray:
    """Return a column without prefixes: null where `without_prefix` returns a problem."""
    if not pc.any(pc.starts_with(payloads, pattern=MAGIC)).as_py():
        return payloads
    values = (None if raw is None else _bare(raw, schema) for raw in payloads.to_pylist())
    return pa.array([value if isinstance(value, bytes) else None for value in values], pa.binary())


def _bare(raw: bytes, schema: Any) -> bytes | Problem:
    if len(raw) < SIZE or raw[:1] != MAGIC:
        return raw
    expected = getattr(schema, "place", None)  # only of Protobuf: the indexes of the message in its file
    if expected is None:
        return raw[SIZE:]
    try:
        place, end = _indexes(raw)
    except WireFault as fault:
        message = f"the prefix is not followed by message indexes: {fault.message}"
        return Problem("payload-syntax", message, slot="payload", expected=list(expected), actual=fault.message)
    if place != expected:
        message = f"the prefix names message {list(place)} of the file, but the definition names {list(expected)}"
        return Problem("payload-invalid", message, slot="payload", expected=list(expected), actual=list(place))
    return raw[end:]


def _indexes(raw: bytes) -> tuple[tuple[int, ...], int]:
    """Return the message indexes after the prefix, and the offset of their end. No index means the first message."""
    count, at = _zigzag(raw, SIZE)
    if not 0 <= count <= len(raw) - at:
        raise WireFault(f"a count of {count} message indexes", SIZE, [])
    place = []
    for _ in range(count):
        index, at = _zigzag(raw, at)
        place.append(index)
    return tuple(place) or (0,), at


def _zigzag(raw: bytes, at: int) -> tuple[int, int]:
    number, end = read_varint(raw, at, len(raw))
    return (number >> 1) ^ -(number & 1), end
