"""Read base-128 integers, which Protobuf and the message indexes of Confluent's prefix use.

Spec: protobuf.dev "Encoding".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class WireFault(Exception):
    """Bytes that are not valid Protobuf.

    Shape: `offset` counts bytes; `path` has the names of the enclosing members, innermost first.
    """

    message: str
    offset: int
    path: list[str]


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the integer at offset `at` and the offset of its end, at most `end`. Raises: WireFault"""
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
