"""Measures the CPU time and the memory of this process and its descendants.

CPU time is the user and system time of the driver, the JVM and the Python workers. Linux only (`/proc/PID/stat`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class _Process(NamedTuple):
    parent: int
    command: str
    ticks: int
    started: int
    memory: int


def _processes() -> dict[int, _Process]:
    processes = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError, ValueError, IndexError):
                processes[int(entry)] = _read(entry)
    return processes


def _read(pid: str) -> _Process:
    head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    values = (
        tail.split()
    )  # from the third: state, ppid, ...; utime is the 14th of all, starttime the 22nd, rss the 24th
    ticks = int(values[11]) + int(values[12])
    return _Process(int(values[1]), head.partition("(")[2], ticks, int(values[19]), int(values[21]) * PAGE)


def family(root: int | None = None) -> dict[int, _Process]:
    """This process, or another one, and its descendants."""
    everything = _processes()
    members = {root or os.getpid()}
    while grown := {pid for pid, process in everything.items() if process.parent in members} - members:
        members |= grown
    return {pid: everything[pid] for pid in members if pid in everything}


class Clock:
    """The CPU time of a family, including members that have ended.

    Polls four times a second: the time that a process uses after its last poll is lost. The times that the kernel keeps
    for ended children are not used, because a parent that ignores SIGCHLD has none.
    """

    def __init__(self, root: int | None = None, every: float = 0.25) -> None:
        self._root = root
        self._ticks: dict[tuple[int, int], int] = {}
        self._lock, self._every = threading.Lock(), every
        threading.Thread(target=self._watch, daemon=True).start()

    def seconds(self) -> float:
        with self._lock:
            for pid, process in family(self._root).items():
                self._ticks[pid, process.started] = process.ticks
            return sum(self._ticks.values()) / TICK

    def _watch(self) -> None:
        while True:
            time.sleep(self._every)
            self.seconds()


@cache
def _clock() -> Clock:
    return Clock()


def cpu_seconds() -> float:
    return _clock().seconds()


class Sample(NamedTuple):
    """One run: CPU seconds, wall seconds and the result."""

    cpu: float
    wall: float
    result: Any = None


@dataclass
class Runs:
    """Several runs of one job on `messages` messages."""

    label: str
    messages: int
    samples: list[Sample] = field(default_factory=list)
    first: Sample | None = None

    @property
    def best(self) -> float:
        """CPU microseconds per message in the best run."""
        return min(sample.cpu for sample in self.samples) * 1e6 / self.messages

    @property
    def middle(self) -> float:
        return median(sample.cpu for sample in self.samples) * 1e6 / self.messages

    @property
    def wall(self) -> float:
        """Wall seconds of the best run."""
        return min(sample.wall for sample in self.samples)


def measured(work: Callable[[], Any]) -> Sample:
    cpu, wall = cpu_seconds(), time.perf_counter()
    result = work()
    return Sample(cpu_seconds() - cpu, time.perf_counter() - wall, result)


def in_turn(works: dict[str, Callable[[], Any]], messages: int, repeats: int) -> dict[str, Runs]:
    """Run each job once to warm up, then all in turn, so that a slow phase of the machine affects all alike."""
    runs = {label: Runs(label, messages, first=measured(work)) for label, work in works.items()}
    for _ in range(repeats):
        for label, work in works.items():
            runs[label].samples.append(measured(work))
    return runs


# -- memory ---------------------------------------------------------------------------------------------------------

ROLES = ("driver", "java", "workers")


def memory_now(root: int | None = None) -> dict[str, int]:
    """Bytes in memory of this process, or of another one, and its descendants, by role.

    If the kernel reports them, pages that a family shares count once, and pages of files, such as libraries, do not
    count: how many of them belong to a process depends on which other programs run.
    """
    total = dict.fromkeys(ROLES, 0)
    for pid, process in family(root).items():
        role = "driver" if pid == (root or os.getpid()) else "java" if process.command == "java" else "workers"
        total[role] += _anonymous(pid) or process.memory
    return total


def _anonymous(pid: int) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return 0


@contextmanager
def peak_memory(every: float = 0.25) -> Iterator[dict[str, int]]:
    """Yield a dictionary with the peak memory of each role while the block runs."""
    peak, done = dict.fromkeys(ROLES, 0), threading.Event()

    def watch() -> None:
        while not done.wait(every):
            for role, size in memory_now().items():
                peak[role] = max(peak[role], size)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
