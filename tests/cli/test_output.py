"""The text of tables and problems."""

from __future__ import annotations

import json

import pytest

from wirebook.cli.output import nearest, print_json, print_table, render_problem, suggestion
from wirebook.problems import Problem


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (
            Problem(code="unreadable-file", message="cannot read", file="x.json", hint="is it there?"),
            "x.json: error: cannot read [unreadable-file]; is it there?",
        ),
        (
            Problem(code="byte-order-mark", xid="/messagegroups/g", pointer="/a"),
            "/messagegroups/g /a: info: the text begins with a byte order mark [byte-order-mark]",
        ),
        (
            Problem(code="mismatch", message="'a\nb\x1b[31m'", slot="envelopemetadata.type"),
            "envelopemetadata.type: error: 'a\\nb\\x1b[31m' [mismatch]",
        ),
    ],
)
def test_problem_is_printed_on_one_line(problem: Problem, line: str) -> None:
    assert render_problem(problem) == line


def test_slot_of_a_problem_is_printed_once() -> None:
    line = render_problem(Problem(code="mismatch", message="envelopemetadata.type: no", slot="envelopemetadata.type"))
    assert line == "envelopemetadata.type: error: no [mismatch]"


@pytest.mark.parametrize("value", [2**70, "half \ud800", [1.5, {"a": None}]])
def test_any_value_is_printed_as_json(value: object, capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"value": value})
    assert json.loads(capsys.readouterr().out) == {"value": value}


def test_piped_table_is_not_folded(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("table", "rows"), [("orders", 12), ("a\tb", 7), (None, 0)], title="tables")
    assert capsys.readouterr().out == "tables\ntable   rows\norders    12\na\\tb       7\n           0\n"


def test_empty_table_has_a_header(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("table", "rows"), [])
    assert capsys.readouterr().out == "table  rows\n"


def test_suggestion_is_the_closest_name() -> None:
    assert nearest("dead_leters", ["orders", "dead_letters"]) == "dead_letters"
    assert nearest("x", ["orders"]) is None
    assert suggestion("ordrs", ["orders"]) == "did you mean 'orders'?"
