"""Splits the values of JSON Schemas into cases: one branch of each alternative, and one type or enumerated value.

Rule: a case may guarantee less than the schemas do, because alternatives beyond a limit are dropped. It may therefore
contain more values, never fewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from wirebook.schema.jsonschema.compatibility_keywords import (
    TYPES,
    FlatDocument,
    KeywordSet,
    Node,
    fraction,
    keywords_of,
    type_of,
)

MAX_CASES = 64
"""The most combinations of alternatives that are told apart; the remaining alternatives are dropped."""
FURTHER = ("additionalProperties", "patternProperties", "unevaluatedProperties")
ABSENT: Any = object()
Limit = tuple[Fraction, bool]


@dataclass(frozen=True, eq=False)
class Case:
    """The values of one `type` that satisfy all of `sets` and are valid against none of `nots`, or a single `value`."""

    document: FlatDocument
    type: str
    sets: tuple[KeywordSet, ...]
    nots: tuple[Node, ...] = ()
    value: Any = field(default=ABSENT)

    @property
    def single(self) -> bool:
        """Whether the case is a single value."""
        return self.value is not ABSENT

    def most(self, keyword: str) -> Any:
        """Return the largest value of a keyword; None without the keyword."""
        return max(self.every(keyword), default=None)

    def least(self, keyword: str) -> Any:
        """Return the smallest value of a keyword; None without the keyword."""
        return min(self.every(keyword), default=None)

    def every(self, keyword: str) -> list[Any]:
        """Return all values of a keyword."""
        return [keywords.values[keyword] for keywords in self.sets if keyword in keywords.values]

    def described(self) -> Any:
        """Return the case as it appears in an incompatibility."""
        if self.single:
            return {"type": "null"} if self.value is None else self.value
        return {"type": "integer" if self.integers else self.type}

    # -- numbers ----------------------------------------------------------------------------------------------------

    @cached_property
    def integers(self) -> bool:
        """Whether all values are integers."""
        return self.type == "number" and any(keywords.integers for keywords in self.sets)

    @cached_property
    def low(self) -> Limit | None:
        """The lower limit of numbers; None without a limit."""
        bound: Limit | None = self.most("low")
        if bound is None or not self.integers:
            return bound
        return Fraction(math.floor(bound[0]) + 1 if bound[1] else math.ceil(bound[0])), False

    @cached_property
    def high(self) -> Limit | None:
        """The upper limit of numbers; None without a limit."""
        bound = min(self.every("high"), key=lambda limit: (limit[0], not limit[1]), default=None)
        if bound is None or not self.integers:
            return bound
        return Fraction(math.ceil(bound[0]) - 1 if bound[1] else math.floor(bound[0])), False

    @cached_property
    def steps(self) -> list[Fraction]:
        """The numbers of which all values are multiples."""
        return [*map(fraction, self.every("multipleOf")), *([Fraction(1)] if self.integers else [])]

    # -- objects ----------------------------------------------------------------------------------------------------

    @cached_property
    def required(self) -> frozenset[str]:
        """The properties that every value has."""
        if self.single:
            return frozenset(self.value)
        return frozenset(name for names in self.every("required") for name in names)

    @cached_property
    def names(self) -> frozenset[str]:
        """The properties that the schemas name, or that the value has."""
        if self.single:
            return frozenset(self.value)
        return self.required | {name for keywords in self.sets for name in keywords.get("properties") or ()}

    @cached_property
    def patterns(self) -> frozenset[str]:
        """The patterns of property names."""
        if self.single:
            return frozenset()
        return frozenset(pattern for keywords in self.sets for pattern in keywords.get("patternProperties") or ())

    def member(self, name: str) -> tuple[KeywordSet, ...] | None:
        """Return the keywords that a property satisfies; None if no value has the property."""
        if name not in (self.value if self.single else self.names) and (self.single or self.is_closed):
            return None
        nodes = [node for keywords in self.sets for node in _of_property(keywords, name)]
        own = [self.document.literal(self.value[name])] if self.single else []
        return _possible(keywords_of([*own, *nodes]))

    def matching(self, pattern: str) -> tuple[KeywordSet, ...] | None:
        """Return the keywords of properties that match `pattern` and that no schema names; None if there are none."""
        nodes = [node for keywords in self.sets for node in _of_pattern(keywords, pattern)]
        return _possible(keywords_of(nodes))

    @cached_property
    def others(self) -> tuple[KeywordSet, ...] | None:
        """The keywords of the properties that no schema names and no pattern matches; None if there are none."""
        if self.single or self.is_closed:
            return None
        return _possible(keywords_of([node for keywords in self.sets for node in _additional(keywords)]))

    @cached_property
    def is_declared(self) -> bool:
        """Whether documents have only the properties that the schemas name or constrain.

        An object without `properties` declares none and may have any.
        """
        declares = any("properties" in keywords.values for keywords in self.sets)
        return self.document.declared_only and not self.single and declares

    @cached_property
    def is_closed(self) -> bool:
        """Whether documents have only named properties, because no schema has a keyword for others."""
        return self.is_declared and not any(keyword in keywords.values for keywords in self.sets for keyword in FURTHER)

    def is_undeclared(self, name: str) -> bool:
        """Whether documents never have a property, because no schema names it or constrains its value."""
        if not self.is_declared or name in self.names:
            return False
        has_unknown = any(
            keywords.matches(pattern, name) is None for keywords in self.sets for pattern in self.patterns
        )
        return not has_unknown and _is_anything(node for keywords in self.sets for node in _of_property(keywords, name))

    @cached_property
    def is_unconstrained(self) -> bool:
        """Whether documents have only named properties, because no schema constrains the values of other properties."""
        others = (node for keywords in self.sets for node in _additional(keywords))
        return self.is_declared and not self.patterns and _is_anything(others)

    @property
    def most_properties(self) -> int | None:
        """The most properties that a value has; None without a limit."""
        closed = len(self.names) if not self.patterns and self.others is None else None
        return min((limit for limit in (self.least("maxProperties"), closed) if limit is not None), default=None)

    # -- arrays -----------------------------------------------------------------------------------------------------

    @cached_property
    def prefix(self) -> int:
        """The number of leading items that may have schemas of their own."""
        if self.single:
            return len(self.value)
        return max((len(keywords.get("prefixItems") or ()) for keywords in self.sets), default=0)

    @cached_property
    def longest(self) -> int | None:
        """The most items that a value has; None without a limit."""
        if self.single:
            return len(self.value)
        closed = next((at for at in range(self.prefix + 1) if self._item(at) is None), None)
        return min((limit for limit in (self.least("maxItems"), closed) if limit is not None), default=None)

    @cached_property
    def shortest(self) -> int:
        """The fewest items that a value has."""
        return len(self.value) if self.single else self.most("minItems") or 0

    def item(self, at: int) -> tuple[KeywordSet, ...] | None:
        """Return the keywords that the item at a position satisfies; None if no value has such an item."""
        return None if self.longest is not None and at >= self.longest else self._item(at)

    def _item(self, at: int) -> tuple[KeywordSet, ...] | None:
        nodes = [node for keywords in self.sets for node in item_of(keywords, at)]
        own = [self.document.literal(self.value[at])] if self.single else []
        return _possible(keywords_of([*own, *nodes]))


def _is_anything(nodes: Iterable[Node]) -> bool:
    return all(node.schema is True or node.schema == {} for node in nodes)


def _possible(sets: tuple[KeywordSet, ...]) -> tuple[KeywordSet, ...] | None:
    return None if any("never" in keywords.values for keywords in sets) else sets


def _of_property(keywords: KeywordSet, name: str) -> Iterator[Node]:
    properties = keywords.get("properties") or {}
    matches = [(pattern, keywords.matches(pattern, name)) for pattern in keywords.get("patternProperties") or ()]
    if name in properties:
        yield keywords.node.at(properties[name])
    yield from (keywords.node.at(keywords.values["patternProperties"][pattern]) for pattern, match in matches if match)
    if name not in properties and all(match is False for _, match in matches):
        yield from _additional(keywords, name)


def _of_pattern(keywords: KeywordSet, pattern: str) -> Iterator[Node]:
    patterns = keywords.get("patternProperties") or {}
    if pattern in patterns:
        yield keywords.node.at(patterns[pattern])
    elif not patterns and "additionalProperties" in keywords.values:
        yield keywords.node.at(keywords.values["additionalProperties"])


def _additional(keywords: KeywordSet, name: str | None = None) -> Iterator[Node]:
    """Yield the schema of additional properties.

    `unevaluatedProperties` counts only if the properties that other keywords may evaluate can be listed, and `name` is
    not one of them.
    """
    if "additionalProperties" in keywords.values:
        yield keywords.node.at(keywords.values["additionalProperties"])
    elif "unevaluatedProperties" in keywords.values:
        names = evaluated_names(keywords.node, set())
        if names is not None and name not in names:
            yield keywords.node.at(keywords.values["unevaluatedProperties"])


def evaluated_names(node: Node, seen: set[int]) -> set[str] | None:
    """Return the properties that any keyword of a schema may evaluate; None if they cannot be listed."""
    schema = node.schema
    if id(schema) in seen or not isinstance(schema, dict):
        return set()
    seen.add(id(schema))
    if any(keyword in schema for keyword in ("additionalProperties", "patternProperties")):
        return None
    names = set(schema.get("properties") or ())
    branches = [subschema for keyword in ("allOf", "anyOf", "oneOf") for subschema in schema.get(keyword) or ()]
    branches += [schema[keyword] for keyword in ("if", "then", "else") if keyword in schema]
    branches += list((schema.get("dependentSchemas") or {}).values())
    nested = [node.at(branch) for branch in branches]
    for target in [*nested, *map(node.referred, node.references)]:
        more = None if target is None or _leaves_open(target, seen) else evaluated_names(target, seen)
        if more is None:
            return None
        names |= more
    return names


def _leaves_open(node: Node, ancestors: set[int]) -> bool:
    """Whether a schema evaluates all remaining properties."""
    return isinstance(node.schema, dict) and id(node.schema) not in ancestors and "unevaluatedProperties" in node.schema


def item_of(keywords: KeywordSet, at: int) -> Iterator[Node]:
    """Yield the schema of the item at a position."""
    prefix = keywords.get("prefixItems") or ()
    if at < len(prefix):
        yield keywords.node.at(prefix[at])
    elif "items" in keywords.values:
        yield keywords.node.at(keywords.values["items"])


# -- cases ------------------------------------------------------------------------------------------------------------


def cases(document: FlatDocument, sets: tuple[KeywordSet, ...], nots: tuple[Node, ...] = ()) -> list[Case]:
    """Return the cases of the values that satisfy all keywords of `sets` and are valid against none of `nots`.

    `document` owns the schemas that are created during the comparison.
    """
    split: list[Case] = []
    for chosen, refused in _branches(sets, nots):
        enum = next((keywords.values["enum"] for keywords in chosen if "enum" in keywords.values), None)
        types = frozenset[str].intersection(*(keywords.types for keywords in chosen)) if chosen else frozenset(TYPES)
        values = FINITE if enum is None else enum
        for value in values:
            if type_of(value) in types and not any(keywords.refuses(value) for keywords in chosen):
                split.append(Case(document, type_of(value), chosen, refused, value))
        for type_ in INFINITE if enum is None else ():
            more = _with_dependents(chosen) if type_ == "object" else chosen
            if type_ in types and all(type_ in keywords.types for keywords in more):
                split.append(Case(document, type_, more, refused))
    return split


FINITE = (None, False, True)
"""All values of the types ``null`` and ``boolean``: each is a case of its own."""
INFINITE = TYPES[2:]


def _branches(
    sets: tuple[KeywordSet, ...], nots: tuple[Node, ...]
) -> list[tuple[tuple[KeywordSet, ...], tuple[Node, ...]]]:
    """Return the combinations of one branch per alternative.

    Beyond `MAX_CASES`, the remaining alternatives are dropped.
    """
    nots = (*nots, *(node for keywords in sets if (node := keywords.schema("not"))))
    waiting = [(sets, nots, frozenset[KeywordSet]())]
    settled: list[tuple[tuple[KeywordSet, ...], tuple[Node, ...]]] = []
    while waiting:
        current, refused, done = waiting.pop()  # `done`: a branch was already chosen, which ends recursion
        at = next((index for index, keywords in enumerate(current) if keywords.choice), None)
        options = list(_options(current[at])) if at is not None else []
        if at is None or len(waiting) + len(settled) + len(options) > MAX_CASES:
            settled.append((tuple(_without_choices(current)), refused))
            continue
        done |= {current[at]}
        rest = (*current[:at], current[at].chosen, *current[at + 1 :])
        for met, not_met in options:
            more = keywords_of(met)
            new = [keywords for keywords in more if keywords not in rest and keywords not in done]
            inner = tuple(node for keywords in new if (node := keywords.schema("not")))
            waiting.append(((*rest, *new), (*refused, *not_met, *inner), done))
    return settled[::-1]


def _with_dependents(sets: tuple[KeywordSet, ...]) -> tuple[KeywordSet, ...]:
    """Return the keywords of objects, with the `dependentSchemas` that apply because of required properties."""
    while True:
        required = {name for keywords in sets for name in keywords.get("required") or ()}
        dependents = [item for keywords in sets for item in keywords.members("dependentSchemas").items()]
        applied = keywords_of([node for name, node in dependents if name in required])
        more = tuple(keywords for keywords in applied if keywords not in sets)
        if not more:
            return sets
        sets = (*sets, *more)


def _without_choices(sets: tuple[KeywordSet, ...]) -> Iterator[KeywordSet]:
    for keywords in sets:
        while keywords.choice:
            keywords = keywords.chosen  # noqa: PLW2901
        yield keywords


def _options(keywords: KeywordSet) -> Iterator[tuple[list[Node], list[Node]]]:
    """Yield the ways to satisfy the first alternative: the schemas that apply, and those that must not."""
    keyword = keywords.choice
    if keyword == "if":
        condition = keywords.node.at(keywords.values["if"])
        yield [condition, *_present(keywords, "then")], []
        yield _present(keywords, "else"), [condition]
        return
    nodes = keywords.nodes(str(keyword))
    for index, node in enumerate(nodes):
        yield [node], [*nodes[:index], *nodes[index + 1 :]] if keyword == "oneOf" else []


def _present(keywords: KeywordSet, keyword: str) -> list[Node]:
    schema = keywords.schema(keyword)
    return [schema] if schema is not None else []
