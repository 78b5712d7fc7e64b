"""Broken documents, one fault each: the rule, its place, and nothing that leads astray beside it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from wirebook.catalog.load import load_registry
from wirebook.catalog.upgrade import render_document, upgrade
from wirebook.cli.app import run
from wirebook.definitions.lint.registry import lint
from wirebook.problems import CODES, Problem, Severity
from wirebook.text.pointers import child, parse_pointer, prefixes, resolve

FILE = Path(__file__).resolve().parent.parent / "vectors" / "lint" / "faults.json"
VECTORS: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
FAULTS: list[dict[str, Any]] = VECTORS["faults"]


def broken(fault: dict[str, Any], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """The base with the fault in it."""
    document: dict[str, Any] = copy.deepcopy(VECTORS["base"] if base is None else base)
    for pointer, value in fault.get("set", {}).items():
        holder, name = _holder(document, pointer)
        if isinstance(holder, list):
            holder[int(name) : int(name) + 1] = [value]
        else:
            holder[name] = value
    for pointer in fault.get("drop", ()):
        holder, name = _holder(document, pointer)
        del holder[name]
    return document


def _holder(document: Any, pointer: str) -> tuple[Any, str]:
    above, _, name = pointer.rpartition("/")
    return resolve(document, above), name


def told(problems: tuple[Problem, ...]) -> list[list[str | None]]:
    return [[problem.code, problem.pointer] for problem in problems]


def test_the_base_breaks_no_rule() -> None:
    assert lint(load_registry(copy.deepcopy(VECTORS["base"]))) == ()


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault["name"]) for fault in FAULTS])
def test_fault(fault: dict[str, Any]) -> None:
    found = lint(load_registry(broken(fault)))
    assert sorted(told(found)) == sorted([fault["finding"], *fault.get("follows", ())])
    problem = next(problem for problem in found if [problem.code, problem.pointer] == fault["finding"])
    assert str(problem.severity) == fault["severity"]
    assert problem.message
    assert problem.xid or not problem.pointer


def test_faults_of_each_kind_are_many() -> None:
    assert len(FAULTS) > 500
    assert len({fault["finding"][0] for fault in FAULTS}) > 100


def lines_of(problems: tuple[Problem, ...], text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    for problem in problems:
        assert problem.line is not None
        assert problem.column is not None
        assert problem.pointer is not None
        yield problem.pointer, lines[problem.line - 1][problem.column - 1 :]


@pytest.mark.parametrize("kind", ["json", "yaml"])
def test_places_are_those_of_the_text(kind: str, tmp_path: Path) -> None:
    """A member is found at its name, an item at its value; in both notations."""
    file = tmp_path / f"a.{kind}"
    for fault in FAULTS[::7]:
        document = broken(fault)
        text = json.dumps(document, indent=1) if kind == "json" else yaml.safe_dump(document, sort_keys=False)
        file.write_text(text, "utf-8")
        for pointer, rest in lines_of(lint(load_registry(file)), text):
            token = parse_pointer(pointer)[-1] if pointer else ""
            holder = resolve(document, pointer.rpartition("/")[0])
            if isinstance(holder, dict) and token and token.isascii():
                assert rest.lstrip("\"'? ").startswith(token[:20]), (pointer, rest)


@pytest.mark.parametrize("severity", list(Severity))
def test_exit_codes(severity: Severity, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.json"
    for fault in [fault for fault in FAULTS if fault["severity"] == severity and "follows" not in fault][::25]:
        file.write_text(json.dumps(broken(fault)), "utf-8")
        assert run(["lint", str(file)]) == (1 if severity is Severity.ERROR else 0), fault["name"]
        assert run(["lint", str(file), "--fail-on", "warning"]) == (0 if severity is Severity.INFO else 1)
        assert f"{fault['finding'][0]}: " in capsys.readouterr().out


def test_the_faults_name_codes_that_there_are() -> None:
    assert all(CODES[fault["finding"][0]].severity == fault["severity"] for fault in FAULTS)


# -- documents of older texts -----------------------------------------------------------------------------------------

OLDER: dict[str, Any] = json.loads((FILE.parent / "older.json").read_text("utf-8"))


@pytest.mark.parametrize("text", OLDER["bases"])
def test_an_older_document_that_is_right_needs_remarks_only(text: str) -> None:
    assert {problem.severity for problem in lint(load_registry(copy.deepcopy(OLDER["bases"][text])))} == {Severity.INFO}


@pytest.mark.parametrize("text", OLDER["bases"])
def test_upgraded_it_breaks_no_rule(text: str) -> None:
    document, _ = upgrade(load_registry(copy.deepcopy(OLDER["bases"][text])))
    found = lint(load_registry(json.loads(render_document(document))))
    assert {problem.code for problem in found} <= {"unused-schema"}


@pytest.mark.parametrize("text", OLDER["bases"])
def test_upgrading_tells_of_everything_that_has_another_place(text: str) -> None:
    given = OLDER["bases"][text]
    document, problems = upgrade(load_registry(copy.deepcopy(given)))
    told = {problem.pointer for problem in problems}
    gone = [pointer for pointer in pointers(given) if resolve(document, pointer) is None]
    emptied = {prefix for pointer in told for prefix in prefixes(pointer or "")}
    assert len(gone) > 20
    assert "" not in told
    assert [pointer for pointer in gone if told.isdisjoint(prefixes(pointer)) and pointer not in emptied] == []


def pointers(value: Any, at: str = "") -> Iterator[str]:
    for name, member in value.items() if isinstance(value, dict) else ():
        yield child(at, name)
        yield from pointers(member, child(at, name))


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, id=f"{fault['base']}-{fault['name']}") for fault in OLDER["faults"]]
)
def test_fault_in_an_older_spelling(fault: dict[str, Any]) -> None:
    found = lint(load_registry(broken(fault, OLDER["bases"][fault["base"]])))
    assert fault["finding"] in told(found)
