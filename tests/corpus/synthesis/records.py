"""Read and change the parts of a capture record: payload, headers, attributes, events and data."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from synthesis.messages import PAYLOAD_MEMBERS, Record

EVENT_MEMBER = "payload"  # an event of a plain file, wrapped so that changes find it where MQTT has it


def dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def payload_member(record: Record) -> str:
    return PAYLOAD_MEMBERS.get(str(record.get("protocol")).upper(), EVENT_MEMBER)


def raw_of(value: Any) -> bytes:
    """The bytes of a payload as a record has them; of what cannot be one, its text."""
    try:
        return base64.b64decode(value["base64"])
    except (TypeError, KeyError, ValueError):
        return str(value or "").encode("utf-8", "surrogatepass")


def put_payload(record: Record, raw: bytes) -> Record:
    try:
        record[payload_member(record)] = raw.decode()
    except UnicodeDecodeError:
        record[payload_member(record)] = {"base64": base64.b64encode(raw).decode()}
    return record


def pairs_of(record: Record) -> list[list[Any]] | None:
    """The headers or properties of a record as pairs; changes are put back by `set_pairs`."""
    for name in ("headers", "user_properties"):
        if isinstance(record.get(name), list) and record[name]:
            return [list(pair) for pair in record[name]]
    properties = record.get("application-properties")
    return [list(pair) for pair in properties.items()] if isinstance(properties, dict) and properties else None


def set_pairs(record: Record, pairs: list[list[Any]]) -> Record:
    for name in ("headers", "user_properties"):
        if isinstance(record.get(name), list):
            record[name] = pairs
            return record
    record["application-properties"] = {str(name): value for name, value in pairs}
    return record


def event_in(record: Record) -> Record | None:
    """The event in a structured record."""
    value = json_in(record)
    return value if isinstance(value, dict) and "specversion" in value else None


def json_in(record: Record) -> Any:
    try:
        return json.loads(raw_of(record.get(payload_member(record))))
    except ValueError:
        return None


def with_data(record: Record, data: Any) -> Record:
    """The record with other data, in whatever mode it is."""
    event = event_in(record)
    if event is None:
        return put_payload(record, dumps(data))
    event.pop("data_base64", None)
    return put_payload(record, dumps(event | {"data": data}))


def data_in(record: Record) -> Any:
    event = event_in(record)
    return json_in(record) if event is None else event.get("data")


def attribute_pair(pairs: list[list[Any]], name: str) -> list[Any] | None:
    names = {name, f"ce-{name}", f"ce_{name}", f"cloudevents_{name}", f"cloudevents:{name}"}
    return next((pair for pair in pairs if str(pair[0]).lower() in names), None)


def set_attribute(record: Record, name: str, value: Any) -> Record | None:
    """An attribute set to a value, in binary or structured mode."""
    pairs = pairs_of(record)
    pair = attribute_pair(pairs, name) if pairs else None
    if pair is not None and pairs is not None:
        pair[1] = value
        return set_pairs(record, pairs)
    event = event_in(record)
    return None if event is None else put_payload(record, dumps(event | {name: value}))


def places_in(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all members and items in a JSON value."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, child in children for place in ((*at, key), *places_in(child, (*at, key)))]


def changed_at(value: Any, place: tuple[Any, ...], make: Callable[[Any], Any]) -> Any:
    """A copy with the value at one place made anew; `GONE` takes it away."""
    copy = json.loads(json.dumps(value))
    holder = copy
    for step in place[:-1]:
        holder = holder[step]
    changed = make(holder[place[-1]])
    if changed is GONE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = changed
    return copy


GONE = object()


def value_at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


def attribute_in(record: Record, name: str) -> Any:
    pairs = pairs_of(record)
    pair = attribute_pair(pairs, name) if pairs else None
    return pair[1] if pair is not None else (event_in(record) or {}).get(name)
