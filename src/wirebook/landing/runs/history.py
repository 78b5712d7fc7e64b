"""The history of a target: the aggregate of the manifests of all committed batches.

Spec: docs/land.md#the-target-folder; docs/decisions/0214
"""

from __future__ import annotations

import msgspec

from wirebook.landing.runs.ledger import Ledger
from wirebook.landing.runs.manifests import FrameBatch, Manifest
from wirebook.landing.runs.offsets import Interval, Offsets, add_offsets, fill_offsets
from wirebook.landing.runs.seen_events import SeenEvents
from wirebook.landing.tables.settings import TableSettings

__all__ = ["History"]


class History(msgspec.Struct, kw_only=True):
    """The aggregate of the manifests of all committed batches. `add` must be called in batch order.

    Shape: `numbers` are the batch numbers. `format` is None if no batch has files. `read` counts messages, without
    those of replays; `rows` counts rows by table; `late` is as in `Manifest`. `table_settings` are the latest.
    `with_files` are the tables with files of their own; `staged` counts the staged rows by table. `has_frames` is true
    if any DataFrame has landed. `frames` has the numbers of the landed batches of each streaming query. `offsets` has
    the landed rows of DataFrames with identified rows. `read_up_to` has the last line read of each file, for each
    streaming query with `is_whole` batches. `seen` are the events that the target remembers, to find repeats.
    """

    numbers: list[Interval] = []
    format: str | None = None
    read: int = 0
    late: int = 0
    rows: dict[str, int] = {}
    table_settings: TableSettings = TableSettings()
    with_files: set[str] = set()
    staged: dict[str, int] = {}
    ledger: Ledger = {}
    has_frames: bool = False
    frames: Offsets = {}
    offsets: Offsets = {}
    read_up_to: dict[str, dict[str, int]] = {}
    seen: SeenEvents = SeenEvents()

    @property
    def last(self) -> int:
        """The number of the last batch; 0 before the first."""
        return self.numbers[-1][1] if self.numbers else 0

    def has_landed(self, frame: FrameBatch) -> bool:
        """Whether a batch of a streaming query has landed."""
        if frame.query is None or frame.batch_id is None:
            return False
        return any(first <= frame.batch_id <= last for first, last in self.frames.get(frame.query, ()))

    def add(self, manifest: Manifest) -> None:
        """Add the next batch."""
        _add_number(self.numbers, manifest.batch)
        self.format = self.format or (manifest.format if manifest.files else None)
        self.read += 0 if manifest.is_replay else manifest.read
        self.late += manifest.late
        for table, rows in manifest.rows.items():
            self.rows[table] = self.rows.get(table, 0) + rows
        self.table_settings = manifest.table_settings or self.table_settings
        self.seen = manifest.seen or self.seen
        self.with_files.update(file.table for file in manifest.files)
        for table, rows in manifest.staged.items():
            self.staged[table] = self.staged.get(table, 0) + rows
        self.ledger.update({entry.file: entry for entry in manifest.entries})
        if manifest.frame is not None:
            self.has_frames = True
            if manifest.frame.query is not None and manifest.frame.batch_id is not None:
                number = manifest.frame.batch_id
                add_offsets(self.frames, manifest.frame.query, [(number, number)])
        for file, intervals in manifest.offsets.items():
            add_offsets(self.offsets, file, intervals)
            if intervals and manifest.frame and manifest.frame.is_whole and manifest.frame.query is not None:
                self._fill(manifest.frame.query, file, intervals)

    def _fill(self, query: str, file: str, intervals: list[Interval]) -> None:
        """Close the gaps between the lines that a query has read. Each Kafka transaction leaves a gap, and a compacted
        topic has many, so the number of intervals would otherwise grow without bound."""
        read_up_to = self.read_up_to.setdefault(query, {})
        first, last = intervals[0][0], intervals[-1][1]
        fill_offsets(self.offsets, file, min(first, read_up_to.get(file, first)), last)
        read_up_to[file] = last


def _add_number(numbers: list[Interval], number: int) -> None:
    if numbers and numbers[-1][1] == number - 1:
        numbers[-1] = (numbers[-1][0], number)
    else:
        numbers.append((number, number))
