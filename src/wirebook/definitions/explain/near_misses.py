"""How much a definition differs from a message, to order the definitions of an explanation.

Selection orders near misses by the number of mismatches. An explanation also considers how large the differences are,
so that a typo of one letter comes before a different value.

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
    """A sort key: the smallest is the closest definition.

    Criteria: the number of slots that do not match, the size of their differences, the number of payload faults, and
    the number of slots that match (more is closer).
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
        return 0.5 if report.nearest else 1  # a missing value counts half if there is a likely typo for its name
    if isinstance(report.expected, str) and isinstance(report.actual, str):
        return _dissimilarity(report.expected, report.actual)
    return 0.5


def _dissimilarity(left: str, right: str) -> float:
    left, right = left[:MAX_COMPARED_LENGTH].lower(), right[:MAX_COMPARED_LENGTH].lower()
    return 1 - SequenceMatcher(None, left, right, autojunk=False).ratio()
