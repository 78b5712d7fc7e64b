"""Template and text side by side: segment under segment, and where they part.

What fits is what the template's own scan says; this only looks for the reading of a text that fits nowhere which is
nearest to the template, so that people see the one level that is wrong.

Spec: docs/explain.md#template-and-value
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from typing import Any, Literal

from wirebook.definitions.compile.uritemplate import PLACEHOLDER, Piece, Template, scan

MAX_SEGMENTS = 32
MAX_LENGTH = 2000
MAX_NAME = 100
MAX_CHOICES = 500
MIN_SLIP = 3  # letters: the names next to a shorter one are mostly other words
LIKENESS = 0.7
GAP, HELD_BY_PLACEHOLDER = 0.75, 0.25

Pair = tuple[int | None, int | None]  # a segment of the template over one of the text


@dataclass(frozen=True, slots=True)
class AlignedSegment:
    """One segment of a template over one of the text; either is "" where the other has one more.

    `bound`: what the segment's placeholders take, where it fits. `extra`: which of the two has this one more.
    """

    template: str
    value: str
    fits: bool
    bound: Mapping[str, str]
    extra: Literal["template", "value"] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"template": self.template, "value": self.value, "fits": self.fits}


def nearest_name(name: str, choices: Iterable[str]) -> str | None:
    """The choice that `name` is most likely a slip for, or the other way round; letters' case does not matter.

    Cost: bounded, whatever the names are.
    """
    known: dict[str, str] = {}
    for choice, _ in zip(choices, range(MAX_CHOICES), strict=False):
        known.setdefault(choice[:MAX_NAME].lower(), choice)
    found = get_close_matches(name[:MAX_NAME].lower(), list(known), n=1, cutoff=LIKENESS)
    return known[found[0]] if found else None


def nearest_slip(name: str, choices: Iterable[str]) -> str | None:
    """The choice that `name` is one typing error away from: a letter too many, too few, wrong, or two swapped.

    The case of letters is ignored. Two edits may be another word, so they are no slip.
    """
    return next((choice for choice in choices if is_slip(name, choice)), None)


def is_slip(name: str, known: str) -> bool:
    """Is `name` one typing error away from `known`? Short names are a slip only where letters are swapped."""
    left, right = name.casefold(), known.casefold()
    if name == known or abs(len(left) - len(right)) > 1:
        return False
    start = begin_alike(left, right)
    left, right = left[start:], right[start:]
    swapped = left[:2] == right[:2][::-1] and left[2:] == right[2:]
    if min(len(name), len(known)) < MIN_SLIP or len(known) <= MIN_SLIP:
        return swapped
    return swapped or left[1:] == right[1:] or left[1:] == right or left == right[1:]


def begin_alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def parted(template: Template, text: str) -> tuple[AlignedSegment, ...]:
    """The segments of `template` and `text`, in order; none when either is too long to be looked at.

    Rule: as many as possible stand over a segment that fits them, then over one that is like them.
    """
    if len(text) > MAX_LENGTH:
        return ()
    separator = template.place.separator
    texts = [text] if template.spanning else text.split(separator)
    templates = [template.text] if template.spanning else template.text.split(separator)
    if max(len(texts), len(templates)) > MAX_SEGMENTS:
        return ()
    straight: list[Pair] = [(index, index) for index in range(len(texts))]
    pairs = straight if template.match(text) else _pairs(template, texts)
    return tuple(_part(template, templates, texts, pair) for pair in pairs)


def filled(template: Template, parts: Sequence[AlignedSegment], known: Mapping[str, str]) -> str:
    """The template with what the parts that fit bind, else with what is `known`; other placeholders stay."""
    bound = dict(known)
    for part in parts:
        bound.update(part.bound)
    return PLACEHOLDER.sub(lambda found: bound.get(found[1], found[0]), template.text)


def _part(template: Template, templates: Sequence[str], texts: Sequence[str], pair: Pair) -> AlignedSegment:
    above, below = pair
    if above is None:
        return AlignedSegment("", texts[below or 0], False, {}, "value")
    if below is None:
        return AlignedSegment(templates[above], "", False, {}, "template")
    piece = template.pieces[above]
    captures = _captures(template, piece, texts[below])
    bound = dict(zip(piece.names, captures or (), strict=False))
    return AlignedSegment(templates[above], texts[below], captures is not None, bound)


def _captures(template: Template, piece: Piece, text: str) -> list[str] | None:
    captures = scan(piece, text)
    if captures is None or not set(template.place.forbidden).isdisjoint("".join(captures)):
        return None
    return captures


def _pairs(template: Template, texts: Sequence[str]) -> list[Pair]:
    """The cheapest way to set the template's segments over the text's: least edits, as in a spelling distance."""
    apart = [[_distance(template, piece, text) for text in texts] for piece in template.pieces]
    costs = [[GAP * (row + column) for column in range(len(texts) + 1)] for row in range(len(apart) + 1)]
    for row, distances in enumerate(apart):
        for column, distance in enumerate(distances):
            gap = min(costs[row][column + 1], costs[row + 1][column]) + GAP
            costs[row + 1][column + 1] = min(gap, costs[row][column] + distance)
    return _way(apart, costs)


def _way(apart: list[list[float]], costs: list[list[float]]) -> list[Pair]:
    """The pairs that the least of the costs comes from, walked from the end."""
    row, column = len(costs) - 1, len(costs[0]) - 1
    pairs: list[Pair] = []
    while row or column:
        here = costs[row][column]
        if row and column and here == costs[row - 1][column - 1] + apart[row - 1][column - 1]:
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif row and here == costs[row - 1][column] + GAP:
            row -= 1
            pairs.append((row, None))
        else:
            column -= 1
            pairs.append((None, column))
    return pairs[::-1]


def _distance(template: Template, piece: Piece, text: str) -> float:
    if _captures(template, piece, text) is not None:
        return HELD_BY_PLACEHOLDER if piece.names else 0.0
    if piece.names:
        return 1.0
    return 1.0 - SequenceMatcher(None, piece.literals[0][:MAX_NAME], text[:MAX_NAME]).quick_ratio() / 2
