"""Events of the CloudEvents SDK (``cloudevents`` 2, extra ``cloudevents``).

Rule: the SDK keeps `time` as a datetime (a fraction finer than microseconds is cut) and everything else as it is. Data
is what the SDK's own JSON format gives: the JSON value under a JSON content type or none, a text under ``text/*`` and
XML, else bytes.

Spec: cloudevents/spec.md; docs/semantics.md D26
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from wirebook.bindings.jsonwrite import is_text
from wirebook.convert.refusal import library, refuse
from wirebook.core.jsonvalue import JsonError, parse_json
from wirebook.core.mediatypes import is_json
from wirebook.schema.payload import Payload

if TYPE_CHECKING:
    from cloudevents.core.v1.event import CloudEvent

NAME = "the CloudEvents SDK"
_FRACTION = re.compile(r"(\.\d{6})\d+")


def event_of(attributes: Mapping[str, Any], payload: Payload | None) -> CloudEvent:
    """The SDK's event of attributes, as `Received` has them, and a payload.

    Raises: WirebookError (``missing-extra``; ``not-expressible`` for a time that no datetime can say, and for names and
    values that the SDK does not allow).
    """
    sdk, errors = (library(f"cloudevents.core.{name}", "cloudevents") for name in ("v1.event", "exceptions"))
    kept = {name: _plain(value) for name, value in attributes.items() if value is not None}
    time = kept.pop("time", None)
    if time is not None:
        kept["time"] = moment(time)
    try:
        event: CloudEvent = sdk.CloudEvent(kept, data_of(payload))
    except errors.CloudEventValidationError as error:
        name, reasons = next(iter(error.errors.items()))
        raise refuse(NAME, f"envelopemetadata.{name}", f"otherwise ({reasons[0]})", kept.get(name)) from error
    if time is None:
        event.get_attributes().pop("time", None)  # the SDK gives an event without a time the present
    return event


def _plain(value: Any) -> Any:
    """Texts of a class of their own (native times) as texts."""
    return str(value) if isinstance(value, str) else value


def moment(text: str) -> datetime:
    """An RFC 3339 time as a datetime; a leap second is the second after it."""
    leap = text[17:19] == "60"
    try:
        found = datetime.fromisoformat(_FRACTION.sub(r"\1", text[:17] + "59" + text[19:] if leap else text).upper())
        return found + timedelta(seconds=1) if leap else found
    except (ValueError, OverflowError) as error:
        raise refuse(NAME, "envelopemetadata.time", "a time of the years 1 to 9999", text) from error


def data_of(payload: Payload | None) -> Any:
    """The data as an application works with it."""
    if payload is None or payload.raw is None:
        return payload.value if payload else None
    content_type = payload.content_type
    try:
        if content_type is None or is_json(content_type):
            return parse_json(payload.raw)
        return payload.raw.decode() if is_text(content_type) else payload.raw
    except (JsonError, UnicodeDecodeError):
        return payload.raw


def attributes_of(event: CloudEvent) -> dict[str, Any]:
    """The attributes of an SDK event, its time as text: what `Catalog.build` takes."""
    found = dict(event.get_attributes())
    if isinstance(time := found.get("time"), datetime):
        found["time"] = time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return {name: value for name, value in found.items() if value is not None}


def payload_of(event: CloudEvent) -> Payload | None:
    """The data of an SDK event: bytes as they are, a value of its content type."""
    data, content_type = event.get_data(), event.get_datacontenttype()
    if data is None:
        return None
    if isinstance(data, bytes):
        return Payload(data, content_type=content_type)
    if isinstance(data, str) and content_type is not None and not is_json(content_type):
        return Payload(data.encode(), content_type=content_type)
    return Payload(None, data, content_type)
