"""Kills streams at random moments while messages arrive, and checks that every acknowledged message landed once.

The source is Kafka or JetStream (`wirebook stream`), or a gateway for HTTP whose segments are landed as they arrive
(`wirebook capture`, `wirebook land --follow`). Each time, it kills the driver, the JVM, a Python worker, the whole
process tree, or the gateway; sometimes it restarts the broker instead, or makes the object store hang. One message in
ten has an invalid payload, some match no definition, some are no JSON. In the end, the rest lands undisturbed: no
message may be in the tables and dead letters twice, and none that was acknowledged may be missing.

    ./run kill-streams [--kills 50] [--source kafka] [--format delta] [--store] [--short]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import httpx
import nats
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from nats.js.api import StreamConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from brokers import KafkaBroker, NatsServer, free_port

from scripts.killing.rows import ICEBERG_CATALOG, READERS, landed_rows
from scripts.killing.victims import descendants, victims
from tests.brokers.kafka import running_kafka
from tests.capture.gateway import GatewayProcess, gateway
from tests.landing.s3 import make_bucket, s3_server
from tests.spark.stream_commands import own_tracebacks
from wirebook.landing.stores.locations import Location, location_of

SECONDS = 240
"""How long a command may take to start or to end."""
PROGRAM = "from wirebook.cli import main; main()"
BATCHES = (0, 0, 1, 2, 4)
"""How many batches a stream lands before some of it is killed."""
VICTIMS = ("tree", "driver", "driver", "jvm", "worker")
EVENT_HEADERS = {"content-type": "application/cloudevents+json"}
Place = tuple[str, int]
"""The file and the line of a message."""


def catalogue(endpoint: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    source = {"type": "uritemplate", "value": "/plants/{plant}"}
    definitions = {
        name: {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": f"kill.{name}"}, "source": source},
            "dataschemaformat": "JsonSchema/draft-07",
            "dataschema": schema,
        }
        for name in "abc"
    }
    return {
        "specversion": "1.0-rc4",
        "endpoints": {"e": endpoint | {"messagegroups": ["/messagegroups/g"]}},
        "messagegroups": {"g": {"messages": definitions}},
    }


def message(number: int) -> bytes:
    """A structured event; some are no JSON, match no definition, or violate their schema."""
    if number % 37 == 0:
        return b'{"specversion": "1.0", "id": "%d' % number
    kind = "abc"[number % 3] if number % 23 else "other"
    event = {"specversion": "1.0", "id": str(number), "source": f"/plants/p{number % 3}", "type": f"kill.{kind}"}
    return json.dumps(event | {"data": {"n": number if number % 10 else "no number"}}).encode()


# -- sources -------------------------------------------------------------------------------------------------------


class Source(Protocol):
    """What sends messages and knows which were acknowledged."""

    endpoint: dict[str, Any]

    def send(self, numbers: Iterable[int]) -> None: ...
    def restart(self) -> None:
        """Kill the broker or gateway and start it again."""

    def command(self) -> list[str]:
        """The command that lands, without catalogue, target and limits."""

    def rest(self) -> list[str]:
        """The options with which the command lands what is there and ends."""

    def missing(self, landed: set[Place]) -> int:
        """The number of acknowledged messages that did not land."""


class KeptSource:
    """Messages that a broker keeps."""

    def __init__(self, broker: KafkaBroker | NatsServer) -> None:
        self._broker, self._acknowledged = broker, set[Place]()

    def restart(self) -> None:
        self._broker.kill()
        self._broker.start()

    def command(self) -> list[str]:
        return ["stream", "--endpoint", "/endpoints/e", "--interval", "0", "--max-per-batch", "400"]

    def rest(self) -> list[str]:
        return ["--available-now", "--max-per-batch", "20000"]

    def missing(self, landed: set[Place]) -> int:
        return len(self._acknowledged - landed)


class KafkaSource(KeptSource):
    """A topic of two partitions."""

    def __init__(self, broker: KafkaBroker) -> None:
        super().__init__(broker)
        self._topic = f"t-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": broker.plain})
        admin.create_topics([NewTopic(self._topic, 2, 1)])[self._topic].result()
        settings = {"bootstrap.servers": broker.plain, "linger.ms": 5, "log_level": 0, "enable.idempotence": True}
        self._producer = Producer(settings)
        options = {"topic": self._topic, "endpoints": [{"bootstrap.servers": [broker.plain]}]}
        self.endpoint = {"usage": ["consumer"], "protocol": "KAFKA", "protocoloptions": options}

    def send(self, numbers: Iterable[int]) -> None:
        def note(error: Any, sent: Any) -> None:
            if error is None:
                self._acknowledged.add((f"kafka:{self._topic}/{sent.partition()}", sent.offset()))

        headers = [(name, value.encode()) for name, value in EVENT_HEADERS.items()]
        for number in numbers:
            self._producer.produce(
                self._topic, message(number), partition=number % 2, headers=headers, on_delivery=note
            )
        self._producer.flush(SECONDS)


class JetStreamSource(KeptSource):
    """A stream of a NATS server."""

    def __init__(self, server: NatsServer) -> None:
        super().__init__(server)
        self._port = server.port
        self._run(lambda stream: stream.add_stream(StreamConfig(name="PLANTS", subjects=["plants.>"])))
        options = {"subjectfilter": "plants.>", "endpoints": [{"uri": f"nats://127.0.0.1:{server.port}"}]}
        self.endpoint = {"usage": ["subscriber"], "protocol": "NATS", "protocoloptions": options}

    def _run(self, action: Callable[[Any], Any]) -> None:
        async def expected(_: Exception) -> None:
            """The server restarts now and then. What an action cannot do, it raises."""

        async def act() -> None:
            client = await nats.connect(f"nats://127.0.0.1:{self._port}", connect_timeout=10, error_cb=expected)
            try:
                await action(client.jetstream(timeout=20))
            finally:
                await client.close()

        asyncio.run(act())

    def send(self, numbers: Iterable[int]) -> None:
        async def publish(stream: Any) -> None:
            for number in numbers:
                stored = await stream.publish(f"plants.p{number % 3}", message(number), headers=EVENT_HEADERS)
                self._acknowledged.add(("nats:PLANTS", stored.seq))

        with suppress(nats.errors.Error, OSError):  # the server restarts; what it did not acknowledge may be stored
            self._run(publish)


class CapturedSource:
    """A gateway for HTTP; its segments are followed. A message is known by its text, which no other one has."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self._stack, self._folder, self._port = stack, folder, free_port()
        self._acknowledged: set[bytes] = set()
        self._gateway: GatewayProcess | None = None
        self._client = stack.enter_context(httpx.Client(trust_env=False, timeout=30))
        self.url = f"http://127.0.0.1:{self._port}/hooks"
        self.endpoint = {
            "usage": ["producer"],
            "protocol": "HTTP",
            "protocoloptions": {"endpoints": [{"uri": self.url}]},
        }

    def start(self) -> None:
        arguments = ["--endpoint", "/endpoints/e", "--segment-age", "1s", "--segment-size", "1"]
        self._gateway = self._stack.enter_context(
            gateway(self._folder / "catalogue.json", self._folder / "captured", *arguments)
        )

    def send(self, numbers: Iterable[int]) -> None:
        for body in map(message, numbers):
            with suppress(httpx.TransportError):  # the gateway restarts
                if self._client.post(self.url, content=body, headers=EVENT_HEADERS).status_code == 202:
                    self._acknowledged.add(body)

    def restart(self) -> None:
        assert self._gateway
        self._gateway.process.kill()
        self._gateway.process.wait()
        self.start()

    def command(self) -> list[str]:
        return ["land", str(self._folder / "captured"), "--endpoint", "/endpoints/e", "--no-report"]

    def rest(self) -> list[str]:
        assert self._gateway
        self._gateway.stop()
        return []

    def missing(self, landed: set[Place]) -> int:
        bodies = {
            json.loads(line)["body"].encode(): (file.name, number)
            for file in (self._folder / "captured").glob("*.jsonl")
            for number, line in enumerate(file.read_bytes().splitlines(), 1)
        }
        return sum(bodies.get(body) not in landed for body in self._acknowledged)


@contextmanager
def source_of(name: str, folder: Path) -> Iterator[Source]:
    """A running source with its catalogue in the folder."""
    with ExitStack() as stack:
        source: Source
        if name == "kafka":
            (folder / "kafka").mkdir()
            source = KafkaSource(stack.enter_context(running_kafka(folder / "kafka")))
        elif name == "jetstream":
            server = NatsServer("--jetstream", "--store_dir", str(folder / "jetstream"))
            stack.callback(server.kill)
            source = JetStreamSource(server)
        else:
            source = CapturedSource(stack, folder)
        (folder / "catalogue.json").write_text(json.dumps(catalogue(source.endpoint)))
        if isinstance(source, CapturedSource):
            (folder / "captured").mkdir()
            source.start()
        yield source


# -- a run ---------------------------------------------------------------------------------------------------------


class Run:
    """A stream that is killed again and again."""

    def __init__(self, source: Source, folder: Path, form: str, target: Location, store: int | None) -> None:
        self._source, self._folder, self._form, self._target, self._store = source, folder, form, target, store
        self._rng = random.Random(time.time_ns())  # noqa: S311
        self._error = folder / "err"

    def _start(self, *more: str) -> subprocess.Popen[bytes]:
        to = ["--catalog", str(self._folder / "catalogue.json"), "--to", str(self._target), "--format", self._form]
        if self._form == "iceberg" and self._store is not None:
            to += ["--iceberg-catalog", ICEBERG_CATALOG, "--iceberg-namespace", "wirebook"]
        if self._source.command()[0] == "stream":
            to += ["--checkpoint", (self._folder / "checkpoint").as_uri()]
        command = [sys.executable, "-c", PROGRAM, *self._source.command(), *to, "--json", "--progress", "json", *more]
        with self._error.open("wb") as error:
            return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=error, start_new_session=True)  # noqa: S603

    def kill(self) -> str:
        """Start the stream and kill some of it; returns what was killed."""
        follows = [] if self._source.command()[0] == "stream" else ["--follow", "1s"]
        running = self._start(*follows)
        self._wait_for_batches(running, self._rng.choice(BATCHES))
        time.sleep(self._rng.uniform(0, 4))
        also = self._disturb() if self._rng.random() < 0.25 else ""
        kind = self._rng.choice(VICTIMS)
        family = descendants(running.pid)
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

    def _wait_for_batches(self, running: subprocess.Popen[bytes], batches: int) -> None:
        """Wait until the stream has begun and landed so many batches."""
        end = time.monotonic() + SECONDS
        while True:
            errors = self._error.read_bytes()
            landed = errors.count(b'"batch":')
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
            code = last.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(last.pid, signal.SIGKILL)
            raise SystemExit(f"the last run did not end:\n{self._error.read_text()[-5000:]}") from None
        if code:
            raise SystemExit(f"the last run ended with exit code {code}:\n{self._error.read_text()}")
        return self.check("in the end", is_last=True)


def kill_stream(source_name: str, form: str, kills: int, store: tuple[str, int] | None) -> None:
    """Kill a stream so often, and check what landed."""
    began = time.monotonic()
    what = f"{source_name} to {form}" + (" in S3" if store else "")
    with tempfile.TemporaryDirectory(prefix="kill-streams-") as name, source_of(source_name, Path(name)) as source:
        folder = Path(name)
        target = location_of(f"{store[0]}/{folder.name}") if store else folder / "tables"
        os.environ[f"PYICEBERG_CATALOG__{ICEBERG_CATALOG.upper()}__URI"] = f"sqlite:///{folder}/iceberg.db"
        run = Run(source, folder, form, target, store[1] if store else None)
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
            producer.join()
        landed = run.finish()
    counts = ", ".join(f"{killed.count(kind)} {kind}" for kind in dict.fromkeys(sorted(killed)))
    seconds = time.monotonic() - began
    print(f"{what}: {kills} kills ({counts}), {landed:,} messages, each once ({seconds:.0f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="number of kills for each source and format")
    sources = ("kafka", "jetstream", "captured")
    parser.add_argument("--source", choices=sources, help="default: all in turn")
    parser.add_argument("--format", choices=READERS, help="table format; default: all in turn")
    parser.add_argument("--store", action="store_true", help="tables in an S3 server, of Delta Lake or Iceberg")
    parser.add_argument("--short", action="store_true", help="two kills of one source")
    options = parser.parse_args()
    if options.store and options.format == "parquet":
        parser.error("tables of Parquet files need a file system")
    kills = 2 if options.short else options.kills
    forms = ["delta"] if options.short else [form for form in READERS if not (options.store and form == "parquet")]
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")  # Spark starts in less time
    with ExitStack() as stack:
        store = None
        if options.store:
            environment = stack.enter_context(s3_server())
            os.environ.update(environment)
            make_bucket(environment["AWS_ENDPOINT_URL"], "kill-streams")
            server = descendants(os.getpid())[1]
            store = ("s3://kill-streams", server.pid)
        for source in [options.source] if options.source else sources[: 1 if options.short else None]:
            for form in [options.format] if options.format else forms:
                kill_stream(source, form, kills, store)


if __name__ == "__main__":
    main()
