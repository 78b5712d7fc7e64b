"""`wirebook stream` with Apache Kafka itself: what lands, restarts, kills, a broker that goes away, SASL_SSL."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from brokers import SCRAM_USERS, USERS, KafkaBroker
from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from deltalake import DeltaTable

from tests.brokers.lineage import lineage_server, rows
from tests.landing.test_table_formats import iceberg_table
from tests.spark.hostile import HOSTILE
from tests.spark.stream_commands import SECONDS, Watched, kill_while_producing, run, started
from wirebook.landing.runs.target import Target
from wirebook.landing.watch.status import target_status

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("kafka")]

SEEN: dict[str, Any] = {
    "envelope": "CloudEvents/1.0",
    "envelopemetadata": {
        "type": {"value": "seen"},
        "source": {"type": "uritemplate", "value": "/plants/{plant}"},
    },
    "dataschemaformat": "JsonSchema/draft-07",
    "dataschema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
Headers = list[tuple[str, bytes | None]]


class Topic:
    """A topic of two partitions, a catalogue with an endpoint for it, and a target folder."""

    def __init__(self, kafka: KafkaBroker, folder: Path, **options: Any) -> None:
        self.name, self.folder = f"t-{uuid.uuid4().hex[:8]}", folder
        self.kafka, self.target, self.catalogue = kafka, folder / "tables", folder / "catalogue.json"
        self.acknowledged: dict[tuple[str, int], Message] = {}
        self.write_catalogue({"seen": SEEN}, **options)
        settings = {"bootstrap.servers": kafka.plain, "linger.ms": 1, "log_level": 0}
        settings["enable.idempotence"] = True  # keeps the order, also if some are sent again
        self._producer = Producer(settings)
        admin = AdminClient({"bootstrap.servers": kafka.plain})
        admin.create_topics([NewTopic(self.name, 2, 1)])[self.name].result()

    def write_catalogue(self, messages: Mapping[str, Any], **options: Any) -> None:
        options = {"endpoints": [{"bootstrap.servers": [self.kafka.plain]}]} | options
        endpoint = {
            "usage": ["consumer"],
            "protocol": "KAFKA",
            "protocoloptions": {"topic": self.name, "consumergroup": "lake"} | options,
            "messagegroups": ["/messagegroups/g"],
        }
        document = {
            "specversion": "1.0-rc4",
            "endpoints": {"e": endpoint},
            "messagegroups": {"g": {"messages": messages}},
        }
        partial = self.catalogue.with_suffix(".part")
        partial.write_text(json.dumps(document))
        partial.rename(self.catalogue)

    def send(
        self, value: bytes | None, headers: Headers, key: bytes | None = b"k", partition: int = 0, time: int = 0
    ) -> None:
        """Send a message; `time` is its timestamp in milliseconds, 0 for now."""
        self._producer.produce(
            self.name, value, key, partition, headers=headers, on_delivery=self._note, timestamp=time
        )
        self._producer.poll(0)

    def send_events(
        self, numbers: Iterable[int], type_: str = "seen", partition: int = 0, time: int = 0, **members: Any
    ) -> None:
        """CloudEvents; every tenth has an invalid payload. Those with odd numbers go to the other partition. `members`
        are in each payload."""
        for number in numbers:
            headers = [(f"ce_{name}", value.encode()) for name, value in attributes(number, type_).items()]
            value = json.dumps({"n": number if number % 10 else "x", **members}).encode()
            headers.append(("content-type", b"application/json"))
            self.send(value, headers, partition=(number + partition) % 2, time=time)
        self.flush()

    def add_partition(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.kafka.plain})
        admin.create_partitions([NewPartitions(self.name, 3)])[self.name].result()
        while len(self._producer.list_topics(self.name).topics[self.name].partitions) < 3:
            time.sleep(0.1)

    def flush(self) -> None:
        assert self._producer.flush(SECONDS) == 0

    def _note(self, error: Any, message: Message) -> None:
        assert error is None, error
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.acknowledged[f"kafka:{self.name}/{partition}", offset] = message

    def arguments(self, *more: str) -> list[str]:
        arguments = ["--endpoint", "/endpoints/e", "--catalog", str(self.catalogue), "--to", str(self.target)]
        return ["stream", *arguments, "--json", *more]

    def rows(self, table: str = "*") -> list[dict[str, Any]]:
        files = sorted(self.target.glob(f"{table}/*.parquet"))
        return [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]

    def places(self) -> Counter[tuple[str, int]]:
        """How often each message is in a table or in the dead letters."""
        return Counter((row.get("_file") or row["_source_file"], row["_line"]) for row in self.rows())

    def check_landed(self) -> None:
        """Every acknowledged message is in exactly one table or once in the dead letters."""
        places = self.places()
        assert not [place for place, count in places.items() if count > 1]
        assert places.keys() == self.acknowledged.keys()


def attributes(number: int, type_: str) -> dict[str, str]:
    return {"specversion": "1.0", "id": str(number), "source": f"/plants/p{number % 3}", "type": type_}


@pytest.mark.faults
def test_transactions_leave_no_gaps_in_what_a_target_knows(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    """Each transaction has an offset of its own at its end. The target would know one interval more for each."""
    topic = Topic(kafka, tmp_path)
    producer = Producer({"bootstrap.servers": kafka.plain, "transactional.id": topic.name, "log_level": 0})
    producer.init_transactions()
    for part in range(2):
        for number in range(5):
            producer.begin_transaction()
            headers: Headers = [(f"ce_{name}", text.encode()) for name, text in attributes(number, "seen").items()]
            producer.produce(topic.name, b'{"n": %d}' % number, b"k", 0, headers=headers)
            producer.flush()
            if number == 3:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        lines, _ = run(kafka_java, topic.arguments("--available-now"))
        assert (lines[-1]["read"], lines[-1]["landed"]) == (4, 4)
        (first, last), *more = Target(topic.target).history().offsets[f"kafka:{topic.name}/0"]
        assert (first, last, more) == (0, part * 10 + 8, [])
    assert len(topic.rows("g__seen")) == 8


def test_headers_keys_nulls_and_offsets_are_kept(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path)
    event: Headers = [(f"ce_{name}", value.encode()) for name, value in attributes(1, "seen").items()]
    event.append(("content-type", b"application/json"))
    odd: Headers = [("x", b"2"), ("x", b"1"), ("none", None), ("bytes", b"\xff\xfe"), ("", b""), ("x", b"2")]
    topic.send(b'{"n": 1}', [*event, *odd], key=None, partition=1)
    topic.send(None, event, key=b"\xff")  # a tombstone
    topic.send(b"\x00\xff", odd, key=None, partition=1)
    topic.send(b"", [], key=b"")
    topic.send(None, [], key=None, partition=1)
    topic.flush()
    lines, _ = run(kafka_java, topic.arguments("--available-now"))
    assert [lines[0][name] for name in ("batch", "read", "landed", "dead_lettered", "lag")] == [0, 5, 2, 3, 0]
    assert lines[-1]["read"] == 5
    topic.check_landed()
    seen = {(row["_file"].rpartition("/")[2], row["_line"], row["_index"]): row for row in topic.rows("g__seen")}
    assert {place: (row["n"], row["_tombstone"], row["ctx_plant"]) for place, row in seen.items()} == {
        ("1", 0, 0): (1, False, "p1"),
        ("0", 0, 0): (None, True, "p1"),
    }
    dead = {
        (row["_file"].rpartition("/")[2], row["_line"]): orjson.loads(row["raw"]) for row in topic.rows("dead_letters")
    }
    raw = dead["1", 1]
    assert raw["headers"] == [
        ["x", "2"],
        ["x", "1"],
        ["none", None],
        ["bytes", {"base64": base64.b64encode(b"\xff\xfe").decode()}],
        ["", ""],
        ["x", "2"],
    ]
    assert (raw["topic"], raw["partition"], raw["offset"]) == (topic.name, 1, 1)
    assert raw["value"] == {"base64": base64.b64encode(b"\x00\xff").decode()}
    assert raw.get("key") is None
    sent = topic.acknowledged[f"kafka:{topic.name}/1", 1].timestamp()[1]
    received = seen["1", 0, 0]["_received"].timestamp() * 1000
    assert round(received) == topic.acknowledged[f"kafka:{topic.name}/1", 0].timestamp()[1]
    milliseconds = f"{sent % 1000:03}".rstrip("0")
    assert raw["timestamp"].startswith(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(sent // 1000)))
    assert milliseconds in raw["timestamp"].partition(".")[2]
    assert [(dead[place].get("key"), dead[place].get("value")) for place in (("0", 1), ("1", 2))] == [
        ("", ""),
        (None, None),
    ]


@pytest.mark.faults
def test_hostile_messages_are_dead_letters(kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path) -> None:
    topic = Topic(kafka, tmp_path)
    event: Headers = [(f"ce_{name}", value.encode()) for name, value in attributes(1, "seen").items()]
    event.append(("content-type", b"application/json"))
    forms: list[Headers] = [
        [],
        event,
        [*event, ("content-encoding", b"gzip")],
        [("content-type", b"application/cloudevents+json")],
        [("content-type", b"application/cloudevents-batch+json")],
        [*event[:3], ("ce_type", b"\xff"), ("ce_time", b"9" * 10_000), ("content-type", b"\x00")],
        [(f"x{number}", None if number % 2 else b"\xff") for number in range(5000)],
        [(name, value * 10_000 if value else None) for name, value in event[:4]],
    ]
    for headers in forms:
        for value in HOSTILE:
            topic.send(value, headers, key=None, partition=len(topic.acknowledged) % 2)
        topic.flush()
    topic.send(b"x" * 999_000, [], key=b"\xff" * 100)  # almost the largest message that a broker takes by default
    topic.send(None, [("content-type", b"application/cloudevents+json")], key=None)
    topic.flush()
    topic.send_events(range(1, 10))
    count = len(topic.acknowledged)
    lines, _ = run(kafka_java, topic.arguments("--available-now"))
    assert lines[-1]["read"] >= count  # a batch of events has several, or none
    assert lines[-1]["landed"] >= 9
    assert Counter(row["n"] for row in topic.rows("g__seen") if row["ce_id"] != "1") == Counter(range(2, 10))
    assert lines[-1]["landed"] + lines[-1]["dead_lettered"] == lines[-1]["read"]
    topic.check_landed()


def check_figures(topic: Topic, lines: list[dict[str, Any]]) -> None:
    """The objects of batches agree with the sum of all, with each other, with the status, and with the tables."""
    *batches, total = lines
    for name in ("read", "landed", "dead_lettered"):
        assert sum(batch[name] for batch in batches) == total[name]
    partitions = {f"kafka:{topic.name}/{number}" for number in (0, 1)}
    for batch in batches:
        assert batch["partitions"].keys() == partitions
        assert batch["lag"] == sum(batch["partitions"].values())
        assert batch["landed"] == sum(batch["definitions"].values()) == batch["outcomes"].get("matched", 0)
        assert batch["dead_lettered"] == batch["reasons"].get("payload-invalid", 0)
        assert batch["bytes_read"] > 0 < batch["bytes_written"]
        assert batch["p50_seconds"] <= batch["p95_seconds"]
    lags = [batch["lag"] for batch in batches]
    assert lags == sorted(lags, reverse=True)
    assert (lags[0], lags[-1]) == (total["read"] - batches[0]["read"], 0)
    status = target_status(topic.target)
    assert (status.batches, status.read, status.dead_lettered) == (len(batches), total["read"], total["dead_lettered"])
    assert status.recent.reasons == {"payload-invalid": total["dead_lettered"]}
    assert status.streams == [batches[-1]]


def test_next_run_continues_and_starting_offsets_are_respected(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(100))
    offsets = json.dumps({topic.name: {"0": 40, "1": -2}})
    with lineage_server() as server:
        variables = {**kafka_java, "OPENLINEAGE_URL": server.url}
        lines, _ = run(variables, topic.arguments("--available-now", "--from", offsets, "--max-per-batch", "25"))
    assert lines[-1]["read"] == 60
    server.check()
    assert server.kinds() == ["START", *["RUNNING"] * (len(lines) - 1), "COMPLETE"]
    assert rows(server.events[-1]) == {"g__seen": lines[-1]["landed"], "dead_letters": lines[-1]["dead_lettered"]}
    assert server.events[0]["inputs"][0]["name"] == topic.name
    assert len(lines) > 3
    check_figures(topic, lines)
    topic.send_events(range(100, 120))
    lines, _ = run(kafka_java, topic.arguments("--once"))
    assert [(line["read"], line["skipped"]) for line in lines] == [(20, 0), (20, 0)]
    lines, _ = run(kafka_java, topic.arguments("--once", "--name", "again", "--from", "earliest"))
    assert [(line["read"], line["skipped"]) for line in lines] == [(40, 80), (40, 80)]
    topic.check_landed()


def test_messages_of_unknown_types_are_dead_letters(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(50), "unknown")
    lines, _ = run(kafka_java, topic.arguments("--available-now"))
    assert (lines[-1]["landed"], lines[-1]["outcomes"]) == (0, {"unexpected": 50})
    topic.check_landed()


def check_metrics(stream: Watched, messages: int) -> None:
    """Metrics and health of a stream that runs, at the address that it prints."""
    notes = [json.loads(note).get("message", "") for note in stream.notes if note.startswith("{")]
    (url,) = (note.split()[2].removesuffix("/metrics,") for note in notes if note.startswith("metrics at "))
    text = urllib.request.urlopen(f"{url}/metrics").read().decode()
    found = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line[:1] not in ("", "#")
    }
    endpoint = 'endpoint="/endpoints/e"'
    assert found[f'wirebook_stream_messages_total{{{endpoint},outcome="unexpected"}}'] == messages
    assert sum(number for name, number in found.items() if name.startswith("wirebook_stream_lag{")) == 0
    assert found[f"wirebook_stream_connected{{{endpoint}}}"] == 1
    assert urllib.request.urlopen(f"{url}/readyz").status == 200


@pytest.mark.parametrize("table_format", ["delta", pytest.param("iceberg", marks=pytest.mark.faults)])
def test_catalogue_is_refreshed_between_batches(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path, table_format: str
) -> None:
    """A definition is added, then a field, then the catalogue is broken."""
    topic = Topic(kafka, tmp_path)
    more = json.loads(json.dumps(SEEN).replace('"seen"', '"more"'))
    wider = json.loads(json.dumps(more))
    wider["dataschema"]["properties"]["weight"] = {"type": "number"}
    watching = ["--metrics-address", "127.0.0.1:0", "--progress", "json"]
    with started(kafka_java, topic.arguments("--interval", "0", "--format", table_format, *watching)) as process:
        stream = Watched(process)
        topic.send_events(range(1, 9), "more")
        stream.wait_for(lambda: stream.read() == 8)
        check_metrics(stream, 8)
        holder = target_status(topic.target).holder
        assert holder is not None
        assert holder.owner.startswith(f"process {process.pid} ")
        topic.write_catalogue({"seen": SEEN, "more": more})
        topic.send_events(range(11, 19), "more")
        stream.wait_for(lambda: stream.read() == 16)
        topic.write_catalogue({"seen": SEEN, "more": wider})
        topic.send_events(range(21, 29), "more", weight=2.5)
        stream.wait_for(lambda: stream.read() == 24)
        topic.catalogue.write_text("{")
        topic.send_events(range(31, 39), "more", weight=3.5)
        stream.wait_for(lambda: stream.read() == 32)
        assert stream.end(signal.SIGINT) == 130
    assert stream.notes[-1] == "interrupted\n"
    events = [json.loads(note) for note in stream.notes if note.startswith("{")]
    messages = [event["message"] for event in events if "message" in event]
    assert any(message.startswith("the catalogue changed: ") for message in messages)
    assert any(message.startswith("the changed catalogue cannot be used: ") for message in messages)
    objects = [event for event in events if "batch" in event]
    assert [{name: event[name] for name in event if name != "time"} for event in objects] == stream.batches[:-1]
    assert len({batch["catalogue"] for batch in stream.batches if "batch" in batch}) == 3
    if table_format == "delta":
        landed = DeltaTable(str(topic.target / "g__more")).to_pyarrow_table()
    else:
        landed = iceberg_table(topic.target, "g__more").scan().to_arrow()
    assert {row["n"]: row["weight"] for row in landed.to_pylist()} == (
        dict.fromkeys(range(11, 19)) | dict.fromkeys(range(21, 29), 2.5) | dict.fromkeys(range(31, 39), 3.5)
    )
    assert landed.num_rows == 24
    topic.check_landed()


PROGRAM = """
import sys
from wirebook.spark import land, match, read_stream
from wirebook.spark.session import session

servers, topic, catalogue, to = sys.argv[1:]
spark = session()
of_endpoint = read_stream(spark, "/endpoints/e", catalogue, max_per_batch=4, starting="latest")
land(of_endpoint, catalogue, to, trigger={"availableNow": True}, name="latest").awaitTermination()
of_endpoint = read_stream(spark, "/endpoints/e", catalogue, max_per_batch=4)
land(of_endpoint, catalogue, to, trigger={"availableNow": True}).awaitTermination()
source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
source = source.option("startingOffsets", "earliest").option("includeHeaders", "true")
land(source.load(), catalogue, to, trigger={"availableNow": True}, name="own").awaitTermination()
matched = match(source.load(), catalogue).writeStream.format("memory").queryName("matched")
matched.trigger(availableNow=True).start().awaitTermination()
print(*sorted(f"{row.topic}/{row.partition}/{row.offset}:{row.outcome}" for row in spark.table("matched").collect()))
"""


def test_frame_of_a_topic_lands_and_matches_as_it_streams(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    """The DataFrame of an endpoint, and one of Spark's source that the caller made: what has landed is known."""
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(1, 11))
    arguments = [kafka.plain, topic.name, str(topic.catalogue), str(topic.target)]
    command = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(command, env=os.environ | kafka_java, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = {f"{topic.name}/{number % 2}/{(number - 1) // 2}": "matched" for number in range(1, 10)}
    expected |= {f"{topic.name}/0/4": "invalid-payload"}  # number 10
    assert dict(item.rsplit(":", 1) for item in done.stdout.split()) == expected
    topic.check_landed()


def test_repeated_events_land_once_in_the_window(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    """Repeats in a partition, between the partitions of a batch, in a later batch, and after the window."""
    topic, minute = Topic(kafka, tmp_path), 60_000
    now = time.time_ns() // 1_000_000
    topic.send_events([*range(1, 9), 1, 2, 3], time=now - 100 * minute)
    topic.send_events([4, 5], partition=1, time=now - 90 * minute)
    options = ["--available-now", "--deduplicate", "1h"]
    (batch, total), _ = run(kafka_java, topic.arguments(*options))
    assert [batch[name] for name in ("read", "landed", "dead_lettered", "repeated")] == [13, 8, 0, 5]
    assert (batch["outcomes"], total["repeated"]) == ({"matched": 8, "repeated": 5}, 5)
    topic.send_events([1, 9], time=now - 50 * minute)  # still in the window
    topic.send_events([1, 2, 10, 10], time=now - 30 * minute)  # 10 is invalid: a dead letter each time
    (batch, _), _ = run(kafka_java, topic.arguments(*options, "--progress", "json"))
    assert [batch[name] for name in ("read", "landed", "dead_lettered", "repeated")] == [6, 3, 2, 1]
    topic.check_landed()
    assert Counter(row["ce_id"] for row in topic.rows("g__seen")) == Counter("123456789" + "12")
    again = {(row["_file"].rpartition("/")[2], row["_line"]): row["id"] for row in topic.rows("repeated")}
    assert again == {
        ("0", 4): "2",
        ("1", 2): "5",  # partition 0 has it too, at the smaller place
        ("1", 4): "1",
        ("1", 5): "3",
        ("1", 6): "4",
        ("1", 7): "1",
    }
    status = target_status(topic.target)
    assert (status.read, status.landed, status.dead_lettered, status.repeated) == (19, 11, 2, 6)


@pytest.mark.faults
def test_stream_waits_for_a_broker_that_restarts(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    topic, config = Topic(kafka, tmp_path), tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=3000\nrequest.timeout.ms=1000\n")  # Spark gives up after seconds
    more = ["--interval", "0", "--max-per-batch", "50", "--client-config", str(config)]
    with started(kafka_java, topic.arguments(*more)) as process:
        stream = Watched(process)
        topic.send_events(range(200))
        stream.wait_for(lambda: stream.read() >= 50)
        kafka.kill()
        try:
            stream.wait_for(lambda: any(note.startswith("the broker cannot be reached") for note in stream.notes))
        finally:
            kafka.start()
        topic.send_events(range(200, 300))
        stream.wait_for(lambda: stream.read() == 300)
        assert stream.end(signal.SIGTERM) == 0
    topic.check_landed()


@pytest.mark.faults
def test_messages_that_the_broker_deleted_stop_the_stream(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(20))
    run(kafka_java, topic.arguments("--available-now"))
    topic.send_events(range(20, 40))
    admin = AdminClient({"bootstrap.servers": kafka.plain})
    for deleted in admin.delete_records([TopicPartition(topic.name, 0, 15)]).values():
        deleted.result()
    _, err = run(kafka_java, topic.arguments("--available-now"), code=2)
    assert "error: the broker no longer has messages that were not read: " in err
    assert "[messages-lost]; run the command with --skip-lost" in err
    lines, _ = run(kafka_java, topic.arguments("--available-now", "--skip-lost"))
    assert lines[-1]["read"] == 15
    assert topic.places().total() == 35


@pytest.mark.faults
def test_stream_into_a_store_continues_without_a_checkpoint(
    kafka: KafkaBroker, kafka_java: dict[str, str], bucket: str, tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(20))
    arguments = [*topic.arguments("--available-now", "--format", "delta"), "--to", f"{bucket}/tables"]
    lines, _ = run({}, arguments)  # a session of its own, which finds the connector
    assert lines[-2]["position"] == {topic.name: {"0": 10, "1": 10}}
    topic.send_events(range(20, 40))
    topic.add_partition()
    topic.send(b"none", [], partition=2)
    topic.flush()
    lines, _ = run(kafka_java, arguments)
    assert (lines[-1]["read"], lines[-1]["skipped"]) == (21, 0)
    lines, _ = run(kafka_java, [*arguments, "--name", "other"])  # it has no position, and reads all again
    assert (lines[-1]["read"], lines[-1]["skipped"]) == (0, 41)


@pytest.mark.faults
def test_batch_waits_for_another_run_at_the_target(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(20))
    with started(kafka_java, topic.arguments("--available-now")) as process:
        stream = Watched(process)
        with Target(topic.target).locked():
            stream.wait_for(lambda: any(note.startswith("streaming") for note in stream.notes))
            time.sleep(2)
            assert not stream.batches
        assert process.wait(SECONDS) == 0
    topic.check_landed()


@pytest.mark.faults
def test_killed_stream_lands_every_message_once(kafka: KafkaBroker, tmp_path: Path) -> None:
    """The driver is killed at random moments while messages arrive."""
    topic = Topic(kafka, tmp_path)
    kills = int(os.environ.get("WIREBOOK_KILLS", "1"))
    arguments = topic.arguments("--interval", "0", "--max-per-batch", "40")
    numbers = iter(range(1_000_000))
    kill_while_producing(arguments, lambda: topic.send_events([next(numbers) for _ in range(5)]), kills)
    run({}, topic.arguments("--available-now"))
    assert len(topic.acknowledged) > 100
    topic.check_landed()


@pytest.mark.faults
def test_killed_stream_lands_repeated_events_once(kafka: KafkaBroker, tmp_path: Path) -> None:
    """The driver is killed at random moments while events arrive, each of them three times in all."""
    topic, dice = Topic(kafka, tmp_path), random.Random(time.time_ns())
    kills = int(os.environ.get("WIREBOOK_KILLS", "2"))
    arguments = topic.arguments("--interval", "0", "--max-per-batch", "40", "--deduplicate", "1h")
    sent = list[int]()

    def produce() -> None:
        new = len(sent) * 10 + 1  # 1, 11, 21: all valid
        sent.append(new)
        topic.send_events([new, dice.choice(sent)], partition=dice.randrange(2))

    kill_while_producing(arguments, produce, kills)
    topic.send_events(sent)
    run({}, topic.arguments("--available-now", "--deduplicate", "1h"))
    assert len(sent) > 50
    topic.check_landed()
    assert sorted(row["n"] for row in topic.rows("g__seen")) == sent
    assert len(topic.rows("repeated")) == 2 * len(sent)


@pytest.mark.parametrize("mechanism", [pytest.param("PLAIN", marks=pytest.mark.faults), "SCRAM-SHA-512"])
def test_sasl_ssl_with_credentials_that_are_stored_nowhere(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path, mechanism: str
) -> None:
    authorization = [{"type": "SASL", "mechanism": mechanism}]
    topic = Topic(kafka, tmp_path, endpoints=[{"bootstrap.servers": [kafka.tls]}], authorization=authorization)
    topic.send_events(range(20))
    ((user, password),) = (USERS if mechanism == "PLAIN" else SCRAM_USERS).items()
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"/endpoints/e": {"username": user, "cafile": str(kafka.certificate)}}))
    arguments = topic.arguments("--available-now", "--secrets", str(secrets))
    _, err = run(kafka_java, arguments, code=2)
    assert "[missing-credentials]; set WIREBOOK_E_USERNAME" in err
    assert "/endpoints/e/protocoloptions/authorization" in err
    _, refused = run(kafka_java | {"WIREBOOK_E_PASSWORD": "wrong-" + password}, arguments, code=2)
    assert f"the broker at {kafka.tls} refuses the connection (SASL_SSL with {mechanism})" in refused
    lines, accepted = run(kafka_java | {"WIREBOOK_E_PASSWORD": password}, arguments)
    assert lines[-1]["read"] == 20
    stored = b"".join(path.read_bytes() for path in topic.target.rglob("*") if path.is_file())
    assert len(stored) > 1000
    assert password.encode() not in stored
    assert password not in f"{lines}{refused}{accepted}"
    topic.check_landed()


@pytest.mark.faults
def test_unreachable_broker_and_missing_topic_are_one_line(
    kafka: KafkaBroker, kafka_java: dict[str, str], tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path, topic="no-such-topic")
    _, err = run(kafka_java, topic.arguments("--available-now"), code=2)
    assert f"error: the broker at {kafka.plain} does not have the topic 'no-such-topic' [unknown-topic]" in err
    config = tmp_path / "client.properties"
    config.write_text("bootstrap.servers=127.0.0.1:1\n")
    _, err = run(kafka_java, topic.arguments("--available-now", "--client-config", str(config)), code=2)
    assert "error: the broker at 127.0.0.1:1 did not answer within 15 seconds [broker-unreachable]" in err
    assert not topic.target.exists()
