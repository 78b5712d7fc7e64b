"""Generate values that are valid by a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from synthesis import texts
from synthesis.dice import Dice
from synthesis.scalars import anything, bounds, integer, number, text
from wirebook.schema.jsonschema.compile import pointer_in
from wirebook.text.pointers import resolve as resolve_pointer

Resolve = Callable[[str], Any]
DEEP = 5  # levels below which nothing optional is there


class JsonSchema:
    """Values of one JSON Schema; references may lead to other documents, which `resolve` gives by their address."""

    def __init__(self, document: dict[str, Any], dice: Dice, resolve: Resolve) -> None:
        self.document, self.dice, self.resolve, self.level = document, dice, resolve, 0

    def root(self, part: str | None) -> Any:
        if not part:
            return self.value(self.document, self.document)
        return self.value(resolve_pointer(self.document, pointer_in(self.document, part)), self.document)

    def value(self, node: Any, document: dict[str, Any]) -> Any:
        self.level += 1
        try:
            return self._value(node if isinstance(node, dict) else {}, document)
        finally:
            self.level -= 1

    def _value(self, node: dict[str, Any], document: dict[str, Any]) -> Any:
        if "$ref" in node:
            return self._referred(node["$ref"], document)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self.dice.choice(node["enum"])
        if "allOf" in node:
            return self.value(self._merged(node["allOf"], document), document)
        for word in ("oneOf", "anyOf"):
            if word in node:
                return self.value(_chosen(node, word, self.dice), document)
        return self._of_type(node, document)

    def _referred(self, reference: str, document: dict[str, Any]) -> Any:
        address, _, fragment = reference.partition("#")
        if address:
            base = document.get("$id", "")
            document = self.resolve(address if ":" in address else f"{base.rpartition('/')[0]}/{address}")
        return self.value(resolve_pointer(document, fragment), document)

    def _merged(self, parts: list[Any], document: dict[str, Any]) -> dict[str, Any]:
        """One schema that says what several say: good enough for objects of which later parts narrow single members."""
        merged: dict[str, Any] = {}
        for part in parts:
            target = resolve_pointer(document, part["$ref"].removeprefix("#")) if "$ref" in part else part
            for name, property_ in target.get("properties", {}).items():
                narrowed = {**merged.get("properties", {}).get(name, {}), **property_}
                merged.setdefault("properties", {})[name] = narrowed
            merged |= {word: value for word, value in target.items() if word != "properties"}
        return merged

    def _of_type(self, node: dict[str, Any], document: dict[str, Any]) -> Any:
        dice, declared = self.dice, node.get("type")
        types = declared if isinstance(declared, list) else [declared]
        type_ = dice.choice(types)
        if type_ is None:
            return self._object(node, document) if "properties" in node else anything(dice)
        makers: dict[str, Callable[[], Any]] = {
            "integer": lambda: integer(dice, *map(int, bounds(node, -(2**63), 2**63 - 1))),
            "number": lambda: number(dice, *bounds(node, -1e9, 1e9)),
            "string": lambda: text(node, dice),
            "boolean": lambda: dice.random() < 0.5,
            "null": lambda: None,
            "object": lambda: self._object(node, document),
            "array": lambda: [self.value(node.get("items"), document) for _ in range(self._length(node))],
        }
        return makers[type_]()

    def _length(self, node: dict[str, Any]) -> int:
        return self.dice.randint(node.get("minItems", 0), max(2, node.get("minItems", 0)))

    def _object(self, node: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
        required, extra, members = node.get("required", []), node.get("additionalProperties", True), {}
        for name, property_ in node.get("properties", {}).items():
            if name in required or (self.dice.random() < 0.7 and self.level <= DEEP):
                members[name] = self.value(property_, document)
        if extra is not False and self.dice.odd and self.dice.random() < 0.3:
            members[f"x{texts.word(self.dice)}"] = (
                self.value(extra, document) if extra is not True else anything(self.dice)
            )
        return members


def _chosen(node: dict[str, Any], word: str, dice: Dice) -> dict[str, Any]:
    """One of the alternatives, with what stands beside them."""
    chosen: dict[str, Any] = dice.choice(node[word])
    if "$ref" in chosen:
        return chosen
    required = [*node.get("required", ()), *chosen.get("required", ())]
    return {name: member for name, member in node.items() if name != word} | chosen | {"required": required}
