"""Order the definitions of an explanation by how much they differ from the message.

Selection orders near misses by the number of mismatches. An explanation also considers the size of each difference, so
that a definition that differs by one letter comes before one with another value.

Spec: docs/explain.md#which-definitions-are-shown; docs/decisions/0084-near-miss-ranking.md
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final

from wirebook.definitions.explain.comparison import SlotReport
from wirebook.definitions.explain.payload_faults import PayloadReport

MAX_COMPARED_LENGTH: Final = 200


def distance(slots: Sequence[SlotReport], payload: PayloadReport | None) -> tuple[float, ...]:
    """A sort key; the closest definition has the smallest key.

    Criteria: fewer slots that do not match, smaller differences in them, fewer payload faults, more slots that match.
    """
    wrong = [report for report in slots if report.verdict == "wrong"]
    faults = len(payload.faults) if payload is not None else 0
    fitting = sum(report.verdict == "fits" for report in slots)
    return len(wrong), round(sum(map(_difference, wrong)), 3), faults, -fitting


def _difference(report: SlotReport) -> float:
    """The difference between the definition and the message in one slot, from 0 to 1."""
    differing = [part for part in report.parts if not part.fits]
    if differing:
        return sum(_dissimilarity(part.template, part.value) for part in differing) / len(report.parts)
    if report.actual is None:
        return 0.5 if report.nearest else 1  # a missing value counts half if its name is probably misspelt
    if isinstance(report.expected, str) and isinstance(report.actual, str):
        return _dissimilarity(report.expected, report.actual)
    return 0.5


def _dissimilarity(left: str, right: str) -> float:
    left, right = left[:MAX_COMPARED_LENGTH].lower(), right[:MAX_COMPARED_LENGTH].lower()
    return 1 - SequenceMatcher(None, left, right, autojunk=False).ratio()
