"""Sources: a document, the text it was read from, and where in that text each of its values stands.

Positions are worked out when a finding is shown, not when the document is read: loading pays nothing for them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from wirebook.problems import Problem
from wirebook.text.pointers import prefixes


class SourcePosition(NamedTuple):
    """A line and a column, both from 1; the column counts characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """What a document may be.

    Units: `size` bytes, `depth` levels of nesting, `values` values when every YAML alias is written out.
    """

    size: int = 64 * 1024 * 1024
    depth: int = 200
    values: int = 1_000_000


DEFAULT_LIMITS: Final = DocumentLimits()


@dataclass
class Source:
    """One document.

    Shape: `name` is the path, the URL, or a word in angle brackets for a value that came without a text; `problems`
    are what reading it found; `find_places` gives the place of every pointer.
    """

    name: str
    value: Any
    problems: tuple[Problem, ...] = ()
    find_places: Callable[[], dict[str, SourcePosition]] | None = field(default=None, repr=False)

    @cached_property
    def places(self) -> dict[str, SourcePosition]:
        return self.find_places() if self.find_places else {}

    def locate(self, pointer: str) -> SourcePosition | None:
        """Where `pointer` stands, or the nearest thing that holds it; None for a document without a text."""
        return next((self.places[held] for held in prefixes(pointer) if held in self.places), None)

    def place(self, problem: Problem) -> Problem:
        """`problem` with the file, the line and the column of its pointer."""
        place = self.locate(problem.pointer or "")
        if place is None or problem.line is not None:
            return problem.at(file=problem.file or self.name)
        return problem.at(file=problem.file or self.name, line=place.line, column=place.column)


def places_of(text: str, offsets: dict[str, int]) -> dict[str, SourcePosition]:
    """The place of every offset. Cost: one pass over `text`, then a search in its line starts for each."""
    starts = line_starts(text)
    return {pointer: place_in(starts, offset) for pointer, offset in offsets.items()}


def line_starts(text: str) -> list[int]:
    """The offset of each line's first character."""
    return [0, *(found.end() for found in re.finditer("\n", text))]


def place_in(starts: list[int], offset: int) -> SourcePosition:
    """The line and column of an offset in a text with these line starts."""
    line = bisect_right(starts, offset)
    return SourcePosition(line, offset - starts[line - 1] + 1)


def place_of(text: str, offset: int) -> SourcePosition:
    """The line and column of the character at `offset`."""
    return SourcePosition(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
