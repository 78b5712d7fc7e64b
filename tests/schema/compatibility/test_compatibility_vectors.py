"""Every rule of compatibility, by the vectors: old, new, and what is refused, where and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.schema.compatibility import Incompatibility, backward, forward, full
from wirebook.schema.compile import ANONYMOUS
from wirebook.schema.formats import TEXTS, parse_format
from wirebook.schema.reader import CompileOptions
from wirebook.schema.source import SchemaSource
from wirebook.schema.validator import SchemaValidator

FOLDER = Path(__file__).resolve().parents[2] / "vectors" / "compatibility"
DOCS = Path(__file__).resolve().parents[3] / "docs" / "compatibility.md"
VALIDATOR = SchemaValidator()
FILES = ("avro", "jsonschema", "jsonstructure", "protobuf", "xsd")
CASES = {file: json.loads((FOLDER / f"{file}.json").read_text(encoding="utf-8")) for file in FILES}
ALL = [pytest.param(case, id=f"{file}: {case['name']}") for file in FILES for case in CASES[file]]


def source(format_: str, document: Any) -> SchemaSource:
    return SchemaSource(
        parse_format(format_), document, None, ANONYMOUS, lambda _: None, lambda *_: None, CompileOptions()
    )


def raw(format_: str, document: Any) -> bytes:
    return (document if parse_format(format_).family in TEXTS else json.dumps(document)).encode()


def compared(case: dict[str, Any]) -> list[Incompatibility]:
    return backward(*(source(case["format"], case[word]) for word in ("old", "new")))


@pytest.mark.parametrize("case", ALL)
def test_the_new_schema_reads_what_the_old_one_allows_or_the_rule_and_place_are_named(case: dict[str, Any]) -> None:
    found = compared(case)
    if case["backward"]:
        assert not found
    else:
        assert (case["path"], case["rule"]) in [(each.path, each.rule) for each in found]


@pytest.mark.parametrize("case", ALL)
def test_every_schema_is_valid_and_is_compatible_with_itself(case: dict[str, Any]) -> None:
    for word in ("old", "new"):
        assert VALIDATOR.faults(case["format"], raw(case["format"], case[word])) is None
        found = backward(*[source(case["format"], json.loads(json.dumps(case[word]))) for _ in range(2)])
        assert not found or {each.rule for each in found} == {"cannot-be-shown"}


@pytest.mark.parametrize("file", FILES)
def test_there_are_many_vectors_of_both_kinds(file: str) -> None:
    verdicts = [case["backward"] for case in CASES[file]]
    assert len(verdicts) >= 60
    assert verdicts.count(True) >= 20
    assert verdicts.count(False) >= 20


def test_forward_is_backward_exchanged_and_full_is_both() -> None:
    old, new = source("avro", "int"), source("avro", "long")
    assert backward(old, new) == forward(new, old) == []
    assert forward(old, new) == backward(new, old) == full(old, new)
    assert forward(old, new) == [Incompatibility("", "type-mismatch", "long", "int")]


def test_every_rule_of_the_vectors_is_described() -> None:
    text = DOCS.read_text(encoding="utf-8")
    rules = {case["rule"] for cases in CASES.values() for case in cases if not case["backward"]}
    assert not {rule for rule in rules if f"`{rule}`" not in text}
