"""Messages of problems, and the text of errors."""

from __future__ import annotations

import pytest

from wirebook.problems import CODES, Problem, WirebookError


@pytest.mark.parametrize("code", [name for name, code in CODES.items() if not code.status])
@pytest.mark.parametrize("message", ["", "  "])
def test_problem_without_a_message_has_the_title_as_its_message(code: str, message: str) -> None:
    assert len(Problem(code, message).message.split()) >= 3
    assert Problem(code, message).message == CODES[code].title


@pytest.mark.parametrize(
    ("expected", "actual", "message"),
    [
        ("an object", "array", "; expected an object, got 'array'"),
        (1, None, "; expected 1"),
        (True, False, "; expected true, got false"),
        ({"a": None}, ["b"], '; expected {"a": null}, got ["b"]'),
        (None, "x" * 1000, f"; got '{'x' * 198}…"),
    ],
)
def test_default_message_has_both_values(expected: object, actual: object, message: str) -> None:
    problem = Problem("mismatch", expected=expected, actual=actual)
    assert problem.message == CODES["mismatch"].title + message


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("syntax-error", "no value", file="a.json", line=2, column=9), "a.json:2:9: syntax-error: no value"),
        (Problem("syntax-error", "no value", file="a.json"), "a.json: syntax-error: no value"),
        (Problem("bad-setting", "no such port"), "bad-setting: no such port"),
        (Problem("bad-base", "no XID", xid="/a/b", pointer="/a/b/c"), "/a/b/c: bad-base: no XID"),
        (Problem("bad-base", "no XID", xid="/a/b", pointer="/a/bc"), "/a/b /a/bc: bad-base: no XID"),
        (Problem("bad-base", "no XID", xid="/a/b", pointer="/a/b"), "/a/b: bad-base: no XID"),
        (Problem("mismatch", "payload#/a: no", slot="payload#/a"), "payload#/a: mismatch: no"),
    ],
)
def test_text_of_an_error_contains_the_place(problem: Problem, text: str) -> None:
    assert str(WirebookError(problem)) == text
    assert str(WirebookError(problem, problem)) == f"{text}; {text}"
