"""Media types: check whether a text is a media type, and whether it declares JSON.

Spec: RFC 9110 section 8.3.1; RFC 6839 section 3.1 (``+json``); json-format.md#31-handling-of-data (CloudEvents).
"""

from __future__ import annotations

import re
from typing import Final

WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
"""A token of RFC 9110: a name, or a value without quotes."""

_QUOTED: Final = r'"(?:[\t !#-\[\]-~]|\\[\t -~])*+"'
MEDIA_TYPE: Final = re.compile(rf"{WORD}/{WORD}(?:[ \t]*+;[ \t]*+(?:{WORD}=(?:{WORD}|{_QUOTED}))?+)*+\Z")


def is_media_type(text: str) -> bool:
    """Return whether a text is a media type: type, subtype and optional parameters, in ASCII."""
    return MEDIA_TYPE.match(text) is not None


def is_json(content_type: str | None) -> bool:
    """Return whether a content type declares JSON: ``*/json`` or ``*/*+json``, with any parameters. None: False."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    return media_type.endswith(("/json", "+json"))
