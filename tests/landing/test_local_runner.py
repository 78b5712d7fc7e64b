"""Landing without Spark: the tasks of a batch in processes of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.landing.workspace import STANDIN, Workspace
from wirebook.landing.runs.local_runner import LocalRunner
from wirebook.landing.runs.settings import Tasks
from wirebook.landing.runs.task import Job, TaskResult
from wirebook.problems import WirebookError

MEBIBYTE = 1 << 20


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace with files for three tasks, whose processes can import the stand-in engine."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STANDIN), *filter(None, [os.environ.get("PYTHONPATH")])]))
    workspace = Workspace(tmp_path)
    for number in range(3):
        line = json.dumps({"t": f"t{number}", "text": f"{number}" * 5000}).encode() + b"\n"
        workspace.write(f"{number}.jsonl", line * (MEBIBYTE // len(line) + 1))
    return workspace


def test_tasks_in_processes_land_what_tasks_in_one_process_land(workspace: Workspace, tmp_path: Path) -> None:
    expected = workspace.land()
    rows = workspace.rows()
    workspace.to = tmp_path / "other"
    assert workspace.land(runner=LocalRunner(3)).closing_line() == expected.closing_line()
    assert workspace.rows() == rows


def test_at_most_so_many_processes_run_at_once(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    most = 0

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            nonlocal most
            super().__init__(*args, **options)
            started.append(self)
            most = max(most, sum(process.poll() is None for process in started))

    monkeypatch.setattr(subprocess, "Popen", Popen)
    runner = LocalRunner(3)
    planned = workspace.land(runner=runner)
    assert planned.files == len(started) == 3
    started.clear()
    workspace.to, most, runner.parallelism = workspace.root / "other", 0, 1
    runner_of_more = PlannedFor(runner, 3)
    assert workspace.land(runner=runner_of_more).closing_line() == planned.closing_line()
    assert (len(started), most) == (3, 1)


class PlannedFor:
    """Runs the tasks that were planned for more processes, as after a kill of a larger run."""

    def __init__(self, runner: LocalRunner, parallelism: int) -> None:
        self._runner, self.parallelism = runner, parallelism

    def __call__(self, job: Job, tasks: Tasks) -> list[TaskResult]:
        return self._runner(job, tasks)


def test_ended_process_is_reported_and_the_next_run_completes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_DIE", "11111")
    with pytest.raises(WirebookError, match=r"worker-failed: .*exit code 9"):
        workspace.land(runner=LocalRunner(3))
    assert not workspace.rows()
    monkeypatch.delenv("STANDIN_DIE")
    report = workspace.land(runner=LocalRunner(3), name="c2")
    workspace.check_conserved(report.landed)
    assert {row["_file"] for row in workspace.rows()} == {"0.jsonl", "1.jsonl", "2.jsonl"}


def test_processes_end_when_the_run_is_terminated(workspace: Workspace, tmp_path: Path) -> None:
    """Without a traceback, although nobody reads their results."""
    (tmp_path / "c.xreg.json").write_text('{"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {}}}}')
    program = f"""if True:
        import os, signal, subprocess
        from wirebook.landing import land
        from wirebook.landing.runs.local_runner import LocalRunner
        class Popen(subprocess.Popen):
            count = 0
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                Popen.count += 1
                if Popen.count == 3:
                    os.kill(os.getpid(), signal.SIGTERM)
        subprocess.Popen = Popen
        land({str(workspace.source)!r}, {str(tmp_path / "c.xreg.json")!r}, {str(tmp_path / "tables")!r},
             runner=LocalRunner(3))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "", "")


def test_processes_end_when_the_run_is_interrupted(tmp_path: Path) -> None:
    source, events = tmp_path / "source", {"specversion": "1.0", "source": "/", "type": "t"}
    source.mkdir()
    for number in range(2):
        lines = (json.dumps({**events, "id": str(row), "data": "x" * 200}) for row in range(20_000))
        (source / f"{number}.jsonl").write_text("\n".join(lines))
    (tmp_path / "c.xreg.json").write_text('{"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {}}}}')
    program = f"""if True:
        import os, signal, subprocess, threading
        from wirebook.cli import main
        class Popen(subprocess.Popen):
            def __init__(self, *args, **options):
                super().__init__(*args, **options)
                threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        subprocess.Popen = Popen
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main(["land", {str(source)!r}, "--catalog", {str(tmp_path / "c.xreg.json")!r}, "--to",
              {str(tmp_path / "tables")!r}, "--local", "--json"])
    """
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:  # else landing was faster than the interrupt
        assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (130, "", "interrupted")
    assert time.monotonic() - started < 60  # the streams are closed: no process has them any more
