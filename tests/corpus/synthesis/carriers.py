"""Convert messages to chunks of the engine: lines of a capture, events of a plain file, or rows of Parquet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from synthesis.messages import Message
from wirebook.bindings import bytes_of, parse_record, to_record
from wirebook.bindings.wire import AnyMessage
from wirebook.landing.chunks import Chunk

FILE = "traffic"
BYTES = ("body", "key", "value", "payload", "data")
OBJECTS = ("properties", "header", "delivery-annotations", "message-annotations", "application-properties", "footer")
PAIRS = ("headers", "user_properties")
PAIR = pa.struct([("name", pa.string()), ("value", pa.binary())])


def chunk_of_lines(messages: Sequence[Message], kind: str) -> Chunk:
    """`kind` is ``capture`` or ``events``."""
    lines = pa.array([message.line for message in messages], pa.large_binary())
    return Chunk(FILE, kind, lines, np.arange(1, len(lines) + 1))


def chunk_of_rows(messages: Sequence[Message]) -> tuple[Chunk, list[Message]]:
    """The records among the messages as a Parquet capture has them; a line that is no record cannot be a row."""
    parsed = [(message, parse_record(message.line).wire) for message in messages]
    records = [(message, wire) for message, wire in parsed if wire is not None]
    rows = [_row(wire) for _, wire in records]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: pa.array([row.get(name) for row in rows], _type(name)) for name in names}
    batch = (
        pa.RecordBatch.from_pydict(columns)
        if rows
        else pa.RecordBatch.from_pydict({"protocol": pa.array([], pa.string())})
    )
    return Chunk(FILE, "parquet", None, np.arange(1, len(rows) + 1), batch), [message for message, _ in records]


def _row(wire: AnyMessage) -> dict[str, Any]:
    row = to_record(wire)
    for name in BYTES:
        if name in row:
            row[name] = bytes_of(getattr(wire, name))
    for name in OBJECTS:
        if name in row:
            row[name] = json.dumps(row[name])
    for name in PAIRS:
        if name in row and row[name] is not None:
            row[name] = [{"name": key, "value": bytes_of(value)} for key, value in getattr(wire, name)]
    return row


def _type(name: str) -> pa.DataType | None:
    if name in BYTES:
        return pa.binary()
    return pa.list_(PAIR) if name in PAIRS else None
