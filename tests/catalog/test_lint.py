"""Lint as vectors: every finding of one broken document, as ``[code, pointer]``; and that no code is untested."""

from __future__ import annotations

import copy
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wirebook.catalog.lint import lint
from wirebook.catalog.load import load_registry
from wirebook.catalog.registry import Registry
from wirebook.message.definition import constraint_of
from wirebook.message.lint_properties import Property, check_property
from wirebook.message.lint_reach import MAX_TOLD
from wirebook.message.slots import ENVELOPE, Slot, attribute_kind
from wirebook.message.values import DECLARABLE
from wirebook.problems import CODES, codes

TESTS = Path(__file__).resolve().parent.parent
FOLDER = TESTS / "vectors" / "documents"
PLACES = {"message": "/messagegroups/g/messages/m", "endpoint": "/endpoints/e", "document": ""}


def vectors() -> list[dict[str, Any]]:
    return json.loads((FOLDER / "lint.json").read_text("utf-8"))["vectors"]


def wrap(kind: str, given: Any) -> dict[str, Any]:
    if kind == "message":
        return {"messagegroups": {"g": {"messages": {"m": given}}}}
    return {"endpoints": {"e": given}} if kind == "endpoint" else given


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["name"]) for vector in vectors()])
def test_findings(vector: dict[str, Any]) -> None:
    kind = next(name for name in PLACES if name in vector)
    registry = load_registry(wrap(kind, copy.deepcopy(vector[kind])))
    found = [[problem.code, problem.pointer.removeprefix(PLACES[kind])] for problem in lint(registry)]
    assert sorted(found) == sorted(vector["findings"])


def test_each_code_is_in_a_test() -> None:
    """The codes of documents, as they stand together in the list, all occur in the vectors or in a test."""
    text = Path(codes.__file__).read_text("utf-8")
    section = text[text.index("# -- documents: reading") : text.index("# -- matching a message against")]
    named = set(re.findall(r'\("([a-z0-9-]+)", [A-Z]', section))
    assert named <= CODES.keys()
    tests = "".join(path.read_text("utf-8") for path in [*FOLDER.glob("*.json"), *TESTS.glob("*/test_*.py")])
    assert {code for code in named if f'"{code}"' not in tests and f"[{code}]" not in tests} == set()


def test_findings_have_places(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"messagegroups": {"g": {"messages": {"m": {\n  "dataschemaurl": "https://s.example"}}}}}')
    problem = next(problem for problem in lint(load_registry(file)) if problem.code == "schema-without-format")
    assert (problem.file, problem.line, problem.column) == (str(file), 2, 3)
    assert problem.pointer == "/messagegroups/g/messages/m/dataschemaurl"
    assert problem.xid == "/messagegroups/g/messages/m"


@pytest.mark.parametrize("type_", [None, *sorted(DECLARABLE)])
@pytest.mark.parametrize("name", ["time", "other"])
def test_what_is_said_of_placeholders_is_what_matching_does(name: str, type_: str | None) -> None:
    kind, fields = attribute_kind(name), {"value": "{x}"} | ({"type": type_} if type_ else {})
    constraint = constraint_of(Slot(ENVELOPE, name, name), kind, fields)
    findings = check_property(Property(ENVELOPE, name, "", kind, fields))
    said = [finding.message for finding in findings if finding.code == "template-in-other-type"]
    assert said or constraint.template is not None
    assert all(("as a template" in message) == (constraint.template is not None) for message in said)


def many(number: int, options: Callable[[int], dict[str, Any]]) -> Registry:
    messages = {f"m{n}": {"protocol": "MQTT/5.0", "protocoloptions": options(n)} for n in range(number)}
    return load_registry({"messagegroups": {"g": {"messages": messages}}})


def test_ten_thousand_definitions_are_compared_in_seconds() -> None:
    registry = many(10_000, lambda n: {"topic_name": f"site/{{a}}/line{n % 100}/{{b}}/kind{n}"})
    start = time.process_time()
    assert lint(registry) == ()
    assert time.process_time() - start < 20  # some 2 s; each with each would take minutes


def test_pairs_without_end_are_bounded_and_said() -> None:
    crossing = many(600, lambda n: {"topic_name": "/".join(f"{{p{i}}}" if n >> i & 1 else f"s{i}" for i in range(10))})
    found = Counter(problem.code for problem in lint(crossing))
    assert found["overlapping-templates"] <= MAX_TOLD
    assert found["pairs-not-compared"] == 1
