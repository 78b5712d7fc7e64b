"""Translate the constraints of JSON Structure types to JSON Schema.

The constraints of numbers that are written as strings may also be strings. They are compared as numbers.

Spec: draft-vasters-json-structure-validation.
Reading: `dependentRequired` and `has` always count, as in the json-structure package.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import MAX_PREC, Context, Decimal
from typing import Any, Final

from wirebook.schema.digits import integers_between
from wirebook.schema.jsonstructure.types import DECIMAL, NUMBER_TEXTS, NUMBERS, PRIMITIVES

Node = dict[str, Any]
Compare = Callable[[Decimal, Decimal], bool]

MAX_DIGITS: Final = 400
"""Maximum digits of a numeric constraint before, and after, the decimal point. It limits the cost of comparisons."""
_NUMBER: Final = re.compile(rf"-?[0-9]{{1,{MAX_DIGITS}}}(?:\.[0-9]{{1,{MAX_DIGITS}}})?(?:[eE][+-]?[0-9]{{1,3}})?\Z")
_NUMBER_TEXT: Final = re.compile(DECIMAL)
_EXACT: Final = Context(prec=MAX_PREC)


def is_multiple(value: Decimal, step: Decimal) -> bool:
    """Return whether a number is an integer multiple of another one. Cost: linear in the digits of `value`."""
    return step != 0 and _EXACT.remainder(value, step) == 0


COMPARE: dict[str, Compare] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
    "multipleOf": is_multiple,
}
STRINGS = ("minLength", "maxLength", "pattern")
FORMATS = frozenset(("ipv4", "ipv6", "email", "idn-email", "hostname", "idn-hostname", "iri", "iri-reference", "uri",
                     "uri-template", "relative-json-pointer", "regex"))  # fmt: skip
ITEMS = ("minItems", "maxItems", "minContains", "maxContains")
ENTRIES = {"minProperties": "minProperties", "maxProperties": "maxProperties", "minEntries": "minProperties",
           "maxEntries": "maxProperties"}  # fmt: skip
PATTERNS = {"patternProperties": "patternProperties", "patternKeys": "patternProperties"}
NAMES = {"propertyNames": "propertyNames", "keyNames": "propertyNames"}


class ConstraintTranslation:
    """Translates constraints, and adds to `formats` and `named` (see `Translation`).

    Shape: `schema` is the function that translates a type.
    """

    def __init__(self, schema: Callable[[Any], Node]) -> None:
        self.schema = schema
        self.formats: dict[str, Callable[[str], bool]] = {}
        self.named: dict[str, Any] = {}

    def always(self, node: Node) -> list[Node]:
        """Return the constraints that apply without an extension."""
        if node.get("type") != "object":
            return []
        constraints: list[Node] = []
        if isinstance(node.get("dependentRequired"), dict):
            constraints.append({"dependentRequired": node["dependentRequired"]})
        if "has" in node:  # some value matches: not all values fail to match
            constraints.append({"not": {"additionalProperties": {"not": self.schema(node["has"])}}})
        return constraints

    def validation(self, node: Node) -> list[Node]:
        """Return the constraints of the validation extension that apply to the type."""
        type_ = node.get("type")
        if type_ in NUMBERS:
            return [{keyword: _plain(bound_of(node, keyword)) for keyword in COMPARE if keyword in node}]
        if type_ in NUMBER_TEXTS:
            return self._number_texts(node)
        handler = {"string": self._strings, "array": self._items, "set": self._items, "object": self._object,
                   "map": self._object}.get(str(type_))  # fmt: skip
        return [handler(node)] if handler else []

    def _number_texts(self, node: Node) -> list[Node]:
        primitive = PRIMITIVES[node["type"]]
        keywords = [keyword for keyword in COMPARE if keyword in node]
        ranges = [keyword for keyword in keywords if keyword != "multipleOf" and primitive.bounds]
        return [
            self._range(node, keyword) if keyword in ranges else self._predicate(node, keyword) for keyword in keywords
        ]

    def _range(self, node: Node, keyword: str) -> Node:
        """Return the bound of an integer that is written as a string, as a pattern."""
        low, high = PRIMITIVES[node["type"]].bounds or (0, 0)
        bound = bound_of(node, keyword)
        step, whole = (1 if keyword.startswith("exclusive") else 0), int(bound.to_integral_value("ROUND_FLOOR"))
        if keyword.lower().endswith("minimum"):
            low = max(low, whole + step if whole == bound else whole + 1)
        else:
            high = min(high, whole - step if whole == bound else whole)
        pattern = f"^{integers_between(low, high)}$"
        self.named[pattern] = {keyword: node[keyword]}
        return {"pattern": pattern}

    def _predicate(self, node: Node, keyword: str) -> Node:
        """Return a constraint that only a function can check, as a custom format."""
        bound, compare, name = bound_of(node, keyword), COMPARE[keyword], f"{keyword} {node[keyword]}"

        def holds(text: str) -> bool:
            return not _NUMBER_TEXT.match(text) or compare(Decimal(text), bound)  # its type reports other texts

        self.formats[name] = holds
        self.named[name] = {keyword: node[keyword]}
        return {"format": name}

    def _strings(self, node: Node) -> Node:
        schema = {keyword: node[keyword] for keyword in STRINGS if keyword in node}
        format_ = node.get("format", "")
        if not isinstance(format_, str):
            raise ValueError(f"'format' must be a string, not {str(format_)[:60]}")
        if format_ in FORMATS:
            schema["format"] = format_
        return schema

    def _items(self, node: Node) -> Node:
        schema = {keyword: node[keyword] for keyword in ITEMS if keyword in node}
        if node.get("uniqueItems") is True:
            schema["uniqueItems"] = True
        if "contains" in node:
            schema["contains"] = self.schema(node["contains"])
        return schema

    def _object(self, node: Node) -> Node:
        schema = {to: node[keyword] for keyword, to in ENTRIES.items() if keyword in node}
        for keyword, to in PATTERNS.items():
            if isinstance(node.get(keyword), dict):
                schema[to] = {
                    pattern: self.schema(property_schema) for pattern, property_schema in node[keyword].items()
                }
        for keyword, to in NAMES.items():
            if keyword in node:
                schema[to] = self.schema(node[keyword])
        return schema


def bound_of(node: Node, keyword: str) -> Decimal:
    """Return the value of a numeric constraint, which may be a number or a string. Raises: ValueError"""
    value = node[keyword]
    if isinstance(value, int | float | str) and _NUMBER.match(str(value)):
        return Decimal(str(value))
    limit = f"at most {MAX_DIGITS} digits before and after the decimal point"
    raise ValueError(f"'{keyword}' must be a number with {limit}, not {str(value)[:60]!r}")


def _plain(bound: Decimal) -> int | float:
    return int(bound) if bound == bound.to_integral_value() else float(bound)
