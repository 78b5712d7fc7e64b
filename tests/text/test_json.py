"""The JSON reader: vectors, and properties of every input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirebook.text.json import JsonError, parse_json

VECTORS = json.loads((Path(__file__).parent.parent / "vectors/core/json-values.json").read_text())


def data_of(vector: dict[str, Any]) -> bytes:
    if "input_hex" in vector:
        return bytes.fromhex(vector["input_hex"])
    if "input_repeat" in vector:
        before, unit, times, after = vector["input_repeat"]
        tail = "]" * times if after.startswith("]*") else after
        return (before + unit * times + tail).encode()
    return bytes(vector["input"].encode())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["description"])
def test_vector_is_parsed_or_rejected_as_stated(vector: dict[str, Any]) -> None:
    expected = vector["expected"]
    if "code" not in expected:
        value = parse_json(data_of(vector))
        assert "depth" in expected or value == expected["value"]
        return
    with pytest.raises(JsonError) as caught:
        parse_json(data_of(vector))
    assert caught.value.code == expected["code"], caught.value.message
    assert caught.value.offset == expected.get("offset", caught.value.offset)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(json_values)
def test_encoded_value_is_parsed_unchanged(value: Any) -> None:
    try:
        text = json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert parse_json(text) == value


def outcome(parse: Callable[[bytes], Any], data: bytes) -> str:
    try:
        parse(data)
    except (JsonError, orjson.JSONDecodeError) as error:
        return "out of range" if "infinity" in str(error) or "range" in str(error) else "refused"
    return "accepted"


@given(st.binary(max_size=60) | st.text(alphabet='[]{}",:0123456789eE+-.truefalsn\\ud8').map(str.encode))
def test_text_is_accepted_exactly_if_orjson_accepts_it(data: bytes) -> None:
    if not data.startswith(b"\xef\xbb\xbf") and outcome(orjson.loads, data) != "out of range":
        assert outcome(parse_json, data) == outcome(orjson.loads, data)


HOSTILE = [b'"' + b'\\"' * 1_000_000 + b"[" * 300, b"[" * 2_000_000, b"1" * 4_000_000, b'["' * 500_000]


@pytest.mark.parametrize("data", HOSTILE, ids=["quotes", "depth", "digits", "open"])
def test_hostile_input_is_rejected_in_linear_time(data: bytes) -> None:
    with pytest.raises(JsonError):
        parse_json(data)
