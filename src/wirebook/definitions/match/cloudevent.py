"""A message as a CloudEvent: the one that it carries, or the one that its definition makes of it.

Spec: docs/semantics.md R20, D26
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebook.bindings.attributes import wrong_attributes
from wirebook.definitions.build.builder import content_type_of, event_attributes
from wirebook.definitions.build.rendering import Filling
from wirebook.definitions.build.request import BuildRequest, current_time
from wirebook.problems import Problem, Severity, WirebookError
from wirebook.schema import Payload

if TYPE_CHECKING:
    from wirebook.definitions.compile.definition import Definition
    from wirebook.definitions.match.selection import Outcome


class EventContent(NamedTuple):
    """Attributes, `datacontenttype` among them, and data."""

    attributes: dict[str, Any]
    payload: Payload | None


def event_in(outcome: Outcome) -> EventContent | None:
    """The event of an outcome; None for a matched message that is not a CloudEvent and that no event can be made of.

    Rule: a message without envelope that a definition with one matched (`accept_native`) gets the definition's
    attributes, filled from the bindings; an id of its own; the time of receipt, or the present. No event can be made
    if the definition has no envelope, leaves an attribute open that CloudEvents requires, or gives a value that
    CloudEvents does not allow.
    Raises: WirebookError (``no-cloudevent``) for a message that is not a CloudEvent and did not match.
    """
    received = outcome.received
    if received.kind == "cloudevent":
        return EventContent(received.attributes, outcome.payload)
    if not outcome.matched and not outcome.synthesized:
        text = f"the message is not a CloudEvent ({received.kind}), and no definition makes one of it"
        raise WirebookError(Problem("no-cloudevent", text, slot="envelope", actual=outcome.outcome), *outcome.problems)
    return None if outcome.template is None else _synthesized(outcome, outcome.template)


def _synthesized(outcome: Outcome, definition: Definition) -> EventContent | None:
    received, payload = outcome.received, outcome.payload
    request = BuildRequest(outcome.bindings, payload, now=lambda: received.received or current_time())
    filling = Filling(request)
    if payload is not None:
        payload = Payload(payload.raw, payload.value, content_type_of(definition, request))
    attributes = event_attributes(definition, filling, {}, payload)
    is_incomplete = any(problem.severity is Severity.ERROR for problem in filling.problems)
    return None if is_incomplete or any(wrong_attributes(attributes)) else EventContent(attributes, payload)
