"""What a stream needs of a source: one implementation for each protocol whose messages can be read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from wirebook.problems import Problem, WirebookError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MessageRanges", "ReadLimits", "StreamSource", "Unread", "causes", "messages_lost"]


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Where a query starts and how much a batch reads.

    Shape: `starting` is ``earliest``, ``latest``, or offsets in the form of the source.
    """

    starting: str
    max_per_batch: int | None = None
    min_per_batch: int | None = None
    fail_on_data_loss: bool = True


@dataclass(frozen=True, slots=True)
class Unread:
    """Messages that a broker has and a stream has not read.

    Shape: `ranges` has, by the `_file` of messages, the number (offset, sequence number) of the first one and the one
    after the last. `created` tells a stream of JetStream from an earlier one with the same name.
    """

    ranges: Mapping[str, tuple[int, int]]
    created: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many they are, by `_file`."""
        return {file: end - first for file, (first, end) in self.ranges.items()}

    @property
    def ends(self) -> dict[str, int]:
        """The number after the last one, by `_file`."""
        return {file: end for file, (_, end) in self.ranges.items()}

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def before(self, ends: Mapping[str, int]) -> Unread:
        """Those before some numbers; of a `_file` without one, none."""
        cut = {file: (first, max(first, min(end, ends.get(file, first)))) for file, (first, end) in self.ranges.items()}
        return replace(self, ranges=cut)

    def limited(self, most: int | None) -> Unread:
        """The first `most` of them: of each `_file` its share, but at least one, so that it does not wait for others
        that have more and more. As those of Spark, a batch may be larger by as many messages as there are files."""
        total = self.count
        if most is None or total <= most:
            return self
        counts = self.counts
        cut = {
            file: (first, first + min(counts[file], max(1, counts[file] * most // total)))
            for file, (first, _) in self.ranges.items()
        }
        return replace(self, ranges=cut)

    def after(self, batch: Unread) -> Unread:
        """What is left of them after a batch."""
        return replace(self, ranges={file: (batch.ranges[file][1], end) for file, (_, end) in self.ranges.items()})


class MessageRanges(Protocol):
    """The messages of an endpoint for a program that plans the batches of its stream itself."""

    def unread(self, position: Mapping[str, Any] | None) -> Unread:
        """What there is to read after a position; None: where a new stream starts.

        Raises: broker-unreachable, unknown-topic, messages-lost
        """

    def position_before(self, unread: Unread) -> Mapping[str, Any]:
        """The position before the first of some messages, in the form of `StreamSource.position`."""

    def frame(self, spark: SparkSession, batch: Unread) -> DataFrame:
        """The DataFrame of a batch.

        Raises: missing-jars
        """


class StreamSource(Protocol):
    """The messages of an endpoint that a broker keeps."""

    @property
    def description(self) -> str:
        """What is read and from where, for people."""

    @property
    def datasets(self) -> Sequence[tuple[str, str]]:
        """Namespace and name of what is read, by the naming rules of OpenLineage."""

    @property
    def secrets(self) -> Sequence[str]:
        """Texts that must not be printed."""

    @property
    def identity(self) -> tuple[str, str] | None:
        """The columns that identify a message; None for those of Kafka."""

    @property
    def reads_whole_files(self) -> bool:
        """Whether a query reads all messages of each `_file`. If not, other endpoints may have those between its
        own."""

    @property
    def plans_one_batch(self) -> bool:
        """Whether a query that reads what there is (``availableNow``) ends after one batch: then it is started again
        until it has none."""

    def check(self, spark: SparkSession) -> None:
        """Check that the broker answers, accepts the credentials, and has the messages.

        Raises: broker-unreachable, unknown-topic
        """

    def frame(self, spark: SparkSession, limits: ReadLimits, checkpoint: str | None = None) -> DataFrame:
        """The streaming DataFrame of a query whose progress is at the URL `checkpoint`, one of `checkpoint_url`.
        Without it, batches of JetStream are not limited.

        Raises: missing-jars
        """

    def position(self, progress: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Up to where the query had read after a batch, as JSON. `progress` is what Spark reports about the source."""

    def start_after(self, spark: SparkSession, position: Mapping[str, Any], limits: ReadLimits) -> str:
        """Where a new query starts that goes on after a position: offsets in the form of the source.

        Raises: messages-lost, broker-unreachable
        """

    def lag(self, progress: Mapping[str, Any]) -> dict[str, int] | None:
        """The messages that the broker had after a batch and the query had not read, by the `_file` of messages.
        `progress` is what Spark reports about the source."""

    def ranges(self, limits: ReadLimits) -> MessageRanges:
        """The same messages for a program that plans batches itself.

        Raises: missing-extra, bad-setting
        """

    def away(self, failure: BaseException) -> str | None:
        """Why a query failed, if the reason is that the broker is away: it may come back."""

    def lost(self, failure: BaseException) -> str | None:
        """Which messages the broker has deleted before they were read, if the query failed because of that."""


def messages_lost(what: str) -> WirebookError:
    """The problem of messages that a broker deleted before they were read."""
    message = f"the broker no longer has messages that were not read: {what}"
    hint = "run the command with --skip-lost to continue without them"
    return WirebookError(Problem("messages-lost", message, hint=hint))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what caused it."""
    while error is not None:
        yield error
        error = error.__cause__
