"""XIDs: parsing and formatting."""

from __future__ import annotations

import pytest

from wirebook.core.xid import is_message, parse_xid


@pytest.mark.parametrize(
    "text",
    [
        "/messagegroups/g",
        "/messagegroups/g/messages/m",
        "/endpoints/e/messages/m/meta",
        "/schemagroups/s/schemas/a:b@c~d/versions/v1.0",
    ],
)
def test_valid_xid_is_parsed(text: str) -> None:
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
def test_invalid_xid_returns_none(text: object) -> None:
    assert parse_xid(text) is None


def test_is_message_distinguishes_messages_from_other_xids() -> None:
    assert is_message(parse_xid("/endpoints/e/messages/m"))
    assert is_message(parse_xid("/messagegroups/g/messages/m/versions/1"))
    assert not is_message(parse_xid("/messagegroups/g/messages/m/meta"))
    assert not is_message(parse_xid("/messagegroups/g"))
    assert not is_message(None)
