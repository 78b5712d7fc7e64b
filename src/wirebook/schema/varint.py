"""Base-128 integers, in Protobuf and in the message indexes of Confluent's prefix.

Spec: protobuf.dev "Encoding".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class WireFault(Exception):
    """Bytes that are not valid Protobuf. Shape: `offset` in bytes; `path` of members, innermost first."""

    message: str
    offset: int
    path: list[str]


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the integer at offset `at` and the offset of its end. Raises: WireFault"""
    value, start = 0, at
    for shift in range(0, 70, 7):
        if at >= end:
            raise WireFault("the payload ends inside an integer", start, [])
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            if value >> 64:
                break
            return value, at
    raise WireFault("an integer has more than 64 bits", start, [])
