"""Short URLs of entities, by the rows of Groups and Resources, which stay as long as these live.

    short  = "/.g/" place / "/.r/" place [ "/meta" / "/versions/" id ]
    place  = 4*4digit 1*12digit        ; of the xid, so that the row of another entity is not mistaken; the row

Digits are those of base 36. A path that is shorter itself is its own short one.

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
    """A short path: the kind and the row of a Group or a Resource, the check of its xid, and what comes after it."""

    is_group: bool
    check: str
    key: int
    rest: str


def short_path(xid: str, key: int) -> str:
    """The path of an entity that is as short as can be. `key` is the row of its Group, or else of its Resource."""
    _, *parts = xid.split("/")
    owner, rest = parts[:4], parts[4:]
    kind = "g" if len(owner) == 2 else "r"
    short = "/".join((f"/.{kind}/{checksum_of('/' + '/'.join(owner))}{_base36(key)}", *rest))
    return min(xid, short, key=len)


def parse_short(path: str) -> Short | None:
    """What a path says, if it is a short one."""
    match = SHORT.match(path)
    return match and Short(match[1] == "g", match[2], int(match[3], 36), match[4] or "")


def checksum_of(xid: str) -> str:
    digest = hashlib.blake2b(xid.encode(), digest_size=8).digest()
    return _base36(int.from_bytes(digest) % 36**CHECKED).rjust(CHECKED, "0")


def _base36(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = DIGITS[digit] + text
    return text or "0"
