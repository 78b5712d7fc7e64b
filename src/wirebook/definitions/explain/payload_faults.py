"""What is wrong with a payload: where, what is there, the rule that it breaks, and the nearest name for a slip.

The problems are those of the compiled schema; nothing is validated here.

Spec: docs/explain.md#payloads
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.explain.alignment import nearest_name
from wirebook.problems import Problem
from wirebook.schema import CompiledSchema, DecodedPayload, Payload, Unsupported
from wirebook.schema.payload import UNSET
from wirebook.text.json import JsonError, parse_json
from wirebook.text.pointers import resolve

MAX_BYTES = 1 << 20
MAX_NAMED = 5
PLACE = "payload#"

PHRASES: dict[str, str] = {
    "type": "use a value of type {}",
    "const": "set it to {}",
    "enum": "set it to one of {}",
    "symbols": "set it to one of {}",
    "minimum": "set it to {} or more",
    "exclusiveMinimum": "set it to more than {}",
    "maximum": "set it to {} or less",
    "exclusiveMaximum": "set it to less than {}",
    "multipleOf": "set it to a multiple of {}",
    "minLength": "use {} characters or more",
    "maxLength": "use {} characters or fewer",
    "minItems": "use {} items or more",
    "maxItems": "use {} items or fewer",
    "pattern": "use a string that matches {}",
    "format": "use a string of format {}",
}
"""What would satisfy a rule that is a keyword with its value."""


@dataclass(frozen=True, slots=True)
class PayloadFault:
    """One rule that the payload breaks.

    Shape: `path` a JSON Pointer into the payload, "" for the whole; `value` what is there; `rule` what the schema asks
    for (of JSON Schema the keyword and its value); `nearest` the name or text that a slip was probably meant to be.
    """

    code: str
    path: str
    value: Any
    rule: Any
    message: str
    remedy: str | None = None
    nearest: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class PayloadReport:
    """A payload under a definition's schema. Shape: `outcome` is ``fits`` or the word of docs/outcomes.md."""

    format: str
    outcome: str
    faults: tuple[PayloadFault, ...] = ()

    @property
    def fits(self) -> bool:
        return self.outcome == "fits"

    def to_dict(self) -> dict[str, Any]:
        return {"format": self.format, "outcome": self.outcome, "faults": [fault.to_dict() for fault in self.faults]}


def payload_report(
    definition: Definition,
    reading: DecodedPayload,
    payload: Payload | None,
    schema: CompiledSchema | Unsupported | None,
) -> PayloadReport:
    """The reading of a payload, fault by fault."""
    form = (schema.format if schema else None) or definition.schema_format or "unknown"
    if not reading.problems:
        return PayloadReport(form, reading.outcome or "fits")
    value = _value(reading, payload)
    declared = {field.path[0] for field in schema.fields if field.path} if schema else set()
    faults = tuple(_fault(problem, value, declared, reading.problems) for problem in reading.problems)
    return PayloadReport(form, reading.outcome or "fits", faults)


def _value(reading: DecodedPayload, payload: Payload | None) -> Any:
    """The payload as a value, where it is one that has names: as it was decoded, or JSON."""
    if reading.value is not None or payload is None:
        return reading.value
    if payload.raw is None:
        return None if payload.value is UNSET else payload.value
    try:
        return parse_json(payload.raw) if len(payload.raw) <= MAX_BYTES else None
    except JsonError:
        return None


def _fault(problem: Problem, value: Any, declared: set[str], problems: Iterable[Problem]) -> PayloadFault:
    slot = problem.slot or ""
    path = slot.removeprefix(PLACE) if slot.startswith(PLACE) else ""
    remedy, nearest = _remedy(problem, path, value, declared, problems)
    return PayloadFault(problem.code, path, problem.actual, problem.expected, problem.message, remedy, nearest)


def _remedy(
    problem: Problem, path: str, value: Any, declared: set[str], problems: Iterable[Problem]
) -> tuple[str | None, str | None]:
    rule = problem.expected if isinstance(problem.expected, Mapping) else {}
    here = resolve(value, path)
    if isinstance(name := rule.get("required"), str):
        return _required(name, here, path, declared, problems)
    if isinstance(allowed := rule.get("enum") or rule.get("symbols"), list) and isinstance(problem.actual, str):
        near = nearest_name(problem.actual, [each for each in allowed if isinstance(each, str)])
        return (f"set it to '{near}'" if near else _phrase(rule)), near
    if "additionalProperties" in rule and isinstance(problem.actual, list) and not path:
        return _undeclared(problem.actual, declared, here)
    if isinstance(fields := rule.get("fields"), list):
        name = path.rpartition("/")[2]
        near = nearest_name(name, [field for field in fields if isinstance(field, str)])
        return (f"rename '{name}' to '{near}'" if near else f"leave '{name}' out"), near
    return "add data" if problem.code == "missing-data" else _phrase(rule), None


def _phrase(rule: Mapping[str, Any]) -> str | None:
    """What would satisfy the rule, in words; None where that takes more than a keyword."""
    for keyword in PHRASES:
        if keyword in rule:
            value = rule[keyword]
            values = value if isinstance(value, list) and keyword != "const" else [value]
            named = [_literal(each) if keyword in ("const", "enum", "symbols") else str(each) for each in values]
            listed = ", ".join(named[:MAX_NAMED]) + (" ..." if len(named) > MAX_NAMED else "")
            return PHRASES["const" if keyword == "enum" and len(named) == 1 else keyword].format(listed)
    return None


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _required(
    name: str, here: Any, path: str, declared: set[str], problems: Iterable[Problem]
) -> tuple[str, str | None]:
    known = (declared if not path else set()) | set(_asked_for(path, problems))
    others = [each for each in here if each not in known] if isinstance(here, Mapping) else []
    near = nearest_name(name, (other for other in others if isinstance(other, str)))
    return (f"rename '{near}' to '{name}'" if near else f"add '{name}'"), near


def _undeclared(names: Iterable[Any], declared: set[str], here: Any) -> tuple[str, str | None]:
    """Members too many: the first of them that is like one that is declared and not there."""
    there = set(here) if isinstance(here, Mapping) else set()
    texts = [name for name in names if isinstance(name, str)]
    for name in texts:
        if near := nearest_name(name, declared - there):
            return f"rename '{name}' to '{near}'", near
    return f"leave out {', '.join(texts)}", None


def _asked_for(path: str, problems: Iterable[Problem]) -> Iterator[str]:
    """The members that other problems ask for at the same place."""
    for problem in problems:
        if problem.slot == f"{PLACE}{path}" and isinstance(problem.expected, Mapping):
            name = problem.expected.get("required")
            if isinstance(name, str):
                yield name
