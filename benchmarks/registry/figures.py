"""The figures of the registry's benchmarks, each beside its goal, of one database beside the other."""

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
    """A number, what it is to be (at most, or at least), and what else there is to say. `failed`: bad answers."""

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
            return f"≤ {shown(self.most)}"
        return f"≥ {shown(self.least)}" if self.least is not None else ""

    def __str__(self) -> str:
        failed = f", {self.failed} FAILED" if self.failed else ""
        return shown(self.value) + failed


@dataclass
class Figures:
    """All figures of one database and one size; `commits` are the bare commits a second of the machine."""

    commits: float
    found: dict[str, Figure] = field(default_factory=dict)

    def add(self, what: str, value: float, **more: object) -> None:
        self.found[what] = Figure(value, **more)  # type: ignore[arg-type]
        print(f"  {what}: {self.found[what]} {self.found[what].note}", flush=True)


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


VERDICT = {None: "", True: "met", False: "MISSED"}


def print_figures(title: str, sqlite: Figures, other: Figures | None) -> None:
    """One row for each question; the goals are those of SQLite."""
    rows = []
    for what, figure in sqlite.found.items():
        beside = other.found.get(what) if other else None
        shown_other = f"{beside} {beside.note}".strip() if beside else ""
        rows.append((what, str(figure), figure.note, figure.goal, VERDICT[figure.is_met], shown_other))
    print_table(("what", "SQLite", "", "goal", "", "PostgreSQL"), rows, title=title)
    print()


def bare_commits(folder: Path, seconds: float = 2.0) -> float:
    """How often a second SQLite, set as the registry sets it, can commit a row of a message's size in `folder`."""
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
    """How many Resources a second SQLite alone reads of the registry's file, in a loop of Python."""
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
    """Where the figures are from."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    versions = f"Python {platform.python_version()} ({sys.base_prefix}), SQLite {sqlite3.sqlite_version}"
    return (
        f"{versions}; {os.cpu_count()} cores, {model or platform.machine()}; load {os.getloadavg()[0]:.1f} at the start"
    )
