"""The output of commands that land messages: batches, notes and problems during the run, and a report at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING

from wirebook.cli.options import ProgressFormat
from wirebook.cli.output import print_event, print_json, print_note, print_problems, print_table, render_problem
from wirebook.core.counting import counted
from wirebook.problems import CODES, Problem

if TYPE_CHECKING:
    from wirebook.landing.runs.report import Report
    from wirebook.landing.stores.locations import AnyPath
    from wirebook.landing.watch.figures import BatchFigures

TOP_REASONS = 10
MAX_TABLES = 100
"""Maximum number of tables in the report at the end."""
MAX_PROBLEMS = 10
"""Maximum number of problems of one code that are printed as text."""
INCOMPLETE_CODES = ("truncated-file", "unreadable-file")
"""Codes of files that could not be read to the end."""
ProblemKey = tuple[str, str | None, str]


class BatchOutput:
    """Prints the batches, notes and problems of a run. A problem that persists is printed once."""

    def __init__(self, progress: ProgressFormat, *, as_json: bool) -> None:
        self._progress, self._as_json = progress, as_json
        self._of_batch, self._of_pass = set[ProblemKey](), set[ProblemKey]()

    def note(self, text: str) -> None:
        """Print a note on standard error."""
        print_note_as(self._progress, text)

    def show(self, batch: BatchFigures) -> None:
        """Print a batch, and those of its problems that neither the previous batch nor the previous pass had."""
        report = batch.report
        if self._progress is ProgressFormat.JSON:
            print_event(batch.to_dict())
        if self._as_json:
            print_json(batch.to_dict())
            sys.stdout.flush()
        elif self._progress is not ProgressFormat.NONE:
            lag = "" if batch.lag is None else f"; {counted(batch.lag, 'message')} behind"
            repeated = f" + repeated {report.repeated:,}" if report.repeated else ""
            before = f"; landed before: {report.skipped:,}" if report.skipped else ""
            print(
                f"batch {batch.number}: read {report.read:,} = landed {report.landed:,} + dead-lettered "
                f"{report.dead_lettered:,}{repeated}{before}; {report.seconds:.1f} s{lag}",
                flush=True,
            )
        self._print_new(report.problems)
        self._of_batch = set(map(_key, report.problems))

    def show_pass(self, report: Report) -> None:
        """Print those problems of a pass over the source that neither the previous pass nor the last batch had."""
        self._print_new(report.problems)
        self._of_batch, self._of_pass = set(), set(map(_key, report.problems))

    def _print_new(self, problems: Iterable[Problem]) -> None:
        known = self._of_batch | self._of_pass
        print_problems_as(self._progress, (problem for problem in problems if _key(problem) not in known))

    def close(self, report: Report, to: AnyPath) -> None:
        """Print the totals of all batches."""
        if self._as_json:
            print_json(report.closing_line())
        else:
            print_report(report, to)


def _key(problem: Problem) -> ProblemKey:
    """Return what identifies a problem during a run. A file that grows and stays incomplete has the same key."""
    is_incomplete = problem.code in INCOMPLETE_CODES
    return problem.code, problem.file, "" if is_incomplete else f"{problem.line}: {problem.message}"


def print_note_as(progress: ProgressFormat, text: str) -> None:
    """Print a note on standard error: as text, or as a JSON object like those of batches."""
    print_event({"message": text}) if progress is ProgressFormat.JSON else print_note(text)


def print_problems_as(progress: ProgressFormat, problems: Iterable[Problem]) -> None:
    """Print problems on standard error: all of them as JSON objects like those of batches, or the first ones of each
    code as text."""
    if progress is ProgressFormat.JSON:
        for problem in problems:
            print_event({"message": render_problem(problem)})
        return
    counts: Counter[str] = Counter()
    for problem in problems:
        counts[problem.code] += 1
        if counts[problem.code] <= MAX_PROBLEMS:
            print_problems([problem])
    for code, more in (counts - Counter(dict.fromkeys(counts, MAX_PROBLEMS))).items():
        message = f"{more:,} more problems with this code are not listed"
        print_problems([Problem(code, message, hint="--progress json lists all")])


def print_report(report: Report, to: AnyPath) -> None:
    """Print the rows of each table, the number of messages per outcome, and the reasons of dead letters."""
    tables = [(name, table["definition"], table["rows"]) for name, table in report.tables().items()]
    dead_letters = [("dead_letters", "", report.dead_lettered)] if report.dead_lettered else []
    repeated = [("repeated", "", report.repeated)] if report.repeated else []
    if tables or dead_letters or repeated:
        shown = nlargest(MAX_TABLES, tables, key=itemgetter(2)) if len(tables) > MAX_TABLES else tables
        print_table(("table", "definition", "rows"), [*shown, *dead_letters, *repeated])
        if more := len(tables) - len(shown):
            print(f"not listed: {counted(more, 'smaller table')}; `wirebook show {to}` lists all")
        print_table(("outcome", "messages"), _most_common(report.outcomes))
    print_reasons(report, "messages")
    verb = "would land" if report.dry_run else "landed"
    print(f"read {report.read:,} = {verb} {report.landed:,} + dead-lettered {report.dead_lettered:,}", end="")
    print(f" + repeated {report.repeated:,}" if report.repeated else "", end="")
    print(f"; landed before: {report.skipped:,}; empty batches: {report.empty:,}; {report.seconds:.1f} s")
    if report.late:
        print(f"late: {counted(report.late, 'event')} landed without a search for repeats")
    if report.recovered:
        rows, into = counted(report.recovered.total(), "row"), counted(len(report.recovered), "table")
        print(f"recovered: {rows} of earlier batches were written to {into}")
    print_staged(report)
    if report.landed and not report.dry_run:
        print(f"Next: wirebook show {to}")


def print_reasons(report: Report, counted_as: str) -> None:
    """Print the most frequent problem codes of dead letters, with their meaning."""
    rows = [(code, count, CODES[code].title) for code, count in _most_common(report.reasons)[:TOP_REASONS]]
    if rows:
        print_table(("reason", counted_as, "meaning"), rows)


def print_staged(report: Report) -> None:
    """Print how many rows went to the shared table `staged`."""
    if report.staged:
        rows, tables = counted(report.staged.total(), "row"), counted(len(report.staged), "table")
        print(f"staged: {rows} of {tables}; `wirebook views` prints SQL that includes them")


def _most_common(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return the names with their counts, in descending order of counts, then by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
