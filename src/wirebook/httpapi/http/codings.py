"""Content codings of requests: bodies in gzip or zstd are decoded, within the limit for bodies.

Spec: RFC 9110#8.4; RFC 9110#15.5.16; RFC 9659; docs/registry.md#limits.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from wirebook.httpapi.http.messages import unparsable

SUPPORTED: Final = ("gzip", "zstd")
ALIASES: Final = {"x-gzip": "gzip"}
MOST: Final = 4
"""Codings of one body: each may take as long as the limit for bodies allows."""

PART: Final = 256
"""Bytes of zstd that are decoded at once: a block of 128 KiB takes 4 of them."""

WINDOW: Final = 8 << 20
"""Bytes of memory that a body in zstd may ask for, as RFC 9659 has it."""


class Unsupported(Exception):
    """A coding that is not supported, or too many of them."""


class TooLarge(Exception):
    """A body is larger than it may be."""


def parse_codings(text: str) -> list[str]:
    """The codings of a Content-Encoding, in the order in which they were applied. Raises: Unsupported"""
    names = [ALIASES.get(name, name) for each in text.split(",") if (name := each.strip(" \t").lower())]
    codings = [name for name in names if name != "identity"]
    if unknown := next((name for name in codings if name not in SUPPORTED), None):
        raise Unsupported(f"'{unknown[:40]}' is not supported")
    if len(codings) > MOST:
        raise Unsupported(f"it lists {len(codings)} codings, and at most {MOST} are supported")
    return codings


def decode_body(body: bytes, codings: list[str], most: int, path: str) -> bytes:
    """A body without its codings; no step of it has more than `most` bytes. `path` is the subject of errors.

    Raises: parsing_data, TooLarge
    """
    for coding in reversed(codings):
        decoded, size = [], 0
        try:
            for part in DECODERS[coding](body):
                size += len(part)
                if size > most:
                    raise TooLarge
                decoded.append(part)
        except (ValueError, zlib.error) as error:
            raise unparsable(path, f"the body is not valid {coding}: {error}") from None
        body = b"".join(decoded)
    return body


def _gunzip(body: bytes) -> Iterator[bytes]:
    """Raises: ValueError, zlib.error"""
    while body:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        yield member.decompress(body, 1 << 20)
        while not member.eof:
            part = member.decompress(member.unconsumed_tail, 1 << 20)
            if not part and not member.eof and not member.unconsumed_tail:
                raise ValueError("it ends early")
            yield part
        body = member.unused_data


def _unzstd(body: bytes) -> Iterator[bytes]:
    """Raises: ValueError"""
    import zstandard  # noqa: PLC0415 (few requests need it)

    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    frame: Any = None
    for start in range(0, len(body), PART):
        part = body[start : start + PART]
        while part:
            if frame is None or frame.eof:
                frame = decompressor.decompressobj()
            try:
                yield frame.decompress(part)
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from None
            part = frame.unused_data if frame.eof else b""
    if frame is None or not frame.eof:
        raise ValueError("it ends early")


DECODERS: Final[dict[str, Callable[[bytes], Iterator[bytes]]]] = {"gzip": _gunzip, "zstd": _unzstd}
