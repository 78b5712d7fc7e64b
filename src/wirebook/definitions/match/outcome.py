"""The outcome of matching one message.

Spec: docs/outcomes.md; docs/semantics.md D26
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wirebook.bindings import Received
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.match.cloudevent import EventContent, synthesize_event
from wirebook.problems import Problem, WirebookError
from wirebook.schema import DecodedPayload, Payload
from wirebook.text.json import JsonError, parse_json
from wirebook.text.mediatypes import is_json

if TYPE_CHECKING:
    from cloudevents.core.v1.event import CloudEvent

    from wirebook.convert.cloudevents import PlainCloudEvent


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A definition that almost matched, and the problems that prevented it."""

    definition: str
    problems: tuple[Problem, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"definition": self.definition, "problems": [problem.reason() for problem in self.problems]}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of matching one message.

    `outcome` is one of the outcomes of docs/outcomes.md (``matched``, ``unexpected``, ...). `definition` is the XID of
    the definition, None unless exactly one was chosen. `bindings` maps placeholders to their text. `reading` is the
    decoded payload, None if the definition has no schema. `near` has at most three definitions, the closest first. If
    the message has no envelope but the definition does (`synthesized`), `template` is the definition to create a
    CloudEvent from.
    """

    outcome: str
    received: Received = field(repr=False)
    definition: str | None = None
    bindings: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    near: tuple[NearMiss, ...] = field(default=(), repr=False)
    reading: DecodedPayload | None = field(default=None, repr=False)
    ambiguous_bindings: bool = field(default=False, repr=False)
    synthesized: bool = field(default=False, repr=False)
    template: Definition | None = field(default=None, repr=False, compare=False)

    @property
    def matched(self) -> bool:
        return self.outcome == "matched"

    @property
    def payload(self) -> Payload | None:
        """The data as received, or None if there is none. A body of zero bytes is data if its schema accepts it."""
        if self.received.is_empty and self.reading is not None and self.reading.outcome is None:
            return Payload(b"", content_type=self.received.content_type)
        return self.received.payload

    @property
    def data(self) -> Any:
        """The payload as decoded with its schema; without a schema, a JSON value or bytes; None if there is no data.

        Without a schema, data with a JSON content type is parsed. Other data is bytes, as is data that is not valid
        JSON. This applies to every content mode.
        """
        if self.reading is not None:
            return self.reading.value
        payload = self.received.payload
        if payload is None:
            return None
        if payload.raw is None:
            return payload.value
        if not is_json(payload.content_type):
            return payload.raw
        try:
            return parse_json(payload.raw)
        except JsonError:
            return payload.raw

    def event(self) -> EventContent | None:
        """Return the attributes and data of the message as a CloudEvent; see `to_cloudevent`."""
        if self.received.kind == "cloudevent":
            return EventContent(self.received.attributes, self.payload)
        if not self.matched and not self.synthesized:
            message = f"the message is not a CloudEvent ({self.received.kind}) and did not match a definition of one"
            raise WirebookError(Problem("no-cloudevent", message, slot="envelope", actual=self.outcome), *self.problems)
        if self.template is None:
            return None
        return synthesize_event(self.template, self.received, self.bindings, self.payload)

    def to_cloudevent(self) -> CloudEvent | PlainCloudEvent | None:
        """The message as an event of the CloudEvents SDK (extra ``cloudevents``) or an object with the same getters.

        A message without an envelope that matched a CloudEvents definition (`accept_native`) becomes the event that the
        definition describes. The result is None if the definition has no envelope, or does not determine a required
        attribute such as `source`.

        Raises: WirebookError (``no-cloudevent``) if the message is not a CloudEvent and did not match.
        """
        from wirebook.convert.cloudevents import event_of  # noqa: PLC0415 (optional)

        event = self.event()
        return None if event is None else event_of(*event)

    def to_dict(self) -> dict[str, Any]:
        """The members that `match --json` prints for a message."""
        return {
            "outcome": self.outcome,
            "definition": self.definition,
            "bindings": dict(self.bindings),
            "problems": [problem.reason() for problem in self.problems],
            "near": [near.to_dict() for near in self.near],
        }
