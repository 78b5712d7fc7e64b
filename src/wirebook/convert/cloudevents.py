"""Events of the CloudEvents SDK (``cloudevents`` 2, extra ``cloudevents``); without it, events with the same getters.

Rule: the SDK keeps `time` as a datetime (a fraction finer than microseconds is cut; a time outside the years 1 to 9999
stays text), bytes as their canonical base64, and everything else as it is. Data is what the SDK's own JSON format
gives: the JSON value under a JSON content type or none, a text under ``text/*`` and XML, else bytes.

Spec: cloudevents/spec.md; docs/semantics.md D26
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wirebook.bindings.jsonwrite import canonical_text, is_text
from wirebook.convert.refusal import refuse
from wirebook.schema.payload import Payload
from wirebook.text.json import JsonError, parse_json
from wirebook.text.mediatypes import is_json

if TYPE_CHECKING:
    from cloudevents.core.v1.event import CloudEvent

NAME = "the CloudEvents SDK"
_FRACTION = re.compile(r"(\.\d{6})\d+")


@dataclass(frozen=True, slots=True)
class PlainCloudEvent:
    """A CloudEvent where the SDK is not installed: the getters of the SDK's event."""

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
    """The event of attributes, as `Received` has them, and a payload.

    Raises: WirebookError (``not-expressible``) for names and values that the SDK does not allow, which no matched
    message has.
    """
    kept = {name: _plain(value) for name, value in attributes.items() if value is not None}
    time = kept.pop("time", None)
    said = {} if time is None else {"time": moment(time)}
    try:
        sdk, errors = (import_module(f"cloudevents.core.{name}") for name in ("v1.event", "exceptions"))
    except ImportError:
        return PlainCloudEvent(kept | said, data_of(payload))
    try:
        event: CloudEvent = sdk.CloudEvent(dict(kept), data_of(payload))
    except errors.CloudEventValidationError as error:
        name, reasons = next(iter(error.errors.items()))
        raise refuse(NAME, f"envelopemetadata.{name}", f"otherwise ({reasons[0]})", kept.get(name)) from error
    event.get_attributes().pop("time", None)  # the SDK gives an event without a time the present
    event.get_attributes().update(said)
    return event


def _plain(value: Any) -> Any:
    """Texts of a class of their own (native times) as texts, bytes as base64."""
    return canonical_text(value) if isinstance(value, (str, bytes)) else value


def moment(text: str) -> datetime | str:
    """An RFC 3339 time as a datetime, or the text where no datetime has it; a leap second is the second after it."""
    leap = text[17:19] == "60"
    try:
        found = datetime.fromisoformat(_FRACTION.sub(r"\1", text[:17] + "59" + text[19:] if leap else text).upper())
        return found + timedelta(seconds=1) if leap else found
    except (ValueError, OverflowError):
        return text


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


def attributes_of(event: CloudEvent | PlainCloudEvent) -> dict[str, Any]:
    """The attributes of an SDK event, its time as text: what `Catalog.build` takes."""
    found = dict(event.get_attributes())
    if isinstance(time := found.get("time"), datetime):
        found["time"] = time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return {name: value for name, value in found.items() if value is not None}


def payload_of(event: CloudEvent | PlainCloudEvent) -> Payload | None:
    """The data of an SDK event: bytes as they are, a value of its content type."""
    data, content_type = event.get_data(), event.get_datacontenttype()
    if data is None:
        return None
    if isinstance(data, bytes):
        return Payload(data, content_type=content_type)
    if isinstance(data, str) and content_type is not None and not is_json(content_type):
        return Payload(data.encode(), content_type=content_type)
    return Payload(None, data, content_type)
