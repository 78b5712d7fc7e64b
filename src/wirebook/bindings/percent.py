"""Values of attributes in HTTP and NATS headers: quoted strings and percent-encoding.

Encode: space, double quote, percent and everything outside U+0021-U+007E, as UTF-8 bytes in upper-case hex.
Decode: a double-quoted value is unescaped first, then one round of percent-decoding; bytes that are not UTF-8 are
refused (``%C0%A0``).

Spec: http-protocol-binding.md#3132-http-header-values; nats-protocol-binding.md#3132-nats-header-values
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

# What needs neither decoding nor a remark: printable ASCII without space, double quote and percent.
PLAIN: Final = re.compile(r"[!#$&-~]*\Z").match
_QUOTED: Final = re.compile(r'"((?:[^"\\]++|\\.)*+)"\Z', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_STRAY: Final = re.compile(r"%(?![0-9A-Fa-f]{2})|[^\x20-\x7e]")
_SAFE: Final = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in '"%')


def encode_value(text: str) -> str:
    """The header value of an attribute's canonical string. Raises: UnicodeEncodeError for a lone surrogate."""
    return text if PLAIN(text) else quote(text, safe=_SAFE)


def decode_value(text: str) -> tuple[str, bool]:
    """The attribute's text, and whether the header is written as the binding says.

    What is no escape stays as it is. Raises: UnicodeDecodeError when the escaped bytes are not UTF-8.
    """
    text = text.strip(" \t")
    if PLAIN(text):
        return text, True
    quoted = _QUOTED.match(text)
    if quoted:
        text = _ESCAPE.sub(r"\1", quoted[1])
    clean = bool(quoted) or '"' not in text
    # Reading: a percent sign that begins no escape stays, and is reported; so do characters that should be encoded.
    return unquote_to_bytes(text).decode(), clean and not _STRAY.search(text)
