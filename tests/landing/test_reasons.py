"""The expected and actual values of dead letters, formatted for people."""

from __future__ import annotations

import pytest

from wirebook.landing.report.reasons import format_actual, format_expected


@pytest.mark.parametrize(
    ("code", "expected", "words"),
    [
        ("mismatch", "[1]", "[1]"),
        ("template-mismatch", "{ride}", "{ride}"),
        ("payload-invalid", '{"type":"integer"}', "a value of type integer"),
        ("payload-invalid", '{"type":["integer","null"]}', "a value of type integer or null"),
        ("payload-invalid", '{"required":"batch"}', "the property batch"),
        ("payload-invalid", '{"additionalProperties":false}', "no other properties"),
        ("payload-invalid", '{"enum":["open",1,null]}', "one of open, 1, null"),
        ("payload-invalid", '{"minimum":0}', "minimum 0"),
        ("payload-invalid", "a long", "a long"),
        ("payload-invalid", '{"a":', '{"a":'),
        ("unknown-endpoint", '["/endpoints/a","/endpoints/b"]', "one of /endpoints/a, /endpoints/b"),
        (
            "placeholder-conflict",
            '{"placeholder":"ride","slot":"envelopemetadata.subject","value":"r3"}',
            "r3, the value of {ride} in envelopemetadata.subject",
        ),
    ],
)
def test_expected_value_is_readable(code: str, expected: str, words: str) -> None:
    assert format_expected(code, expected) == words


@pytest.mark.parametrize(
    ("code", "actual", "words"),
    [
        ("payload-invalid", '["coupon","note"]', "coupon, note"),
        ("payload-invalid", "[1,2]", "[1,2]"),
        ("payload-invalid", "eleven", "eleven"),
        ("mismatch", '["a"]', '["a"]'),
    ],
)
def test_actual_value_is_readable(code: str, actual: str, words: str) -> None:
    assert format_actual(code, actual) == words
