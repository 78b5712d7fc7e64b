"""An engine for tests of everything around the engine: a JSON object lands in the table its `t` names, whole.

`x` (how many messages the record is, 1 unless said) makes batches, also empty ones. Other lines are dead letters.
It is imported by Spark's workers too, hence a folder of its own on their path.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pyarrow as pa

from wirebook.spark.chunks import PROBLEM_OUTCOMES, Chunk, Landed

PLACE = [("_file", pa.string()), ("_line", pa.int64()), ("_index", pa.int32())]
TABLE = pa.schema([*PLACE, ("text", pa.large_binary())])
DEAD = pa.schema([*PLACE, ("raw", pa.large_binary()), ("outcome", pa.string()), ("reason", pa.string())])


class StandIn:
    """Slow by `delay` seconds a chunk; dies at a record that has $STANDIN_DIE in it."""

    def __init__(self, delay: float = 0.0) -> None:
        self._delay, self._die = delay, os.environ.get("STANDIN_DIE", "").encode()

    def land(self, chunk: Chunk) -> Landed:
        time.sleep(self._delay)
        tables: dict[str, list[dict[str, Any]]] = {}
        dead: list[dict[str, Any]] = []
        empty = 0
        for line, text in records(chunk):
            if self._die and self._die in text:
                os._exit(9)
            value = parse(text)
            place = {"_file": chunk.file, "_line": line}
            if chunk.problem or not isinstance(value, dict) or "t" not in value:
                outcome = PROBLEM_OUTCOMES[chunk.problem.code] if chunk.problem else "malformed"
                code = chunk.problem.code if chunk.problem else "malformed-record"
                dead.append(place | {"_index": 0, "raw": text, "outcome": outcome, "reason": code})
                continue
            empty += not value.get("x", 1)
            rows = [place | {"_index": index, "text": text} for index in range(value.get("x", 1))]
            tables.setdefault(value["t"], []).extend(rows)
        landed = sum(map(len, tables.values()))
        return Landed(
            tables={name: pa.Table.from_pylist(rows, TABLE) for name, rows in tables.items() if rows},
            dead_letters=pa.Table.from_pylist(dead, DEAD),
            read=landed + len(dead),
            empty=empty,
            outcomes={"matched": landed} | {each["outcome"]: len(dead) for each in dead},
            reasons={each["reason"]: len(dead) for each in dead},
            definitions={name: f"/messagegroups/g/messages/{name}" for name in tables},
        )


def records(chunk: Chunk) -> Iterator[tuple[int, bytes]]:
    if chunk.problem is not None:
        raw = chunk.lines[0].as_py() if chunk.lines is not None else b""
        yield chunk.problem.line or 0, raw
    elif chunk.batch is not None and chunk.numbers is not None:
        texts = [orjson.dumps(row, default=repr) for row in chunk.batch.to_pylist()]
        yield from zip(chunk.numbers.tolist(), texts, strict=True)
    elif chunk.lines is not None and chunk.numbers is not None:
        yield from zip(chunk.numbers.tolist(), chunk.lines.to_pylist(), strict=True)


def parse(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def engine(catalogue: bytes, options: Mapping[str, Any]) -> StandIn:
    return StandIn(**orjson.loads(catalogue))
