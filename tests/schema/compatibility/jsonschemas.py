"""Random JSON Schemas, small changes of schemas, and values: small, so that changes matter."""

from __future__ import annotations

import copy
import random
from typing import Any

NAMES = ("a", "b", "ab", "c")
TEXTS = ("", "a", "b", "ab", "aa", "abc", "1", "x@y.org", "2020-01-01")
NUMBERS = (0, 1, -1, 2, 3, 4, 6, 0.5, 1.5, 2.0, 10, -7)
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
PATTERNS = ("^a", "b$", "^[ab]*$", "")


class Schemas:
    """Shape: `modern` draft 2020-12, else draft-07."""

    def __init__(self, seed: int, modern: bool) -> None:
        self.random, self.modern = random.Random(seed), modern
        self.names = ("n1", "n2")

    def document(self) -> dict[str, Any]:
        word = "$defs" if self.modern else "definitions"
        definitions = {name: self.schema(2) for name in self.names}
        schema = self.schema(3)
        return {**(schema if isinstance(schema, dict) else {"allOf": [schema]}), word: definitions}

    def schema(self, levels: int) -> Any:
        pick = self.random.random()
        if pick < 0.05:
            return self.random.random() < 0.7
        if levels == 0 or pick < 0.35:
            return self._leaf()
        if pick < 0.45:
            return {"$ref": f"#/{'$defs' if self.modern else 'definitions'}/{self.random.choice(self.names)}"}
        return self._compound(levels - 1)

    def _leaf(self) -> dict[str, Any]:
        one = self.random
        return one.choice([
            lambda: {"type": one.choice(["string", "integer", "number", "boolean", "null", "array", "object"])},
            lambda: {"type": one.sample(["string", "integer", "null", "object", "array"], 2)},
            lambda: {"type": "integer", one.choice(BOUNDS): one.choice([0, 1, 2, 3])},
            lambda: {one.choice(BOUNDS): one.choice([0, 1, 1.5, 3])},
            lambda: {"multipleOf": one.choice([1, 2, 3, 0.5])},
            lambda: {"type": "string", one.choice(["minLength", "maxLength"]): one.choice([0, 1, 2, 3])},
            lambda: {"pattern": one.choice(PATTERNS)},
            lambda: {"format": one.choice(["date", "email", "idn-email"])},
            lambda: {"enum": one.sample([None, True, 0, 1, "a", "b", "ab", {"a": 1}, [1], []], one.choice([1, 2, 3]))},
            lambda: {"const": one.choice([None, 1, "a", {"a": "a"}, [1, "a"]])},
            dict,
        ])()  # fmt: skip

    def _compound(self, levels: int) -> dict[str, Any]:
        one = self.random
        keywords: dict[str, Any] = {}
        for _ in range(one.choice([1, 1, 2, 3])):
            keywords |= one.choice([self._object, self._object, self._array, self._choice, self._leaf_of])(levels)
        return keywords

    def _leaf_of(self, levels: int) -> dict[str, Any]:
        return self._leaf()

    def _object(self, levels: int) -> dict[str, Any]:
        one = self.random
        dependent = "dependentRequired" if self.modern else "dependencies"
        schemas = "dependentSchemas" if self.modern else "dependencies"
        words = {
            "type": lambda: "object",
            "properties": lambda: {name: self.schema(levels) for name in one.sample(NAMES, one.choice([1, 2]))},
            "required": lambda: one.sample(NAMES, one.choice([1, 2])),
            "additionalProperties": lambda: one.choice([False, self.schema(levels)]),
            "patternProperties": lambda: {one.choice(PATTERNS): self.schema(levels)},
            "minProperties": lambda: one.choice([1, 2]),
            "maxProperties": lambda: one.choice([1, 2]),
            "propertyNames": lambda: one.choice([{"enum": list(one.sample(NAMES, 2))}, self.schema(0)]),
            dependent: lambda: {one.choice(NAMES): one.sample(NAMES, 1)},
            schemas: lambda: {one.choice(NAMES): self.schema(levels)},
        } | ({"unevaluatedProperties": lambda: one.choice([False, self.schema(0)])} if self.modern else {})
        chosen = one.sample(list(words), one.choice([1, 2, 3]))
        return {word: words[word]() for word in chosen}

    def _array(self, levels: int) -> dict[str, Any]:
        one = self.random
        words = {
            "type": lambda: "array",
            "items": lambda: self.schema(levels),
            "minItems": lambda: one.choice([1, 2]),
            "maxItems": lambda: one.choice([0, 1, 2]),
            "uniqueItems": lambda: True,
            "contains": lambda: self.schema(levels),
        }
        if self.modern:
            words |= {"prefixItems": lambda: [self.schema(levels) for _ in range(one.choice([1, 2]))],
                      "minContains": lambda: one.choice([0, 1, 2]), "maxContains": lambda: one.choice([1, 2]),
                      "unevaluatedItems": lambda: one.choice([False, self.schema(0)])}  # fmt: skip
        else:
            words["items"] = lambda: one.choice([self.schema(levels), [self.schema(levels)]])
            words["additionalItems"] = lambda: one.choice([False, self.schema(levels)])
        chosen = one.sample(list(words), one.choice([1, 2, 3]))
        return {word: words[word]() for word in chosen}

    def _choice(self, levels: int) -> dict[str, Any]:
        one = self.random
        word = one.choice(["anyOf", "oneOf", "allOf", "not", "if"])
        if word == "not":
            return {"not": self.schema(levels)}
        if word == "if":
            branches = {"if": self.schema(levels), "then": self.schema(levels), "else": self.schema(levels)}
            branches.pop(one.choice(["then", "else", "none"]), None)
            return branches
        return {word: [self.schema(levels) for _ in range(one.choice([1, 2, 2, 3]))]}

    # -- changes ------------------------------------------------------------------------------------------------------

    def changed(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the document with one or two random changes."""
        variant = copy.deepcopy(document)
        for _ in range(self.random.choice([1, 1, 2])):
            place = self.random.choice(list(_schemas(variant)))
            self._change(place)
        return variant

    def _change(self, place: dict[str, Any]) -> None:
        one, pick = self.random, self.random.random()
        words = [word for word in place if word not in ("$defs", "definitions")]
        if pick < 0.45 and words:
            del place[one.choice(words)]
        elif pick < 0.6:
            place |= self._leaf()
        elif pick < 0.7:
            place |= self._compound(1)
        else:
            for word in words:
                if isinstance(place[word], list) and place[word] and word in ("enum", "anyOf", "oneOf", "required"):
                    if one.random() < 0.5 and len(place[word]) > 1:
                        place[word].pop(one.randrange(len(place[word])))
                    else:
                        place[word].append({"enum": "zz", "required": one.choice(NAMES)}.get(word) or self.schema(1))
                    place[word] = list({repr(item): item for item in place[word]}.values())
                elif isinstance(place[word], int) and not isinstance(place[word], bool) and word != "const":
                    place[word] = max(place[word] + one.choice([-1, 1]), 0 if word != "multipleOf" else 1)

    # -- values -------------------------------------------------------------------------------------------------------

    def value(self, levels: int = 3) -> Any:
        one = self.random
        pick = one.random()
        if levels and pick < 0.4:
            return {name: self.value(levels - 1) for name in one.sample([*NAMES, "zz"], one.choice([0, 1, 2, 3]))}
        if levels and pick < 0.55:
            return [self.value(levels - 1) for _ in range(one.choice([0, 1, 1, 2, 3]))]
        return one.choice([None, True, False, *TEXTS, *NUMBERS])


def _schemas(node: Any) -> Any:
    if isinstance(node, dict):
        yield node
        for word, value in node.items():
            if word in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
                for inner in value.values():
                    yield from _schemas(inner)
            elif word in ("allOf", "anyOf", "oneOf", "prefixItems"):
                for inner in value:
                    yield from _schemas(inner)
            elif word in ("items", "not", "if", "then", "else", "additionalProperties", "contains", "propertyNames"):
                yield from _schemas(value)
