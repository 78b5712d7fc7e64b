"""YAML in canonical order without a word changed: members move with their lines, and with the comments above them.

Of members with the same key, which have equal values, the first one stays.

Only block mappings move, as each of their members begins a line. What is written on one line stays as it is.

Spec: https://yaml.org/spec/1.2.2/#821-block-collections; docs/decisions/0067-canonical-order.md
"""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

Lines = list[str]


class YamlMember(NamedTuple):
    """A member of a mapping: its key, its value's node, the lines from `start` (comments included) up to `stop`."""

    key: str
    value: yaml.Node
    start: int
    stop: int


def reordered(text: str, wanted: Any) -> str:
    """`text` with the members of its mappings in the order that they have in `wanted`, the same content in order.

    Raises: yaml.YAMLError for a text that is no YAML.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        return text
    begin = _comments_above(lines, root.start_mark.line, root.start_mark.column, 0)
    end = _end_of(root, lines)
    return "".join([*lines[:begin], *_mapping(root, wanted, lines, begin, end), *lines[end:]])


def _end_of(node: yaml.Node, lines: Lines) -> int:
    """The line behind a block node: comments and blank lines below it belong to what follows."""
    end = int(node.end_mark.line) if node.end_mark.column == 0 else int(node.end_mark.line) + 1
    return min(end, len(lines))


def _mapping(node: yaml.MappingNode, wanted: Any, lines: Lines, begin: int, end: int) -> Lines:
    """The lines from `begin` to `end`, which are those of `node`, in order."""
    members = _members(node, lines, begin, end)
    if members is None or not isinstance(wanted, dict):
        return lines[begin:end]
    place = {str(name): number for number, name in enumerate(wanted)}
    once = {member.key: member for member in reversed(members)}  # the first of members with one key
    chosen = sorted(once.values(), key=lambda member: place.get(member.key, len(place)))
    return [line for member in chosen for line in _inside(member, wanted.get(member.key), lines)]


def _members(node: yaml.MappingNode, lines: Lines, begin: int, end: int) -> list[YamlMember] | None:
    """The members with their lines; None where lines do not tell them apart (``- a: 1``, ``? key``, merges)."""
    column = node.start_mark.column
    starts: list[int] = []
    for key, _ in node.value:
        line = key.start_mark.line
        if key.start_mark.column != column or lines[line][:column].strip() or key.value == "<<":
            return None
        starts.append(_comments_above(lines, line, column, starts[-1] + 1 if starts else begin))
    if not starts or starts[0] != begin:
        return None
    stops = [*starts[1:], end]
    pairs = zip(node.value, starts, stops, strict=True)
    return [YamlMember(str(key.value), value, start, stop) for (key, value), start, stop in pairs]


def _comments_above(lines: Lines, line: int, column: int, floor: int) -> int:
    """The first of the comment lines that stand right above a line, as far in as it."""
    while line > floor and lines[line - 1].startswith(" " * column + "#"):
        line -= 1
    return line


def _inside(member: YamlMember, wanted: Any, lines: Lines) -> Lines:
    """A member's own lines, the mapping in it in order."""
    value = member.value
    if isinstance(value, yaml.MappingNode) and not value.flow_style and value.value:
        first = value.value[0][0].start_mark
        begin = _comments_above(lines, first.line, first.column, member.start + 1)
        if begin > member.start:
            return [*lines[member.start : begin], *_mapping(value, wanted, lines, begin, member.stop)]
    return lines[member.start : member.stop]
