"""Streams whose store refuses requests, whose disk is full, and whose messages are hostile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from brokers import NatsServer
from killing.rows import landed_rows

from tests.brokers.faulty_store import Fault, FaultyStore, faulty_store
from tests.disks import fill, mounted_disk
from tests.landing.s3 import CREDENTIALS
from tests.spark.hostile import HOSTILE
from tests.spark.stream_commands import Watched, run, started
from tests.spark.test_jetstream import Plants, with_jetstream
from wirebook.landing.stores.locations import location_of

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.xdist_group("nats")]


@pytest.fixture
def plants(tmp_path: Path) -> Iterator[Plants]:
    server = NatsServer("--jetstream", "--store_dir", str(tmp_path / "jetstream"))
    yield Plants(server, tmp_path)
    server.kill()


@pytest.fixture
def store(s3: str) -> Iterator[FaultyStore]:
    with faulty_store(s3) as proxy:
        yield proxy


def test_store_that_refuses_writes_for_a_while(plants: Plants, store: FaultyStore, bucket: str) -> None:
    """Answers are lost and the store is away for seconds while a stream runs. Then it forbids to write: the stream ends
    with one error, and the next one goes on."""
    environment, to = CREDENTIALS | {"AWS_ENDPOINT_URL": store.url}, f"{bucket}/tables"
    arguments = [*plants.arguments("--interval", "0", "--max-per-batch", "40"), "--format", "delta", "--to", to]
    is_over = threading.Event()

    def produce() -> None:
        numbers = iter(range(10**6))
        while not is_over.wait(0.3):
            plants.send([next(numbers) for _ in range(10)])

    def more(stream: Watched, count: int) -> None:
        before = stream.read()
        stream.wait_for(lambda: stream.read() >= before + count)

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        with started(environment, arguments) as process:
            stream = Watched(process)
            more(stream, 40)
            store.fail(Fault(500, is_done=True, once=True))
            more(stream, 80)
            assert store.recover() > 10
            store.fail(Fault(503, reads=True))
            time.sleep(2)
            assert store.recover() > 0
            more(stream, 40)
            store.fail(Fault(403))
            assert process.wait(120) == 2
            assert store.recover() > 0
            notes = "".join(stream.notes)
    finally:
        is_over.set()
        producer.join()
    (error,) = (line for line in notes.splitlines() if "error: " in line)
    assert "[store-failed]" in error
    assert "Traceback" not in notes
    assert "\tat " not in notes
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in notes
    run(environment, [*arguments, "--max-per-batch", "100000", "--available-now"])
    rows = landed_rows("delta", location_of(to))
    places = Counter((file, line) for _, file, line, _ in rows.elements())
    assert places == {("nats:PLANTS", sequence): 1 for sequence in plants.acknowledged}


def test_full_disk_of_the_target(plants: Plants, one_java: dict[str, str]) -> None:
    with mounted_disk("24m") as disk:
        plants.target = disk / "tables"
        arguments = plants.arguments("--interval", "0", "--max-per-batch", "40")
        plants.send(range(100))
        with started(one_java, arguments) as process:
            stream = Watched(process)
            stream.wait_for(lambda: stream.read() == 100)
            ballast = fill(disk)
            plants.send(range(100, 200))
            assert process.wait(120) == 2
            notes = "".join(stream.notes)
        (error,) = (line for line in notes.splitlines() if "error: " in line)
        assert "No space left on device" in error
        assert "Traceback" not in notes
        assert "\tat " not in notes
        ballast.unlink()
        run(one_java, plants.arguments("--available-now"))
        plants.check_landed()


def test_hostile_messages_are_dead_letters(plants: Plants, one_java: dict[str, str]) -> None:
    headers: list[dict[str, str] | None] = [
        None,
        {f"X-{number}": "v" for number in range(5000)},
        {"content-type": "application/cloudevents+json"},
        {"content-type": "application/cloudevents-batch+json"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "x" * 60_000},
    ]

    async def publish(jetstream: Any) -> None:
        for data in HOSTILE:
            for of_message in headers:
                if len(data) + 60_000 < 1 << 20 or of_message is None:
                    stored = await jetstream.publish("plants.p1.seen", data, headers=of_message)
                    plants.acknowledged.add(stored.seq)
        stored = await jetstream.publish("plants.p1.seen", b"x" * (1 << 20))
        plants.acknowledged.add(stored.seq)

    asyncio.run(with_jetstream(plants.server, publish))
    sent = len(plants.acknowledged)
    plants.send(range(1, 10))
    lines, _ = run(one_java, plants.arguments("--available-now"))
    assert (lines[-1]["read"], lines[-1]["landed"]) == (sent + 9, 9)
    plants.check_landed()
