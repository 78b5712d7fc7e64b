"""Commands that stream, in processes of their own: what they print, until they end or are ended."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

SECONDS = 240
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom wirebook.cli import main; main()"
)


TRACEBACK = "Traceback (most recent call last):"


def own_tracebacks(text: str) -> list[str]:
    """The tracebacks in a standard error, except those of Spark's own Python processes, which look up data sources and
    end a minute later. On a busy machine they notice that Spark has closed their connection before it kills them.

    Spark may kill such a process while it prints: its traceback then ends early, and may name no file. Wirebook's own
    tracebacks are complete if the command ends with the expected exit code.
    """
    tracebacks = text.split(TRACEBACK)[1:]
    files = [[line for line in part.splitlines() if line.startswith('  File "')] for part in tracebacks]
    is_sparks = [all("pyspark.zip/" in line or "<frozen runpy>" in line for line in lines) for lines in files]
    return [TRACEBACK + part for part, is_other in zip(tracebacks, is_sparks, strict=True) if not is_other]


@contextmanager
def started(environment: Mapping[str, str], arguments: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A command that runs; it is killed at the end."""
    pipe, command = subprocess.PIPE, [sys.executable, "-c", PROGRAM, *arguments]
    variables = os.environ | {**environment}
    with subprocess.Popen(
        command, env=variables, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run(environment: Mapping[str, str], arguments: list[str], code: int = 0) -> tuple[list[dict[str, Any]], str]:
    """The objects that a command prints, and its standard error."""
    with started(environment, arguments) as process:
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == code, err
    assert not own_tracebacks(err), err
    assert "\tat " not in err, err
    return [json.loads(line) for line in out.splitlines()], err


@contextmanager
def producing(produce: Callable[[], object], pause: float) -> Iterator[None]:
    """Call `produce` again and again during the block, with a pause (seconds) before each call."""
    is_over = threading.Event()

    def produce_all() -> None:
        while not is_over.wait(pause):
            produce()

    producer = threading.Thread(target=produce_all)
    producer.start()
    try:
        yield
    finally:
        is_over.set()
        producer.join()


def kill_while_producing(
    arguments: list[str], produce: Callable[[], None], kills: int, environment: Mapping[str, str] | None = None
) -> None:
    """Start a stream and kill its driver at a random moment, so many times, while `produce` is called again and
    again."""
    dice = random.Random(time.time_ns())
    with producing(produce, 0.05):
        for _ in range(kills):
            with started(environment or {}, arguments) as process:
                stream = Watched(process)
                stream.wait_for(lambda s=stream: any(note.startswith("streaming") for note in s.notes))
                time.sleep(dice.uniform(0, 8))
                process.kill()


class Watched:
    """A command that runs, and the lines that it has printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.batches, self.notes = process, list[dict[str, Any]](), list[str]()
        self._threads = [threading.Thread(target=self._read_out), threading.Thread(target=self._read_notes)]
        for thread in self._threads:
            thread.start()

    def _read_out(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.batches.append(json.loads(line))

    def _read_notes(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.notes.append(line)

    def wait_for(self, condition: Any) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert self.process.poll() is None, self.notes
            assert time.monotonic() < end, (self.batches, self.notes)
            time.sleep(0.1)

    def read(self) -> int:
        return sum(batch["read"] for batch in self.batches if "batch" in batch)

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for the end, which has no traceback; returns the exit code."""
        code = self.process.wait(SECONDS)
        for thread in self._threads:
            thread.join()
        notes = "".join(self.notes)
        assert not own_tracebacks(notes), notes
        assert "\tat " not in notes, notes
        return code
