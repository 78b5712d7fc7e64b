"""A progress bar on standard error, from the marks that tasks leave; nothing when nobody looks at a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

POLL_SECONDS = 0.2


class ProgressBar:
    """Bytes read of all bytes to read, and messages so far."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[messages]:,} messages"),
        )
        self._bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, transient=True)
        self._shown = console.is_terminal
        self._task = self._bar.add_task("looking at the source", total=None, messages=0)
        self._before = (0, 0)

    def __enter__(self) -> ProgressBar:
        if self._shown:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._bar.stop()

    def say(self, what: str) -> None:
        """What is going on now."""
        self._bar.update(self._task, description=what)

    def start_spark(self) -> Any:
        """A session, and word of it starting."""
        from wirebook.spark.session import session  # noqa: PLC0415 (a second)

        self.say("starting Spark")
        return session()

    def begin(self, total: int) -> None:
        self._bar.update(self._task, total=total or None)

    @contextmanager
    def during(self, marks: str) -> Iterator[None]:
        """Follows the marks in a folder until the batch is done."""
        self.say("landing")
        done = threading.Event()
        thread = threading.Thread(target=self._follow, args=(Path(marks), done), daemon=True)
        if self._shown:
            thread.start()
        try:
            yield
        finally:
            done.set()
            if self._shown:
                thread.join()
            self._before = self._show(Path(marks))

    def _follow(self, marks: Path, done: threading.Event) -> None:
        while not done.wait(POLL_SECONDS):
            self._show(marks)

    def _show(self, marks: Path) -> tuple[int, int]:
        weight, messages = (sum(column) for column in zip(self._before, *_read_marks(marks), strict=True))
        self._bar.update(self._task, completed=weight, messages=messages)
        return weight, messages


def _read_marks(marks: Path) -> Iterator[tuple[int, int]]:
    """(bytes, messages) of every task that has left a mark."""
    for path in marks.iterdir():
        with suppress(OSError, ValueError):
            weight, messages = path.read_text().split()
            yield int(weight), int(messages)
