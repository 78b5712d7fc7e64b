"""A plain Python loop: parse with the cloudevents SDK, validate with jsonschema, dispatch with a dictionary."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import traffic
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary
from cloudevents.core.formats.json import JSONFormat
from jsonschema import Draft202012Validator

TOPIC = re.compile(r"plants/(?P<plant>[^/]+)/lines/(?P<line>[^/]+)/(?P<name>[^/]+)")
SOURCE = re.compile(r"/plants/(?P<plant>[^/]+)/cells/(?P<cell>[^/]+)")
SUBJECT = re.compile(r"(?P<plant>[^/]+)/(?P<unit>[^/]+)")


def run(lines: Iterable[bytes], definitions: int, to: Path) -> dict[str, int]:
    """Land lines of JSON, one at a time, in one Parquet file per definition. Return the number of rows by table."""
    names = {traffic.name(number) for number in range(definitions)}
    validator = Draft202012Validator(traffic.PAYLOAD_SCHEMA)
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        record = json.loads(line)
        table, row, data = _event(record) if record["protocol"] == "KAFKA" else _publish(record)
        if table in names and row is not None and validator.is_valid(data):
            rows[table].append(row | data)
        else:
            rows["dead_letters"].append({"raw": line})
    to.mkdir(parents=True, exist_ok=True)
    for table, landed in rows.items():
        pq.write_table(pa.Table.from_pylist(landed), to / f"{table}.parquet")
    return {table: len(landed) for table, landed in rows.items()}


def _event(record: dict[str, Any]) -> tuple[str, dict[str, Any] | None, Any]:
    headers = {name: value.encode() for name, value in record["headers"]}
    event = from_binary(KafkaMessage(headers, record["key"], record["value"].encode()), JSONFormat())
    attributes = event.get_attributes()
    source, subject = SOURCE.fullmatch(attributes["source"]), SUBJECT.fullmatch(attributes["subject"])
    if source is None or subject is None or source["plant"] != subject["plant"]:
        return attributes["type"], None, None
    return attributes["type"], attributes | source.groupdict() | subject.groupdict(), event.get_data()


def _publish(record: dict[str, Any]) -> tuple[str, dict[str, Any] | None, Any]:
    topic = TOPIC.fullmatch(record["topic"])
    if topic is None or dict(record["user_properties"]).get("line") != topic["line"]:
        return "", None, None
    return topic["name"], topic.groupdict(), json.loads(record["payload"])
