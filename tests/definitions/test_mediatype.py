"""Media types compare as RFC 9110 says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebook.definitions.compile.mediatype import inferred_content_type, parse_media_type


@pytest.mark.parametrize(
    ("declared", "actual", "fits"),
    [
        ("application/json", "Application/JSON; CharSet=UTF-8", True),
        ("application/json; charset=utf-8", "application/json", False),
        ("text/plain; charset=utf-8", "TEXT/Plain; CharSet=UTF-8", True),
        ('a/b; profile="X"', "a/b; profile=X", True),
        ('a/b; profile="X"', "a/b; profile=x", False),
        ("a/b; x=1; y=2", 'a/b;y="2" ;x=1', True),
        ("a/b", "a/c", False),
        ('a/b; q="a;b"', 'a/b; q="a;b"', True),
    ],
)
def test_content_type_satisfies_declared_one(declared: str, actual: str, fits: bool) -> None:
    one, other = parse_media_type(declared), parse_media_type(actual)
    assert one is not None
    assert other is not None
    assert other.satisfies(one) is fits


@pytest.mark.parametrize("text", ["", "json", "a/", "/b", "a/b c", "a/b; x", 'a/b; x="', "a/b" + ";x=1" * 1000])
def test_invalid_media_type_is_none(text: str) -> None:
    assert parse_media_type(text) is None


@given(st.text())
def test_long_text_is_parsed_in_bounded_time(text: str) -> None:
    parse_media_type(text)


def test_content_type_is_inferred_from_the_schema_format() -> None:
    assert inferred_content_type("JSONSchema/Draft-07") == "application/json"
    assert inferred_content_type("Protobuf/3") == "application/protobuf"
    assert inferred_content_type("mine/1") is None
    assert inferred_content_type(None) is None
