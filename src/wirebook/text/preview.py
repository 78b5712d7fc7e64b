"""Previews: values of bounded length, as problems show them."""

from __future__ import annotations

from typing import Any, Final

MAX_PREVIEW: Final = 200
"""Maximum characters of a value that a problem shows."""


def shortened(text: str, limit: int = MAX_PREVIEW, ellipsis: str = "…") -> str:
    """Return `text`, or its beginning and an ellipsis if it has more than `limit` characters."""
    return text if len(text) <= limit else text[: limit - len(ellipsis)] + ellipsis


def preview_scalar(value: Any) -> Any:
    """Return long text shortened, and an integer beyond 64 bits as text; any other value unchanged."""
    if isinstance(value, str):
        return shortened(value)
    return shortened(str(value)) if type(value) is int and abs(value) >= 2**63 else value
