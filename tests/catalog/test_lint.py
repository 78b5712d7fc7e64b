"""Lint as vectors: every finding of one broken document, as ``[code, pointer]``; and that no code is untested."""

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


def documents_section(first: str) -> set[str]:
    """The codes of documents, as they stand together in the list."""
    text = Path(codes.__file__).read_text("utf-8")
    return set(re.findall(r'\("([a-z0-9-]+)", [A-Z]', text[text.index(first) : text.index("# -- matching a message")]))


def found_in(rule: Rule, example: Any) -> dict[str, Severity]:
    try:
        if rule.kind == "text":
            return severities(lint(load_registry(read_text(example.encode(), "a.json"))))
        if rule.kind == "hex":
            return severities(lint(load_registry(read_text(bytes.fromhex(example["bytes"]), "a.json"))))
        if rule.kind == "upgrade":
            return severities(upgrade(load_registry(example))[1])
        given = example if rule.kind == "documents" else [wrap(rule.kind, example)]
        return severities(lint(load_registry(*copy.deepcopy(given))))
    except WirebookError as error:
        return severities(error.problems)


def severities(problems: Iterable[Problem]) -> dict[str, Severity]:
    return {problem.code: problem.severity for problem in problems}


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, id=rule.code) for rule in rules().values() if rule.kind != "command"]
)
def test_each_rule_is_broken_by_its_bad_example_alone(rule: Rule) -> None:
    assert rule.code in found_in(rule, rule.bad)
    good = found_in(rule, rule.good)
    assert rule.code not in good
    good.pop("no-definitions", None)  # most examples are cut down to what the rule is about
    assert set(good.values()) <= {Severity.INFO}


def test_each_code_of_documents_has_a_page() -> None:
    assert documents_section("# -- reading a text") == rules().keys()


@pytest.mark.parametrize("seed", range(20))
def test_a_catalogue_that_breaks_a_dozen_rules_is_told_each(seed: int) -> None:
    """Faults beside each other hide none of each other: twelve groups and endpoints, each with a fault of its own."""
    single = [rule for rule in rules().values() if rule.kind in ("message", "endpoint")]
    broken = [rule for rule in single if CODES[rule.code].severity is Severity.ERROR]
    chosen = random.Random(seed).sample(broken, 12)
    document: dict[str, Any] = {"specversion": "1.0-rc4", "messagegroups": {}, "endpoints": {}}
    for number, rule in enumerate(chosen):
        if rule.kind == "message":
            document["messagegroups"][f"g{number}"] = {"messages": {"m": rule.bad}}
        else:
            document["endpoints"][f"e{number}"] = rule.bad
    found = {problem.code for problem in lint(load_registry(copy.deepcopy(document)))}
    assert {rule.code for rule in chosen} <= found


def test_each_code_is_in_a_test() -> None:
    """The codes of documents, as they stand together in the list, all occur in the vectors or in a test."""
    named = documents_section("# -- documents: loading")
    assert named <= CODES.keys()
    tests = "".join(path.read_text("utf-8") for path in [*FOLDER.parent.glob("*/*.json"), *TESTS.glob("*/test_*.py")])
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


def many(number: int, options: Callable[[int], dict[str, Any]]) -> LoadedRegistry:
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
    assert found["overlapping-templates"] <= MAX_PER_PLACE
    assert found["pairs-not-compared"] == 1
