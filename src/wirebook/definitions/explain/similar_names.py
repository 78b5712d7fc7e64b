"""Find the known name that a misspelt name is probably meant to be.

Spec: docs/explain.md#slips
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

MAX_NAME_LENGTH: Final = 100
MAX_CHOICES: Final = 500
MIN_LENGTH: Final = 3
"""Length of a known name up to which only a swap counts as a typo: short names are one edit away from other words."""
MIN_SIMILARITY: Final = 0.7


def nearest_name(name: str, choices: Iterable[str]) -> str | None:
    """Return the most similar choice, or None if no choice is similar. Case is ignored.

    Cost: bounded, because only the first 500 choices and the first 100 characters of each name are compared.
    """
    by_lower: dict[str, str] = {}
    for choice, _ in zip(choices, range(MAX_CHOICES), strict=False):
        by_lower.setdefault(choice[:MAX_NAME_LENGTH].lower(), choice)
    similar = get_close_matches(name[:MAX_NAME_LENGTH].lower(), list(by_lower), n=1, cutoff=MIN_SIMILARITY)
    return by_lower[similar[0]] if similar else None


def nearest_typo(name: str, choices: Iterable[str]) -> str | None:
    """Return the first choice that `name` is a typo of, or None. See `is_typo`."""
    return next((choice for choice in choices if is_typo(name, choice)), None)


def is_typo(name: str, known: str) -> bool:
    """Whether the names differ by one edit: a character added, missing or replaced, or two swapped. Case is ignored.

    Names that differ only in case count, too. Two edits often make another word, so they do not count. If the known
    name has at most three characters, only a swap counts.
    """
    left, right = name.casefold(), known.casefold()
    if name == known or abs(len(left) - len(right)) > 1:
        return False
    start = common_prefix_length(left, right)
    left, right = left[start:], right[start:]
    is_swap = left[:2] == right[:2][::-1] and left[2:] == right[2:]
    if min(len(name), len(known)) < MIN_LENGTH or len(known) <= MIN_LENGTH:
        return is_swap
    return is_swap or left[1:] == right[1:] or left[1:] == right or left == right[1:]


def common_prefix_length(left: str, right: str) -> int:
    """The length of the longest common prefix."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))
