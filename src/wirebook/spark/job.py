"""`land` and `replay` on Spark: for programs, notebooks and the command line.

from wirebook.spark import land, replay
report = land(spark, "captures/", "catalogue.xreg.json", "tables/")
report = replay(spark, "tables/", "corrected.xreg.json")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from wirebook.catalog import Catalog
from wirebook.catalog.catalog import CatalogSource
from wirebook.landing.runs.batches import BATCH_BYTES, Catalogue, ProgressListener, RunSettings
from wirebook.landing.runs.engine import engine_for
from wirebook.landing.runs.land import land_files
from wirebook.landing.runs.replay import replay_dead_letters
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import DeadLetterFilter, Target
from wirebook.spark.runner import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Report", "land", "replay"]

AnySpark: TypeAlias = "SparkSession | Callable[[], SparkSession]"
AnyPath = str | PathLike[str]
AnyCatalog = Catalog | CatalogSource | list[CatalogSource] | tuple[CatalogSource, ...]


def land(
    spark: AnySpark,
    source: AnyPath,
    catalog: AnyCatalog,
    to: AnyPath,
    *,
    endpoint: str | None = None,
    table_format: str | None = None,
    stage_below: int | None = None,
    dry_run: bool = False,
    batch_bytes: int = BATCH_BYTES,
    progress: ProgressListener | None = None,
) -> Report:
    """Land what is new in `source`, a file or a folder, as typed tables and dead letters in the folder `to`.

    `spark` is a session, or a function that returns one, called only if there is something to read. `catalog` is a
    `Catalog`, or the sources of one as for `Catalog.load`. Its match options apply; options other than
    ``confluent_prefix`` make landing slow, because messages are then matched one by one. `endpoint` (an XID) overrides
    the endpoints in the records. `table_format` is ``parquet``, ``delta`` or ``iceberg``; by default, the format of the
    folder, or Parquet for a new one. Definitions with fewer rows than `stage_below` share the table ``staged``: 0 turns
    this off; None means 100, but only if a task would write more than 1,000 files for smaller tables. Each batch reads
    about `batch_bytes` and lands completely or not at all. A `dry_run` counts and writes nothing.

    Raises: WirebookError (unknown-endpoint, unreadable-file, format-differs, missing-extra, target-locked,
    unwritable-target, not-conserved, and the codes of `Catalog.load`). Changed files are in the problems of the report.
    """
    loaded = load_catalog(catalog)
    if endpoint is not None:
        loaded.check_endpoint(endpoint)
    settings: dict[str, Any] = {"dry_run": dry_run, "batch_bytes": batch_bytes, "progress": progress}
    landing = _landing(spark, loaded, endpoint=endpoint, table_format=table_format, stage_below=stage_below, **settings)
    return land_files(landing, Path(source), catalogue_of(loaded), Target(Path(to)))


def replay(
    spark: AnySpark,
    folder: AnyPath,
    catalog: AnyCatalog,
    *,
    codes: Iterable[str] = (),
    definitions: Iterable[str] = (),
    endpoint: str | None = None,
    stage_below: int | None = None,
    dry_run: bool = False,
    batch_bytes: int = BATCH_BYTES,
    progress: ProgressListener | None = None,
) -> Report:
    """Land dead letters in `folder` that match a corrected catalogue, each once, and mark them as resolved.

    `codes` and `definitions` (XIDs) select dead letters: those with one of these problems, and those of or near one of
    these definitions. An `endpoint` overrides that of the original landing; `stage_below` is as for `land`. In the
    report, `read` counts the dead letters that were tried, and `dead_lettered` those that still do not land.

    Raises: WirebookError (no-target, unknown-code, unknown-endpoint, format-differs, missing-extra, target-locked,
    unwritable-target, not-conserved, and the codes of `Catalog.load`).
    """
    loaded = load_catalog(catalog)
    settings: dict[str, Any] = {"dry_run": dry_run, "batch_bytes": batch_bytes, "progress": progress}
    landing = _landing(spark, loaded, endpoint=endpoint, stage_below=stage_below, **settings)
    chosen = DeadLetterFilter(codes=sorted(codes), definitions=sorted(definitions))
    if endpoint is not None:
        loaded.check_endpoint(endpoint)
    return replay_dead_letters(landing, catalogue_of(loaded), Target(Path(folder)), chosen)


def _landing(spark: AnySpark, catalog: Catalog, **settings: Any) -> RunSettings:
    runner = SparkRunner(spark if callable(spark) else lambda: spark)
    return RunSettings(runner, engine_for, options=catalog.options, **settings)


def load_catalog(catalog: AnyCatalog) -> Catalog:
    """The catalogue itself, or one loaded from its sources."""
    if isinstance(catalog, Catalog):
        return catalog
    return Catalog.load(*catalog) if isinstance(catalog, list | tuple) else Catalog.load(catalog)


def catalogue_of(catalog: Catalog) -> Catalogue:
    """The document and fingerprint that a run needs."""
    document = orjson.dumps(catalog.registry.document)
    return Catalogue(catalog.fingerprint, document, catalog.check_endpoint)
