"""Documents with one fault each: lint reports its code and place, and no misleading findings."""

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
    """Return the base document with the fault."""
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


def codes_and_pointers(problems: tuple[Problem, ...]) -> list[list[str | None]]:
    return [[problem.code, problem.pointer] for problem in problems]


def test_base_document_has_no_findings() -> None:
    assert lint(load_registry(copy.deepcopy(VECTORS["base"]))) == ()


@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault["name"]) for fault in FAULTS])
def test_fault_is_reported_with_its_code(fault: dict[str, Any]) -> None:
    problems = lint(load_registry(broken(fault)))
    assert sorted(codes_and_pointers(problems)) == sorted([fault["finding"], *fault.get("follows", ())])
    problem = next(problem for problem in problems if [problem.code, problem.pointer] == fault["finding"])
    assert str(problem.severity) == fault["severity"]
    assert problem.message
    assert "  " not in problem.message
    assert problem.xid or not problem.pointer


def test_every_kind_of_fault_occurs_often() -> None:
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
def test_fault_is_reported_at_its_place(kind: str, tmp_path: Path) -> None:
    """The place of a member is its name, that of an item its value, in JSON and YAML."""
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
def test_exit_code_depends_on_severity(severity: Severity, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.json"
    for fault in [fault for fault in FAULTS if fault["severity"] == severity and "follows" not in fault][::25]:
        file.write_text(json.dumps(broken(fault)), "utf-8")
        assert run(["lint", str(file)]) == (1 if severity is Severity.ERROR else 0), fault["name"]
        assert run(["lint", str(file), "--fail-on", "warning"]) == (0 if severity is Severity.INFO else 1)
        assert f"{fault['finding'][0]}: " in capsys.readouterr().out


def test_codes_of_faults_exist() -> None:
    assert all(CODES[fault["finding"][0]].severity == fault["severity"] for fault in FAULTS)


# -- documents of older texts -----------------------------------------------------------------------------------------

OLDER: dict[str, Any] = json.loads((FILE.parent / "older.json").read_text("utf-8"))


@pytest.mark.parametrize("text", OLDER["bases"])
def test_valid_older_document_has_only_notes(text: str) -> None:
    assert {problem.severity for problem in lint(load_registry(copy.deepcopy(OLDER["bases"][text])))} == {Severity.INFO}


@pytest.mark.parametrize("text", OLDER["bases"])
def test_upgraded_older_document_has_no_findings(text: str) -> None:
    document, _ = upgrade(load_registry(copy.deepcopy(OLDER["bases"][text])))
    problems = lint(load_registry(json.loads(render_document(document))))
    assert {problem.code for problem in problems} <= {"unused-schema"}


@pytest.mark.parametrize("text", OLDER["bases"])
def test_upgrade_reports_every_moved_value(text: str) -> None:
    source = OLDER["bases"][text]
    document, problems = upgrade(load_registry(copy.deepcopy(source)))
    reported = {problem.pointer for problem in problems}
    gone = [pointer for pointer in pointers(source) if resolve(document, pointer) is None]
    emptied = {prefix for pointer in reported for prefix in prefixes(pointer or "")}
    assert len(gone) > 20
    assert "" not in reported
    assert [pointer for pointer in gone if reported.isdisjoint(prefixes(pointer)) and pointer not in emptied] == []


def pointers(value: Any, at: str = "") -> Iterator[str]:
    for name, member in value.items() if isinstance(value, dict) else ():
        yield child(at, name)
        yield from pointers(member, child(at, name))


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, id=f"{fault['base']}-{fault['name']}") for fault in OLDER["faults"]]
)
def test_fault_in_older_spelling_is_reported(fault: dict[str, Any]) -> None:
    problems = lint(load_registry(broken(fault, OLDER["bases"][fault["base"]])))
    assert fault["finding"] in codes_and_pointers(problems)
