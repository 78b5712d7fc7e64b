"""Content codings of request bodies: decoding of gzip and zstd within the size limit for bodies.

Starlette does not decode request bodies.

Spec: RFC 9110#8.4; RFC 9110#15.5.16; RFC 9659; docs/registry.md#limits.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final

from wirebook.problems.xregistry import refused

SUPPORTED: Final = ("gzip", "zstd")
ALIASES: Final = {"x-gzip": "gzip"}
MAX_CODINGS: Final = 4
"""Maximum number of codings of one body. Decoding each of them may produce as many bytes as the limit for bodies."""

GZIP_OUTPUT: Final = 1 << 20
"""Maximum bytes of gzip output per decoding step."""

ZSTD_INPUT: Final = 256
"""Bytes of zstd input per decoding step. It is small, because 4 bytes can encode a block of 128 KiB."""

ZSTD_WINDOW: Final = 8 << 20
"""Maximum window size of a zstd body, in bytes, as RFC 9659 sets it."""


class UnsupportedCoding(Exception):
    """A Content-Encoding with an unknown coding, or with too many codings."""


class BodyTooLarge(Exception):
    """The body exceeds the size limit."""


def parse_codings(text: str) -> list[str]:
    """Return the codings of a Content-Encoding, in the order in which they were applied. Raises: UnsupportedCoding"""
    names = [ALIASES.get(name, name) for item in text.split(",") if (name := item.strip(" \t").lower())]
    codings = [name for name in names if name != "identity"]
    if unknown := next((name for name in codings if name not in SUPPORTED), None):
        raise UnsupportedCoding(f"'{unknown[:40]}' is not supported")
    if len(codings) > MAX_CODINGS:
        raise UnsupportedCoding(f"it lists {len(codings)} codings; at most {MAX_CODINGS} are supported")
    return codings


def decode_body(body: bytes, codings: list[str], limit: int, path: str) -> bytes:
    """Return the decoded body.

    No coding may decode to more than `limit` bytes. `path` is the subject of errors.

    Raises: parsing_data, BodyTooLarge
    """
    for coding in reversed(codings):
        decoded, size = [], 0
        try:
            for chunk in DECODERS[coding](body):
                size += len(chunk)
                if size > limit:
                    raise BodyTooLarge
                decoded.append(chunk)
        except (ValueError, zlib.error) as error:
            raise refused("parsing_data", path, error_detail=f"the body is not valid {coding}: {error}") from None
        body = b"".join(decoded)
    return body


def _decode_gzip(body: bytes) -> Iterator[bytes]:
    """Raises: ValueError, zlib.error"""
    while body:
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        yield member.decompress(body, GZIP_OUTPUT)
        while not member.eof:
            chunk = member.decompress(member.unconsumed_tail, GZIP_OUTPUT)
            if not chunk and not member.eof and not member.unconsumed_tail:
                raise ValueError("it ends early")
            yield chunk
        body = member.unused_data


def _decode_zstd(body: bytes) -> Iterator[bytes]:
    """Raises: ValueError"""
    import zstandard  # noqa: PLC0415 (few requests need it)

    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
    frame: Any = None
    for start in range(0, len(body), ZSTD_INPUT):
        chunk = body[start : start + ZSTD_INPUT]
        while chunk:
            if frame is None or frame.eof:
                frame = decompressor.decompressobj()
            try:
                yield frame.decompress(chunk)
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from None
            chunk = frame.unused_data if frame.eof else b""
    if frame is None or not frame.eof:
        raise ValueError("it ends early")


DECODERS: Final[dict[str, Callable[[bytes], Iterator[bytes]]]] = {"gzip": _decode_gzip, "zstd": _decode_zstd}
