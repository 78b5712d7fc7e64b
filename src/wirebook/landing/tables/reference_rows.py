"""Rows of tables and dead letters, one message at a time: the reference implementation, which the column path must
agree with.

Spec: docs/land.md#the-target-folder
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson
import pyarrow as pa

from wirebook.bindings import Received
from wirebook.bindings.parquet import FIRST_SECOND, LAST_SECOND
from wirebook.definitions.compile.values import NotOfType, canonical, instant_of
from wirebook.definitions.match.outcome import Outcome
from wirebook.landing.tables.layout import INSTANT, TableColumn, TableLayout
from wirebook.problems import Problem

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class MessageOrigin:
    """Where a message came from. (file, line, index) identifies it."""

    file: str
    line: int
    raw: bytes
    catalogue: str


def instant(text: str | None) -> tuple[datetime | None, bool]:
    """An RFC 3339 time as a datetime in microseconds, and whether the conversion is lossless."""
    if text is None:
        return None, True
    try:
        seconds, fraction = instant_of(text)
    except NotOfType:
        return None, False
    if not FIRST_SECOND <= seconds <= LAST_SECOND:
        return None, False
    micros = int(fraction[:6].ljust(6, "0"))
    exact = len(fraction) <= 6 and text[17:19] != "60"
    return EPOCH + timedelta(seconds=seconds, microseconds=micros), exact


# -- rows of tables -------------------------------------------------------------------------------------------------


def table_row(layout: TableLayout, outcome: Outcome, origin: MessageOrigin) -> dict[str, Any]:
    """The row of a matched message."""
    received = outcome.received
    row = {
        "_file": origin.file,
        "_line": origin.line,
        "_index": received.index,
        "_received": instant(received.received)[0],
        "_endpoint": received.endpoint,
        "_protocol": received.protocol,
        "_catalogue": origin.catalogue,
        "_tombstone": received.is_tombstone,
        **attribute_values(layout.attributes, received.attributes),
    }
    payload = outcome.reading.row or {} if outcome.reading is not None else {"": _payload_bytes(received)}
    for column in layout.columns:
        kind, name = column.source
        if kind == "binding":
            row[column.name] = outcome.bindings.get(name)
        elif kind == "payload":
            row[column.name] = payload.get(name)
    return row


def _payload_bytes(received: Received) -> bytes | None:
    payload = received.payload
    if payload is None:
        return None
    return payload.raw if payload.raw is not None else json_text(payload.value).encode()


def attribute_values(columns: Iterable[TableColumn], attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the ``ce_`` columns. Attributes that have no column, or do not fit theirs, are JSON text in
    ``ce_rest``, sorted by name."""
    row: dict[str, Any] = {}
    rest = {name: attributes[name] for name in sorted(attributes) if name != "specversion"}
    for column in columns:
        name = column.source[1]
        if name in rest:
            row[column.name], exact = column_value(column.type, rest[name])
            if exact:
                del rest[name]
    if any(column.source[1] == "" for column in columns):
        row["ce_rest"] = json_text(rest) if rest else None
    return row


def column_value(type_: pa.DataType, value: Any) -> tuple[Any, bool]:
    """The value of an attribute in the type of its column, and whether the conversion is lossless."""
    if type_ == INSTANT:
        return instant(value) if isinstance(value, str) else (None, False)
    if type_ == pa.string():
        return (value, True) if isinstance(value, str) else (None, False)
    kind = next(name for name, check in _KINDS.items() if check(type_))
    try:
        return canonical(kind, value).value, True
    except NotOfType:
        return None, False


_KINDS: Final[dict[str, Callable[[pa.DataType], bool]]] = {
    "integer": pa.types.is_integer,
    "number": pa.types.is_floating,
    "boolean": pa.types.is_boolean,
    "binary": pa.types.is_binary,
}


# -- dead letters ---------------------------------------------------------------------------------------------------


def dead_letter(outcome: Outcome, origin: MessageOrigin) -> dict[str, Any]:
    """The row of a message that does not land: the raw record and the problems."""
    received = outcome.received
    return {
        "_file": origin.file,
        "_line": origin.line,
        "_index": received.index,
        "received": instant(received.received)[0],
        "protocol": received.protocol or None,
        "endpoint": received.endpoint,
        "raw": origin.raw,
        "outcome": outcome.outcome,
        "definition": outcome.definition,
        "problems": [reason(problem) for problem in outcome.problems],
        "near": [
            {"definition": near.definition, "problems": [reason(problem) for problem in near.problems]}
            for near in outcome.near
        ],
        "_catalogue": origin.catalogue,
    }


def reason(problem: Problem) -> dict[str, str | None]:
    """A problem as stored in dead letters: `expected` and `actual` as text, JSON unless they are strings."""
    return {
        "code": problem.code,
        "slot": problem.slot,
        "expected": reason_text(problem.expected),
        "actual": reason_text(problem.actual),
    }


def reason_text(value: Any) -> str | None:
    """An expected or actual value as text: JSON unless it is a string."""
    if value is None:
        return None
    return well_formed(value) if isinstance(value, str) else json_text(value)


def json_text(value: Any) -> str:
    """Any value as JSON text: bytes as ``{"base64": ...}``, other types without a JSON form as strings."""
    try:
        return orjson.dumps(value, default=_as_json, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:  # integers beyond 64 bits, lone surrogates
        return well_formed(json.dumps(value, default=_as_json, ensure_ascii=False, separators=(",", ":")))


def _as_json(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else str(value)


def well_formed(text: str) -> str:
    """The text with lone surrogates replaced, because no column can hold them."""
    return text.encode("utf-8", "replace").decode()
