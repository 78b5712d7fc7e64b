"""JSON Schemas as flat sets of keywords: references followed, `allOf` written out, the drafts brought to one spelling.

Rule: what a draft does not know has no effect. A reference that leads out of the document has no meaning here but its
name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from itertools import islice
from typing import Any
from urllib.parse import urljoin

import jsonschema_rs as js
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import SchemaRegistry

from wirebook.schema.json_reader import LINEAR
from wirebook.schema.jsonschema.compile import DRAFTS, SPECIFICATIONS, draft_of

TYPES = ("null", "boolean", "number", "string", "array", "object")
ORDER = {draft: index for index, draft in enumerate(DRAFTS)}
D06, D07, D2019, D2020 = 1, 2, 3, 4
SINCE = {"const": D06, "contains": D06, "propertyNames": D06, "if": D07, "then": D07, "else": D07,
         "dependentRequired": D2019, "dependentSchemas": D2019, "unevaluatedItems": D2019,
         "unevaluatedProperties": D2019, "minContains": D2019, "maxContains": D2019, "prefixItems": D2020}  # fmt: skip
ASSERTIONS = frozenset(("type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum",
                        "exclusiveMinimum", "maxLength", "minLength", "pattern", "format", "maxItems", "minItems",
                        "uniqueItems", "maxProperties", "minProperties", "required", "dependentRequired",
                        "contentEncoding", "contentMediaType"))  # fmt: skip
"""Keywords whose values contain no schemas."""
BOUNDS = {"low": "minimum", "high": "maximum"}
CHOICES = ("anyOf", "oneOf", "if")
REFERENCES = ("$ref", "$recursiveRef", "$dynamicRef")
SCHEMAS = ("items", "additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else",
           "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies")
FORMATS = (
    frozenset(("date", "date-time", "time", "email", "idn-email", "hostname", "ipv4", "ipv6", "uri", "regex")),
    frozenset(("uri-reference", "uri-template", "json-pointer")),
    frozenset(("idn-hostname", "iri", "iri-reference", "relative-json-pointer")),
)
"""Which formats assert something: from draft-04 on, from draft-06 on, from draft-07 on; none do later (D52)."""


@dataclass(frozen=True, eq=False)
class Node:
    """A schema in its document, and what its references are relative to."""

    schema: Any
    resolver: Any
    document: FlatDocument

    def at(self, schema: Any) -> Node:
        """A schema inside this one."""
        resolver = self.resolver
        name = "id" if self.document.order == 0 else "$id"
        if isinstance(schema, dict) and isinstance(schema.get(name), str):
            resolver = resolver.in_subresource(self.document.specification.create_resource(schema))
        return Node(schema, resolver, self.document)

    def referred(self, reference: str) -> Node | None:
        """What a reference leads to; None where that is not in the document."""
        try:
            found = self.resolver.lookup(reference)
        except (Unresolvable, ValueError, LookupError, TypeError, AttributeError):
            return None
        if not isinstance(found.contents, dict | bool):
            return None
        return Node(found.contents, found.resolver, self.document.home(found.contents))

    def absolute(self, reference: str) -> str:
        return urljoin(str(getattr(self.resolver, "_base_uri", "")), reference)

    @property
    def references(self) -> list[str]:
        """The references that stand in this very schema."""
        if not isinstance(self.schema, dict):
            return []
        known = REFERENCES if self.document.order >= D2019 else REFERENCES[:1]
        return [self.schema[word] for word in known if isinstance(self.schema.get(word), str)]


class FlatDocument:
    """A schema document, and the flat form of each schema in it, made once.

    Shape: `formats` are those that count in addition to the draft's own: by them all that the validator knows do.
    `declared_only`: objects have no properties but those that the document names.
    """

    def __init__(
        self,
        document: Any,
        version: str | None = None,
        registry: SchemaRegistry | None = None,
        formats: Mapping[str, Callable[[str], bool]] | None = None,
        declared_only: bool = False,
    ) -> None:
        self.formats, self.declared_only = formats, declared_only
        self.draft = draft_of(document, version)
        self.order = ORDER[self.draft]
        self.specification = SPECIFICATIONS[self.draft]
        resource = self.specification.create_resource(document)
        resolver = (registry if registry is not None else Registry()).resolver_with_root(resource)
        self.root = Node(document, resolver, self)
        self.validator_class = DRAFTS[self.draft][1]
        self.made: list[Any] = []  # schemas that are not in the document, kept so that each has an identity
        self._words: dict[int, tuple[KeywordSet, ...]] = {}
        self._negated: dict[int, Node] = {}
        self._foreign: dict[int, FlatDocument] = {}
        self._literals: dict[int, Node] = {}

    def home(self, schema: Any) -> FlatDocument:
        """The document that a schema belongs to: one of its own where it declares another draft."""
        if not isinstance(schema, dict) or "$schema" not in schema or draft_of(schema, self.draft) == self.draft:
            return self
        return self._foreign.setdefault(id(schema), FlatDocument(schema))

    def node(self, schema: Any) -> Node:
        """A schema that is not in the document."""
        self.made.append(schema)
        return Node(schema, self.root.resolver, self)

    def literal(self, value: Any) -> Node:
        """The schema of one value."""
        if id(value) not in self._literals:
            self._literals[id(value)] = self.node({"enum": [value]})
            self.made.append(value)
        return self._literals[id(value)]

    @cache  # noqa: B019  (as long as the comparison lasts)
    def of_type(self, type_: str) -> Node:
        return self.node({"type": type_})

    def negated(self, node: Node) -> Node:
        key = id(node.schema)
        if key not in self._negated:
            self.made.append({"not": node.schema})
            self._negated[key] = Node(self.made[-1], node.resolver, self)
        return self._negated[key]

    def text(self) -> Node:
        return self.of_type("string")

    @cache  # noqa: B019
    def requiring(self, name: str) -> Node:
        return self.node({"type": "object", "required": [name]})

    def words(self, node: Node) -> tuple[KeywordSet, ...]:
        """The keywords that a schema comes to, one set for each schema that it consists of."""
        key = id(node.schema)
        if key not in self._words:
            self._words[key] = tuple(_flat(node, set()))
        return self._words[key]


def keywords_of(nodes: Iterator[Node] | list[Node]) -> tuple[KeywordSet, ...]:
    """The keywords of several schemas that hold together, each set once."""
    found = {id(words): words for node in nodes for words in node.document.words(node)}
    return tuple(found.values())


def _flat(node: Node, inside: set[int]) -> Iterator[KeywordSet]:
    if id(node.schema) in inside or node.schema is True:
        return
    inside = {*inside, id(node.schema)}
    if node.schema is False:
        yield KeywordSet(node, {"never": True})
        return
    for reference in node.references:
        found = node.referred(reference)
        yield from (
            _flat(found, inside) if found is not None else [KeywordSet(node, {"elsewhere": node.absolute(reference)})]
        )
    if node.references and node.document.order < D2019:
        return
    for each in node.schema.get("allOf") or ():
        yield from _flat(node.at(each), inside)
    own = dict(_known(node.schema, node.document.order))
    if node.document.formats is not None and "format" in node.schema:
        own["format"] = node.schema["format"]
    if own:
        yield KeywordSet(node, own)
    dependencies = dict(_dependencies(node.schema.get("dependencies") or {}))
    if dependencies:
        yield KeywordSet(node, dependencies)


def _known(schema: dict[str, Any], order: int) -> Iterator[tuple[str, Any]]:
    """The keywords that mean something in a draft, in one spelling."""
    for word, value in schema.items():
        if order >= SINCE.get(word, 0) and word not in ("allOf", *REFERENCES):
            yield from _spelled(word, value, schema, order)
    for word, strict, limit in (("minimum", "exclusiveMinimum", "low"), ("maximum", "exclusiveMaximum", "high")):
        bound = _bound(schema, word, strict, order)
        if bound is not None:
            yield limit, bound


def _spelled(word: str, value: Any, schema: dict[str, Any], order: int) -> Iterator[tuple[str, Any]]:
    if word == "type":
        yield "type", (value,) if isinstance(value, str) else tuple(value)
    elif word == "const":
        yield "enum", [value] if any(equal(value, each) for each in schema.get("enum", [value])) else []
    elif word == "items":
        yield from _items(value, schema, order)
    elif word in PLAIN and _counts(word, value, schema, order):
        yield word, value


def _counts(word: str, value: Any, schema: dict[str, Any], order: int) -> bool:
    """Does a keyword assert something in the draft?"""
    if word == "enum":
        return "const" not in schema or order < D06
    if word == "format":
        return order <= D07 and any(value in format_ for format_ in FORMATS[: order + 1])
    return order in (D06, D07) if word in ("contentEncoding", "contentMediaType") else True


def _items(value: Any, schema: dict[str, Any], order: int) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, list) or order >= D2020:
        yield "items", value
        return
    yield "prefixItems", value
    if "additionalItems" in schema:
        yield "items", schema["additionalItems"]


PLAIN = frozenset(("multipleOf", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "contains",
                   "minContains", "maxContains", "maxProperties", "minProperties", "required", "properties",
                   "patternProperties", "additionalProperties", "propertyNames", "dependentRequired",
                   "dependentSchemas", "prefixItems", "unevaluatedItems", "unevaluatedProperties", "anyOf", "oneOf",
                   "not", "if", "then", "else", "enum", "format", "contentEncoding", "contentMediaType"))  # fmt: skip


def _dependencies(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    names = {name: each for name, each in value.items() if isinstance(each, list)}
    schemas = {name: each for name, each in value.items() if not isinstance(each, list)}
    if names:
        yield "dependentRequired", names
    if schemas:
        yield "dependentSchemas", schemas


def _bound(schema: dict[str, Any], word: str, strict: str, order: int) -> tuple[Fraction, bool] | None:
    """A limit of numbers: the number, and whether it is excluded itself."""
    plain, exclusive = schema.get(word), schema.get(strict)
    if order < D06:
        return None if plain is None else (fraction(plain), exclusive is True)
    bounds = [(fraction(plain), False)] if plain is not None else []
    bounds += [(fraction(exclusive), True)] if exclusive is not None else []
    if not bounds:
        return None
    return max(bounds) if word == "minimum" else min(bounds, key=lambda bound: (bound[0], not bound[1]))


def fraction(number: Any) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


class KeywordSet:
    """Keywords that hold together, with the schema where they stand."""

    def __init__(self, node: Node, words: dict[str, Any]) -> None:
        self.node, self.words = node, words
        self._patterns: dict[str, Any] = {}

    def get(self, word: str, default: Any = None) -> Any:
        return self.words.get(word, default)

    def nodes(self, word: str) -> list[Node]:
        """The schemas of a list."""
        return [self.node.at(each) for each in self.words.get(word, ())]

    def schema(self, word: str) -> Node | None:
        return self.node.at(self.words[word]) if word in self.words else None

    def members(self, word: str) -> dict[str, Node]:
        """The schemas of a map."""
        found: Mapping[str, Any] = self.words.get(word) or {}
        return {name: self.node.at(each) for name, each in found.items()}

    @cached_property
    def choice(self) -> str | None:
        return next((word for word in CHOICES if word in self.words), None)

    @cached_property
    def chosen(self) -> KeywordSet:
        """The same without the first of its choices."""
        return KeywordSet(self.node, {word: value for word, value in self.words.items() if word != self.choice})

    @cached_property
    def types(self) -> frozenset[str]:
        """The types that values may have; an integer is a number."""
        if "never" in self.words:
            return frozenset()
        named = {"number" if each == "integer" else each for each in self.words.get("type", TYPES)}
        if "enum" in self.words:
            named &= {type_of(each) for each in self.words["enum"]}
        return frozenset(named)

    def spelled(self, word: str) -> str:
        """A keyword as the document has it."""
        schema = self.node.schema if isinstance(self.node.schema, dict) else {}
        if word in ("low", "high"):
            strict = self.words[word][1] and self.node.document.order >= D06
            return f"exclusive{BOUNDS[word].capitalize()}" if strict else BOUNDS[word]
        if word in ("items", "prefixItems") and "prefixItems" not in schema and isinstance(schema.get("items"), list):
            return "additionalItems" if word == "items" else "items"
        return "dependencies" if word.startswith("dependent") and word not in schema else word

    @property
    def integers(self) -> bool:
        """Are all numbers integers?"""
        return "integer" in self.words.get("type", ()) and "number" not in self.words["type"]

    # -- one value --------------------------------------------------------------------------------------------------

    @cached_property
    def assertions(self) -> dict[str, Any]:
        """The keywords, as written, that have no schema in them."""
        schema = self.node.schema if isinstance(self.node.schema, dict) else {}
        known = {word: value for word, value in schema.items() if word in ASSERTIONS}
        names = {
            name: dependency
            for name, dependency in schema.get("dependencies", {}).items()
            if isinstance(dependency, list)
        }
        known |= {"dependencies": names} if names else {}
        if self.node.document.order < D06:  # the word itself is no number there
            return known
        return {word: value for word, value in known.items() if self.node.document.order >= SINCE.get(word, 0)}

    def refuses(self, value: Any) -> bool | None:
        """Does a keyword without schemas refuse a value? None where that cannot be said."""
        if "never" in self.words:
            return True
        checked = self._scalar
        return None if checked is None else not checked.is_valid(value)

    @cached_property
    def _scalar(self) -> Any:
        return self.checks(self.assertions)

    def checks(self, assertions: dict[str, Any]) -> Any:
        """A validator of the draft for some of the keywords; None if there is none."""
        document = self.node.document
        options = {} if document.formats is None else {"formats": document.formats, "validate_formats": True}
        try:
            return document.validator_class(assertions, pattern_options=LINEAR, offline=True, **options)
        except (js.ValidationError, js.ReferencingError, ValueError):
            return None

    def matches(self, pattern: str, name: str) -> bool | None:
        """Does a name have a pattern? None where the pattern is not one for an engine of linear time."""
        if pattern not in self._patterns:
            self._patterns[pattern] = self.checks({"pattern": pattern})
        check = self._patterns[pattern]
        return None if check is None else bool(check.is_valid(name))


def type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def equal(one: Any, other: Any) -> bool:
    """Are two JSON values equal? True is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return type_of(one) == type_of(other) and bool(one == other)


@dataclass
class Equivalence:
    """Do two schemas read the same, with all that they refer to?"""

    pairs: dict[tuple[int, int], bool] = field(default_factory=dict)

    def holds(self, one: Node, other: Node) -> bool:
        key = (id(one.schema), id(other.schema))
        if key in self.pairs:
            return self.pairs[key]
        if one.document.draft != other.document.draft:
            return False
        before = len(self.pairs)
        self.pairs[key] = True  # inside itself
        if self._alike(one, other):
            return True
        for assumed in [pair for pair in islice(self.pairs, before, None) if self.pairs[pair]]:
            del self.pairs[assumed]
        self.pairs[key] = False
        return False

    def values(self, one: Node, other: Node, word: str, values: tuple[Any, Any]) -> bool:
        """Is a keyword the same in two schemas?"""
        return self._words(one, other, {word: values[0]}, {word: values[1]})

    def _alike(self, one: Node, other: Node) -> bool:
        if isinstance(one.schema, bool) or isinstance(other.schema, bool):
            return one.schema is other.schema
        return self._words(one, other, one.schema, other.schema)

    def _words(self, one: Node, other: Node, first: dict[str, Any], second: dict[str, Any]) -> bool:
        names = (first.keys() | second.keys()) - ANNOTATIONS
        return all(
            name in first and name in second and self._word(one, other, name, first[name], second[name])
            for name in names
        )

    def _word(self, one: Node, other: Node, name: str, first: Any, second: Any) -> bool:
        if name in REFERENCES:
            found, others = one.referred(first), other.referred(second)
            if found is None or others is None:
                return found is others and one.absolute(first) == other.absolute(second)
            return self.holds(found, others)
        if name in LISTS and isinstance(first, list) and isinstance(second, list):
            pairs = list(zip(first, second, strict=False))
            return len(first) == len(second) and all(self.holds(one.at(a), other.at(b)) for a, b in pairs)
        if name in MAPS and isinstance(first, dict) and isinstance(second, dict):
            return first.keys() == second.keys() and all(self._member(one, other, first[k], second[k]) for k in first)
        if name in SCHEMAS and isinstance(first, dict | bool) and isinstance(second, dict | bool):
            return self.holds(one.at(first), other.at(second))
        return equal(first, second)

    def _member(self, one: Node, other: Node, first: Any, second: Any) -> bool:
        if isinstance(first, list) or isinstance(second, list):
            return equal(first, second)
        return self.holds(one.at(first), other.at(second))


ANNOTATIONS = frozenset(("$schema", "$comment", "title", "description", "default", "examples", "example", "deprecated",
                         "readOnly", "writeOnly", "definitions", "$defs", "$anchor", "$id", "$vocabulary"))  # fmt: skip
