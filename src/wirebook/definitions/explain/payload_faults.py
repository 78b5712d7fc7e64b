"""The payload faults of an explanation: the place of each fault, the violated rule of the schema, and a remedy.

The faults are the problems that the compiled schema reports; this module only adds remedies.

Spec: docs/explain.md#payloads
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.explain.similar_names import nearest_name
from wirebook.problems import Problem
from wirebook.schema import CompiledSchema, DecodedPayload, Payload, Unsupported
from wirebook.schema.payload import UNSET
from wirebook.text.json import JsonError, parse_json
from wirebook.text.pointers import resolve

MAX_PARSED_BYTES: Final = 1 << 20
MAX_LISTED: Final = 5
SLOT_PREFIX: Final = "payload#"

REMEDIES: Final[dict[str, str]] = {
    "type": "use a value of type {}",
    "const": "set it to {}",
    "enum": "set it to one of {}",
    "symbols": "set it to one of {}",
    "minimum": "set it to {} or more",
    "exclusiveMinimum": "set it to more than {}",
    "maximum": "set it to {} or less",
    "exclusiveMaximum": "set it to less than {}",
    "multipleOf": "set it to a multiple of {}",
    "minLength": "use at least {} characters",
    "maxLength": "use at most {} characters",
    "minItems": "use at least {} items",
    "maxItems": "use at most {} items",
    "pattern": "use a string that matches {}",
    "format": "use a string of format {}",
}
"""The remedy for each schema keyword; the placeholder is the value of the keyword."""


@dataclass(frozen=True, slots=True)
class PayloadFault:
    """A rule of the schema that the payload violates.

    `path` is a JSON Pointer into the payload, "" for the whole payload; `value` is the value there. `rule` is what the
    schema requires; for JSON Schema, the keyword and its value. If there is a typo, `nearest` is the name or text that
    is probably meant.
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
    """The result of validating a payload against the schema of a definition.

    `outcome` is ``fits``, or one of the payload outcomes of docs/outcomes.md.
    """

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
    """Create the report of a decoded payload, with one fault for each problem."""
    schema_format = (schema.format if schema else None) or definition.schema_format or "unknown"
    outcome = reading.outcome or "fits"
    if not reading.problems:
        return PayloadReport(schema_format, outcome)
    value = _value(reading, payload)
    declared = {field.path[0] for field in schema.fields if field.path} if schema else set()
    faults = []
    for problem in reading.problems:
        slot = problem.slot or ""
        path = slot.removeprefix(SLOT_PREFIX) if slot.startswith(SLOT_PREFIX) else ""
        remedy, nearest = _remedy(problem, path, value, declared, reading.problems)
        faults.append(
            PayloadFault(problem.code, path, problem.actual, problem.expected, problem.message, remedy, nearest)
        )
    return PayloadReport(schema_format, outcome, tuple(faults))


def _value(reading: DecodedPayload, payload: Payload | None) -> Any:
    """The decoded payload; else its JSON value; else None."""
    if reading.value is not None or payload is None:
        return reading.value
    if payload.raw is None:
        return None if payload.value is UNSET else payload.value
    try:
        return parse_json(payload.raw) if len(payload.raw) <= MAX_PARSED_BYTES else None
    except JsonError:
        return None


def _remedy(
    problem: Problem, path: str, value: Any, declared: set[str], problems: Iterable[Problem]
) -> tuple[str | None, str | None]:
    """The remedy of a problem, and the name or text that is probably meant. `declared` are the top-level members."""
    rule = problem.expected if isinstance(problem.expected, Mapping) else {}
    if isinstance(name := rule.get("required"), str):
        return _remedy_for_missing_member(name, resolve(value, path), path, declared, problems)
    allowed = rule.get("enum") or rule.get("symbols")
    if isinstance(allowed, list) and isinstance(problem.actual, str):
        nearest = nearest_name(problem.actual, [text for text in allowed if isinstance(text, str)])
        return (f"set it to '{nearest}'" if nearest else _remedy_by_keyword(rule)), nearest
    if "additionalProperties" in rule and isinstance(problem.actual, list) and not path:
        return _remedy_for_undeclared_members(problem.actual, declared, resolve(value, path))
    if isinstance(fields := rule.get("fields"), list):
        name = path.rpartition("/")[2]
        nearest = nearest_name(name, [field for field in fields if isinstance(field, str)])
        return (f"rename '{name}' to '{nearest}'" if nearest else f"remove '{name}'"), nearest
    return "add a payload" if problem.code == "missing-data" else _remedy_by_keyword(rule), None


def _remedy_by_keyword(rule: Mapping[str, Any]) -> str | None:
    """The remedy for the first keyword of a rule that is in `REMEDIES`; None if there is no such keyword."""
    keyword = next((keyword for keyword in REMEDIES if keyword in rule), None)
    if keyword is None:
        return None
    value = rule[keyword]
    values = value if isinstance(value, list) and keyword != "const" else [value]
    texts = [_literal(item) if keyword in ("const", "enum", "symbols") else str(item) for item in values]
    listed = ", ".join(texts[:MAX_LISTED]) + (" ..." if len(texts) > MAX_LISTED else "")
    return REMEDIES["const" if keyword == "enum" and len(texts) == 1 else keyword].format(listed)


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _remedy_for_missing_member(
    name: str, parent: Any, path: str, declared: set[str], problems: Iterable[Problem]
) -> tuple[str, str | None]:
    """Suggest renaming an undeclared member of `parent` that is similar to the missing one, else adding the member."""
    required = {
        problem.expected.get("required")
        for problem in problems
        if problem.slot == f"{SLOT_PREFIX}{path}" and isinstance(problem.expected, Mapping)
    }
    known = (declared if not path else set()) | required
    members = parent if isinstance(parent, Mapping) else ()
    nearest = nearest_name(name, (member for member in members if isinstance(member, str) and member not in known))
    return (f"rename '{nearest}' to '{name}'" if nearest else f"add '{name}'"), nearest


def _remedy_for_undeclared_members(names: Iterable[Any], declared: set[str], parent: Any) -> tuple[str, str | None]:
    """Suggest renaming the first undeclared member that is similar to an absent declared one, else removing all."""
    members = set(parent) if isinstance(parent, Mapping) else set()
    texts = [name for name in names if isinstance(name, str)]
    for name in texts:
        if nearest := nearest_name(name, declared - members):
            return f"rename '{name}' to '{nearest}'", nearest
    return f"remove {', '.join(repr(text) for text in texts)}", None
