"""The figures of a batch: the JSON object that the command line prints as a progress line, and that a stream records.

Spec: docs/figures.md; docs/decisions/0198
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from wirebook.landing.runs.report import Report
from wirebook.landing.runs.settings import CommittedBatch

__all__ = ["RECENT_BATCHES", "BatchFigures", "RecentBatches", "figures_of", "percentile", "timestamp"]

RECENT_BATCHES: Final = 100
"""Number of batches in the percentiles `p50_seconds` and `p95_seconds`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFigures:
    """The results of a batch, and its duration.

    Shape: `number` is the number of the batch: of a stream, in its query, otherwise in the target. `catalogue` is a
    fingerprint. `partitions` has the number of messages in the broker that the stream had not read after the batch, by
    ``kafka:TOPIC/PARTITION``; None if it is not known. `position` is how far the stream has read, in the format of its
    source. `unread` has the numbers of files and (estimated) bytes of the source that the run has not read yet; None
    for a stream. `p50_seconds` and `p95_seconds` are percentiles of the durations of the last hundred batches of the
    run.
    """

    number: int
    report: Report
    started: datetime
    catalogue: str
    name: str | None = None
    epoch: int | None = None
    query: str | None = None
    endpoint: str | None = None
    partitions: Mapping[str, int] | None = None
    position: Mapping[str, Any] | None = None
    unread: tuple[int, int] | None = None
    p50_seconds: float | None = None
    p95_seconds: float | None = None

    @property
    def lag(self) -> int | None:
        """The number of messages of all partitions that the stream had not read; None if it is not known."""
        return None if self.partitions is None else sum(self.partitions.values())

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON."""
        report, source = self.report, dict[str, Any]()
        if self.query is not None:
            source = {"lag": self.lag, "partitions": dict(self.partitions or {}), "position": self.position}
        elif self.unread is not None:
            source = {"unread_files": self.unread[0], "unread_bytes": self.unread[1]}
        return {
            "batch": self.number,
            **({"query": self.query} if self.query is not None else {}),
            "endpoint": self.endpoint,
            "started": timestamp(self.started),
            "seconds": round(report.seconds, 3),
            "p50_seconds": self.p50_seconds,
            "p95_seconds": self.p95_seconds,
            "read": report.read,
            "landed": report.landed,
            "dead_lettered": report.dead_lettered,
            "repeated": report.repeated,
            "late": report.late,
            "skipped": report.skipped,
            "recovered": report.recovered.total(),
            "rate": round(report.read / report.seconds, 1) if report.seconds else 0.0,
            "outcomes": {outcome: count for outcome, count in sorted(report.outcomes.items()) if count},
            "endpoints": dict(sorted(report.endpoints.items())),
            "dead_letter_endpoints": dict(sorted(report.dead_letter_endpoints.items())),
            "reasons": {code: count for code, count in sorted(report.reasons.items()) if count},
            "tables": {name: table["rows"] for name, table in report.tables().items()},
            "definitions": report.definition_rows(),
            "bytes_read": report.bytes_read,
            "bytes_written": report.bytes_written,
            **source,
            "catalogue": self.catalogue,
            "catalogue_name": self.name,
            "catalogue_epoch": self.epoch,
        }


def figures_of(batch: CommittedBatch) -> BatchFigures:
    """The figures of a batch that a run of `land` has committed."""
    manifest = batch.manifest
    run = manifest.run
    assert run is not None  # only manifests of earlier versions lack it
    return BatchFigures(
        number=manifest.batch,
        report=batch.report,
        started=run.started,
        catalogue=manifest.catalogue,
        name=run.name,
        epoch=run.epoch,
        endpoint=manifest.endpoint,
        unread=run.unread,
    )


class RecentBatches:
    """The durations of the last batches of a run."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=RECENT_BATCHES)

    def add(self, figures: BatchFigures) -> BatchFigures:
        """Add a batch; returns its figures with the percentiles."""
        self._seconds.append(figures.report.seconds)
        p50, p95 = percentile(self._seconds, 50), percentile(self._seconds, 95)
        return replace(figures, p50_seconds=p50, p95_seconds=p95)


def percentile(values: Iterable[float], percent: int) -> float | None:
    """The percentile by the nearest-rank method, rounded to 3 decimal places; None without values."""
    ordered = sorted(values)
    return round(ordered[max(-(-percent * len(ordered) // 100) - 1, 0)], 3) if ordered else None


def timestamp(moment: datetime) -> str:
    """A time in UTC as in RFC 3339, with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
