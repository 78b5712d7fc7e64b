"""Entity tags: what changes whenever the bytes of an answer would, and says to a client that it has them already.

Of one entity without flags it is made of the numbers of the last writes to what is shown, and so is known before
anything is rendered; of anything else it is made of the answer. In a header it says, too, how the answer is encoded.

Spec: RFC 9110#8.8.3; docs/decisions/0102-etags.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebook.httpapi.http.messages import ApiResponse

PACKED: Final = "-gzip"
EACH: Final = re.compile(r'(?:W/)?("[^"]*")')


def tag_of_revisions(url: str, revisions: Iterable[int]) -> str:
    """The tag of what is at `url`, which depends on nothing else than what has those numbers."""
    return _digest(f"{url} {'.'.join(map(str, revisions))}".encode())


def tag_of_answer(answer: ApiResponse) -> str:
    """The tag of an answer of which only the bytes are known, those of its headers among them."""
    head = "".join(f"{name}:{value}\n" for name, value in sorted(answer.headers.items()))
    return _digest(head.encode(), *([answer.body] if isinstance(answer.body, bytes) else answer.body))


def _digest(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def quoted(tag: str, *, packed: bool) -> str:
    """The value of the header ETag."""
    return f'"{tag}{PACKED if packed else ""}"'


def known_as(tag: str, sent: str | None, *, any_too: bool = True) -> str | None:
    """The value of ETag under which a client, by its If-None-Match, has what has `tag`; None if it has not. `any_too`:
    also by the value `*`, which matches whatever is there."""
    if sent is None:
        return None
    if sent.strip() == "*":
        return quoted(tag, packed=False) if any_too else None
    same = (f'"{tag}"', f'"{tag}{PACKED}"')
    return next((each for each in EACH.findall(sent) if each in same), None)
