"""Transform a message that one definition matches into a message of another definition.

The two definitions share placeholder names: the values from the matched message are the context of the new message.

Spec: docs/semantics.md R9, R20, D26.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from wirebook.bindings import CLASSES
from wirebook.bindings.attributes import WELL_KNOWN
from wirebook.bindings.json_event import canonical_text
from wirebook.catalog.building import Schema, TextOrBytes, build_message
from wirebook.definitions.build.builder import BuildRequest, Built
from wirebook.definitions.build.request import current_time
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.slots import ENVELOPE
from wirebook.definitions.match.options import MatchOptions
from wirebook.definitions.match.outcome import Outcome
from wirebook.problems import Problem
from wirebook.schema import Payload

# Attributes that describe the event's type and data; the target definition sets its own.
NOT_COPIED: Final = frozenset({"specversion", "type", "datacontenttype", "dataschema"})


def transform_message(
    outcome: Outcome, target: Definition, schema: Schema, request: BuildRequest, options: MatchOptions
) -> Built:
    """Build the message of `target` (whose payload schema is `schema`) from a matched message.

    Rule: the context is the bindings plus `request.context`; a name with two different values is a problem
    (``placeholder-conflict``). CloudEvents attributes that the target does not fix are copied, except those that
    describe its type and data; a missing `time` is the time of receipt. The payload is copied if the target accepts it;
    otherwise its decoded value is encoded again. The protocol is the target's, else the request's, else the message's.
    """
    if not outcome.matched:
        message = f"only matched messages can be transformed; the outcome of this message is '{outcome.outcome}'"
        problem = Problem("not-transformable", message, expected="matched", actual=outcome.outcome)
        return Built(None, (problem, *outcome.problems))
    if conflicts := tuple(_conflicts(outcome, request)):
        return Built(None, conflicts)
    received = outcome.received
    own_protocol = received.protocol if received.protocol in CLASSES else None
    request = replace(
        request,
        context={**request.context, **outcome.bindings},
        attributes={**_copied_attributes(outcome, target), **request.attributes},
        protocol=target.protocol or request.protocol or own_protocol,
        now=lambda: received.received or current_time(),
    )
    attempts = [build_message(target, schema, request, data, options) for data in _payload_candidates(outcome, target)]
    return next((built for built in attempts if built.wire is not None), attempts[-1])


def _conflicts(outcome: Outcome, request: BuildRequest) -> Iterator[Problem]:
    """Yield a problem for each placeholder whose value in the message differs from the one in the request."""
    for name, value in request.context.items():
        bound = outcome.bindings.get(name)
        if bound is not None and bound != value:
            message = f"the placeholder '{name}' is '{bound}' in the message but '{value}' in the context; remove one"
            yield Problem("placeholder-conflict", message, slot="bindings", expected=bound, actual=value)


def _copied_attributes(outcome: Outcome, target: Definition) -> dict[str, Any]:
    """Return the CloudEvents attributes of the message that the target does not fix."""
    if not target.is_cloudevent or (outcome.received.kind != "cloudevent" and not outcome.synthesized):
        return {}
    fixed = {
        constraint.slot.name
        for constraint in target.constraints
        if constraint.slot.section == ENVELOPE and constraint.fixed
    }
    event = outcome.event()
    attributes = {} if event is None else event.attributes
    return {
        name: canonical_text(value)
        if name in WELL_KNOWN
        else value  # an AMQP message may have numbers where CloudEvents has strings
        for name, value in attributes.items()
        if name not in fixed | NOT_COPIED
    }


def _payload_candidates(outcome: Outcome, target: Definition) -> Iterator[Any]:
    """Yield the data to try, in order: as received; with a target schema also as JSON text and as decoded value."""
    payload = outcome.payload
    if payload is None:
        yield None
        return
    yield payload if payload.raw is None else Payload(payload.raw, content_type=payload.content_type)
    if target.has_schema and payload.raw is not None:
        yield TextOrBytes(payload.raw)
    if target.has_schema and outcome.reading is not None and outcome.reading.value is not None:
        yield outcome.reading.value
