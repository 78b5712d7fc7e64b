"""Render the values of slots: constants, templates expanded with the context, and values of the application.

Spec: docs/semantics.md R11, D5, D21-D23, D31
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from wirebook.bindings import Timestamp, Uuid
from wirebook.bindings.attributes import INT32, is_uri_reference
from wirebook.bindings.http import Escaped
from wirebook.bindings.json_event import canonical_text
from wirebook.bindings.write_checks import SURROGATE
from wirebook.definitions.build.request import BuildRequest
from wirebook.definitions.compile.definition import Constraint
from wirebook.definitions.compile.fit import ValueMatch, ValueMismatch, fit, problem_of
from wirebook.definitions.compile.slots import AMQP_SECTIONS, ENVELOPE
from wirebook.definitions.compile.uritemplate import QUERY, Template, percent_encode, placeholders, uri_text
from wirebook.definitions.compile.values import NotOfType, canonical
from wirebook.problems import Problem


@dataclass(slots=True)
class Rendering:
    """Renders the slots of one message and collects the problems.

    `empty` has the labels of slots that remain empty, because a placeholder has no value or the rendered text does not
    have the type of the slot.
    """

    request: BuildRequest
    problems: list[Problem] = field(default_factory=list)
    empty: set[str] = field(default_factory=set)

    def render(self, constraint: Constraint, supplied: Any) -> Any:
        """Render the value of a slot, in the type that the slot has on the wire; None if there is no value.

        `supplied` is the value of the application, or None. If it contradicts the definition, that is a problem (D23).
        """
        declared = self._render_declared(constraint)
        if constraint.label in self.empty:
            return None
        if declared is not None:
            if supplied is not None and not _is_same(constraint, declared, supplied):
                self.problems.append(problem_of("constant-override", constraint, supplied, declared))
            return typed_value(constraint, declared)
        if supplied is None:
            return typed_value(constraint, self.request.now()) if constraint.current_time else None
        return typed_value(constraint, supplied) if self._check(constraint, supplied) else supplied

    def require_values(self, constraints: Iterable[Constraint], values: Mapping[str, Any]) -> None:
        """Add a problem for each required slot without a value. `values` are by slot name."""
        for constraint in constraints:
            is_absent = values.get(constraint.slot.name) is None
            if constraint.required and is_absent and constraint.label not in self.empty:
                self.problems.append(problem_of("missing-required", constraint, None))

    def _render_declared(self, constraint: Constraint) -> Any:
        """Return the declared constant, or the expanded template; None if no value is declared."""
        template, context = constraint.template, self.request.context
        if template is None:
            return constraint.declared
        if missing_names(template.names, context):
            self.empty.add(constraint.label)
            return None
        if template.place == QUERY:
            return _query_value(template.text, context)
        text = template.expand(context, encoding=self.request.encoding)
        if (expected := _violated_rule(template, text)) is not None:
            problem = problem_of("illegal-character", constraint, text, constraint.declared)
            message = f"{constraint.label}: '{template.text}' becomes '{problem.actual}'; expected {expected}"
            self.problems.append(msgspec.structs.replace(problem, message=message))
            return text
        # The only possible fault of a string is a character that is not allowed.
        if not self._check(constraint, text, "illegal-character" if constraint.type == "string" else None):
            self.empty.add(constraint.label)
            return None
        return text

    def _check(self, constraint: Constraint, value: Any, code: str | None = None) -> bool:
        """Return whether `value` satisfies the constraint; if not, add a problem."""
        result = _fit(constraint, value)
        if isinstance(result, ValueMismatch):
            self.problems.append(problem_of(code or result.code, constraint, value, result.expected))
        return not isinstance(result, ValueMismatch)


def missing_names(names: Iterable[str], context: Mapping[str, str]) -> list[str]:
    """The placeholders without a value. Empty text (D22) and text with a lone surrogate do not count as values."""
    values = ((name, context.get(name)) for name in names)
    return [name for name, value in values if not (isinstance(value, str) and value and not SURROGATE.search(value))]


def application_value(value: Any) -> Any:
    """Convert a datetime with an offset, or a UUID, to `Timestamp` or `Uuid`; return other values unchanged."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return Timestamp(value.isoformat().replace("+00:00", "Z"))
    return Uuid(value) if isinstance(value, UUID) else value


def _violated_rule(template: Template, text: str) -> str | None:
    """Describe the rule of the slot that the values of the placeholders violate; None if they violate none."""
    place = template.place
    if template.match(text) is None:
        forbidden = place.forbidden if template.spanning else place.separator + place.forbidden
        return f"placeholder values without {', '.join(map(repr, forbidden))}"
    return "a URI reference (RFC 3986)" if place.uri and not is_uri_reference(text) else None


def _fit(constraint: Constraint, value: Any) -> ValueMatch | ValueMismatch:
    """Compare a value of the application with a constraint. In every protocol, text for a ``binary`` slot is base64."""
    if constraint.type != "binary" or not isinstance(value, str):
        return fit(constraint, value)
    try:
        return fit(constraint, canonical("binary", value).value)
    except NotOfType as error:
        return ValueMismatch("wrong-type", str(error))


def _is_same(constraint: Constraint, declared: Any, supplied: Any) -> bool:
    """Whether the supplied value equals the value that the definition declares (D23)."""
    if constraint.template is None:
        return not isinstance(_fit(constraint, supplied), ValueMismatch)
    if constraint.kind.place.has_uri_text and isinstance(supplied, str):
        supplied = uri_text(supplied)
    try:
        return canonical(constraint.type, supplied) == canonical(constraint.type, str(declared))
    except NotOfType:
        return False


def _query_value(template: str, context: Mapping[str, str]) -> Escaped:
    """Expand and percent-encode a query value. Slashes of literals are not encoded, so that `match` can split it."""
    for name in dict.fromkeys(placeholders(template)):
        template = template.replace(f"{{{name}}}", f"\0{name}\0")
    literals_and_names = template.split("\0")
    encoded = [
        percent_encode(context[part]) if index % 2 else percent_encode(part).replace("%2F", "/")
        for index, part in enumerate(literals_and_names)
    ]
    return Escaped("".join(encoded))


# -- types ----------------------------------------------------------------------------------------------------------


def typed_value(constraint: Constraint, value: Any) -> Any:
    """Convert a value to the type that its slot has on the wire.

    Native slots have the declared type: ``"5"`` becomes 5, base64 becomes bytes, and AMQP sections also have timestamps
    and UUIDs. CloudEvents attributes have the declared type, too, but numbers without a CloudEvents type become
    canonical text. Text slots have canonical text.
    """
    convert = CONVERTERS.get(constraint.type)
    if constraint.slot.section in AMQP_SECTIONS:
        convert = AMQP_CONVERTERS.get(constraint.type, convert)
    typed = value if convert is None or not isinstance(value, str) else convert(value)
    if constraint.slot.section == ENVELOPE:
        is_wide = isinstance(typed, float) or (isinstance(typed, int) and not INT32[0] <= typed <= INT32[1])
        return canonical_text(typed) if is_wide else typed
    if isinstance(typed, (bool, int, float)):
        return typed if constraint.kind.wire == "native" else canonical_text(typed)
    if isinstance(typed, bytes) and constraint.kind.wire == "text":
        # Bytes for a header of type `any` are sent unchanged.
        return typed if constraint.type == "any" and constraint.slot.section == "headers" else canonical_text(typed)
    return typed


CONVERTERS: Final[dict[str, Callable[[str], Any]]] = {
    "integer": int,
    "uint32": int,
    "ulong": int,
    "number": lambda text: float(text) if any(character in text for character in ".eE") else int(text),
    "boolean": lambda text: text == "true",
    "binary": base64.b64decode,
}
"""Convert canonical text to the Python value of a type. Values of other types remain text."""

AMQP_CONVERTERS: Final[dict[str, Callable[[str], Any]]] = {
    "timestamp": Timestamp,
    "uuid": Uuid,
    "ulong": lambda text: {"ulong": int(text)},
    "symbol": lambda text: {"symbol": text},
}
