"""Encode and decode attribute values in the headers of HTTP and NATS.

Encoding escapes the space, the double quote, the percent sign and all characters outside U+0021-U+007E, as UTF-8 bytes
in upper-case hexadecimal. Decoding unescapes a double-quoted value first, then decodes percent escapes once. Escaped
bytes that are not valid UTF-8, such as ``%C0%A0``, are an error.

Spec: http-protocol-binding.md#3132-http-header-values; nats-protocol-binding.md#3132-nats-header-values
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

# Values that need neither decoding nor a problem: printable ASCII without space, double quote and percent.
PLAIN: Final = re.compile(r"[!#$&-~]*\Z").match
_QUOTED: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"\Z', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_STRAY: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[^\x20-\x7e]")
_SAFE: Final = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in '"%')


def encode_value(text: str) -> str:
    """Encode the canonical string of an attribute. Raises: UnicodeEncodeError for a lone surrogate."""
    return text if PLAIN(text) else quote(text, safe=_SAFE)


def decode_value(text: str) -> tuple[str, bool]:
    """Decode a header value. Also return whether the value is encoded as the binding requires.

    A percent sign that starts no escape is kept. Raises: UnicodeDecodeError if the escaped bytes are not valid UTF-8.
    """
    text = text.strip(" \t")
    if PLAIN(text):
        return text, True
    quoted_string = _QUOTED.match(text)
    if quoted_string:
        text = _ESCAPE.sub(r"\1", quoted_string[1])
    is_encoded = bool(quoted_string) or '"' not in text
    # Reading: a stray percent sign and characters that should be encoded are kept and reported.
    return unquote_to_bytes(text).decode(), is_encoded and not _STRAY.search(text)
