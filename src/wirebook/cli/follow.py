"""`wirebook land --follow`: land files as they arrive in a folder or object store, until stopped.

Spec: docs/how-to/capture.md#land-while-the-gateway-runs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebook.catalog.live import LiveCatalog
from wirebook.cli.continuous import Stop, run_until_stopped, watching
from wirebook.cli.options import ProgressFormat
from wirebook.cli.progress import ProgressBar
from wirebook.cli.run_output import BatchOutput
from wirebook.landing.follow import FollowJob, follow
from wirebook.landing.runs.local_runner import LocalRunner
from wirebook.landing.stores.locations import location_of
from wirebook.landing.tables.settings import read_table_settings
from wirebook.landing.watch.figures import RecentBatches, figures_of
from wirebook.landing.watch.lineage import RunLineage, file_source
from wirebook.spark.runner import SparkRunner

if TYPE_CHECKING:
    from wirebook.catalog import Catalog
    from wirebook.landing.runs.report import Report
    from wirebook.landing.runs.settings import CommittedBatch, Runner


def follow_source(
    source: str,
    catalog: Catalog,
    catalog_sources: list[str],
    to: str,
    *,
    interval: float,
    local: bool,
    metrics_address: tuple[str, int] | None,
    progress: ProgressFormat,
    as_json: bool,
    settings: dict[str, Any],
) -> int:
    """Land what arrives in `source`, with the `settings` of `land`, until stopped. Return the exit code.

    Raises: WirebookError (as `wirebook.landing.follow.follow`)
    """
    target, endpoint, tables = location_of(to), settings["endpoint"], settings["tables"]
    once_read = {"tables": None if tables is None else read_table_settings(tables)}  # read once, not in every pass
    options: Any = settings | once_read
    job = FollowJob(source=location_of(source), to=target, interval=interval, options=options)
    output, recent, stop = BatchOutput(progress, as_json=as_json), RecentBatches(), Stop()
    live = LiveCatalog(catalog, catalog_sources, endpoint, output.note)
    lineage = RunLineage(
        f"land.{target.absolute().name}", [file_source(job.source)], to, output.note, is_streaming=True
    )

    def run() -> Report:
        with watching(metrics_address, endpoint or source, lineage, output) as observers:

            def show(batch: CommittedBatch) -> None:
                observers.on_batch(recent.add(figures_of(batch)))

            runner = _runner(progress, local=local)
            stop.is_graceful = True
            output.note(f"following {source}, landing in {to}")
            return follow(
                job,
                live,
                stop,
                runner,
                on_batch=show,
                on_pass=output.show_pass,
                on_failure=observers.on_connection,
                note=output.note,
            )

    return run_until_stopped(run, stop, output, to)


def _runner(progress: ProgressFormat, *, local: bool) -> Runner:
    """Return the runner of landing tasks. Spark is started now, not with the first task."""
    if local:
        return LocalRunner()
    with ProgressBar("starting Spark", quiet=progress is not ProgressFormat.TEXT) as bar:
        spark = bar.start_spark()
    return SparkRunner(lambda: spark)
