"""JSON Schema: is every value that the old schema accepts accepted by the new one?

Rule: containment, decided for one case of the old schema after the other (jsonschema_cases.py), keyword by keyword of
the new one. It is sound and not complete: what is not refused is compatible; what cannot be shown to be so is refused,
by the keyword or as ``cannot-be-shown``. Strictly, an open object accepts any further property, so that a new property
narrows it; as declared (docs/decisions/0091), it does not.

Spec: the drafts 04 to 2020-12; `format` counts where the draft asserts it (D52).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from wirebook.schema.incompatibilities import MAX_INCOMPATIBILITIES, UNPROVEN, Incompatibility, Steps
from wirebook.schema.jsonschema.compatibility_cases import Case, cases
from wirebook.schema.jsonschema.compatibility_keywords import Equivalence, FlatDocument, KeywordSet, Node, keywords_of
from wirebook.schema.jsonschema.compatibility_rules import RULES, Conjunction, assertion_incompatibilities
from wirebook.schema.source import SchemaSource
from wirebook.text.pointers import child

MAX_LEVELS = 100  # of values within values
STEPS = 20_000


def backward(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """Why values of `old` are not all values of `new`; both are valid schemas.

    Raises: TooComplexError
    """
    return _compared(old, new, declared_only=False)


def backward_as_declared(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """The same for documents that have no properties but those that the old schema names or constrains: a new
    optional property narrows nothing then.

    Raises: TooComplexError
    """
    return _compared(old, new, declared_only=True)


def _compared(old: SchemaSource, new: SchemaSource, *, declared_only: bool) -> list[Incompatibility]:
    before = FlatDocument(old.document, old.format.version, declared_only=declared_only)
    return contained(before, FlatDocument(new.document, new.format.version))


def contained(
    old: FlatDocument, new: FlatDocument, implied: Callable[[str, str], bool] | None = None
) -> list[Incompatibility]:
    """`implied` knows of two patterns that texts with the first have the second."""
    found = Containment(old, Steps(STEPS), implied).of(keywords_of([old.root]), new.root, "", 0)
    return _each_once(found)


def _each_once(incompatibilities: list[Incompatibility]) -> list[Incompatibility]:
    found: dict[tuple[str, str], Incompatibility] = {}
    for incompatibility in incompatibilities:
        found.setdefault((incompatibility.path, incompatibility.rule), incompatibility)
    return list(found.values())


@dataclass
class Containment:
    """Shape: `open` the pairs that are being compared, with the level of the value where: a pair within itself holds
    if the rest does, where it is of a smaller value. `known` what came of others; what was shown with the help of an
    open pair is forgotten if that pair fails."""

    old: FlatDocument
    steps: Steps
    implied: Callable[[str, str], bool] | None = None
    same: Equivalence = field(default_factory=Equivalence)
    open: dict[Any, int] = field(default_factory=dict)
    known: dict[Any, list[Incompatibility]] = field(default_factory=dict)

    def of(self, words: Conjunction, new: Node, path: str, level: int) -> list[Incompatibility]:
        """Why values for which `words` hold are not all of `new`, `path` being its place."""
        if new.schema is True or new.schema == {}:
            return []
        key = (frozenset(map(id, words)), id(new.schema))
        if key in self.known:
            return self.known[key]
        if key in self.open:
            return [] if level > self.open[key] else [Incompatibility(path, UNPROVEN, "a schema within itself", None)]
        self.steps.take()
        if level > MAX_LEVELS:
            return [Incompatibility(path, UNPROVEN, f"values within values, {MAX_LEVELS} levels deep", None)]
        before, self.open[key] = len(self.known), level
        found = self._of(words, new, path, level)
        del self.open[key]
        if found:
            for assumed in [each for each in list(self.known)[before:] if not self.known[each]]:
                del self.known[assumed]
        self.known[key] = found
        return found

    def _of(self, words: Conjunction, new: Node, path: str, level: int) -> list[Incompatibility]:
        if any(self.same.holds(word.node, new) for word in words):
            return []
        wanted = [(word, self._unlike(words, word)) for word in new.document.words(new)]
        wanted = [(each, names) for each, names in wanted if names]
        found: list[Incompatibility] = []
        for case in self._cases(words) if wanted else ():
            every = (each for want, names in wanted for each in self._case(case, want, names, path, level))
            incompatibilities = list(islice(every, MAX_INCOMPATIBILITIES))
            if incompatibilities and not self.is_empty(case, level):
                found += incompatibilities
            if len(found) >= MAX_INCOMPATIBILITIES:
                break
        return found

    def _unlike(self, words: Conjunction, new: KeywordSet) -> list[str]:
        """The keywords that no old schema has just so."""
        return [word for word in new.words if not any(self._alike(each, new, word) for each in words)]

    def _alike(self, old: KeywordSet, new: KeywordSet, word: str) -> bool:
        if word not in old.words or word in PAIRED or old.node.document.draft != new.node.document.draft:
            return False
        return self.same.values(old.node, new.node, word, (old.words[word], new.words[word]))

    def _case(self, case: Case, new: KeywordSet, names: list[str], path: str, level: int) -> Iterator[Incompatibility]:
        self.steps.take()
        if "never" in new.words:
            yield Incompatibility(path, "nothing-allowed", case.described(), False)
        elif "elsewhere" in new.words:
            yield Incompatibility(path, UNPROVEN, case.described(), {"$ref": new.words["elsewhere"]})
        elif case.type not in new.types and "enum" not in new.words:
            yield Incompatibility(child(path, "type"), "type-narrowed", case.described(), new.get("type"))
        else:
            yield from assertion_incompatibilities(self, case, new, names, path)
            for word in names:
                if word in RULES:
                    yield from RULES[word](self, case, new, path, level)

    def _cases(self, words: Conjunction, nots: tuple[Node, ...] = ()) -> list[Case]:
        found = cases(self.old, words, nots)
        self.steps.take(1 + len(found) + sum(len(each.words) for each in found) // 4)
        return found

    # -- for the rules ----------------------------------------------------------------------------------------------

    def holds(self, words: Conjunction, new: Node, level: int) -> bool:
        """Is it shown that all values of `words` are of `new`?"""
        return not self.of(words, new, "", level)

    def is_empty(self, case: Case, level: int) -> bool:
        """Is it shown that a case has no values?"""
        self.steps.take()
        if self._has_no_measure(case):
            return True
        if any(self.holds(_with_value(case), not_, level) for not_ in case.nots):
            return True
        return any(part is None or self.is_nothing(part, level + 1) for part in _needed(case))

    def is_nothing(self, words: Conjunction, level: int) -> bool:
        """Is it shown that no value meets all of some schemas?"""
        key = (frozenset(map(id, words)), "nothing")
        if key in self.open or level > MAX_LEVELS:
            return False
        if not words:
            return False
        self.open[key] = level
        try:
            return all(self.is_empty(case, level) for case in self._cases(words))
        finally:
            del self.open[key]

    def excludes(self, case: Case, schema: Node, level: int) -> bool:
        """Is it shown that no value of a case is of a schema?"""
        more = keywords_of([schema])
        if any(self.holds(more, not_, level) for not_ in case.nots):
            return True
        both = tuple({id(each): each for each in (*_with_value(case), *more)}.values())
        return all(self.is_empty(each, level) for each in self._cases(both, case.nots))

    @staticmethod
    def _has_no_measure(case: Case) -> bool:
        if case.single:
            return False
        low, high = case.low, case.high
        if case.type == "number" and low and high:
            return low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))
        least, most = {
            "string": (case.most("minLength"), case.least("maxLength")),
            "array": (case.shortest, case.longest) if case.type == "array" else (None, None),
            "object": (max(case.most("minProperties") or 0, len(case.required)), case.most_properties),
        }.get(case.type, (None, None))
        return bool((least or 0) > _or_more(most))


PAIRED = ("minContains", "maxContains", "contains", "prefixItems", "items", "additionalProperties", "never",
          "unevaluatedItems", "unevaluatedProperties", "if")  # fmt: skip
"""Keywords whose meaning depends on those beside them."""


def _or_more(limit: Any) -> Any:
    return float("inf") if limit is None else limit


def _with_value(case: Case) -> Conjunction:
    if not case.single:
        return case.words
    return (*case.document.words(case.document.literal(case.value)), *case.words)


def _needed(case: Case) -> Iterator[Conjunction | None]:
    """What must be there: if it cannot be, there is no such value."""
    if case.type == "object":
        yield from map(case.member, sorted(case.required))
    elif case.type == "array":
        yield from (case.item(at) for at in range(min(case.shortest, case.prefix + 1)))
