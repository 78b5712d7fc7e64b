"""The main job: `land` and `replay` for programs, notebooks and the command line alike.

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
from wirebook.landing.runs.engine import engine_for
from wirebook.landing.runs.landing import BATCH_BYTES, Catalogue, Landing, Watch, land_files
from wirebook.landing.runs.replay import replay_letters
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Chosen, Target
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
    form: str | None = None,
    stage_below: int | None = None,
    dry_run: bool = False,
    batch_bytes: int = BATCH_BYTES,
    watch: Watch | None = None,
) -> Report:
    """Lands what is new in `source`, a file or a folder, as typed tables and dead letters in the folder `to`.

    `spark` is a session of any kind, or what makes one when there is something to read. `catalog` is a catalogue, or
    what `Catalog.load` takes; its options hold here, too, and make it slow where they are others than
    ``confluent_prefix``: message by message. `endpoint` (an XID) wins over what records say. `form` is the format of
    the tables, ``parquet``, ``delta`` or ``iceberg``: the one that the folder has, or Parquet, unless said.
    Definitions with fewer rows than `stage_below` share the table ``staged``: 0 for none, None for those with fewer
    than 100 where a task would write more than 1,000 files of them. A `dry_run` counts and writes nothing.

    Raises: WirebookError (unknown-endpoint, unreadable-file, format-differs, missing-extra, target-locked,
    unwritable-target, not-conserved, and what loading a catalogue raises). Files that changed are in the report's
    problems.
    """
    loaded = load_catalog(catalog)
    if endpoint is not None:
        loaded.check_endpoint(endpoint)
    settings: dict[str, Any] = {"dry_run": dry_run, "batch_bytes": batch_bytes, "watch": watch}
    landing = _landing(spark, loaded, endpoint=endpoint, form=form, stage_below=stage_below, **settings)
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
    watch: Watch | None = None,
) -> Report:
    """Lands dead letters of the folder `folder` that fit a corrected catalogue, each once, and marks them resolved.

    `codes` and `definitions` (XIDs) choose: letters with one of these problems, of or near one of these definitions.
    An `endpoint` wins over the one that their landing was told; `stage_below` is as for `land`. In the report `read`
    counts the letters that were tried, `dead_lettered` those of them that still do not land.

    Raises: WirebookError (no-target, unknown-code, unknown-endpoint, format-differs, missing-extra, target-locked,
    unwritable-target, not-conserved, and what loading a catalogue raises).
    """
    loaded = load_catalog(catalog)
    settings: dict[str, Any] = {"dry_run": dry_run, "batch_bytes": batch_bytes, "watch": watch}
    landing = _landing(spark, loaded, endpoint=endpoint, stage_below=stage_below, **settings)
    chosen = Chosen(codes=sorted(codes), definitions=sorted(definitions))
    if endpoint is not None:
        loaded.check_endpoint(endpoint)
    return replay_letters(landing, catalogue_of(loaded), Target(Path(folder)), chosen)


def _landing(spark: AnySpark, catalog: Catalog, **settings: Any) -> Landing:
    runner = SparkRunner(spark if callable(spark) else lambda: spark)
    return Landing(runner, engine_for, options=catalog.options, **settings)


def load_catalog(catalog: AnyCatalog) -> Catalog:
    """A catalogue as it is, or loaded from one source or several."""
    if isinstance(catalog, Catalog):
        return catalog
    return Catalog.load(*catalog) if isinstance(catalog, list | tuple) else Catalog.load(catalog)


def catalogue_of(catalog: Catalog) -> Catalogue:
    """What a run needs of a catalogue."""
    document = orjson.dumps(catalog.registry.document)
    return Catalogue(catalog.fingerprint, document, catalog.check_endpoint)
