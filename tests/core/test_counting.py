"""Numbers with nouns."""

from __future__ import annotations

import pytest

from wirebook.core.counting import counted


@pytest.mark.parametrize(
    ("number", "noun", "plural", "text"),
    [
        (0, "message", None, "0 messages"),
        (1, "message", None, "1 message"),
        (2, "message", None, "2 messages"),
        (1000, "entity", "entities", "1,000 entities"),
        (1, "entity", "entities", "1 entity"),
    ],
)
def test_noun_agrees_with_number(number: int, noun: str, plural: str | None, text: str) -> None:
    assert counted(number, noun, plural) == text
