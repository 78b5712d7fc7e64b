"""Fuzz captured messages: lines, files of events, and rows and files of Parquet are matched and explained."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from synthesis.carriers import chunk_of_rows
from synthesis.dice import Dice
from synthesis.messages import BATCH, Message
from synthesis.mutations import mutate

from fuzzing import junk, stock
from fuzzing.case import Input, check
from wirebook.bindings import decode_records, parse_record, read_events, to_line
from wirebook.definitions.match.outcome import Outcome
from wirebook.landing.chunks import Chunk, Landed
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.landing.runs.outcomes import outcomes_in

NAMES = (
    "protocol", "received", "endpoint", "method", "target", "status", "headers", "body", "topic", "partition", "offset", "timestamp",
    "key", "value", "qos", "retain", "properties", "user_properties", "payload", "header", "delivery-annotations", "footer",
    "message-annotations", "application-properties", "subject", "reply-to", "data", "body-section", "base64", "specversion", "id",
    "source", "type", "time", "data_base64", "datacontenttype", "dataschema", "message-id", "user-id", "correlation_data",
)  # fmt: skip
ENDPOINTS = 0.2  # share of messages that come through an endpoint of their catalogue


def _message(name: str, dice: Dice, *, events: bool = False) -> Message:
    for _ in range(30):
        message = stock.message(name, dice)
        if message.is_event_file == events:
            return mutate(message, dice) if dice.random() < 0.7 else message
    return message


def _spoiled(line: bytes, dice: Dice) -> bytes:
    kind = dice.randrange(6)
    if kind == 0:
        return junk.octets(line, dice)
    if kind == 1:
        return junk.noise(dice)
    value = _json(line)
    return (
        line if value is None or kind > 3 else junk.json_of(junk.spoiled(value, dice, dice.choice((1, 1, 2, 5)), NAMES))
    )


def _json(line: bytes) -> Any:
    try:
        return stock.json.loads(line)
    except (ValueError, RecursionError):
        return None


def make_record(dice: Dice) -> Input:
    name = dice.choice(stock.catalogues())
    scopes = list(stock.catalog(name).scopes)
    endpoint = dice.choice([*scopes, "/endpoints/none"]) if scopes and dice.random() < ENDPOINTS else None
    return {"catalogue": name, "line": _spoiled(_message(name, dice).line, dice), "endpoint": endpoint}


def run_record(case: Input) -> Iterator[Any]:
    catalog, line = stock.catalog(case["catalogue"]), case["line"]
    parsed = parse_record(line)
    yield parsed.problems
    (decoded,) = decode_records([line])
    check(decoded is None or decoded == parsed.wire, "what reads many records reads one of them in another way")
    if parsed.wire is not None:
        again = parse_record(to_line(parsed.wire))
        check(again.wire == parsed.wire, "a record that is written is another one when it is read")
    for outcome in catalog.match_each(line, case["endpoint"]):
        yield from _observed(outcome)
        yield catalog.explainer.explain_outcome(outcome, case["endpoint"]).to_dict()


def _observed(outcome: Outcome) -> Iterator[Any]:
    yield outcome.problems
    yield outcome.to_dict()
    yield repr(outcome.data)[:10_000]


def make_events(dice: Dice) -> Input:
    name = dice.choice(stock.catalogues())
    return {"catalogue": name, "line": _spoiled(_message(name, dice, events=True).line, dice)}


def run_events(case: Input) -> Iterator[Any]:
    catalog = stock.catalog(case["catalogue"])
    for received in read_events(case["line"]):
        yield received.problems
        yield from _observed(catalog.selector.select(received))


# -- Parquet ----------------------------------------------------------------------------------------------------------

PAIRS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
TYPES: dict[str, pa.DataType] = {
    "string": pa.string(), "large_string": pa.large_string(), "binary": pa.binary(), "large_binary": pa.large_binary(),
    "int": pa.int64(), "byte": pa.int8(), "double": pa.float64(), "bool": pa.bool_(), "null": pa.null(), "pairs": PAIRS,
    "map": pa.map_(pa.string(), pa.binary()), "lists": pa.list_(pa.list_(pa.string())), "words": pa.dictionary(pa.int32(), pa.string()),
    "time": pa.timestamp("us", "UTC"), "seconds": pa.timestamp("s"), "nanos": pa.timestamp("ns", "Europe/Stockholm"),
    "day": pa.date32(), "decimal": pa.decimal128(20, 3), "struct": pa.struct([("base64", pa.string())]), "half": pa.float16(),
}  # fmt: skip
BIG = (0, 1, -1, 2**31, -(2**63), 2**63 - 1, 5)


def make_rows(dice: Dice) -> Input:
    """Columns of good records, some of them with another type, other values, or twice."""
    name = dice.choice(stock.catalogues())
    messages = [_message(name, dice) for _ in range(dice.choice((1, 3, 8)))]
    batch = chunk_of_rows([message for message in messages if not message.is_event_file])[0].batch
    columns = (
        []
        if batch is None
        else [[field.name, str(_type_name(field.type)), batch[field.name].to_pylist()] for field in batch.schema]
    )
    for column in columns:
        if dice.random() < 0.15:
            column[1] = dice.choice(list(TYPES))
            column[2] = [_value(column[1], dice) for _ in column[2]]
        if dice.random() < 0.05:
            column[0] = dice.choice(NAMES)
    return {"catalogue": name, "columns": columns}


def _type_name(type_: pa.DataType) -> str:
    return next(name for name, candidate in TYPES.items() if candidate == type_)


def _value(type_: str, dice: Dice) -> Any:
    if dice.random() < 0.2 or type_ == "null":
        return None
    text = junk.text(dice.choice(NAMES), dice).encode("utf-8", "replace")
    values: dict[str, Any] = {
        "pairs": [{"name": "ce_id", "value": text}, {"name": None, "value": None}], "map": [["content-type", text]],
        "lists": [["a", "b"], ["a"], [], None], "struct": {"base64": "AA=="}, "bool": True, "double": dice.choice((0.0, -1.5, 1e300)),
        "half": 1.5, "byte": 5, "decimal": 5, "day": dice.choice((0, -719162, 2932896)),
    }  # fmt: skip
    if type_ in values:
        return values[type_]
    if type_ in ("binary", "large_binary"):
        return text
    return text.decode() if type_ in ("string", "large_string", "words") else dice.choice(BIG)


def run_rows(case: Input) -> Iterator[Any]:
    """Columns and reference land the same rows."""
    fields = [(name, TYPES[type_]) for name, type_, _ in case["columns"]]
    arrays = [pa.array([_tupled(value) for value in values], TYPES[type_]) for _, type_, values in case["columns"]]
    batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    chunk = Chunk("f", "parquet", None, np.arange(1, len(batch) + 1), batch)
    columns, reference = (engine.land(chunk) for engine in _engines(case["catalogue"]))
    check(
        _summary(columns) == _summary(reference),
        f"columns say {_summary(columns)}, the reference {_summary(reference)}",
    )
    yield columns.outcomes, sorted(columns.reasons.items())
    yield reference.dead_letters.drop_columns(["_catalogue"]).to_pylist()


def _tupled(value: Any) -> Any:
    is_map = isinstance(value, list) and value and isinstance(value[0], list) and isinstance(value[0][-1], bytes)
    return [tuple(pair) for pair in value] if is_map else value


def _summary(landed: Landed) -> Any:
    return (
        landed.read,
        landed.empty,
        {n: c for n, c in landed.outcomes.items() if c},
        {n: c for n, c in landed.reasons.items() if c},
    )


@cache
def _engines(name: str) -> tuple[CatalogueEngine, CatalogueEngine]:
    catalog = stock.catalog(name)
    return CatalogueEngine(catalog), CatalogueEngine(catalog, columns=False)


# -- files ------------------------------------------------------------------------------------------------------------

SUFFIXES = ("jsonl", "json", "jsonl.gz", "jsonl.zst", "parquet", "txt", "ndjson")


def make_file(dice: Dice) -> Input:
    """A capture as a file: whole, cut, damaged, or under the name of another kind."""
    name = dice.choice(stock.catalogues())
    messages = [_message(name, dice) for _ in range(dice.choice((0, 1, 5, 20)))]
    suffix = dice.choice(SUFFIXES)
    raw = _packed(suffix, [_spoiled(message.line, dice) for message in messages], messages)
    raw = junk.octets(raw, dice) if dice.random() < 0.4 else raw
    return {"catalogue": name, "name": f"f.{dice.choice(SUFFIXES) if dice.random() < 0.1 else suffix}", "bytes": raw}


def _packed(suffix: str, lines: list[bytes], messages: list[Message]) -> bytes:
    text = b"".join(line.replace(b"\n", b" ") + b"\n" for line in lines)
    if suffix == "parquet":
        batch = chunk_of_rows([message for message in messages if not message.is_event_file])[0].batch
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_batches([batch]), sink)
        return sink.getvalue()
    codec = {"gz": "gzip", "zst": "zstd"}.get(suffix.rpartition(".")[2])
    if codec is None:
        return text
    packed = io.BytesIO()
    with pa.CompressedOutputStream(packed, codec) as stream:
        stream.write(text)
        stream.flush()
        return packed.getvalue() if stream.close() is None and not packed.closed else b""


def run_file(case: Input) -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / case["name"]
        path.write_bytes(case["bytes"])
        for origin, outcome in outcomes_in(folder, stock.catalog(case["catalogue"])):
            yield origin.line, origin.raw
            if outcome is not None:
                yield from _observed(outcome)


__all__ = [
    "BATCH",
    "make_events",
    "make_file",
    "make_record",
    "make_rows",
    "run_events",
    "run_file",
    "run_record",
    "run_rows",
]
