"""Kills streams at random moments while messages arrive, and checks that every acknowledged message landed once.

The source is Kafka or JetStream (`wirebook stream`), or a gateway for HTTP, MQTT, AMQP, Kafka or core NATS whose
segments are landed as they arrive (`wirebook capture`, `wirebook land --follow`). Each time, it kills the driver, the
JVM, a Python worker, the whole process tree, or the gateway; sometimes it restarts the broker before, or makes the
object store hang. One message in ten has an invalid payload, some match no definition, some are no JSON. In the end,
the rest lands undisturbed: no captured message may be in the tables and dead letters twice, and none that was
acknowledged may be missing. Brokers deliver messages again that a gateway had not acknowledged when it was killed:
these are captured twice, and counted. Core NATS acknowledges nothing: messages count that were in segments when a
gateway was killed, and those that are sent in the end. With `--store`, tables and segments are in an S3 server.

    ./run kill-streams [--kills 50] [--source kafka] [--victim gateway] [--format delta] [--store] [--short]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from brokers import MissingProgram

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from killing.rows import READERS, landed_rows
from killing.sources import SOURCES, STREAMED, CapturedSource, Source, source_of
from killing.stores import running_store, set_iceberg_catalogue, target_options
from killing.victims import descendants, victims

from tests.spark.stream_commands import own_tracebacks
from wirebook.landing.stores.locations import Location, location_of

SECONDS = 240
"""How long a command may take to start or to end."""
LAST_SECONDS = 1800
"""How long the last run may take: it lands everything that killed runs left, on a machine that may be busy."""
PROGRAM = "from wirebook.cli import main; main()"
BATCHES = (0, 0, 1, 2, 4)
"""How many batches a stream lands before some of it is killed."""
VICTIMS = ("tree", "driver", "driver", "jvm", "worker")
BATCH = b'"batch":'
"""Occurs once in the progress line of a batch."""
GATEWAY = "gateway"
"""Another victim, of the sources that have one."""


# -- a run ---------------------------------------------------------------------------------------------------------


class Run:
    """A stream that is killed again and again."""

    def __init__(
        self, source: Source, folder: Path, form: str, target: Location, *, store: int | None, victim: str | None
    ) -> None:
        self._source, self._folder, self._form, self._target, self._store = source, folder, form, target, store
        own = (GATEWAY, GATEWAY) if isinstance(source, CapturedSource) else ()
        self._victims = (victim,) if victim else (*VICTIMS, *own)
        self._rng = random.Random(time.time_ns())  # noqa: S311
        self._error = folder / "err"
        self._running: subprocess.Popen[bytes] | None = None

    def _start(self, *more: str) -> subprocess.Popen[bytes]:
        to = ["--catalog", str(self._folder / "catalogue.json"), *target_options(self._form, self._target)]
        if self._source.command()[0] == "stream":
            to += ["--checkpoint", (self._folder / "checkpoint").as_uri()]
        command = [sys.executable, "-c", PROGRAM, *self._source.command(), *to, "--json", "--progress", "json", *more]
        with self._error.open("wb") as error:
            self._running = subprocess.Popen(  # noqa: S603
                command, stdout=subprocess.DEVNULL, stderr=error, start_new_session=True
            )
        return self._running

    def end(self) -> None:
        """Kill a stream that is left, after an interrupt or an error."""
        if self._running is not None and self._running.poll() is None:
            os.killpg(self._running.pid, signal.SIGKILL)

    def kill(self) -> str:
        """Start the stream and kill some of it; returns what was killed."""
        follows = [] if self._source.command()[0] == "stream" else ["--follow", "1s"]
        running = self._start(*follows)
        self._wait_for_batches(running, self._rng.choice(BATCHES))
        time.sleep(self._rng.uniform(0, 4))
        also = self._disturb() if self._rng.random() < 0.25 else ""
        kind = self._rng.choice(self._victims)
        family = descendants(running.pid)
        if kind == GATEWAY:
            self._kill_gateway(running)
        else:
            for process in (chosen := victims(family, kind, self._rng)):
                process.kill(signal.SIGSTOP)
            for process in chosen:
                process.kill(signal.SIGKILL)
        if running.poll() is None and kind == "worker":
            time.sleep(2)  # the stream ends, or goes on if the worker had nothing to do
            running.terminate()
        try:
            code = running.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"the stream whose {kind} was killed did not end:\n{self._error.read_text()}") from None
        for process in family:
            process.kill(signal.SIGKILL)
        errors = self._error.read_text()
        if own_tracebacks(errors) or (code >= 0 and code not in (0, 2)):
            raise SystemExit(f"the stream whose {kind} was killed ended with exit code {code}:\n{errors}")
        return kind + also

    def _kill_gateway(self, running: subprocess.Popen[bytes]) -> None:
        """Kill the gateway and start it again. The stream lands what it captures, and stops."""
        assert isinstance(self._source, CapturedSource)
        self._source.kill_gateway()
        self._wait_for_batches(running, self._error.read_bytes().count(BATCH) + 1)
        running.terminate()

    def _wait_for_batches(self, running: subprocess.Popen[bytes], batches: int) -> None:
        """Wait until the stream has begun and landed so many batches."""
        end = time.monotonic() + SECONDS
        while True:
            errors = self._error.read_bytes()
            landed = errors.count(BATCH)
            if landed >= batches and (b"streaming " in errors or b"following " in errors):
                return
            if running.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the stream landed {landed} of {batches} batches:\n{self._error.read_text()[-5000:]}")
            time.sleep(0.1)

    def _disturb(self) -> str:
        """Restart the source, or make the store hang for some seconds."""
        if self._store is None or self._rng.random() < 0.5:
            self._source.restart()
            return " after a restart of the source"
        os.kill(self._store, signal.SIGSTOP)
        time.sleep(3)
        os.kill(self._store, signal.SIGCONT)
        return " after the store hung"

    def check(self, what: str, *, is_last: bool = False) -> int:
        """Check that no message is there twice, and in the end that none is missing; returns their number."""
        rows = landed_rows(self._form, self._target)
        places = {(file, line) for _, file, line, _ in rows}
        if len(places) != rows.total():
            raise SystemExit(f"{what}: {rows.total() - len(places)} rows too many")
        if is_last and (missing := self._source.missing(places)):
            raise SystemExit(f"{what}: {missing} acknowledged messages are missing")
        return len(places)

    def finish(self) -> int:
        """Land the rest; returns the number of messages that landed."""
        last = self._start(*self._source.rest())
        try:
            code = last.wait(LAST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(last.pid, signal.SIGKILL)
            raise SystemExit(f"the last run did not end:\n{self._error.read_text()[-5000:]}") from None
        if code:
            raise SystemExit(f"the last run ended with exit code {code}:\n{self._error.read_text()}")
        return self.check("in the end", is_last=True)


def kill_stream(source_name: str, form: str, kills: int, store: tuple[str, int] | None, victim: str | None) -> None:
    """Kill a stream so often, and check what landed."""
    began = time.monotonic()
    what = f"{source_name} to {form}" + (" in S3" if store else "")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kill-streams-")))
        source = stack.enter_context(source_of(source_name, folder, store[0] if store else None))
        target = location_of(f"{store[0]}/{folder.name}") if store else folder / "tables"
        set_iceberg_catalogue(folder / "iceberg.db")
        run = Run(source, folder, form, target, store=store[1] if store else None, victim=victim)
        numbers, is_over = iter(range(1_000_000_000)), threading.Event()

        def produce() -> None:
            while not is_over.wait(0.1):
                source.send([next(numbers) for _ in range(10)])

        producer = threading.Thread(target=produce)
        producer.start()
        killed = []
        try:
            for number in range(1, kills + 1):
                killed.append(run.kill())
                if number % 10 == 0:
                    print(f"{what}: {number} kills, {run.check(f'after kill {number}'):,} messages", flush=True)
        finally:
            is_over.set()
            run.end()
            producer.join()
        landed = run.finish()
        acknowledged, twice = source.acknowledged, source.twice()
    if not acknowledged:
        raise SystemExit(f"{what}: no message was acknowledged")
    counts = ", ".join(f"{killed.count(kind)} {kind}" for kind in dict.fromkeys(sorted(killed)))
    seconds = time.monotonic() - began
    messages = f"{acknowledged:,} messages acknowledged, {twice:,} captured twice"
    print(f"{what}: {kills} kills ({counts}), {messages}, {landed:,} landed, each once ({seconds:.0f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="number of kills for each source and format")
    parser.add_argument("--source", choices=SOURCES, help="default: all in turn")
    parser.add_argument("--victim", choices=sorted({*VICTIMS, GATEWAY}), help="what to kill; default: chosen at random")
    parser.add_argument("--format", choices=READERS, help="table format; default: all in turn")
    parser.add_argument("--store", action="store_true", help="tables and segments in an S3 server")
    parser.add_argument("--short", action="store_true", help="two kills of one source")
    options = parser.parse_args()
    if options.store and options.format == "parquet":
        parser.error("tables of Parquet files need a file system")
    if options.victim == GATEWAY and options.source in (None, *STREAMED):
        parser.error(f"--victim {GATEWAY} needs a --source that has one")
    kills = 2 if options.short else options.kills
    forms = ["delta"] if options.short else [form for form in READERS if not (options.store and form == "parquet")]
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")  # Spark starts in less time
    with ExitStack() as stack:
        store = stack.enter_context(running_store("kill-streams")) if options.store else None
        for source in [options.source] if options.source else SOURCES[: 1 if options.short else None]:
            for form in [options.format] if options.format else forms:
                try:
                    kill_stream(source, form, kills, store, options.victim)
                except MissingProgram as missing:
                    raise SystemExit(f"{source}: {missing}") from None


if __name__ == "__main__":
    main()
