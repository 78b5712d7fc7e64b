"""`Outcome.data` without a schema: the same form in binary and in structured mode."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from wirebook.catalog import Catalog
from wirebook.definitions.match.outcome import Outcome

MESSAGE = {"messageid": "m", "envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t"}}}
CATALOG = Catalog.load({"messagegroups": {"g": {"messagegroupid": "g", "messages": {"m": MESSAGE}}}})
ATTRIBUTES = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


def binary(content_type: str | None, data: bytes) -> Outcome:
    headers = [[f"ce_{name}", value] for name, value in ATTRIBUTES.items()]
    if content_type is not None:
        headers.append(["content-type", content_type])
    value = {"base64": base64.b64encode(data).decode()}
    return CATALOG.match({"protocol": "KAFKA", "headers": headers, "value": value})


def structured(content_type: str | None, **data: Any) -> Outcome:
    event = ATTRIBUTES | data | ({} if content_type is None else {"datacontenttype": content_type})
    headers = [["content-type", "application/cloudevents+json"]]
    return CATALOG.match({"protocol": "KAFKA", "headers": headers, "value": json.dumps(event)})


@pytest.mark.parametrize("content_type", ["application/json", "Application/Vnd.X+JSON; charset=utf-8"])
@pytest.mark.parametrize("value", [{"n": 1}, [1, None], "text", 5, None, True, 2**70])
def test_json_data_is_the_decoded_value_in_both_modes(content_type: str, value: Any) -> None:
    raw = json.dumps(value).encode()
    outcomes = [
        binary(content_type, raw),
        structured(content_type, data=value),
        structured(content_type, data_base64=base64.b64encode(raw).decode()),
    ]
    assert [outcome.data for outcome in outcomes] == [value] * 3
    assert all(outcome.matched for outcome in outcomes)


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "application/octet-stream"])
def test_other_data_is_bytes_in_both_modes(content_type: str) -> None:
    raw = "grüß".encode()
    outcomes = [
        binary(content_type, raw),
        structured(content_type, data="grüß"),
        structured(content_type, data_base64=base64.b64encode(raw).decode()),
    ]
    assert [outcome.data for outcome in outcomes] == [raw] * 3


def test_json_that_does_not_parse_is_bytes() -> None:
    assert binary("application/json", b"{]").data == b"{]"


def test_data_without_a_content_type_is_json_in_structured_mode_and_bytes_in_binary_mode() -> None:
    assert structured(None, data={"n": 1}).data == {"n": 1}
    assert binary(None, b'{"n": 1}').data == b'{"n": 1}'


def test_no_data_is_none_in_both_modes() -> None:
    assert structured("application/json").data is None
    assert CATALOG.match({"protocol": "KAFKA", "headers": [], "value": None}).data is None
