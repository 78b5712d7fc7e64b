"""The request to build a message, and its result.

Spec: docs/semantics.md D21-D23, D40
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, Literal
from uuid import uuid4

from wirebook.bindings import AnyMessage
from wirebook.bindings.write import WriteMode
from wirebook.problems import Problem, Severity
from wirebook.schema import Payload

Encoding = Literal["place", "raw", "rfc6570"]
"""Percent-encoding of placeholder values (D21): as their slot requires, never, or always."""
MAX_INTEGER_BITS: Final = 4096
"""Larger integers are rejected, because converting them to text takes more than linear time."""


def _text(value: Any) -> Any:
    """The canonical text of a boolean or of a number (RFC 8785); any other value unchanged."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() <= MAX_INTEGER_BITS:
        return str(int(value))
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    text = float.__repr__(value)
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(text), "f")
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent):+d}"


def current_time() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """The values that an application supplies for one message.

    `context` maps placeholders to strings, numbers or booleans; numbers and booleans become their canonical text, and
    `build` reports other values as errors. `attributes` (by CloudEvents name) and `properties` (by slot: ``key``,
    ``headers.X-Trace``, ``application-properties.n``; a list for repeated names) are values that the definition does
    not declare. `protocol` and `mode` are needed only if the definition does not declare them and the default is not
    suitable. `allow_incomplete` permits a definition whose base is missing (D40).
    """

    context: Mapping[str, Any] = field(default_factory=dict)
    payload: Payload | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    protocol: str | None = None
    mode: WriteMode | None = None
    now: Callable[[], str] = current_time
    new_id: Callable[[], str] = lambda: str(uuid4())
    encoding: Encoding = "place"
    allow_incomplete: bool = False

    def __post_init__(self) -> None:
        if not all(type(value) is str for value in self.context.values()):
            texts = {name: _text(value) for name, value in self.context.items()}
            object.__setattr__(self, "context", texts)


@dataclass(frozen=True, slots=True, repr=False)
class Built:
    """The built message and the problems found. If one of them is an error, `wire` is None."""

    wire: AnyMessage | None
    problems: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        type_ = None if self.wire is None else type(self.wire).__name__
        return f"Built(wire={type_}, problems={[problem.code for problem in self.problems]})"

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)
