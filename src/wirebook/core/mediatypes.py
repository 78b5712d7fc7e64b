"""Which media types declare JSON.

Spec: RFC 6839 section 3.1 (``+json``); json-format.md#31-handling-of-data (CloudEvents).
"""

from __future__ import annotations


def is_json(content_type: str | None) -> bool:
    """Does a content type declare JSON: ``*/json`` or ``*/*+json``, whatever its parameters? None: it does not."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return media_type.endswith(("/json", "+json"))
