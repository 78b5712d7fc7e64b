"""Values as problems show them, of bounded length."""

from __future__ import annotations

from typing import Any, Final

MAX_PREVIEW: Final = 200
"""The most characters of a value that a problem shows."""


def shortened(text: str) -> str:
    """Return `text`, or its beginning and an ellipsis if it is long."""
    return text if len(text) <= MAX_PREVIEW else f"{text[: MAX_PREVIEW - 1]}…"


def preview_scalar(value: Any) -> Any:
    """Return long text shortened, and an integer beyond 64 bits as text; any other value unchanged."""
    if isinstance(value, str):
        return shortened(value)
    return shortened(str(value)) if type(value) is int and abs(value) >= 2**63 else value
