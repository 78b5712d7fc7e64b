"""Format counts with their nouns, for messages."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 message``, ``2 messages`` or ``1,000 messages``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
