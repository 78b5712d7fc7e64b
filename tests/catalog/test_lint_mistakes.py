"""Mistakes that are easily made: lint reports each at its place, and nothing of the same document without it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from wirebook.catalog.lint import lint
from wirebook.catalog.load import load_registry
from wirebook.core.pointers import parse_pointer, resolve
from wirebook.problems import Problem, Severity, WirebookError

FILE = Path(__file__).resolve().parent.parent / "vectors" / "lint" / "mistakes.json"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["vectors"]
EACH = pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["name"]) for vector in VECTORS])


def findings(source: Any) -> list[Problem]:
    """The warnings and errors of a document."""
    try:
        problems = lint(load_registry(source))
    except WirebookError as error:
        problems = error.problems
    return [problem for problem in problems if problem.severity is not Severity.INFO]


@EACH
def test_mistake_is_reported(vector: dict[str, Any]) -> None:
    found = [[problem.code, problem.pointer] for problem in findings(copy.deepcopy(vector["wrong"]))]
    assert sorted(found, key=str) == sorted(vector["findings"], key=str)


@EACH
def test_corrected_document_has_no_finding(vector: dict[str, Any]) -> None:
    assert findings(copy.deepcopy(vector["right"])) == []


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_finding_names_the_line_of_its_member(suffix: str, tmp_path: Path) -> None:
    """A member is found at its name, an item of an array at its value."""
    file = tmp_path / f"catalogue.{suffix}"
    for vector in VECTORS:
        document = vector["wrong"]
        text = json.dumps(document, indent=1) if suffix == "json" else yaml.safe_dump(document, sort_keys=False)
        file.write_text(text, "utf-8")
        lines = text.splitlines()
        for problem in findings(file):
            assert problem.line is not None, vector["name"]
            if not problem.pointer:
                continue
            pointer = problem.pointer
            while resolve(document, pointer, None) is None:  # what was read as an object, and is a plain value
                pointer = pointer.rpartition("/")[0]
            name, holder = parse_pointer(pointer)[-1], resolve(document, pointer.rpartition("/")[0])
            rest = lines[problem.line - 1][(problem.column or 1) - 1 :]
            if isinstance(holder, dict):
                assert rest.lstrip("\"'? ").startswith(name), (vector["name"], problem)
