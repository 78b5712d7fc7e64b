"""Every row of tests/conformance/rows is held by a test or a vector that names it, or docs/conformance.md says why not.

A vector lists its rows. How a test names its rows:

    test_c_ver_06_ancestors_exist        C-VER-06          test_amb_14_none_is_no_value      AMB-14
    test_c_val_04_and_05_unknown         two               test_c_doc_10_to_13_shown         four
    test_c_ent_11_c_err_02_unknown       of two areas
    a string "C-VER-06", "AMB-14" or "E!not_found" in what a test is parametrised with (also in a table of its module)
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.run import Vector, read_vectors

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "conformance.md"
ROWS = ROOT / "tests" / "conformance" / "rows"

LEVELS = {"MUST", "MUST if supported", "SHOULD", "MAY", "NOTE"}
LINE = re.compile(r"^\| `([^`]+)` \| (\S.*) \|$", re.MULTILINE)
GROUP = re.compile(r"(?:^|_)(c_[a-z]+|amb)((?:(?:_and|_to)?_\d\d(?!\d))+)")
NUMBERS = re.compile(r"(\d\d)(?:_to_(\d\d))?")
LITERAL = re.compile(r"(?:C-[A-Z]+|AMB)-\d\d|E![a-z_]+")
SEGMENTS = {"entity xid": {1, 3, 5, 6, 7}, "Group xid": {3}, "Resource xid": {5}, "Version xid": {7}}
"""How many parts the subjects have."""
NOT_IN_THE_MODEL = {"E!unknown_group_type", "E!unknown_resource_type"}
"""The subjects of these errors are no entities."""
CHECKLIST_ROW = re.compile(r"^\| (C-[A-Z]+-\d\d|AMB-\d\d) \|", re.MULTILINE)
CHECKLIST_ERROR = re.compile(r"^\| ([a-z_]+)(?: \(http\.md\))? \| [45]\d\d", re.MULTILINE)
DEFINITION = re.compile(r"^#+ (\w+)\n(.*?)(?=^#+ |\Z|<!-- end)", re.DOTALL | re.MULTILINE)
SUBJECT = re.compile(r"^\* Subject: `([^`]*)`", re.MULTILINE)
SUBJECTS = {
    "<request_path>": "request path",
    "<request_url>": "request path",
    "<path>": "request path",
    "<entity_xid>": "entity xid",
    "<group_xid>": "Group xid",
    "<resource_xid>": "Resource xid",
    "<version_xid>": "Version xid",
    "<capability_available_type>": "the kind of data",
}
"""How the rows call the subjects of the text."""


def read_rows() -> list[dict[str, Any]]:
    return [row for path in sorted(ROWS.glob("*.json")) for row in json.loads(path.read_text())]


def rows_in_name(name: str) -> Iterator[str]:
    """The rows that the name of a test contains."""
    for area, numbers in GROUP.findall(name.removeprefix("test_")):
        for first, last in NUMBERS.findall(numbers):
            for number in range(int(first), int(last or first) + 1):
                yield f"{area.upper().replace('_', '-')}-{number:02}"


def rows_in_module(tree: ast.Module) -> Iterator[str]:
    """The rows that the tests of a module name."""
    tables = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield from rows_in_name(node.name)
            for decorator in node.decorator_list:
                yield from rows_in_table(decorator, tables)


def rows_in_table(node: ast.AST, tables: dict[str, ast.expr]) -> Iterator[str]:
    """The rows among the strings of an expression and of the tables that it names."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in tables:
            yield from rows_in_table(tables[part.id], {})
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and LITERAL.fullmatch(part.value):
            yield part.value


@pytest.fixture(scope="module")
def rows() -> set[str]:
    return {row["id"] for row in read_rows()}


@pytest.fixture(scope="module")
def shown() -> set[str]:
    """The rows of vectors."""
    return {row for vector in read_vectors() for row in vector.rows}


@pytest.fixture(scope="module")
def tested(shown: set[str]) -> set[str]:
    """The rows of vectors and tests."""
    modules = [ast.parse(path.read_text()) for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    return shown | {row for module in modules for row in rows_in_module(module)}


@pytest.fixture(scope="module")
def explained() -> set[str]:
    return {row for row, _ in LINE.findall(PAGE.read_text())}


def test_row_is_complete() -> None:
    for row in read_rows():
        assert LITERAL.fullmatch(row["id"])
        assert row["level"] in LEVELS, row["id"]
        assert re.fullmatch(r"[a-z]+/[a-z]+\.md#[a-z0-9_-]+", row["place"]), row["id"]
        assert row["requirement"].endswith("."), row["id"]
        assert row["id"].startswith("E!") == (row.keys() >= {"status", "subject"}), row["id"]


def test_row_id_is_unique() -> None:
    assert not [id_ for id_, count in Counter(row["id"] for row in read_rows()).items() if count > 1]


def test_every_row_has_a_test_a_vector_or_a_reason(rows: set[str], tested: set[str], explained: set[str]) -> None:
    assert not sorted(rows - tested - explained)


def test_row_with_a_reason_has_no_test(tested: set[str], explained: set[str]) -> None:
    assert not sorted(explained & tested), "docs/conformance.md says that these have no test"


def test_every_named_row_exists(rows: set[str], tested: set[str], explained: set[str]) -> None:
    assert not sorted((tested | explained) - rows)


def expected_errors() -> Iterator[tuple[Vector, dict[str, Any], dict[str, Any]]]:
    """The steps that expect an error, with the row of its type."""
    rows = {row["id"]: row for row in read_rows()}
    for vector in read_vectors():
        for step in vector.steps:
            if "error" in step.get("expect", {}):
                types = step["expect"]["error"]["type"]
                yield vector, step, rows[f"E!{types if isinstance(types, str) else types[0]}"]


def test_vectors_expect_errors_with_the_status_of_their_rows() -> None:
    for vector, step, row in expected_errors():
        status = step["expect"]["status"]
        assert row["status"] == (status if isinstance(status, int) else status[0]), (vector.area, vector.name)


def test_vectors_expect_errors_with_the_subject_of_their_rows() -> None:
    for vector, step, row in expected_errors():
        subject, kind = step["expect"]["error"].get("subject"), row["subject"]
        if vector.area != "errors" or row["id"] in NOT_IN_THE_MODEL:
            continue
        if kind == "request path":
            assert subject == step["path"].partition("?")[0], vector.name
        elif kind in SEGMENTS:
            assert len(subject.split("/")) - (subject == "/") in SEGMENTS[kind], vector.name
        elif kind.startswith("/"):
            assert subject == kind, vector.name


def test_names_of_tests_are_parsed() -> None:
    assert [*rows_in_name("test_c_ver_06_x_of_10_things")] == ["C-VER-06"]
    assert [*rows_in_name("test_c_val_04_and_05_c_err_02")] == ["C-VAL-04", "C-VAL-05", "C-ERR-02"]
    assert [*rows_in_name("test_amb_14_c_doc_10_to_12")] == ["AMB-14", "C-DOC-10", "C-DOC-11", "C-DOC-12"]


def test_rows_are_those_of_the_checklist(rows: set[str], shared: Path) -> None:
    checklist = (shared / "spec" / "core-checklist.md").read_text()
    assert rows == set(CHECKLIST_ROW.findall(checklist)) | {f"E!{name}" for name in CHECKLIST_ERROR.findall(checklist)}


def test_subjects_of_errors_are_those_of_the_text(shared: Path) -> None:
    subjects = {}
    for file in ("spec.md", "http.md"):
        text = (shared / "spec" / "xregistry-1.0-rc4" / "core" / file).read_text()
        for name, definition in DEFINITION.findall(text.partition("<!-- start-err-def -->")[2]):
            subject = SUBJECT.search(definition)
            subjects[f"E!{name}"] = SUBJECTS.get(subject[1], subject[1]) if subject else "none"
    assert subjects == {row["id"]: row["subject"] for row in read_rows() if "subject" in row}


def test_places_exist_in_the_text(shared: Path) -> None:
    texts: dict[str, set[str]] = {}
    for row in read_rows():
        file, anchor = row["place"].split("#")
        if file not in texts:
            texts[file] = set(anchors((shared / "spec" / "xregistry-1.0-rc4" / file).read_text()))
        assert anchor in texts[file], row["id"]


def anchors(text: str) -> Iterator[str]:
    """The anchors of the headings of a Markdown text."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    for heading in headings:
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        yield re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
