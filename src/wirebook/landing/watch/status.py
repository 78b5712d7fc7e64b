"""The status of a target: the results of its last batches, and whether a run is writing to it.

Reads only the records of the target. Takes no lock and writes nothing, so it can be called during a run, on any machine
that can access the target.

Spec: docs/how-to/watch.md#ask-a-target
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import orjson

from wirebook.landing.job import name_and_epoch
from wirebook.landing.runs.manifests import Manifest
from wirebook.landing.runs.target import Target
from wirebook.landing.runs.totals import landed_rows, total_counts
from wirebook.landing.stores.locations import AnyPath, location_of
from wirebook.landing.stores.records import Holder
from wirebook.landing.tables.layout import DEAD_LETTERS, REPEATED, RESOLVED
from wirebook.landing.watch.figures import percentile, timestamp
from wirebook.problems import Problem, WirebookError

__all__ = ["LastBatches", "TargetStatus", "target_status"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastBatches:
    """The sum of the last batches of a target.

    Units: `p50_seconds` and `p95_seconds` are percentiles of the durations of batches until their commit. `rate` is the
    number of messages, replayed dead letters included, per second of these durations.
    Shape: figures that no manifest has, because an earlier version of Wirebook wrote them, are None, empty or 0.
    """

    batches: int
    read: int
    landed: int
    dead_lettered: int
    repeated: int
    late: int
    endpoints: Counter[str]
    outcomes: Counter[str]
    reasons: Counter[str]
    bytes_read: int
    bytes_written: int
    rate: float | None
    p50_seconds: float | None
    p95_seconds: float | None

    @staticmethod
    def of(manifests: Sequence[Manifest]) -> LastBatches:
        """The sum of these batches. `read` and `outcomes` leave out replays."""
        rows = sum((manifest.rows for manifest in manifests), Counter[str]())
        runs = [manifest.run for manifest in manifests if manifest.run is not None]
        seconds = [run.seconds for run in runs]
        timed = sum(manifest.read for manifest in manifests if manifest.run is not None)
        return LastBatches(
            batches=len(manifests),
            read=sum(manifest.read for manifest in manifests if not manifest.is_replay),
            landed=landed_rows(rows),
            dead_lettered=rows[DEAD_LETTERS],
            repeated=rows[REPEATED],
            late=sum(manifest.late for manifest in manifests),
            endpoints=total_counts(manifest.endpoints for manifest in manifests),
            outcomes=total_counts(manifest.outcomes for manifest in manifests if not manifest.is_replay),
            reasons=total_counts(run.reasons for run in runs),
            bytes_read=sum(run.bytes_read for run in runs),
            bytes_written=sum(run.bytes_written for run in runs),
            rate=round(timed / sum(seconds), 1) if sum(seconds) else None,
            p50_seconds=percentile(seconds, 50),
            p95_seconds=percentile(seconds, 95),
        )

    def to_dict(self) -> dict[str, Any]:
        """The sum as JSON."""
        names = ("batches", "read", "landed", "dead_lettered", "repeated", "late", "bytes_read", "bytes_written")
        counts = {name: getattr(self, name) for name in names}
        by_name = {
            "endpoints": _plain(self.endpoints),
            "outcomes": _plain(self.outcomes),
            "reasons": _plain(self.reasons),
        }
        return counts | by_name | {name: getattr(self, name) for name in ("rate", "p50_seconds", "p95_seconds")}


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStatus:
    """The status of a target, from its records.

    Shape: `batches`, `read`, `landed`, `dead_lettered` (without resolved ones), `repeated`, `late` and `resolved` are
    totals of all batches, as in `RunStatistics`. `last` is the newest batch; `pending` is the number of a batch that
    has begun and is not finished. `name` and `epoch` are those of the catalogue of the last batch. `holder` is the run
    that holds the target or held it last. `streams` has the figures of the last batch of each streaming query. `aside`
    maps the tables whose files are set aside to the reasons by batch, and `problems` describes these tables.
    """

    target: str
    format: str | None
    batches: int
    read: int
    landed: int
    dead_lettered: int
    repeated: int
    late: int
    resolved: int
    last: Manifest | None
    name: str | None
    epoch: int | None
    recent: LastBatches
    pending: int | None
    holder: Holder | None
    streams: list[dict[str, Any]]
    aside: dict[str, dict[int, str]]
    problems: list[Problem]

    @property
    def committed(self) -> datetime | None:
        """When the last batch was committed; None if an earlier version of Wirebook committed it."""
        run = self.last.run if self.last else None
        return run.started + timedelta(seconds=run.seconds) if run else None

    def to_dict(self) -> dict[str, Any]:
        """The status as JSON."""
        last, run = self.last, self.last.run if self.last else None
        holder = self.holder and {"owner": self.holder.owner, "running": self.holder.is_running}
        names = ("batches", "read", "landed", "dead_lettered", "repeated", "late", "resolved")
        return {
            "target": self.target,
            "format": self.format,
            **{name: getattr(self, name) for name in names},
            "last_batch": last
            and {
                "batch": last.batch,
                "started": timestamp(run.started) if run else None,
                "committed": timestamp(self.committed) if self.committed else None,
                "seconds": run.seconds if run else None,
                "read": last.read,
                "endpoint": last.endpoint,
                "query": last.frame.query if last.frame else None,
                "unread_files": run.unread[0] if run and run.unread else None,
                "unread_bytes": run.unread[1] if run and run.unread else None,
                "catalogue": last.catalogue,
                "catalogue_name": self.name,
                "catalogue_epoch": self.epoch,
            },
            "recent": self.recent.to_dict(),
            "pending_batch": self.pending,
            "run": holder,
            "streams": self.streams,
            "set_aside": {
                table: {"batches": list(batches), "reason": list(batches.values())[-1]}
                for table, batches in self.aside.items()
            },
        }


def target_status(folder: AnyPath, recent: int = 20) -> TargetStatus:
    """The status of a target, with the sum of its `recent` last batches.

    Cost: reads the last manifests, at most 300 unless `recent` is more, and the stored sum of the others.
    Raises: no-target, broken-target, store-failed
    """
    target = Target(location_of(folder))
    target.check_exists()
    holder = target.records.holder()
    pending = target.pending_number()
    history = target.history()
    newest = list(islice(target.manifests(newest_first=True), max(recent, 1)))
    last = newest[0] if newest else None
    rows = Counter(history.rows)
    aside = target.set_aside()
    return TargetStatus(
        target=str(folder),
        format=history.format,
        batches=sum(last - first + 1 for first, last in history.numbers),
        read=history.read,
        landed=landed_rows(rows),
        dead_lettered=rows[DEAD_LETTERS] - rows[RESOLVED],
        repeated=rows[REPEATED],
        late=history.late,
        resolved=rows[RESOLVED],
        last=last,
        **_catalogue(target, last),
        recent=LastBatches.of(newest[:recent]),
        pending=pending,
        holder=holder,
        streams=target.streams(),
        aside=aside,
        problems=[target.aside_problem(table, list(reasons.values())[-1]) for table, reasons in sorted(aside.items())],
    )


def _catalogue(target: Target, last: Manifest | None) -> dict[str, Any]:
    """The name and epoch of the catalogue of a batch, from its manifest or from the copy of the catalogue."""
    if last is None:
        return {"name": None, "epoch": None}
    if last.run is not None and (last.run.name is not None or last.run.epoch is not None):
        return {"name": last.run.name, "epoch": last.run.epoch}
    name, epoch = None, None
    with suppress(WirebookError):  # a batch that contains only copies of files has no catalogue
        name, epoch = name_and_epoch(orjson.loads(target.catalogue(last.catalogue)))
    return {"name": name, "epoch": epoch}


def _plain(counts: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.items()) if count}
