"""What an application asks for when it builds a message, and what it gets.

Spec: docs/semantics.md D21-D23, D40
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import uuid4

from wirebook.bindings import AnyMessage
from wirebook.bindings.write import WriteMode
from wirebook.problems import Problem, Severity
from wirebook.schema import Payload

Encoding = Literal["place", "raw", "rfc6570"]


def current_time() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Request:
    """What the application gives for one message.

    Shape: `context` placeholder to text; `attributes` by CloudEvents name and `properties` by slot (``key``,
    ``headers.X-Trace``, ``application-properties.n``; a list of values where names repeat) are what the definition
    leaves open. `encoding` of placeholders: as their places ask, never, or always (D21). `allow_incomplete` builds
    from a definition whose base is missing (D40).
    """

    context: Mapping[str, str] = field(default_factory=dict)
    payload: Payload | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    protocol: str | None = None
    mode: WriteMode | None = None
    now: Callable[[], str] = current_time
    new_id: Callable[[], str] = lambda: str(uuid4())
    encoding: Encoding = "place"
    allow_incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """A message, and what is to be said about it; with an error there is none."""

    wire: AnyMessage | None
    problems: tuple[Problem, ...] = ()

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(each for each in self.problems if each.severity is Severity.ERROR)
