"""confluent-kafka: its messages, and a record sent through librdkafka's mock broker."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from wirebook.bindings import Base64, HttpMessage, KafkaRecord
from wirebook.convert.confluent import arguments_of, record_of
from wirebook.problems import WirebookError

RECORD = KafkaRecord(
    topic="rides",
    partition=0,
    offset=0,
    timestamp="2026-01-05T08:00:00.123Z",
    key=Base64(b"\xff"),
    headers=[("ce_id", "1"), ("ce_id", "2"), ("bytes", Base64(b"\xfe")), ("null", None), ("empty", "")],
    value='{"bike":7}',
)


def test_record_survives_a_broker() -> None:
    """What `produce` takes is what `poll` gives; the delivery report has key and value of it."""
    producer = Producer({"test.mock.num.brokers": 1})
    reports: list[Message] = []
    producer.produce(**arguments_of(RECORD), on_delivery=lambda error, message: reports.append(message))
    tombstone = KafkaRecord(topic="rides", partition=0, key="k")
    producer.produce(**arguments_of(tombstone))
    assert producer.flush(20) == 0
    reported = record_of(reports[0])
    assert (reported.topic, reported.offset, reported.key, reported.value) == ("rides", 0, RECORD.key, RECORD.value)
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    consumer = Consumer(
        {"bootstrap.servers": f"{broker.host}:{broker.port}", "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["rides"])
    try:
        assert record_of(polled(consumer)) == RECORD
        record = record_of(polled(consumer))
        assert (record.key, record.value, record.headers) == ("k", None, None)
    finally:
        consumer.close()


def polled(consumer: Consumer) -> Message:
    for _ in range(30):
        message = consumer.poll(1)
        if message is not None:
            return message
    raise AssertionError("nothing came within 30 seconds")


def test_minimal_message_is_converted() -> None:
    assert record_of(Message(topic="t", value=b"x")) == KafkaRecord(topic="t", value="x")


@pytest.mark.parametrize("milliseconds", [2**62, -(2**62)])
def test_time_out_of_range_is_dropped(milliseconds: int) -> None:
    assert record_of(Message(topic="t", timestamp=(1, milliseconds))).timestamp is None


def test_error_event_is_rejected() -> None:
    with pytest.raises(WirebookError) as error:
        record_of(Message(error=KafkaError(KafkaError._PARTITION_EOF)))
    assert [problem.code for problem in error.value.problems] == ["malformed-record"]


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (HttpMessage(), "not-expressible"),
        (KafkaRecord(), "missing-required"),
        (KafkaRecord(topic="t", timestamp="2026-12-31T23:59:60Z"), "not-expressible"),
    ],
)
def test_inexpressible_message_is_rejected(wire: Any, code: str) -> None:
    with pytest.raises(WirebookError) as error:
        arguments_of(wire)
    assert [problem.code for problem in error.value.problems] == [code]
