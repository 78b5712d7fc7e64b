"""A message as readable text: HTTP as it is sent, other protocols property by property, then the payload."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from wirebook.bindings import AnyMessage, HttpMessage, to_record
from wirebook.cli.output import printable

PAYLOADS = ("body", "value", "payload", "data")


def wire_text(wire: AnyMessage) -> str:
    """Return the message as lines, with binary values in base64."""
    record = to_record(wire)
    payload = next((record.pop(name) for name in PAYLOADS if name in record), None)
    lines = list(_http(wire) if isinstance(wire, HttpMessage) else _slots(record))
    return "\n".join([*lines, *_payload(payload)])


def _http(wire: HttpMessage) -> Iterator[str]:
    if wire.status is not None:
        yield f"HTTP/1.1 {wire.status}"
    else:
        yield printable(f"{wire.method} {wire.target or '/'} HTTP/1.1")
    for name, value in wire.headers or ():
        yield _line(name, value if isinstance(value, str) else {"base64": value.base64})


def _slots(record: dict[str, Any]) -> Iterator[str]:
    yield record.pop("protocol")
    for name, value in record.items():
        pairs = value.items() if isinstance(value, dict) and "base64" not in value else value
        if isinstance(pairs, str | int | bool) or pairs is None or (isinstance(value, dict) and "base64" in value):
            yield _line(name, value)
        else:
            yield f"{name}:"
            yield from (f"  {_line(key, item)}" for key, item in pairs)


def _line(name: str, value: Any) -> str:
    return printable(f"{name}: {_formatted(value)}")


def _formatted(value: Any) -> str:
    if isinstance(value, dict) and len(value) == 1:
        ((type_, inner),) = value.items()
        inner = base64.b64encode(inner).decode() if isinstance(inner, bytes) else inner
        return f"{inner} ({type_})"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def _payload(payload: Any) -> Iterator[str]:
    if payload is None:
        return
    yield ""
    if isinstance(payload, str):
        yield "\n".join(printable(line) for line in payload.split("\n"))
    else:
        yield _formatted(payload)
