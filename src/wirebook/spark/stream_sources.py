"""The interface of the sources of streams, with one implementation for each protocol whose messages can be read again.

In every table, two columns identify the message that a row comes from: `_file` names the Kafka partition or JetStream
stream, and `_line` is the number of the message there, its offset or sequence number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from wirebook.problems import Problem, WirebookError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["MessageRanges", "ReadLimits", "StreamSource", "Unread", "causes", "messages_lost", "stream_replaced"]


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Where a query starts and how much a batch reads.

    Shape: `starting` is ``earliest``, ``latest``, or offsets in the format of the source.
    """

    starting: str
    max_per_batch: int | None = None
    min_per_batch: int | None = None
    fail_on_data_loss: bool = True


@dataclass(frozen=True, slots=True)
class Unread:
    """The messages that a broker has and a stream has not read yet.

    Shape: `ranges` maps each `_file` to the number (offset or sequence number) of the first message and the number
    after the last one. `created` is the time at which a JetStream stream was created, which distinguishes it from an
    earlier stream with the same name.
    """

    ranges: Mapping[str, tuple[int, int]]
    created: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The number of messages, by `_file`."""
        return {file: end - first for file, (first, end) in self.ranges.items()}

    @property
    def ends(self) -> dict[str, int]:
        """The number after the last message, by `_file`."""
        return {file: end for file, (_, end) in self.ranges.items()}

    @property
    def count(self) -> int:
        return sum(self.counts.values())

    def before(self, ends: Mapping[str, int]) -> Unread:
        """Return the messages before `ends`; none of a `_file` that `ends` does not have."""
        cut = {file: (first, max(first, min(end, ends.get(file, first)))) for file, (first, end) in self.ranges.items()}
        return replace(self, ranges=cut)

    def limited(self, most: int | None) -> Unread:
        """Return the first `most` messages, or all for None. Each `_file` gets its share, but at least one message, so
        that it never has to wait for others that grow faster. As in Spark, a batch can exceed the limit by one message
        per `_file`."""
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
        """Return the messages that remain after a batch."""
        return replace(self, ranges={file: (batch.ranges[file][1], end) for file, (_, end) in self.ranges.items()})


class MessageRanges(Protocol):
    """The messages of an endpoint for a process that plans the batches of its stream itself (see `client_batches`)."""

    def unread(self, position: Mapping[str, Any] | None) -> Unread:
        """Return the messages after a position. None is the position where a new stream starts.

        Raises: broker-unreachable, unknown-topic, messages-lost
        """

    def position_before(self, unread: Unread) -> Mapping[str, Any]:
        """Return the position before the first of these messages, in the format of `StreamSource.position`."""

    def frame(self, spark: SparkSession, batch: Unread) -> DataFrame:
        """Return the DataFrame of a batch.

        Raises: missing-jars
        """


class StreamSource(Protocol):
    """The messages of an endpoint whose broker keeps them, as a streaming query reads them."""

    @property
    def description(self) -> str:
        """What is read and from where, for notes and error messages."""

    @property
    def datasets(self) -> Sequence[tuple[str, str]]:
        """The namespace and name of each dataset that is read, by the naming rules of OpenLineage."""

    @property
    def secrets(self) -> Sequence[str]:
        """Strings that must not be printed."""

    @property
    def identity(self) -> tuple[str, str] | None:
        """The columns that identify a message; None for Kafka's topic, partition and offset."""

    @property
    def reads_whole_files(self) -> bool:
        """Whether a query reads all messages of each `_file`. If not, messages between those that it reads may belong
        to other endpoints."""

    @property
    def plans_one_batch(self) -> bool:
        """Whether a query with the trigger ``availableNow`` ends after one batch. It is restarted until it has none."""

    def check(self, spark: SparkSession) -> None:
        """Check that the broker answers, accepts the credentials, and has the messages.

        Raises: broker-unreachable, unknown-topic
        """

    def frame(self, spark: SparkSession, limits: ReadLimits, checkpoint: str | None = None) -> DataFrame:
        """Return the streaming DataFrame of a query. `checkpoint` is the URL of its checkpoint, from `checkpoint_url`;
        without it, the batches of JetStream are not limited.

        Raises: missing-jars
        """

    def position(self, progress: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the position up to which the query has read after a batch, as JSON; None if it is not known.
        `progress` is what Spark reports about the source."""

    def start_after(self, spark: SparkSession, position: Mapping[str, Any], limits: ReadLimits) -> str:
        """Return where a new query starts to continue after a position, in the format of `ReadLimits.starting`.

        Raises: messages-lost, broker-unreachable
        """

    def lag(self, progress: Mapping[str, Any]) -> dict[str, int] | None:
        """Return the number of messages that the broker had and the query had not read after a batch, by `_file`; None
        if it is not known. `progress` is what Spark reports about the source."""

    def ranges(self, limits: ReadLimits) -> MessageRanges:
        """Return the same messages for a process that plans the batches itself.

        Raises: missing-extra, bad-setting
        """

    def away(self, failure: BaseException) -> str | None:
        """Return why the broker cannot be reached, if that is why a query failed; else None. It may come back."""

    def lost(self, failure: BaseException) -> WirebookError | None:
        """Return the problem messages-lost, if a query failed because of unread messages that the broker has deleted;
        else None."""


def messages_lost(what: str) -> WirebookError:
    """Return the problem messages-lost: a broker has deleted messages before they were read."""
    message = f"the broker no longer has messages that were not read: {what}"
    hint = "run the command with --skip-lost to continue without them"
    return WirebookError(Problem("messages-lost", message, hint=hint))


def stream_replaced(message: str) -> WirebookError:
    """Return the problem messages-lost: the stream of a position no longer exists. The messages of a new stream with
    the same name would get the `_file` and `_line` of earlier ones, so the target cannot have both."""
    hint = "a stream that was created again counts its messages from 1: land it in another target"
    return WirebookError(Problem("messages-lost", message, hint=hint))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and the chain of its causes."""
    while error is not None:
        yield error
        error = error.__cause__
