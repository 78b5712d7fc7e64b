"""Creates the job of a batch, which its tasks share, from the begin record of the batch and the history of the target.

The job is the same each time the batch runs, because nothing is committed in between.
"""

from __future__ import annotations

from wirebook.landing.runs.history import History
from wirebook.landing.runs.repeats import RepeatSearch
from wirebook.landing.runs.run import Run
from wirebook.landing.runs.settings import Catalogue
from wirebook.landing.runs.target import PendingBatch
from wirebook.landing.runs.task import Job, ReplaySelection
from wirebook.landing.tables.staged import StagingPolicy

__all__ = ["job_of"]


def job_of(run: Run, pending: PendingBatch, catalogue: Catalogue, decision: bytes = b"") -> Job:
    """The job of a batch that was begun with this catalogue; `decision` is as in `RepeatSearch`."""
    has_own_options = pending.options == run.settings.options  # `prepare` compiles for these
    prepared = catalogue.prepare(pending.endpoint) if has_own_options else None
    staging = None if run.settings.dry_run else run.target.staging(pending.batch).absolute()
    return Job(
        factory=run.settings.factory,
        catalogue=Job.pack(catalogue.document) if prepared is None else b"",
        options={
            "endpoint": pending.endpoint,
            "catalogue": pending.catalogue,
            "match": pending.options,
            "prepared": prepared,
        },
        batch=pending.batch,
        staging=staging,
        format=run.table_format.name,
        tables=tables.absolute() if (tables := run.target.table_list()) else None,
        names=pending.names,
        table_settings=pending.table_settings,
        staging_policy=_staging_policy(pending.stage_below, run.history),
        sizes=run.settings.sizes,
        dead_letters=_replay_selection(run, pending),
        repeats=_repeat_search(run, pending, decision),
    )


def _staging_policy(below: int | None, history: History) -> StagingPolicy:
    limit = StagingPolicy(below).limit
    enough = (name for name, rows in history.staged.items() if rows >= limit)
    return StagingPolicy(below, frozenset({*history.with_files, *enough}) if limit else frozenset())


def _replay_selection(run: Run, pending: PendingBatch) -> ReplaySelection | None:
    if pending.chosen is None:
        return None
    ledger = run.history.ledger
    events = frozenset(entry.file for entry in ledger.values() if entry.file_type == "events")
    return ReplaySelection(
        codes=frozenset(pending.chosen.codes),
        definitions=frozenset(pending.chosen.definitions),
        resolved=tuple(path.absolute() for path in run.target.resolved()),
        events=events,
        captures=frozenset(ledger.keys() - events) if run.history.has_frames else None,
        file=run.table_format.column("_file"),
        deleted=run.target.deleted_dead_letters(),
    )


def _repeat_search(run: Run, pending: PendingBatch, decision: bytes) -> RepeatSearch | None:
    if pending.deduplication is None:
        return None
    seen = run.history.seen
    known = tuple(file.absolute() for file in seen.locations(run.target.records))
    return RepeatSearch(pending.deduplication, known, decision, seen.horizon - pending.deduplication.window)
