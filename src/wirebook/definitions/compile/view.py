"""Read the slots of a message. The wire record is parsed at most once.

Spec: docs/semantics.md D12 (absent content type of structured JSON), D24, D27, D30-D34.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from wirebook.bindings import Received, slots
from wirebook.bindings.http import split_target
from wirebook.bindings.received import CLOUDEVENTS
from wirebook.bindings.wire import text_or_bytes
from wirebook.definitions.compile.slots import (
    AMQP_SECTIONS,
    BARE,
    ENTRY_SECTIONS,
    ENVELOPE,
    EVENT_FORMAT,
    Slot,
    entry_name,
    family,
)


class Absent:
    """The value of a slot that the message does not have. Null is different: it is a value of the type `any`."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


class QueryText(str):
    """A percent-decoded query value. In `raw`, slashes and percent signs are still encoded if they were sent so."""

    raw: str


class MessageView:
    """The slots of a message.

    A malformed CloudEvent has a view if its attributes can be compared, so that near misses can be reported.
    `is_reinterpreted`: the message is not marked as a CloudEvent, but is read as one (MQTT 3.1.1, NATS without headers,
    Kafka without a content type). `shows_protocol` is False for events from plain files, which have no protocol
    options.
    """

    __slots__ = (
        "_entries",
        "_slots",
        "family",
        "is_cloudevent",
        "is_reinterpreted",
        "mode",
        "protocol",
        "received",
        "shows_protocol",
    )

    def __init__(self, received: Received, *, is_reinterpreted: bool = False) -> None:
        self.received = received
        self.protocol = received.protocol
        self.family = family(received.protocol)
        self.mode = received.mode
        self.is_cloudevent = received.kind in ("cloudevent", "malformed")
        self.is_reinterpreted = is_reinterpreted
        self.shows_protocol = received.protocol != CLOUDEVENTS
        self._slots: dict[str, Any] | None = None
        self._entries: dict[str, dict[str, list[Any]]] = {}

    @property
    def kind(self) -> str:
        return self.received.kind

    @property
    def needs_stated_mode(self) -> bool:
        """Whether the message is a CloudEvent only for definitions and endpoints with the mode ``structured``."""
        return self.is_reinterpreted and self.family == "KAFKA"

    @property
    def is_response(self) -> bool:
        """Whether the message is an HTTP response, which has none of the slots of a request."""
        return self.family == "HTTP" and self._protocol_value("status") is not None

    @property
    def slots(self) -> dict[str, Any]:
        if self._slots is None:
            wire = self.received.wire
            self._slots = {} if wire is None else slots(wire)
        return self._slots

    def value(self, slot: Slot) -> Any:
        """The value of a slot that does not repeat, or ABSENT."""
        if slot.section == ENVELOPE and slot.name != "datacontenttype":
            return self.received.attributes.get(slot.name, ABSENT)
        if slot.section in (ENVELOPE, BARE):
            value = self._bare(slot.name)
            return ABSENT if value is None else value
        section = self.slots.get(slot.section) or {}
        return section.get(slot.name, ABSENT)

    def values(self, section: str, name: str) -> list[Any]:
        """The values of a header, query item or user property, in order. `name` is normalised (`entry_name`)."""
        if section not in self._entries:
            self._entries[section] = self._read_entries(section)
        return self._entries[section].get(name, [])

    def extras(self) -> Iterator[tuple[str, str]]:
        """Yield the section and name of every attribute, property and entry of the message (D2)."""
        for name in self.received.attributes:
            yield ENVELOPE, name
        for section in AMQP_SECTIONS if self.family == "AMQP" else ():
            for name in self.slots.get(section) or ():
                yield section, name
        for section in ENTRY_SECTIONS.get(self.family, ()):
            for name, _ in self.slots.get(section) or ():
                yield section, entry_name(self.family, section, name)

    def _bare(self, name: str) -> Any:
        if name == "datacontenttype":
            return self.received.datacontenttype
        if name == EVENT_FORMAT:
            return self.received.event_format
        return self.received.content_type if name == "wire-content-type" else self._protocol_value(name)

    def _protocol_value(self, name: str) -> Any:
        if name == "status":
            status = self.slots.get("status")
            return None if status is None or self.slots.get("method") is not None else str(status)
        if name == "method":
            method = self.slots.get("method")
            return method.upper() if isinstance(method, str) else None
        if name == "key":
            key = self.slots.get("key")  # bytes that are not valid UTF-8 satisfy no text constraint (D33)
            return text_or_bytes(key) if isinstance(key, bytes) else key
        return self.slots.get("key" if name == "key_base64" else name)

    def _read_entries(self, section: str) -> dict[str, list[Any]]:
        pairs = self._query() if section == "query" else self.slots.get(section) or ()
        values: dict[str, list[Any]] = {}
        for name, value in pairs:
            values.setdefault(entry_name(self.family, section, name), []).append(value)
        return values

    def _query(self) -> list[tuple[str, Any]]:
        """Query items as `QueryText`, or as bytes if they are not valid UTF-8."""
        _, query = split_target(getattr(self.received.wire, "target", None))
        raw_values = [item.partition("=")[2].replace("+", " ") for item in query.split("&") if item]
        items = []
        for (name, value), raw in zip(self.slots.get("query") or (), raw_values, strict=False):
            text = QueryText(value) if isinstance(value, str) else value
            if isinstance(text, QueryText):
                text.raw = unquote(raw.replace("%25", "%2525").replace("%2F", "%252F").replace("%2f", "%252F"))
            items.append((name, text))
        return items
