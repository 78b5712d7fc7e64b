"""The outline of a JSON text: the offset of each member and item, found without recursion and without a parser.

The outline provides the positions of problems, so it never fails: it ends where the text is no longer JSON.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final

from wirebook.text.pointers import child

MAX_POINTER: Final = 4096
"""Maximum characters of a pointer. Values below a longer pointer have the position of their container."""

TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)


@dataclass(slots=True)
class Outline:
    """The offsets in a JSON text.

    Shape: `offsets` maps pointers to offsets (for a member, of its key); `duplicates` lists every repeated member with
    its pointer and the offsets of the first member and of this one; `strings` and `words` list the offset and the text
    of strings and of other scalars; `open_at` is the pointer at which the scan ended; `deepest` is the offset and the
    pointer at which nesting first exceeded the limit.
    """

    offsets: dict[str, int] = field(default_factory=lambda: {"": 0})
    duplicates: list[tuple[str, int, int]] = field(default_factory=list)
    strings: list[tuple[int, str]] = field(default_factory=list)
    words: list[tuple[int, str]] = field(default_factory=list)
    open_at: str = ""
    deepest: tuple[int, str] = (0, "")


@dataclass(slots=True)
class _Frame:
    """An object or array whose end has not been read yet.

    Shape: `key` is the current member, `index` the current item (None in an object), `members` maps each key to its
    offset.
    """

    pointer: str
    index: int | None
    key: str | None = None
    members: dict[str, int] = field(default_factory=dict)

    def current_pointer(self) -> str:
        """Return the pointer of the value that is being scanned."""
        token = self.key if self.index is None else self.index
        if token is None or len(self.pointer) > MAX_POINTER:
            return self.pointer
        return child(self.pointer, token)


def outline(text: str, stop: int | None = None, depth: int | None = None) -> Outline:
    """Return the outline of `text` up to the offset `stop`, or up to where it is nested more than `depth` levels."""
    scan = _Scan()
    for token in TOKEN.finditer(text):
        if (stop is not None and token.start() >= stop) or (depth is not None and len(scan.stack) > depth):
            break
        scan.add(token[0], token.start())
    scan.outline.open_at = scan.stack[-1].current_pointer() if scan.stack else ""
    scan.outline.deepest = (scan.offset, scan.outline.open_at)
    return scan.outline


class _Scan:
    """One pass over the tokens."""

    def __init__(self) -> None:
        self.outline = Outline()
        self.stack: list[_Frame] = []
        self.offset = 0

    def add(self, text: str, offset: int) -> None:
        self.offset = offset
        if text in "{[":
            self._value(offset)
            pointer = self.stack[-1].current_pointer() if self.stack else ""
            self.stack.append(_Frame(pointer, 0 if text == "[" else None))
        elif text in "}]":
            if self.stack:
                self.stack.pop()
        elif text == ",":
            if self.stack:
                frame = self.stack[-1]
                frame.key = None
                frame.index = None if frame.index is None else frame.index + 1
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
        pointer = frame.current_pointer()
        first = frame.members.setdefault(key, offset)
        if first != offset:
            self.outline.duplicates.append((pointer, first, offset))
        self.outline.offsets.setdefault(pointer, offset)

    def _value(self, offset: int) -> None:
        if self.stack and self.stack[-1].index is not None:
            self.outline.offsets.setdefault(self.stack[-1].current_pointer(), offset)
        elif not self.stack:
            self.outline.offsets[""] = offset


def _decoded(token: str) -> str:
    """Return the value of a string literal, or its text if an escape is invalid."""
    try:
        return str(json.loads(token, strict=False))
    except ValueError:
        return token[1:-1]
