"""The plan: what is to be done with each file of a source, and in which batches and tasks.

Nothing is read here but what the scan has not told: the first value of a new file, its last line, a Parquet footer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from wirebook.landing.runs.ledger import Decision, Entry, Ledger, Seen, Twins, decide, twins_of
from wirebook.landing.sources.byte_streams import SourceChanged
from wirebook.landing.sources.files import Scan, digest_of
from wirebook.landing.sources.reading import content_digest
from wirebook.landing.sources.splits import Split, cut_file, merge, unreadable_unit
from wirebook.problems import Problem

__all__ = ["Batch", "Plan", "Planned", "changed", "make_batches", "make_plan", "make_tasks", "pack", "unfinished"]

MAX_UNITS = 5000
"""How many units a batch has at most: they travel to Spark with the job."""

MIN_TASK = 1 << 20
"""Bytes below which another task does not pay."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What is to be read of one file: `units` in the order of the lines, cut as finely as the file can be."""

    scan: Scan
    units: tuple[Split, ...]
    known: Entry | None = None

    def entry_after(self, count: int) -> Entry:
        """The file's entry once its first `count` units have landed; what only reading tells is still open."""
        if not count:
            return self.known or Entry(file=self.scan.file.name, size=0, digest=digest_of(()), lines=0)
        unit = self.units[count - 1]
        before = self.entry_after(0 if not unit.problem else count - 1)
        return msgspec.structs.replace(before, **self._changes(unit))

    def _changes(self, unit: Split) -> dict[str, Any]:
        if unit.problem == "unreadable-file":
            return {"problem": unit.problem, "complete": False}
        packed = {"codec": unit.codec, "kind": unit.kind, "problem": unit.problem, "content": None, "same_as": None}
        if unit.is_lines:
            end = {"size": unit.end, "digest": self.scan.prefix_digest(unit.end), "complete": True}
            return packed | end | {"lines": unit.last, "open_line": unit.tail}
        is_last = unit == self.units[-1] and not unit.problem
        return packed | {"size": self.scan.size, "digest": self.scan.digest, "complete": is_last}


@dataclass(slots=True)
class Plan:
    """What a source has for a target.

    Shape: `files` to land, by name; `skipped` have nothing new; `same` maps a file to the one with the same content;
    `problems` are files that changed (errors) and last lines that are not finished (notes).
    """

    files: list[Planned] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    same: dict[str, tuple[Entry, str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def make_plan(scans: Iterable[Scan], ledger: Ledger) -> Plan:
    """What to do with every file. Files that are known come first, so that a copy of one is told from a new file."""
    planner, strangers = _Planner(twins_of(ledger.values())), []
    for scan in scans:
        known = ledger.get(scan.file.name)
        if known and known.lines:
            planner.add(scan, known)
        else:
            strangers.append((scan, known))
    for scan, known in strangers:
        planner.add(scan, known)
    planner.plan.files.sort(key=lambda planned: planned.scan.file)
    return planner.plan


class _Planner:
    """Adds files to a plan, remembering the content it has seen."""

    def __init__(self, twins: Twins) -> None:
        self.plan = Plan()
        self._twins = twins

    def add(self, scan: Scan, known: Entry | None) -> None:
        try:
            self._add(scan, known)
        except (SourceChanged, OSError) as error:
            self.plan.problems.append(changed(scan.file.name, str(error)))

    def _add(self, scan: Scan, known: Entry | None) -> None:
        decision = _decide(scan, known)
        if decision is Decision.SKIP:
            self.plan.skipped.append(scan.file.name)
        elif decision is Decision.CHANGED:
            raise SourceChanged("its bytes are not those that landed")
        elif decision is Decision.UNREADABLE:
            unit = unreadable_unit(scan, known.lines + 1 if known else 1)
            self.plan.files.append(Planned(scan, (unit,), known))
        else:
            self._cut(scan, known, is_grown=decision is Decision.GROWN)

    def _cut(self, scan: Scan, known: Entry | None, *, is_grown: bool) -> None:
        cut = cut_file(scan, known if is_grown else None)
        planned = Planned(scan, cut.units, known if is_grown else None)
        if cut.unfinished:
            self.plan.problems.append(unfinished(scan.file.name, cut.unfinished))
        end = planned.entry_after(len(cut.units))
        twin = None if is_grown else self._twins.get((end.size, end.digest))
        if twin and twin != scan.file.name:
            self.plan.same[scan.file.name] = (end, twin)
        elif not cut.units or _is_said(known, cut.units[0]):
            self.plan.skipped.append(scan.file.name)
        else:
            self._twins[end.size, end.digest] = scan.file.name
            self.plan.files.append(planned)


def _decide(scan: Scan, known: Entry | None) -> Decision:
    same_start = known is not None and scan.size >= known.size and scan.prefix_digest(known.size) == known.digest
    decision = decide(known, Seen(scan.size, readable=not scan.error or bool(scan.blocks), same_start=same_start))
    if decision is Decision.REPLACED and known:
        is_same = content_digest(scan.file.path, known.codec, known.lines) == known.content
        return Decision.GROWN if is_same else Decision.CHANGED
    return decision


def _is_said(known: Entry | None, first: Split) -> bool:
    """Whether there is nothing but a problem that is in the dead letters already."""
    return first.problem is not None and known is not None and known.problem == first.problem


def changed(file: str, why: str) -> Problem:
    """A file of which nothing lands, because it is not what it was."""
    hint = "give the new file another name"
    return Problem(code="source-changed", file=file, message=f"'{file}' changed, nothing of it lands: {why}", hint=hint)


def unfinished(file: str, line: int) -> Problem:
    """A last line that is left for later."""
    message = "the last line has no line end and is no whole JSON value yet: it is left for a later run"
    return Problem(code="unfinished-line", file=file, line=line, message=message)


class Batch(NamedTuple):
    """Units that land together, and the entries of their files afterwards."""

    units: list[Split]
    entries: list[Entry]


def make_batches(files: Iterable[Planned], weight: int) -> Iterator[Batch]:
    """Batches of about `weight` bytes, in the order of files and lines; a large file goes over several."""
    units: list[Split] = []
    entries: dict[str, Entry] = {}
    held = 0
    for planned in files:
        for i, unit in enumerate(planned.units, 1):
            units.append(unit)
            held += unit.weight
            is_full = held >= weight or len(units) >= MAX_UNITS
            if is_full or i == len(planned.units):
                entries[unit.file] = planned.entry_after(i)
            if is_full:
                yield Batch(units, list(entries.values()))
                units, entries, held = [], {}, 0
    if units:
        yield Batch(units, list(entries.values()))


def pack(units: Iterable[Split], weight: int) -> Iterator[list[Split]]:
    """The units in lots of about `weight` bytes."""
    some: list[Split] = []
    held = 0
    for unit in units:
        some.append(unit)
        held += unit.weight
        if held >= weight or len(some) >= MAX_UNITS:
            yield some
            some, held = [], 0
    if some:
        yield some


def make_tasks(units: list[Split], parallelism: int) -> list[list[Split]]:
    """Units as tasks of about equal weight, no more than there are cores, each with its files in order."""
    total = sum(unit.weight for unit in units)
    count = min(max(total // MIN_TASK, 1), parallelism)
    tasks: list[list[Split]] = [[] for _ in range(count)]
    passed = 0
    for unit in units:
        middle = passed + unit.weight / 2
        tasks[min(int(middle * count / total), count - 1)].append(unit)
        passed += unit.weight
    return [merge(task) for task in tasks if task]
