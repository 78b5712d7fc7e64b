"""Check that the findings of one lint report do not contradict each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from wirebook.problems import Problem

RELATIONS = ("alike", "shadowed", "always-ambiguous", "overlapping-templates")
# Codes that ask for opposite changes, or claim opposite things, of one place.
OPPOSITES = (
    ("matches-everything", "unmatchable"),
    ("matches-everything", "metadata-without-envelope"),
    ("matches-everything", "options-without-protocol"),
    ("missing-envelope", "metadata-without-envelope"),
    ("missing-protocol", "options-without-protocol"),
    ("missing-consumergroup", "consumergroup-of-subscriber"),
    ("group-without-filter", "option-of-other-usage"),
    ("unused-schema", "unusable-schema"),
    ("misspelt-attribute", "misspelt-collection"),
    ("misspelt-attribute", "bad-member-name"),
    ("misspelt-attribute", "bad-attribute-name"),
    ("misspelt-option", "unknown-option"),
    ("misspelt-member", "unknown-property-member"),
    ("missing-slash", "old-reference-form"),
    ("missing-slash", "bad-schema-reference"),
    ("missing-slash", "bad-base"),
    ("missing-slash", "bad-group"),
    ("unknown-option", "mqtt-5-option"),
    ("empty-schema", "two-documents"),
    ("no-definitions", "unused-schema"),
    ("no-definitions", "alike"),
)


def contradictions(problems: Sequence[Problem]) -> Iterator[str]:
    """Yield each contradiction in a report as one line."""
    yield from _repeated(problems)
    yield from _opposed(problems)
    yield from _related(problems)


def _repeated(problems: Sequence[Problem]) -> Iterator[str]:
    seen: set[tuple[str, str | None, str | None, int | None]] = set()
    for problem in problems:
        place = (problem.code, problem.file, problem.pointer, problem.line)
        if place in seen:
            yield f"{place} is reported twice"
        seen.add(place)


def _opposed(problems: Sequence[Problem]) -> Iterator[str]:
    codes: defaultdict[tuple[str | None, str | None], set[str]] = defaultdict(set)
    for problem in problems:
        codes[problem.file, problem.pointer].add(problem.code)
    for place, reported in codes.items():
        for one, other in OPPOSITES:
            if {one, other} <= reported:
                yield f"{one} and {other} at {place}"


def _related(problems: Sequence[Problem]) -> Iterator[str]:
    """Check that two definitions have one relation with one direction, and that both can be matched."""
    relations: dict[frozenset[str | None], Problem] = {}
    unreachable = {problem.xid for problem in problems if problem.code == "unmatchable"}
    wide = {problem.xid: problem.actual for problem in problems if problem.code == "shadowed"}
    for problem in problems:
        if problem.code not in RELATIONS:
            continue
        pair = frozenset({problem.xid, str(problem.actual)})
        if (other := relations.setdefault(pair, problem)) is not problem:
            yield f"{problem.code} and {other.code} of {sorted(map(str, pair))}"
        if not unreachable.isdisjoint(pair):
            yield f"{problem.code} of a definition that no message fits: {sorted(map(str, pair))}"
        seen, at = {problem.xid}, wide.get(problem.xid)
        while at is not None:
            if at in seen:
                yield f"a circle of definitions that shadow each other: {sorted(map(str, seen))}"
                break
            seen.add(at)
            at = wide.get(at)
