"""Ranges of Kafka offsets, for a Spark Connect client that plans the batches of a stream itself.

Spec: docs/how-to/kafka-stream.md; docs/decisions/0226
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wirebook.capture.kafka_offsets import KafkaOffsets
from wirebook.problems import Problem, WirebookError
from wirebook.spark.kafka import EARLIEST, LATEST, KafkaSource, load_with_connector
from wirebook.spark.stream_sources import ReadLimits, Unread, messages_lost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["KafkaRanges"]


class KafkaRanges:
    """The `MessageRanges` of a `KafkaSource`. It keeps a connection to the broker.

    Raises: bad-setting
    """

    def __init__(self, source: KafkaSource, limits: ReadLimits) -> None:
        self._source, self._limits = source, limits
        self._run = uuid.uuid4().hex
        self._offsets = KafkaOffsets(source.topics, source.settings)

    def unread(self, position: Mapping[str, Any] | None) -> Unread:
        kept, lost, ranges = self._offsets.ask(), list[str](), dict[str, tuple[int, int]]()
        starts = self._source.first_offsets(position, self._limits.starting, kept)
        for topic, offsets in starts.items():
            gone = (position or {}).get(topic, {}).keys() - set(map(str, kept[topic]))
            lost += [f"partition {number} of '{topic}'" for number in gone]
            for number, offset in offsets.items():
                if int(number) not in kept[topic]:
                    message = f"the topic '{topic}' has no partition {number}"
                    hint = "correct 'partition' in the protocoloptions of the endpoint"
                    raise WirebookError(Problem("unknown-topic", message, xid=self._source.endpoint, hint=hint))
                earliest, latest = kept[topic][int(number)]
                first = {EARLIEST: earliest, LATEST: latest}.get(offset, offset)
                if first < earliest:
                    lost.append(f"offsets {first} to {earliest - 1} of partition {number} of '{topic}'")
                elif first > latest:  # the topic was deleted and created again
                    lost.append(f"offsets from {latest} to {first - 1} of partition {number} of '{topic}'")
                ranges[_file(topic, number)] = (min(max(first, earliest), latest), latest)
        if lost and self._limits.fail_on_data_loss:
            raise messages_lost("; ".join(sorted(lost)))
        return Unread(ranges)

    def position_before(self, unread: Unread) -> Mapping[str, Any]:
        position = dict[str, dict[str, int]]()
        for file, (first, _) in unread.ranges.items():
            topic, number = _partition(file)
            position.setdefault(topic, {})[str(number)] = first
        return position

    def frame(self, spark: SparkSession, batch: Unread) -> DataFrame:
        ranges = {_partition(file): (first, end) for file, (first, end) in batch.ranges.items() if first < end}
        options = self._source.range_options(ranges, self._run, fail_on_data_loss=self._limits.fail_on_data_loss)
        return load_with_connector(spark.read.format("kafka").options(**options).load)


def _file(topic: str, number: str) -> str:
    """Return the value of the column `_file` for the messages of a partition."""
    return f"kafka:{topic}/{number}"


def _partition(file: str) -> tuple[str, int]:
    topic, _, number = file.removeprefix("kafka:").rpartition("/")
    return topic, int(number)
