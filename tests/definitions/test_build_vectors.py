"""The conformance vectors for building, `tests/vectors/matching/build.json`: every case, by name.

A case says what must be in the message, not everything that is: see the README beside the vectors.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.bindings import to_record
from wirebook.catalog import Catalog
from wirebook.definitions.build.request import BuildRequest, Built
from wirebook.problems import WirebookError

FOLDER = Path(__file__).resolve().parents[1] / "vectors" / "matching"
XID = "/messagegroups/g/messages/m"
CASES = json.loads((FOLDER / "build.json").read_text("utf-8"))["vectors"]
KNOWN_FAILURES = json.loads((FOLDER / "known-failures.json").read_text("utf-8"))
BODIES = ("body", "value", "payload", "data")
LISTS = ("headers", "user_properties")


def marks(name: str) -> list[pytest.MarkDecorator]:
    if name not in KNOWN_FAILURES:
        return []
    return [pytest.mark.xfail(strict=True, reason=KNOWN_FAILURES[name])]


def catalog_of(case: dict[str, Any]) -> Catalog:
    if "catalogue" in case:
        return Catalog.load(case["catalogue"])
    message = {"messageid": "m", **case["definition"]}
    return Catalog.load({"messagegroups": {"g": {"messagegroupid": "g", "messages": {"m": message}}}})


def built(catalog: Catalog, case: dict[str, Any]) -> tuple[Built | None, list[Any]]:
    """The message, and the errors that keep it from being sent."""
    request = BuildRequest(
        case["context"],
        None,
        case["attributes"],
        case.get("properties", {}),
        case.get("protocol"),
        case.get("mode"),
        lambda: case["now"],
        encoding=case.get("encoding", "place"),
        allow_incomplete=case.get("allow_incomplete", False),
    )
    try:
        result = catalog.try_build(XID, request, case.get("data"))
    except WirebookError as error:
        return None, list(error.problems)
    return result, list(result.errors)


def names_of(record: dict[str, Any]) -> set[str]:
    """The names of all headers and properties, in lower case."""
    pairs = [pair for member in LISTS for pair in record.get(member, ())]
    return {name.lower() for name, _ in pairs} | {name.lower() for name in record.get("application-properties", {})}


def text_of_body(record: dict[str, Any]) -> Any:
    text = next(record[member] for member in BODIES if member in record)
    return json.loads(text)


def check_member(record: dict[str, Any], member: str, expected_value: Any) -> None:
    if member in LISTS:
        pairs = [[name.lower(), value] for name, value in record.get(member, ())]
        for name, value in expected_value:
            assert pairs.count([name.lower(), value]) == expected_value.count([name, value]), (name, record)
            assert any(name == entry_name for entry_name, _ in record[member]) or member == "headers", name
    elif isinstance(expected_value, dict) and member != "key":
        assert {name: record.get(member, {}).get(name) for name in expected_value} == expected_value
    else:
        assert record.get(member) == expected_value


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"], marks=marks(case["name"])) for case in CASES])
def test_build_vector(case: dict[str, Any]) -> None:
    expected, catalog = case["expect"], catalog_of(case)
    result, errors = built(catalog, case)
    if "codes" in expected:
        check_errors(expected, result, errors)
        return
    assert not errors
    assert result is not None
    assert result.wire is not None
    if "notes" in expected:
        assert [problem.code for problem in result.problems] == expected["notes"]
    record = to_record(result.wire)
    for member, expected_value in expected.get("record", {}).items():
        check_member(record, member, expected_value)
    assert names_of(record) >= set(expected.get("present", ()))
    assert not names_of(record) & set(expected.get("absent", ()))
    if "payload" in expected:
        assert text_of_body(record) == expected["payload"]
    if "event" in expected:
        event = text_of_body(record)
        assert {name: event.get(name) for name in expected["event"]} == expected["event"]
    if "match" in expected:
        outcome = catalog.match(record)
        assert (outcome.outcome, dict(outcome.bindings)) == ("matched", expected["match"])


def check_errors(expected: dict[str, Any], result: Built | None, errors: list[Any]) -> None:
    """At least these codes, and no message."""
    assert result is None or result.wire is None
    assert {problem.code for problem in errors} >= set(expected["codes"])
    if "missing" in expected:
        assert [problem.expected for problem in errors] == expected["missing"]
