"""The plan of a run: what to do with each file of a source, in which batches and tasks.

In addition to the scan, planning reads only the first value of a new file, its last line, and Parquet footers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from wirebook.landing.runs.ledger import Decision, FileState, LandedContent, Ledger, LedgerEntry, decide, landed_content
from wirebook.landing.sources.byte_streams import SourceChanged
from wirebook.landing.sources.files import Scan, digest_of
from wirebook.landing.sources.reading import content_digest
from wirebook.landing.sources.splits import FileSplit, merge_adjacent, split_file, unreadable_split, with_formats
from wirebook.problems import CODES, Problem

__all__ = [
    "MAX_REASON",
    "Batch",
    "Plan",
    "PlannedFile",
    "group_by_weight",
    "incomplete_file",
    "make_batches",
    "make_plan",
    "make_tasks",
    "source_changed",
    "unfinished_line",
]

MAX_SPLITS = 5000
"""Maximum number of splits per batch: they are sent to Spark with the job."""

MAX_REASON = 200
"""Maximum length of the reason in a ledger entry, in characters."""

OBJECT_CHANGED = "its ETag differs: it was replaced or appended to"

MIN_TASK = 1 << 20
"""Minimum number of bytes per task: another task for fewer bytes costs more than it saves."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """The part of one file that a run reads, as splits in line order."""

    scan: Scan
    splits: tuple[FileSplit, ...]
    known: LedgerEntry | None = None

    def entry_after(self, count: int) -> LedgerEntry:
        """The ledger entry of the file after its first `count` splits have landed, without what is known only after
        reading."""
        if not count:
            return self.known or LedgerEntry(file=self.scan.file.name, size=0, digest=digest_of(()), lines=0)
        split = self.splits[count - 1]
        before = self.entry_after(0 if not split.problem else count - 1)
        return msgspec.structs.replace(before, **self._changes(split))

    def _changes(self, split: FileSplit) -> dict[str, Any]:
        if split.problem == "unreadable-file":
            return {"problem": split.problem, "reason": (self.scan.error or "")[:MAX_REASON], "complete": False}
        packed = {
            "codec": split.codec,
            "file_type": split.file_type,
            "problem": split.problem,
            "reason": split.message[:MAX_REASON],
            "content": None,
            "same_as": None,
        }
        if split.is_lines:
            end = {"size": split.end, "digest": self.scan.prefix_digest(split.end), "complete": True}
            modified = self.scan.file.modified if split.end == self.scan.size else 0
            return packed | end | {"lines": split.last, "open_line": split.tail, "modified": modified}
        is_last = split == self.splits[-1] and not split.problem
        end = {"size": self.scan.size, "digest": self.scan.digest, "modified": self.scan.file.modified}
        return packed | end | {"complete": is_last}


@dataclass(slots=True)
class Plan:
    """What a run does with each file of a source.

    Shape: `files` are those to land, sorted by name. `skipped` files have nothing new; the `incomplete` ones among them
    could not be read to their end by an earlier run, and have not changed since. `copies` maps a file to its ledger
    entry and to the file with the same content. `problems` are changed files (errors) and unfinished last lines
    (notes).
    """

    files: list[PlannedFile] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    copies: dict[str, tuple[LedgerEntry, str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def make_plan(scans: Iterable[Scan], ledger: Ledger) -> Plan:
    """Plan what to do with every file. Known files come first, so that their copies are recognised."""
    planner, unknown = _Planner(landed_content(ledger.values())), []
    for scan in scans:
        known = ledger.get(scan.file.name)
        if known and known.lines:
            planner.add(scan, known)
        else:
            unknown.append((scan, known))
    for scan, (_, known) in zip(with_formats([scan for scan, _ in unknown]), unknown, strict=True):
        planner.add(scan, known)
    planner.plan.files.sort(key=lambda planned: planned.scan.file)
    return planner.plan


class _Planner:
    """Adds files to a plan and remembers the content of those it has added."""

    def __init__(self, landed: LandedContent) -> None:
        self.plan = Plan()
        self._landed = landed

    def add(self, scan: Scan, known: LedgerEntry | None) -> None:
        try:
            self._add(scan, known)
        except (SourceChanged, OSError) as error:
            self.plan.problems.append(source_changed(scan.file.name, str(error)))

    def _add(self, scan: Scan, known: LedgerEntry | None) -> None:
        decision = _decide(scan, known)
        if decision is Decision.SKIP:
            self._skip(scan, is_incomplete=known is not None and known.problem is not None)
        elif decision is Decision.CHANGED:
            raise SourceChanged(OBJECT_CHANGED if scan.version else "its first bytes differ from those that landed")
        elif decision is Decision.UNREADABLE:
            split = unreadable_split(scan, known.lines + 1 if known else 1)
            self.plan.files.append(PlannedFile(scan, (split,), known))
        else:
            self._split(scan, known, is_grown=decision is Decision.GROWN)

    def _split(self, scan: Scan, known: LedgerEntry | None, *, is_grown: bool) -> None:
        new = split_file(scan, known.landed_part if known and is_grown else None)
        planned = PlannedFile(scan, new.splits, known if is_grown else None)
        if new.unfinished:
            self.plan.problems.append(unfinished_line(scan.file.name, new.unfinished))
        end = planned.entry_after(len(new.splits))
        original = None if is_grown else self._landed.get((end.size, end.digest))
        if original and original != scan.file.name:
            self.plan.copies[scan.file.name] = (end, original)
        elif not new.splits or _is_reported(known, new.splits[0]):
            self._skip(scan, is_incomplete=bool(new.splits))
        else:
            self._landed[end.size, end.digest] = scan.file.name
            self.plan.files.append(planned)

    def _skip(self, scan: Scan, *, is_incomplete: bool) -> None:
        self.plan.skipped.append(scan.file.name)
        if is_incomplete:
            self.plan.incomplete.append(scan.file.name)


def _decide(scan: Scan, known: LedgerEntry | None) -> Decision:
    same_start = known is not None and scan.size >= known.size and scan.prefix_digest(known.size) == known.digest
    decision = decide(known, FileState(scan.size, readable=not scan.error or bool(scan.blocks), same_start=same_start))
    if decision is Decision.REPLACED and known:
        is_same = content_digest(scan.file.path, known.codec, known.lines) == known.content
        return Decision.GROWN if is_same else Decision.CHANGED
    return decision


def _is_reported(known: LedgerEntry | None, first: FileSplit) -> bool:
    """Whether the split contains only a problem that a dead letter has already reported."""
    return first.problem is not None and known is not None and known.problem == first.problem


def source_changed(file: str, why: str) -> Problem:
    """The problem of a file that does not land because it has changed since it landed."""
    message = f"'{file}' has changed since it landed and was skipped: {why}"
    hint = "rename the new file, or restore the file that landed"
    return Problem(code="source-changed", file=file, message=message, hint=hint)


def incomplete_file(entry: LedgerEntry) -> Problem:
    """The problem of a file that could not be read to its end. The line of the problem is the first missing one."""
    code = entry.problem or "truncated-file"
    what = "row" if entry.file_type == "parquet" else "line"
    read = f"'{entry.file}' was read only up to {what} {entry.lines}" if entry.lines else f"'{entry.file}' was not read"
    message = f"{read}: {entry.reason or CODES[code].title}"
    remedy = "make the file readable" if code == "unreadable-file" else "complete or replace the file"
    hint = f"{remedy} and run again to land the rest"
    return Problem(code=code, file=entry.file, line=entry.lines + 1, message=message, hint=hint)


def unfinished_line(file: str, line: int) -> Problem:
    """The problem of an incomplete last line, which is left for a later run."""
    message = "the last line has no line end and is not a complete JSON value; it is left for a later run"
    return Problem(code="unfinished-line", file=file, line=line, message=message)


class Batch(NamedTuple):
    """Splits that land together, and the ledger entries of their files afterwards."""

    splits: list[FileSplit]
    entries: list[LedgerEntry]


def make_batches(files: Iterable[PlannedFile], weight: int) -> Iterator[Batch]:
    """Group splits into batches of about `weight` bytes, in file and line order. A large file spans several batches."""
    splits: list[FileSplit] = []
    entries: dict[str, LedgerEntry] = {}
    weight_so_far = 0
    for planned in files:
        for i, split in enumerate(planned.splits, 1):
            splits.append(split)
            weight_so_far += split.weight
            is_full = weight_so_far >= weight or len(splits) >= MAX_SPLITS
            if is_full or i == len(planned.splits):
                entries[split.file] = planned.entry_after(i)
            if is_full:
                yield Batch(splits, list(entries.values()))
                splits, entries, weight_so_far = [], {}, 0
    if splits:
        yield Batch(splits, list(entries.values()))


def group_by_weight(splits: Iterable[FileSplit], weight: int) -> Iterator[list[FileSplit]]:
    """Group splits into lists of about `weight` bytes."""
    group: list[FileSplit] = []
    weight_so_far = 0
    for split in splits:
        group.append(split)
        weight_so_far += split.weight
        if weight_so_far >= weight or len(group) >= MAX_SPLITS:
            yield group
            group, weight_so_far = [], 0
    if group:
        yield group


def make_tasks(splits: list[FileSplit], parallelism: int) -> list[list[FileSplit]]:
    """Distribute splits over at most `parallelism` tasks of about equal weight, keeping their order."""
    total = sum(split.weight for split in splits)
    count = min(max(total // MIN_TASK, 1), parallelism)
    tasks: list[list[FileSplit]] = [[] for _ in range(count)]
    passed = 0
    for split in splits:
        middle = passed + split.weight / 2
        tasks[min(int(middle * count / total), count - 1)].append(split)
        passed += split.weight
    return [merge_adjacent(task) for task in tasks if task]
