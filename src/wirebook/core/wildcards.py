"""Text patterns with the wildcard ``*``."""

from __future__ import annotations

from functools import lru_cache


def matches_wildcard(text: str, pattern: str) -> bool:
    """Return whether `text` matches `pattern`, in which ``*`` stands for any characters and ``\\*`` for an asterisk.

    Cost: linear in the length of the text.
    """
    literals = _literals(pattern)
    if len(literals) == 1:
        return text == literals[0]
    first, *middle, last = literals
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    position, end = len(first), len(text) - len(last)
    for literal in middle:
        start = text.find(literal, position, end)
        if start < 0:
            return False
        position = start + len(literal)
    return True


@lru_cache(maxsize=256)
def _literals(pattern: str) -> list[str]:
    """Return the literal texts between the wildcards of a pattern."""
    return [literal.replace("\0", "*") for literal in pattern.replace("\\*", "\0").split("*")]
