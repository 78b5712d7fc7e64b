"""The vectors of every compatibility rule: an old and a new schema, and the rule and path of each incompatibility."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.schema.compatibility import Incompatibility, backward, forward
from wirebook.schema.compile import ANONYMOUS
from wirebook.schema.formats import TEXTS, parse_format
from wirebook.schema.incompatibilities import Steps
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
def test_pair_is_compatible_or_rule_and_path_are_reported(case: dict[str, Any]) -> None:
    incompatibilities = compared(case)
    if case["backward"]:
        assert not incompatibilities
    else:
        assert (case["path"], case["rule"]) in [(reason.path, reason.rule) for reason in incompatibilities]


@pytest.mark.parametrize("case", ALL)
def test_schema_is_valid_and_compatible_with_itself(case: dict[str, Any]) -> None:
    for word in ("old", "new"):
        assert VALIDATOR.faults(case["format"], raw(case["format"], case[word])) is None
        incompatibilities = backward(*[source(case["format"], json.loads(json.dumps(case[word]))) for _ in range(2)])
        assert not incompatibilities or {reason.rule for reason in incompatibilities} == {"cannot-be-shown"}


@pytest.mark.parametrize("file", FILES)
def test_vectors_cover_compatible_and_incompatible_pairs(file: str) -> None:
    verdicts = [case["backward"] for case in CASES[file]]
    assert len(verdicts) >= 60
    assert verdicts.count(True) >= 20
    assert verdicts.count(False) >= 20


def test_forward_is_reversed_backward() -> None:
    old, new = source("avro", "int"), source("avro", "long")
    assert backward(old, new) == forward(new, old) == []
    assert forward(old, new) == backward(new, old)
    assert forward(old, new) == [Incompatibility("", "type-mismatch", "long", "int")]


def test_every_rule_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    rules = {case["rule"] for cases in CASES.values() for case in cases if not case["backward"]}
    assert not {rule for rule in rules if f"`{rule}`" not in text}


def test_comparison_that_is_given_up_says_why() -> None:
    def exhausted(*_: object) -> list[Incompatibility]:
        Steps(7).take(8)
        return []

    def nested(*_: object) -> list[Incompatibility]:
        raise RecursionError

    old = source("avro", "int")
    (reason,) = backward(old, old, {old.format.family: exhausted})
    assert reason == Incompatibility("", "too-complex", None, "the comparison needs more than 7 steps")
    (reason,) = backward(old, old, {old.format.family: nested})
    assert reason.rule == "too-complex"
    assert "nested too deeply" in str(reason)
