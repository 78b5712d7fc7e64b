"""Ctrl-C ends every command with exit code 130 and one line at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
CATALOG = ["--catalog", str(EXAMPLES / "bikes.xreg.json")]
STARTED = "/messagegroups/rides/messages/started"


def start(program: str) -> subprocess.Popen[str]:
    """A process in a process group of its own, as a shell starts a command.

    It handles SIGINT even where the tests run in the background of a shell, which makes their processes ignore it.
    """
    restore = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, "-c", restore + program]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def interrupting(when: str, arguments: list[str]) -> str:
    """A program that runs a command line and sends itself SIGINT when the module `when` is imported."""
    return f"""if True:
        import os, signal, sys

        class Interrupt:
            def find_spec(self, name, path=None, target=None):
                if name == {when!r}:
                    sys.meta_path.remove(self)
                    os.kill(os.getpid(), signal.SIGINT)

        sys.meta_path.insert(0, Interrupt())
        from wirebook.cli import main
        main({arguments!r})
    """


@pytest.mark.parametrize("when", ["wirebook.cli.app", "typer", "wirebook.cli.match", "wirebook.catalog", "numpy"])
def test_interrupt_during_imports_exits_with_one_line(when: str) -> None:
    process = start(interrupting(when, ["match", str(EXAMPLES / "captures"), *CATALOG]))
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["match", "-", *CATALOG],
        ["explain", "-", *CATALOG],
        ["transform", "-", "--to", STARTED, *CATALOG],
        ["build", STARTED, "--data", "-", *CATALOG],
    ],
)
def test_interrupt_while_reading_input_exits_with_one_line(arguments: list[str]) -> None:
    program = f"""if True:
        import sys, threading
        from wirebook.cli import main
        read = sys.stdin.buffer
        class Input:
            def read(self, *size):
                print("reading", flush=True)
                return read.read(*size)
        sys.stdin = type("Stdin", (), {{"buffer": Input()}})()
        main({arguments!r})
    """
    process = start(program)
    assert process.stdout
    assert process.stdout.readline() == "reading\n"
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.spark
@pytest.mark.parametrize("delay", [0.0, 1.0, 4.0])
def test_interrupt_while_spark_runs_leaves_no_process(delay: float, tmp_path: Path) -> None:
    arguments = ["land", str(EXAMPLES / "captures"), *CATALOG, "--to", str(tmp_path / "tables"), "--json"]
    program = f"""if True:
        import os, signal, subprocess, threading
        from wirebook.cli import main

        class Popen(subprocess.Popen):
            def __init__(self, command, *args, **options):
                super().__init__(command, *args, **options)
                if "spark-submit" in str(command):
                    threading.Timer({delay}, os.killpg, (0, signal.SIGINT)).start()

        subprocess.Popen = Popen
        main({arguments!r})
    """
    process = start(program)
    out, err = process.communicate(timeout=300)  # returns when no process has the streams any more
    if delay > 1 and out:  # landing was faster than the interrupt
        assert process.returncode in (0, 130)
        return
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err


@pytest.mark.parametrize("delay", [0.2, 1.0])
def test_interrupt_while_processes_generate_messages_prints_one_line(delay: float, tmp_path: Path) -> None:
    arguments = ["demo", "--messages", "2000000", "--to", str(tmp_path / "demo")]
    process = start(f"from wirebook.cli import main\nif __name__ == '__main__':\n    main({arguments!r})")
    assert process.stderr
    assert process.stderr.readline().startswith("generating ")
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (130, "interrupted\n")


def test_interrupt_while_processes_start_prints_one_line(tmp_path: Path) -> None:
    arguments = ["demo", "--messages", "2000000", "--to", str(tmp_path / "demo")]
    program = f"""if True:
        import os, signal
        from multiprocessing import popen_spawn_posix
        from wirebook.cli import main

        class Popen(popen_spawn_posix.Popen):
            def _launch(self, process):
                super()._launch(process)
                os.killpg(0, signal.SIGINT)

        if __name__ == "__main__":
            popen_spawn_posix.Popen = Popen
            main({arguments!r})
    """
    process = start(program)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[1:] == ["interrupted"]


def test_interrupt_stops_a_server_gracefully(tmp_path: Path) -> None:
    arguments = ["serve", "--port", "0", "--db", f"sqlite:///{tmp_path}/registry.db"]
    process = start(f"from wirebook.cli import main; main({arguments!r})")
    assert process.stdout
    assert process.stdout.readline().startswith("listening on ")
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err
