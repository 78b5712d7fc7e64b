"""HTTP headers: conversion between the bytes of libraries and the pairs of wire records."""

from __future__ import annotations

from collections.abc import Iterable

from wirebook.bindings import HttpMessage, bytes_of, from_bytes
from wirebook.bindings.wire import Bytes
from wirebook.convert.checks import check_headers, not_expressible


def pairs_of(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, Bytes]] | None:
    """Return headers as pairs of a record. Names are ASCII."""
    pairs = [(name.decode("latin-1"), from_bytes(value) or "") for name, value in raw]
    return pairs or None


def raw_of(wire: HttpMessage, library: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of a message as bytes. Raises: WirebookError (``not-expressible``)"""
    check_headers(wire.headers, library)
    return [(name.encode("ascii"), bytes_of(value) or b"") for name, value in wire.headers or ()]


def ascii_of(target: str, library: str) -> bytes:
    """Return a request target as bytes. Raises: WirebookError (``not-expressible``) unless it is printable ASCII"""
    if not target.isascii() or not target.isprintable() or " " in target:
        raise not_expressible(library, "the target", "printable ASCII, with other characters percent-encoded", target)
    return target.encode()
