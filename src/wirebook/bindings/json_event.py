"""Read and write CloudEvents in the JSON event format, single events and batches.

An event has `data` or `data_base64`, never both. Under a JSON content type, or none, `data` is any JSON value; under
another content type it is a string. Without `datacontenttype`, `data` is application/json, and `data_base64` has no
content type. A null attribute counts as absent. A repeated member makes the event malformed.

Spec: json-format.md#22-type-system-mapping, #31-handling-of-data, #4-json-batch-format
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final, NamedTuple

from wirebook.bindings.attributes import malformed, wrong_attributes
from wirebook.bindings.wire import preview
from wirebook.problems import Problem
from wirebook.schema.payload import UNSET, Payload
from wirebook.text.duplicates import may_have_duplicates, top_level_duplicates
from wirebook.text.json import JsonError, parse_json
from wirebook.text.mediatypes import is_json

MEDIA_TYPE: Final = "application/cloudevents+json"
BATCH_MEDIA_TYPE: Final = "application/cloudevents-batch+json"
MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
_DATA: Final = frozenset({"data", "data_base64"})


class JsonEvent(NamedTuple):
    """The parts of a CloudEvent, and its problems."""

    attributes: dict[str, Any]
    payload: Payload | None
    problems: list[Problem]


class NotAnEvent(ValueError):
    """The text is not in the JSON event format; `problem` is the reason."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


# -- reading --------------------------------------------------------------------------------------------------------


def parse_event(text: bytes | None, code: str = "malformed-cloudevent") -> Any:
    """Parse the JSON of a structured event or a batch.

    Raises: NotAnEvent with `code`, ``payload-too-large`` or ``payload-too-deep``.
    """
    if text is not None and len(text) > MAX_EVENT_BYTES:
        allowed = f"at most {MAX_EVENT_BYTES} bytes"
        raise NotAnEvent(Problem("payload-too-large", slot="payload", expected=allowed, actual=len(text)))
    try:
        return parse_json(text or b"")
    except JsonError as error:
        raise NotAnEvent(_unparsable(error, code)) from None


def _unparsable(error: JsonError, code: str) -> Problem:
    message = f"{error.message} (byte {error.offset})"
    if error.code == "payload-too-deep":
        return Problem(error.code, message, slot="payload", expected="no deeper nesting", actual=error.message)
    return Problem(code, f"not JSON: {message}", slot="payload", expected="the JSON event format", actual=message)


def read_event(text: bytes | None) -> JsonEvent:
    """Read a single event. Raises: NotAnEvent."""
    value = parse_event(text)
    repeated = top_level_duplicates(text)[0] if text and may_have_duplicates(text, value) else None
    return event_of(value, repeated)


def read_batch(text: bytes | None) -> list[JsonEvent]:
    """Read the events of a batch, in order. Raises: NotAnEvent."""
    value = parse_event(text, "malformed-batch")
    if not isinstance(value, list):
        problem = Problem("malformed-batch", slot="payload", expected="an array of events", actual=type(value).__name__)
        raise NotAnEvent(problem)
    repeated = top_level_duplicates(text) if text and may_have_duplicates(text, value) else [None] * len(value)
    return [event_of(item, name) for item, name in zip(value, repeated, strict=True)]


def event_of(value: Any, repeated: str | None = None) -> JsonEvent:
    """Return the event of a JSON value. `repeated` is the name of a member that occurs twice in the text."""
    if not isinstance(value, dict):
        problem = Problem("malformed-cloudevent", slot="payload", expected="an object", actual=type(value).__name__)
        return JsonEvent({}, None, [problem])
    problems = [] if repeated is None else [malformed(repeated, "a single member", "two members")]
    attributes = {name: item for name, item in value.items() if item is not None and name not in _DATA}
    problems += (malformed(*wrong) for wrong in wrong_attributes(attributes))
    return JsonEvent(attributes, _data(value, attributes.get("datacontenttype"), problems), problems)


def _data(value: dict[str, Any], content_type: Any, problems: list[Problem]) -> Payload | None:
    encoded = value.get("data_base64")
    if "data" in value:
        # Reading: null in `data` is a payload, and excludes `data_base64`. Null in `data_base64` counts as absent.
        if encoded is not None:
            problems.append(malformed("data_base64", "absent if there is 'data'", "both members"))
        return _json_or_text(value["data"], content_type, problems)
    return None if encoded is None else _binary(encoded, content_type, problems)


def _json_or_text(data: Any, content_type: Any, problems: list[Problem]) -> Payload:
    if not isinstance(content_type, str):
        return Payload(raw=None, value=data, content_type="application/json")
    if not is_json(content_type) and isinstance(data, str):
        return Payload(raw=data.encode(), content_type=content_type)
    if not is_json(content_type):
        # Reading: the text says "MAY fail". The value is kept as JSON and reported.
        expected = f"a string, because {preview(content_type)} is not JSON"
        problems.append(Problem("data-not-text", slot="data", expected=expected, actual=type(data).__name__))
    return Payload(raw=None, value=data, content_type=content_type)


def _binary(encoded: Any, content_type: Any, problems: list[Problem]) -> Payload | None:
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        problems.append(malformed("data_base64", "base64 with padding", encoded))
        return None
    return Payload(raw=raw, content_type=content_type if isinstance(content_type, str) else None)


# -- writing --------------------------------------------------------------------------------------------------------


def canonical_text(value: Any) -> str:
    """Return the canonical string of an attribute value (cloudevents-spec.md#type-system)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def json_bytes(value: Any) -> bytes:
    """Return a value as compact JSON. Raises: ValueError, TypeError, RecursionError if it is not a JSON value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def data_bytes(payload: Payload | None, problems: list[Problem]) -> bytes | None:
    """Return the data in binary mode: JSON under a JSON content type or none, else the text of a string."""
    if payload is None or payload.raw is not None:
        return payload.raw if payload else None
    content_type = payload.content_type
    try:
        if content_type is None or is_json(content_type):
            return json_bytes(payload.value)
        if isinstance(payload.value, str):
            return payload.value.encode()
    except (ValueError, TypeError, RecursionError) as error:
        problems.append(Problem("payload-invalid", slot="payload", expected="a JSON value", actual=preview(str(error))))
        return None
    expected = f"bytes or a string, because {preview(content_type)} is not JSON"
    problems.append(Problem("payload-invalid", slot="payload", expected=expected, actual=type(payload.value).__name__))
    return None


def write_json_event(attributes: dict[str, Any], payload: Payload | None, problems: list[Problem]) -> bytes | None:
    """Return an event as JSON. If the data is not a JSON value, add a problem and return None."""
    event = {name: canonical_text(v) if isinstance(v, bytes) else v for name, v in attributes.items()}
    if payload is not None:
        event |= _data_member(event, payload)
    try:
        return json_bytes(event)
    except (ValueError, TypeError, RecursionError) as error:
        problems.append(Problem("payload-invalid", slot="payload", expected="a JSON value", actual=preview(str(error))))
        return None


def _data_member(event: dict[str, Any], payload: Payload) -> dict[str, Any]:
    """Return the member `data` or `data_base64`, and `datacontenttype` if only the payload has a content type."""
    declared = event.get("datacontenttype") or payload.content_type
    named = {"datacontenttype": declared} if declared is not None else {}
    if payload.raw is None:
        return named | {"data": payload.value}
    data = _as_value(payload.raw, declared)
    return named | ({"data_base64": base64.b64encode(payload.raw).decode()} if data is UNSET else {"data": data})


def _as_value(raw: bytes, content_type: Any) -> Any:
    """Return the value of `data` for bytes of this content type, or UNSET if they need `data_base64`."""
    if not isinstance(content_type, str):
        return UNSET
    try:
        if is_json(content_type):
            return parse_json(raw)
        return raw.decode() if is_text(content_type) else UNSET
    except (JsonError, UnicodeDecodeError):
        return UNSET


def is_text(content_type: str) -> bool:
    """Return whether the media type is text: ``text/*``, ``*/xml`` or ``*/*+xml``."""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type.startswith("text/") or media_type.endswith(("/xml", "+xml"))
