"""A stand-in engine for tests of everything around the engine: a JSON object lands in the table that its `t` names.

`x` is the number of messages in the record (default: 1; 0 is an empty batch). Other lines are dead letters.
Spark workers import this module too, hence its own folder on their path.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from wirebook.landing.chunks import PROBLEM_OUTCOMES, Chunk, Landed, TableInfo

PLACE = [("_file", pa.string()), ("_line", pa.int64()), ("_index", pa.int32())]
TABLE = pa.schema([*PLACE, ("text", pa.large_binary())])
TYPES = {
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "decimal(4,2)": pa.decimal128(4, 2),
    "decimal(9,2)": pa.decimal128(9, 2),
    "struct<a>": pa.struct({"a": pa.int32()}),
    "struct<a,b>": pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())}),
    "list<struct<a>>": pa.list_(pa.struct({"a": pa.int32()})),
    "list<struct<a,b>>": pa.list_(pa.struct({"a": pa.int32(), "b": pa.string()})),
    "map<struct<a>>": pa.map_(pa.string(), pa.struct({"a": pa.int32()})),
    "map<struct<a,b>>": pa.map_(pa.string(), pa.struct({"a": pa.int32(), "b": pa.string()})),
}
PROBLEMS = pa.list_(pa.struct([("code", pa.string())]))
NEAR = pa.list_(pa.struct([("definition", pa.string())]))
DEAD = pa.schema([
    *PLACE,
    ("raw", pa.large_binary()),
    ("outcome", pa.string()),
    ("reason", pa.string()),
    ("definition", pa.string()),
    ("problems", PROBLEMS),
    ("near", NEAR),
])  # fmt: skip


class StandIn:
    """Slow by `delay` seconds a chunk; dies at a record that has $STANDIN_DIE in it. Messages for a table in `unknown`
    are dead letters, near the definition of that table. `columns` are further columns of tables: their types by name,
    filled from the object where it has them."""

    def __init__(
        self, delay: float = 0.0, unknown: Sequence[str] = (), columns: Mapping[str, Mapping[str, str]] | None = None
    ) -> None:
        self._columns = {
            table: pa.schema([*TABLE, *((name, TYPES[type_]) for name, type_ in of_table.items())])
            for table, of_table in (columns or {}).items()
        }
        self._delay, self._die = delay, os.environ.get("STANDIN_DIE", "").encode()
        self._unknown = unknown

    def land(self, chunk: Chunk, *, may_defer: bool = False) -> Landed:
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
                dead.append(place | letter(text, outcome, code))
                continue
            table, count = value["t"], value.get("x", 1)
            empty += not count
            rows = [value | place | {"_index": index, "text": text} for index in range(count)]
            odd = [row for row in rows if table in self._unknown and row["_index"] % 2 == 0]
            dead += [row | letter(text, "unexpected", "no-definition", table, row["_index"]) for row in odd]
            tables.setdefault(table, []).extend(row for row in rows if row not in odd)
        landed = sum(map(len, tables.values()))
        return Landed(
            tables={
                name: pa.Table.from_pylist(rows, self._columns.get(name, TABLE))
                for name, rows in tables.items()
                if rows
            },
            dead_letters=pa.Table.from_pylist(dead, DEAD),
            read=landed + len(dead),
            empty=empty,
            outcomes={"matched": landed} | Counter(dead_letter["outcome"] for dead_letter in dead),
            reasons=Counter(dead_letter["reason"] for dead_letter in dead),
            info={name: TableInfo(f"/messagegroups/g/messages/{name}") for name in tables},
        )


def letter(raw: bytes, outcome: str, code: str, near: str | None = None, index: int = 0) -> dict[str, Any]:
    definitions = [f"/messagegroups/g/messages/{near}"] if near else []
    lists = {"problems": [{"code": code}], "near": [{"definition": definition} for definition in definitions]}
    return {"_index": index, "raw": raw, "outcome": outcome, "reason": code} | lists


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
