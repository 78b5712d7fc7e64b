"""The format of a source file, detected from its content, never from its name.

If the first value has the member `protocol`, the file is a capture. If it has `specversion`, or is an array, the file
holds CloudEvents: a single value, or one value per line.

Spec: docs/land.md#messages-lines-files; docs/capture-format.md
"""

from __future__ import annotations

import io
import re
from typing import Final, NamedTuple

from wirebook.landing.sources.byte_streams import CODECS, ByteStream, Inflated, open_stream
from wirebook.landing.sources.lines import BLANKS, BOM
from wirebook.landing.stores.locations import open_source, size_and_time, source_location
from wirebook.landing.stores.objects import ObjectPath
from wirebook.text.json import JsonError, parse_json

__all__ = [
    "HEAD",
    "FileFormat",
    "FirstValue",
    "detect_codec",
    "detect_file_type",
    "detect_format",
    "detect_object_format",
    "first_value",
    "is_whole",
    "read_head",
]

HEAD = 1 << 20
"""Maximum number of bytes of content that are examined."""

TOKENS: Final = re.compile(rb'"(?P<text>(?:[^"\\]|\\.)*+)(?:"|\\?\Z)|[\[\]{}:]', re.DOTALL)
"""Brackets, colons and strings; the last string may be truncated, even between a backslash and what it escapes."""
PARQUET_MAGIC = b"PAR1"
CAPTURE_MEMBER, EVENT_MEMBER = b"protocol", b"specversion"


class FileFormat(NamedTuple):
    """How to read a file.

    Shape: `codec` is ``plain``, ``gzip``, ``zstd`` or ``parquet``. `file_type` is ``capture``, ``events`` or
    ``parquet``. `framing` is ``lines``, ``whole`` (one value over several lines) or ``rows``.
    """

    codec: str
    file_type: str
    framing: str


class FirstValue(NamedTuple):
    """The first JSON value of a text: its first byte, its member names, and the offset of its end (None: not in the
    text)."""

    opening: bytes
    members: frozenset[bytes]
    end: int | None


def detect_codec(head: bytes) -> str:
    """The codec of a file (see `FileFormat`), from its first bytes."""
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    return next((name for name, codec in CODECS.items() if len(head) >= 2 and codec.starts(head)), "plain")


def read_head(path: bytes, codec: str, start: int = 0) -> bytes:
    """The first bytes of a file's decompressed content.

    Raises: OSError
    """
    return _head_and_problem(path, codec, start)[0]


def _head_and_problem(path: bytes, codec: str, start: int) -> tuple[bytes, str | None]:
    size = max(start, size_and_time(source_location(path))[0])
    with open_stream(path, codec, start, size) as stream:
        return _first_bytes(stream, min(HEAD, size - start) if codec == "plain" else HEAD), stream.problem


def _first_bytes(stream: ByteStream, size: int) -> bytes:
    head, filled = bytearray(size), 0
    while filled < size and (count := stream.readinto(memoryview(head)[filled:])):
        filled += count
    return bytes(head[:filled])


def detect_format(path: bytes, start: int = 0) -> FileFormat | None:
    """The format of a file from byte `start` on; None if only white space follows.

    Raises: OSError, store-failed; SourceChanged if the file becomes shorter meanwhile
    """
    with open_source(path) as file:
        codec = detect_codec(file.read(8))
    text, problem = (b"", None) if codec == "parquet" else _head_and_problem(path, codec, start)
    return _format_of(codec, text, is_damaged=problem is not None)


def detect_object_format(url: bytes, size: int, version: str) -> FileFormat | None:
    """The format of an object, in one request; None if there is only white space.

    Raises: FileNotFoundError, ObjectChanged, store-failed
    """
    location = source_location(url)
    assert isinstance(location, ObjectPath)
    data = location.read_bytes(0, min(size, HEAD), version) if size else b""
    codec = detect_codec(data)
    if codec not in CODECS:
        return _format_of(codec, data)
    stream = Inflated(io.BytesIO(data), CODECS[codec], len(data))
    return _format_of(codec, _first_bytes(stream, HEAD), is_damaged=stream.problem is not None)


def _format_of(codec: str, text: bytes, *, is_damaged: bool = False) -> FileFormat | None:
    """The format of a file that begins with `text`. `is_damaged`: the bytes after the text cannot be decompressed. A
    format is returned even if the text is blank, so that the reader reports the damage."""
    if codec == "parquet":
        return FileFormat(codec, "parquet", "rows")
    file_type = detect_file_type(text)
    if file_type is None and is_damaged:
        return FileFormat(codec, "capture", "lines")
    if file_type is None:
        return None
    return FileFormat(codec, file_type, detect_framing(text) if file_type == "events" else "lines")


def detect_file_type(text: bytes) -> str | None:
    """``capture`` or ``events``, by the first line that begins with an object or array; None for a blank file."""
    is_long, text = len(text) == HEAD, text.removeprefix(BOM).lstrip(BLANKS)
    for line in re.finditer(rb"^[ \t\r]*[\[{]", text, re.MULTILINE):
        value = first_value(text[line.end() - 1 :])
        if value.opening == b"[":
            return "events"
        return "capture" if CAPTURE_MEMBER in value.members or EVENT_MEMBER not in value.members else "events"
    return "capture" if text or is_long else None


def detect_framing(text: bytes) -> str:
    """``whole`` if the first value continues on the next line, else ``lines``.

    If the next line is a complete value, the result is ``lines``, because the first line is probably a damaged record,
    unless the text as a whole is one value.
    """
    text = text.removeprefix(BOM).lstrip(BLANKS)
    line, _, rest = text.partition(b"\n")
    if not rest or first_value(line).end is not None:
        return "lines"
    following = rest.lstrip(BLANKS).partition(b"\n")[0].rstrip(BLANKS)
    stands_alone = following[:1] in (b"{", b"[") and first_value(following).end == len(following)
    return "lines" if stands_alone and len(line.rstrip(BLANKS)) > 1 and not is_whole(text) else "whole"


def first_value(text: bytes) -> FirstValue:
    """Find the first JSON value of a text, which may be truncated or invalid: only brackets and strings are scanned.

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
    """Whether a text is one complete JSON value, of any depth and with numbers of any size."""
    try:
        parse_json(text)
    except JsonError as error:
        text = text.removeprefix(BOM).strip(BLANKS)
        return error.code != "payload-syntax" and first_value(text).end == len(text)
    return True
