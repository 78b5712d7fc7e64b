"""Sources: documents that were read, with the position of each of their values in the source text.

Positions are computed when a problem is printed, not when the document is read, so that loading stays fast.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from wirebook.problems import Problem, WirebookError
from wirebook.text.pointers import prefixes, unescape

BYTE_ORDER_MARK: Final = "\ufeff"
MAX_POINTER: Final = 200
"""Maximum characters of a pointer in a problem about nesting."""


class SourcePosition(NamedTuple):
    """A line and a column, both counted from 1. The column counts characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """Limits of a document.

    Units: `size` is in bytes, `depth` in levels of nesting. `values` counts values after the expansion of YAML aliases.
    """

    size: int = 64 * 1024 * 1024
    depth: int = 200
    values: int = 1_000_000


DEFAULT_LIMITS: Final = DocumentLimits()


@dataclass
class Source:
    """A document that was read.

    Shape: `name` is a path, a URL, or a name in angle brackets for a value without a text. `problems` were found while
    reading. `find_places` returns the position of every pointer.
    """

    name: str
    value: Any
    problems: tuple[Problem, ...] = ()
    find_places: Callable[[], dict[str, SourcePosition]] | None = field(default=None, repr=False)

    @cached_property
    def places(self) -> dict[str, SourcePosition]:
        """The position of every pointer. Empty for a value without a text."""
        return self.find_places() if self.find_places else {}

    def locate(self, pointer: str) -> SourcePosition | None:
        """Return the position of `pointer` or of the innermost value that contains it; None without a text."""
        return next((self.places[prefix] for prefix in prefixes(pointer) if prefix in self.places), None)

    def place(self, problem: Problem) -> Problem:
        """Return `problem` with the file, the line and the column of its pointer."""
        place = self.locate(problem.pointer or "")
        if place is None or problem.line is not None:
            return problem.at(file=problem.file or self.name)
        return problem.at(file=problem.file or self.name, line=place.line, column=place.column)


# -- reading --------------------------------------------------------------------------------------------------------


def decode_document(data: bytes, name: str, limits: DocumentLimits) -> tuple[str, tuple[Problem, ...]]:
    """Return the text of `data` without its byte order mark, and a problem if it had one.

    Raises: WirebookError (too-large, not-utf-8)
    """
    if len(data) > limits.size:
        raise WirebookError(too_large(name, len(data), limits))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", errors="replace")
        line, column = place_of(before, len(before))
        byte = f"0x{data[error.start]:02x}"
        message = f"byte {byte} at offset {error.start} is not valid UTF-8"
        problem = Problem("not-utf-8", message, file=name, line=line, column=column, actual=byte)
        raise WirebookError(problem) from None
    if not text.startswith(BYTE_ORDER_MARK):
        return text, ()
    problem = Problem("byte-order-mark", "skipped a byte order mark; remove it", file=name, line=1, column=1)
    return text[1:], (problem,)


def too_large(name: str, size: int, limits: DocumentLimits) -> Problem:
    """Return the problem of a document with too many bytes."""
    message = f"the document has {size} bytes; at most {limits.size} are allowed"
    return Problem("too-large", message, file=name, expected=limits.size, actual=size)


def duplicate_member(
    file: str, pointer: str, first: SourcePosition, second: SourcePosition, *, are_equal: bool
) -> Problem:
    """Return the problem of a member that occurs twice in an object, at the position of the second one."""
    parent, _, token = pointer.rpartition("/")
    values = "equal values" if are_equal else "different values"
    where = f"'{parent}'" if parent else "the document"
    lines = f"in lines {first.line} and {second.line}"
    message = f"the member '{unescape(token)}' occurs twice in {where}, {lines}, with {values}"
    hint = "remove one of them, or run `wirebook upgrade`, which writes it once" if are_equal else "remove one of them"
    return Problem(
        "duplicate-member", message, pointer=pointer, file=file, line=second.line, column=second.column,
        expected="one", hint=hint,
    )  # fmt: skip


def shortened_pointer(pointer: str) -> str:
    """Return the beginning of a pointer for a message."""
    return pointer if len(pointer) <= MAX_POINTER else pointer[:MAX_POINTER] + "..."


# -- positions ------------------------------------------------------------------------------------------------------


def places_of(text: str, offsets: dict[str, int]) -> dict[str, SourcePosition]:
    """Return the position of every offset. Cost: one pass over `text`, then a binary search for each offset."""
    starts = line_starts(text)
    return {pointer: place_in(starts, offset) for pointer, offset in offsets.items()}


def line_starts(text: str) -> list[int]:
    """Return the offset of the first character of each line."""
    return [0, *(newline.end() for newline in re.finditer("\n", text))]


def place_in(starts: list[int], offset: int) -> SourcePosition:
    """Return the position of an offset in a text whose lines begin at `starts`."""
    line = bisect_right(starts, offset)
    return SourcePosition(line, offset - starts[line - 1] + 1)


def place_of(text: str, offset: int) -> SourcePosition:
    """Return the position of the character at `offset`."""
    return SourcePosition(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
