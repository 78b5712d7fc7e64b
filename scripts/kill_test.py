"""Kills `wirebook land` and `wirebook replay` with SIGKILL at random moments, repeats them, and checks that every
message landed exactly once.

Each run lands files of every type in small batches. One to three times it kills the whole process tree, the driver,
the JVM or a Python worker; meanwhile a file grows and the catalogue is edited. The next landing completes, and the
folder must equal that of an undisturbed landing: each message, by file, line and index, is in the same table or in
the dead letters, and none is there twice. Then the catalogue is corrected and the dead letters are replayed, with
further kills: each dead letter lands once and is resolved once. The runs alternate between table formats, with and
without staging. With `--store` the tables are in an S3 server (Delta Lake and Iceberg).

    ./run kill-test [--runs 30] [--seed 1] [--short] [--format delta] [--staging on] [--store]
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from killing.rows import READERS, Rows, landed_rows
from killing.stores import running_store, set_iceberg_catalogue, target_options
from killing.victims import Process, descendants, victims

from wirebook.landing.stores.locations import Location, files_in, location_of

TIMEOUT = 600
PROGRAM = "from wirebook.cli import main; main()"
VICTIMS = ("tree", "tree", "tree", "driver", "jvm", "worker")
TYPES = 6
BELOW = "300"
"""Definitions with fewer rows per task are staged: in most tasks, all."""


@dataclass(frozen=True)
class Kind:
    """A table format, with or without staging of rare definitions, in a folder or in an object `store`."""

    form: str
    staging: bool
    store: str | None = None

    def __str__(self) -> str:
        return self.form + (" with staging" if self.staging else "") + (" in S3" if self.store else "")


@dataclass(frozen=True)
class Expected:
    """The rows of an undisturbed landing, at first and after each growth of the source, and its duration; and the rows
    and duration of an undisturbed replay."""

    rows: list[Rows]
    seconds: float
    replayed: list[Rows]
    replay_seconds: float


# -- source and catalogue-------------------------------------------------------------------------------------------


def catalogue(note: str, *, corrected: bool = False) -> dict[str, Any]:
    """Return a catalogue of a few definitions. `note` changes only the fingerprint. The `corrected` catalogue has a
    definition for the events that match none, and does not require the number that other events lack."""
    number = {} if corrected else {"n": {"type": "integer"}}
    schema = {"type": "object", "properties": {"s": {"type": "string"}, **number}, "required": list(number)}
    names = [f"m{i}" for i in range(TYPES)] + ["other"] * corrected
    messages = {name: _definition(name, schema) for name in names}
    group = {"messagegroupid": "g", "description": note, "messages": messages}
    return {"specversion": "1.0-rc4", "registryid": "kill-test", "messagegroups": {"g": group}}


def _definition(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        "type": {"type": "string", "value": f"kill.{name}", "required": True},
        "source": {"type": "uritemplate", "value": "/plants/{plant}", "required": True},
    }
    payload = {"dataschemaformat": "JsonSchema/draft-07", "dataschema": schema}
    return {"messageid": name, "envelope": "CloudEvents/1.0", "envelopemetadata": metadata} | payload


def event(number: int) -> dict[str, Any]:
    """Return a structured event. Some match no definition, some violate their schema."""
    name = "other" if number % 41 == 0 else f"m{number % TYPES}"
    data = {"n": "no number" if number % 29 == 0 else number, "s": "x" * (number % 50)}
    return {
        "specversion": "1.0",
        "id": str(number),
        "source": f"/plants/p{number % 9}",
        "type": f"kill.{name}",
        "data": data,
    }


def record(number: int) -> bytes:
    """Return a line of a capture: a message, a (possibly empty) batch of events, a blank line or garbage."""
    if number % 53 == 0:
        return b"" if number % 2 else b'{"protocol":"HTTP","method"'
    kind, body = "cloudevents", json.dumps(event(number))
    if number % 47 == 0:
        kind, body = "cloudevents-batch", json.dumps([event(number + i) for i in range(number % 4)])
    headers = [["Content-Type", f"application/{kind}+json"]]
    line = {"protocol": "HTTP", "method": "POST", "target": "/", "headers": headers, "body": body}
    return json.dumps(line).encode()


def capture(first: int, count: int) -> bytes:
    return b"".join(record(number) + b"\n" for number in range(first, first + count))


def write_source(folder: Path, size: int) -> None:
    """Write files of every type: plain, compressed, Parquet, events per line and as one value."""
    (folder / "day 1").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(capture(0, size))
    (folder / "day 1" / "b.jsonl.gz").write_bytes(gzip.compress(capture(1_000_000, size // 4)))
    (folder / "day 1" / "c.zst").write_bytes(zstandard.compress(capture(2_000_000, size // 4)))
    events = (json.dumps(event(number)) + "\n" for number in range(3_000_000, 3_000_000 + size // 4))
    (folder / "events.jsonl").write_text("".join(events))
    (folder / "events.json").write_text(json.dumps([event(4_000_000 + i) for i in range(50)], indent=1))
    headers = [{"name": "content-type", "value": b"application/cloudevents+json"}]
    rows = [
        {"protocol": "KAFKA", "topic": "t", "headers": headers, "value": json.dumps(event(5_000_000 + i)).encode()}
        for i in range(size // 4)
    ]
    pairs = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
    schema = pa.schema([("protocol", pa.string()), ("topic", pa.string()), ("headers", pairs), ("value", pa.binary())])
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "f.parquet", row_group_size=max(size // 12, 1))


def grow(source: Path, size: int, times: int) -> None:
    """Append lines to the plain file; the lines depend only on the number of growths."""
    with (source / "a.jsonl").open("ab") as file:
        file.write(capture(6_000_000 + times * size, size // 8))


# -- a run ---------------------------------------------------------------------------------------------------------


@dataclass
class Bed:
    """A source, its target, the catalogue file, and the output of the runs."""

    root: Path
    rng: random.Random
    kind: Kind

    def __post_init__(self) -> None:
        self.source = self.root / "source"
        self.target = self._new_target()
        self.catalogue, self.out, self.err = (self.root / name for name in ("catalogue.json", "out", "err"))
        self.left: list[Process] = []
        self.corrected = False

    def _new_target(self) -> Location:
        name = f"{self.root.name}-{time.monotonic_ns()}"
        set_iceberg_catalogue(self.root / f"{name}.db")
        return location_of(f"{self.kind.store}/{name}") if self.kind.store else self.root / name

    def leave_target(self) -> None:
        """Begin with an empty target."""
        self.target = self._new_target()

    def write_catalogue(self, note: str, *, corrected: bool = False) -> None:
        self.corrected = corrected
        self.catalogue.write_text(json.dumps(catalogue(note, corrected=corrected)))

    def start(self) -> subprocess.Popen[bytes]:
        """Start a landing, or a replay after the catalogue was corrected."""
        program = [sys.executable, "-X", "faulthandler", "-c", PROGRAM]
        options = ["--catalog", str(self.catalogue), "--stage-below", BELOW if self.kind.staging else "0", "--json"]
        if self.corrected:
            program += ["replay", str(self.target)]
        else:
            program += ["land", str(self.source)]
            options += ["--batch-size", "1", *target_options(self.kind.form, self.target)]
        with self.out.open("wb") as out, self.err.open("wb") as err:  # surviving children would keep pipes open
            return subprocess.Popen([*program, *options], stdout=out, stderr=err)  # noqa: S603

    def wait(self, running: subprocess.Popen[bytes], seconds: float, what: str) -> int:
        """Return the exit code. If the process hangs, report its stacks and its descendants."""
        try:
            return running.wait(seconds)
        except subprocess.TimeoutExpired:
            family = descendants(running.pid)
            running.send_signal(signal.SIGABRT)  # faulthandler writes the stacks to standard error
            running.wait()
            for process_ in family:
                process_.kill(signal.SIGKILL)
            raise SystemExit(f"{what} did not end; its processes: {family}\n{self.err.read_text()}") from None

    def finish(self) -> dict[str, Any]:
        """Run a landing to its end and return its closing line."""
        return self._closing(self.wait(self.start(), TIMEOUT, "a landing"))

    def _closing(self, code: int) -> dict[str, Any]:
        if code:
            raise SystemExit(f"a landing failed with exit code {code}:\n{self.err.read_text()}")
        closing: dict[str, Any] = json.loads(self.out.read_bytes().splitlines()[-1])
        return closing

    def wait_for_a_task(self, running: subprocess.Popen[bytes]) -> None:
        """Wait until a task has written to a staging folder, or the process has ended."""
        before = self._written()
        while self._written() <= before and running.poll() is None:
            time.sleep(0.02)

    def _written(self) -> set[str]:
        """The files that tasks have written and the driver has not committed; in a store, all files of tables."""
        if isinstance(self.target, Path):
            return {str(path) for path in self.target.glob("_wirebook/staging/*/*/*")}
        return {str(path) for path, _ in self.target.below() if path.name.endswith(".parquet")}

    def time_work(self) -> tuple[dict[str, Any], float]:
        """Run a landing. Return its closing line and the time from its first task to its end."""
        running = self.start()
        self.wait_for_a_task(running)
        began = time.monotonic()
        code = self.wait(running, TIMEOUT, "the undisturbed landing")
        return self._closing(code), time.monotonic() - began

    def kill(self, work_seconds: float) -> str:
        """Start a landing and kill it at a random moment, usually after it has begun to read. Return what was killed;
        empty if the landing ended first."""
        running = self.start()
        if self.rng.random() < 0.85:
            self.wait_for_a_task(running)
        time.sleep(self.rng.uniform(0, work_seconds))
        kind = self.rng.choice(VICTIMS)
        family = descendants(running.pid)
        chosen = victims(family, kind, self.rng)
        for process_ in chosen:
            process_.kill(signal.SIGSTOP)
        for process_ in chosen:
            process_.kill(signal.SIGKILL)
        code = self.wait(running, TIMEOUT, f"a landing whose {kind} was killed")
        if self.rng.random() < 0.5:  # else surviving processes overlap with the next run
            for process_ in family:
                process_.kill(signal.SIGKILL)
        self.left += family
        errors = self.err.read_text()
        if "Traceback" in errors or (code >= 0 and code not in (0, 2)):
            raise SystemExit(f"a landing whose {kind} was killed ended with exit code {code}:\n{errors}")
        if not family:
            return ""
        return f"{kind} ({len(chosen)} of {len(family)} processes), batches begun: {self._batches()}"

    def _batches(self) -> int:
        """Return a number that changes whenever a batch begins."""
        names = {name.partition(".")[0] for name in files_in(self.target / "_wirebook" / "batches")}
        return max((int(name) for name in names if name.isdigit()), default=0)

    def rows(self) -> Rows:
        """Return the rows that a reader of the tables sees."""
        return landed_rows(self.kind.form, self.target)


def check(rows: Rows, expected: Rows, what: str) -> None:
    twice = [place for place, count in rows.items() if count > 1]
    missing, strange = expected - rows, rows - expected
    if twice or missing or strange:
        counts = f"{len(twice)} twice, {missing.total()} missing, {strange.total()} unexpected"
        some = [*twice[:3], *list(missing)[:3], *list(strange)[:3]]
        raise SystemExit(f"{what}: {counts}, among them {some}")


def check_partly(rows: Rows, expected: Rows, what: str) -> None:
    """Check that no row is unexpected or duplicate after a kill."""
    check(rows, Counter({place: count for place, count in expected.items() if place in rows}), what)


def reference(root: Path, size: int, growths: int) -> Expected:
    """Land the source with all its growths undisturbed, then replay. The result is the same for all kinds."""
    bed = Bed(root, random.Random(0), Kind("parquet", staging=False))  # noqa: S311
    write_source(bed.source, size)
    lines = [size]
    for times in range(1, growths + 1):
        grow(bed.source, size, times)
        lines.append(size + times * (size // 8))
    bed.write_catalogue("first")
    closing, seconds = bed.time_work()
    rows = bed.rows()
    check(rows, rows, "undisturbed")
    assert closing["read"] == rows.total() > 2 * size, closing
    bed.write_catalogue("corrected", corrected=True)
    replayed, replay_seconds = bed.time_work()
    after = bed.rows()
    check(after, after, "undisturbed")
    letters = Counter({row: count for row, count in rows.items() if row[0] == "dead_letters"})
    assert after.total() - rows.total() == 2 * replayed["landed"] > 0, replayed
    assert 0 < replayed["dead_lettered"] < letters.total(), replayed
    return Expected(
        [_until(rows, last) for last in lines], seconds, [_until(after, last) for last in lines], replay_seconds
    )


def _until(rows: Rows, last: int) -> Rows:
    """Return the rows of the source while the plain file had at most `last` lines."""
    return Counter({row: count for row, count in rows.items() if row[1] != "a.jsonl" or row[2] <= last})


def run(bed: Bed, seed: int, size: int, expected: Expected, kills: int) -> tuple[int, str]:
    """Kill a landing and its replay up to `kills` times. Return the number of kills and their description."""
    write_source(bed.source, size)
    bed.write_catalogue("first")
    lines, grown = _disturb(bed, seed, size, expected, bed.rng.randint(1, kills))
    closing = bed.finish()
    check(bed.rows(), expected.rows[grown], f"seed {seed}")
    last = bed.finish()
    assert (last["read"], last["skipped"]) == (0, expected.rows[grown].total()), (closing, last)
    bed.write_catalogue("corrected", corrected=True)
    replays = _disturb_replay(bed, seed, expected, grown, bed.rng.randint(1, kills))
    bed.finish()
    check(bed.rows(), expected.replayed[grown], f"seed {seed}, replayed")
    again = bed.finish()
    for path in bed.left:
        path.kill(signal.SIGKILL)
    assert again["landed"] == 0, again
    check(bed.rows(), expected.replayed[grown], f"seed {seed}, replayed twice")
    what = "; ".join(lines) + (f"; grew {grown} times" if grown else "") + "; replay: " + "; ".join(replays)
    return len(lines) + len(replays), what


def _disturb(bed: Bed, seed: int, size: int, expected: Expected, attempts: int) -> tuple[list[str], int]:
    """Kill a landing while the source grows and the catalogue changes. Return the kills and the number of growths."""
    lines: list[str] = []
    grown, seconds = 0, expected.seconds
    while len(lines) < attempts:
        if not (killed := bed.kill(seconds)):  # it ended first: kill earlier next time
            seconds /= 2
            bed.leave_target()
            continue
        lines.append(killed)
        check_partly(bed.rows(), expected.rows[-1], f"seed {seed}, after kill {len(lines)}")
        if grown < len(expected.rows) - 1 and bed.rng.random() < 0.5:
            grown += 1
            grow(bed.source, size, grown)
        if bed.rng.random() < 0.5:
            bed.write_catalogue(f"edited {len(lines)}")
    return lines, grown


def _disturb_replay(bed: Bed, seed: int, expected: Expected, grown: int, attempts: int) -> list[str]:
    """Kill replays until one ends before it is killed."""
    lines: list[str] = []
    while len(lines) < attempts and (killed := bed.kill(expected.replay_seconds / 2)):
        lines.append(killed)
        check_partly(bed.rows(), expected.replayed[grown], f"seed {seed}, replay {len(lines)} killed")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30, help="number of landings to disturb")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=int, help="number of records in the largest file")
    parser.add_argument("--short", action="store_true", help="one run with one kill")
    parser.add_argument("--format", choices=READERS, help="table format; default: all in turn")
    parser.add_argument("--staging", choices=("on", "off"), help="stage rare definitions; default: in turn")
    parser.add_argument("--store", action="store_true", help="tables in an S3 server, of Delta Lake or Iceberg")
    options = parser.parse_args()
    if options.store and options.format == "parquet":
        parser.error("tables of Parquet files need a file system")
    with ExitStack() as stack:
        run_all(options, stack.enter_context(running_store("kill-test"))[0] if options.store else None)


def run_all(options: argparse.Namespace, store: str | None) -> None:
    runs, kills = (1, 1) if options.short else (options.runs, 3)
    size = options.size or (3_000 if options.short else 12_000)
    kinds = _kinds(options.format, options.staging, store)
    done = 0
    with tempfile.TemporaryDirectory(prefix="kill-test-") as folder:
        expected = reference(Path(folder, "reference"), size, growths=2)
        print(f"undisturbed: {expected.rows[-1].total():,} messages in {expected.seconds:.1f} s", flush=True)
        for seed in range(options.seed, options.seed + runs):
            began = time.monotonic()
            bed = Bed(Path(folder, f"run-{seed}"), random.Random(seed), kinds[(seed - options.seed) % len(kinds)])  # noqa: S311
            count, lines = run(bed, seed, size, expected, kills)
            done += count
            seconds = time.monotonic() - began
            print(f"run {seed}, {bed.kind}: every message once ({seconds:.0f} s): {lines}", flush=True)
            shutil.rmtree(bed.root)
    print(f"{runs} runs, {done} kills: every message landed once")


def _kinds(form: str | None, staging: str | None, store: str | None) -> list[Kind]:
    """Return the kinds of tables in the order of the runs: all formats, alternating with and without staging."""
    forms = list(READERS)
    every = [Kind(forms[place % 3], staging=place % 2 == 1, store=store) for place in range(6)]
    return [
        kind
        for kind in every
        if form in (None, kind.form)
        and staging in (None, "on" if kind.staging else "off")
        and not (store and kind.form == "parquet")
    ]


if __name__ == "__main__":
    main()
