"""Ranges of messages that a client of Spark Connect plans; neither Spark nor a broker is needed."""

from __future__ import annotations

import json
import sys

import pytest

from wirebook.problems import WirebookError
from wirebook.spark.kafka import KafkaSource
from wirebook.spark.kafka_stream import KafkaStream
from wirebook.spark.stream_sources import ReadLimits, Unread

UNREAD = Unread({"a": (10, 110), "b": (0, 1), "c": (5, 5)})


def test_batch_and_what_it_leaves() -> None:
    assert (UNREAD.count, UNREAD.counts) == (101, {"a": 100, "b": 1, "c": 0})
    batch = UNREAD.limited(50)
    assert batch.ranges == {"a": (10, 59), "b": (0, 1), "c": (5, 5)}  # b has one message, although its share is less
    assert UNREAD.after(batch).ranges == {"a": (59, 110), "b": (1, 1), "c": (5, 5)}
    assert UNREAD.limited(None) == UNREAD.limited(101) == UNREAD


@pytest.mark.parametrize("most", [1, 2, 7, 100])
def test_batches_of_any_size_read_all_messages_in_turn(most: int) -> None:
    unread, read = UNREAD, 0
    while unread.count:
        batch = unread.limited(most)
        assert 0 < batch.count <= most + len(unread.ranges)
        read += batch.count
        unread = unread.after(batch)
    assert (read, unread.ranges) == (101, {"a": (110, 110), "b": (1, 1), "c": (5, 5)})


def test_messages_that_arrive_later_are_left() -> None:
    ends = {"a": 50, "c": 3}
    assert UNREAD.before(ends).ranges == {"a": (10, 50), "b": (0, 0), "c": (5, 5)}


SOURCE = KafkaSource("/endpoints/e", ("t",), "a:9092", {"bootstrap.servers": "a:9092"}, group="lake")
PARTITIONS = {"t": [0, 1], "u": [0]}


@pytest.mark.parametrize(
    ("position", "starting", "expected"),
    [
        (None, "earliest", {"t": {"0": -2, "1": -2}, "u": {"0": -2}}),
        (None, "latest", {"t": {"0": -1, "1": -1}, "u": {"0": -1}}),
        (None, '{"t": {"0": 7, "1": -1}}', {"t": {"0": 7, "1": -1}, "u": {"0": -2}}),
        ({"t": {"0": 9}}, "latest", {"t": {"0": 9, "1": -2}, "u": {"0": -1}}),  # a new partition and a new topic
        ({"t": {"0": 9}}, '{"t": {"0": 7}}', {"t": {"0": 9, "1": -2}, "u": {"0": -2}}),
    ],
)
def test_first_offsets(position: dict[str, dict[str, int]] | None, starting: str, expected: object) -> None:
    assert SOURCE.first_offsets(position, starting, PARTITIONS) == expected


def test_options_of_a_batch() -> None:
    options = SOURCE.range_options({("t", 0): (3, 5), ("t", 1): (0, 1)}, "run", fail_on_data_loss=True)
    assert json.loads(options["assign"]) == {"t": [0, 1]}
    assert json.loads(options["startingOffsets"]) == {"t": {"0": 3, "1": 0}}
    assert json.loads(options["endingOffsets"]) == {"t": {"0": 5, "1": 1}}
    assert options["kafka.group.id"] == "lake-run"
    assert "groupIdPrefix" not in options
    own = KafkaSource("/endpoints/e", ("t",), "a:9092", {"group.id": "mine"}, group="lake")
    assert own.range_options({}, "run", fail_on_data_loss=True)["kafka.group.id"] == "mine"


def test_missing_client_of_kafka_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("wirebook.spark.kafka_ranges", "wirebook.capture.kafka_offsets"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(WirebookError, match="missing-extra") as error:
        KafkaStream(SOURCE).ranges(ReadLimits("earliest"))
    assert error.value.problems[0].hint == "pip install 'wirebook[kafka]'"
