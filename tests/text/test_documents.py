"""Documents in JSON and YAML: values, problems with their places, and hostile input."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wirebook.problems import WirebookError
from wirebook.text.json_documents import read_json
from wirebook.text.pointers import resolve
from wirebook.text.source import DocumentLimits, Source, SourcePosition
from wirebook.text.yaml import read_yaml

FILE = Path(__file__).resolve().parent.parent / "vectors" / "documents" / "reading.json"
READERS = {"json": read_json, "yaml": read_yaml}


def vectors() -> list[dict[str, Any]]:
    return json.loads(FILE.read_text("utf-8"))["vectors"]


def data_of(vector: dict[str, Any]) -> bytes:
    return bytes.fromhex(vector["hex"]) if "hex" in vector else vector["text"].encode()


@pytest.mark.parametrize("vector", [pytest.param(v, id=v["name"]) for v in vectors()])
def test_vector_is_read_or_rejected_as_stated(vector: dict[str, Any]) -> None:
    read = READERS[vector["format"]]
    if "value" in vector:
        source = read(data_of(vector), "x")
        assert source.value == vector["value"]
        assert [problem.code for problem in source.problems] == vector.get("problems", [])
        return
    with pytest.raises(WirebookError) as raised:
        read(data_of(vector), "x")
    problem = raised.value.problems[0]
    actual = {name: getattr(problem, name) for name in ("code", "line", "column", "pointer")}
    assert actual == vector["problem"]
    assert problem.file == "x"


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[" * 201 + "]" * 201], ids=["open", "keys", "closed"]
)
def test_deep_nesting_is_rejected(read: Any, text: str) -> None:
    with pytest.raises(WirebookError) as raised:
        read(text.encode(), "x")
    assert raised.value.problems[0].code == "too-deep"


def test_nesting_at_the_limit_is_accepted() -> None:
    assert read_json(b"[" * 200 + b"]" * 200, "x").value


def test_document_over_the_size_limit_is_rejected() -> None:
    with pytest.raises(WirebookError) as raised:
        read_json(b" " * 101, "x", DocumentLimits(size=100))
    assert raised.value.problems[0].code == "too-large"
    assert raised.value.problems[0].actual == 101


def test_integer_with_too_many_digits_is_rejected_with_its_place() -> None:
    with pytest.raises(WirebookError) as raised:
        read_json(b'{"a": [1, ' + b"9" * 5000 + b"]}", "x")
    problem = raised.value.problems[0]
    assert (problem.code, problem.line, problem.column, problem.pointer) == ("too-large", 1, 11, "/a/1")


@pytest.mark.parametrize("width", [9, 2])
def test_alias_expansion_over_the_limit_is_rejected(width: int) -> None:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, 60)]
    with pytest.raises(WirebookError) as raised:
        read_yaml("\n".join(lines).encode(), "x")
    assert raised.value.problems[0].code == "too-large"


def test_alias_chain_over_the_depth_limit_is_rejected() -> None:
    lines = ["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 400))]
    with pytest.raises(WirebookError) as raised:
        read_yaml("\n".join(lines).encode(), "x")
    assert raised.value.problems[0].code == "too-deep"


def test_long_keys_do_not_multiply_the_size_of_places() -> None:
    text = '{"' + "k" * 100_000 + '": {' + ", ".join(f'"m{i}": {i}' for i in range(2_000)) + "}}"
    source = read_json(text.encode(), "x")
    assert sum(map(len, source.places)) < 10_000_000


def test_pointer_is_located_at_line_and_column() -> None:
    text = '{\n  "a": {"b/c": [10,\n    {"d~": null}]},\n  "é": 1\n}\n'
    source = read_json(text.encode(), "x")
    assert source.locate("/a") == SourcePosition(2, 3)
    assert source.locate("/a/b~1c") == SourcePosition(2, 9)
    assert source.locate("/a/b~1c/0") == SourcePosition(2, 17)
    assert source.locate("/a/b~1c/1/d~0") == SourcePosition(3, 6)
    assert source.locate("/é") == SourcePosition(4, 3)
    assert source.locate("/é/not/there") == SourcePosition(4, 3), "the nearest thing that holds it"
    assert source.locate("") == SourcePosition(1, 1)


def test_value_without_text_has_no_places() -> None:
    assert Source("<value>", {"a": 1}).locate("/a") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=30,
)


def pointers_in(value: Any, pointer: str = "") -> list[str]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    pointers = [pointer]
    for token, item in members:
        pointers += pointers_in(item, f"{pointer}/{str(token).replace('~', '~0').replace('/', '~1')}")
    return pointers


@settings(deadline=None, max_examples=200)
@given(json_values, st.sampled_from([None, 1]))
def test_every_value_is_read_and_located(value: Any, indent: int | None) -> None:
    try:
        text = json.dumps(value, indent=indent).encode()
    except UnicodeEncodeError:
        return
    source = read_json(text, "x")
    assert source.value == value
    assert set(source.places) == set(pointers_in(value))
    for pointer in source.places:
        assert resolve(source.value, pointer, pointer) is not pointer or not pointer


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60))
def test_random_bytes_raise_only_wirebook_errors(data: bytes) -> None:
    for read in READERS.values():
        with suppress(WirebookError):
            read(data, "x")


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet='{}[]:,"\\ \n-&*!<ab1.#~', max_size=40))
def test_random_text_is_located_or_raises_wirebook_errors(text: str) -> None:
    for read in READERS.values():
        with suppress(WirebookError):
            assert read(text.encode(), "x").locate("") is not None
