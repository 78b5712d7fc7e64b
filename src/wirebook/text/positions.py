"""The outline of a JSON text: where each member and item stands, found without recursion and without a parser.

Used to say where something is, so it goes as far as the text makes sense and never fails.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

from wirebook.text.pointers import child

MAX_POINTER: Final = 4096  # what is inside a longer one is placed at its holder
TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


@dataclass(slots=True)
class Outline:
    """What stands where.

    Shape: `offsets` pointer to offset (of the key, for a member); `duplicates` has every further member of a name in
    one object, with the pointer and the offsets of the first member and of this one; `strings` and `words` (offset,
    text) of the strings' values and of the other scalars; `open_at` the pointer being read where the scan stopped;
    `deepest` (offset, pointer) where it was first too deep.
    """

    offsets: dict[str, int] = field(default_factory=lambda: {"": 0})
    duplicates: list[tuple[str, int, int]] = field(default_factory=list)
    strings: list[tuple[int, str]] = field(default_factory=list)
    words: list[tuple[int, str]] = field(default_factory=list)
    open_at: str = ""
    deepest: tuple[int, str] = (0, "")


@dataclass(slots=True)
class _Frame:
    """An object or array being read.

    Shape: `key` is the member in hand, `index` the next item (None in an object), `members` the offset of each key.
    """

    pointer: str
    index: int | None
    key: str | None = None
    members: dict[str, int] = field(default_factory=dict)

    def here(self) -> str:
        """The pointer of the value about to be read."""
        token = self.key if self.index is None else self.index
        if token is None or len(self.pointer) > MAX_POINTER:
            return self.pointer
        return child(self.pointer, token)


def outline(text: str, stop: int | None = None, depth: int | None = None) -> Outline:
    """The outline of `text` up to the offset `stop`, or to where it is nested more than `depth` levels."""
    scan = _Scan()
    for found in TOKEN.finditer(text):
        if (stop is not None and found.start() >= stop) or (depth is not None and len(scan.stack) > depth):
            break
        scan.take(found[0], found.start())
    scan.outline.open_at = scan.stack[-1].here() if scan.stack else ""
    scan.outline.deepest = (scan.offset, scan.outline.open_at)
    return scan.outline


class _Scan:
    """One pass over the tokens."""

    def __init__(self) -> None:
        self.outline = Outline()
        self.stack: list[_Frame] = []
        self.offset = 0

    def take(self, text: str, offset: int) -> None:
        self.offset = offset
        if text in "{[":
            self._value(offset)
            pointer = self.stack[-1].here() if self.stack else ""
            self.stack.append(_Frame(pointer, 0 if text == "[" else None))
        elif text in "}]":
            self._close()
        elif text == ",":
            self._next()
        elif text != ":":
            self._scalar(text, offset)

    def _scalar(self, text: str, offset: int) -> None:
        string = _decoded(text) if text[0] == '"' else None
        if string is not None:
            self.outline.strings.append((offset, string))
        if self.stack and self.stack[-1].index is None and self.stack[-1].key is None:
            self._member(text if string is None else string, offset)
        else:
            self._value(offset)
            if string is None:
                self.outline.words.append((offset, text))

    def _member(self, key: str, offset: int) -> None:
        frame = self.stack[-1]
        frame.key = key[:MAX_POINTER]
        pointer = frame.here()
        first = frame.members.setdefault(key, offset)
        if first != offset:
            self.outline.duplicates.append((pointer, first, offset))
        self.outline.offsets.setdefault(pointer, offset)

    def _value(self, offset: int) -> None:
        if self.stack and self.stack[-1].index is not None:
            self.outline.offsets.setdefault(self.stack[-1].here(), offset)
        elif not self.stack:
            self.outline.offsets[""] = offset

    def _next(self) -> None:
        if self.stack:
            frame = self.stack[-1]
            frame.key = None
            frame.index = None if frame.index is None else frame.index + 1

    def _close(self) -> None:
        if self.stack:
            self.stack.pop()


def _decoded(token: str) -> str:
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return token[1:-1]
