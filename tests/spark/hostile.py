"""Payloads that break programs. No definition of the tests accepts one of them."""

from __future__ import annotations


def nested(levels: int) -> bytes:
    return b'{"n":' + b"[" * levels + b"]" * levels + b"}"


HOSTILE: list[bytes] = [
    b"",
    b"\xff\xfe\x00\x80",
    nested(100_000),
    b"{" + b'"x":1,' * 100_000 + b'"n":"none"}',
    b'{"n":' + b"9" * 100_000 + b"}",
    b'{"n":1e999999999}',
    b'"\\ud800"',
    b"\xef\xbb\xbf{}",
    b"\x1f\x8b\x08" + b"\x00" * 100,
    b"\x00" * 500_000,
    b'{"protocol":"NATS","specversion":"1.0","data":' + nested(50_000) + b"}",
]
