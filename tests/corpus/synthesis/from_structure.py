"""Generate values that are valid by a JSON Structure document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from synthesis import texts
from synthesis.dice import Dice
from synthesis.scalars import anything, bounds, integer, number, text
from wirebook.schema.jsonstructure.compile import root_pointer
from wirebook.text.pointers import resolve as resolve_pointer

DEEP = 5  # levels below which nothing optional is there

INTEGERS = {
    "int8": (-(2**7), 2**7 - 1), "uint8": (0, 2**8 - 1), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1), "integer": (-(2**31), 2**31 - 1), "uint32": (0, 2**32 - 1),
}  # fmt: skip
INTEGER_TEXTS = {
    "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**64 - 1),
    "int128": (-(2**127), 2**127 - 1), "uint128": (0, 2**128 - 1),
}  # fmt: skip
STRUCTURE_TEXTS = {
    **{name: texts.FORMATS[name] for name in ("date", "time", "uuid", "uri", "duration", "datetime")},
    "binary": lambda dice: dice.choice(("", "AA==", "AAEC", "//8=")),
    "jsonpointer": lambda dice: dice.choice(("", "/a/0", "/a~1b")),
    "decimal": lambda dice: f"{dice.randint(-999, 999)}.{dice.randint(0, 99):02}",
}


class Structure:
    """Values of one JSON Structure document."""

    def __init__(self, document: dict[str, Any], dice: Dice) -> None:
        self.document, self.dice, self.level = document, dice, 0

    def root(self, part: str | None) -> Any:
        return self.value(resolve_pointer(self.document, root_pointer(self.document, part)))

    def value(self, node: dict[str, Any]) -> Any:
        self.level += 1
        try:
            return self._value(node)
        finally:
            self.level -= 1

    def _value(self, node: dict[str, Any]) -> Any:
        if "$ref" in node:
            return self.value(self._definition(node["$ref"]))
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self.dice.choice(node["enum"])
        type_ = node.get("type")
        if isinstance(type_, list):
            return self._of_union(node, type_)
        if isinstance(type_, dict):
            return self.value(type_)
        return self._of_type(node, type_)

    def _definition(self, reference: str) -> dict[str, Any]:
        return resolve_pointer(self.document, reference.removeprefix("#"))

    def _of_union(self, node: dict[str, Any], types: list[Any]) -> Any:
        if "null" in types and (self.dice.random() < 0.3 or self.level > DEEP):
            return None
        chosen = self.dice.choice([type_ for type_ in types if type_ != "null"])
        return self.value(chosen if isinstance(chosen, dict) else {**node, "type": chosen})

    def _of_type(self, node: dict[str, Any], type_: Any) -> Any:
        dice = self.dice
        if type_ in INTEGERS:
            return integer(dice, *map(int, bounds(node, *INTEGERS[type_])))
        if type_ in INTEGER_TEXTS:
            return str(integer(dice, *map(int, bounds(node, *INTEGER_TEXTS[type_]))))
        if type_ in ("number", "double", "float", "float8"):
            return number(dice, *bounds(node, -1e9, 1e9))
        if type_ in STRUCTURE_TEXTS:
            return STRUCTURE_TEXTS[type_](dice)
        makers: dict[str, Callable[[], Any]] = {
            "string": lambda: text(node, dice),
            "boolean": lambda: dice.random() < 0.5,
            "null": lambda: None,
            "any": lambda: anything(dice),
            "object": lambda: self._object(node),
            "array": lambda: self._items(node),
            "set": lambda: self._items(node)[:1],
            "map": lambda: {texts.word(dice): self.value(node["values"]) for _ in range(dice.randint(0, 2))},
            "choice": lambda: self._choice(node),
        }
        return makers[type_]()

    def _object(self, node: dict[str, Any]) -> dict[str, Any]:
        required, members = node.get("required", []), {}
        for name, property_ in node.get("properties", {}).items():
            if name in required or (self.dice.random() < 0.7 and self.level <= DEEP):
                members[name] = self.value(property_)
        if node.get("additionalProperties") is not False and self.dice.odd and self.dice.random() < 0.2:
            members[f"x{texts.word(self.dice)}"] = anything(self.dice)
        return members

    def _items(self, node: dict[str, Any]) -> list[Any]:
        count = self.dice.randint(node.get("minItems", 0), max(3, node.get("minItems", 0)))
        return [self.value(node["items"]) for _ in range(count)]

    def _choice(self, node: dict[str, Any]) -> dict[str, Any]:
        name, choice = self.dice.choice(list(node["choices"].items()))
        return {name: self.value(choice)}
