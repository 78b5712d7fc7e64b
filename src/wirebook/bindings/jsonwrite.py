"""Writing data as bytes, and events in the JSON event format.

Rules: data under a JSON content type is a JSON value, a text under another is a string, bytes that are neither are
`data_base64`; bytes without a content type always are, as nothing may be assumed of them.

Spec: json-format.md#311-payload-serialization
"""

from __future__ import annotations

import base64
import json
from typing import Any

from wirebook.bindings.wire import shown
from wirebook.problems import Problem
from wirebook.schema.payload import UNSET, Payload
from wirebook.text.json import JsonError, parse_json
from wirebook.text.mediatypes import is_json


def canonical_text(value: Any) -> str:
    """An attribute's canonical string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def json_bytes(value: Any) -> bytes:
    """A JSON value as compact text. Raises: ValueError, TypeError, RecursionError: JSON cannot say it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def data_bytes(payload: Payload | None, problems: list[Problem]) -> bytes | None:
    """The bytes of the data in binary mode: a JSON value as JSON text, a text under another content type as it is."""
    if payload is None or payload.raw is not None:
        return payload.raw if payload else None
    content_type = payload.content_type
    try:
        if content_type is None or is_json(content_type):
            return json_bytes(payload.value)
        if isinstance(payload.value, str):
            return payload.value.encode()
    except (ValueError, TypeError, RecursionError) as error:
        problems.append(Problem("payload-invalid", slot="payload", expected="a JSON value", actual=shown(str(error))))
        return None
    expected = f"bytes or a text, as {shown(content_type)} is not JSON"
    problems.append(Problem("payload-invalid", slot="payload", expected=expected, actual=type(payload.value).__name__))
    return None


def write_json_event(attributes: dict[str, Any], payload: Payload | None, problems: list[Problem]) -> bytes | None:
    """The event as JSON text; None when something in it cannot be written."""
    event = {name: canonical_text(v) if isinstance(v, bytes) else v for name, v in attributes.items()}
    if payload is not None:
        event |= _data_member(event, payload)
    try:
        return json_bytes(event)
    except (ValueError, TypeError, RecursionError) as error:
        problems.append(Problem("payload-invalid", slot="payload", expected="a JSON value", actual=shown(str(error))))
        return None


def _data_member(event: dict[str, Any], payload: Payload) -> dict[str, Any]:
    """`data` or `data_base64`, and the content type of the payload where the attributes have none."""
    declared = event.get("datacontenttype") or payload.content_type
    named = {"datacontenttype": declared} if declared is not None else {}
    if payload.raw is None:
        return named | {"data": payload.value}
    data = _as_value(payload.raw, declared)
    return named | ({"data_base64": base64.b64encode(payload.raw).decode()} if data is UNSET else {"data": data})


def _as_value(raw: bytes, content_type: Any) -> Any:
    """The JSON value, or the text, that bytes of this content type are; UNSET when only base64 can say them."""
    if not isinstance(content_type, str):
        return UNSET
    try:
        if is_json(content_type):
            return parse_json(raw)
        return raw.decode() if is_text(content_type) else UNSET
    except (JsonError, UnicodeDecodeError):
        return UNSET


def is_text(content_type: str) -> bool:
    """Does the media type declare text: ``text/*``, ``*/xml`` or ``*/*+xml``?"""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type.startswith("text/") or media_type.endswith(("/xml", "+xml"))
