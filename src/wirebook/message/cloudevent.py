"""A message as a CloudEvent: the one that it carries, or the one that its definition makes of it.

Spec: docs/semantics.md R20, D26
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wirebook.bindings import Received
from wirebook.message.builder import content_type_of, event_attributes
from wirebook.message.filling import Filling
from wirebook.message.request import Request, current_time
from wirebook.problems import Problem, Severity, WirebookError
from wirebook.schema import Payload

if TYPE_CHECKING:
    from wirebook.message.selection import Outcome


class Event(NamedTuple):
    """Attributes, `datacontenttype` among them, and data."""

    attributes: dict[str, Any]
    payload: Payload | None


def event_in(outcome: Outcome) -> Event:
    """The event of an outcome.

    Rule: a message without envelope that a definition with one matched (`accept_native`) gets the definition's
    attributes, filled from the bindings; an id of its own; the time of receipt, or the present.
    Raises: WirebookError (``no-cloudevent`` and what keeps the definition from making one).
    """
    received = outcome.received
    if received.kind == "cloudevent":
        return Event(received.attributes, outcome.payload)
    if not outcome.synthesized or outcome.template is None:
        text = f"the message is no CloudEvent ({received.kind}), and no definition makes one of it"
        raise WirebookError(Problem("no-cloudevent", text, slot="envelope", actual=outcome.outcome), *outcome.problems)
    return _synthesized(outcome, received)


def _synthesized(outcome: Outcome, received: Received) -> Event:
    definition = outcome.template
    assert definition is not None
    request = Request(outcome.bindings, outcome.payload, now=lambda: received.received or current_time())
    filling = Filling(request)
    payload = outcome.payload
    if payload is not None:
        payload = Payload(payload.raw, payload.value, content_type_of(definition, request))
    attributes = event_attributes(definition, filling, {}, payload)
    errors = [problem for problem in filling.problems if problem.severity is Severity.ERROR]
    if errors:
        raise WirebookError(*errors)
    return Event(attributes, payload)
