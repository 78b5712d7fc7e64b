"""Ranges of sequence numbers of a JetStream stream, for a Spark Connect client that plans the batches itself.

A Python data source would be planned in a Python process of the server, so the server would need Wirebook. Here only
the workers need it: each reads the ranges whose indexes it receives.

Spec: docs/how-to/jetstream.md; docs/decisions/0226
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from wirebook.capture.jetstream import KeptStream, ServerAway, StreamReplaced, stream_state
from wirebook.capture.nats_client import NatsServers
from wirebook.problems import Problem, WirebookError
from wirebook.spark.jetstream import COLUMNS, StreamRange, file_of, read_numbered
from wirebook.spark.runner import parallelism_of
from wirebook.spark.stream_sources import ReadLimits, Unread, messages_lost, stream_replaced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["JetStreamRanges"]


class JetStreamRanges:
    """The `MessageRanges` of a JetStream stream: its messages with a subject."""

    def __init__(self, servers: NatsServers, stream: str, subject: str, limits: ReadLimits) -> None:
        self._servers, self._stream, self._subject, self._limits = servers, stream, subject, limits
        self._tasks = cache(parallelism_of)

    def unread(self, position: Mapping[str, Any] | None) -> Unread:
        state = self._state()
        first = self._first(state, position)
        if state.first > first:
            if self._limits.fail_on_data_loss:
                raise messages_lost(f"sequence numbers {first} to {state.first - 1} of '{self._stream}'")
            first = state.first
        return Unread({file_of(self._stream): (first, max(state.last + 1, first))}, state.created)

    def start_after(self, position: Mapping[str, Any]) -> str:
        """Return where a new query starts to continue after a position.

        Raises: messages-lost, broker-unreachable
        """
        self._check_stream(self._state(), position)
        return str(position["sequence"] + 1)

    def position_before(self, unread: Unread) -> Mapping[str, Any]:
        first, _ = unread.ranges[file_of(self._stream)]
        return {"sequence": first - 1, "created": unread.created}

    def frame(self, spark: SparkSession, batch: Unread) -> DataFrame:
        first, end = batch.ranges[file_of(self._stream)]
        source = StreamRange(self._servers, self._stream, self._subject, starting=str(first), tasks=self._tasks(spark))
        partitions = source.split(first, end - 1)
        numbers = spark.range(0, len(partitions), 1, len(partitions))
        return numbers.mapInArrow(partial(read_numbered, source, partitions), COLUMNS)

    def _state(self) -> KeptStream:
        """Raises: broker-unreachable, messages-lost"""
        try:
            return stream_state(self._servers, self._stream)
        except ServerAway as error:
            raise WirebookError(Problem("broker-unreachable", f"the NATS server cannot be used: {error}")) from None
        except StreamReplaced as error:
            raise stream_replaced(str(error)) from None

    def _first(self, state: KeptStream, position: Mapping[str, Any] | None) -> int:
        """Raises: messages-lost"""
        if position is not None:
            self._check_stream(state, position)
            return int(position["sequence"]) + 1
        starting = self._limits.starting
        if starting == "earliest":
            return max(state.first, 1)
        return state.last + 1 if starting == "latest" else int(starting)

    def _check_stream(self, state: KeptStream, position: Mapping[str, Any]) -> None:
        """Check that the stream is the one that the position belongs to. Raises: messages-lost"""
        if state.created != position["created"]:
            raise stream_replaced(f"the stream '{self._stream}' was deleted and created again")
