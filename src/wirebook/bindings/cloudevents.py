"""Decide whether a message is a CloudEvent, in which content mode, and whether it is valid: rules of all bindings.

A content type ``application/cloudevents...`` means structured or batch mode. The event is then malformed if it cannot
be parsed, and unsupported if its format is not JSON. Otherwise a message with all of `specversion`, `id`, `source` and
`type` is a CloudEvent in binary mode, with some of them a malformed one, and with none of them a native message. MQTT
5.0 has attributes without a prefix, so there `specversion` and another of the four are required.

Readers report faults and never repair them. If an attribute is repeated, the first one counts. In structured mode, the
event takes precedence over headers with the same attribute.

Spec: docs/semantics.md#cloudevents-over-each-protocol; *-protocol-binding.md#3
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.bindings.attributes import MANDATORY, attribute_slot, malformed, wrong_attributes
from wirebook.bindings.json_event import (
    BATCH_MEDIA_TYPE,
    MEDIA_TYPE,
    JsonEvent,
    NotAnEvent,
    read_batch,
    read_event,
)
from wirebook.bindings.received import Kind, Mode, Received
from wirebook.bindings.wire import WireMessage, preview
from wirebook.problems import Problem, Severity
from wirebook.schema.payload import Payload

MAX_PROBLEMS: Final = 20
_PREFIX: Final = "application/cloudevents"
_MANDATORY_NAMES: Final = frozenset(MANDATORY)
_NO_NAMES: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Binding:
    """How the binding of a protocol differs from the others.

    `batch`: it has a batch mode. `bare_is_json`: ``application/cloudevents`` without a format means JSON. `bare_names`:
    attribute names have no prefix.
    """

    protocol: str
    batch: bool = False
    bare_is_json: bool = False
    bare_names: bool = False


@dataclass(slots=True)
class WireParts:
    """The parts of a wire record that decide how it is read. `attributes` are those outside the body (binary mode)."""

    binding: Binding
    wire: WireMessage
    body: bytes | None
    content_type: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def message(self, kind: Kind, mode: Mode | None, event: JsonEvent, index: int = 0) -> Received:
        """Return the received message, with the attributes, payload and problems of `event`."""
        return Received(
            protocol=self.binding.protocol,
            wire=self.wire,
            kind=kind,
            mode=mode,
            attributes=event.attributes,
            payload=event.payload,
            content_type=self.content_type,
            received=self.wire.received,
            endpoint=self.wire.endpoint,
            problems=bounded(event.problems),
            index=index,
        )


@dataclass(frozen=True, slots=True)
class Contents:
    """The content that a writer sets in a wire record.

    `attributes` are native values, without `datacontenttype`; `texts` are the same as canonical strings.
    """

    attributes: dict[str, Any]
    texts: dict[str, str]
    content_type: str | None
    data: bytes | None

    def content_type_line(self, name: str) -> list[tuple[str, Any]]:
        """Return the header `name` with the content type, or an empty list without one."""
        return [] if self.content_type is None else [(name, self.content_type)]


def read_parts(parts: WireParts) -> tuple[Received, ...]:
    """Return the messages of a wire record: one, or one for each event of a batch."""
    content_type = parts.content_type
    if content_type is not None and content_type[: len(_PREFIX)].lower() == _PREFIX:
        return _read_enveloped(parts, content_type)
    return (_read_binary(parts),)


# -- binary ---------------------------------------------------------------------------------------------------------


def _read_binary(parts: WireParts) -> Received:
    attributes, problems = parts.attributes, parts.problems
    if not _has_attributes(parts):
        notes = [problem for problem in problems if problem.severity is not Severity.ERROR]
        return parts.message("native", None, JsonEvent({}, _payload(parts, None), notes))
    problems += (malformed(*wrong) for wrong in wrong_attributes(attributes))
    event = JsonEvent(attributes, _payload(parts, attributes.get("datacontenttype")), problems)
    return parts.message(event_kind(problems), "binary", event)


def _has_attributes(parts: WireParts) -> bool:
    """Return whether the message has enough attributes to be a CloudEvent in binary mode, valid or malformed."""
    mandatory = _MANDATORY_NAMES & parts.attributes.keys() if parts.attributes else _NO_NAMES
    if parts.binding.bare_names:
        return "specversion" in mandatory and len(mandatory) > 1
    return bool(mandatory)


def _payload(parts: WireParts, declared: Any) -> Payload | None:
    if parts.body is None:
        return None
    return Payload(parts.body, content_type=declared if isinstance(declared, str) else parts.content_type)


# -- structured and batch -------------------------------------------------------------------------------------------


def _read_enveloped(parts: WireParts, content_type: str) -> tuple[Received, ...]:
    media_type, binding = content_type.partition(";")[0].strip().lower(), parts.binding
    if media_type == MEDIA_TYPE or (media_type == _PREFIX and binding.bare_is_json):
        return (_read_structured(parts),)
    if media_type == BATCH_MEDIA_TYPE and binding.batch:
        return _read_batch(parts)
    # Reading: a batch is unsupported in bindings without batches, and the type without a format outside of NATS.
    expected = f"{MEDIA_TYPE} or {BATCH_MEDIA_TYPE}" if binding.batch else MEDIA_TYPE
    problem = Problem("unsupported-event-format", slot="content-type", expected=expected, actual=preview(content_type))
    mode: Mode = "batch" if media_type.startswith(f"{_PREFIX}-batch") else "structured"
    return (_unreadable(parts, "unsupported", mode, problem),)


def _read_structured(parts: WireParts) -> Received:
    try:
        event = read_event(parts.body)
    except NotAnEvent as error:
        return _unreadable(parts, "malformed", "structured", error.problem)
    event.problems.extend(_overridden_headers(parts, event.attributes))
    return parts.message(event_kind(event.problems), "structured", event)


def _read_batch(parts: WireParts) -> tuple[Received, ...]:
    try:
        events = read_batch(parts.body)
    except NotAnEvent as error:
        return (_unreadable(parts, "malformed", "batch", error.problem),)
    return tuple(parts.message(event_kind(event.problems), "batch", event, index) for index, event in enumerate(events))


def _unreadable(parts: WireParts, kind: Kind, mode: Mode, problem: Problem) -> Received:
    """Return a structured message whose event cannot be read: its raw bytes, and the attributes of binary mode."""
    return parts.message(kind, mode, JsonEvent(parts.attributes, _payload(parts, None), [problem, *parts.problems]))


def _overridden_headers(parts: WireParts, attributes: dict[str, Any]) -> list[Problem]:
    """Return the problems of headers that differ from the structured event, which takes precedence."""
    return [
        Problem(
            "envelope-overrides-header", slot=attribute_slot(name), expected=preview(inside), actual=preview(outside)
        )
        for name, outside in parts.attributes.items()
        if (inside := attributes.get(name)) is not None or not parts.binding.bare_names
        if name != "datacontenttype" and inside != outside and _canonical(inside) != _canonical(outside)
    ]


def _canonical(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- the result -----------------------------------------------------------------------------------------------------


def event_kind(problems: list[Problem]) -> Kind:
    """Return ``malformed`` if one of the problems is an error, else ``cloudevent``."""
    return "malformed" if problems and any(p.severity is Severity.ERROR for p in problems) else "cloudevent"


def bounded(problems: list[Problem]) -> tuple[Problem, ...]:
    """Return at most 20 problems. If there are more, errors come first."""
    if len(problems) > MAX_PROBLEMS:
        problems = sorted(problems, key=lambda problem: problem.severity is not Severity.ERROR)[:MAX_PROBLEMS]
    return tuple(problems)


# -- for the bindings ----------------------------------------------------------------------------------------------


def add_attribute(attributes: dict[str, Any], name: str, value: Any, problems: list[Problem]) -> None:
    """Add an attribute. If it is repeated, the first one counts, and a different value is a problem."""
    if name not in attributes:
        attributes[name] = value
        # Reading: a repeated attribute violates a MUST, but the event is readable, so it is reported and not malformed.
    elif attributes[name] != value:
        slot = attribute_slot(preview(name))
        problems.append(
            Problem("repeated-attribute", slot=slot, expected=preview(attributes[name]), actual=preview(value))
        )


def add_text_attribute(parts: WireParts, name: str, value: str | bytes | None) -> None:
    """Add an attribute whose value is text. Bytes, which are not valid UTF-8, are a problem."""
    if not isinstance(value, str):
        parts.problems.append(not_text(name, value))
    add_attribute(parts.attributes, name, value, parts.problems)


def map_content_type(parts: WireParts) -> None:
    """Set `datacontenttype` to the content type. An attribute of that name counts as repeated."""
    if parts.attributes and parts.content_type is not None:
        other = parts.attributes.pop("datacontenttype", parts.content_type)
        parts.attributes["datacontenttype"] = parts.content_type
        add_attribute(parts.attributes, "datacontenttype", other, parts.problems)


def not_text(name: str, actual: Any) -> Problem:
    """Return the problem of an attribute whose bytes are not valid UTF-8."""
    return Problem("malformed-cloudevent", slot=attribute_slot(preview(name)), expected="UTF-8", actual=preview(actual))
