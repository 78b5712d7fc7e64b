"""Kills `wirebook serve` with SIGKILL while clients write to it, restarts it, and checks that no write is lost.

Each run starts servers on the database of earlier runs, lets clients write for a moment, kills one server and starts
another one. Every acknowledged request must be stored completely, with its event. Every other request is stored
completely or not at all, and the database file is intact. Some runs kill a server while it creates its database. On
PostgreSQL there are two servers, and the other one must continue without errors.

    ./run kill-server [--runs 200] [--seed 1] [--postgresql] [--short]
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.httpapi.killed import (  # noqa: E402
    MODEL,
    SHARED,
    Group,
    State,
    Writer,
    check_events,
    check_groups,
    check_shared,
    read_events,
)
from tests.httpapi.postgres import is_installed, new_database, running_postgresql  # noqa: E402
from tests.httpapi.servers import Server, launch, when_ready  # noqa: E402

CLIENTS, GROUPS = 8, 3
RENEW = 10
"""Number of runs per database."""

LONGEST = 1.0
"""Maximum time in seconds that clients write."""


class Lost(Exception):
    """A guarantee was violated."""


@dataclass
class Bed:
    """A database, its servers, and its expected content."""

    folder: Path
    db: str
    rng: random.Random
    groups: list[list[Group]] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)
    number: int = 0

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def start(self) -> None:
        self.servers.append(when_ready(self._launch(), self.log))

    def _launch(self) -> subprocess.Popen[str]:
        return launch(self.db, self.log, "--model", str(self.folder / "model.json"))

    def kill_at_the_start(self) -> None:
        """Kill a server while it creates or opens its database."""
        starting = self._launch()
        time.sleep(self.rng.uniform(0, 2))
        starting.kill()
        starting.wait()
        assert starting.stdout
        starting.stdout.close()

    def begin(self, count: int) -> None:
        for _ in range(count):
            self.start()
        with self.servers[0].client() as client:
            answer = client.put(SHARED, json={"number": 0})
            if not answer.is_success:
                raise Lost(f"{SHARED}: {answer.status_code} {answer.text}")
        self.groups = [[Group(f"/dirs/c{one}-{two}") for two in range(GROUPS)] for one in range(CLIENTS)]

    def end(self) -> None:
        for server in self.servers:
            server.kill()
            if server.process.stdout:
                server.process.stdout.close()
        self.servers.clear()

    # -- one run --------------------------------------------------------------------------------------------------

    def run(self) -> tuple[int, int]:
        """Write, kill, restart and check. Return the numbers of acknowledged and of other stored requests."""
        with self.servers[0].client() as client:
            epoch, (numbers, _) = epoch_of(client), read_events(client, "0")
        writers = self._write_and_kill()
        if refused := [writer.refused for writer in writers if writer.refused]:
            raise Lost(f"a request was refused: {refused[0]}")
        self.start()
        with self.servers[-1].client() as client:
            done = self._look(client, writers, epoch, str(numbers[-1]))
        return sum(len(writer.correlations) for writer in writers), done

    def _look(self, client: httpx.Client, writers: list[Writer], epoch: int, last: str) -> int:
        """Return the number of requests stored without an acknowledgement since `epoch` and `last`. Raises: Lost"""
        groups = [group for groups_ in self.groups for group in groups_]
        problems = [*check_groups(client, groups), *check_shared((epoch, epoch_of(client)), writers)]
        done = epoch_of(client) - epoch - sum(len(writer.epochs) for writer in writers)
        done += sum(group.seen != group.known for group in groups)
        problems += [*check_events(client, last, writers, done), *self._unsound()]
        if problems:
            raise Lost("\n".join(problems))
        for group in groups:
            group.known, group.open = cast("State", group.seen), None
        return done

    def _write_and_kill(self) -> list[Writer]:
        writers = []
        for place, groups in enumerate(self.groups):
            server = self.servers[place % len(self.servers)]
            self.number += 1_000_000
            writers.append(Writer(server.base, groups, self.rng.getrandbits(32), self.number))
        self._wait_for_an_answer(writers)
        time.sleep(self.rng.uniform(0, LONGEST))
        victim = self.servers.pop(self.rng.randrange(len(self.servers)))
        victim.kill()
        if self.servers:
            time.sleep(0.2)  # the other clients continue
        for writer in writers:
            writer.ending.set()
        for writer in writers:
            writer.join(60)
        return writers

    def _wait_for_an_answer(self, writers: list[Writer]) -> None:
        until = time.monotonic() + 30
        while not any(writer.correlations for writer in writers):
            if time.monotonic() > until:
                raise Lost("nothing was answered")
            time.sleep(0.001)

    def _unsound(self) -> Iterator[str]:
        """Yield the errors of SQLite's integrity checks and of the server logs."""
        if self.db.startswith("sqlite"):
            connection = sqlite3.connect(self.folder / "registry.db")
            for check in ("integrity_check", "foreign_key_check"):
                rows = connection.execute(f"PRAGMA {check}").fetchall()
                if rows not in ([], [("ok",)]):
                    yield f"{check}: {rows[:3]}"
            connection.close()
        if "Traceback" in self.log.read_text():
            yield f"a server failed: {self.log.read_text()[-3000:]}"


def epoch_of(client: httpx.Client) -> int:
    return int(client.get(SHARED).json()["epoch"])


# -- all runs ------------------------------------------------------------------------------------------------------


def runs(address: str | None, seed: int, count: int) -> tuple[int, int]:
    """Run on SQLite or PostgreSQL. Return the numbers of acknowledged and of unacknowledged but stored requests."""
    kind = "PostgreSQL" if address else "SQLite"
    answered = unanswered = 0
    for first in range(0, count, RENEW):
        with a_bed(address, random.Random(seed + first)) as bed:  # noqa: S311
            for run in range(first, min(first + RENEW, count)):
                began = time.monotonic()
                try:
                    done, more = bed.run()
                except (Lost, AssertionError, httpx.HTTPError) as error:
                    raise SystemExit(
                        f"{kind}, seed {seed}, run {run}: {error}\n{bed.log.read_text()[-3000:]}"
                    ) from error
                answered, unanswered = answered + done, unanswered + more
                seconds = time.monotonic() - began
                print(f"{kind}, run {run}: {done} acknowledged, {more} more stored ({seconds:.1f} s)", flush=True)
    return answered, unanswered


@contextmanager
def a_bed(address: str | None, rng: random.Random) -> Iterator[Bed]:
    """Create a database whose first servers were killed while they created it."""
    with tempfile.TemporaryDirectory(prefix="kill-server-") as folder:
        db = new_database(address, "killed") if address else f"sqlite:///{folder}/registry.db"
        Path(folder, "model.json").write_text(json.dumps(MODEL))
        bed = Bed(Path(folder), db, rng)
        try:
            bed.kill_at_the_start()
            bed.begin(2 if address else 1)
            yield bed
        finally:
            bed.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="number of kills on SQLite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgresql", action="store_true", help="use PostgreSQL instead of SQLite")
    parser.add_argument("--short", action="store_true", help="10 runs, and 2 on PostgreSQL if installed")
    options = parser.parse_args()
    began, counts = time.monotonic(), []
    if not options.postgresql:
        counts.append(runs(None, options.seed, 10 if options.short else options.runs))
    if options.postgresql or (options.short and is_installed()):
        with running_postgresql() as address:
            counts.append(runs(address, options.seed, 2 if options.short else options.runs))
    answered, unanswered = map(sum, zip(*counts, strict=True))
    seconds = time.monotonic() - began
    print(f"{answered} acknowledged requests, all stored; {unanswered} more stored completely ({seconds:.0f} s)")


if __name__ == "__main__":
    main()
