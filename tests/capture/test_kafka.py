"""Kafka: records are captured unchanged, and offsets are committed after the records are durable."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from brokers import USERS, KafkaBroker, free_port
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.capture.gateway import (
    KILLS,
    captured,
    full_disk,
    gateway,
    lines_in,
    make_room,
    pending_bytes,
    wait_for_note,
    wait_until,
    write_catalog,
)
from wirebook.landing.stores.locations import location_of

ARGUMENTS = ["--endpoint", "/endpoints/rides"]


pytestmark = pytest.mark.xdist_group("kafka")


@pytest.fixture
def servers(kafka: KafkaBroker) -> Iterator[str]:
    """The address of a broker with the topic `rides` of two partitions."""
    admin = AdminClient({"bootstrap.servers": kafka.plain})
    for created in admin.create_topics([NewTopic("rides", 2, 1)]).values():
        created.result(60)
    yield kafka.plain
    for deleted in admin.delete_topics(["rides"]).values():
        deleted.result(60)


def catalog_of(servers: str, folder: Path, **options: Any) -> Path:
    """The group is that of the test: a gateway that was killed stays a member for a while."""
    options = {
        "topic": "rides",
        "consumergroup": folder.name,
        "endpoints": [{"bootstrap.servers": [servers]}],
    } | options
    return write_catalog(folder, {"rides": {"usage": ["consumer"], "protocol": "KAFKA", "protocoloptions": options}})


def producer_in_order(servers: str) -> Producer:
    """A producer that keeps the order of messages, also when it sends some again because the topic was too new."""
    return Producer({"bootstrap.servers": servers, "enable.idempotence": True})


def committed(servers: str, group: str) -> int:
    """The committed offsets of all partitions."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    partitions = consumer.list_topics("rides", timeout=30).topics["rides"].partitions
    offsets = consumer.committed([TopicPartition("rides", number) for number in partitions], timeout=30)
    consumer.close()
    return sum(max(offset.offset, 0) for offset in offsets)


def test_records_are_captured_unchanged_and_committed(servers: str, tmp_path: Path) -> None:
    producer, folder = producer_in_order(servers), tmp_path / "to"
    headers: list[tuple[str, str | bytes | None]] = [("n", b"2"), ("n", b"1"), ("null", None), ("raw", b"\xff")]
    producer.produce("rides", b"\x00\xff", b"k1", headers=headers, partition=0, timestamp=1_700_000_000_123)
    producer.produce("rides", None, b"k1", partition=0)
    producer.produce("rides", b"", None, partition=1)
    producer.flush()
    with gateway(catalog_of(servers, tmp_path), folder, *ARGUMENTS) as process:
        wait_until(lambda: len(lines_in(folder)) == 3)
        assert process.stop()[0] == 0
    records = sorted(captured(folder), key=lambda record: (record["partition"], record["offset"]))
    first = records[0]
    assert {name: first[name] for name in ("protocol", "endpoint", "topic", "partition", "offset", "key")} == {
        "protocol": "KAFKA", "endpoint": "/endpoints/rides", "topic": "rides", "partition": 0, "offset": 0, "key": "k1"
    }  # fmt: skip
    assert first["headers"] == [["n", "2"], ["n", "1"], ["null", None], ["raw", {"base64": "/w=="}]]
    assert (first["timestamp"], first["value"]) == ("2023-11-14T22:13:20.123Z", {"base64": "AP8="})
    assert ("value" in records[1], records[1]["offset"]) == (False, 1)
    assert (records[2]["value"], "key" in records[2]) == ("", False)
    assert committed(servers, tmp_path.name) == 3
    with gateway(catalog_of(servers, tmp_path), folder, *ARGUMENTS) as again:
        wait_for_note(again, "receiving")
        producer.produce("rides", b"4", partition=1)
        producer.flush()
        wait_until(lambda: len(lines_in(folder)) == 4)
        again.stop()
    assert len(captured(folder)) == 4


def test_full_memory_stops_reading(servers: str, tmp_path: Path) -> None:
    """Nothing can be written: the gateway reads as much as fits `--memory`, and the broker keeps the rest."""
    metrics, folder = f"127.0.0.1:{free_port()}", tmp_path / "to"
    producer = producer_in_order(servers)
    for number in range(1500):
        producer.produce("rides", str(number).encode() + b"x" * 20_000, partition=0)
        producer.poll(0)
    producer.flush(60)
    arguments = [*ARGUMENTS, "--memory", "1", "--metrics-address", metrics]
    with full_disk(catalog_of(servers, tmp_path), folder, *arguments) as process:
        wait_for_note(process, "receiving")
        wait_until(lambda: pending_bytes(metrics) > 1 << 20)
        time.sleep(0.5)
        assert pending_bytes(metrics) < (1 << 20) + 1_000_000
        make_room(process)
        wait_until(lambda: len(lines_in(folder)) == 1500)
        assert process.stop()[0] == 0
    assert [record["value"].rstrip("x") for record in captured(folder)] == [str(number) for number in range(1500)]
    assert committed(servers, tmp_path.name) == 1500


def test_unreachable_broker_is_noted_once(tmp_path: Path) -> None:
    """Two addresses fail many times in these seconds, with texts that differ."""
    servers = [f"127.0.0.1:{free_port()}", f"localhost:{free_port()}"]
    catalog = catalog_of("", tmp_path, endpoints=[{"bootstrap.servers": servers}])
    with gateway(catalog, tmp_path / "to", *ARGUMENTS, "--progress", "none") as process:
        time.sleep(5)
        connection, down = sorted(process.stop()[1].splitlines())
    assert connection.startswith("/endpoints/rides: connection failed: ")
    assert connection.endswith("; trying again")
    assert down == "/endpoints/rides: not receiving: 2/2 brokers are down; trying again"


@pytest.mark.faults
def test_each_outage_is_noted_once(kafka: KafkaBroker, servers: str, tmp_path: Path) -> None:
    """The gateway is ready again when the broker is back, also if no message arrives. Its note is
    `receiving again`, or names the partitions if the broker was away for so long that they were assigned anew."""
    metrics, folder = f"127.0.0.1:{free_port()}", tmp_path / "to"

    def is_ready() -> bool:
        return httpx.get(f"http://{metrics}/readyz", trust_env=False).status_code == 200

    arguments = [*ARGUMENTS, "--metrics-address", metrics, "--progress", "none"]
    with gateway(catalog_of(servers, tmp_path), folder, *arguments) as process:
        assert process.process.stderr
        wait_for_note(process, "receiving 'rides'")
        for _ in range(2):
            kafka.kill()
            try:
                wait_until(lambda: not is_ready())
                time.sleep(3)
            finally:
                kafka.start()
            notes = [""]
            while ": receiving " not in notes[-1]:
                notes.append(process.process.stderr.readline())
                assert notes[-1], "the gateway ended"
            assert len([note for note in notes if "brokers are down; trying again" in note]) == 1
            assert len([note for note in notes if "connection failed" in note]) == 1
            wait_until(is_ready)
        producer = Producer({"bootstrap.servers": servers})
        producer.produce("rides", b"1")
        producer.flush()
        wait_until(lambda: len(lines_in(folder)) == 1)
        assert process.stop()[0] == 0


@pytest.mark.faults
def test_killed_gateway_loses_no_record(servers: str, tmp_path: Path) -> None:
    producer, folder, sent = Producer({"bootstrap.servers": servers}), tmp_path / "to", 0
    stop = threading.Event()

    def produce() -> None:
        nonlocal sent
        while not stop.is_set():
            sent += 1
            producer.produce("rides", f"{sent}.{'x' * random.randrange(500)}")
            if sent % 100 == 0:
                producer.flush()
                time.sleep(0.05)
        producer.flush()

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        for _ in range(KILLS):
            with gateway(catalog_of(servers, tmp_path), folder, *ARGUMENTS, "--segment-age", "1s") as process:
                wait_for_note(process, "receiving")
                time.sleep(random.uniform(0.02, 2))
                process.process.kill()
    finally:
        stop.set()
        thread.join()
    expected = set(range(1, sent + 1))
    with gateway(catalog_of(servers, tmp_path), folder, *ARGUMENTS) as last:
        wait_until(lambda: {int(record["value"].split(".")[0]) for record in lines_in(folder)} == expected)
        assert last.stop()[0] == 0
    numbers = Counter(record["value"].split(".")[0] for record in captured(folder))
    assert set(map(int, numbers)) == expected
    print(f"{KILLS} kills: {sent} sent, {numbers.total() - len(numbers)} captured twice")


def test_missing_group_names_its_pointer(servers: str, tmp_path: Path) -> None:
    catalog = catalog_of(servers, tmp_path, consumergroup=None)
    with (
        pytest.raises(AssertionError, match="/endpoints/rides/protocoloptions/consumergroup: error: "),
        gateway(catalog, tmp_path / "to", *ARGUMENTS),
    ):
        pass


def test_gateway_whose_receiver_fails_releases_its_store(tmp_path: Path, bucket: str) -> None:
    catalog, folder = catalog_of("127.0.0.1:1", tmp_path), f"{bucket}/captured"
    with gateway(catalog, folder, *ARGUMENTS, env={"WIREBOOK_RIDES_CAFILE": str(tmp_path / "none.pem")}) as process:
        assert process.process.stderr
        err = process.process.stderr.read()
        assert process.process.wait(60) == 2
    assert "the Kafka client of '/endpoints/rides' cannot start" in err
    assert "Traceback" not in err
    lease = location_of(folder) / "_wirebook" / "leases" / "1.json"
    assert json.loads(lease.read_bytes())["released"] is True


def test_password_and_certificate_come_from_the_secrets_file(kafka: KafkaBroker, servers: str, tmp_path: Path) -> None:
    catalog = catalog_of(f"SASL_SSL://{kafka.tls}", tmp_path, authorization=[{"type": "SASL", "mechanism": "PLAIN"}])
    producer = Producer({"bootstrap.servers": servers})
    producer.produce("rides", b"1")
    producer.flush()
    secrets = tmp_path / "secrets.json"
    members = {"username": "app", "password": USERS["app"], "cafile": str(kafka.certificate)}
    secrets.write_text(json.dumps({"/endpoints/rides": members}))
    with gateway(catalog, tmp_path / "to", *ARGUMENTS, "--secrets", str(secrets)) as process:
        wait_until(lambda: len(lines_in(tmp_path / "to")) == 1)
        code, err = process.stop()
    assert code == 0
    assert USERS["app"] not in err + str(process.notes)
    wrong = {"WIREBOOK_RIDES_PASSWORD": "wrong-secret"}
    with gateway(catalog, tmp_path / "wrong", *ARGUMENTS, "--secrets", str(secrets), env=wrong) as process:
        assert process.process.stderr
        while "uthentication failed" not in (line := process.process.stderr.readline()):
            assert line, "the gateway ended"
        assert "wrong-secret" not in line + process.stop()[1]
