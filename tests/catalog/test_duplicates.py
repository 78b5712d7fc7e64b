"""Duplicate members: with equal values the catalogue loads and lint reports them, otherwise it is rejected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wirebook.catalog.importing import read_import
from wirebook.catalog.load import load_registry
from wirebook.catalog.upgrade import render_document, upgrade
from wirebook.definitions.lint.registry import lint
from wirebook.problems import Problem, Severity, WirebookError

JSON = """{"specversion": "1.0-rc4",
 "messagegroups": {"g": {"messagegroupid": "g", "messages": {"m": {"messageid": "m",
   "datacontenttype": "text/plain",
   "labels": {"a": "b", "c": "d"},
   "datacontenttype": "text/plain",
   "labels": {"c": "d", "a": "b"},
   "labels": {"a": "b", "c": "d"}}}}}}
"""
YAML = """specversion: 1.0-rc4
messagegroups:
  g:
    messagegroupid: g
    messages:
      m:
        messageid: m
        datacontenttype: text/plain
        labels: {a: b, c: d}
        datacontenttype: text/plain
        labels:
          c: d
          a: b
        labels: {a: b, c: d}
"""
MESSAGE = "/messagegroups/g/messages/m"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def duplicate_members(problems: tuple[Problem, ...]) -> list[tuple[str | None, int | None]]:
    return [(problem.pointer, problem.line) for problem in problems if problem.code == "duplicate-member"]


@pytest.mark.parametrize(
    ("name", "text", "lines"), [("c.json", JSON, (3, 5, 4, 6, 7)), ("c.yaml", YAML, (8, 10, 9, 11, 14))]
)
def test_equal_duplicate_members_load_and_are_a_lint_error(
    tmp_path: Path, name: str, text: str, lines: tuple[int, ...]
) -> None:
    registry = load_registry(written(tmp_path, name, text))
    assert registry.unread == ()
    assert registry.messages[MESSAGE].attributes["labels"] == {"a": "b", "c": "d"}
    problems = [problem for problem in lint(registry) if problem.code == "duplicate-member"]
    assert [(problem.pointer, problem.line, problem.severity) for problem in problems] == [
        (f"{MESSAGE}/datacontenttype", lines[1], Severity.ERROR),
        (f"{MESSAGE}/labels", lines[3], Severity.ERROR),
        (f"{MESSAGE}/labels", lines[4], Severity.ERROR),
    ]
    firsts = (lines[0], lines[2], lines[2])
    for problem, first in zip(problems, firsts, strict=True):
        assert problem.file == str(tmp_path / name)
        member = (problem.pointer or "").rpartition("/")[2]
        assert f"'{member}' occurs twice in '{MESSAGE}', in lines {first} and {problem.line}" in problem.message


@pytest.mark.parametrize(("name", "text"), [("c.json", JSON), ("c.yaml", YAML)])
def test_upgrade_writes_equal_duplicate_members_once(tmp_path: Path, name: str, text: str) -> None:
    document, problems = upgrade(load_registry(written(tmp_path, name, text)))
    assert len(duplicate_members(problems)) == 3
    repaired = written(tmp_path, "repaired.json", render_document(document))
    assert duplicate_members(lint(load_registry(repaired))) == []
    assert json.loads(repaired.read_text("utf-8"))["messagegroups"]["g"]["messages"]["m"]["labels"] == {
        "a": "b",
        "c": "d",
    }


@pytest.mark.parametrize(("name", "text"), [("c.json", JSON), ("c.yaml", YAML)])
def test_import_reports_equal_duplicate_members(name: str, text: str) -> None:
    incoming = read_import(text.encode(), name)
    assert len(duplicate_members(incoming.problems)) == 3


@pytest.mark.parametrize(
    "text",
    [
        '{"messagegroups": {"g": {"epoch": 1, "epoch": true}}}',
        '{"messagegroups": {"g": {"a": {"b": [1, 2]}, "a": {"b": [2, 1]}}}}',
        '{"messagegroups": {"g": {"a": null, "a": 0}}}',
        '{"messagegroups": {"g": {"a": "1", "a": 1}}}',
        '{"messagegroups": {"g": {"a": 1, "a": 1, "a": 2}}}',
        "messagegroups: {g: {a: 1, a: '1'}}",
        "messagegroups:\n  g:\n    a: {x: [1]}\n    a: {x: [1, 1]}",
        "messagegroups: {g: {a: 1, a: 1, a: true}}",
    ],
)
def test_different_duplicate_members_are_rejected(tmp_path: Path, text: str) -> None:
    with pytest.raises(WirebookError) as raised:
        load_registry(written(tmp_path, "c.json" if text.startswith("{") else "c.yaml", text))
    (problem,) = raised.value.problems
    assert problem.code == "duplicate-member"
    assert "with different values" in problem.message


def test_rejection_names_only_members_that_differ(tmp_path: Path) -> None:
    text = '{"messagegroups": {"g": {"a": 1, "a": 1, "b": {"a": [1], "a": [2]}}}}'
    with pytest.raises(WirebookError) as raised:
        load_registry(written(tmp_path, "c.json", text))
    assert [problem.pointer for problem in raised.value.problems] == ["/messagegroups/g/b/a"]


def test_nested_equal_members_are_compared_in_linear_time(tmp_path: Path) -> None:
    text = '{"a": 1, "a": 1}'
    for _ in range(15):
        text = f'{{"a": {text}, "a": {text}}}'
    registry = load_registry(written(tmp_path, "c.json", f'{{"messagegroups": {{"g": {text}}}}}'))
    assert len(duplicate_members(registry.diagnostics)) == 2**16 - 1
