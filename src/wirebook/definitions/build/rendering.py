"""The values of a message's slots: what the definition fixes, filled in, else what the application gives.

Spec: docs/semantics.md R11, D5, D21-D23, D31
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from wirebook.bindings import Timestamp, Uuid
from wirebook.bindings.attributes import INT32, is_uri_reference
from wirebook.bindings.http import Escaped
from wirebook.bindings.jsonwrite import canonical_text
from wirebook.bindings.strict import SURROGATE
from wirebook.definitions.build.request import BuildRequest
from wirebook.definitions.compile.definition import Constraint
from wirebook.definitions.compile.fit import ValueMatch, ValueMismatch, fit, problem_of
from wirebook.definitions.compile.slots import AMQP_SECTIONS, ENVELOPE
from wirebook.definitions.compile.uritemplate import QUERY, Template, percent_encode, placeholders, uri_text
from wirebook.definitions.compile.values import NotOfType, canonical
from wirebook.problems import Problem


@dataclass(slots=True)
class Filling:
    """One message in the making. Shape: `open` are the labels of slots that stay empty: a placeholder has
    no text, or one that does not fit the slot's type."""

    request: BuildRequest
    problems: list[Problem] = field(default_factory=list)
    open: set[str] = field(default_factory=set)

    def value(self, constraint: Constraint, given: Any) -> Any:
        """The slot's value in the kind that its type has; None when there is none."""
        fixed = self._fixed(constraint)
        if constraint.label in self.open:
            return None
        if fixed is None and given is None and constraint.current_time:
            return natural(constraint, self.request.now())
        if fixed is None:
            return self._checked(constraint, given)
        if given is not None and not _says(constraint, fixed, given):
            self.problems.append(problem_of("constant-override", constraint, given, fixed))
        return natural(constraint, fixed)

    def add_missing(self, constraints: Iterable[Constraint], values: Mapping[str, Any]) -> None:
        """A problem for each required slot without a value; `values` by slot name."""
        for constraint in constraints:
            absent = values.get(constraint.slot.name) is None
            if constraint.required and absent and constraint.label not in self.open:
                self.problems.append(problem_of("missing-required", constraint, None))

    def _fixed(self, constraint: Constraint) -> Any:
        template, context = constraint.template, self.request.context
        if template is None:
            return constraint.declared
        if not all(_is_given(context, name) for name in template.names):
            self.open.add(constraint.label)
            return None
        if template.place is QUERY:
            return _query_value(template.text, context)
        return self._expanded(constraint, template.expand(context, encoding=self.request.encoding))

    def _expanded(self, constraint: Constraint, text: str) -> str | None:
        template = constraint.template
        assert template is not None
        expected = _unfit(template, text)
        if expected is not None:
            found = problem_of("illegal-character", constraint, text, constraint.declared)
            message = f"{constraint.label}: '{template.text}' becomes '{found.actual}'; expected {expected}"
            self.problems.append(replace(found, message=message))
            return text
        code = "illegal-character" if constraint.type == "string" else None  # nothing else of a text can be wrong
        if not self._check(constraint, text, code):
            self.open.add(constraint.label)
            return None
        return text

    def _checked(self, constraint: Constraint, value: Any) -> Any:
        """`value` as its type has it, with a problem when it does not fit the slot's type."""
        return natural(constraint, value) if value is not None and self._check(constraint, value) else value

    def _check(self, constraint: Constraint, value: Any, code: str | None = None) -> bool:
        found = _fit(constraint, value)
        if isinstance(found, ValueMismatch):
            self.problems.append(problem_of(code or found.code, constraint, value, found.expected))
        return not isinstance(found, ValueMismatch)


def _unfit(template: Template, text: str) -> str | None:
    """What the place allows, when a value brought in what it forbids, or what would read as something else."""
    place = template.place
    if template.match(text) is None:
        outside = place.forbidden if template.spanning else place.separator + place.forbidden
        return f"placeholders there without {', '.join(map(repr, outside))}"
    return "a URI reference (RFC 3986)" if place.uri and not is_uri_reference(text) else None


def _fit(constraint: Constraint, given: Any) -> ValueMatch | ValueMismatch:
    """Does a value that the application gives fit? A text that stands for bytes is their base64, on every wire."""
    if constraint.type != "binary" or not isinstance(given, str):
        return fit(constraint, given)
    try:
        return fit(constraint, canonical("binary", given).value)
    except NotOfType as wrong:
        return ValueMismatch("wrong-type", str(wrong))


def _is_given(context: Mapping[str, str], name: str) -> bool:
    """Has the placeholder a text? An empty one is none (D22), and half a character is no text."""
    value = context.get(name)
    return isinstance(value, str) and bool(value) and not SURROGATE.search(value)


def missing_names(names: Iterable[str], context: Mapping[str, str]) -> list[str]:
    return [name for name in names if not _is_given(context, name)]


def _says(constraint: Constraint, fixed: Any, given: Any) -> bool:
    """Does the application give what the definition fixes (D23)?"""
    if constraint.template is None:
        return not isinstance(_fit(constraint, given), ValueMismatch)
    if constraint.kind.place.has_uri_text and isinstance(given, str):
        given = uri_text(given)
    try:
        return canonical(constraint.type, given) == canonical(constraint.type, str(fixed))
    except NotOfType:
        return False


def _query_value(text: str, context: Mapping[str, str]) -> Escaped:
    """A query value, encoded: a slash of the template stays, one of a value is escaped, so that they stay apart."""
    for name in dict.fromkeys(placeholders(text)):
        text = text.replace(f"{{{name}}}", f"\0{name}\0")
    parts = text.split("\0")
    encoded = [percent_encode(context[part]) if n % 2 else _literal(part) for n, part in enumerate(parts)]
    return Escaped("".join(encoded))


def _literal(text: str) -> str:
    return percent_encode(text).replace("%2F", "/")


def plain(value: Any) -> Any:
    """What an application gives, as messages have it: a datetime with its offset, and a UUID, as text."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return Timestamp(value.isoformat().replace("+00:00", "Z"))
    return Uuid(value) if isinstance(value, UUID) else value


# -- kinds ------------------------------------------------------------------------------------------------------------


def natural(constraint: Constraint, value: Any) -> Any:
    """A value that fits, as its slot has it.

    Native slots have the kind of the type: ``"5"`` as 5, base64 as bytes, in AMQP's sections also times. So do
    attributes, but a number that CloudEvents has no type for is its canonical text, as every value is where the wire
    has texts.
    """
    make = KINDS.get(constraint.type)
    if constraint.slot.section in AMQP_SECTIONS:
        make = AMQP_KINDS.get(constraint.type, make)
    found = value if make is None or not isinstance(value, str) else make(value)
    if constraint.slot.section == ENVELOPE:
        is_wide = isinstance(found, float) or (isinstance(found, int) and not INT32[0] <= found <= INT32[1])
        return canonical_text(found) if is_wide else found
    if isinstance(found, (bool, int, float)):
        return found if constraint.kind.wire == "native" else canonical_text(found)
    if isinstance(found, bytes) and constraint.kind.wire == "text":
        # A header's bytes that are declared as nothing in particular go as they are.
        return found if constraint.type == "any" and constraint.slot.section == "headers" else canonical_text(found)
    return found


def _number(text: str) -> Any:
    return float(text) if any(each in text for each in ".eE") else int(text)


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


KINDS: Final[dict[str, Callable[[str], Any]]] = {
    "integer": int,
    "uint32": int,
    "ulong": int,
    "number": _number,
    "boolean": lambda text: text == "true",
    "binary": _bytes,
}
AMQP_KINDS: Final[dict[str, Callable[[str], Any]]] = {
    "timestamp": Timestamp,
    "uuid": Uuid,
    "ulong": lambda text: {"ulong": int(text)},
    "symbol": lambda text: {"symbol": text},
}
