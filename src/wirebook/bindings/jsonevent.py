"""The JSON event format: one CloudEvent, or a batch, as JSON.

Rules: `data` (any JSON under a JSON content type or none; a text under another) or `data_base64`, never both; a null
attribute is an absent one; attributes are texts, booleans and integers; a member that occurs twice makes the event
malformed. Without `datacontenttype`, `data` is application/json, and of `data_base64` nothing is assumed.

Spec: json-format.md#22-type-system-mapping, #31-handling-of-data, #4-json-batch-format
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, NamedTuple

from wirebook.bindings.attributes import malformed, wrong_attributes
from wirebook.bindings.wire import shown
from wirebook.problems import Problem
from wirebook.schema.payload import Payload
from wirebook.text.duplicates import may_have_duplicates, top_level_duplicates
from wirebook.text.json import JsonError, parse_json
from wirebook.text.mediatypes import is_json

MEDIA_TYPE: Final = "application/cloudevents+json"
BATCH_MEDIA_TYPE: Final = "application/cloudevents-batch+json"
MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
_DATA: Final = frozenset({"data", "data_base64"})


class JsonEvent(NamedTuple):
    """A CloudEvent's parts, and what is wrong with them."""

    attributes: dict[str, Any]
    payload: Payload | None
    problems: list[Problem]


class NotAnEvent(ValueError):
    """A text is not in the event format; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


# -- reading --------------------------------------------------------------------------------------------------------


def parse_event(text: bytes | None, code: str = "malformed-cloudevent") -> Any:
    """The JSON value of a structured event or batch. Raises: NotAnEvent with `code`, or payload-too-large/-too-deep."""
    if text is not None and len(text) > MAX_EVENT_BYTES:
        allowed = f"at most {MAX_EVENT_BYTES} bytes"
        raise NotAnEvent(Problem("payload-too-large", slot="payload", expected=allowed, actual=len(text)))
    try:
        return parse_json(text or b"")
    except JsonError as error:
        raise NotAnEvent(_unparsable(error, code)) from None


def _unparsable(error: JsonError, code: str) -> Problem:
    found = f"{error.message} (byte {error.offset})"
    if error.code == "payload-too-deep":
        return Problem(error.code, found, slot="payload", expected="no deeper nesting", actual=error.message)
    return Problem(code, f"not JSON: {found}", slot="payload", expected="the JSON event format", actual=found)


def read_event(text: bytes | None) -> JsonEvent:
    """The one event in `text`. Raises: NotAnEvent."""
    value = parse_event(text)
    repeated = top_level_duplicates(text)[0] if text and may_have_duplicates(text, value) else None
    return event_of(value, repeated)


def read_batch(text: bytes | None) -> list[JsonEvent]:
    """The events of a batch, in order. Raises: NotAnEvent."""
    value = parse_event(text, "malformed-batch")
    if not isinstance(value, list):
        found = type(value).__name__
        raise NotAnEvent(Problem("malformed-batch", slot="payload", expected="an array of events", actual=found))
    repeated = top_level_duplicates(text) if text and may_have_duplicates(text, value) else [None] * len(value)
    return [event_of(item, name) for item, name in zip(value, repeated, strict=True)]


def event_of(value: Any, repeated: str | None = None) -> JsonEvent:
    """The event that a JSON value is; `repeated` names a member that its text has twice."""
    if not isinstance(value, dict):
        found = type(value).__name__
        problem = Problem("malformed-cloudevent", slot="payload", expected="an object", actual=found)
        return JsonEvent({}, None, [problem])
    problems = [] if repeated is None else [malformed(repeated, "there once", "twice")]
    attributes = {name: item for name, item in value.items() if item is not None and name not in _DATA}
    problems += (malformed(*wrong) for wrong in wrong_attributes(attributes))
    return JsonEvent(attributes, _data(value, attributes.get("datacontenttype"), problems), problems)


def _data(value: dict[str, Any], content_type: Any, problems: list[Problem]) -> Payload | None:
    encoded = value.get("data_base64")
    if "data" in value:
        # Reading: `data` null is a payload, so beside `data_base64` there are two; `data_base64` null is absent.
        if encoded is not None:
            problems.append(malformed("data_base64", "absent beside 'data'", "both"))
        return _json_or_text(value["data"], content_type, problems)
    return None if encoded is None else _binary(encoded, content_type, problems)


def _json_or_text(data: Any, content_type: Any, problems: list[Problem]) -> Payload:
    if not isinstance(content_type, str):
        return Payload(raw=None, value=data, content_type="application/json")
    if not is_json(content_type) and isinstance(data, str):
        return Payload(raw=data.encode(), content_type=content_type)
    if not is_json(content_type):
        # Reading: "MAY fail"; the value is kept, as JSON, and reported.
        expected = f"a text, as {shown(content_type)} is not JSON"
        problems.append(Problem("data-not-text", slot="data", expected=expected, actual=type(data).__name__))
    return Payload(raw=None, value=data, content_type=content_type)


def _binary(encoded: Any, content_type: Any, problems: list[Problem]) -> Payload | None:
    try:
        raw = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        problems.append(malformed("data_base64", "a base64 text with padding", encoded))
        return None
    return Payload(raw=raw, content_type=content_type if isinstance(content_type, str) else None)
