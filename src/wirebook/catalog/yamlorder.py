"""Put YAML in canonical order by moving lines: members move with their lines and the comments above them.

Members with the same key have equal values; the first one is kept. Only block mappings are ordered, because each of
their members begins a line; flow mappings (``{a: 1}``) are unchanged.

Spec: https://yaml.org/spec/1.2.2/#821-block-collections; docs/decisions/0067-canonical-order.md
"""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

Lines = list[str]


class YamlMember(NamedTuple):
    """A member of a mapping: key, node of the value, and its lines from `start` (comments included) up to `stop`."""

    key: str
    value: yaml.Node
    start: int
    stop: int


def reordered(text: str, ordered: Any) -> str:
    """Return `text` with the members of its mappings in the order of `ordered`, which has the same content.

    Raises: yaml.YAMLError if `text` is not YAML.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        return text
    begin = _comments_above(lines, root.start_mark.line, root.start_mark.column, 0)
    end = min(int(root.end_mark.line) + (root.end_mark.column > 0), len(lines))
    return "".join([*lines[:begin], *_mapping(root, ordered, lines, begin, end), *lines[end:]])


def _mapping(node: yaml.MappingNode, ordered: Any, lines: Lines, begin: int, end: int) -> Lines:
    """Return the lines of `node` (from `begin` to `end`) in order."""
    members = _members(node, lines, begin, end)
    if members is None or not isinstance(ordered, dict):
        return lines[begin:end]
    place = {str(name): number for number, name in enumerate(ordered)}
    unique = {member.key: member for member in reversed(members)}  # keeps the first of equal keys
    sorted_members = sorted(unique.values(), key=lambda member: place.get(member.key, len(place)))
    return [line for member in sorted_members for line in _member_lines(member, ordered.get(member.key), lines)]


def _members(node: yaml.MappingNode, lines: Lines, begin: int, end: int) -> list[YamlMember] | None:
    """Return the members with their lines; None if they do not begin lines (``- a: 1``, ``? key``, merge keys)."""
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
    """Return the number of the first comment line directly above a line and with the same indent."""
    while line > floor and lines[line - 1].startswith(" " * column + "#"):
        line -= 1
    return line


def _member_lines(member: YamlMember, ordered: Any, lines: Lines) -> Lines:
    """Return the lines of a member. If its value is a mapping, its members are ordered."""
    value = member.value
    if isinstance(value, yaml.MappingNode) and not value.flow_style and value.value:
        first = value.value[0][0].start_mark
        begin = _comments_above(lines, first.line, first.column, member.start + 1)
        if begin > member.start:
            return [*lines[member.start : begin], *_mapping(value, ordered, lines, begin, member.stop)]
    return lines[member.start : member.stop]
