"""The compatibility rules of JSON Schema keywords: do the values of a case satisfy a keyword of the new schema?

Each rule is a function that yields the incompatibilities of one keyword. `level` is the nesting level of the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Protocol

from wirebook.schema.incompatibilities import UNPROVEN, Incompatibility
from wirebook.schema.jsonschema.compatibility_cases import Case, item_of
from wirebook.schema.jsonschema.compatibility_keywords import (
    BOUNDS,
    D06,
    Equivalence,
    KeywordSet,
    Node,
    fraction,
    keywords_of,
)
from wirebook.text.pointers import child

Conjunction = tuple[KeywordSet, ...]
"""The keywords of all schemas against which a value is valid."""


Reasons = Iterator[Incompatibility]


class Comparer(Protocol):
    """What a rule needs to compare the subschemas of a keyword; `Containment` in compatibility.py implements it."""

    implied: Callable[[str, str], bool] | None
    same: Equivalence

    def compare(self, sets: Conjunction, new: Node, path: str, level: int) -> list[Incompatibility]:
        """Return why some values that satisfy the keywords `sets` are not valid against `new`."""

    def holds(self, sets: Conjunction, new: Node, level: int) -> bool:
        """Whether it can be proved that all values that satisfy the keywords `sets` are valid against `new`."""

    def excludes(self, case: Case, schema: Node, level: int) -> bool:
        """Whether it can be proved that no value of a case is valid against a schema."""


Rule = Callable[[Comparer, Case, KeywordSet, str, int], Reasons]
NARROWER_FORMATS = frozenset(
    (("email", "idn-email"), ("hostname", "idn-hostname"), ("uri", "uri-reference"), ("uri", "iri"),
     ("uri", "iri-reference"), ("uri-reference", "iri-reference"), ("iri", "iri-reference"))
)  # fmt: skip
ANYTHING = ("", ".*", "^", "^.*")
"""Patterns that every string matches."""
ASSERTION_RULES = {"enum": "enum-narrowed", "type": "type-narrowed", "low": "minimum-raised", "high": "maximum-lowered",
              "multipleOf": "multiple-of-narrowed", "minLength": "min-length-raised",
              "maxLength": "max-length-lowered", "pattern": "pattern-changed", "format": "format-changed",
              "minItems": "min-items-raised", "maxItems": "max-items-lowered", "uniqueItems": "unique-items-added",
              "minProperties": "min-properties-raised", "maxProperties": "max-properties-lowered",
              "required": "required-added", "dependentRequired": "dependent-required-added",
              "contentEncoding": "content-changed", "contentMediaType": "content-changed"}  # fmt: skip
OF_TYPE = {"low": "number", "high": "number", "multipleOf": "number", "minLength": "string", "maxLength": "string",
           "pattern": "string", "format": "string", "contentEncoding": "string", "contentMediaType": "string",
           "minItems": "array", "maxItems": "array", "uniqueItems": "array", "prefixItems": "array", "items": "array",
           "unevaluatedItems": "array", "contains": "array", "minProperties": "object", "maxProperties": "object",
           "required": "object", "dependentRequired": "object", "properties": "object", "patternProperties": "object",
           "additionalProperties": "object", "unevaluatedProperties": "object", "propertyNames": "object",
           "dependentSchemas": "object"}  # fmt: skip
"""The type of value that a keyword applies to; keywords that are not listed apply to all types."""


# -- assertions -------------------------------------------------------------------------------------------------------


def assertion_incompatibilities(
    comparison: Comparer, case: Case, new: KeywordSet, names: list[str], path: str
) -> Reasons:
    """Yield the incompatibilities of those keywords in `names` whose values contain no schemas."""
    if case.single:
        refused = new.refuses(case.value)
        if refused is None:
            yield Incompatibility(path, UNPROVEN, case.value, new.assertions)
        elif refused:
            yield _refused_value(case, new, path)
        return
    for keyword in names:
        if keyword in ASSERTION_RULES and OF_TYPE.get(keyword, case.type) == case.type:
            before = _missing(comparison, case, new, keyword)
            if before is not None:
                place = child(path, new.spelled(keyword))
                yield Incompatibility(place, ASSERTION_RULES[keyword], before[0], _plain(new.values[keyword]))


def _refused_value(case: Case, new: KeywordSet, path: str) -> Incompatibility:
    for keyword, value in new.assertions.items():
        check = new.checks({keyword: value})
        if check is None or not check.is_valid(case.value):
            rules = {BOUNDS.get(name, name): rule for name, rule in ASSERTION_RULES.items()}
            rule = rules.get("enum" if keyword == "const" else keyword, "value-refused")
            return Incompatibility(child(path, keyword), rule, case.value, value)
    return Incompatibility(path, "value-refused", case.value, new.assertions)


def _missing(comparison: Comparer, case: Case, new: KeywordSet, keyword: str) -> tuple[Any] | None:
    """Return what the case guarantees, as a 1-tuple, if that is less than the keyword requires; else None."""
    value = new.values[keyword]
    if keyword == "enum":
        return (case.described(),)
    if keyword == "type":
        is_integer = "integer" in value and "number" not in value and case.type == "number"
        is_strict = new.node.document.order < D06  # in draft-04, 1.0 is not an integer
        if is_integer and is_strict:
            is_enough = any(keywords.integers and keywords.node.document.order < D06 for keywords in case.sets)
        else:
            is_enough = not is_integer or any(step.denominator == 1 for step in case.steps)
        return None if is_enough else (case.described(),)
    if keyword in ("low", "high"):
        return _bound(case, keyword, value)
    if keyword == "multipleOf":
        multiples = [step for step in case.steps if (step / fraction(value)).denominator == 1]
        return None if multiples else (_plain(case.most("multipleOf")),)
    if keyword in ("minLength", "minItems", "minProperties"):
        limit = case.most(keyword) or 0
        limit = max(limit, len(case.required)) if keyword == "minProperties" else limit
        return None if limit >= value else (case.most(keyword),)
    if keyword in ("maxLength", "maxItems", "maxProperties"):
        limit = case.least(keyword)
        if keyword != "maxLength":
            limit = case.longest if keyword == "maxItems" else case.most_properties
        return None if limit is not None and limit <= value else (limit,)
    return _exact(comparison, case, keyword, value)


def _exact(comparison: Comparer, case: Case, keyword: str, value: Any) -> tuple[Any] | None:
    old_values = case.every(keyword)
    if keyword == "uniqueItems":
        is_short = case.longest is not None and case.longest <= 1
        return None if not value or is_short or any(old_values) else (False,)
    if keyword == "required":
        added = [name for name in value if name not in case.required]
        return (sorted(case.required),) if added else None
    if keyword == "dependentRequired":
        return _dependents(case, value)
    is_implied = value in old_values
    if keyword == "pattern":
        is_implied = is_implied or value in ANYTHING
    elif keyword == "format":
        is_implied = is_implied or any((old, value) in NARROWER_FORMATS for old in old_values)
    if keyword in ("pattern", "format") and not is_implied and comparison.implied is not None:
        is_implied = any(comparison.implied(old, value) for old in old_values)
    return None if is_implied else (next(iter(old_values), None),)


def _bound(case: Case, keyword: str, value: tuple[Fraction, bool]) -> tuple[Any] | None:
    limit = case.low if keyword == "low" else case.high
    if limit is None:
        return (None,)
    is_inside = limit[0] > value[0] if keyword == "low" else limit[0] < value[0]
    return None if is_inside or (limit[0] == value[0] and (limit[1] or not value[1])) else (_plain(limit),)


def _dependents(case: Case, value: dict[str, list[str]]) -> tuple[Any] | None:
    for name, required in value.items():
        guaranteed = {
            dependent for old in case.every("dependentRequired") for dependent in old.get(name, ())
        } | case.required
        if not set(required) <= guaranteed and case.member(name) is not None:
            return (sorted(guaranteed),)
    return None


def _plain(value: Any) -> Any:
    """Return a limit as a JSON value."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Fraction):
        return {"exclusive": _plain(value[0])} if value[1] else _plain(value[0])
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return list(value) if isinstance(value, tuple) else value


# -- objects ----------------------------------------------------------------------------------------------------------


def properties(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """Named properties: each schema must accept the values of the case.

    Properties that documents never have (`Case.is_undeclared`) are skipped.
    """
    for name, node in new.members("properties").items():
        if case.is_undeclared(name):
            continue
        member, place = case.member(name), f"{child(path, 'properties')}{child('', name)}"
        incompatibilities = comparison.compare(member, node, place, level + 1) if member is not None else []
        if incompatibilities and name not in case.names:
            yield Incompatibility(place, "property-added-to-open-content", "any value", _brief(node))
        else:
            yield from incompatibilities


def pattern_properties(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """Properties whose names match a pattern: its schema must accept their values."""
    for pattern, node in new.members("patternProperties").items():
        place = f"{child(path, 'patternProperties')}{child('', pattern)}"
        for name in sorted(case.names):
            match = new.matches(pattern, name)
            member = case.member(name)
            if match is None and member is not None:
                yield Incompatibility(place, UNPROVEN, name, pattern)
            elif match and member is not None:
                yield from comparison.compare(member, node, place, level + 1)
        generic = None if case.single or case.is_unconstrained else case.matching(pattern)
        if generic is not None:
            yield from comparison.compare(generic, node, place, level + 1)


def additional_properties(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """Properties that `properties` does not name and no pattern matches."""
    declared = set(new.get("properties") or ()), list(new.get("patternProperties") or ())
    yield from _further(comparison, case, new, "additionalProperties", declared=declared, path=path, level=level)


def unevaluated_properties(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """Properties that no other keyword evaluates."""
    declared = None if new.values["unevaluatedProperties"] is True else _surely_evaluated(new.node, set())
    if declared is not None:
        yield from _further(comparison, case, new, "unevaluatedProperties", declared=declared, path=path, level=level)


def _surely_evaluated(node: Node, seen: set[int]) -> tuple[set[str], list[str]] | None:
    """Return the properties that a schema always evaluates: their names and patterns; None if it evaluates all."""
    schema = node.schema
    if id(schema) in seen or not isinstance(schema, dict):
        return set(), []
    seen.add(id(schema))
    if "additionalProperties" in schema:
        return None
    names, patterns = set(schema.get("properties") or ()), list(schema.get("patternProperties") or ())
    others = [node.at(subschema) for subschema in schema.get("allOf") or ()]
    others += [target for reference in node.references if (target := node.referred(reference)) is not None]
    for other in others:
        more = _surely_evaluated(other, seen)
        if more is None:
            return None
        names, patterns = names | more[0], patterns + more[1]
    return names, patterns


def _further(
    comparison: Comparer,
    case: Case,
    new: KeywordSet,
    keyword: str,
    *,
    declared: tuple[set[str], list[str]],
    path: str,
    level: int,
) -> Reasons:
    """Compare the properties outside the declared names and patterns with the schema of a keyword."""
    node, path, (named, patterns) = new.node.at(new.values[keyword]), child(path, keyword), declared
    for name in sorted(case.names - named):
        member = case.member(name)
        matches = [new.matches(pattern, name) for pattern in patterns]
        if member is None or any(matches):
            continue
        if None in matches:
            yield Incompatibility(path, UNPROVEN, name, patterns)
            continue
        incompatibilities = comparison.compare(member, node, path, level + 1)
        yield from _or_closed(incompatibilities, node, path, "property-removed-from-closed-content", name)
    generic = [case.matching(pattern) for pattern in sorted(case.patterns - set(patterns))]
    for sets in [*generic, None if case.single else case.others]:
        if sets is not None:
            incompatibilities = comparison.compare(sets, node, path, level + 1)
            yield from _or_closed(incompatibilities, node, path, "additional-properties-closed", "any further property")


def _or_closed(
    incompatibilities: list[Incompatibility], node: Node, path: str, rule: str, old: str
) -> list[Incompatibility]:
    """Return the incompatibilities of a property or item, replaced by one of `rule` if the new schema forbids it."""
    if incompatibilities and node.schema is False:
        return [Incompatibility(path, rule, old, False)]
    return incompatibilities


def property_names(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """Property names: the schema must accept all names that the case allows."""
    node, place = new.node.at(new.values["propertyNames"]), child(path, "propertyNames")
    is_closed = not case.patterns and case.others is None
    if is_closed:
        literals = [case.document.literal(name) for name in sorted(case.names) if case.member(name) is not None]
        incompatibilities = [comparison.compare(keywords_of([literal]), node, place, level + 1) for literal in literals]
    else:
        strings = case.document.of_type("string")
        old_schemas = [
            old_schema for keywords in case.sets if (old_schema := keywords.schema("propertyNames")) is not None
        ]
        incompatibilities = [comparison.compare(keywords_of([strings, *old_schemas]), node, place, level + 1)]
    if any(incompatibilities):
        yield Incompatibility(place, "property-names-narrowed", sorted(case.names) if is_closed else None, _brief(node))


def dependent_schemas(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """Schemas that apply to objects that have a property."""
    for name, node in new.members("dependentSchemas").items():
        if case.member(name) is not None:
            present = case.document.keywords(case.document.requiring(name))
            place = f"{child(path, new.spelled('dependentSchemas'))}{child('', name)}"
            yield from comparison.compare((*_all(case), *present), node, place, level)


# -- arrays -----------------------------------------------------------------------------------------------------------


def items(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """The items of the prefix, and those after it."""
    prefix = len(new.get("prefixItems") or ())
    for at in range(max(prefix, case.prefix) + 1):
        sets = case.item(at)
        for node in item_of(new, at) if sets is not None else ():
            place = child(path, new.spelled("items"))
            if at < prefix:
                place = child(child(path, new.spelled("prefixItems")), at)
            incompatibilities = comparison.compare(sets or (), node, place, level + 1)
            yield from _or_closed(incompatibilities, node, place, "items-closed", f"item {at}")


def prefix_items(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """The items of the prefix. If the schema has `items`, the rule of `items` checks them."""
    if "items" not in new.values:
        yield from items(comparison, case, new, path, level)


def unevaluated_items(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """Items that no other keyword evaluates."""
    if "items" in new.values:
        return
    node = new.node.at(new.values["unevaluatedItems"])
    for at in range(len(new.get("prefixItems") or ()), case.prefix + 1):
        sets = case.item(at)
        if sets is not None and comparison.compare(sets, node, path, level + 1):
            yield Incompatibility(child(path, "unevaluatedItems"), "items-closed", f"item {at}", _brief(node))
            return


def contains(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """The number of items that are valid against a schema: `contains`, `minContains` and `maxContains`."""
    node = new.node.at(new.values["contains"])
    least, most = new.get("minContains", 1), new.get("maxContains")
    places = range(case.shortest if case.single else min(case.shortest, case.prefix + 1))
    matching = [at for at in places if (sets := case.item(at)) is not None and comparison.holds(sets, node, level + 1)]
    all_ = case.shortest if len(matching) == len(places) else len(matching)
    counted = [
        old.get("minContains", 1)
        for old in case.sets
        if (old_node := old.schema("contains")) and comparison.holds(keywords_of([old_node]), node, level + 1)
    ]
    if max([all_, *counted]) < least:
        yield Incompatibility(child(path, "contains"), "contains-narrowed", None, _brief(node))
    if most is not None and not (case.longest is not None and case.longest <= most):
        limiting = [old.schema("contains") for old in case.sets if old.get("maxContains", most + 1) <= most]
        if not any(old_node and comparison.same.holds(old_node, node) for old_node in limiting):
            yield Incompatibility(child(path, "maxContains"), "contains-narrowed", None, most)


# -- choices ----------------------------------------------------------------------------------------------------------


def any_of(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """One branch must accept the case."""
    nodes = new.nodes("anyOf")
    if not any(comparison.holds(_all(case), node, level) for node in nodes):
        yield from _no_branch(comparison, case, nodes, (child(path, "anyOf"), "any-of-narrowed"), level)


def one_of(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """One branch must accept the case, and all others must exclude it."""
    nodes, place = new.nodes("oneOf"), child(path, "oneOf")
    chosen = [index for index, node in enumerate(nodes) if comparison.holds(_all(case), node, level)]
    if not chosen:
        yield from _no_branch(comparison, case, nodes, (place, "one-of-narrowed"), level)
        return
    others = [index for index in range(len(nodes)) if index != chosen[0]]
    for index in others:
        if not comparison.excludes(case, nodes[index], level):
            yield Incompatibility(child(place, index), "one-of-ambiguous", case.described(), _brief(nodes[index]))
            return


def _no_branch(comparison: Comparer, case: Case, nodes: list[Node], place: tuple[str, str], level: int) -> Reasons:
    """Yield why the case is not accepted: by the only branch for its type if there is just one, else by any branch.

    Shape: `place` is the path and the rule.
    """
    path, rule = place
    candidates = [
        at for at, node in enumerate(nodes) if all(case.type in keywords.types for keywords in keywords_of([node]))
    ]
    if len(candidates) == 1:
        yield from comparison.compare(_all(case), nodes[candidates[0]], child(path, candidates[0]), level)
    else:
        yield Incompatibility(path, rule, case.described(), [_brief(node) for node in nodes])


def not_(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """The case must not overlap with the excluded schema."""
    node = new.node.at(new.values["not"])
    if not comparison.excludes(case, node, level):
        yield Incompatibility(child(path, "not"), "not-widened", case.described(), _brief(node))


def condition(comparison: Comparer, case: Case, new: KeywordSet, path: str, level: int) -> Reasons:
    """`then` must accept the values that may be valid against `if`, and `else` those that may be invalid."""
    if_, then, else_ = new.node.at(new.values["if"]), new.schema("then"), new.schema("else")
    sets = _all(case)
    if then is not None and not comparison.excludes(case, if_, level):
        both = tuple(dict.fromkeys((*sets, *keywords_of([if_]))))
        yield from comparison.compare(both, then, child(path, "then"), level)
    if else_ is not None and not comparison.holds(sets, if_, level):
        yield from comparison.compare(sets, else_, child(path, "else"), level)


def _all(case: Case) -> Conjunction:
    """Return all keywords that the values of a case satisfy, including those of its type or value."""
    own = case.document.literal(case.value) if case.single else case.document.of_type(case.type)
    nots = [schema.document.negated(schema) for schema in case.nots]
    return tuple(dict.fromkeys((*keywords_of([own]), *case.sets, *keywords_of(nots))))


def _brief(node: Node) -> Any:
    schema = node.schema
    return schema if len(json.dumps(schema, default=str)) < 200 else {"type": schema.get("type", "any"), "...": "..."}


RULES: dict[str, Rule] = {
    "properties": properties,
    "patternProperties": pattern_properties,
    "additionalProperties": additional_properties,
    "unevaluatedProperties": unevaluated_properties,
    "propertyNames": property_names,
    "dependentSchemas": dependent_schemas,
    "items": items,
    "prefixItems": prefix_items,
    "unevaluatedItems": unevaluated_items,
    "contains": contains,
    "anyOf": any_of,
    "oneOf": one_of,
    "not": not_,
    "if": condition,
}
