"""Streams whose store refuses requests, whose disk is full, and whose messages are hostile."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from brokers import NatsServer
from killing.rows import landed_rows
from killing.sources import STREAMED, source_of
from killing.stores import ICEBERG_URI, target_options

from tests.brokers.faulty_store import Fault, FaultyStore, faulty_store
from tests.disks import fill, mounted_disk
from tests.landing.s3 import CREDENTIALS
from tests.spark.hostile import HOSTILE
from tests.spark.stream_commands import SECONDS, Watched, own_tracebacks, producing, run, started
from tests.spark.test_jetstream import Plants, with_jetstream
from wirebook.landing.stores.locations import location_of

pytestmark = [pytest.mark.faults, pytest.mark.spark, pytest.mark.xdist_group("servers")]
COMMITS = {"delta": "/_delta_log/", "iceberg": "/metadata/"}
"""What the paths have in common that a commit of a table format writes to."""


@pytest.fixture
def plants(tmp_path: Path) -> Iterator[Plants]:
    server = NatsServer("--jetstream", "--store_dir", str(tmp_path / "jetstream"))
    yield Plants(server, tmp_path)
    server.kill()


@pytest.fixture
def store(s3: str) -> Iterator[FaultyStore]:
    with faulty_store(s3) as proxy:
        yield proxy


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize("source_name", ["jetstream", "kafka", "captured"])
def test_store_that_refuses_writes_for_a_while(
    store: FaultyStore,
    tmp_path: Path,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
    source_name: str,
    table_format: str,
) -> None:
    """Answers are lost, the store is away for seconds, and it refuses commits alone, while messages land. Then it
    forbids to write: the command ends with one error, and the next one goes on."""
    monkeypatch.setenv(ICEBERG_URI, f"sqlite:///{tmp_path}/iceberg.db")
    environment, target = CREDENTIALS | {"AWS_ENDPOINT_URL": store.url}, location_of(f"{bucket}/tables")

    def more(stream: Watched, count: int) -> None:
        before = stream.read()
        stream.wait_for(lambda: stream.read() >= before + count)

    with source_of(source_name, tmp_path) as source:
        options = ["--catalog", str(tmp_path / "catalogue.json"), *target_options(table_format, target), "--json"]
        arguments = [*source.command(), *options]
        endless = ["--max-per-batch", "40"] if source_name in STREAMED else ["--follow", "1s"]
        numbers = itertools.count()
        sending = producing(lambda: source.send([next(numbers) for _ in range(10)]), 0.3)
        with sending, started(environment, [*arguments, *endless]) as process:
            stream = Watched(process)
            more(stream, 40)
            store.fail(Fault(500, is_done=True, once=True))
            more(stream, 80)
            assert store.recover() > 10
            for fault in (Fault(503, reads=True), Fault(503, path=COMMITS[table_format])):
                store.fail(fault)
                stream.wait_for(lambda: store.failed > 0)
                time.sleep(2)
                store.recover()
                more(stream, 40)
            store.fail(Fault(403))
            assert process.wait(120) == 2
            assert store.recover() > 0
            notes = "".join(stream.notes)
        (error,) = (line for line in notes.splitlines() if "error: " in line)
        assert "[store-failed]" in error
        assert not own_tracebacks(notes)
        assert "\tat " not in notes
        assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in notes
        run(environment, [*arguments, *source.rest()])
        rows = landed_rows(table_format, target)
        places = {(file, line) for _, file, line, _ in rows}
        assert len(places) == rows.total() == source.acknowledged
        assert source.missing(places) == 0


def test_stream_waits_for_a_store_that_is_away(plants: Plants, store: FaultyStore, bucket: str) -> None:
    """The store refuses writes for longer than requests are repeated, and the batch that failed runs again. Then it is
    away when the stream is stopped: the stream ends at once, and a run with --available-now fails."""
    environment, to = CREDENTIALS | {"AWS_ENDPOINT_URL": store.url}, f"{bucket}/tables"
    common = [*plants.arguments("--interval", "0", "--max-per-batch", "40"), "--format", "delta", "--to", to]
    away, back = "the target cannot be written to, trying again: ", "the target can be written to again"

    def count(text: str) -> int:
        return sum(note.startswith(text) for note in stream.notes)

    def connected() -> str:
        text = urllib.request.urlopen(f"{address}/metrics").read().decode()
        return next(line for line in text.splitlines() if line.startswith("wirebook_stream_connected{"))[-3:]

    plants.send(range(1, 50))
    with started(environment, [*common, "--metrics-address", "127.0.0.1:0"]) as process:
        stream = Watched(process)
        stream.wait_for(lambda: stream.read() == 49)
        address = next(note.split()[2] for note in stream.notes if note.startswith("metrics at")).removesuffix(
            "/metrics,"
        )
        store.fail(Fault(503))
        plants.send(range(50, 100))
        stream.wait_for(lambda: count(away) == 1)
        assert connected() == "0.0"
        tried = store.writes
        stream.wait_for(lambda: store.writes > tried + 11)  # more than one request is repeated
        assert (count(away), count(back), stream.read()) == (1, 0, 49)
        assert store.recover() > 22
        stream.wait_for(lambda: stream.read() == 99)
        stream.wait_for(lambda: count(back) == 1)
        assert connected() == "1.0"
        store.refuse()
        plants.send(range(100, 120))
        stream.wait_for(lambda: count(away) == 2)
        assert stream.end(signal.SIGTERM) == 0
    assert stream.batches[-1]["read"] == 99
    numbers = [batch["batch"] for batch in stream.batches[:-1]]
    assert numbers == [*range(len(numbers))]
    _, error = run(environment, [*common, "--available-now"], code=2)
    assert "[store-failed]" in error
    store.listen()
    lines, _ = run(environment, [*common, "--available-now"])
    assert lines[-1]["read"] == 20
    places = Counter((file, line) for _, file, line, _ in landed_rows("delta", location_of(to)).elements())
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
        assert not own_tracebacks(notes)
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


def test_two_streams_a_landing_and_a_replay_at_one_target(plants: Plants, tmp_path: Path) -> None:
    """All of them run at once; the dead letters of one stream are replayed while they do."""
    document = json.loads(plants.catalogue.read_text())
    endpoint = document["endpoints"]["e"]
    other = endpoint | {"protocoloptions": endpoint["protocoloptions"] | {"subjectfilter": "other.>"}}
    document["endpoints"]["o"] = other
    plants.catalogue.write_text(json.dumps(document))
    (source := tmp_path / "source").mkdir()
    line = '{"protocol": "NATS", "subject": "plants.p1.seen", "data": "{\\"n\\": %d}"}\n'
    common = ["--catalog", str(plants.catalogue), "--to", str(plants.target), "--json"]
    with ExitStack() as stack:
        runs = [
            Watched(stack.enter_context(started({}, [*command, *common])))
            for command in (
                ["stream", "--endpoint", "/endpoints/e", "--interval", "0", "--max-per-batch", "30"],
                ["stream", "--endpoint", "/endpoints/o", "--interval", "0", "--max-per-batch", "30"],
                ["land", str(source), "--local", "--follow", "1s"],
            )
        ]
        lines = 0
        for number in range(4):
            (source / f"{number}.jsonl").write_text(line % number * 50)
            lines += 50
            plants.send(range(50))
            plants.send(range(50), "other.{}")
            time.sleep(1)
        document["messagegroups"]["g"]["messages"]["any"] = {
            "protocol": "NATS",
            "protocoloptions": {"subject": "other.{number}"},
        }
        corrected = tmp_path / "corrected.json"
        corrected.write_text(json.dumps(document))
        replay = ["replay", str(plants.target), "--catalog", str(corrected), "--local", "--json"]
        runs[1].wait_for(lambda: runs[1].read() == 200)
        replayed = 0
        while replayed < 200:
            with started({}, replay) as process:
                out, err = process.communicate(timeout=SECONDS)
            assert process.returncode == 0 or "[target-locked]" in err, err
            replayed += json.loads(out)["landed"] if process.returncode == 0 else 0
        for run_, count in zip(runs, (200, 200, lines), strict=True):
            run_.wait_for(lambda run_=run_, count=count: run_.read() == count)
            assert run_.end(signal.SIGTERM) == 0
    places = {
        table: Counter((row["_file"], row["_line"]) for row in plants.rows(table))
        for table in ("g__*", "dead_letters", "resolved")
    }
    left = places["dead_letters"] - places["resolved"]
    assert places["resolved"].total() == 200
    assert set((places["g__*"] + left).values()) == {1}
    assert (places["g__*"] + left).total() == 400 + lines
