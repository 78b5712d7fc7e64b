"""JSON Pointers: formatting, parsing and resolving."""

from __future__ import annotations

from wirebook.text.pointers import format_pointer, parse_pointer, prefixes, resolve
from wirebook.text.source import MAX_POINTER, shortened_pointer


def test_pointer_is_formatted_parsed_and_resolved() -> None:
    assert format_pointer(["a/b", "c~d", 0]) == "/a~1b/c~0d/0"
    assert parse_pointer("#/a~1b/c~0d/0") == ("a/b", "c~d", "0")
    assert list(prefixes("/a/b")) == ["/a/b", "/a", ""]
    assert resolve({"a": [{"b": 1}]}, "/a/0/b") == 1
    assert resolve({"a": []}, "/a/0/b", "no") == "no"


def test_pointer_is_shortened_only_if_something_is_left_out() -> None:
    pointer = "/" + "a" * (MAX_POINTER - 1)
    assert shortened_pointer(pointer) == pointer
    assert shortened_pointer(pointer + "b") == pointer + "..."
