"""The constraints of JSON Structure as JSON Schema.

Spec: draft-vasters-json-structure-validation; `dependentRequired` and `has` count always, as in the json-structure
package. Numbers that are written as strings have constraints written as strings, and compare as numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from wirebook.schema.digits import integers_between
from wirebook.schema.jsonstructure.types import NUMBER_TEXTS, NUMBERS, PRIMITIVES

Node = dict[str, Any]
Compare = Callable[[Decimal, Decimal], bool]

COMPARE: dict[str, Compare] = {
    "minimum": lambda value, bound: value >= bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
    "multipleOf": lambda value, bound: bound != 0 and value % bound == 0,
}
STRINGS = ("minLength", "maxLength", "pattern")
FORMATS = frozenset(("ipv4", "ipv6", "email", "idn-email", "hostname", "idn-hostname", "iri", "iri-reference", "uri",
                     "uri-template", "relative-json-pointer", "regex"))  # fmt: skip
ITEMS = ("minItems", "maxItems", "minContains", "maxContains")
ENTRIES = {"minEntries": "minProperties", "maxEntries": "maxProperties"}
PATTERNS = {"patternProperties": "patternProperties", "patternKeys": "patternProperties"}
NAMES = {"propertyNames": "propertyNames", "keyNames": "propertyNames"}


class ConstraintTranslation:
    """Translates constraints; `schema` translates a type. Fills `formats` and `named` (see Translation)."""

    def __init__(self, schema: Callable[[Any], Node]) -> None:
        self.schema = schema
        self.formats: dict[str, Callable[[str], bool]] = {}
        self.named: dict[str, Any] = {}

    def always(self, node: Node) -> list[Node]:
        """Constraints that need no extension."""
        if node.get("type") != "object":
            return []
        found: list[Node] = []
        if isinstance(node.get("dependentRequired"), dict):
            found.append({"dependentRequired": node["dependentRequired"]})
        if "has" in node:  # some value matches: not every value does not
            found.append({"not": {"additionalProperties": {"not": self.schema(node["has"])}}})
        return found

    def validation(self, node: Node) -> list[Node]:
        """Constraints of the validation extension, by the kind of type."""
        type_ = node.get("type")
        if type_ in NUMBERS:
            return self._numbers(node)
        if type_ in NUMBER_TEXTS:
            return self._number_texts(node)
        handler = {"string": self._strings, "array": self._items, "set": self._items, "object": self._object,
                   "map": self._object}.get(str(type_))  # fmt: skip
        return handler(node) if handler else []

    def _numbers(self, node: Node) -> list[Node]:
        bounds = {word: _plain(_bound(node, word)) for word in COMPARE if word in node}
        return [bounds] if bounds else []

    def _number_texts(self, node: Node) -> list[Node]:
        primitive = PRIMITIVES[node["type"]]
        words = [word for word in COMPARE if word in node]
        ranges = [word for word in words if word != "multipleOf" and primitive.bounds]
        return [self._range(node, word) if word in ranges else self._predicate(node, word) for word in words]

    def _range(self, node: Node, word: str) -> Node:
        """A bound of integers in strings, as a pattern."""
        low, high = PRIMITIVES[node["type"]].bounds or (0, 0)
        bound = _bound(node, word)
        step, whole = (1 if word.startswith("exclusive") else 0), int(bound.to_integral_value("ROUND_FLOOR"))
        if word.lower().endswith("minimum"):
            low = max(low, whole + step if whole == bound else whole + 1)
        else:
            high = min(high, whole - step if whole == bound else whole)
        pattern = f"^{integers_between(low, high)}$"
        self.named[pattern] = {word: node[word]}
        return {"pattern": pattern}

    def _predicate(self, node: Node, word: str) -> Node:
        """A bound that only a function can check: a format of our own."""
        bound, compare, name = _bound(node, word), COMPARE[word], f"{word} {node[word]}"

        def holds(text: str) -> bool:
            try:
                return compare(Decimal(text), bound)
            except InvalidOperation:
                return True  # no number: the type says so

        self.formats[name] = holds
        self.named[name] = {word: node[word]}
        return {"format": name}

    def _strings(self, node: Node) -> list[Node]:
        found = {word: node[word] for word in STRINGS if word in node}
        if node.get("format") in FORMATS:
            found["format"] = node["format"]
        return [found] if found else []

    def _items(self, node: Node) -> list[Node]:
        found = {word: node[word] for word in ITEMS if word in node}
        if node.get("uniqueItems") is True:
            found["uniqueItems"] = True
        if "contains" in node:
            found["contains"] = self.schema(node["contains"])
        return [found] if found else []

    def _object(self, node: Node) -> list[Node]:
        found = {word: node[word] for word in ENTRIES.values() if word in node}
        found |= {to: node[word] for word, to in ENTRIES.items() if word in node}
        for word, to in PATTERNS.items():
            if isinstance(node.get(word), dict):
                found[to] = {pattern: self.schema(each) for pattern, each in node[word].items()}
        for word, to in NAMES.items():
            if word in node:
                found[to] = self.schema(node[word])
        return [found] if found else []


def _bound(node: Node, word: str) -> Decimal:
    """The value of a numeric constraint, a number or its text. Raises: ValueError."""
    value = node[word]
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"'{word}' is {value!r}, no number") from None


def _plain(bound: Decimal) -> int | float:
    return int(bound) if bound == bound.to_integral_value() else float(bound)
