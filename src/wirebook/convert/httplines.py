"""Header lines between bytes, as HTTP libraries keep them, and wire records."""

from __future__ import annotations

from collections.abc import Iterable

from wirebook.bindings import Base64, HttpMessage, bytes_of, from_bytes
from wirebook.bindings.wire import Bytes
from wirebook.convert.refusal import refuse, require_lines


def pairs_of(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, Bytes]] | None:
    """Lines as a record has them; names are ASCII."""
    found = [(name.decode("latin-1"), from_bytes(value) or "") for name, value in raw]
    return found or None


def raw_of(wire: HttpMessage, library: str) -> list[tuple[bytes, bytes]]:
    """Lines as bytes. Raises: WirebookError (``not-expressible``)."""
    require_lines(wire.headers, library)
    return [(name.encode("ascii"), _octets(value)) for name, value in wire.headers or ()]


def ascii_of(target: str, library: str) -> bytes:
    """A request target. Raises: WirebookError (``not-expressible``) unless it is ASCII, without blanks and controls."""
    if not target.isascii() or not target.isprintable() or " " in target:
        raise refuse(library, "the target", "ASCII, with all else percent-encoded", target)
    return target.encode()


def _octets(value: Bytes) -> bytes:
    return value.base64 if isinstance(value, Base64) else bytes_of(value) or b""
