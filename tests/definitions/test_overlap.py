"""What is said of pairs of definitions, held against what matching does with messages."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from wirebook.bindings.read import read_record
from wirebook.definitions.compile.definition import Definition, compile_definition
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.lint.overlap import covers, overlap_of, weight_of
from wirebook.definitions.lint.pairs import DefinitionPairs
from wirebook.definitions.match.matcher import match_metadata

SEGMENTS = ("a", "b", "ab", "{x}", "{y}", "a{x}", "{x}b", "a{y}b", "{x}-{y}")
TEXTS = ("a", "b", "ab", "aab", "abb", "a-b", "a-", "aa-bb", "-", "c")


def definition(*segments: str, retained: str | None = None) -> Definition:
    options: dict[str, Any] = {"topic_name": "/".join(segments)}
    if retained is not None:
        options["user_properties"] = [{"name": "k", "value": retained}]
    attributes = {"protocol": "MQTT/5.0", "protocoloptions": options}
    return compile_definition("/messagegroups/g/messages/m", "/messagegroups/g", attributes)


def views() -> list[MessageView]:
    records = (
        f'{{"protocol": "MQTT/5.0", "topic": "{topic}", "user_properties": [["k", "{value}"]], "payload": ""}}'
        for topic, value in product(["/".join(pair) for pair in product(TEXTS, TEXTS)], ("a", "ab"))
    )
    return [MessageView(read_record(record.encode())[0]) for record in records]


@pytest.fixture(scope="module")
def messages() -> list[MessageView]:
    return views()


def test_overlapping_definitions_share_a_message(messages: list[MessageView]) -> None:
    """Nothing is claimed that a message contradicts; and of what is so, most is seen."""
    chooser = random.Random(5)
    seen = missed = 0
    for _ in range(400):
        one, other = (
            definition(*chooser.choices(SEGMENTS, k=2), retained=chooser.choice((None, "a", "{x}", "{z}")))
            for _ in range(2)
        )
        fits_one, fits_other = ([match_metadata(d, view) for view in messages] for d in (one, other))
        both = [(a, b) for a, b in zip(fits_one, fits_other, strict=True) if a and b]
        if covers(one, other):
            seen += 1
            assert all(a for a, b in zip(fits_one, fits_other, strict=True) if b)
            if weight_of(one) > weight_of(other):
                assert all(a.rank > b.rank for a, b in both)
        elif any(fits_other) and all(a for a, b in zip(fits_one, fits_other, strict=True) if b):
            missed += 1
        if both and not covers(one, other) and not covers(other, one):
            names = [
                name for side in (one, other) for c in side.all_constraints if c.template for name in c.template.names
            ]
            assert overlap_of(one, other) is not None or len(names) > 1
    assert seen > 8
    assert missed < 20  # the texts are few: what fits none of them by chance


def test_example_of_an_overlap_matches_both_definitions() -> None:
    for first, second in product(product(SEGMENTS[:8], repeat=2), repeat=2):
        one, other = definition(*first), definition(*second)
        met = overlap_of(one, other)
        if met is None:
            continue
        record = f'{{"protocol": "MQTT/5.0", "topic": "{met.text}", "payload": ""}}'
        view = MessageView(read_record(record.encode())[0])
        assert match_metadata(one, view), (first, second, met)
        assert match_metadata(other, view), (first, second, met)


def test_different_prefixes_do_not_overlap() -> None:
    pairs = DefinitionPairs([definition(f"order{number:05}-{{x}}") for number in range(3_000)])
    assert len(list(pairs)) < 30_000
    assert pairs.complete


def test_every_pair_with_a_common_message_is_compared(messages: list[MessageView]) -> None:
    chooser = random.Random(7)
    definitions = [definition(*chooser.choices(SEGMENTS, k=chooser.choice((2, 2, 1, 3)))) for _ in range(60)]
    fits = [{i for i, view in enumerate(messages) if match_metadata(d, view)} for d in definitions]
    overlapping = {(i, j) for i in range(60) for j in range(i) if fits[i] & fits[j]}
    pairs = DefinitionPairs(definitions)
    compared = list(pairs)
    assert pairs.complete
    assert len(compared) == len(set(compared))
    assert {(max(pair), min(pair)) for pair in compared} >= overlapping
