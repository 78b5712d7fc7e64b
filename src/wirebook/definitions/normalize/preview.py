"""Format values for messages: at most 80 characters; true, false and null are spelled as in JSON."""

from __future__ import annotations

import reprlib
from typing import Any, Final

from wirebook.text.preview import shortened

JSON_LITERALS: Final = {"True": "true", "False": "false", "None": "null"}
MAX_LENGTH: Final = 80  # characters of a quoted value
MAX_TEXT: Final = 1000  # characters of a string in a problem's `actual`


def preview(value: Any) -> str:
    """Format a value for a message. Text longer than 80 characters is truncated."""
    text = value if isinstance(value, str) else JSON_LITERALS.get(repr(value)) or reprlib.repr(value)
    return shortened(text, MAX_LENGTH, "...")


def short_value(value: Any) -> Any:
    """Return the `actual` of a problem: scalars unchanged; objects, arrays and long strings as previews."""
    is_long = isinstance(value, (dict, list)) or (isinstance(value, str) and len(value) > MAX_TEXT)
    return preview(value) if is_long else value
