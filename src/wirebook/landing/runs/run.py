"""The state of a run on a target: its settings, the history that it found in the target, and its report.

Spec: docs/land.md#what-is-promised
"""

from __future__ import annotations

from dataclasses import dataclass

from wirebook.landing.runs.history import History
from wirebook.landing.runs.ledger import Ledger
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.run_tables import RunTables
from wirebook.landing.runs.settings import Catalogue, RunSettings
from wirebook.landing.runs.table_format import writable_format
from wirebook.landing.runs.target import Target
from wirebook.landing.tables.formats import TableFormat

__all__ = ["Run"]


@dataclass(slots=True, kw_only=True)
class Run:
    """The state of a run, which all of its batches share.

    Shape: `history` grows with each commit; `ledger_before` is its ledger at the beginning of the run. `next_batch` is
    the number of the next batch. `unread` is the number of files and of bytes of the source that are still to be read
    after the current batch, if known.
    """

    settings: RunSettings
    target: Target
    catalogue: Catalogue
    history: History
    ledger_before: Ledger
    table_format: TableFormat
    tables: RunTables
    next_batch: int
    report: Report
    unread: tuple[int, int] | None = None

    @classmethod
    def read(cls, settings: RunSettings, target: Target, catalogue: Catalogue) -> Run:
        """Read the history of the target, and check that tables can be written to it.

        Raises: bad-setting, format-differs, iceberg-catalog-differs, iceberg-catalog-failed, missing-extra,
        table-settings, unsupported-store, broken-target, store-failed
        """
        history = target.history()
        table_format = writable_format(settings, target, has_tables=history.format is not None)
        return cls(
            settings=settings,
            target=target,
            catalogue=catalogue,
            history=history,
            ledger_before=dict(history.ledger),
            table_format=table_format,
            next_batch=target.next_batch(),
            tables=RunTables.of(settings, target, catalogue, table_format, history.table_settings),
            report=Report(dry_run=settings.dry_run),
        )

    def take_number(self) -> int:
        """Reserve the number of a new batch."""
        self.next_batch += 1
        return self.next_batch - 1
