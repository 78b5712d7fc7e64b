"""Prints the figures: one table per question, with the ratio to the baseline and the goal."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow
from measure import Runs
from oracle import Void

from wirebook.cli.output import print_table


@dataclass
class Results:
    """All figures, as `--json` writes them."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, question: str, **values: Any) -> None:
        self.rows.append({"question": question, **values})

    def run(self, parts: Mapping[str, Callable[[], None]], file: Path | None) -> int:
        """Run parts, which add figures, print the goals that are missed, and write the figures to `file`; returns the
        exit code: 1 if the result of a part is wrong."""
        print(f"{environment()}\n")
        code = 0
        for name, part in parts.items():
            try:
                part()
            except Void as error:
                print(f"{name}: VOID, {error}\n")
                code = 1
        missed = self.missed()
        print("all goals met" if not missed and not code else "missed: " + "; ".join(missed))
        if file:
            file.write_text(json.dumps(self.rows, indent=1) + "\n")
        return code

    def missed(self) -> list[str]:
        return [f"{row['question']}: {row['what']}" for row in self.rows if row.get("met") is False]


def environment() -> str:
    import pyspark  # noqa: PLC0415

    model = next((line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), "")
    versions = f"Python {platform.python_version()}, Spark {pyspark.__version__}, PyArrow {pyarrow.__version__}"
    load = f"load {os.getloadavg()[0]:.1f} at the start"
    return f"{versions}; {os.cpu_count()} cores, {model or platform.machine()}; {load}"


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []


@dataclass(frozen=True)
class Goal:
    """A goal for the ratio to another figure: `most`, or `least` for a speed-up."""

    over: Runs
    most: float | None = None
    least: float | None = None

    def ratio(self, runs: Runs) -> float:
        return self.over.best / runs.best if self.least is not None else runs.best / self.over.best

    def met(self, runs: Runs) -> bool | None:
        ratio = self.ratio(runs)
        if self.most is not None:
            return ratio <= self.most
        return ratio >= self.least if self.least is not None else None

    def __str__(self) -> str:
        if self.most is not None:
            return f"≤ {self.most:g}"
        return f"≥ {self.least:g}x" if self.least is not None else ""


def print_runs(results: Results, question: str, rows: Sequence[tuple[Runs, Goal | None]]) -> None:
    """Print the CPU time per message of each job, and its ratio."""
    table = []
    for runs, goal in rows:
        ratio = goal.ratio(runs) if goal else None
        met = goal.met(runs) if goal else None
        first = runs.first.cpu * 1e6 / runs.messages if runs.first else None
        formatted = "" if ratio is None else f"{ratio:.2f}"
        over = f"{'of' if goal and goal.least is None else 'from'} {goal.over.label}" if goal else ""
        table.append(
            (
                runs.label,
                f"{runs.messages:,}",
                f"{runs.best:.1f}",
                f"{runs.middle:.1f}",
                "" if first is None else f"{first:.1f}",
                f"{runs.wall:.1f}",
                formatted,
                over,
                str(goal or ""),
                _MET[met],
            )
        )
        results.add(question, what=runs.label, best=runs.best, median=runs.middle, ratio=ratio, met=met)
    heads = ("what", "messages", "CPU µs best", "median", "first run", "wall s", "ratio", "", "goal", "")
    print_table(heads, table, title=question)
    print()


_MET = {None: "", True: "met", False: "MISSED"}


def verdict(met: bool | None) -> str:
    return _MET[met]
