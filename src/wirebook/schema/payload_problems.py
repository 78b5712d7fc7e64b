"""Problems that all formats share: payloads that cannot be decoded, and schemas that cannot be compiled."""

from __future__ import annotations

from typing import Any, Final

from wirebook.problems import Problem
from wirebook.schema.layout import json_text
from wirebook.schema.reader import DecodedPayload, Failure, PayloadLimits, Unsupported
from wirebook.schema.source import UnnamedTypeError
from wirebook.text.json import JsonError
from wirebook.text.pointers import format_pointer
from wirebook.text.preview import MAX_PREVIEW, shortened

MAX_PROBLEMS: Final = 20
"""Maximum problems that are reported for one payload."""

OUTCOMES: Final[dict[str, Failure]] = {
    "payload-syntax": "undecodable",
    "payload-too-large": "oversized",
    "payload-too-deep": "oversized",
    "value-out-of-range": "invalid-payload",
}
"""The outcome of a payload, by the code of the problem that stopped decoding."""


def undecodable(error: JsonError) -> DecodedPayload:
    """Return the result for a payload that cannot be decoded because of `error`."""
    message = f"{error.message} (byte {error.offset})" if error.code == "payload-syntax" else error.message
    return failed(Problem(code=error.code, slot="payload", message=message, actual=error.message))


def failed(problem: Problem) -> DecodedPayload:
    """Return the result for a payload that cannot be read because of `problem`."""
    return DecodedPayload(None, None, (problem,), OUTCOMES.get(problem.code, "invalid-payload"))


def too_large(raw: bytes, limits: PayloadLimits) -> JsonError:
    """Return the error for a payload larger than its limit (``payload-too-large``)."""
    return JsonError("payload-too-large", f"the payload has {len(raw)} bytes; the limit is {limits.size}")


def not_compilable(label: str, error: Exception) -> Unsupported:
    """Return the result for a schema that cannot be compiled because of `error`.

    Problems: unnamed-type, schema-not-compilable
    """
    code = "unnamed-type" if isinstance(error, UnnamedTypeError) else "schema-not-compilable"
    message = preview(getattr(error, "message", None) or str(error))
    if pointer := format_pointer(getattr(error, "instance_path", ())):
        message = f"{message}, at '{preview(pointer)}'"
    return Unsupported(label, (Problem(code=code, slot="payload", message=message),))


def preview(value: Any) -> Any:
    """Return `value` for display in a problem: unchanged, or the beginning of its JSON text if that is long."""
    text = value if isinstance(value, str) else json_text(value)
    return value if len(text) <= MAX_PREVIEW else shortened(text)


def listed(names: list[str]) -> str:
    """Return the text of a list of names for a problem: at most ten, in quotes."""
    return ", ".join(f"'{name}'" for name in names[:10]) + (", ..." if len(names) > 10 else "")
