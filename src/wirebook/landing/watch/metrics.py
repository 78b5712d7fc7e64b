"""Prometheus metrics of a stream.

Spec: docs/how-to/watch.md#prometheus; docs/decisions/0199
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from wirebook.landing.watch.figures import BatchFigures

__all__ = ["MAX_SERIES", "OTHER", "UNKNOWN", "StreamMetrics"]

MAX_SERIES: Final = 1000
"""Maximum number of definitions or endpoints that have a time series of their own."""
OTHER: Final = "other"
"""The label of all further definitions or endpoints."""
UNKNOWN: Final = "unknown"
"""The label of messages whose endpoint is not known."""
BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the durations of batches, in seconds."""


class StreamMetrics(Collector):
    """The totals of the batches that a stream has landed since it started.

    Each of the first thousand definitions and endpoints with messages keeps a time series of its own; all others share
    one. So the number of series is bounded for a catalogue of any size, and the sum over them is exact.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._definitions: Counter[str] = Counter()
        self._endpoints: Counter[str] = Counter()
        self._dead_letter_endpoints: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._buckets: Counter[float] = Counter()
        self._seconds = 0.0
        self._last: BatchFigures | None = None
        self._failure: str | None = "the query has not started"

    def add(self, figures: BatchFigures) -> None:
        """Add a batch."""
        report = figures.report
        with self._lock:
            for name in ("read", "skipped", "late", "bytes_read", "bytes_written"):
                self._counts[name] += getattr(report, name)
            self._counts["batches"] += 1
            self._outcomes.update(report.outcomes)
            self._codes.update(report.reasons)
            _add(self._definitions, report.definition_rows())
            _add(self._endpoints, _with_unknown(report.endpoints, report.landed))
            _add(self._dead_letter_endpoints, _with_unknown(report.dead_letter_endpoints, report.dead_lettered))
            self._buckets[next((bound for bound in BUCKETS if report.seconds <= bound), float("inf"))] += 1
            self._seconds += report.seconds
            self._last = figures

    def set_connection(self, failure: str | None) -> None:
        """Record why the broker or the store cannot be reached; None if they can be reached."""
        self._failure = failure

    @property
    def is_ready(self) -> bool:
        """Whether the query has started and can reach the broker and the store."""
        return self._failure is None

    def to_dict(self) -> dict[str, Any]:
        """The figures of the last batch, and why the broker or the store cannot be reached."""
        with self._lock:
            last = self._last.to_dict() if self._last else None
            return {"batches": self._counts["batches"], "failure": self._failure, "last_batch": last}

    def collect(self) -> Iterator[Metric]:
        """Yield every metric (called by prometheus_client)."""
        with self._lock:
            yield from list(self._metrics())

    def _metrics(self) -> Iterator[Metric]:
        for name, counts, label, text in (
            (
                "messages",
                self._outcomes,
                "outcome",
                "Messages read, by outcome; events that had landed: repeated.",
            ),
            ("landed", self._definitions, "definition", "Messages that landed, by definition."),
            ("dead_letters", self._codes, "code", "Dead letters by problem code; one with two codes counts twice."),
            ("endpoint_landed", self._endpoints, "message_endpoint", "Messages that landed, by their endpoint."),
            (
                "endpoint_dead_letters",
                self._dead_letter_endpoints,
                "message_endpoint",
                "Dead letters by the endpoint of the run, or the one that the record names.",
            ),
        ):
            family = CounterMetricFamily(f"wirebook_stream_{name}", text, labels=("endpoint", label))
            for value, count in counts.items():
                family.add_metric((self._endpoint, value), count)
            yield family
        for name, key, text in (
            ("batches", "batches", "Batches that landed."),
            ("skipped", "skipped", "Messages that had landed before."),
            ("late", "late", "Events that landed without being compared, because they are too old."),
            ("read_bytes", "bytes_read", "Bytes of the messages read."),
            ("written_bytes", "bytes_written", "Bytes of the files written."),
        ):
            counter = CounterMetricFamily(f"wirebook_stream_{name}", text, labels=("endpoint",))
            counter.add_metric((self._endpoint,), self._counts[key])
            yield counter
        total, buckets = 0, list[tuple[str, float]]()
        for bound in (*BUCKETS, float("inf")):
            total += self._buckets[bound]
            buckets.append(("+Inf" if bound == float("inf") else str(bound), total))
        durations = HistogramMetricFamily(
            "wirebook_stream_batch_seconds", "Durations of batches.", labels=("endpoint",)
        )
        durations.add_metric((self._endpoint,), buckets, self._seconds)
        yield durations
        yield from self._gauges()

    def _gauges(self) -> Iterator[Metric]:
        """Yield the gauges: of the connection and of the last batch."""
        labels, last = (self._endpoint,), self._last
        connected = GaugeMetricFamily(
            "wirebook_stream_connected", "0 while the broker or the store cannot be reached.", labels=("endpoint",)
        )
        connected.add_metric(labels, int(self._failure is None))
        yield connected
        if last is None:
            return
        lag = GaugeMetricFamily(
            "wirebook_stream_lag", "Messages that were not read at the last batch.", labels=("endpoint", "partition")
        )
        for partition, messages in (last.partitions or {}).items():
            lag.add_metric((self._endpoint, partition), messages)
        yield lag
        ended = last.started.timestamp() + last.report.seconds
        set_aside = sum(problem.code == "table-set-aside" for problem in last.report.problems)
        for name, value, text in (
            ("last_batch_timestamp_seconds", ended, "When the last batch ended."),
            ("set_aside_tables", set_aside, "Tables that do not take their rows."),
        ):
            gauge = GaugeMetricFamily(f"wirebook_stream_{name}", text, labels=("endpoint",))
            gauge.add_metric(labels, value)
            yield gauge


def _add(series: Counter[str], counts: Mapping[str, int]) -> None:
    """Add counts by label. A new label beyond the limit counts as `OTHER`."""
    for label, count in counts.items():
        is_known = label in series or len(series) < MAX_SERIES
        series[label if is_known else OTHER] += count


def _with_unknown(counts: Counter[str], total: int) -> Mapping[str, int]:
    """Counts by endpoint. The rest of the total, if any, counts as `UNKNOWN`."""
    unknown = total - counts.total()
    return {**counts, UNKNOWN: unknown} if unknown else counts
