"""What the values of some JSON Schemas look like, case by case: one branch of each choice, one type, one value of an
enumeration.

Rule: a case may say less than the schemas (a choice too many is left out): more values, never fewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from wirebook.schema.jsonschema.compatibility_keywords import (
    FlatDocument,
    KeywordSet,
    Node,
    fraction,
    keywords_of,
    type_of,
)

MAX_CASES = 64
FURTHER = ("additionalProperties", "patternProperties", "unevaluatedProperties")
ABSENT: Any = object()
Limit = tuple[Fraction, bool]


@dataclass(frozen=True, eq=False)
class Case:
    """Values of one `type` for which all `words` hold and none of `nots`; or one `value`."""

    document: FlatDocument
    type: str
    words: tuple[KeywordSet, ...]
    nots: tuple[Node, ...] = ()
    value: Any = field(default=ABSENT)

    @property
    def single(self) -> bool:
        return self.value is not ABSENT

    def most(self, word: str) -> Any:
        """The largest value of a keyword; None if none has it."""
        return max((each.words[word] for each in self.words if word in each.words), default=None)

    def least(self, word: str) -> Any:
        return min((each.words[word] for each in self.words if word in each.words), default=None)

    def every(self, word: str) -> list[Any]:
        return [each.words[word] for each in self.words if word in each.words]

    def described(self) -> Any:
        if self.single:
            return {"type": "null"} if self.value is None else self.value
        return {"type": "integer" if self.integers else self.type}

    # -- numbers ----------------------------------------------------------------------------------------------------

    @cached_property
    def integers(self) -> bool:
        return self.type == "number" and any(word.integers for word in self.words)

    @cached_property
    def low(self) -> Limit | None:
        bounds = self.every("low")
        bound = max(bounds) if bounds else None
        if bound is None or not self.integers:
            return bound
        return Fraction(math.floor(bound[0]) + 1 if bound[1] else math.ceil(bound[0])), False

    @cached_property
    def high(self) -> Limit | None:
        bounds = self.every("high")
        bound = min(bounds, key=lambda each: (each[0], not each[1])) if bounds else None
        if bound is None or not self.integers:
            return bound
        return Fraction(math.ceil(bound[0]) - 1 if bound[1] else math.floor(bound[0])), False

    @cached_property
    def steps(self) -> list[Fraction]:
        """What all numbers are multiples of."""
        return [*map(fraction, self.every("multipleOf")), *([Fraction(1)] if self.integers else [])]

    # -- objects ----------------------------------------------------------------------------------------------------

    @cached_property
    def required(self) -> frozenset[str]:
        if self.single:
            return frozenset(self.value)
        return frozenset(name for names in self.every("required") for name in names)

    @cached_property
    def names(self) -> frozenset[str]:
        """The properties that the schemas name, or that the value has."""
        if self.single:
            return frozenset(self.value)
        return self.required | {name for word in self.words for name in word.get("properties") or ()}

    @cached_property
    def patterns(self) -> frozenset[str]:
        if self.single:
            return frozenset()
        return frozenset(pattern for word in self.words for pattern in word.get("patternProperties") or ())

    def member(self, name: str) -> tuple[KeywordSet, ...] | None:
        """What the values of a property are; None if it is never there."""
        if name not in (self.value if self.single else self.names) and (self.single or self.is_closed):
            return None
        nodes = [node for word in self.words for node in _of_property(word, name)]
        own = [self._literal(self.value[name])] if self.single else []
        return _possible(keywords_of([*own, *nodes]))

    def matching(self, pattern: str) -> tuple[KeywordSet, ...] | None:
        """What is sure of the properties whose names have a pattern and that no schema names."""
        nodes = [node for word in self.words for node in _of_pattern(word, pattern)]
        return _possible(keywords_of(nodes))

    @cached_property
    def others(self) -> tuple[KeywordSet, ...] | None:
        """What the properties are that no schema names and no pattern meets."""
        if self.single or self.is_closed:
            return None
        return _possible(keywords_of([node for word in self.words for node in _additional(word)]))

    @cached_property
    def is_declared(self) -> bool:
        """Whether documents have no properties but those that the schemas name or constrain; an object without
        `properties` declares none, and may have any.
        """
        return (
            self.document.declared_only and not self.single and any("properties" in word.words for word in self.words)
        )

    @cached_property
    def is_closed(self) -> bool:
        """Whether there are no properties but those named, because no schema mentions further ones."""
        return self.is_declared and not any(word in each.words for each in self.words for word in FURTHER)

    def is_undeclared(self, name: str) -> bool:
        """Whether documents do not have a property, because no schema names it or constrains its value."""
        if not self.is_declared or name in self.names:
            return False
        has_unknown = any(word.matches(pattern, name) is None for word in self.words for pattern in self.patterns)
        return not has_unknown and _is_anything(node for word in self.words for node in _of_property(word, name))

    @cached_property
    def is_unconstrained(self) -> bool:
        """Whether documents have no properties but those named, because no schema constrains the value of others."""
        others = (node for word in self.words for node in _additional(word))
        return self.is_declared and not self.patterns and _is_anything(others)

    @property
    def most_properties(self) -> int | None:
        closed = len(self.names) if not self.patterns and self.others is None else None
        return min((each for each in (self.least("maxProperties"), closed) if each is not None), default=None)

    # -- arrays -----------------------------------------------------------------------------------------------------

    @cached_property
    def prefix(self) -> int:
        """How many first items may differ from the others."""
        if self.single:
            return len(self.value)
        return max((len(word.get("prefixItems") or ()) for word in self.words), default=0)

    @cached_property
    def longest(self) -> int | None:
        if self.single:
            return len(self.value)
        closed = next((at for at in range(self.prefix + 1) if self._item(at) is None), None)
        return min((each for each in (self.least("maxItems"), closed) if each is not None), default=None)

    @cached_property
    def shortest(self) -> int:
        return len(self.value) if self.single else self.most("minItems") or 0

    def item(self, at: int) -> tuple[KeywordSet, ...] | None:
        """What the items at a place are; None if there is none."""
        return None if self.longest is not None and at >= self.longest else self._item(at)

    def _item(self, at: int) -> tuple[KeywordSet, ...] | None:
        nodes = [node for word in self.words for node in item_of(word, at)]
        own = [self._literal(self.value[at])] if self.single else []
        return _possible(keywords_of([*own, *nodes]))

    def _literal(self, value: Any) -> Node:
        return self.document.literal(value)


def _is_anything(nodes: Iterable[Node]) -> bool:
    return all(node.schema is True or node.schema == {} for node in nodes)


def _possible(words: tuple[KeywordSet, ...]) -> tuple[KeywordSet, ...] | None:
    return None if any("never" in word.words for word in words) else words


def _of_property(words: KeywordSet, name: str) -> Iterator[Node]:
    properties = words.get("properties") or {}
    matches = [(pattern, words.matches(pattern, name)) for pattern in words.get("patternProperties") or ()]
    if name in properties:
        yield words.node.at(properties[name])
    yield from (words.node.at(words.words["patternProperties"][pattern]) for pattern, match in matches if match)
    if name not in properties and all(match is False for _, match in matches):
        yield from _additional(words, name)


def _of_pattern(words: KeywordSet, pattern: str) -> Iterator[Node]:
    patterns = words.get("patternProperties") or {}
    if pattern in patterns:
        yield words.node.at(patterns[pattern])
    elif not patterns and "additionalProperties" in words.words:
        yield words.node.at(words.words["additionalProperties"])


def _additional(words: KeywordSet, name: str | None = None) -> Iterator[Node]:
    """The schema of further properties. Of what is not evaluated only a refusal that nothing else could lift."""
    if "additionalProperties" in words.words:
        yield words.node.at(words.words["additionalProperties"])
    elif "unevaluatedProperties" in words.words:
        names = evaluated_names(words.node, set())
        if names is not None and name not in names:
            yield words.node.at(words.words["unevaluatedProperties"])


def evaluated_names(node: Node, inside: set[int]) -> set[str] | None:
    """The properties that anything in a schema may evaluate; None if they cannot be listed."""
    schema = node.schema
    if id(schema) in inside or not isinstance(schema, dict):
        return set()
    inside = {*inside, id(schema)}
    if any(word in schema for word in ("additionalProperties", "patternProperties")):
        return None
    names = set(schema.get("properties") or ())
    branches = [each for word in ("allOf", "anyOf", "oneOf") for each in schema.get(word) or ()]
    branches += [schema[word] for word in ("if", "then", "else") if word in schema]
    branches += list((schema.get("dependentSchemas") or {}).values())
    nested = [node.at(branch) for branch in branches]
    for found in [*nested, *map(node.referred, node.references)]:
        more = None if found is None or _leaves_open(found, inside) else evaluated_names(found, inside)
        if more is None:
            return None
        names |= more
    return names


def _leaves_open(node: Node, inside: set[int]) -> bool:
    """Does a schema evaluate all that is left?"""
    return isinstance(node.schema, dict) and id(node.schema) not in inside and "unevaluatedProperties" in node.schema


def item_of(words: KeywordSet, at: int) -> Iterator[Node]:
    prefix = words.get("prefixItems") or ()
    if at < len(prefix):
        yield words.node.at(prefix[at])
    elif "items" in words.words:
        yield words.node.at(words.words["items"])


# -- cases ------------------------------------------------------------------------------------------------------------


def cases(document: FlatDocument, words: tuple[KeywordSet, ...], nots: tuple[Node, ...] = ()) -> list[Case]:
    """The cases of values for which all `words` hold, and none of `nots`. `document` is for what stands in none."""
    found: list[Case] = []
    for chosen, refused in _branches(words, nots):
        finite = next((each.words["enum"] for each in chosen if "enum" in each.words), None)
        types = frozenset[str].intersection(*(each.types for each in chosen)) if chosen else frozenset(ALL)
        if finite is not None:
            values = [each for each in finite if type_of(each) in types and not any(w.refuses(each) for w in chosen)]
            found += [Case(document, type_of(value), chosen, refused, value) for value in values]
        else:
            for type_ in ALL:
                more = _with_dependents(chosen) if type_ == "object" else chosen
                if type_ in types and all(type_ in each.types for each in more):
                    found += _of_type(Case(document, type_, more, refused))
    return found


ALL = ("null", "boolean", "number", "string", "array", "object")
FINITE: dict[str, tuple[Any, ...]] = {"null": (None,), "boolean": (False, True)}


def _of_type(case: Case) -> list[Case]:
    values = FINITE.get(case.type)
    if values is None:
        return [case]
    left = [value for value in values if not any(words.refuses(value) for words in case.words)]
    return [Case(case.document, case.type, case.words, case.nots, each) for each in left]


def _branches(
    words: tuple[KeywordSet, ...], nots: tuple[Node, ...]
) -> list[tuple[tuple[KeywordSet, ...], tuple[Node, ...]]]:
    """One branch of each choice, in all ways; beyond a number of ways the choices left are not made."""
    nots = (*nots, *(node for word in words if (node := word.schema("not"))))
    waiting = [(words, nots, frozenset[KeywordSet]())]
    settled: list[tuple[tuple[KeywordSet, ...], tuple[Node, ...]]] = []
    while waiting:
        current, refused, made = waiting.pop()  # `made`: whose choices are made, so that a choice within itself ends
        at = next((index for index, each in enumerate(current) if each.choice), None)
        options = list(_options(current[at])) if at is not None else []
        if at is None or len(waiting) + len(settled) + len(options) > MAX_CASES:
            settled.append((tuple(_without_choices(current)), refused))
            continue
        made |= {current[at]}
        rest = (*current[:at], current[at].chosen, *current[at + 1 :])
        for taken, left in options:
            more = keywords_of(taken)
            new = [each for each in more if each not in rest and each not in made]
            inner = tuple(node for each in new if (node := each.schema("not")))
            waiting.append(((*rest, *new), (*refused, *left, *inner), made))
    return settled[::-1]


def _with_dependents(words: tuple[KeywordSet, ...]) -> tuple[KeywordSet, ...]:
    """Objects, with the schemas that depend on properties that they have."""
    while True:
        required = {name for word in words for name in word.get("required") or ()}
        nodes = [node for word in words for name, node in word.members("dependentSchemas").items() if name in required]
        more = tuple(word for word in keywords_of(nodes) if word not in words) if nodes else ()
        if not more:
            return words
        words = (*words, *more)


def _without_choices(words: tuple[KeywordSet, ...]) -> Iterator[KeywordSet]:
    for word in words:
        while word.choice:
            word = word.chosen  # noqa: PLW2901
        yield word


def _options(words: KeywordSet) -> Iterator[tuple[list[Node], list[Node]]]:
    """The ways to meet the first choice: schemas that hold, and schemas that do not."""
    word = words.choice
    if word == "if":
        condition = words.node.at(words.words["if"])
        yield [condition, *_present(words, "then")], []
        yield _present(words, "else"), [condition]
        return
    nodes = words.nodes(str(word))
    for index, node in enumerate(nodes):
        yield [node], [*nodes[:index], *nodes[index + 1 :]] if word == "oneOf" else []


def _present(words: KeywordSet, word: str) -> list[Node]:
    found = words.schema(word)
    return [found] if found is not None else []
