"""Align a template with a text, segment by segment, so that a report can mark the segments that do not match.

The matcher decides whether a text matches. For a text that does not match, this module finds the alignment with the
lowest cost.

Spec: docs/explain.md#template-and-value
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final, Literal

from wirebook.definitions.compile.uritemplate import PLACEHOLDER, Piece, Template, scan

MAX_SEGMENTS: Final = 32
MAX_LENGTH: Final = 2000
MAX_COMPARED_LENGTH: Final = 100
"""Maximum characters of a literal segment and of a text segment that are compared, to bound the cost."""

# Costs of the alignment. A literal that does not match costs 0.5 (very similar) to 1 (different).
GAP_COST: Final = 0.75
PLACEHOLDER_COST: Final = 0.25
MISMATCH_COST: Final = 1.0

IndexPair = tuple[int | None, int | None]
"""Indexes of a template segment and of the text segment below it; None stands for a gap."""


@dataclass(frozen=True, slots=True)
class AlignedSegment:
    """One segment of a template and the segment of the text below it.

    `bound` maps the placeholders of a matching segment to their values. `extra` names the side whose segment has no
    counterpart; the other side is then "".
    """

    template: str
    value: str
    fits: bool
    bound: Mapping[str, str]
    extra: Literal["template", "value"] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"template": self.template, "value": self.value, "fits": self.fits}


def align(template: Template, text: str) -> tuple[AlignedSegment, ...]:
    """Align the segments of `template` and `text`, in order.

    The alignment has the lowest total cost: pairs that match cost least, then similar literals, then gaps and different
    segments. Returns () if the text has more than 2,000 characters, or either side more than 32 segments.
    """
    if len(text) > MAX_LENGTH:
        return ()
    separator = template.place.separator
    values = [text] if template.spanning else text.split(separator)
    literals = [template.text] if template.spanning else template.text.split(separator)
    if max(len(values), len(literals)) > MAX_SEGMENTS:
        return ()
    pairs: Sequence[IndexPair]
    pairs = [(index, index) for index in range(len(values))] if template.match(text) else _cheapest(template, values)
    segments = []
    for row, column in pairs:
        if row is None:
            segments.append(AlignedSegment("", values[column or 0], False, {}, "value"))
        elif column is None:
            segments.append(AlignedSegment(literals[row], "", False, {}, "template"))
        else:
            piece = template.pieces[row]
            captures = _captures(template, piece, values[column])
            bound = dict(zip(piece.names, captures or (), strict=False))
            segments.append(AlignedSegment(literals[row], values[column], captures is not None, bound))
    return tuple(segments)


def fill_template(template: Template, segments: Sequence[AlignedSegment], values: Mapping[str, str]) -> str:
    """Replace placeholders with the values bound in `segments`, else with those in `values`; keep the others."""
    bound = dict(values)
    for segment in segments:
        bound.update(segment.bound)
    return PLACEHOLDER.sub(lambda match: bound.get(match[1], match[0]), template.text)


def _captures(template: Template, piece: Piece, text: str) -> list[str] | None:
    """The placeholder values of one segment; None if it does not match."""
    captures = scan(piece, text)
    if captures is None or not set(template.place.forbidden).isdisjoint("".join(captures)):
        return None
    return captures


def _cheapest(template: Template, values: Sequence[str]) -> list[IndexPair]:
    """The alignment with the lowest cost, by dynamic programming as for an edit distance."""
    pair_costs = [[_pair_cost(template, piece, value) for value in values] for piece in template.pieces]
    costs = [[GAP_COST * (row + column) for column in range(len(values) + 1)] for row in range(len(pair_costs) + 1)]
    for row, row_costs in enumerate(pair_costs):
        for column, pair_cost in enumerate(row_costs):
            gap = min(costs[row][column + 1], costs[row + 1][column]) + GAP_COST
            costs[row + 1][column + 1] = min(gap, costs[row][column] + pair_cost)

    row, column = len(costs) - 1, len(costs[0]) - 1
    pairs: list[IndexPair] = []
    while row or column:
        cost = costs[row][column]
        if row and column and cost == costs[row - 1][column - 1] + pair_costs[row - 1][column - 1]:
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif row and cost == costs[row - 1][column] + GAP_COST:
            row -= 1
            pairs.append((row, None))
        else:
            column -= 1
            pairs.append((None, column))
    return pairs[::-1]


def _pair_cost(template: Template, piece: Piece, text: str) -> float:
    if _captures(template, piece, text) is not None:
        return PLACEHOLDER_COST if piece.names else 0.0
    if piece.names:
        return MISMATCH_COST
    literal = piece.literals[0][:MAX_COMPARED_LENGTH]
    return MISMATCH_COST - SequenceMatcher(None, literal, text[:MAX_COMPARED_LENGTH]).quick_ratio() / 2
