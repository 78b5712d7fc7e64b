"""Rules of JSON Schema's keywords: does what is known of a case meet what the new schema asks?

Each function yields refusals for one keyword; `level` is that of the value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Protocol

from wirebook.schema.incompatibilities import UNPROVEN, Incompatibility
from wirebook.schema.jsonschema.compatibility_cases import Case, item_of
from wirebook.schema.jsonschema.compatibility_keywords import D06, Equivalence, KeywordSet, Node, fraction, keywords_of
from wirebook.text.pointers import child

Conjunction = tuple[KeywordSet, ...]
"""The keywords of all schemas that a value is valid against."""


class Comparison(Protocol):
    """What a rule needs to compare the subschemas of a keyword; `Containment` in compatibility.py implements it."""

    implied: Callable[[str, str], bool] | None
    same: Equivalence

    def of(self, words: Conjunction, new: Node, path: str, level: int) -> list[Incompatibility]:
        """Return why values with the keywords `words` are not all valid against `new`."""

    def holds(self, words: Conjunction, new: Node, level: int) -> bool:
        """Whether all values with the keywords `words` are shown to be valid against `new`."""

    def excludes(self, case: Case, schema: Node, level: int) -> bool:
        """Whether it is shown that no value of a case is valid against a schema."""


Rule = Callable[[Comparison, Case, KeywordSet, str, int], Iterator[Incompatibility]]
NARROWER_FORMATS = frozenset(
    (("email", "idn-email"), ("hostname", "idn-hostname"), ("uri", "uri-reference"), ("uri", "iri"),
     ("uri", "iri-reference"), ("uri-reference", "iri-reference"), ("iri", "iri-reference"))
)  # fmt: skip
ANYTHING = ("", ".*", "^", "^.*")  # patterns that every text has
NAMES = {"low": "minimum", "high": "maximum"}
ASSERTION_RULES = {"enum": "enum-narrowed", "type": "type-narrowed", "low": "minimum-raised", "high": "maximum-lowered",
              "multipleOf": "multiple-of-narrowed", "minLength": "min-length-raised",
              "maxLength": "max-length-lowered", "pattern": "pattern-changed", "format": "format-changed",
              "minItems": "min-items-raised", "maxItems": "max-items-lowered", "uniqueItems": "unique-items-added",
              "minProperties": "min-properties-raised", "maxProperties": "max-properties-lowered",
              "required": "required-added", "dependentRequired": "dependent-required-added",
              "contentEncoding": "content-changed", "contentMediaType": "content-changed"}  # fmt: skip
OF_TYPE = {"low": "number", "high": "number", "multipleOf": "number", "minLength": "string", "maxLength": "string",
           "pattern": "string", "format": "string", "contentEncoding": "string", "contentMediaType": "string",
           "minItems": "array", "maxItems": "array", "uniqueItems": "array", "minProperties": "object",
           "maxProperties": "object", "required": "object", "dependentRequired": "object"}  # fmt: skip


# -- keywords without schemas -----------------------------------------------------------------------------------------


def assertion_incompatibilities(
    run: Comparison, case: Case, new: KeywordSet, names: list[str], path: str
) -> Iterator[Incompatibility]:
    if case.single:
        refused = new.refuses(case.value)
        if refused is None:
            yield Incompatibility(path, UNPROVEN, case.value, new.assertions)
        elif refused:
            yield from _refused_value(case, new, path)
        return
    for word in names:
        if word in ASSERTION_RULES and OF_TYPE.get(word, case.type) == case.type:
            before = _missing(run, case, new, word)
            if before is not None:
                place = child(path, new.spelled(word))
                yield Incompatibility(place, ASSERTION_RULES[word], before[0], _plain(new.words[word]))


def _refused_value(case: Case, new: KeywordSet, path: str) -> Iterator[Incompatibility]:
    for word, value in new.assertions.items():
        check = new.checks({word: value})
        if check is None or not check.is_valid(case.value):
            key = {"const": "enum"}.get(word, word)
            rule = next(
                (rule for name, rule in ASSERTION_RULES.items() if NAMES.get(name, name) == key), "value-refused"
            )
            yield Incompatibility(child(path, word), rule, case.value, value)
            return
    yield Incompatibility(path, "value-refused", case.value, new.assertions)


def _missing(run: Comparison, case: Case, new: KeywordSet, word: str) -> tuple[Any] | None:
    """What the case has in place of what a keyword asks, if that is not enough; None if it is."""
    value = new.words[word]
    if word == "enum":
        return (case.described(),)
    if word == "type":
        integer = "integer" in value and "number" not in value and case.type == "number"
        strict = new.node.document.order < D06  # where 1.0 is no integer
        if integer and strict:
            enough = any(each.integers and each.node.document.order < D06 for each in case.words)
        else:
            enough = not integer or any(step.denominator == 1 for step in case.steps)
        return None if enough else (case.described(),)
    if word in ("low", "high"):
        return _bound(case, word, value)
    if word == "multipleOf":
        steps = [step for step in case.steps if (step / fraction(value)).denominator == 1]
        return None if steps else (_plain(case.most("multipleOf")),)
    if word in ("minLength", "minItems", "minProperties"):
        had = case.most(word) or 0
        had = max(had, len(case.required)) if word == "minProperties" else had
        return None if had >= value else (case.most(word),)
    if word in ("maxLength", "maxItems", "maxProperties"):
        had = _most(case, word)
        return None if had is not None and had <= value else (had,)
    return _exact(run, case, word, value)


def _most(case: Case, word: str) -> Any:
    if word == "maxItems":
        return case.longest
    return case.most_properties if word == "maxProperties" else case.least(word)


def _exact(run: Comparison, case: Case, word: str, value: Any) -> tuple[Any] | None:
    if word == "pattern":
        olds = case.every("pattern")
        known = value in olds or value in ANYTHING
        if not known and run.implied is not None:
            known = any(run.implied(old, value) for old in olds)
        return None if known else (olds[0] if olds else None,)
    if word == "format":
        olds = case.every("format")
        known = any(old == value or (old, value) in NARROWER_FORMATS for old in olds)
        if not known and run.implied is not None:
            known = any(run.implied(old, value) for old in olds)
        return None if known else (olds[0] if olds else None,)
    if word == "uniqueItems":
        short = case.longest is not None and case.longest <= 1
        return None if not value or short or any(case.every(word)) else (False,)
    if word == "required":
        added = [name for name in value if name not in case.required]
        return (sorted(case.required),) if added else None
    if word == "dependentRequired":
        return _dependents(case, value)
    return None if value in case.every(word) else (next(iter(case.every(word)), None),)


def _bound(case: Case, word: str, value: tuple[Fraction, bool]) -> tuple[Any] | None:
    had = case.low if word == "low" else case.high
    if had is None:
        return (None,)
    inside = had[0] > value[0] if word == "low" else had[0] < value[0]
    return None if inside or (had[0] == value[0] and (had[1] or not value[1])) else (_plain(had),)


def _dependents(case: Case, value: dict[str, list[str]]) -> tuple[Any] | None:
    for name, wanted in value.items():
        had = {each for old in case.every("dependentRequired") for each in old.get(name, ())} | case.required
        if not set(wanted) <= had and case.member(name) is not None:
            return (sorted(had),)
    return None


def _plain(value: Any) -> Any:
    """A limit as a number that JSON has."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], Fraction):
        return {"exclusive": _plain(value[0])} if value[1] else _plain(value[0])
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return list(value) if isinstance(value, tuple) else value


# -- objects ----------------------------------------------------------------------------------------------------------


def properties(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    if case.type != "object":
        return
    for name, node in new.members("properties").items():
        if case.is_undeclared(name):
            continue
        had, place = case.member(name), f"{child(path, 'properties')}{child('', name)}"
        incompatibilities = run.of(had, node, place, level + 1) if had is not None else []
        if incompatibilities and name not in case.names:
            yield Incompatibility(place, "property-added-to-open-content", "any value", _brief(node))
        else:
            yield from incompatibilities


def pattern_properties(
    run: Comparison, case: Case, new: KeywordSet, path: str, level: int
) -> Iterator[Incompatibility]:
    if case.type != "object":
        return
    for pattern, node in new.members("patternProperties").items():
        place = f"{child(path, 'patternProperties')}{child('', pattern)}"
        for name in sorted(case.names):
            match = new.matches(pattern, name)
            had = case.member(name)
            if match is None and had is not None:
                yield Incompatibility(place, UNPROVEN, name, pattern)
            elif match and had is not None:
                yield from run.of(had, node, place, level + 1)
        generic = None if case.single or case.is_unconstrained else case.matching(pattern)
        if generic is not None:
            yield from run.of(generic, node, place, level + 1)


def additional_properties(
    run: Comparison, case: Case, new: KeywordSet, path: str, level: int
) -> Iterator[Incompatibility]:
    node = new.schema("additionalProperties")
    if case.type == "object" and node is not None:
        named, patterns = set(new.get("properties") or ()), list(new.get("patternProperties") or ())
        yield from _further(
            run, case, new, scope=(node, named, patterns), path=child(path, "additionalProperties"), level=level
        )


def unevaluated_properties(
    run: Comparison, case: Case, new: KeywordSet, path: str, level: int
) -> Iterator[Incompatibility]:
    node = new.schema("unevaluatedProperties")
    if case.type != "object" or node is None or node.schema is True:
        return
    evaluated = _surely_evaluated(new.node, set())
    if evaluated is not None:
        yield from _further(
            run, case, new, scope=(node, *evaluated), path=child(path, "unevaluatedProperties"), level=level
        )


def _surely_evaluated(node: Node, inside: set[int]) -> tuple[set[str], list[str]] | None:
    """The properties that a schema evaluates in any case; None if that is all."""
    schema = node.schema
    if id(schema) in inside or not isinstance(schema, dict):
        return set(), []
    inside = {*inside, id(schema)}
    if "additionalProperties" in schema:
        return None
    names, patterns = set(schema.get("properties") or ()), list(schema.get("patternProperties") or ())
    others = [node.at(each) for each in schema.get("allOf") or ()]
    others += [found for reference in node.references if (found := node.referred(reference)) is not None]
    for other in others:
        more = _surely_evaluated(other, inside)
        if more is None:
            return None
        names, patterns = names | more[0], patterns + more[1]
    return names, patterns


def _further(
    run: Comparison, case: Case, new: KeywordSet, *, scope: tuple[Node, set[str], list[str]], path: str, level: int
) -> Iterator[Incompatibility]:
    """Properties beyond the names and patterns of a scope."""
    node, named, patterns = scope
    for name in sorted(case.names - named):
        had = case.member(name)
        matches = [new.matches(pattern, name) for pattern in patterns]
        if had is None or any(matches):
            continue
        if None in matches:
            yield Incompatibility(path, UNPROVEN, name, patterns)
        elif run.of(had, node, path, level + 1):
            if node.schema is False:
                yield Incompatibility(path, "property-removed-from-closed-content", name, False)
            else:
                yield from run.of(had, node, path, level + 1)
    for pattern in sorted(case.patterns - set(patterns)):
        generic = case.matching(pattern)
        yield from _generic(run, generic, node, path, level) if generic is not None else ()
    if not case.single and case.others is not None:
        yield from _generic(run, case.others, node, path, level)


def _generic(run: Comparison, had: Conjunction, node: Node, path: str, level: int) -> Iterator[Incompatibility]:
    incompatibilities = run.of(had, node, path, level + 1)
    if incompatibilities and node.schema is False:
        yield Incompatibility(path, "additional-properties-closed", "any further property", False)
    else:
        yield from incompatibilities


def property_names(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    node = new.schema("propertyNames")
    if case.type != "object" or node is None:
        return
    place = child(path, "propertyNames")
    closed = not case.patterns and case.others is None
    if closed:
        literals = [case.document.literal(name) for name in sorted(case.names) if case.member(name) is not None]
        found = [run.of(keywords_of([literal]), node, place, level + 1) for literal in literals]
    else:
        strings = case.document.text()
        olds = [old for word in case.words if (old := word.schema("propertyNames")) is not None]
        found = [run.of(keywords_of([strings, *olds]), node, place, level + 1)]
    if any(found):
        yield Incompatibility(place, "property-names-narrowed", sorted(case.names) if closed else None, _brief(node))


def dependent_schemas(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    for name, node in new.members("dependentSchemas").items() if case.type == "object" else ():
        if case.member(name) is not None:
            present = case.document.words(case.document.requiring(name))
            place = f"{child(path, new.spelled('dependentSchemas'))}{child('', name)}"
            yield from run.of((*_all(case), *present), node, place, level)


# -- arrays -----------------------------------------------------------------------------------------------------------


def items(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    if case.type != "array":
        return
    prefix = len(new.get("prefixItems") or ())
    for at in range(max(prefix, case.prefix) + 1):
        had = case.item(at)
        for node in item_of(new, at) if had is not None else ():
            place = child(path, new.spelled("items"))
            if at < prefix:
                place = child(child(path, new.spelled("prefixItems")), at)
            incompatibilities = run.of(had or (), node, place, level + 1)
            if incompatibilities and node.schema is False:
                yield Incompatibility(place, "items-closed", f"item {at}", False)
            else:
                yield from incompatibilities


def prefix_items(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    if "items" not in new.words:
        yield from items(run, case, new, path, level)


def unevaluated_items(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    node = new.schema("unevaluatedItems")
    if case.type != "array" or node is None or "items" in new.words:
        return
    for at in range(len(new.get("prefixItems") or ()), case.prefix + 1):
        had = case.item(at)
        if had is not None and run.of(had, node, path, level + 1):
            yield Incompatibility(child(path, "unevaluatedItems"), "items-closed", f"item {at}", _brief(node))
            return


def contains(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    node = new.schema("contains")
    if case.type != "array" or node is None:
        return
    least, most = new.get("minContains", 1), new.get("maxContains")
    places = range(case.shortest if case.single else min(case.shortest, case.prefix + 1))
    sure = [at for at in places if (had := case.item(at)) is not None and run.holds(had, node, level + 1)]
    all_ = case.shortest if len(sure) == len(places) else len(sure)
    counted = [old.get("minContains", 1) for old in case.words if _contains(run, old, node, level)]
    if max([all_, *counted]) < least:
        yield Incompatibility(child(path, "contains"), "contains-narrowed", None, _brief(node))
    if most is not None and not (case.longest is not None and case.longest <= most):
        olds = [old for old in case.words if old.get("maxContains", most + 1) <= most]
        if not any(run.same.holds(old.node.at(old.words["contains"]), node) for old in olds if "contains" in old.words):
            yield Incompatibility(child(path, "maxContains"), "contains-narrowed", None, most)


def _contains(run: Comparison, old: KeywordSet, node: Node, level: int) -> bool:
    had = old.schema("contains")
    return had is not None and run.holds(keywords_of([had]), node, level + 1)


# -- choices ----------------------------------------------------------------------------------------------------------


def any_of(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    nodes = new.nodes("anyOf")
    if not any(run.holds(_all(case), node, level) for node in nodes):
        yield from _no_branch(run, case, nodes, (child(path, "anyOf"), "any-of-narrowed"), level)


def one_of(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    nodes, place = new.nodes("oneOf"), child(path, "oneOf")
    chosen = [index for index, node in enumerate(nodes) if run.holds(_all(case), node, level)]
    if not chosen:
        yield from _no_branch(run, case, nodes, (place, "one-of-narrowed"), level)
        return
    others = [index for index in range(len(nodes)) if index != chosen[0]]
    for index in others:
        if not run.excludes(case, nodes[index], level):
            yield Incompatibility(child(place, index), "one-of-ambiguous", case.described(), _brief(nodes[index]))
            return


def _no_branch(
    run: Comparison, case: Case, nodes: list[Node], place: tuple[str, str], level: int
) -> Iterator[Incompatibility]:
    """The refusals of the only branch for the type, or that no branch will do: `place` is the path and the rule."""
    path, rule = place
    fitting = [at for at, node in enumerate(nodes) if all(case.type in word.types for word in keywords_of([node]))]
    if len(fitting) == 1:
        yield from run.of(_all(case), nodes[fitting[0]], child(path, fitting[0]), level)
    else:
        yield Incompatibility(path, rule, case.described(), [_brief(node) for node in nodes])


def not_(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    node = new.node.at(new.words["not"])
    if not run.excludes(case, node, level):
        yield Incompatibility(child(path, "not"), "not-widened", case.described(), _brief(node))


def condition(run: Comparison, case: Case, new: KeywordSet, path: str, level: int) -> Iterator[Incompatibility]:
    if_, then, else_ = new.node.at(new.words["if"]), new.schema("then"), new.schema("else")
    words = _all(case)
    if then is not None and not run.excludes(case, if_, level):
        both = tuple({id(word): word for word in (*words, *keywords_of([if_]))}.values())
        yield from run.of(both, then, child(path, "then"), level)
    if else_ is not None and not run.holds(words, if_, level):
        yield from run.of(words, else_, child(path, "else"), level)


def _all(case: Case) -> Conjunction:
    """The case again, as schemas."""
    own = case.document.literal(case.value) if case.single else case.document.of_type(case.type)
    nots = [each.document.negated(each) for each in case.nots]
    return tuple({id(word): word for word in (*keywords_of([own]), *case.words, *keywords_of(nots))}.values())


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
