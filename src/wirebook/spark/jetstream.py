"""A Spark data source in Python that reads a JetStream stream.

The offset of a query is the sequence number of the last message that it has read. Workers read ranges of sequence
numbers. The data source has three columns: `value` is the message as a line of the capture format, and `file` and
`line` identify it.

Spec: docs/how-to/jetstream.md; docs/decisions/0207
"""

from __future__ import annotations

import asyncio
import base64
import os
import pickle
import sys
import traceback
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from wirebook.capture.jetstream import KeptStream, MessagesLost, StreamReplaced, read_messages, stream_state
from wirebook.capture.nats_client import NatsServers

__all__ = ["COLUMNS", "NAME", "JetStreamDataSource", "StreamRange", "file_of", "read_numbered"]

NAME: Final = "wirebook_jetstream"
COLUMNS: Final = "value binary, file string, line bigint"
SCHEMA: Final = pa.schema([("value", pa.binary()), ("file", pa.string()), ("line", pa.int64())])
PER_TASK: Final = 50_000
"""The maximum number of sequence numbers that a task reads."""
BATCH_BYTES: Final = 4 << 20
"""The approximate number of bytes of capture lines in an Arrow batch."""


class Position(NamedTuple):
    """The offset of a query: the last sequence number read, the last one available at that time, and when the stream
    was created. A stream that is deleted and created again restarts at 1, so its creation time identifies it."""

    sequence: int
    newest: int
    created: str

    def to_offset(self) -> dict[str, Any]:
        return self._asdict()


@dataclass(frozen=True, slots=True)
class StreamRange:
    """What a query reads: the configuration of the data source and its workers.

    Shape: `starting` is ``earliest``, ``latest`` or a sequence number. `planned` is the last sequence number that a
    resumed query has already planned to read, None for a new query. `end` is the last sequence number to read; None:
    no limit. Batches are split for `tasks` workers.
    """

    servers: NatsServers
    stream: str
    subject: str
    starting: str
    planned: int | None = None
    max_per_batch: int | None = None
    end: int | None = None
    fail_on_data_loss: bool = True
    tasks: int = 1

    def options(self) -> dict[str, str]:
        """Return the options of the data source. The only one is named ``secrets``, so that Spark masks its value."""
        return {"secrets": base64.b64encode(pickle.dumps(self)).decode()}

    def split(self, first: int, last: int) -> list[SequencePartition]:
        """Split the sequence numbers from `first` to `last` (at least one) into partitions for the workers."""
        size = last - first + 1
        count = max(min(self.tasks, size), -(-size // PER_TASK))
        bounds = [first + size * part // count for part in range(count + 1)]
        return [SequencePartition(low, high - 1) for low, high in pairwise(bounds)]


def file_of(stream: str) -> str:
    """Return the value of the column `_file` for the messages of a stream."""
    return f"nats:{stream}"


# -- the data source ------------------------------------------------------------------------------------------------


class JetStreamDataSource(DataSource):
    """The data source. Its option `secrets` is an encoded `StreamRange`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: Any) -> JetStreamReader:  # noqa: ARG002 (Spark's interface)
        packed = base64.b64decode(self.options["secrets"])
        return JetStreamReader(pickle.loads(packed))  # noqa: S301 (made by `StreamRange.options`)


class SequencePartition(InputPartition):
    """Sequence numbers from `first` to `last`."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__((first, last))
        self.first, self.last = first, last


class JetStreamReader(DataSourceStreamReader):
    """Plans the batches of a query in a Python process of the driver, and reads them in workers."""

    def __init__(self, source: StreamRange) -> None:
        self._source = source
        self._read = source.planned

    def _state(self) -> KeptStream:
        return stream_state(self._source.servers, self._source.stream)

    def initialOffset(self) -> dict[str, Any]:
        state = self._state()
        first = self._before_first(state)
        return Position(first, first, state.created).to_offset()

    def _before_first(self, state: KeptStream) -> int:
        starting = self._source.starting
        if starting == "earliest":
            return max(state.first - 1, 0)
        return state.last if starting == "latest" else int(starting) - 1

    def latestOffset(self) -> dict[str, Any]:
        """Return the end of the next batch. Spark calls this before `initialOffset`."""
        source, state = self._source, self._state()
        read = self._before_first(state) if self._read is None else self._read
        newest = max(state.last if source.end is None else min(state.last, source.end), read)
        self._read = min(newest, read + source.max_per_batch) if source.max_per_batch else newest
        return Position(self._read, newest, state.created).to_offset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        source, first = self._source, Position(**start).sequence + 1
        last = self._read = Position(**end).sequence
        if first > last and start["created"] == end["created"]:
            return []
        state = self._state()
        if not start["created"] == end["created"] == state.created:
            raise StreamReplaced(f"the stream '{source.stream}' was deleted and created again")
        if source.fail_on_data_loss and state.first > first:
            raise MessagesLost(f"sequence numbers {first} to {state.first - 1} of '{source.stream}'")
        return source.split(first, last)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SequencePartition)
        return read_partition(self._source, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: the checkpoint has the offsets, and the stream keeps its messages."""

    def stop(self) -> None:
        """Exit the Python process of the driver if Spark has closed the connection. PySpark would try to report the
        error over this connection, fail, and print a traceback."""
        if isinstance(sys.exc_info()[1], EOFError | BrokenPipeError | ConnectionResetError):
            os._exit(0)


# -- reading, in workers --------------------------------------------------------------------------------------------


def read_numbered(
    source: StreamRange, partitions: Sequence[SequencePartition], numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read the partitions whose indexes are in `numbers`. Columns in: id. Columns out: value, file, line."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from read_partition(source, partitions[number])


def read_partition(source: StreamRange, partition: SequencePartition) -> Iterator[pa.RecordBatch]:
    """Yield the messages of a range in batches of a few megabytes."""
    loop = asyncio.new_event_loop()
    batches = _batches(source, partition.first, partition.last)
    try:
        while (batch := loop.run_until_complete(anext(batches, None))) is not None:
            yield batch
    finally:
        loop.run_until_complete(batches.aclose())
        loop.close()


async def _batches(source: StreamRange, first: int, last: int) -> AsyncGenerator[pa.RecordBatch]:
    """Raises: ServerAway"""
    rows, size = list[tuple[bytes, str, int]](), 0
    async for sequence, line in read_messages(source.servers, source.stream, source.subject, first, last):
        rows.append((line, file_of(source.stream), sequence))
        size += len(line)
        if size >= BATCH_BYTES:
            yield _batch(rows)
            rows, size = [], 0
    if rows:
        yield _batch(rows)


def _batch(rows: list[tuple[bytes, str, int]]) -> pa.RecordBatch:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


# -- the processes of the driver ------------------------------------------------------------------------------------

PLANNER: Final = "pyspark.daemon"
"""The main module of the processes in which Spark plans. Workers of local sessions run `wirebook.spark.daemon`."""
_print_exception = traceback.print_exc


def _print_unless_closed() -> None:
    if not isinstance(sys.exception(), BrokenPipeError | ConnectionResetError):
        _print_exception()


if getattr(sys.modules["__main__"].__spec__, "name", None) == PLANNER:
    # Spark closes the connection when it has the plan, sometimes before PySpark has written the end of its response.
    # PySpark would then print a traceback.
    traceback.print_exc = _print_unless_closed  # type: ignore[assignment]
