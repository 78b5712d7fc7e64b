"""`wirebook stream` as a client of a Spark Connect server: the client plans the batches and lands them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from brokers import SCRAM_USERS, KafkaBroker, NatsServer
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.brokers.faulty_store import Fault, faulty_store
from tests.brokers.spark_connect import connect_server
from tests.landing.s3 import CREDENTIALS
from tests.spark.stream_commands import Watched, kill_while_producing, run, started
from tests.spark.test_jetstream import Plants, with_jetstream
from tests.spark.test_kafka_stream import SEEN, Headers, Topic, attributes, check_figures
from wirebook.landing.runs.target import Target
from wirebook.landing.watch.status import target_status
from wirebook.spark.jars import KAFKA, class_path, locked_jars

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("kafka")]


@pytest.fixture(scope="module")
def connect(s3: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment variable of clients of a server that has the Kafka connector and reaches the S3 server."""
    with connect_server(tmp_path_factory.mktemp("connect"), class_path(locked_jars(KAFKA))) as url:
        yield {"SPARK_REMOTE": url}


@pytest.fixture
def plants(tmp_path: Path) -> Iterator[Plants]:
    server = NatsServer("--jetstream", "--store_dir", str(tmp_path / "jetstream"))
    yield Plants(server, tmp_path)
    server.kill()


def wait_until(condition: Callable[[], bool], stream: Watched) -> None:
    """As `Watched.wait_for`, for what lasts only milliseconds."""
    while not condition():
        assert stream.process.poll() is None, stream.notes
        time.sleep(0.005)


# -- Kafka ----------------------------------------------------------------------------------------------------------


@pytest.mark.faults
def test_runs_continue_where_the_target_says(kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path) -> None:
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(100))
    offsets = json.dumps({topic.name: {"0": 40, "1": -2}})
    lines, _ = run(connect, topic.arguments("--available-now", "--from", offsets, "--max-per-batch", "25"))
    assert [line["read"] for line in lines] == [24, 24, 12, 60]  # each partition has its share
    assert lines[2]["position"] == {topic.name: {"0": 50, "1": 50}}
    check_figures(topic, lines)
    lines, _ = run(connect, topic.arguments("--available-now"))
    assert [line["read"] for line in lines] == [0]
    topic.send_events(range(100, 120))
    topic.add_partition()
    topic.send(b"none", [], partition=2)
    topic.flush()
    lines, _ = run(connect, topic.arguments("--once", "--max-per-batch", "5"))
    assert [(line["read"], line["skipped"]) for line in lines] == [(21, 0), (21, 0)]
    lines, _ = run(connect, topic.arguments("--once", "--name", "again", "--from", "earliest"))
    assert [(line["read"], line["skipped"]) for line in lines] == [(40, 81), (40, 81)]
    assert [stream["query"] for stream in target_status(topic.target).streams] == ["again", "e"]
    topic.check_landed()


@pytest.mark.faults
def test_position_is_that_of_runs_without_spark_connect(
    kafka: KafkaBroker, connect: dict[str, str], kafka_java: dict[str, str], tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(20))
    run(kafka_java, topic.arguments("--available-now"))
    topic.send_events(range(20, 40))
    lines, _ = run(connect, topic.arguments("--available-now"))
    assert (lines[-1]["read"], lines[-1]["skipped"]) == (20, 0)
    topic.send_events(range(40, 50))
    lines, _ = run(kafka_java, topic.arguments("--available-now"))
    assert (lines[-1]["read"], lines[-1]["skipped"]) == (10, 20)  # Spark goes on where its checkpoint says
    topic.check_landed()


@pytest.mark.faults
def test_new_stream_from_the_latest_keeps_its_start(
    kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path
) -> None:
    """What arrives while the stream waits is read, and signals end it between batches and in the wait."""
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(1, 9))
    watching = ["--interval", "1s", "--metrics-address", "127.0.0.1:0"]
    with started(connect, topic.arguments("--from", "latest", *watching)) as process:
        stream = Watched(process)
        stream.wait_for(lambda: any(note.startswith("streaming") for note in stream.notes))
        time.sleep(2)
        topic.send_events(range(11, 19))
        stream.wait_for(lambda: stream.read() == 8)
        topic.write_catalogue({"seen": SEEN, "more": json.loads(json.dumps(SEEN).replace('"seen"', '"more"'))})
        topic.send_events(range(21, 29), "more")
        stream.wait_for(lambda: stream.read() == 16)
        assert stream.end(signal.SIGINT) == 130
    assert any(note.startswith("the catalogue changed: ") for note in stream.notes)
    assert not any("was not finished" in note for note in stream.notes)
    assert stream.batches[-1]["read"] == 16
    assert sorted(row["n"] for row in topic.rows("g__seen")) == [*range(11, 19)]
    assert sorted(row["n"] for row in topic.rows("g__more")) == [*range(21, 29)]
    (recorded,) = target_status(topic.target).streams
    assert (recorded["lag"], recorded["position"]) == (0, {topic.name: {"0": 12, "1": 12}})


@pytest.mark.faults
def test_transactions_leave_no_gaps(kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path) -> None:
    """Aborted transactions are not read, and one that goes on is read when it has ended."""
    topic = Topic(kafka, tmp_path)
    producer = Producer({"bootstrap.servers": kafka.plain, "transactional.id": topic.name, "log_level": 0})
    producer.init_transactions()

    def send(number: int) -> None:
        headers: Headers = [(f"ce_{name}", text.encode()) for name, text in attributes(number, "seen").items()]
        producer.produce(topic.name, b'{"n": %d}' % number, b"k", 0, headers=headers)
        producer.flush()

    for number in range(4):
        producer.begin_transaction()
        send(number)
        producer.abort_transaction() if number == 1 else producer.commit_transaction()
    producer.begin_transaction()
    send(4)
    lines, _ = run(connect, topic.arguments("--available-now", "--max-per-batch", "5"))
    assert (lines[-1]["read"], lines[-2]["lag"]) == (3, 0)
    ((first, last),) = Target(topic.target).history().offsets[f"kafka:{topic.name}/0"]
    assert (first, last) == (0, 6)
    producer.commit_transaction()
    lines, _ = run(connect, topic.arguments("--available-now"))
    assert (lines[-1]["read"], lines[-1]["skipped"]) == (1, 0)
    assert [row["n"] for row in sorted(topic.rows("g__seen"), key=lambda row: row["_line"])] == [0, 2, 3, 4]


@pytest.mark.faults
def test_smallest_batch_and_one_partition_of_a_topic(
    kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path, partition=1)
    topic.send_events(range(10))
    with started(connect, topic.arguments("--interval", "0", "--min-per-batch", "8")) as process:
        stream = Watched(process)
        stream.wait_for(lambda: any(note.startswith("streaming") for note in stream.notes))
        time.sleep(2)
        topic.send_events(range(10, 20))
        stream.wait_for(lambda: stream.read() == 10)
        assert stream.end(signal.SIGTERM) == 0
    assert [batch["read"] for batch in stream.batches] == [10, 10]
    assert {row["_file"] for row in topic.rows()} == {f"kafka:{topic.name}/1"}
    topic.write_catalogue({"seen": SEEN}, partition=7)
    _, err = run(connect, topic.arguments("--once"), code=2)
    assert f"the topic '{topic.name}' has no partition 7 [unknown-topic]" in err


@pytest.mark.faults
def test_sasl_ssl_for_the_client_and_the_workers(kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path) -> None:
    authorization = [{"type": "SASL", "mechanism": "SCRAM-SHA-512"}]
    topic = Topic(kafka, tmp_path, endpoints=[{"bootstrap.servers": [kafka.tls]}], authorization=authorization)
    topic.send_events(range(20))
    ((user, password),) = SCRAM_USERS.items()
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"/endpoints/e": {"username": user, "cafile": str(kafka.certificate)}}))
    arguments = topic.arguments("--available-now", "--secrets", str(secrets))
    _, refused = run(connect | {"WIREBOOK_E_PASSWORD": "wrong-" + password}, arguments, code=2)
    assert f"the broker at {kafka.tls} refuses the connection (SASL_SSL with SCRAM-SHA-512): " in refused
    lines, accepted = run(connect | {"WIREBOOK_E_PASSWORD": password}, arguments)
    assert lines[-1]["read"] == 20
    assert password not in f"{lines}{refused}{accepted}"
    topic.check_landed()


def test_what_a_client_cannot_do_is_one_line(kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path) -> None:
    topic = Topic(kafka, tmp_path, topic="no-such-topic")
    _, err = run(connect, topic.arguments("--available-now"), code=2)
    assert f"error: the broker at {kafka.plain} does not have the topic 'no-such-topic' [unknown-topic]" in err
    _, err = run(connect, topic.arguments("--checkpoint", "progress"), code=2)
    assert "over Spark Connect, the target keeps the progress of the stream" in err
    assert not topic.target.exists()


@pytest.mark.faults
def test_unreachable_broker_and_missing_connector(kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path) -> None:
    topic, config = Topic(kafka, tmp_path), tmp_path / "client.properties"
    config.write_text("bootstrap.servers=127.0.0.1:1\n")
    _, err = run(connect, topic.arguments("--available-now", "--client-config", str(config)), code=2)
    assert "error: the broker at 127.0.0.1:1 did not answer within 15 seconds [broker-unreachable]" in err
    topic.send_events(range(3))
    with connect_server(tmp_path) as url:
        _, err = run({"SPARK_REMOTE": url}, topic.arguments("--available-now"), code=2)
    assert "error: this Spark session has no Kafka connector [missing-jars]; " in err
    assert not topic.rows()


@pytest.mark.faults
def test_killed_client_lands_every_message_once(kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path) -> None:
    """The client is killed at random moments while messages arrive; the server goes on with the last batch."""
    topic = Topic(kafka, tmp_path)
    kills = int(os.environ.get("WIREBOOK_KILLS", "3"))
    arguments = topic.arguments("--interval", "0", "--max-per-batch", "40")
    numbers = iter(range(1_000_000))
    kill_while_producing(arguments, lambda: topic.send_events([next(numbers) for _ in range(5)]), kills, connect)
    run(connect, topic.arguments("--available-now"))
    assert len(topic.acknowledged) > 100
    topic.check_landed()


@pytest.mark.faults
@pytest.mark.parametrize("moment", ["a task writes", "the batch is committed"])
def test_client_killed_within_a_batch(kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path, moment: str) -> None:
    """Killed while tasks of the server write the files of a batch, and before the position after it is recorded."""
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(60_000))
    records = topic.target / "_wirebook"
    pattern = "staging/*/*/*" if moment == "a task writes" else "batches/2.json"
    with started(connect, topic.arguments("--interval", "0", "--max-per-batch", "25000")) as process:
        stream = Watched(process)
        stream.wait_for(lambda: stream.read() >= 25_000)
        wait_until(lambda: any(records.glob(pattern)), stream)
        process.kill()
    lines, _ = run(connect, topic.arguments("--available-now"))
    assert 0 < lines[-1]["read"] <= 35_000
    topic.check_landed()


@pytest.mark.faults
def test_sigterm_finishes_the_batch(kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path) -> None:
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(20_000))
    staging = topic.target / "_wirebook" / "staging"
    with started(connect, topic.arguments("--interval", "0", "--max-per-batch", "10000")) as process:
        stream = Watched(process)
        wait_until(lambda: any(staging.glob("*/*/*")), stream)
        assert stream.end(signal.SIGTERM) == 0
    assert not any("was not finished" in note for note in stream.notes)
    assert stream.read() == len(topic.rows()) == 10_000 * len(stream.batches[:-1])
    lines, _ = run(connect, topic.arguments("--available-now"))
    assert (lines[-1]["read"], lines[-1]["skipped"]) == (20_000 - stream.read(), 0)
    topic.check_landed()


@pytest.mark.faults
def test_server_that_goes_away(kafka: KafkaBroker, tmp_path: Path) -> None:
    """A stop ends the wait for the server, and a run without one ends with one line."""
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(20))
    with ExitStack() as server:
        environment = {"SPARK_REMOTE": server.enter_context(connect_server(tmp_path, class_path(locked_jars(KAFKA))))}
        with started(environment, topic.arguments("--interval", "0")) as process:
            stream = Watched(process)
            stream.wait_for(lambda: stream.read() == 20)
            server.close()
            topic.send_events(range(20, 30))
            time.sleep(5)
            assert process.poll() is None
            assert stream.end(signal.SIGTERM) == 0
    _, err = run(environment, topic.arguments("--once"), code=2)
    assert f"the Spark Connect server at {environment['SPARK_REMOTE'][5:]} did not answer within 20 seconds" in err
    assert len(topic.rows()) == 20


@pytest.mark.faults
def test_stream_waits_for_a_broker_that_restarts(kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path) -> None:
    topic, config = Topic(kafka, tmp_path), tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=3000\nrequest.timeout.ms=1000\n")  # Spark gives up after seconds
    more = ["--interval", "0", "--max-per-batch", "50", "--client-config", str(config)]
    with started(connect, topic.arguments(*more)) as process:
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
    kafka: KafkaBroker, connect: dict[str, str], tmp_path: Path
) -> None:
    topic = Topic(kafka, tmp_path)
    topic.send_events(range(20))
    run(connect, topic.arguments("--available-now"))
    topic.send_events(range(20, 40))
    admin = AdminClient({"bootstrap.servers": kafka.plain})
    for deleted in admin.delete_records([TopicPartition(topic.name, 0, 15)]).values():
        deleted.result()
    _, err = run(connect, topic.arguments("--available-now"), code=2)
    assert f"not read: offsets 10 to 14 of partition 0 of '{topic.name}' [messages-lost]; run the command with" in err
    lines, _ = run(connect, topic.arguments("--available-now", "--skip-lost"))
    assert (lines[-1]["read"], lines[-2]["lag"]) == (15, 0)
    assert topic.places().total() == 35


@pytest.mark.faults
def test_stream_waits_for_a_store_that_is_away(
    kafka: KafkaBroker, connect: dict[str, str], bucket: str, s3: str, tmp_path: Path
) -> None:
    """The store refuses what the client writes; the workers reach it."""
    topic, to = Topic(kafka, tmp_path), f"{bucket}/tables"
    with faulty_store(s3) as store:
        environment = connect | CREDENTIALS | {"AWS_ENDPOINT_URL": store.url}
        arguments = [*topic.arguments("--interval", "0"), "--format", "delta", "--to", to]
        with started(environment, arguments) as process:
            stream = Watched(process)
            topic.send_events(range(20))
            stream.wait_for(lambda: stream.read() == 20)
            store.fail(Fault(503))
            topic.send_events(range(20, 40))
            stream.wait_for(lambda: any("the target cannot be written to, trying" in note for note in stream.notes))
            assert store.recover() > 0
            stream.wait_for(lambda: stream.read() == 40)
            assert stream.end(signal.SIGTERM) == 0
        assert any(note.startswith("the target can be written to again") for note in stream.notes)
        lines, _ = run(environment, [*topic.arguments("--once", "--name", "again"), "--format", "delta", "--to", to])
    assert (lines[-1]["read"], lines[-1]["skipped"]) == (0, 40)


# -- JetStream ------------------------------------------------------------------------------------------------------


def test_jetstream_lands_in_pieces(plants: Plants, connect: dict[str, str]) -> None:
    plants.send(range(1, 20))
    plants.send(range(30), "other.{}")
    plants.send(range(20, 23))
    lines, _ = run(connect, plants.arguments("--available-now", "--max-per-batch", "30"))
    assert [[line[name] for name in ("batch", "read", "lag")] for line in lines[:-1]] == [[0, 19, 22], [1, 3, 0]]
    assert lines[1]["partitions"] == {"nats:PLANTS": 0}
    assert lines[1]["position"]["sequence"] == 52
    plants.send(range(30, 36))
    lines, _ = run(connect, plants.arguments("--once"))
    assert [(line["read"], line["skipped"]) for line in lines] == [(6, 0), (6, 0)]
    lines, _ = run(connect, plants.arguments("--once", "--name", "again", "--from", "3"))
    assert [(line["read"], line["skipped"]) for line in lines] == [(0, 26), (0, 26)]
    plants.check_landed()
    seen = {row["_line"]: (row["n"], row["ctx_plant"], row["_endpoint"]) for row in plants.rows("g__seen")}
    assert seen[2] == (2, "p2", "/endpoints/e")


@pytest.mark.faults
def test_messages_that_jetstream_deleted_stop_the_command(plants: Plants, connect: dict[str, str]) -> None:
    plants.send(range(10))
    run(connect, plants.arguments("--once"))
    plants.send(range(10, 30))
    asyncio.run(with_jetstream(plants.server, lambda jetstream: jetstream.purge_stream("PLANTS", seq=21)))
    _, err = run(connect, plants.arguments("--once"), code=2)
    assert "sequence numbers 11 to 20 of 'PLANTS' [messages-lost]; run the command with --skip-lost" in err
    plants.acknowledged -= {*range(11, 21)}
    lines, _ = run(connect, plants.arguments("--once", "--skip-lost"))
    assert lines[-1]["read"] == 10
    plants.check_landed()
    asyncio.run(with_jetstream(plants.server, lambda jetstream: jetstream.delete_stream("PLANTS")))
    plants.make_stream()
    plants.send(range(100))
    _, err = run(connect, plants.arguments("--once"), code=2)
    assert "the stream 'PLANTS' was deleted and created again [messages-lost]" in err


@pytest.mark.faults
def test_jetstream_that_restarts_and_a_killed_client(plants: Plants, connect: dict[str, str]) -> None:
    arguments = plants.arguments("--interval", "0", "--max-per-batch", "40")
    with started(connect, arguments) as process:
        stream = Watched(process)
        plants.send(range(100))
        stream.wait_for(lambda: stream.read() >= 40)
        plants.server.kill()
        try:
            stream.wait_for(lambda: any(note.startswith("the broker cannot be reached") for note in stream.notes))
        finally:
            plants.server.start()
        plants.send(range(100, 150))
        stream.wait_for(lambda: stream.read() == 150)
        assert stream.end(signal.SIGTERM) == 0
    numbers = iter(range(150, 1_000_000))
    kill_while_producing(arguments, lambda: plants.send([next(numbers) for _ in range(5)]), 2, connect)
    run(connect, plants.arguments("--available-now"))
    assert Counter(row["_line"] for row in plants.rows()) == dict.fromkeys(plants.acknowledged, 1)
    plants.check_landed()
