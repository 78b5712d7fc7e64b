"""Deterministic catalogues and traffic for the benchmarks, with any number of definitions and messages.

Seven of ten definitions are CloudEvents over Kafka (a literal `type`; templates in `source` and `subject` that share
`{plant}`); three are native MQTT (a topic template whose `{line}` must equal a user property). Every payload is 292
bytes of JSON with 11 fields and two nested levels. 17 of 1,000 messages match no definition; in a day with `fits`
False, all of them.

With `events_only`, all definitions are CloudEvents over Kafka, as a broker has them.

A message depends only on its number, so that checks can compute any message again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

FORMAT: Final = "JsonSchema/draft/2020-12"
MISMATCHES: Final = 17  # of 1,000
PAYLOAD_BYTES: Final = 292
FILES: Final = 4
ROWS_AT_A_TIME: Final = 20_000
_MASK: Final = 2**64 - 1

PAYLOAD_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://bench.example/reading",
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "at": {"type": "string", "format": "date-time"},
        "plant": {"type": "string"},
        "sequence": {"type": "integer", "minimum": 0},
        "running": {"type": "boolean"},
        "temperature": {"type": "number", "minimum": -50, "maximum": 200},
        "mode": {"enum": ["auto", "hand", "idle", "test"]},
        "position": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
            "required": ["x", "y"],
        },
        "device": {
            "type": "object",
            "properties": {
                "serial": {"type": "string"},
                "firmware": {"type": "object", "properties": {"version": {"type": "string"}}, "required": ["version"]},
            },
            "required": ["serial", "firmware"],
        },
    },
    "required": ["id", "at", "plant", "sequence", "running", "temperature", "mode", "position", "device"],
}
PAYLOAD_DDL: Final = (
    "id string, at timestamp, plant string, sequence bigint, running boolean, temperature double, mode string, "
    "position struct<x: double, y: double>, device struct<serial: string, firmware: struct<version: string>>"
)


def mixed(number: int) -> int:
    """A pseudorandom number that depends only on `number` (SplitMix64)."""
    value = (number * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    return value ^ (value >> 31)


# -- definitions ----------------------------------------------------------------------------------------------------


def is_event(number: int) -> bool:
    return number % 10 < 7


def xid(number: int) -> str:
    group = "events" if is_event(number) else "topics"
    return f"/messagegroups/{group}/messages/{name(number)}"


def name(number: int) -> str:
    return f"bench.d{number:05d}" if is_event(number) else f"d{number:05d}"


def event_number(place: int) -> int:
    """The number of a CloudEvents definition by its place among these."""
    return place // 7 * 10 + place % 7


def catalogue(definitions: int, *, events_only: bool = False) -> dict[str, Any]:
    """A registry with this many definitions."""
    numbers = [event_number(place) for place in range(definitions)] if events_only else range(definitions)
    events = {name(number): _event(number) for number in numbers if is_event(number)}
    topics = {name(number): _topic(number) for number in numbers if not is_event(number)}
    schema = {"schemaid": "reading", "format": FORMAT, "versions": {"1": _version()}}
    return {
        "specversion": "1.0-rc4",
        "registryid": "bench",
        "messagegroups": {
            "events": {"messagegroupid": "events", "envelope": "CloudEvents/1.0", "protocol": "KAFKA"}
            | {"messages": events},
            "topics": {"messagegroupid": "topics", "protocol": "MQTT/5.0", "messages": topics},
        },
        "schemagroups": {"bench": {"schemagroupid": "bench", "schemas": {"reading": schema}}},
    }


def _version() -> dict[str, Any]:
    return {"versionid": "1", "format": FORMAT, "schema": PAYLOAD_SCHEMA}


_SCHEMA: Final = {"dataschemaformat": FORMAT, "dataschemauri": "/schemagroups/bench/schemas/reading"}


def _event(number: int) -> dict[str, Any]:
    return {
        "messageid": name(number),
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {
            "type": {"value": name(number)},
            "source": {"type": "uritemplate", "value": "/plants/{plant}/cells/{cell}"},
            "subject": {"type": "uritemplate", "value": "{plant}/{unit}"},
        },
        "protocol": "KAFKA",
        "protocoloptions": {"topic": "readings"},
        **_SCHEMA,
    }


def _topic(number: int) -> dict[str, Any]:
    return {
        "messageid": name(number),
        "protocol": "MQTT/5.0",
        "protocoloptions": {
            "topic_name": f"plants/{{plant}}/lines/{{line}}/{name(number)}",
            "user_properties": [{"name": "line", "value": "{line}"}],
        },
        **_SCHEMA,
    }


# -- messages -------------------------------------------------------------------------------------------------------


class Message(NamedTuple):
    """A message and its definition, None if it matches no definition."""

    number: int
    definition: int | None
    shape: int
    values: dict[str, str]
    payload: str
    wrong: str | None

    @property
    def definition_xid(self) -> str | None:
        return None if self.definition is None else xid(self.definition)


@dataclass(frozen=True)
class Day:
    """Traffic for a catalogue. If its `kind` is not "fits", every message is a dead letter: "unexpected", or of a
    definition, with an "invalid" payload."""

    definitions: int
    count: int
    kind: Literal["fits", "unexpected", "invalid"] = "fits"
    events_only: bool = False

    def message(self, number: int) -> Message:
        """The message with this number, from 0."""
        bits = mixed(number)
        shape = (bits >> 8) % self.definitions
        shape = event_number(shape) if self.events_only else shape
        values = {"plant": f"p{(bits >> 24) % 200:03d}", "cell": f"c{(bits >> 32) % 50:02d}"}
        values |= {"unit": f"u{(bits >> 40) % 900:03d}", "line": f"l{(bits >> 48) % 30:02d}"}
        wrong = _WRONG[(bits >> 56) % 3] if self.kind == "unexpected" or bits % 1000 < MISMATCHES else None
        payload = _payload(number, bits, values["plant"])
        if self.kind == "invalid":
            wrong, payload = "payload", _invalid(payload, bits)
        return Message(number, None if wrong else shape, shape, values, payload, wrong)

    def messages(self) -> Iterator[Message]:
        return map(self.message, range(self.count))


_WRONG: Final = ("name", "conflict", "shape")


def _payload(number: int, bits: int, plant: str) -> str:
    x, y = 100 + (bits >> 12) % 90_000 / 100, 100 + (bits >> 29) % 90_000 / 100
    text = (
        f'{{"id":"{bits:016x}-{number:012d}","at":"{instant(number)}","plant":"{plant}",'
        f'"sequence":{1_000_000_000 + number},"running":{"true" if bits & 16 else "false"},'
        f'"temperature":{20 + (bits >> 20) % 7900 / 100:.2f},"mode":"{_MODES[(bits >> 5) % 4]}",'
        f'"position":{{"x":{x:.2f},"y":{y:.2f}}},"device":{{"serial":"'
    )
    end = f'","firmware":{{"version":"2.{(bits >> 50) % 10}.0"}}}}}}'
    return text + _SERIALS[(bits >> 33) % len(_SERIALS)][: PAYLOAD_BYTES - len(text) - len(end)] + end


def _invalid(payload: str, bits: int) -> str:
    """A payload with a number beyond its range, an unknown word, or without a required member."""
    return payload.replace(*_FAULTS[(bits >> 56) % len(_FAULTS)])


_FAULTS: Final = (('"temperature":', '"temperature":9'), ('"mode":"', '"mode":"x'), ('"running":', '"stopped":'))


_SERIALS: Final = tuple(f"{mixed(n):016x}-{mixed(n + 1):016x}-{mixed(n + 2):016x}-{n:016x}" for n in range(2000))
_MODES: Final = ("auto", "hand", "idle", "test")


def instant(number: int) -> str:
    seconds, millis = divmod(number * 7 % 86_400_000, 1000)
    minutes, second = divmod(seconds, 60)
    return f"2026-03-14T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{millis:03d}Z"


def record(message: Message) -> dict[str, Any]:
    """The capture record of a message."""
    values = dict(message.values)
    label = name(message.shape)
    if message.wrong == "name":
        label = f"{label}x"
    other = f"{values['plant'][:-1]}x"
    received = instant(message.number)
    if is_event(message.shape):
        path = "sites" if message.wrong == "shape" else "plants"
        source = f"/{path}/{values['plant']}/cells/{values['cell']}"
        subject = f"{other if message.wrong == 'conflict' else values['plant']}/{values['unit']}"
        headers = [
            ["content-type", "application/json"],
            ["ce_specversion", "1.0"],
            ["ce_id", f"e{message.number:09d}"],
            ["ce_type", label],
            ["ce_source", source],
            ["ce_subject", subject],
            ["ce_time", received],
        ]
        return {
            "protocol": "KAFKA",
            "received": received,
            "topic": "readings",
            "partition": 0,
            "offset": message.number,
            "key": values["unit"],
            "headers": headers,
            "value": message.payload,
        }
    line = "l99" if message.wrong == "conflict" else values["line"]
    path = "rows" if message.wrong == "shape" else "lines"
    return {
        "protocol": "MQTT/5.0",
        "received": received,
        "topic": f"plants/{values['plant']}/{path}/{values['line']}/{label}",
        "qos": 1,
        "retain": False,
        "properties": {"content_type": "application/json"},
        "user_properties": [["line", line]],
        "payload": message.payload,
    }


# -- files ----------------------------------------------------------------------------------------------------------

_PAIRS: Final = pa.list_(pa.struct({"name": pa.string(), "value": pa.binary()}))
CAPTURE_SCHEMA: Final = pa.schema({
    "protocol": pa.string(),
    "received": pa.timestamp("us", tz="UTC"),
    "topic": pa.string(),
    "partition": pa.int64(),
    "offset": pa.int64(),
    "key": pa.binary(),
    "headers": _PAIRS,
    "value": pa.binary(),
    "qos": pa.int64(),
    "retain": pa.bool_(),
    "properties": pa.string(),
    "user_properties": _PAIRS,
    "payload": pa.binary(),
})  # fmt: skip


def file_of(number: int, count: int) -> tuple[int, int]:
    """The file of a message and its line, from 1. Each file has consecutive messages."""
    share = -(-count // FILES)
    return number // share, number % share + 1


def write_day(day: Day, folder: Path, form: str) -> Path:
    """Write the captures of a day as ``jsonl`` or ``parquet``, unless they exist."""
    done = folder / "_done"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    share = -(-day.count // FILES)
    for file in range(FILES):
        numbers = range(file * share, min((file + 1) * share, day.count))
        _WRITERS[form](folder / f"part-{file}.{form}", day, numbers)
    done.touch()
    return folder


def write_small_files(source: Path, folder: Path, lines: int) -> Path:
    """Write the lines of a day again, so many to a file, unless they exist."""
    done = folder / "_done"
    if done.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rows = (line for path in sorted(source.glob("*.jsonl")) for line in path.open("rb"))
    for number, batch in enumerate(iter(lambda: b"".join(islice(rows, lines)), b"")):
        (folder / f"{number:06}.jsonl").write_bytes(batch)
    done.touch()
    return folder


def _write_lines(path: Path, day: Day, numbers: range) -> None:
    with path.open("wb") as file:
        file.writelines(orjson.dumps(record(day.message(number))) + b"\n" for number in numbers)


def _write_parquet(path: Path, day: Day, numbers: range) -> None:
    with pq.ParquetWriter(path, CAPTURE_SCHEMA) as writer:
        for start in range(0, len(numbers), ROWS_AT_A_TIME):
            rows = [_row(record(day.message(number))) for number in numbers[start : start + ROWS_AT_A_TIME]]
            columns = {field: [row.get(field) for row in rows] for field in CAPTURE_SCHEMA.names}
            columns["received"] = pa.array(columns["received"]).cast(pa.timestamp("us", tz="UTC"))
            writer.write_table(pa.table(columns, schema=CAPTURE_SCHEMA))


_WRITERS: Final = {"jsonl": _write_lines, "parquet": _write_parquet}


def _row(values: dict[str, Any]) -> dict[str, Any]:
    for field in ("headers", "user_properties"):
        if field in values:
            values[field] = [{"name": key, "value": value.encode()} for key, value in values[field]]
    for field in ("key", "value", "payload"):
        if field in values:
            values[field] = values[field].encode()
    if "properties" in values:
        values["properties"] = orjson.dumps(values["properties"]).decode()
    return values
