"""Lint vectors: all findings of one document, as ``[code, pointer]``; every code occurs in a test."""

from __future__ import annotations

import copy
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from wirebook.catalog.load import load_registry, read_text
from wirebook.catalog.upgrade import upgrade
from wirebook.definitions.compile.definition import constraint_of
from wirebook.definitions.compile.slots import ENVELOPE, Slot, attribute_kind
from wirebook.definitions.compile.values import DECLARABLE
from wirebook.definitions.lint.properties import Property, check_property
from wirebook.definitions.lint.reachability import MAX_PER_PLACE
from wirebook.definitions.lint.registry import lint
from wirebook.definitions.resolve.registry import LoadedRegistry
from wirebook.problems import CODES, Problem, Severity, WirebookError, codes
from wirebook.problems.rules import Rule, rules

TESTS = Path(__file__).resolve().parent.parent
FOLDER = TESTS / "vectors" / "documents"
PLACES = {"message": "/messagegroups/g/messages/m", "endpoint": "/endpoints/e", "document": ""}


def vectors() -> list[dict[str, Any]]:
    return json.loads((FOLDER / "lint.json").read_text("utf-8"))["vectors"]


def wrap(kind: str, value: Any) -> dict[str, Any]:
    if kind == "message":
        return {"messagegroups": {"g": {"messages": {"m": value}}}}
    return {"endpoints": {"e": value}} if kind == "endpoint" else value


@pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["name"]) for vector in vectors()])
def test_lint_vector_has_expected_findings(vector: dict[str, Any]) -> None:
    kind = next(name for name in PLACES if name in vector)
    registry = load_registry(wrap(kind, copy.deepcopy(vector[kind])))
    findings = [[problem.code, problem.pointer.removeprefix(PLACES[kind])] for problem in lint(registry)]
    assert sorted(findings) == sorted(vector["findings"])


def documents_section(first: str) -> set[str]:
    """Return the codes of one section of the list of codes."""
    text = Path(codes.__file__).read_text("utf-8")
    return set(re.findall(r'\("([a-z0-9-]+)", [A-Z]', text[text.index(first) : text.index("# -- matching a message")]))


def codes_of_example(rule: Rule, example: Any) -> dict[str, Severity]:
    try:
        if rule.kind == "text":
            return severities(lint(load_registry(read_text(example.encode(), "a.json"))))
        if rule.kind == "hex":
            return severities(lint(load_registry(read_text(bytes.fromhex(example["bytes"]), "a.json"))))
        if rule.kind == "upgrade":
            return severities(upgrade(load_registry(example))[1])
        sources = example if rule.kind == "documents" else [wrap(rule.kind, example)]
        return severities(lint(load_registry(*copy.deepcopy(sources))))
    except WirebookError as error:
        return severities(error.problems)


def severities(problems: Iterable[Problem]) -> dict[str, Severity]:
    return {problem.code: problem.severity for problem in problems}


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, id=rule.code) for rule in rules().values() if rule.kind != "command"]
)
def test_bad_example_of_rule_violates_it_and_good_one_does_not(rule: Rule) -> None:
    assert rule.code in codes_of_example(rule, rule.bad)
    good = codes_of_example(rule, rule.good)
    assert rule.code not in good
    good.pop("no-definitions", None)  # most examples are cut down to what the rule is about
    assert set(good.values()) <= {Severity.INFO}


def test_code_of_documents_has_a_page() -> None:
    assert documents_section("# -- reading a text") == rules().keys()


@pytest.mark.parametrize("seed", range(20))
def test_catalogue_with_many_violations_reports_each(seed: int) -> None:
    """Violations do not hide each other: twelve groups and endpoints, each with a violation of its own."""
    single = [rule for rule in rules().values() if rule.kind in ("message", "endpoint")]
    broken = [rule for rule in single if CODES[rule.code].severity is Severity.ERROR]
    chosen = random.Random(seed).sample(broken, 12)
    document: dict[str, Any] = {"specversion": "1.0-rc4", "messagegroups": {}, "endpoints": {}}
    for number, rule in enumerate(chosen):
        if rule.kind == "message":
            document["messagegroups"][f"g{number}"] = {"messages": {"m": rule.bad}}
        else:
            document["endpoints"][f"e{number}"] = rule.bad
    reported = {problem.code for problem in lint(load_registry(copy.deepcopy(document)))}
    assert {rule.code for rule in chosen} <= reported


def test_code_of_lint_occurs_in_a_test() -> None:
    """Every code of documents occurs in a vector or in a test."""
    named = documents_section("# -- documents: loading")
    assert named <= CODES.keys()
    tests = "".join(path.read_text("utf-8") for path in [*FOLDER.parent.glob("*/*.json"), *TESTS.glob("*/test_*.py")])
    assert {code for code in named if f'"{code}"' not in tests and f"[{code}]" not in tests} == set()


def test_finding_has_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"messagegroups": {"g": {"messages": {"m": {\n  "dataschemaurl": "https://s.example"}}}}}')
    problem = next(problem for problem in lint(load_registry(file)) if problem.code == "schema-without-format")
    assert (problem.file, problem.line, problem.column) == (str(file), 2, 3)
    assert problem.pointer == "/messagegroups/g/messages/m/dataschemaurl"
    assert problem.xid == "/messagegroups/g/messages/m"


@pytest.mark.parametrize("type_", [None, *sorted(DECLARABLE)])
@pytest.mark.parametrize("name", ["time", "other"])
def test_finding_on_placeholder_agrees_with_matching(name: str, type_: str | None) -> None:
    kind, fields = attribute_kind(name), {"value": "{x}"} | ({"type": type_} if type_ else {})
    constraint = constraint_of(Slot(ENVELOPE, name, name), kind, fields)
    findings = check_property(Property(ENVELOPE, name, "", kind, fields))
    messages = [finding.message for finding in findings if finding.code == "template-in-other-type"]
    assert messages or constraint.template is not None
    assert all(("as a template" in message) == (constraint.template is not None) for message in messages)


def many(number: int, options: Callable[[int], dict[str, Any]]) -> LoadedRegistry:
    messages = {f"m{n}": {"protocol": "MQTT/5.0", "protocoloptions": options(n)} for n in range(number)}
    return load_registry({"messagegroups": {"g": {"messages": messages}}})


def test_ten_thousand_definitions_are_compared_in_seconds() -> None:
    registry = many(10_000, lambda n: {"topic_name": f"site/{{a}}/line{n % 100}/{{b}}/kind{n}"})
    start = time.process_time()
    assert lint(registry) == ()
    assert time.process_time() - start < 20  # some 2 s; each with each would take minutes


def test_too_many_pairs_are_limited_and_reported() -> None:
    crossing = many(600, lambda n: {"topic_name": "/".join(f"{{p{i}}}" if n >> i & 1 else f"s{i}" for i in range(10))})
    reported = Counter(problem.code for problem in lint(crossing))
    assert reported["overlapping-templates"] <= MAX_PER_PLACE
    assert reported["pairs-not-compared"] == 1
