"""JSON Schema compatibility: is every value that the old schema accepts accepted by the new one?

Rule: containment, decided for each case of the old schema (compatibility_cases.py) and each keyword of the new one. The
check is sound but not complete: a schema that is not rejected is compatible, but some compatible schemas are rejected.
If it cannot be proved that a keyword accepts all values, the keyword is reported as incompatible, or the rule is
``cannot-be-shown``. An open object accepts any further property, so a new property narrows it, unless documents are
compared as declared (docs/decisions/0091).

Spec: the drafts 04 to 2020-12; `format` counts if the draft asserts it (D52).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from wirebook.schema.incompatibilities import MAX_INCOMPATIBILITIES, UNPROVEN, Incompatibility, Steps
from wirebook.schema.jsonschema.compatibility_cases import Case, cases
from wirebook.schema.jsonschema.compatibility_keywords import Equivalence, FlatDocument, KeywordSet, Node, keywords_of
from wirebook.schema.jsonschema.compatibility_rules import OF_TYPE, RULES, Conjunction, assertion_incompatibilities
from wirebook.schema.source import SchemaSource
from wirebook.text.pointers import child

MAX_LEVELS = 100
"""The deepest nesting of values that is compared. Deeper values are ``cannot-be-shown``."""
MAX_STEPS = 20_000


def backward(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """Return why some values of `old` are not valid against `new`. Both must be valid schemas.

    Raises: TooComplexError
    """
    return _compare(old, new, declared_only=False)


def backward_as_declared(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """Return the same for documents that have only properties that `old` names or constrains.

    A new optional property is then compatible.
    Raises: TooComplexError
    """
    return _compare(old, new, declared_only=True)


def _compare(old: SchemaSource, new: SchemaSource, *, declared_only: bool) -> list[Incompatibility]:
    before = FlatDocument(old.document, old.format.version, declared_only=declared_only)
    return contained(before, FlatDocument(new.document, new.format.version))


def contained(
    old: FlatDocument, new: FlatDocument, implied: Callable[[str, str], bool] | None = None
) -> list[Incompatibility]:
    """Return why some values of `old` are not valid against `new`: one reason for each place and rule.

    `implied` returns whether every string that matches its first pattern or format also matches its second.
    Raises: TooComplexError
    """
    distinct: dict[tuple[str, str], Incompatibility] = {}
    for reason in Containment(old, Steps(MAX_STEPS), implied).compare(keywords_of([old.root]), new.root, "", 0):
        distinct.setdefault((reason.path, reason.rule), reason)
    return list(distinct.values())


@dataclass
class Containment:
    """Compares two documents; implements the `Comparer` that the rules use.

    Shape: `open` are the pairs of schemas that are being compared, with the nesting level of the value. A pair that
    recurs at a deeper level is assumed to hold (induction over the size of the value). `known` are the results of
    finished pairs. If an open pair fails, positive results that may have assumed it are dropped.
    """

    old: FlatDocument
    steps: Steps
    implied: Callable[[str, str], bool] | None = None
    same: Equivalence = field(default_factory=Equivalence)
    open: dict[Any, int] = field(default_factory=dict)
    known: dict[Any, list[Incompatibility]] = field(default_factory=dict)

    def compare(self, sets: Conjunction, new: Node, path: str, level: int) -> list[Incompatibility]:
        """Return why some values that satisfy the keywords `sets` are not valid against `new`, which is at `path`."""
        if new.schema is True or new.schema == {}:
            return []
        key = (frozenset(map(id, sets)), id(new.schema))
        if key in self.known:
            return self.known[key]
        if key in self.open:
            return [] if level > self.open[key] else [Incompatibility(path, UNPROVEN, "a recursive schema", None)]
        self.steps.take()
        if level > MAX_LEVELS:
            return [Incompatibility(path, UNPROVEN, f"values nested more than {MAX_LEVELS} levels deep", None)]
        known_count, self.open[key] = len(self.known), level
        incompatibilities = self._of(sets, new, path, level)
        del self.open[key]
        if incompatibilities:
            for assumed in [pair for pair in list(self.known)[known_count:] if not self.known[pair]]:
                del self.known[assumed]
        self.known[key] = incompatibilities
        return incompatibilities

    def _of(self, sets: Conjunction, new: Node, path: str, level: int) -> list[Incompatibility]:
        if any(self.same.holds(old.node, new) for old in sets):
            return []
        changed: list[tuple[KeywordSet, list[str]]] = []  # keywords that no old schema has with the same meaning
        for keywords in new.document.keywords(new):
            names = [name for name in keywords.values if not any(self._is_same(old, keywords, name) for old in sets)]
            changed += [(keywords, names)] if names else []
        incompatibilities: list[Incompatibility] = []
        for case in self._cases(sets) if changed else ():
            reasons = (
                reason for keywords, names in changed for reason in self._case(case, keywords, names, path, level)
            )
            of_case = list(islice(reasons, MAX_INCOMPATIBILITIES))
            if of_case and not self.is_empty(case, level):
                incompatibilities += of_case
            if len(incompatibilities) >= MAX_INCOMPATIBILITIES:
                break
        return incompatibilities

    def _is_same(self, old: KeywordSet, new: KeywordSet, keyword: str) -> bool:
        if keyword not in old.values or keyword in PAIRED or old.node.document.draft != new.node.document.draft:
            return False
        return self.same.values(old.node, new.node, keyword, (old.values[keyword], new.values[keyword]))

    def _case(self, case: Case, new: KeywordSet, names: list[str], path: str, level: int) -> Iterator[Incompatibility]:
        self.steps.take()
        if "never" in new.values:
            yield Incompatibility(path, "nothing-allowed", case.described(), False)
        elif "elsewhere" in new.values:
            yield Incompatibility(path, UNPROVEN, case.described(), {"$ref": new.values["elsewhere"]})
        elif case.type not in new.types and "enum" not in new.values:
            yield Incompatibility(child(path, "type"), "type-narrowed", case.described(), new.get("type"))
        else:
            yield from assertion_incompatibilities(self, case, new, names, path)
            for keyword in names:
                if keyword in RULES and OF_TYPE.get(keyword, case.type) == case.type:
                    yield from RULES[keyword](self, case, new, path, level)

    def _cases(self, sets: Conjunction, nots: tuple[Node, ...] = ()) -> list[Case]:
        split = cases(self.old, sets, nots)
        self.steps.take(1 + len(split) + sum(len(case.sets) for case in split) // 4)
        return split

    # -- for the rules ----------------------------------------------------------------------------------------------

    def holds(self, sets: Conjunction, new: Node, level: int) -> bool:
        """Whether it can be proved that all values of `sets` are valid against `new`."""
        return not self.compare(sets, new, "", level)

    def is_empty(self, case: Case, level: int) -> bool:
        """Whether it can be proved that a case has no values."""
        self.steps.take()
        if self._has_no_measure(case):
            return True
        if any(self.holds(_with_value(case), not_, level) for not_ in case.nots):
            return True
        parts: Iterator[Conjunction | None] = iter(())  # parts that every value has: if one cannot exist, no value can
        if case.type == "object":
            parts = map(case.member, sorted(case.required))
        elif case.type == "array":
            parts = map(case.item, range(min(case.shortest, case.prefix + 1)))
        return any(sets is None or self.is_nothing(sets, level + 1) for sets in parts)

    def is_nothing(self, sets: Conjunction, level: int) -> bool:
        """Whether it can be proved that no value satisfies all keywords of `sets`."""
        key = (frozenset(map(id, sets)), "nothing")
        if not sets or key in self.open or level > MAX_LEVELS:
            return False
        self.open[key] = level
        is_nothing = all(self.is_empty(case, level) for case in self._cases(sets))
        del self.open[key]
        return is_nothing

    def excludes(self, case: Case, schema: Node, level: int) -> bool:
        """Whether it can be proved that no value of a case is valid against a schema."""
        more = keywords_of([schema])
        if any(self.holds(more, not_, level) for not_ in case.nots):
            return True
        both = tuple(dict.fromkeys((*_with_value(case), *more)))
        return all(self.is_empty(keywords, level) for keywords in self._cases(both, case.nots))

    @staticmethod
    def _has_no_measure(case: Case) -> bool:
        if case.single:
            return False
        low, high = case.low, case.high
        if case.type == "number" and low and high:
            return low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))
        least, most = 0, None
        if case.type == "string":
            least, most = case.most("minLength") or 0, case.least("maxLength")
        elif case.type == "array":
            least, most = case.shortest, case.longest
        elif case.type == "object":
            least, most = max(case.most("minProperties") or 0, len(case.required)), case.most_properties
        return most is not None and least > most


PAIRED = ("minContains", "maxContains", "contains", "prefixItems", "items", "additionalProperties", "never",
          "unevaluatedItems", "unevaluatedProperties", "if")  # fmt: skip
"""Keywords whose meaning depends on the keywords beside them: equal values do not make them equal."""


def _with_value(case: Case) -> Conjunction:
    if not case.single:
        return case.sets
    return (*case.document.keywords(case.document.literal(case.value)), *case.sets)
