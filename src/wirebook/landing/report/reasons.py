"""Formats the expected and actual values of dead letters for people.

Spec: docs/outcomes.md#dead-letters
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from wirebook.problems import quoted
from wirebook.text.json import JsonError, parse_json

__all__ = ["format_actual", "format_expected"]

IN_JSON: Final = frozenset({"payload-invalid", "placeholder-conflict", "unknown-endpoint"})
"""Problem codes whose `expected` is an object or an array."""


def format_expected(code: str, expected: str) -> str:
    """Format the expected value of a problem: the value itself, or a short description of a schema rule."""
    value = _value(code, expected)
    if isinstance(value, list):
        return f"one of {_listed(value)}"
    if not isinstance(value, Mapping):
        return expected
    if value.keys() >= {"placeholder", "slot", "value"}:
        return f"{value['value']}, the value of {{{value['placeholder']}}} in {value['slot']}"
    return ", ".join(_rule(str(keyword), rule) for keyword, rule in value.items())


def format_actual(code: str, actual: str) -> str:
    """Format the actual value of a problem: the value itself, or a list of names."""
    value = _value(code, actual)
    return _listed(value) if isinstance(value, list) and all(isinstance(item, str) for item in value) else actual


def _rule(keyword: str, rule: Any) -> str:
    if keyword == "required":
        return f"the property {_text(rule)}"
    if keyword == "additionalProperties" and rule is False:
        return "no other properties"
    if keyword in ("enum", "symbols") and isinstance(rule, list):
        return f"one of {_listed(rule)}"
    if keyword == "type":
        return f"a value of type {_listed(rule, ' or ') if isinstance(rule, list) else _text(rule)}"
    return f"{keyword} {_text(rule)}"


def _listed(values: list[Any], separator: str = ", ") -> str:
    return separator.join(map(_text, values))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else quoted(value)


def _value(code: str, text: str) -> Any:
    """The object or array that the text contains; the text itself if it contains neither."""
    if code not in IN_JSON or not text.startswith(("{", "[")):
        return text
    try:
        return parse_json(text.encode("utf-8", "replace"))
    except JsonError:
        return text
