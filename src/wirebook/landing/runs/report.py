"""The report of a run: counts of messages and rows, problems, and the closing line.

Spec: docs/land.md#the-closing-line
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from wirebook.landing.runs.task import TaskResult
from wirebook.landing.runs.totals import NO_TYPED_TABLES, landed_rows
from wirebook.landing.tables.layout import DEAD_LETTERS, REPEATED
from wirebook.problems import Problem, Severity

__all__ = ["Report"]


@dataclass(slots=True)
class Report:
    """The results of a run.

    Shape: `read` counts messages that are new to the target, `skipped` messages of the source that were already in the
    target, and `empty` batches of events without an event. `rows` counts the rows of this run by table, including dead
    letters and repeats; `staged` counts those of them in the staging table. `recovered` counts rows of earlier batches
    that entered their tables in this run. `problems` are files that have changed or could not be read to their end,
    folders that cannot be listed, tables that did not accept their rows (errors), and unfinished last lines (notes). In
    a replay, `read` counts the dead letters that were tried, `unresolved` those that still do not land, and `skipped`
    the dead letters that were not tried. `bytes_read` is the uncompressed size of the records, and `bytes_written` the
    size of the files of rows. `late` and `endpoints` are as in `Manifest`. `dead_letter_endpoints` counts dead letters
    by endpoint, if it is known: that of the run, or the one that the record names.
    """

    read: int = 0
    skipped: int = 0
    unresolved: int = 0
    empty: int = 0
    late: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    staged: Counter[str] = field(default_factory=Counter)
    definitions: dict[str, str] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    endpoints: Counter[str] = field(default_factory=Counter)
    dead_letter_endpoints: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    recovered: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    files: int = 0
    skipped_files: int = 0
    batches: int = 0
    seconds: float = 0.0
    dry_run: bool = False

    @property
    def dead_lettered(self) -> int:
        """Messages that did not land."""
        return self.rows[DEAD_LETTERS] + self.unresolved

    @property
    def landed(self) -> int:
        """Messages that landed in typed tables."""
        return landed_rows(self.rows)

    @property
    def repeated(self) -> int:
        """Events that did not land because they repeat an event that landed."""
        return self.rows[REPEATED]

    @property
    def has_errors(self) -> bool:
        """Whether any problem is an error."""
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    def add(self, results: list[TaskResult]) -> None:
        """Add the counts of a batch after its commit."""
        self.batches += 1
        for result in results:
            self.read += result.read
            self.unresolved += result.unresolved
            self.empty += result.empty
            self.late += result.late
            self.bytes_read += result.bytes_read
            self.bytes_written += sum(file.size for file in result.files)
            self.rows.update(result.rows)
            self.staged.update(result.staged)
            self.outcomes.update(result.outcomes)
            self.reasons.update(result.reasons)
            self.definitions.update(result.definitions)

    def include(self, other: Report) -> None:
        """Add the report of a later run, for the total of several runs. Its problems replace the earlier ones."""
        counts = ("read", "skipped", "unresolved", "empty", "late", "files", "skipped_files", "batches")
        for name in (*counts, "bytes_read", "bytes_written", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        counters = ("rows", "staged", "outcomes", "endpoints", "dead_letter_endpoints", "reasons", "recovered")
        for name in (*counters, "definitions"):
            getattr(self, name).update(getattr(other, name))
        self.problems = list(other.problems)

    def definition_rows(self) -> dict[str, int]:
        """The rows of each definition, by XID."""
        rows: Counter[str] = Counter()
        for name, table in self.tables().items():
            rows[table["definition"] or name] += table["rows"]
        return dict(rows)

    def tables(self) -> dict[str, dict[str, Any]]:
        """Table name to definition and rows, sorted by name."""
        names = sorted(name for name, rows in self.rows.items() if rows and name not in NO_TYPED_TABLES)
        return {name: {"definition": self.definitions.get(name), "rows": self.rows[name]} for name in names}

    def closing_line(self) -> dict[str, Any]:
        """The object that `--json` prints last."""
        return {
            "read": self.read,
            "landed": self.landed,
            "dead_lettered": self.dead_lettered,
            **({"repeated": self.repeated} if self.repeated else {}),
            **({"late": self.late} if self.late else {}),
            "skipped": self.skipped,
            "empty": self.empty,
            "tables": self.tables(),
            "outcomes": {outcome: count for outcome, count in sorted(self.outcomes.items()) if count},
            **({"endpoints": dict(sorted(self.endpoints.items()))} if self.endpoints else {}),
            **({"recovered": self.recovered.total()} if self.recovered else {}),
        }
