"""The figures of the registry benchmarks with their goals, for SQLite and PostgreSQL."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wirebook.cli.output import print_table


@dataclass(frozen=True)
class Figure:
    """A value with its goal (`most` or `least`) and a note. `failed` counts invalid responses."""

    value: float
    most: float | None = None
    least: float | None = None
    note: str = ""
    failed: int = 0

    @property
    def is_met(self) -> bool | None:
        if self.failed:
            return False
        if self.most is not None:
            return self.value <= self.most
        return self.value >= self.least if self.least is not None else None

    @property
    def goal(self) -> str:
        if self.most is not None:
            return f"≤ {formatted(self.most)}"
        return f"≥ {formatted(self.least)}" if self.least is not None else ""

    def __str__(self) -> str:
        failed = f", {self.failed} FAILED" if self.failed else ""
        return formatted(self.value) + failed


@dataclass
class Figures:
    """The figures of one database and one size. `commits` is the machine's rate of bare commits per second."""

    commits: float
    by_name: dict[str, Figure] = field(default_factory=dict)

    def add(self, what: str, value: float, **more: object) -> None:
        self.by_name[what] = Figure(value, **more)  # type: ignore[arg-type]
        print(f"  {what}: {self.by_name[what]} {self.by_name[what].note}", flush=True)


def formatted(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


VERDICT = {None: "", True: "met", False: "MISSED"}


def print_figures(title: str, sqlite: Figures, other: Figures | None) -> None:
    """Print one row per figure, with the goals of SQLite."""
    rows = []
    for what, figure in sqlite.by_name.items():
        beside = other.by_name.get(what) if other else None
        other_text = f"{beside} {beside.note}".strip() if beside else ""
        rows.append((what, str(figure), figure.note, figure.goal, VERDICT[figure.is_met], other_text))
    print_table(("what", "SQLite", "", "goal", "", "PostgreSQL"), rows, title=title)
    print()


def bare_commits(folder: Path, seconds: float = 2.0) -> float:
    """Commits per second of SQLite with the settings of the registry, for rows of the size of a message."""
    file = folder / "commits.db"
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE rows (body TEXT)")
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        connection.execute("INSERT INTO rows VALUES (?)", ("x" * 800,))
        count += 1
    rate = count / (time.perf_counter() - started)
    connection.close()
    return rate


ROW = (
    "SELECT meta, head, tail FROM resources JOIN versions ON versions.parent = resources.key AND isdefault "
    "WHERE xid = ?"
)


def bare_reads(file: Path, xids: Sequence[str], seconds: float = 1.0) -> float:
    """Resources per second that a Python loop reads from the database file of the registry."""
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, isolation_level=None)
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for xid in xids:
            assert connection.execute(ROW, (xid,)).fetchone()
        count += len(xids)
    rate = count / (time.perf_counter() - started)
    connection.close()
    return rate


def environment() -> str:
    """The versions and the machine."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    versions = f"Python {platform.python_version()} ({sys.base_prefix}), SQLite {sqlite3.sqlite_version}"
    return (
        f"{versions}; {os.cpu_count()} cores, {model or platform.machine()}; load {os.getloadavg()[0]:.1f} at the start"
    )
