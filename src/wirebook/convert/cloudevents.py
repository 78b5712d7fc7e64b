"""Events of the CloudEvents SDK (``cloudevents`` 2, extra ``cloudevents``), or without it, events with its getters.

`time` becomes a datetime, truncated to microseconds; a time outside the years 1 to 9999 stays a string. Binary
attributes become canonical base64. Data is as in the SDK's JSON format: a JSON value for a JSON content type or none,
a string for ``text/*`` and XML, else bytes.

Spec: cloudevents/spec.md; docs/semantics.md D26
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wirebook.bindings.json_event import canonical_text, is_text
from wirebook.convert.checks import not_expressible
from wirebook.schema.payload import Payload
from wirebook.text.json import JsonError, parse_json
from wirebook.text.mediatypes import is_json

if TYPE_CHECKING:
    from cloudevents.core.v1.event import CloudEvent

NAME = "the CloudEvents SDK"
_FRACTION = re.compile(r"(\.\d{6})\d+")


@dataclass(frozen=True, slots=True)
class PlainCloudEvent:
    """A CloudEvent with the getters of the SDK, for installations without the SDK."""

    attributes: dict[str, Any]
    data: Any

    def get_id(self) -> str:
        return str(self.attributes["id"])

    def get_source(self) -> str:
        return str(self.attributes["source"])

    def get_type(self) -> str:
        return str(self.attributes["type"])

    def get_specversion(self) -> str:
        return str(self.attributes["specversion"])

    def get_datacontenttype(self) -> str | None:
        return self.attributes.get("datacontenttype")

    def get_dataschema(self) -> str | None:
        return self.attributes.get("dataschema")

    def get_subject(self) -> str | None:
        return self.attributes.get("subject")

    def get_time(self) -> datetime | None:
        return self.attributes.get("time")

    def get_extension(self, extension_name: str) -> Any:
        return self.attributes.get(extension_name)

    def get_attributes(self) -> dict[str, Any]:
        return self.attributes

    def get_data(self) -> Any:
        return self.data


def event_of(attributes: Mapping[str, Any], payload: Payload | None) -> CloudEvent | PlainCloudEvent:
    """Return the event with the attributes of a `Received` message and a payload.

    Raises: WirebookError (``not-expressible``) for names and values that the SDK rejects; matched messages have none
    """
    values = {  # subclasses of str (native AMQP times) become strings, and bytes become base64
        name: canonical_text(value) if isinstance(value, (str, bytes)) else value
        for name, value in attributes.items()
        if value is not None
    }
    time = values.pop("time", None)
    times = {} if time is None else {"time": moment(time)}
    try:
        sdk, errors = (import_module(f"cloudevents.core.{name}") for name in ("v1.event", "exceptions"))
    except ImportError:
        return PlainCloudEvent(values | times, data_of(payload))
    try:
        event: CloudEvent = sdk.CloudEvent(dict(values), data_of(payload))
    except errors.CloudEventValidationError as error:
        name, reasons = next(iter(error.errors.items()))
        raise not_expressible(NAME, f"envelopemetadata.{name}", f"valid ({reasons[0]})", values.get(name)) from error
    event.get_attributes().pop("time", None)  # the SDK sets the current time if there is none
    event.get_attributes().update(times)
    return event


def moment(text: str) -> datetime | str:
    """Return an RFC 3339 time as a datetime. A leap second becomes the next second; a time out of range stays text."""
    leap = text[17:19] == "60"
    try:
        parsed = datetime.fromisoformat(_FRACTION.sub(r"\1", text[:17] + "59" + text[19:] if leap else text).upper())
        return parsed + timedelta(seconds=1) if leap else parsed
    except (ValueError, OverflowError):
        return text


def data_of(payload: Payload | None) -> Any:
    """Return the data as the SDK represents it: a JSON value, a string or bytes."""
    if payload is None or payload.raw is None:
        return payload.value if payload else None
    content_type = payload.content_type
    try:
        if content_type is None or is_json(content_type):
            return parse_json(payload.raw)
        return payload.raw.decode() if is_text(content_type) else payload.raw
    except (JsonError, UnicodeDecodeError):
        return payload.raw


def attributes_of(event: CloudEvent | PlainCloudEvent) -> dict[str, Any]:
    """Return the attributes of an SDK event for `Catalog.build`, with the time as text."""
    attributes = dict(event.get_attributes())
    if isinstance(time := attributes.get("time"), datetime):
        attributes["time"] = time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return {name: value for name, value in attributes.items() if value is not None}


def payload_of(event: CloudEvent | PlainCloudEvent) -> Payload | None:
    """Return the data of an SDK event as a payload."""
    data, content_type = event.get_data(), event.get_datacontenttype()
    if data is None:
        return None
    if isinstance(data, bytes):
        return Payload(data, content_type=content_type)
    if isinstance(data, str) and content_type is not None and not is_json(content_type):
        return Payload(data.encode(), content_type=content_type)
    return Payload(None, data, content_type)
