"""Dot notation: the path of a value within an entity.

    path  = step *( step )          step = "." name / "[" quote name quote "]" / "[" integer "]" / ".*" / "[*]"

The first step has no dot, and its name consists of attribute name characters. `.*` (`*` as the first step) matches any
member, `[*]` any item; `['*']` is the member named `*`. A name without quotes contains no `*`.

Spec: core/spec.md#xregistry-dot--notation; core/spec.md#dot-notation-in-filters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

NAME: Final = re.compile(r"\*(?![^.\[])|[^.\[\]'\"\s*]++(?!\*)")
ATTRIBUTE: Final = re.compile(r"\*(?![^.\[])|[A-Za-z0-9_]++(?!\*)")
PLAIN: Final = re.compile(r"[^.\[\]'\"\s*,=!<>]+")
"""Names that need no quotes, in filters either, where some characters separate paths from values and expressions."""
QUOTED: Final = re.compile(r"\[(?:'([^']+)'|\"([^\"]+)\")\]")
INDEX: Final = re.compile(r"\[(?:([0-9]{1,9})|(\*))\]")
"""An index of more digits is not valid: no array has that many items."""


@dataclass(frozen=True, slots=True)
class PathMember:
    """A step to the member with the given name."""

    name: str


@dataclass(frozen=True, slots=True)
class Item:
    """A step to an item of an array; indexes start at 0."""

    index: int


class _Any:
    """A wildcard step: any member of an object or a map (`ANY_MEMBER`), or any item of an array (`ANY_ITEM`)."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


ANY_MEMBER: Final = _Any(".*")
ANY_ITEM: Final = _Any("[*]")
Step = PathMember | Item | _Any
DotPath = tuple[Step, ...]


class BadPath(ValueError):
    """The text is not a valid path; the message contains the position of the error, counted from 1."""

    def __init__(self, why: str, position: int) -> None:
        super().__init__(f"{why} at position {position}")


def parse_dotpath(text: str) -> DotPath:
    """Return the steps of `text`. Raises: BadPath"""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        step, position = _step(text, position, is_first=not steps)
        steps.append(step)
    if not steps:
        raise BadPath("a name is missing", 1)
    return tuple(steps)


def _step(text: str, position: int, is_first: bool) -> tuple[Step, int]:
    if match := QUOTED.match(text, position):
        return PathMember(match[1] or match[2]), match.end()
    if not is_first and (match := INDEX.match(text, position)):
        return (Item(int(match[1])) if match[1] else ANY_ITEM), match.end()
    if text[position] == "." and not is_first:
        position += 1
    elif not is_first:
        raise BadPath(f"'{text[position]}' is neither '.' nor a bracket with a name or a number", position + 1)
    if not (match := (ATTRIBUTE if is_first else NAME).match(text, position)):
        if "*" in text[position:].partition(".")[0]:
            raise BadPath("'*' must be a whole name; it cannot be a part of one", position + 1)
        raise BadPath("a name is missing", position + 1)
    return (ANY_MEMBER if match[0] == "*" else PathMember(match[0])), match.end()


def format_dotpath(path: DotPath) -> str:
    """Return the path as text that `parse_dotpath` can read."""
    return "".join(map(_format, path)).removeprefix(".")


def below(path: str, name: str) -> str:
    """Return the path of the member `name` of the value at `path`.

    A name that is not valid without quotes, such as one with a dot, is put in brackets.
    """
    return path + _member(name)


def _format(step: Step) -> str:
    if isinstance(step, Item):
        return f"[{step.index}]"
    if not isinstance(step, PathMember):
        return repr(step)
    return _member(step.name)


@lru_cache(maxsize=1024)
def _member(name: str) -> str:
    if PLAIN.fullmatch(name):
        return f".{name}"
    return f'["{name}"]' if "'" in name else f"['{name}']"


def values_at(value: Any, path: DotPath) -> Iterator[Any]:
    """Yield all values at a path. A JSON null counts as absent."""
    if not path:
        if value is not None:
            yield value
        return
    for _, inner in members_at(value, path[0]):
        yield from values_at(inner, path[1:])


def members_at(value: Any, step: Step) -> Iterable[tuple[str | int, Any]]:
    """Return the members or items that match one step, with their names or indexes."""
    if isinstance(value, Mapping):
        if isinstance(step, PathMember):
            return ((step.name, value[step.name]),) if step.name in value else ()
        return value.items() if step is ANY_MEMBER else ()
    if isinstance(value, list):
        if isinstance(step, Item):
            return ((step.index, value[step.index]),) if step.index < len(value) else ()
        return enumerate(value) if step is ANY_ITEM else ()
    return ()
