"""`land` and `replay` on a Spark session: the tasks run in Spark's Python workers.

from wirebook.spark import land, replay
report = land(spark, "captures/", "catalogue.xreg.json", "tables/")
report = replay(spark, "tables/", "corrected.xreg.json")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias, Unpack

from wirebook.landing import job
from wirebook.landing.job import AnyCatalog, AnyPath, LandOptions, Report, RunOptions
from wirebook.spark.runner import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Report", "land", "replay"]

AnySpark: TypeAlias = "SparkSession | Callable[[], SparkSession]"


def land(spark: AnySpark, source: AnyPath, catalog: AnyCatalog, to: AnyPath, **options: Unpack[LandOptions]) -> Report:
    """`wirebook.landing.land` on Spark. `spark` is a session, or a function that returns one, called only if there is
    something to read.

    Raises: WirebookError (as `wirebook.landing.land`, and spark-failed, no-java)
    """
    return job.land(source, catalog, to, runner=_runner(spark), **options)


def replay(
    spark: AnySpark,
    folder: AnyPath,
    catalog: AnyCatalog,
    *,
    codes: Iterable[str] = (),
    definitions: Iterable[str] = (),
    **options: Unpack[RunOptions],
) -> Report:
    """`wirebook.landing.replay` on Spark. `spark` is as for `land`.

    Raises: WirebookError (as `wirebook.landing.replay`, and spark-failed, no-java)
    """
    return job.replay(folder, catalog, codes=codes, definitions=definitions, runner=_runner(spark), **options)


def _runner(spark: AnySpark) -> SparkRunner:
    return SparkRunner(spark if callable(spark) else lambda: spark)
