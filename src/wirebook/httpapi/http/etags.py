"""ETags, which change whenever the bytes of a response change.

The ETag of a Resource, meta or Version without flags is made from the revisions of its rows, so it is known before the
entity is rendered. Any other response is hashed. The ETag of a compressed response has the suffix `-gzip`.

Spec: RFC 9110#8.8.3; docs/decisions/0102-etags.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from wirebook.httpapi.http.spool import Body

GZIP_SUFFIX: Final = "-gzip"
ENTITY_TAG: Final = re.compile(r'(?:W/)?("[^"]*")')


def etag_of_revisions(url: str, revisions: Iterable[int]) -> str:
    """Return the ETag of the entity at `url`, whose representation changes only with one of these revisions."""
    return _digest(f"{url} {'.'.join(map(str, revisions))}".encode())


def etag_of_content(headers: Mapping[str, str], body: Body) -> str:
    """Return the ETag of a rendered response, from its headers and its body."""
    head = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    return _digest(head.encode(), *([body] if isinstance(body, bytes) else body))


def _digest(*chunks: bytes) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def format_etag(etag: str, *, is_gzip: bool) -> str:
    """Return the value of the header ETag."""
    return f'"{etag}{GZIP_SUFFIX if is_gzip else ""}"'


def matching_etag(etag: str, if_none_match: str | None, *, accepts_any: bool = True) -> str | None:
    """Return the ETag header under which the client already has the representation; None if it does not have it.

    `accepts_any`: the value `*` of If-None-Match matches every representation.
    """
    if if_none_match is None:
        return None
    plain = format_etag(etag, is_gzip=False)
    if if_none_match == plain or (accepts_any and if_none_match.strip() == "*"):
        return plain
    current = (plain, format_etag(etag, is_gzip=True))
    return next((listed for listed in ENTITY_TAG.findall(if_none_match) if listed in current), None)
