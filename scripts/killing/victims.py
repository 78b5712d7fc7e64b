"""The processes of a command, and the choice of those to kill."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process, identified by its id and start time, because ids are reused."""

    pid: int
    parent: int
    started: int
    name: str

    def kill(self, signal_: int) -> None:
        now = process(self.pid)
        if now and now.started == self.started:  # else the id belongs to another process
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal_)


def process(pid: int) -> Process | None:
    try:
        name, _, fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except OSError:
        return None
    values = fields.split()
    return None if values[0] == "Z" else Process(pid, int(values[1]), int(values[19]), name.partition("(")[2])


def descendants(pid: int) -> list[Process]:
    """Return a process and its descendants, parents first."""
    processes = [process_ for path in Path("/proc").glob("[0-9]*") if (process_ := process(int(path.name)))]
    tree = [process_ for process_ in processes if process_.pid == pid]
    for process_ in tree:
        tree += [child for child in processes if child.parent == process_.pid]
    return tree


def victims(family: list[Process], kind: str, rng: random.Random) -> list[Process]:
    """Return the processes to kill: one of a kind, or all if there is none."""
    jvms = [process_ for process_ in family if process_.name == "java"]
    below = [
        process_
        for process_ in family
        if jvms and process_.parent != family[0].pid and process_.name.startswith("python")
    ]
    chosen = {"driver": family[:1], "jvm": jvms[:1], "worker": rng.sample(below, min(1, len(below)))}.get(kind)
    return chosen or family
