"""A NATS endpoint as the source of a streaming query, which reads the JetStream stream that stores its messages.

Spec: endpoint/spec.md#nats-options; docs/how-to/jetstream.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from wirebook.capture.endpoints import ReceivedEndpoint
from wirebook.capture.jetstream import find_stream
from wirebook.capture.nats_client import NatsServers, subject_of
from wirebook.landing.stores.locations import files_in
from wirebook.problems import Problem, WirebookError
from wirebook.spark.checkpoints import checkpoint_folder
from wirebook.spark.jetstream import NAME, JetStreamDataSource, StreamRange, file_of
from wirebook.spark.jetstream_ranges import JetStreamRanges
from wirebook.spark.runner import parallelism_of
from wirebook.spark.stream_sources import ReadLimits, causes, messages_lost, stream_replaced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["JetStream", "jetstream_of", "starting_sequence"]

AWAY: Final = re.compile(r"jetstream\.ServerAway: ([^\n]*)")
LOST: Final = re.compile(r"jetstream\.MessagesLost: ([^\n]*)")
REPLACED: Final = re.compile(r"jetstream\.StreamReplaced: ([^\n]*)")


@dataclass(frozen=True, slots=True)
class JetStream:
    """The `StreamSource` of a NATS endpoint: its messages in a stream, up to the sequence number `end` if it is set."""

    servers: NatsServers
    subject: str
    stream: str
    end: int | None = None
    plans_one_batch: bool = True

    @property
    def description(self) -> str:
        return f"'{self.subject}' in the stream {self.stream} from {', '.join(self.servers.addresses)}"

    @property
    def datasets(self) -> Sequence[tuple[str, str]]:
        return [(self.servers.addresses[0], self.stream)]

    @property
    def secrets(self) -> Sequence[str]:
        credentials = self.servers.credentials
        return [secret for secret in (credentials.password, credentials.token) if secret]

    @property
    def reads_whole_files(self) -> bool:
        return False  # a stream can have messages with other subjects

    @property
    def identity(self) -> tuple[str, str]:
        return ("file", "line")

    def check(self, spark: SparkSession) -> None:  # noqa: ARG002
        if (name := find_stream(self.servers, self.subject).name) != self.stream:
            message = f"messages with the subject '{self.subject}' are in the stream '{name}', not '{self.stream}'"
            raise WirebookError(Problem("unknown-topic", message, xid=self.servers.xid))

    def frame(self, spark: SparkSession, limits: ReadLimits, checkpoint: str | None = None) -> DataFrame:
        planned, most = None, None
        if checkpoint is not None:
            with suppress(WirebookError, OSError, ValueError, LookupError):  # unreadable outside Spark: no limit
                planned, most = planned_sequence(checkpoint), limits.max_per_batch
        source = StreamRange(
            self.servers,
            self.stream,
            self.subject,
            starting=limits.starting,
            planned=planned,
            max_per_batch=most,
            end=self.end,
            fail_on_data_loss=limits.fail_on_data_loss,
            tasks=parallelism_of(spark),
        )
        spark.dataSource.register(JetStreamDataSource)
        return spark.readStream.format(NAME).options(**source.options()).load()

    def position(self, progress: Mapping[str, Any]) -> Mapping[str, Any] | None:
        read = progress.get("endOffset")
        return {name: read[name] for name in ("sequence", "created")} if isinstance(read, dict) else None

    def start_after(self, spark: SparkSession, position: Mapping[str, Any], limits: ReadLimits) -> str:  # noqa: ARG002
        return JetStreamRanges(self.servers, self.stream, self.subject, limits).start_after(position)

    def lag(self, progress: Mapping[str, Any]) -> dict[str, int] | None:
        read = progress.get("endOffset")
        return {file_of(self.stream): read["newest"] - read["sequence"]} if isinstance(read, dict) else None

    def ranges(self, limits: ReadLimits) -> JetStreamRanges:
        return JetStreamRanges(self.servers, self.stream, self.subject, limits)

    def away(self, failure: BaseException) -> str | None:
        return _reason(AWAY, failure)

    def lost(self, failure: BaseException) -> WirebookError | None:
        if replaced := _reason(REPLACED, failure):
            return stream_replaced(replaced)
        what = _reason(LOST, failure)
        return messages_lost(what) if what else None


def planned_sequence(checkpoint: str) -> int | None:
    """Return the last sequence number that a query with this checkpoint has planned to read; None for a new query.

    Raises: WirebookError, OSError, ValueError, LookupError, if the checkpoint cannot be read here
    """
    folder = checkpoint_folder(checkpoint) / "offsets"
    numbers = [int(name) for name in files_in(folder) if name.isdecimal()]
    if not numbers:
        return None
    return int(json.loads((folder / str(max(numbers))).read_bytes().splitlines()[-1])["sequence"])


def _reason(pattern: re.Pattern[str], failure: BaseException) -> str | None:
    match = next(filter(None, (pattern.search(str(error)) for error in causes(failure))), None)
    return match[1] if match else None


def jetstream_of(endpoint: ReceivedEndpoint, *, ends: bool = False) -> JetStream:
    """Ask the server for the stream that stores the messages of a NATS endpoint. With `ends`, the source ends with the
    last message that the stream has now.

    Raises: incomplete-endpoint, bad-option, bad-address, missing-context, broker-unreachable, unknown-topic,
    not-receivable
    """
    servers, subject = NatsServers.of(endpoint), subject_of(endpoint)
    stream = find_stream(servers, subject)
    return JetStream(servers, subject, stream.name, stream.last if ends else None)


def starting_sequence(text: str) -> str:
    """Validate a starting position: ``earliest``, ``latest``, or a sequence number.

    Raises: ValueError, with what is wrong
    """
    if text in ("earliest", "latest") or (text.isdecimal() and int(text) > 0):
        return text
    raise ValueError(f"'{text}' is not one of earliest, latest, or a sequence number of the stream, from 1")
