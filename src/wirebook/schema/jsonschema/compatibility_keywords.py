"""Flattens JSON Schemas to sets of keywords: references resolved, `allOf` expanded, one spelling for all drafts.

Rule: a keyword that the draft does not define has no effect; only `dependencies` counts in every draft, as in
jsonschema-rs. References that neither the document nor its registry resolves are compared by URI.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from itertools import islice
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

import jsonschema_rs as js
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import SchemaRegistry

from wirebook.schema.json_reader import LINEAR
from wirebook.schema.jsonschema.compile import DRAFTS, SPECIFICATIONS, draft_of
from wirebook.text.json import are_equal

STACK_RESERVE: Final = 60
"""The stack frames that looking up a reference may need."""
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
"""The formats asserted since draft-04, since draft-06 and since draft-07; drafts after 07 assert none (D52)."""


@dataclass(frozen=True, eq=False)
class Node:
    """A schema in its document, with the resolver of its references."""

    schema: Any
    resolver: Any
    document: FlatDocument
    base_uri: str = ""

    def at(self, schema: Any) -> Node:
        """Return the node of a subschema. Raises: RecursionError"""
        _check_stack()
        resolver, base_uri = self.resolver, self.base_uri
        name = "id" if self.document.order == 0 else "$id"
        if isinstance(schema, dict) and isinstance(schema.get(name), str):
            resolver = resolver.in_subresource(self.document.specification.create_resource(schema))
            base_uri = urljoin(base_uri, schema[name])
        return Node(schema, resolver, self.document, base_uri)

    def referred(self, reference: str) -> Node | None:
        """Return the target of a reference; None if neither the document nor the registry has it.

        Raises: RecursionError
        """
        _check_stack()
        try:
            resolved = self.resolver.lookup(reference)
        except (Unresolvable, ValueError, LookupError, TypeError, AttributeError):
            return None
        if not isinstance(resolved.contents, dict | bool):
            return None
        document, base_uri = self.document.home(resolved.contents), urldefrag(self.absolute(reference)).url
        return Node(resolved.contents, resolved.resolver, document, base_uri)

    def absolute(self, reference: str) -> str:
        """Return a reference as an absolute URI."""
        return urljoin(self.base_uri, reference)

    @property
    def references(self) -> list[str]:
        """The references in this schema itself, without those in its subschemas."""
        if not isinstance(self.schema, dict):
            return []
        keywords = REFERENCES if self.document.order >= D2019 else REFERENCES[:1]
        return [self.schema[keyword] for keyword in keywords if isinstance(self.schema.get(keyword), str)]


class FlatDocument:
    """A schema document, with the flattened keywords of each of its schemas, computed once.

    Shape: with `formats` (checks by name), every `format` is asserted: these formats and all that the validator knows;
    without it, the formats of the draft. `declared_only`: objects have only the properties that the document declares.
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
        self.root = Node(document, resolver, self, resource.id() or "")
        self.validator_class = DRAFTS[self.draft][1]
        self.added: list[Any] = []  # schemas that are not in the document: kept alive, because caches use their ids
        self._keywords: dict[int, tuple[KeywordSet, ...]] = {}
        self._negated: dict[int, Node] = {}
        self._foreign: dict[int, FlatDocument] = {}
        self._literals: dict[int, Node] = {}

    def home(self, schema: Any) -> FlatDocument:
        """Return the document of a schema: a new one if the schema declares another draft."""
        if not isinstance(schema, dict) or "$schema" not in schema or draft_of(schema, self.draft) == self.draft:
            return self
        return self._foreign.setdefault(id(schema), FlatDocument(schema))

    def node(self, schema: Any) -> Node:
        """Return a node for a schema that is not in the document."""
        self.added.append(schema)
        return Node(schema, self.root.resolver, self, self.root.base_uri)

    def literal(self, value: Any) -> Node:
        """Return the schema of a single value."""
        if id(value) not in self._literals:
            self._literals[id(value)] = self.node({"enum": [value]})
            self.added.append(value)
        return self._literals[id(value)]

    @cache  # noqa: B019  (the document lives as long as the comparison)
    def of_type(self, type_: str) -> Node:
        """Return the schema of the values of a type."""
        return self.node({"type": type_})

    def negated(self, node: Node) -> Node:
        """Return the schema of the values that are not valid against a schema."""
        key = id(node.schema)
        if key not in self._negated:
            self.added.append({"not": node.schema})
            self._negated[key] = Node(self.added[-1], node.resolver, self, node.base_uri)
        return self._negated[key]

    @cache  # noqa: B019
    def requiring(self, name: str) -> Node:
        """Return the schema of the objects that have a property."""
        return self.node({"type": "object", "required": [name]})

    def keywords(self, node: Node) -> tuple[KeywordSet, ...]:
        """Return the keywords of a schema: one set for each schema that it combines through references and `allOf`."""
        key = id(node.schema)
        if key not in self._keywords:
            self._keywords[key] = tuple(_flat(node, set()))
        return self._keywords[key]


def _check_stack() -> None:
    """Raise RecursionError before the stack is exhausted.

    The registry of schemas is native code, which panics on a stack overflow.
    """
    with suppress(ValueError):  # the stack is not that deep
        sys._getframe(sys.getrecursionlimit() - STACK_RESERVE)
        raise RecursionError


def keywords_of(nodes: Iterator[Node] | list[Node]) -> tuple[KeywordSet, ...]:
    """Return the keywords of several schemas that apply together, without duplicate sets."""
    return tuple(dict.fromkeys(keywords for node in nodes for keywords in node.document.keywords(node)))


def _flat(node: Node, seen: set[int]) -> Iterator[KeywordSet]:
    if id(node.schema) in seen or node.schema is True:
        return
    seen.add(id(node.schema))
    if node.schema is False:
        yield KeywordSet(node, {"never": True})
        return
    for reference in node.references:
        if target := node.referred(reference):
            yield from _flat(target, seen)
        else:
            yield KeywordSet(node, {"elsewhere": node.absolute(reference)})
    if node.references and node.document.order < D2019:
        return
    for subschema in node.schema.get("allOf") or ():
        yield from _flat(node.at(subschema), seen)
    values = dict(_effective(node.schema, node.document.order))
    if node.document.formats is not None and "format" in node.schema:
        values["format"] = node.schema["format"]
    if values:
        yield KeywordSet(node, values)
    dependencies = (node.schema.get("dependencies") or {}).items()
    required = {name: dependency for name, dependency in dependencies if isinstance(dependency, list)}
    schemas = {name: dependency for name, dependency in dependencies if not isinstance(dependency, list)}
    if dependencies:
        both = {"dependentRequired": required, "dependentSchemas": schemas}
        yield KeywordSet(node, {keyword: value for keyword, value in both.items() if value})


def _effective(schema: dict[str, Any], order: int) -> Iterator[tuple[str, Any]]:
    """Yield the keywords that have an effect in a draft, in the common spelling."""
    for keyword, value in schema.items():
        if order < SINCE.get(keyword, 0):
            continue
        if keyword == "type":
            yield "type", (value,) if isinstance(value, str) else tuple(value)
        elif keyword == "const":
            yield "enum", [value] if any(are_equal(value, allowed) for allowed in schema.get("enum", [value])) else []
        elif keyword == "items" and isinstance(value, list) and order < D2020:
            yield "prefixItems", value
            if "additionalItems" in schema:
                yield "items", schema["additionalItems"]
        elif keyword in PLAIN and _counts(keyword, value, schema, order):
            yield keyword, value
    for keyword, strict, limit in (("minimum", "exclusiveMinimum", "low"), ("maximum", "exclusiveMaximum", "high")):
        bound = _bound(schema, keyword, strict, order)
        if bound is not None:
            yield limit, bound


def _counts(keyword: str, value: Any, schema: dict[str, Any], order: int) -> bool:
    """Whether a keyword is asserted in the draft."""
    if keyword == "enum":
        return "const" not in schema or order < D06
    if keyword == "format":
        return order <= D07 and any(value in format_ for format_ in FORMATS[: order + 1])
    return order in (D06, D07) if keyword in ("contentEncoding", "contentMediaType") else True


PLAIN = frozenset(("multipleOf", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "contains",
                   "minContains", "maxContains", "maxProperties", "minProperties", "required", "properties",
                   "patternProperties", "additionalProperties", "propertyNames", "dependentRequired",
                   "dependentSchemas", "items", "prefixItems", "unevaluatedItems", "unevaluatedProperties", "anyOf",
                   "oneOf", "not", "if", "then", "else", "enum", "format", "contentEncoding",
                   "contentMediaType"))  # fmt: skip


def _bound(schema: dict[str, Any], keyword: str, exclusive_keyword: str, order: int) -> tuple[Fraction, bool] | None:
    """Return a numeric limit and whether it is exclusive; None without a limit."""
    inclusive, exclusive = schema.get(keyword), schema.get(exclusive_keyword)
    if order < D06:
        return None if inclusive is None else (fraction(inclusive), exclusive is True)
    bounds = [(fraction(inclusive), False)] if inclusive is not None else []
    bounds += [(fraction(exclusive), True)] if exclusive is not None else []
    if not bounds:
        return None
    return max(bounds) if keyword == "minimum" else min(bounds, key=lambda bound: (bound[0], not bound[1]))


def fraction(number: Any) -> Fraction:
    """Return the exact value of a number as written: 0.1 is one tenth."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


class KeywordSet:
    """Keywords that apply together, with the schema that contains them."""

    def __init__(self, node: Node, values: dict[str, Any]) -> None:
        self.node, self.values = node, values
        self._patterns: dict[str, Any] = {}

    def get(self, keyword: str, default: Any = None) -> Any:
        """Return the value of a keyword."""
        return self.values.get(keyword, default)

    def nodes(self, keyword: str) -> list[Node]:
        """Return the schemas of a keyword whose value is a list."""
        return [self.node.at(subschema) for subschema in self.values.get(keyword, ())]

    def schema(self, keyword: str) -> Node | None:
        """Return the schema of a keyword; None without the keyword."""
        return self.node.at(self.values[keyword]) if keyword in self.values else None

    def members(self, keyword: str) -> dict[str, Node]:
        """Return the schemas of a keyword whose value is a map."""
        schemas: Mapping[str, Any] = self.values.get(keyword) or {}
        return {name: self.node.at(subschema) for name, subschema in schemas.items()}

    @cached_property
    def choice(self) -> str | None:
        """The first keyword that has alternatives; None if there is none."""
        return next((keyword for keyword in CHOICES if keyword in self.values), None)

    @cached_property
    def chosen(self) -> KeywordSet:
        """The same keywords without `choice`."""
        values = {keyword: value for keyword, value in self.values.items() if keyword != self.choice}
        return KeywordSet(self.node, values)

    @cached_property
    def types(self) -> frozenset[str]:
        """The types that values may have; integers count as numbers."""
        if "never" in self.values:
            return frozenset()
        named = {"number" if name == "integer" else name for name in self.values.get("type", TYPES)}
        if "enum" in self.values:
            named &= {type_of(name) for name in self.values["enum"]}
        return frozenset(named)

    def spelled(self, keyword: str) -> str:
        """Return the name of a keyword in the document."""
        schema = self.node.schema if isinstance(self.node.schema, dict) else {}
        if keyword in ("low", "high"):
            is_exclusive = self.values[keyword][1] and self.node.document.order >= D06
            return f"exclusive{BOUNDS[keyword].capitalize()}" if is_exclusive else BOUNDS[keyword]
        is_old = "prefixItems" not in schema and isinstance(schema.get("items"), list)
        if is_old and keyword in ("items", "prefixItems"):
            return "additionalItems" if keyword == "items" else "items"
        return "dependencies" if keyword.startswith("dependent") and keyword not in schema else keyword

    @property
    def integers(self) -> bool:
        """Whether all numbers are integers."""
        return "integer" in self.values.get("type", ()) and "number" not in self.values["type"]

    # -- one value --------------------------------------------------------------------------------------------------

    @cached_property
    def assertions(self) -> dict[str, Any]:
        """The keywords whose values contain no schemas, as written in the document."""
        schema = self.node.schema if isinstance(self.node.schema, dict) else {}
        values = {keyword: value for keyword, value in schema.items() if keyword in ASSERTIONS}
        dependencies = schema.get("dependencies", {}).items()
        if lists := {name: dependency for name, dependency in dependencies if isinstance(dependency, list)}:
            values["dependencies"] = lists
        order = self.node.document.order
        if order < D06:  # the draft-04 validator ignores newer keywords
            return values
        return {keyword: value for keyword, value in values.items() if order >= SINCE.get(keyword, 0)}

    def refuses(self, value: Any) -> bool | None:
        """Return whether the assertions reject a value; None if that cannot be determined."""
        if "never" in self.values:
            return True
        validator = self._scalar
        return None if validator is None else not validator.is_valid(value)

    @cached_property
    def _scalar(self) -> Any:
        return self.checks(self.assertions)

    def checks(self, assertions: dict[str, Any]) -> Any:
        """Return a validator of the draft for some keywords; None if they do not compile."""
        document = self.node.document
        options = {} if document.formats is None else {"formats": document.formats, "validate_formats": True}
        try:
            return document.validator_class(assertions, pattern_options=LINEAR, offline=True, **options)
        except (js.ValidationError, js.ReferencingError, ValueError):
            return None

    def matches(self, pattern: str, name: str) -> bool | None:
        """Return whether a name matches a pattern; None if the linear-time engine does not support the pattern."""
        if pattern not in self._patterns:
            self._patterns[pattern] = self.checks({"pattern": pattern})
        check = self._patterns[pattern]
        return None if check is None else bool(check.is_valid(name))


def type_of(value: Any) -> str:
    """Return the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


@dataclass
class Equivalence:
    """Decides whether two schemas are equal apart from annotations, including everything that they refer to."""

    pairs: dict[tuple[int, int], bool] = field(default_factory=dict)

    def holds(self, one: Node, other: Node) -> bool:
        """Whether two schemas are equal apart from annotations."""
        key = (id(one.schema), id(other.schema))
        if key in self.pairs:
            return self.pairs[key]
        if one.document.draft != other.document.draft:
            return False
        before = len(self.pairs)
        self.pairs[key] = True  # assumed while the pair is compared
        if isinstance(one.schema, bool) or isinstance(other.schema, bool):
            is_same = one.schema is other.schema
        else:
            is_same = self._keywords(one, other, one.schema, other.schema)
        if is_same:
            return True
        for assumed in [pair for pair in islice(self.pairs, before, None) if self.pairs[pair]]:
            del self.pairs[assumed]
        self.pairs[key] = False
        return False

    def values(self, one: Node, other: Node, keyword: str, values: tuple[Any, Any]) -> bool:
        """Whether a keyword has the same meaning in two schemas."""
        return self._keywords(one, other, {keyword: values[0]}, {keyword: values[1]})

    def _keywords(self, one: Node, other: Node, first: dict[str, Any], second: dict[str, Any]) -> bool:
        names = (first.keys() | second.keys()) - ANNOTATIONS
        return all(
            name in first and name in second and self._keyword(one, other, name, first[name], second[name])
            for name in names
        )

    def _keyword(self, one: Node, other: Node, name: str, first: Any, second: Any) -> bool:
        if name in REFERENCES:
            target, other_target = one.referred(first), other.referred(second)
            if target is None or other_target is None:
                return target is other_target and one.absolute(first) == other.absolute(second)
            return self.holds(target, other_target)
        if name in LISTS and isinstance(first, list) and isinstance(second, list):
            pairs = list(zip(first, second, strict=False))
            return len(first) == len(second) and all(self.holds(one.at(a), other.at(b)) for a, b in pairs)
        if name in MAPS and isinstance(first, dict) and isinstance(second, dict):
            return first.keys() == second.keys() and all(self._member(one, other, first[k], second[k]) for k in first)
        if name in SCHEMAS and isinstance(first, dict | bool) and isinstance(second, dict | bool):
            return self.holds(one.at(first), other.at(second))
        return are_equal(first, second)

    def _member(self, one: Node, other: Node, first: Any, second: Any) -> bool:
        if isinstance(first, list) or isinstance(second, list):
            return are_equal(first, second)
        return self.holds(one.at(first), other.at(second))


ANNOTATIONS = frozenset(("$schema", "$comment", "title", "description", "default", "examples", "example", "deprecated",
                         "readOnly", "writeOnly", "definitions", "$defs", "$anchor", "$id", "$vocabulary"))  # fmt: skip
