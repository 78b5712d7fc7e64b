"""Duplicate members of JSON texts."""

from __future__ import annotations

import json

import pytest

from wirebook.text.duplicates import first_duplicate, may_have_duplicates, top_level_duplicates
from wirebook.text.json import JsonError, parse_json

DUPLICATES = {
    '{"a": 1, "a": 1}': ("a", "/a"),
    '{"a": 1, "\\u0061": 2}': ("a", "/a"),
    '{"o": [{}, {"x/y": 1, "x/y": 2}]}': ("x/y", "/o/1/x~1y"),
    '{"a": "\\u003a", "b": 1, "b": 2}': ("b", "/b"),
    '{"a\\\\":1,"a\\\\":2}': ("a\\", "/a\\"),
    '{"a" : 1, "a" : 2}': ("a", "/a"),
    '{"a": {"b": 1, "b": 2}, "a": 3}': ("a", "/a"),
}


@pytest.mark.parametrize("text", DUPLICATES)
def test_duplicate_member_is_found_with_its_pointer(text: str) -> None:
    data = text.encode()
    assert may_have_duplicates(data, json.loads(data))
    assert first_duplicate(data) == DUPLICATES[text]
    with pytest.raises(JsonError, match="duplicate member") as raised:
        parse_json(data, strict=True)
    assert raised.value.code == "duplicate-member"


@pytest.mark.parametrize("text", ['{"a": {"a": [{"a": ":"}]}}', "[]", '"\\":"', '{"a\\"": 1, "a": ":"}'])
def test_text_without_duplicates_is_accepted(text: str) -> None:
    assert first_duplicate(text.encode()) is None
    assert parse_json(text.encode(), strict=True) == json.loads(text)


def test_duplicates_in_batch_are_reported_per_event() -> None:
    assert top_level_duplicates(b'[{"a": 1}, {"b": 1, "b": 2}, {"data": {"c": 1, "c": 2}}, 5]') == [
        None,
        "b",
        None,
        None,
    ]
