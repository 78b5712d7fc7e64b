"""Kinds: what a file is, told from its content, never from its name.

A first value with `protocol` is a capture; one with `specversion`, or an array, is CloudEvents: one value, or
one per line.

Spec: docs/land.md#messages-lines-files; docs/capture-format.md
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from wirebook.landing.sources.byte_streams import CODECS, open_stream
from wirebook.landing.sources.lines import BLANKS, BOM
from wirebook.text.json import JsonError, parse_json

__all__ = ["HEAD", "FileType", "FirstValue", "codec_of", "first_value", "is_whole", "kind_of", "read_head", "shape_of"]

HEAD = 1 << 20
"""How many bytes of content are looked at."""

TOKENS: Final = re.compile(rb'"(?P<text>(?:[^"\\]|\\.)*+)(?:"|\Z)|[\[\]{}:]', re.DOTALL)
PARQUET_MAGIC = b"PAR1"
CAPTURE_MEMBER, EVENT_MEMBER = b"protocol", b"specversion"


class FileType(NamedTuple):
    """How a file is to be read.

    Shape: `codec` is ``plain``, ``gzip``, ``zstd`` or ``parquet``; `kind` is ``capture``, ``events`` or ``parquet``;
    `form` is ``lines``, ``whole`` (one value over many lines) or ``rows``.
    """

    codec: str
    kind: str
    form: str


class FirstValue(NamedTuple):
    """The first JSON value of a text: its first byte, its members' names, and where it ends (None: not in the text)."""

    opening: bytes
    members: frozenset[bytes]
    end: int | None


def codec_of(head: bytes) -> str:
    """How the bytes of a file are packed."""
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    return next((name for name, codec in CODECS.items() if len(head) >= 2 and codec.starts(head)), "plain")


def read_head(path: bytes, codec: str, start: int = 0) -> bytes:
    """The first bytes of a file's content. Raises: OSError"""
    size = max(start, os.path.getsize(path))
    head, filled = bytearray(min(HEAD, size - start) if codec == "plain" else HEAD), 0
    with open_stream(path, codec, start, size) as stream:
        while filled < len(head) and (count := stream.readinto(memoryview(head)[filled:])):
            filled += count
    return bytes(head[:filled])


def shape_of(path: bytes, start: int = 0) -> FileType | None:
    """What the file is from byte `start` on; None when nothing but white space is there. Raises: OSError"""
    with open(path, "rb") as file:
        codec = codec_of(file.read(8))
    if codec == "parquet":
        return FileType(codec, "parquet", "rows")
    text = read_head(path, codec, start)
    kind = kind_of(text)
    return FileType(codec, kind, form_of(text) if kind == "events" else "lines") if kind else None


def kind_of(text: bytes) -> str | None:
    """``capture`` or ``events``; lines that are no object and no array are passed over, and decide nothing."""
    is_long, text = len(text) == HEAD, text.removeprefix(BOM).lstrip(BLANKS)
    for line in re.finditer(rb"^[ \t\r]*[\[{]", text, re.MULTILINE):
        value = first_value(text[line.end() - 1 :])
        if value.opening == b"[":
            return "events"
        return "capture" if CAPTURE_MEMBER in value.members or EVENT_MEMBER not in value.members else "events"
    return "capture" if text or is_long else None


def form_of(text: bytes) -> str:
    """``whole`` for a value that goes on behind its line, unless the next line is a value of its own: then the first
    line is a broken record among others."""
    text = text.removeprefix(BOM).lstrip(BLANKS)
    line, _, rest = text.partition(b"\n")
    if not rest or first_value(line).end is not None:
        return "lines"
    following = rest.lstrip(BLANKS).partition(b"\n")[0].rstrip(BLANKS)
    stands_alone = following[:1] in (b"{", b"[") and first_value(following).end == len(following)
    return "lines" if stands_alone and len(line.rstrip(BLANKS)) > 1 else "whole"


def first_value(text: bytes) -> FirstValue:
    """Scans brackets and strings only, so that a text cut anywhere, or broken, still says what it is.

    Cost: linear; stops at the end of the value.
    """
    depth, name, members = 0, b"", set()
    for token in TOKENS.finditer(text):
        mark = token[0][:1]
        if mark == b'"':
            name = token["text"]
        elif mark == b":":
            if depth == 1:
                members.add(name)
        else:
            depth += 1 if mark in b"[{" else -1
            if depth <= 0:
                return FirstValue(text[:1], frozenset(members), token.end())
    return FirstValue(text[:1], frozenset(members), None)


def is_whole(text: bytes) -> bool:
    """Whether a text is one complete JSON value, however deep and however large its numbers."""
    try:
        parse_json(text)
    except JsonError as error:
        text = text.removeprefix(BOM).strip(BLANKS)
        return error.code != "payload-syntax" and first_value(text).end == len(text)
    return True
