from __future__ import annotations

import pytest

from wirebook.core.xid import is_message, parse_xid
from wirebook.text.pointers import format_pointer, parse_pointer, prefixes, resolve


@pytest.mark.parametrize(
    "text",
    [
        "/messagegroups/g",
        "/messagegroups/g/messages/m",
        "/endpoints/e/messages/m/meta",
        "/schemagroups/s/schemas/a:b@c~d/versions/v1.0",
    ],
)
def test_xids(text: str) -> None:
    xid = parse_xid(text)
    assert xid is not None
    assert str(xid) == text
    assert text.startswith(xid.entity)
    assert xid.entity.startswith(xid.container)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "/",
        "messagegroups/g",
        "/messagegroups",
        "/messagegroups/",
        "/messagegroups/g/messages",
        "/messagegroups/g/schemas/s",
        "/schemagroups/s/messages/m",
        "/things/g",
        "/messagegroups/g/messages/m/versions",
        "/messagegroups/g/messages/m/meta/x",
        "/messagegroups/-g",
        "/messagegroups/" + "g" * 129,
        "/messagegroups/a b",
    ],
)
def test_no_xids(text: object) -> None:
    assert parse_xid(text) is None


def test_messages() -> None:
    assert is_message(parse_xid("/endpoints/e/messages/m"))
    assert is_message(parse_xid("/messagegroups/g/messages/m/versions/1"))
    assert not is_message(parse_xid("/messagegroups/g/messages/m/meta"))
    assert not is_message(parse_xid("/messagegroups/g"))
    assert not is_message(None)


def test_pointers() -> None:
    assert format_pointer(["a/b", "c~d", 0]) == "/a~1b/c~0d/0"
    assert parse_pointer("#/a~1b/c~0d/0") == ("a/b", "c~d", "0")
    assert list(prefixes("/a/b")) == ["/a/b", "/a", ""]
    assert resolve({"a": [{"b": 1}]}, "/a/0/b") == 1
    assert resolve({"a": []}, "/a/0/b", "no") == "no"
