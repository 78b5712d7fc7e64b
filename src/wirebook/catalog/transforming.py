"""Transforming: a message that one definition recognises becomes the message of another.

What the two share are names: the placeholders of the one fill those of the other.

Spec: docs/semantics.md R9, R20, D26
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wirebook.bindings import CLASSES, Received
from wirebook.bindings.attributes import WELL_KNOWN
from wirebook.bindings.jsonwrite import canonical_text
from wirebook.catalog.building import TextOrBytes, built_from, usable_definition
from wirebook.definitions.build.builder import BuildRequest, Built
from wirebook.definitions.build.request import current_time
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.slots import ENVELOPE
from wirebook.definitions.match.outcome import Outcome
from wirebook.problems import Problem
from wirebook.schema import Payload

if TYPE_CHECKING:
    from wirebook.catalog.catalog import Catalog

# What an event says of itself and its data, and not of what happened.
OWN_ATTRIBUTES = frozenset({"specversion", "type", "datacontenttype", "dataschema"})


def transformed(catalog: Catalog, outcome: Outcome, to: str, request: BuildRequest) -> Built:
    """The message of the definition `to` that says what a matched message says.

    Rule: the bindings are the context; `request` adds to them, and may not say otherwise. Attributes of a CloudEvent
    that the target leaves open go along, but those that describe its type and data; without a time it is that of
    receipt. The payload goes along as it is where the target takes it so, else as a value, which is written anew. The
    protocol is the target's, else the request's, else the message's.
    Raises: WirebookError (``not-buildable``) when the catalogue has no such definition.
    """
    target = usable_definition(catalog, to)
    if not outcome.matched:
        return Built(None, (_unmatched(outcome), *outcome.problems))
    if conflicts := tuple(_conflicts(outcome, request)):
        return Built(None, conflicts)
    received = outcome.received
    request = replace(
        request,
        context={**request.context, **outcome.bindings},
        attributes={**_attributes(outcome, target), **request.attributes},
        protocol=target.protocol or request.protocol or _protocol(received),
        now=lambda: received.received or current_time(),
    )
    tried = [built_from(catalog, to, request, data) for data in _payloads(outcome, target)]
    return next((built for built in tried if built.wire is not None), tried[-1])


def _unmatched(outcome: Outcome) -> Problem:
    text = f"the message is {outcome.outcome}, so it says nothing that could be passed on"
    return Problem("not-transformable", text, expected="matched", actual=outcome.outcome)


def _conflicts(outcome: Outcome, request: BuildRequest) -> Iterator[Problem]:
    """Placeholders that the message says, and the application otherwise: either may be wrong."""
    for name, given in request.context.items():
        bound = outcome.bindings.get(name)
        if bound is not None and bound != given:
            text = f"'{name}' is '{bound}' in the message, and '{given}' was given"
            yield Problem("placeholder-conflict", text, slot="bindings", expected=bound, actual=given)


def _protocol(received: Received) -> str | None:
    return received.protocol if received.protocol in CLASSES else None


def _attributes(outcome: Outcome, target: Definition) -> dict[str, Any]:
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
        name: canonical_text(value) if name in WELL_KNOWN else value  # AMQP may have numbers where texts belong
        for name, value in attributes.items()
        if name not in fixed | OWN_ATTRIBUTES
    }


def _payloads(outcome: Outcome, target: Definition) -> Iterator[Any]:
    """The data in the forms that a target may take: as it came, then, for a schema, as the value that it is."""
    payload = outcome.payload
    if payload is None:
        yield None
        return
    yield payload if payload.raw is None else Payload(payload.raw, content_type=payload.content_type)
    if target.has_schema and payload.raw is not None:
        yield TextOrBytes(payload.raw)
    if target.has_schema and outcome.reading is not None and outcome.reading.value is not None:
        yield outcome.reading.value
