"""Format values for messages: on one line, at most 80 characters, in JSON spelling."""

from __future__ import annotations

import json
import re
import reprlib
from typing import Any, Final

from wirebook.text.preview import shortened

MAX_LENGTH: Final = 80  # characters of a quoted value
MAX_TEXT: Final = 1000  # characters of a string in a problem's `actual`
LINE_BREAKS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # and other control characters
ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class _JsonRepr(reprlib.Repr):
    """Formats a few members of each object and array, to a limited depth, and long strings without their middle."""

    def repr_str(self, x: str, level: int) -> str:  # noqa: ARG002 (dispatched by type)
        if len(x) > self.maxstring:
            half = (self.maxstring - len("...")) // 2
            x = f"{x[:half]}...{x[-half:]}"
        return json.dumps(x, ensure_ascii=False)

    def repr_bool(self, x: bool, level: int) -> str:  # noqa: ARG002 (dispatched by type)
        return "true" if x else "false"

    def repr_NoneType(self, x: None, level: int) -> str:  # noqa: ARG002 (dispatched by type)
        return "null"


JSON_REPR: Final = _JsonRepr()


def preview(value: Any) -> str:
    """Format a value for a message. Text longer than 80 characters is truncated; a string has no quotes."""
    text = value if isinstance(value, str) else JSON_REPR.repr(value)
    text = LINE_BREAKS.sub(lambda match: ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}", text[: MAX_LENGTH + 1])
    return shortened(text, MAX_LENGTH, "...")


def short_value(value: Any) -> Any:
    """Return the `actual` of a problem: scalars unchanged; objects, arrays and long strings as previews."""
    is_long = isinstance(value, (dict, list)) or (isinstance(value, str) and len(value) > MAX_TEXT)
    return preview(value) if is_long else value
