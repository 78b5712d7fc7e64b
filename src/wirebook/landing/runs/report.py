"""The report of a run: what was read, what became of it, and the closing line.

Spec: docs/land.md#the-closing-line
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from wirebook.landing.runs.task import TaskResult
from wirebook.landing.tables.layout import DEAD_LETTERS, RESOLVED
from wirebook.problems import Problem, Severity

__all__ = ["Report"]


@dataclass(slots=True)
class Report:
    """What a run did.

    Shape: `read` counts messages new to the target, `skipped` those of the source that the target already had, `empty`
    batches without a message. `rows` are this run's, table by table, the dead letters among them; `staged` of them have
    no files of their own. `problems` are files that changed or could not be listed (errors), and last lines left for
    later (notes). Of a replay, `read` counts the dead letters that were tried, `unresolved` those of them that still do
    not land, `skipped` all others.
    """

    read: int = 0
    skipped: int = 0
    unresolved: int = 0
    empty: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    staged: Counter[str] = field(default_factory=Counter)
    definitions: dict[str, str] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    files: int = 0
    skipped_files: int = 0
    batches: int = 0
    seconds: float = 0.0
    dry_run: bool = False

    @property
    def dead_lettered(self) -> int:
        return self.rows[DEAD_LETTERS] + self.unresolved

    @property
    def landed(self) -> int:
        return self.rows.total() - self.rows[DEAD_LETTERS] - self.rows[RESOLVED]

    @property
    def has_errors(self) -> bool:
        """Whether some of the source could not be taken as it is, so that somebody has to look."""
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    def add(self, results: list[TaskResult]) -> None:
        """Counts one batch, once it is committed."""
        self.batches += 1
        for result in results:
            self.read += result.read
            self.unresolved += result.unresolved
            self.empty += result.empty
            self.rows.update(result.rows)
            self.staged.update(result.staged)
            self.outcomes.update(result.outcomes)
            self.reasons.update(result.reasons)
            self.definitions.update(result.definitions)

    def tables(self) -> dict[str, dict[str, Any]]:
        """Table to its definition and rows, by name."""
        names = sorted(name for name, rows in self.rows.items() if rows and name not in (DEAD_LETTERS, RESOLVED))
        return {name: {"definition": self.definitions.get(name), "rows": self.rows[name]} for name in names}

    def closing_line(self) -> dict[str, Any]:
        """The object that `--json` ends with."""
        return {
            "read": self.read,
            "landed": self.landed,
            "dead_lettered": self.dead_lettered,
            "skipped": self.skipped,
            "empty": self.empty,
            "tables": self.tables(),
            "outcomes": {outcome: count for outcome, count in sorted(self.outcomes.items()) if count},
        }
