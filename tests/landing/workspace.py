"""A source and a target folder for tests of landing: the tasks run in this process, with the stand-in engine."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

PROJECT = Path(__file__).parents[2]
STANDIN = Path(__file__).parent / "standin"
KILLED, KILLED_IN_TASK = 7, 9
sys.path.insert(0, str(STANDIN))

import standin  # noqa: E402

from wirebook.landing.chunks import Chunk, Landed  # noqa: E402
from wirebook.landing.runs import task  # noqa: E402
from wirebook.landing.runs.engine import engine_for  # noqa: E402
from wirebook.landing.runs.land import land_files  # noqa: E402
from wirebook.landing.runs.replay import replay_dead_letters  # noqa: E402
from wirebook.landing.runs.report import Report  # noqa: E402
from wirebook.landing.runs.settings import (  # noqa: E402
    Catalogue,
    RunSettings,
    Tasks,
)
from wirebook.landing.runs.target import DeadLetterFilter, Target, no_stop  # noqa: E402
from wirebook.landing.runs.task import Job, TaskResult, run_task  # noqa: E402
from wirebook.landing.stores.locations import folders_in, location_of, parquet_source  # noqa: E402
from wirebook.landing.tables.all_formats import FORMATS  # noqa: E402
from wirebook.landing.tables.names import TablePlace  # noqa: E402


def engine_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Chunk, Landed]]:
    """Each chunk that reaches the engine in this process from now on, and what it becomes."""
    calls: list[tuple[Chunk, Landed]] = []
    checked = task.Task._check

    def check(self: task.Task, chunk: Chunk, landed: Landed) -> None:
        calls.append((chunk, landed))
        checked(self, chunk, landed)

    monkeypatch.setattr(task.Task, "_check", check)
    return calls


class LocalRunner:
    """Runs tasks one after the other in this process."""

    parallelism = 3

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self.tasks: list[Tasks] = []
        self.before = before

    def __call__(self, job: Job, tasks: Tasks) -> list[TaskResult]:
        self.tasks.append(tasks)
        self.before()
        return [run_task(job, task, number) for number, task in enumerate(tasks)]


class Workspace:
    """A source folder and a target folder below a temporary one, and runs from one to the other."""

    def __init__(self, root: Path, to: str | None = None) -> None:
        self.root, self.source = root, root / "source"
        self.to: Any = location_of(to or root / "target")
        self.source.mkdir(exist_ok=True)
        self.runner = LocalRunner()
        self.settings = RunSettings(runner=self.runner, factory=standin.engine)

    @property
    def _xids(self) -> Any:
        """The engine leaves names to the target; stand-ins for it name tables themselves."""
        return tuple if self.settings.factory is engine_for else None

    def write(self, name: str, data: bytes) -> Path:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def write_two_files(self) -> int:
        """Two files, a batch each, with rows for two tables and the dead letters; returns the number of messages."""
        for name in ("a", "b"):
            records = [{"protocol": "X", "t": "ab"[i % 2], "n": f"{name}{i}"} for i in range(20)]
            text = "".join(json.dumps(record) + "\n" for record in records)
            self.write(name, text.encode() + b"bad\n")
        return 42

    def land(
        self,
        source: Path | None = None,
        *,
        at: Callable[[str], None] = no_stop,
        engine: dict[str, Any] | None = None,
        name: str = "c1",
        **settings: Any,
    ) -> Report:
        catalogue = Catalogue(name, orjson.dumps(engine or {}), xids=self._xids)
        run_settings = replace(self.settings, **settings)
        return land_files(run_settings, source or self.source, catalogue, Target(self.to, at))

    def replay(
        self,
        *,
        at: Callable[[str], None] = no_stop,
        engine: dict[str, Any] | None = None,
        name: str = "c2",
        codes: tuple[str, ...] = (),
        definitions: tuple[str, ...] = (),
        check_endpoint: Callable[[str], None] = lambda _: None,
        **settings: Any,
    ) -> Report:
        catalogue = Catalogue(name, orjson.dumps(engine or {}), check_endpoint, xids=self._xids)
        chosen = DeadLetterFilter(codes=list(codes), definitions=list(definitions))
        return replay_dead_letters(replace(self.settings, **settings), catalogue, Target(self.to, at), chosen)

    def die(self, point: str, times: int = 0, *, run: str = "land", record: str = "", **settings: Any) -> None:
        """Land or replay in another process that ends, without handlers, when it reaches `point` for the (times + 1)-th
        time, or when a task reads a record that contains `record`."""
        settings = {"name": "old", "batch_bytes": 1, "table_format": self.settings.table_format} | settings
        arguments = [str(self.root), str(self.to), run, point, times, settings]
        assert exit_code(arguments, os.environ | {"STANDIN_DIE": record}) == (KILLED_IN_TASK if record else KILLED)

    def rows(self, table: str = "*") -> list[dict[str, Any]]:
        """What any reader of Parquet sees, by file and line; in a store, what a reader of its tables sees, which are
        those of Delta by default."""
        if isinstance(self.to, Path):
            files = sorted(self.to.glob(f"{table}/*.parquet"))
        else:
            reader = FORMATS[self.settings.table_format or "delta"]
            names = [name for name in folders_in(self.to) if name != "_wirebook"] if table == "*" else [table]
            files = [file for name in names for file in reader.files(TablePlace(self.to, name))]
        rows = [row for file in files for row in pq.read_table(parquet_source(file), partitioning=None).to_pylist()]
        return sorted(rows, key=lambda row: (row.get("_file") or row["_source_file"], row["_line"], row["_index"]))

    def places(self, table: str = "*") -> list[tuple[str, int]]:
        return [(row["_file"], row["_line"]) for row in self.rows(table)]

    def check_conserved(self, expected: int) -> None:
        """Every message once: no place twice, as many as expected."""
        places = Counter((row["_file"], row["_line"], row["_index"]) for row in self.rows())
        assert not [place for place, count in places.items() if count > 1]
        assert places.total() == expected


# -- the processes that die -----------------------------------------------------------------------------------------


@cache
def process_server() -> subprocess.Popen[str]:
    """Starts processes that have imported everything, each a second faster than Python itself would."""
    command, pipe = [sys.executable, "-m", "tests.landing.workspace"], subprocess.PIPE
    server = subprocess.Popen(command, cwd=PROJECT, stdin=pipe, stdout=pipe, text=True)
    atexit.register(server.communicate)
    return server


def exit_code(arguments: list[Any], environment: Mapping[str, str]) -> int:
    """Run `run_until` in a process of its own; returns how it ends."""
    server = process_server()
    assert server.stdin
    assert server.stdout
    server.stdin.write(json.dumps([arguments, {**environment}]) + "\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def serve_processes() -> None:
    """Run `run_until` in a process for each line of the standard input, and print how it ended."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            arguments, environment = json.loads(line)
            os.environ.clear()
            os.environ.update(environment)
            run_until(*arguments)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def run_until(root: str, to: str, run: str, point: str, times: int, settings: dict[str, Any]) -> None:
    """Land or replay, and end the process at `point`."""
    countdown = times

    def at(reached: str) -> None:
        nonlocal countdown
        countdown -= reached == point
        if countdown < 0:
            os._exit(KILLED)

    getattr(Workspace(Path(root), to), run)(at=at, **settings)


if __name__ == "__main__":
    serve_processes()
