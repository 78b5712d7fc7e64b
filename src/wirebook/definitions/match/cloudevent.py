"""Create a CloudEvent from a message without an envelope and the definition that it matched.

Spec: docs/semantics.md R20, D26
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from wirebook.bindings import Received
from wirebook.bindings.attributes import wrong_attributes
from wirebook.definitions.build.builder import content_type_of, event_attributes
from wirebook.definitions.build.rendering import Rendering
from wirebook.definitions.build.request import BuildRequest, current_time
from wirebook.definitions.compile.definition import Definition
from wirebook.problems import Severity
from wirebook.schema import Payload


class EventContent(NamedTuple):
    """The attributes of a CloudEvent, including `datacontenttype`, and its data."""

    attributes: dict[str, Any]
    payload: Payload | None


def synthesize_event(
    definition: Definition, received: Received, bindings: Mapping[str, str], payload: Payload | None
) -> EventContent | None:
    """Create the event that `definition` describes.

    Unless declared, the id is new, and the time is that of receipt, else the current time. Returns None if the
    definition does not determine a required attribute, or if an attribute has a value that CloudEvents does not allow.
    """
    request = BuildRequest(bindings, payload, now=lambda: received.received or current_time())
    rendering = Rendering(request)
    if payload is not None:
        payload = Payload(payload.raw, payload.value, content_type_of(definition, request))
    attributes = event_attributes(definition, rendering, {}, payload)
    if any(problem.severity is Severity.ERROR for problem in rendering.problems) or any(wrong_attributes(attributes)):
        return None
    return EventContent(attributes, payload)
