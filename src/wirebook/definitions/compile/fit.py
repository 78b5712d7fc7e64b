"""Compare one value of a message with one constraint of a definition.

Spec: docs/semantics.md D14, D17, D20
"""

from __future__ import annotations

import base64
from typing import Any, Final, NamedTuple

from wirebook.bindings.wire import text_or_bytes
from wirebook.definitions.compile.definition import Constraint
from wirebook.definitions.compile.mediatype import parse_media_type
from wirebook.definitions.compile.uritemplate import Split, uri_text
from wirebook.definitions.compile.values import CHECKS, NotOfType, is_text_of
from wirebook.definitions.compile.view import QueryText
from wirebook.problems import CODES, Problem, quoted
from wirebook.text.preview import MAX_PREVIEW, preview_scalar


class ValueMatch(NamedTuple):
    """A value that satisfies its constraint. `text` and `split` are set if the constraint is a template."""

    text: str = ""
    split: Split | None = None


class ValueMismatch(NamedTuple):
    """A value that does not satisfy its constraint: a problem code and what is allowed."""

    code: str
    expected: Any


MATCH: Final = ValueMatch()


class Mismatch(NamedTuple):
    """A slot of a message that contradicts a definition.

    Cheaper than a `Problem`: matching makes many mismatches and reports few. Without a `message`, the problem has the
    title of its code and both values.
    """

    code: str
    slot: str
    expected: Any = None
    actual: Any = None
    message: str = ""

    def problem(self) -> Problem:
        expected, actual = preview(self.expected), preview(self.actual)
        message = self.message
        if not message:
            message = f"{self.slot}: {CODES[self.code].title}; expected {quoted(expected)}"
            if actual is not None:
                message += f", got {quoted(actual)}"
        return Problem(self.code, message, slot=self.slot, expected=expected, actual=actual)


def mismatch_of(code: str, constraint: Constraint, actual: Any, expected: Any = None) -> Mismatch:
    """Create a mismatch of `constraint`. `expected` is the declared value by default."""
    if code == "missing-required":
        expected = constraint.type
    elif expected is None or expected is constraint.declared:
        expected = constraint.declared
        if constraint.kind.wire == "octets" and constraint.type == "binary":
            expected = {"base64": expected}  # the form that previews have for bytes
    return Mismatch(code, constraint.label, expected, actual)


def problem_of(code: str, constraint: Constraint, actual: Any, expected: Any = None) -> Problem:
    """Create a problem for a mismatch of `constraint`."""
    return mismatch_of(code, constraint, actual, expected).problem()


def fit(constraint: Constraint, value: Any, *, rfc6570: bool = False) -> ValueMatch | ValueMismatch:
    """Compare a value, in the type that it has on the wire, with a constraint.

    If a URI does not match, it is compared again with the characters that URIs do not allow percent-encoded, because
    templates have that form (D20).
    """
    if constraint.kind.wire == "octets":
        if constraint.type == "binary":
            value = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        else:
            value = text_or_bytes(value) if isinstance(value, bytes) else value
    result = _fit(constraint, value, rfc6570=rfc6570)
    if isinstance(result, ValueMatch) or result.code == "wrong-type":
        return result
    if rfc6570 or not constraint.kind.place.has_uri_text or not isinstance(value, str):
        return result
    encoded = uri_text(value)
    if encoded == value:
        return result
    encoded_result = _fit(constraint, encoded)
    return encoded_result if isinstance(encoded_result, ValueMatch) else result


def _fit(constraint: Constraint, value: Any, *, rfc6570: bool = False) -> ValueMatch | ValueMismatch:
    if constraint.media_type is not None:
        media_type = parse_media_type(value) if isinstance(value, str) else None
        if media_type is None:
            return ValueMismatch("wrong-type", "a media type (RFC 9110 section 8.3.1)")
        is_same = media_type.satisfies(constraint.media_type)
        return MATCH if is_same else ValueMismatch("mismatch", constraint.declared)
    if constraint.literal is not None and type(value) is str and value == constraint.declared:
        return MATCH
    try:
        typed = CHECKS[constraint.type](value)
    except NotOfType as error:
        return ValueMismatch("wrong-type", str(error))
    if constraint.literal is not None:
        is_same = typed == constraint.literal
        if not is_same and constraint.type == "any" and isinstance(value, str):
            is_same = is_text_of(constraint.literal, value)
        return MATCH if is_same else ValueMismatch("mismatch", constraint.declared)
    if constraint.template is not None:
        text = template_text(value)
        split = constraint.template.match(text, rfc6570=rfc6570)
        return ValueMatch(text, split) if split else ValueMismatch("template-mismatch", constraint.declared)
    return MATCH


def template_text(value: Any) -> str:
    """The text of a value that is compared with a template. In query values, `%2F` does not become `/`."""
    if isinstance(value, str):
        return value.raw if isinstance(value, QueryText) else value
    return str(value).lower() if isinstance(value, bool) else str(value)


def preview(value: Any) -> Any:
    """Shorten a value for a report (`preview_scalar`). Bytes become base64; lone surrogates in text are replaced."""
    if isinstance(value, (bytes, bytearray)):
        return {"base64": preview_scalar(base64.b64encode(bytes(value[:MAX_PREVIEW])).decode())}
    value = preview_scalar(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and not value.isascii() else value
