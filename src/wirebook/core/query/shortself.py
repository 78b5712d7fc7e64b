"""Short URLs of entities, based on the row keys of Groups and Resources, which are stable while the entities exist.

    short  = "/.g/" token / "/.r/" token [ "/meta" / "/versions/" id ]
    token  = 4*4digit 1*12digit        ; a checksum of the xid, which detects reused keys, and the key

Digits are base 36. An xid that is no longer than its short path is used unchanged.

Spec: core/spec.md#shortself-attribute.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
CHECKED: Final = 4
SHORT: Final = re.compile(r"/\.([gr])/([0-9a-z]{4})([0-9a-z]{1,12})(\$details|/.*)?\Z")


class Short(NamedTuple):
    """A parsed short path.

    Shape: `check` is the checksum of the xid of the Group or Resource, `key` its row key, `rest` the path after the
    token.
    """

    is_group: bool
    check: str
    key: int
    rest: str


def short_path(xid: str, key: int) -> str:
    """Return the shortest path of an entity. `key` is the row key of the Group or Resource that it is or belongs to."""
    _, *parts = xid.split("/")
    owner, rest = parts[:4], parts[4:]
    kind = "g" if len(owner) == 2 else "r"
    short = "/".join((f"/.{kind}/{checksum_of('/' + '/'.join(owner))}{_base36(key)}", *rest))
    return min(xid, short, key=len)


def parse_short(path: str) -> Short | None:
    """Return the parts of a short path; None for any other path."""
    match = SHORT.match(path)
    return match and Short(match[1] == "g", match[2], int(match[3], 36), match[4] or "")


def checksum_of(xid: str) -> str:
    """Return the checksum of an xid."""
    digest = hashlib.blake2b(xid.encode(), digest_size=8).digest()
    return _base36(int.from_bytes(digest) % 36**CHECKED).rjust(CHECKED, "0")


def _base36(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text or "0"
