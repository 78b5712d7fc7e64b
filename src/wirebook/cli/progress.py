"""Progress on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from wirebook.cli.output import print_note
from wirebook.core.counting import counted

if TYPE_CHECKING:
    from wirebook.landing.runs.settings import Runner

POLL_SECONDS: Final = 0.2
FIRST_LINE, LINE_SECONDS = 0.8, 5.0
"""Seconds before the first line, so that a run with nothing to do prints none, and between lines."""


class ProgressBar:
    """Shows the current step, the percentage of the source's bytes that has been read, and the messages so far. Shows
    nothing if `quiet`."""

    def __init__(self, step: str = "reading the list of source files", *, quiet: bool = False) -> None:
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[messages]:,} messages"),
        )
        self._bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True)
        self._quiet = quiet
        self._draws = not quiet and console.is_terminal and sys.stderr.isatty() and not console.is_dumb_terminal
        self._task = self._bar.add_task(step, total=None, messages=0)
        self._before = (0, 0)
        self._progress_folder: Path | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> ProgressBar:
        if self._draws:
            self._bar.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self._draws:
            self._bar.stop()

    def begin_step(self, step: str) -> None:
        """Show the name of the next step."""
        self._bar.update(self._task, description=step)

    def runner(self, *, local: bool) -> Runner:
        """Return the runner of landing tasks: Spark, which starts with the first task, or this machine if `local`."""
        if local:
            from wirebook.landing.runs.local_runner import LocalRunner  # noqa: PLC0415 (half a second)

            return LocalRunner()
        from wirebook.spark.runner import SparkRunner  # noqa: PLC0415

        return SparkRunner(self.start_spark)

    def start_spark(self, settings: Mapping[str, str] | None = None) -> Any:
        """Start a Spark session and show this as a step. `settings` are those of `wirebook.spark.session.session`."""
        from wirebook.spark.session import session  # noqa: PLC0415 (a second)

        self.begin_step("starting Spark")
        handler = signal.getsignal(signal.SIGINT)
        try:
            return session(settings=settings)
        finally:  # PySpark's handler asks Java to cancel jobs, and fails during a call to Java
            signal.signal(signal.SIGINT, handler)

    def begin(self, total: int) -> None:
        """Set the number of bytes to read."""
        self._bar.update(self._task, total=total or None)

    @contextmanager
    def during(self, progress_folder: str) -> Iterator[None]:
        """Show the progress files that tasks write to `progress_folder`, until the batch is committed."""
        self.begin_step("landing")
        self._progress_folder = Path(progress_folder)
        try:
            yield
        finally:
            self._before = self._update(self._progress_folder)
            self._progress_folder = None

    def _follow(self) -> None:
        next_line = time.monotonic() + FIRST_LINE
        while not self._done.wait(POLL_SECONDS):
            if (progress_folder := self._progress_folder) is not None:
                with suppress(OSError):  # the batch has just been committed
                    self._update(progress_folder)
            if not (self._draws or self._quiet) and time.monotonic() >= next_line:
                print_note(self._line())
                next_line = time.monotonic() + LINE_SECONDS

    def _line(self) -> str:
        task = self._bar.tasks[0]
        share = f", {task.percentage:.0f} %" if task.total else ""
        messages = task.fields["messages"]
        count = f", {counted(messages, 'message')}" if messages else ""
        return f"{task.description}{share}{count} ({task.elapsed or 0:.0f} s)"

    def _update(self, progress_folder: Path) -> tuple[int, int]:
        weight, messages = (
            sum(column) for column in zip(self._before, *_read_progress_files(progress_folder), strict=True)
        )
        self._bar.update(self._task, completed=weight, messages=messages)
        return weight, messages


def _read_progress_files(progress_folder: Path) -> Iterator[tuple[int, int]]:
    """Yield the bytes and messages of every task that has written its progress."""
    for path in progress_folder.iterdir():
        with suppress(OSError, ValueError):
            weight, messages = path.read_text().split()
            yield int(weight), int(messages)
