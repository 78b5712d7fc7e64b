"""Every row of the checklist has a test that is named by its id, or a line in docs/conformance.md that says why not.

How a test names its rows:

    test_c_ver_06_ancestors_exist        C-VER-06          test_amb_14_none_is_no_value      AMB-14
    test_c_val_04_and_05_unknown         two               test_c_doc_10_to_13_shown         four
    test_c_ent_11_c_err_02_unknown       of two areas
    a string "C-VER-06", "AMB-14" or "E!not_found" in what a test is parametrised with (also in a table of its module)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "conformance.md"

ROW = re.compile(r"^\| (C-[A-Z]+-\d\d|AMB-\d\d) \|", re.MULTILINE)
ERROR = re.compile(r"^\| ([a-z_]+)(?: \(http\.md\))? \| [45]\d\d", re.MULTILINE)
LINE = re.compile(r"^\| `([^`]+)` \| (\S.*) \|$", re.MULTILINE)
GROUP = re.compile(r"(?:^|_)(c_[a-z]+|amb)((?:(?:_and|_to)?_\d\d(?!\d))+)")
NUMBERS = re.compile(r"(\d\d)(?:_to_(\d\d))?")
LITERAL = re.compile(r"(?:C-[A-Z]+|AMB)-\d\d|E![a-z_]+")


def rows_of(checklist: str) -> set[str]:
    """The ids of a checklist; a type of error is `E!name`."""
    return set(ROW.findall(checklist)) | {f"E!{name}" for name in ERROR.findall(checklist)}


def rows_in_name(name: str) -> Iterator[str]:
    """The ids that the name of a test gives."""
    for area, numbers in GROUP.findall(name.removeprefix("test_")):
        for first, last in NUMBERS.findall(numbers):
            for number in range(int(first), int(last or first) + 1):
                yield f"{area.upper().replace('_', '-')}-{number:02}"


def rows_in_module(tree: ast.Module) -> Iterator[str]:
    """The ids that the tests of a module give."""
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
    """The ids among the strings of an expression and of the tables that it names."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in tables:
            yield from rows_in_table(tables[each.id], {})
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and LITERAL.fullmatch(each.value):
            yield each.value


@pytest.fixture(scope="module")
def rows(shared: Path) -> set[str]:
    return rows_of((shared / "spec" / "core-checklist.md").read_text())


@pytest.fixture(scope="module")
def tested() -> set[str]:
    modules = [ast.parse(path.read_text()) for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    return {row for module in modules for row in rows_in_module(module)}


@pytest.fixture(scope="module")
def explained() -> set[str]:
    return {row for row, _ in LINE.findall(PAGE.read_text())}


def test_the_checklist_is_read_whole(rows: set[str]) -> None:
    count = {kind: sum(row.startswith(kind) for row in rows) for kind in ("C-", "AMB-", "E!")}
    assert count == {"C-": 473, "AMB-": 25, "E!": 66}


def test_every_row_has_a_test_or_a_reason(rows: set[str], tested: set[str], explained: set[str]) -> None:
    assert not sorted(rows - tested - explained)


def test_a_row_is_in_one_place(tested: set[str], explained: set[str]) -> None:
    assert not sorted(explained & tested), "docs/conformance.md says that these have no test"


def test_what_is_named_is_in_the_checklist(rows: set[str], tested: set[str], explained: set[str]) -> None:
    assert not sorted((tested | explained) - rows)


def test_names_of_tests_are_read() -> None:
    assert [*rows_in_name("test_c_ver_06_x_of_10_things")] == ["C-VER-06"]
    assert [*rows_in_name("test_c_val_04_and_05_c_err_02")] == ["C-VAL-04", "C-VAL-05", "C-ERR-02"]
    assert [*rows_in_name("test_amb_14_c_doc_10_to_12")] == ["AMB-14", "C-DOC-10", "C-DOC-11", "C-DOC-12"]
