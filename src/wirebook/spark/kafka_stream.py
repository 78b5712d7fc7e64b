"""Kafka as the source of a stream, read by Spark's own connector.

Spec: docs/how-to/kafka-stream.md; docs/decisions/0196
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wirebook.problems import WirebookError
from wirebook.problems.extras import library
from wirebook.spark.kafka import KafkaSource, load_with_connector
from wirebook.spark.kafka_admin import check_topics
from wirebook.spark.stream_sources import MessageRanges, ReadLimits, causes, messages_lost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["KafkaStream"]

OF_BROKER: Final = re.compile(
    r"kafka\S*\.(?:\w*Timeout\w*|\w*Disconnect\w*|Network\w*|\w*NotAvailable\w*|NotLeader\w*|NotCoordinator\w*|"
    r"Coordinator\w*|KafkaException: Failed to create new KafkaAdminClient)|org\.apache\.kafka\S*Exception: Timed out"
)
DATA_LOSS: Final = re.compile(r"Some data may have been lost.*?Reason:\s*([^\n]+)", re.DOTALL)
REASON: Final = re.compile(r"kafka\S*?(\w+(?:Exception|Error): [^\n]*)")


@dataclass(frozen=True, slots=True)
class KafkaStream:
    """The `StreamSource` of a Kafka endpoint."""

    source: KafkaSource
    identity: None = None
    reads_whole_files: bool = True
    plans_one_batch: bool = False

    @property
    def description(self) -> str:
        return f"{', '.join(self.source.topics)} from {self.source.servers}"

    @property
    def datasets(self) -> Sequence[tuple[str, str]]:
        first = self.source.servers.split(",", maxsplit=1)[0].strip()
        return [(f"kafka://{first}", topic) for topic in self.source.topics]

    @property
    def secrets(self) -> Sequence[str]:
        return self.source.secrets

    def check(self, spark: SparkSession) -> None:
        check_topics(spark, self.source)

    def frame(self, spark: SparkSession, limits: ReadLimits, checkpoint: str | None = None) -> DataFrame:  # noqa: ARG002
        options = self.source.options(
            starting=limits.starting,
            max_per_batch=limits.max_per_batch,
            min_per_batch=limits.min_per_batch,
            fail_on_data_loss=limits.fail_on_data_loss,
        )
        return load_with_connector(spark.readStream.format("kafka").options(**options).load)

    def position(self, progress: Mapping[str, Any]) -> Mapping[str, Any] | None:
        read = progress.get("endOffset")
        return read if isinstance(read, dict) else None

    def start_after(self, spark: SparkSession, position: Mapping[str, Any], limits: ReadLimits) -> str:
        partitions = {topic: range(count) for topic, count in check_topics(spark, self.source).items()}
        offsets = self.source.first_offsets(position, limits.starting, partitions)
        return json.dumps(offsets) if offsets else limits.starting

    def lag(self, progress: Mapping[str, Any]) -> dict[str, int] | None:
        read, latest = progress.get("endOffset"), progress.get("latestOffset")
        if not isinstance(read, dict) or not isinstance(latest, dict):
            return None
        return {
            f"kafka:{topic}/{number}": end - read.get(topic, {}).get(number, 0)
            for topic, partitions in latest.items()
            for number, end in partitions.items()
        }

    def ranges(self, limits: ReadLimits) -> MessageRanges:
        opened: MessageRanges = library("wirebook.spark.kafka_ranges").KafkaRanges(self.source, limits)
        return opened

    def away(self, failure: BaseException) -> str | None:
        texts = [str(error) for error in causes(failure)]
        if not any(map(OF_BROKER.search, texts)):
            return None
        reason = REASON.search("\n".join(texts))
        return reason[1].partition(" SQLSTATE")[0] if reason else texts[0].partition("\n")[0]

    def lost(self, failure: BaseException) -> WirebookError | None:
        lost = next(filter(None, (DATA_LOSS.search(str(error)) for error in causes(failure))), None)
        return messages_lost(lost[1]) if lost else None
