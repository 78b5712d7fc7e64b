"""The conformance vectors of `tests/vectors/matching`: every case, by name.

Cases named in `known-failures.json` are expected to fail until they are mended, and reported when they no longer do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from wirebook.catalog import Catalog
from wirebook.definitions.match.options import MatchOptions
from wirebook.problems import CODES

FOLDER = Path(__file__).resolve().parents[1] / "vectors" / "matching"
Case = dict[str, Any]

CASE_MEMBERS = {"vector", "name", "description", "catalogue", "options", "endpoint", "record", "expect"}
EXPECT_MEMBERS = {"outcome", "definition", "bindings", "codes", "slots", "problems", "near", "ambiguous_bindings"}
OPTIONS = {"values_imply_presence", "closed", "placeholders", "match_transport", "accept_native"}
OUTCOMES = {"matched", "unconstrained", "unexpected", "ambiguous", "malformed"}
OUTCOMES |= {"undecodable", "invalid-payload", "unsupported", "oversized"}
BUILD_MEMBERS = {"vector", "name", "description", "definition", "catalogue", "context", "data", "attributes"}
BUILD_MEMBERS |= {"properties", "now", "mode", "protocol", "options", "encoding", "allow_incomplete", "expect"}


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text("utf-8"))


def cases_of(path: Path) -> list[Case]:
    """The cases of one file, with the catalogues that they share put in."""
    content = read(path.name)
    shared = content.get("catalogues", {})
    return [case | {"catalogue": catalogue_of(case, shared)} for case in content["vectors"]]


def catalogue_of(case: Case, shared: dict[str, Any]) -> Any:
    named = case["catalogue"]
    return shared[named] if isinstance(named, str) else named


FILES = sorted(path for path in FOLDER.glob("*.json") if path.name not in {"build.json", "known-failures.json"})
CASES = [case for path in FILES for case in cases_of(path)]
KNOWN_FAILURES: dict[str, str] = read("known-failures.json")


def marks(name: str) -> list[pytest.MarkDecorator]:
    if name not in KNOWN_FAILURES:
        return []
    return [pytest.mark.xfail(strict=True, reason=KNOWN_FAILURES[name])]


@cache
def catalog_of(document: str, options: str) -> Catalog:
    return Catalog.load(json.loads(document), options=MatchOptions(**json.loads(options)))


def run(case: Case) -> list[Any]:
    catalog = catalog_of(json.dumps(case["catalogue"]), json.dumps(case.get("options", {})))
    return list(catalog.match_each(case["record"], case.get("endpoint")))


def reported(outcome: Any) -> tuple[Any, ...]:
    """The problems that a case speaks of: for `unexpected` those of the nearest definition."""
    if outcome.outcome == "unexpected" and outcome.near:
        return tuple(outcome.near[0].problems)
    return tuple(outcome.problems)


def observed(outcome: Any, expected: dict[str, Any]) -> dict[str, Any]:
    """The members of the expectation, as this implementation has them."""
    problems = reported(outcome)
    expected_problems = expected.get("problems", ())
    actual = {
        "outcome": str(outcome.outcome),
        "definition": outcome.definition,
        "bindings": dict(outcome.bindings),
        "codes": [problem.code for problem in problems],
        "slots": [problem.slot for problem in problems],
        "problems": [
            {
                name: problem.reason()[name]
                for name in (expected_problems[i] if i < len(expected_problems) else ("code", "slot"))
            }
            for i, problem in enumerate(problems)
        ],
        "near": [near.definition for near in outcome.near],
        "ambiguous_bindings": outcome.ambiguous_bindings,
    }
    return {member: actual[member] for member in expected}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"], marks=marks(case["name"])) for case in CASES])
def test_matching_vector(case: Case) -> None:
    outcomes = run(case)
    assert [observed(outcome, e) for outcome, e in zip(outcomes, case["expect"], strict=False)] == case["expect"]
    assert len(outcomes) == len(case["expect"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_vector_file_has_the_documented_members(path: Path) -> None:
    """Every case has the form that the README describes."""
    for case in cases_of(path):
        assert set(case) <= CASE_MEMBERS, case["name"]
        assert isinstance(case["catalogue"], dict), case["name"]
        assert set(case.get("options", {})) <= OPTIONS, case["name"]
        assert case["name"].startswith(f"{case['vector']}-"), case["name"]
        for expected in case["expect"]:
            assert set(expected) <= EXPECT_MEMBERS, case["name"]
            assert expected["outcome"] in OUTCOMES, case["name"]
            assert set(expected.get("codes", ())) <= set(CODES), case["name"]


def test_build_vector_file_has_the_documented_members() -> None:
    """The cases for building have their form too, and known codes."""
    for case in read("build.json")["vectors"]:
        assert set(case) <= BUILD_MEMBERS, case["name"]
        assert set(case["expect"].get("codes", ())) <= set(CODES), case["name"]


def numbers(value: Any) -> set[Any]:
    """The numbers of vectors that a file of cases names."""
    if isinstance(value, list):
        return set().union(*map(numbers, value))
    if isinstance(value, dict):
        return {value.get("vector")}.union(*map(numbers, value.values()))
    return set()


def test_every_vector_number_has_a_case() -> None:
    """The 96 vectors, each with a case at least; 47 is lint's alone."""
    assert {case["vector"] for case in [*CASES, *read("build.json")["vectors"]]} == set(range(1, 97)) - {47}
    assert 47 in numbers(json.loads((FOLDER.parent / "documents" / "lint.json").read_text("utf-8")))


def test_vector_names_are_unique() -> None:
    names = [case["name"] for case in CASES] + [case["name"] for case in read("build.json")["vectors"]]
    assert len(names) == len(set(names))


def test_known_failures_are_vectors() -> None:
    assert set(KNOWN_FAILURES) <= {case["name"] for case in CASES + read("build.json")["vectors"]}


@pytest.mark.parametrize(
    "headers",
    [
        {"h": {"value": "{x}"}},
        {"h": {"value": "{a}-{b}"}, "g": {"value": "{b}-{c}"}},
        {str(n): {"name": "h", "value": f"{{x{n}}}"} for n in range(5)},
    ],
    ids=["one entry", "shared placeholders", "five entries of one name"],
)
def test_cost_of_repeated_headers_is_linear(headers: dict[str, Any]) -> None:
    """Ten times as many headers take about ten times as many calls, not a hundred times."""
    options = {"key": "{x}", "headers": headers}
    message = {"messageid": "m", "protocol": "KAFKA", "protocoloptions": options}
    catalog = Catalog.load({"messagegroups": {"g": {"messagegroupid": "g", "messages": {"m": message}}}})
    calls = []
    for count in (500, 5_000):
        pairs = [[name, f"{n}-{n}"] for name in ("h", "g") for n in range(count)]
        record = {"protocol": "KAFKA", "topic": "t", "key": "7-7", "headers": pairs, "value": "{}"}
        calls.append(calls_of(catalog.match, record))
    assert calls[1] < 12 * calls[0]


def calls_of(function: Callable[[Any], Any], argument: Any) -> int:
    """How many functions, of Python and of C, a call executes."""
    count = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        function(argument)
    finally:
        sys.setprofile(None)
    return count
