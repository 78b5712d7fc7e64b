"""Is it a CloudEvent, in which mode, and is it a sound one: the rules that all bindings share.

Rule: a content type ``application/cloudevents...`` says structured (or batch), whatever follows: what does not parse
then is malformed, an event format that is not JSON unsupported. Otherwise the binary form counts: all four of
`specversion`, `id`, `source`, `type` make a CloudEvent, some of them a malformed one, none a native message. For MQTT
5.0, whose attributes have bare names, `specversion` with another of the four is "some".

The reader reports and never repairs: of an attribute sent twice the first counts; in structured mode the body wins
over headers that repeat an attribute.

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
from wirebook.bindings.wire import WireMessage, shown
from wirebook.problems import Problem, Severity
from wirebook.schema.payload import Payload

MAX_PROBLEMS: Final = 20
_PREFIX: Final = "application/cloudevents"
_FOUR: Final = frozenset(MANDATORY)
_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Binding:
    """What differs between the bindings: is there a batch, does the bare media type mean JSON, are names bare."""

    protocol: str
    batch: bool = False
    bare_is_json: bool = False
    bare_names: bool = False


@dataclass(slots=True)
class WireParts:
    """A wire message, taken apart by its binding: `attributes` are those of the binary form."""

    binding: Binding
    wire: WireMessage
    body: bytes | None
    content_type: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def message(self, kind: Kind, mode: Mode | None, event: JsonEvent, index: int = 0) -> Received:
        """What was received, with the parts of an event."""
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
    """What a writer puts into a wire message.

    Shape: `attributes` without `datacontenttype`, as native values; `texts`, the same as canonical strings.
    """

    attributes: dict[str, Any]
    texts: dict[str, str]
    content_type: str | None
    data: bytes | None

    def content_type_line(self, name: str) -> list[tuple[str, Any]]:
        """The header `name` with the content type, if there is one."""
        return [] if self.content_type is None else [(name, self.content_type)]


def read_parts(parts: WireParts) -> tuple[Received, ...]:
    """The messages that a wire record carries: one, or those of its batch."""
    content_type = parts.content_type
    if content_type is not None and content_type[: len(_PREFIX)].lower() == _PREFIX:
        return _read_enveloped(parts, content_type)
    return (_read_binary(parts),)


# -- binary ---------------------------------------------------------------------------------------------------------


def _read_binary(parts: WireParts) -> Received:
    attributes, problems = parts.attributes, parts.problems
    if not _claims(parts):
        remarks = [problem for problem in problems if problem.severity is not Severity.ERROR]
        return parts.message("native", None, JsonEvent({}, _payload(parts, None), remarks))
    problems += (malformed(*wrong) for wrong in wrong_attributes(attributes))
    event = JsonEvent(attributes, _payload(parts, attributes.get("datacontenttype")), problems)
    return parts.message(event_kind(problems), "binary", event)


def _claims(parts: WireParts) -> bool:
    """Does the message claim to be a CloudEvent in the binary form?"""
    some = _FOUR & parts.attributes.keys() if parts.attributes else _NONE
    return "specversion" in some and len(some) > 1 if parts.binding.bare_names else bool(some)


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
    # Reading: a batch over a binding without batches, and the bare media type outside of NATS, name no known format.
    expected = f"{MEDIA_TYPE} or {BATCH_MEDIA_TYPE}" if binding.batch else MEDIA_TYPE
    problem = Problem("unsupported-event-format", slot="content-type", expected=expected, actual=shown(content_type))
    mode: Mode = "batch" if media_type.startswith(f"{_PREFIX}-batch") else "structured"
    return (_unread(parts, "unsupported", mode, problem),)


def _read_structured(parts: WireParts) -> Received:
    try:
        event = read_event(parts.body)
    except NotAnEvent as error:
        return _unread(parts, "malformed", "structured", error.problem)
    event.problems.extend(_overridden(parts, event.attributes))
    return parts.message(event_kind(event.problems), "structured", event)


def _read_batch(parts: WireParts) -> tuple[Received, ...]:
    try:
        events = read_batch(parts.body)
    except NotAnEvent as error:
        return (_unread(parts, "malformed", "batch", error.problem),)
    return tuple(parts.message(event_kind(event.problems), "batch", event, index) for index, event in enumerate(events))


def _unread(parts: WireParts, kind: Kind, mode: Mode, problem: Problem) -> Received:
    """An enveloped message whose envelope is closed to us: attributes of the binary form, if any, and raw bytes."""
    return parts.message(kind, mode, JsonEvent(parts.attributes, _payload(parts, None), [problem, *parts.problems]))


def _overridden(parts: WireParts, attributes: dict[str, Any]) -> list[Problem]:
    """Headers beside a structured event that say something else than the event, which wins."""
    return [
        Problem("envelope-overrides-header", slot=attribute_slot(name), expected=shown(inside), actual=shown(outside))
        for name, outside in parts.attributes.items()
        if (inside := attributes.get(name)) is not None or not parts.binding.bare_names
        if name != "datacontenttype" and not _same(inside, outside)
    ]


def _same(inside: Any, outside: Any) -> bool:
    return bool(inside == outside) or _canonical(inside) == _canonical(outside)


def _canonical(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- the result -----------------------------------------------------------------------------------------------------


def event_kind(problems: list[Problem]) -> Kind:
    """A CloudEvent, unless a problem is an error."""
    return "malformed" if problems and any(p.severity is Severity.ERROR for p in problems) else "cloudevent"


def bounded(problems: list[Problem]) -> tuple[Problem, ...]:
    """Not more than a report can use, the errors first then."""
    if len(problems) > MAX_PROBLEMS:
        problems = sorted(problems, key=lambda problem: problem.severity is not Severity.ERROR)[:MAX_PROBLEMS]
    return tuple(problems)


# -- what the bindings use ------------------------------------------------------------------------------------------


def add_attribute(attributes: dict[str, Any], name: str, value: Any, problems: list[Problem]) -> None:
    """Take an attribute from the wire: the first of a repeated one counts."""
    if name not in attributes:
        attributes[name] = value
        # Reading: an attribute sent twice breaks a MUST, but leaves the event readable: reported, not malformed.
    elif attributes[name] != value:
        slot = attribute_slot(shown(name))
        problems.append(Problem("repeated-attribute", slot=slot, expected=shown(attributes[name]), actual=shown(value)))


def map_content_type(parts: WireParts) -> None:
    """The content type is `datacontenttype`; an attribute of that name beside it is a repeat."""
    if parts.attributes and parts.content_type is not None:
        other = parts.attributes.pop("datacontenttype", parts.content_type)
        parts.attributes["datacontenttype"] = parts.content_type
        add_attribute(parts.attributes, "datacontenttype", other, parts.problems)


def not_text(name: str, actual: Any) -> Problem:
    """An attribute's bytes are no text."""
    return Problem("malformed-cloudevent", slot=attribute_slot(shown(name)), expected="UTF-8", actual=shown(actual))
