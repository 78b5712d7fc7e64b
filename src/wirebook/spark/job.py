"""`land` and `replay` on a Spark session, and `land` and `land_batch` for DataFrames.

from wirebook.spark import land, land_batch, replay
report = land(spark, "captures/", "catalogue.xreg.json", "tables/")
report = replay(spark, "tables/", "corrected.xreg.json")
report = land(spark.read.format("kafka")....load(), "catalogue.xreg.json", "tables/")
stream.writeStream.foreachBatch(lambda frame, number: land_batch(frame, number, "catalogue.xreg.json", "tables/"))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack, overload

from wirebook.landing import job
from wirebook.landing.job import AnyCatalog, AnyPath, LandOptions, Report, RunOptions
from wirebook.landing.runs.frame_task import FrameInput
from wirebook.landing.runs.land_frame import land_frame
from wirebook.landing.runs.manifests import FrameBatch
from wirebook.landing.runs.target import Target
from wirebook.landing.sources.dataframes import identity_of
from wirebook.landing.stores.locations import Location, location_of
from wirebook.problems import Problem, WirebookError
from wirebook.spark.checkpoints import checkpoint_url, clear_unfinished
from wirebook.spark.frames import frame_columns, missing_columns, run_frame, warn
from wirebook.spark.runner import SparkRunner
from wirebook.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Report", "land", "land_batch", "replay"]

AnySpark: TypeAlias = "SparkSession | Callable[[], SparkSession]"
QUERY_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
QUERY_ID = "sql.streaming.queryId"
"""Spark's local property with the id of the running query. The checkpoint stores the same id."""


class FrameOptions(LandOptions, total=False):
    """Keyword options of `land` and `land_batch` for DataFrames, in addition to those of `LandOptions`.

    Shape: `columns` maps columns that Wirebook expects to those of the DataFrame, as in ``{"value": "payload_json"}``.
    `identity` names a string and an integer column that together identify a message, as in ``("file", "line")``; the
    default is Kafka's topic, partition and offset. For a DataFrame that is not streaming, `land` requires either
    `identity` or these Kafka columns.
    """

    columns: Mapping[str, str] | None
    identity: tuple[str, str] | None


class StreamOptions(FrameOptions, total=False):
    """Keyword options of `land` for streaming DataFrames, in addition to those of `FrameOptions`.

    Shape: `checkpoint` is the checkpoint location of the query. The default is a folder below ``_wirebook`` in the
    target, named after `name` if it is set: several streams into one target need different names. `trigger` has the
    arguments of Spark's `trigger`, such as ``{"availableNow": True}``.
    """

    name: str | None
    checkpoint: AnyPath | None
    trigger: Mapping[str, Any] | None


@overload
def land(
    spark: AnySpark, /, source: AnyPath, catalog: AnyCatalog, to: AnyPath, **options: Unpack[LandOptions]
) -> Report: ...
@overload
def land(
    frame: DataFrame, /, catalog: AnyCatalog, to: AnyPath, **options: Unpack[StreamOptions]
) -> Report | StreamingQuery: ...
def land(spark_or_frame: Any, /, *arguments: Any, **options: Any) -> Report | StreamingQuery:
    """Land files, as ``land(spark, source, catalog, to)``, or the rows of a DataFrame, as ``land(frame, catalog, to)``.

        report = land(spark, "captures/", "orders.xreg.json", "tables/")
        report = land(frame, "orders.xreg.json", "tables/", identity=("file", "line"))
        query = land(stream, "orders.xreg.json", "tables/", name="orders", trigger={"processingTime": "30 seconds"})

    *Files.* `spark` is a session, or a function that returns one, called only if there is something to read. The other
    arguments are those of `wirebook.landing.land`.

    *A DataFrame* has capture lines or CloudEvents in the column ``value``, or the columns of Spark's Kafka source, or
    members of the capture format as columns (docs/how-to/dataframes.md). Either all of its rows land or none. Rows
    that have already landed are skipped; they are identified by `identity` or by Kafka's offsets. Kafka rows without
    the headers that definitions need, or without the topic, cause a problem in the report and a Python warning
    (missing-headers, missing-topic). The `options` are those of `FrameOptions`.

    *A streaming DataFrame* starts a query, which is returned. Each batch lands exactly once. The `options` are those
    of `StreamOptions`. Streaming DataFrames are rejected over Spark Connect, where batches do not know the id of their
    query: use `land_batch`.

    Raises: WirebookError (as `wirebook.landing.land`, and spark-failed, no-java, frame-columns, frame-identity,
    message-twice)
    """
    if not hasattr(spark_or_frame, "mapInArrow"):
        return job.land(*arguments, runner=_runner(spark_or_frame), **options)
    frame = spark_or_frame
    job.check_options(options, StreamOptions if frame.isStreaming else FrameOptions)
    if frame.isStreaming:
        return _land_stream(frame, *arguments, **options)
    if options.get("identity") is None and not frame_columns(frame, options.get("columns")).has_offsets:
        message = "the rows of the DataFrame have no identity, so landing it again would duplicate them"
        hint = "name a text and an integer column, as in identity=('file', 'line'), or land batches with `land_batch`"
        raise WirebookError(Problem("frame-identity", message, actual=frame.columns, hint=hint))
    return _land_frame(frame, FrameBatch(), *arguments, **options)


def land_batch(
    frame: DataFrame,
    batch_id: int,
    catalog: AnyCatalog,
    to: AnyPath | Target,
    *,
    query: str | None = None,
    **options: Unpack[FrameOptions],
) -> Report:
    """Land a batch of a streaming query, in its `foreachBatch`: exactly once, even if Spark runs the batch again.

        def land_orders(frame, batch_id):
            land_batch(frame, batch_id, "orders.xreg.json", "tables/")
        stream.writeStream.foreachBatch(land_orders).option("checkpointLocation", "checkpoint/").start()

    A batch is identified by `query` and `batch_id`. By default `query` is Spark's id of the query, which its
    checkpoint stores. Over Spark Connect this id is not available: pass a name that stays the same as long as the
    checkpoint exists. `to` can be a `Target` that is reused between batches, so that each manifest of the target is
    read only once.

    Raises: WirebookError (as `land`)
    """
    job.check_options(options, FrameOptions)
    query = query or _query_id(frame)
    if query is None:
        message = "the query of the batch is not known"
        raise WirebookError(Problem("frame-identity", message, hint="name it, as in query='orders'"))
    return _land_frame(frame, FrameBatch(query=query, batch_id=batch_id), catalog, to, **options)


def land_batch_of_endpoint(
    frame: DataFrame,
    batch_id: int,
    catalog: AnyCatalog,
    to: Target,
    *,
    query: str | None,
    is_whole: bool,
    **options: Unpack[FrameOptions],
) -> Report:
    """Land a batch of `wirebook stream`, like `land_batch`. `is_whole` is described in `FrameBatch`.

    Raises: WirebookError (as `land`)
    """
    batch = FrameBatch(query=query or _query_id(frame), batch_id=batch_id, is_whole=is_whole)
    return _land_frame(frame, batch, catalog, to, **options)


def replay(
    spark: AnySpark,
    folder: AnyPath,
    catalog: AnyCatalog,
    *,
    codes: Iterable[str] = (),
    definitions: Iterable[str] = (),
    **options: Unpack[RunOptions],
) -> Report:
    """Land dead letters that match a corrected catalogue, like `wirebook.landing.replay`, on Spark.

        report = replay(spark, "tables/", "corrected.xreg.json", codes=["payload-invalid"])

    `spark` is as for `land`; the other arguments are those of `wirebook.landing.replay`.

    Raises: WirebookError (as `wirebook.landing.replay`, and spark-failed, no-java)
    """
    return job.replay(folder, catalog, codes=codes, definitions=definitions, runner=_runner(spark), **options)


def _runner(spark: AnySpark) -> SparkRunner:
    return SparkRunner(spark if callable(spark) else lambda: spark)


def _query_id(frame: DataFrame) -> str | None:
    with suppress(AttributeError):  # Spark Connect has no SparkContext
        return frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    return None


def _land_frame(
    frame: DataFrame,
    batch: FrameBatch,
    catalog: AnyCatalog,
    to: AnyPath | Target,
    *,
    columns: Mapping[str, str] | None = None,
    identity: tuple[str, str] | None = None,
    **options: Unpack[LandOptions],
) -> Report:
    """Raises: frame-columns, frame-identity, and those of `land_frame`"""
    inputs = frame_columns(frame, columns)
    identified = identity_of(identity, frame.columns)
    is_identified = identified is not None or inputs.has_offsets
    name = None if is_identified else f"{batch.query}/{batch.batch_id}"
    source = FrameInput(inputs, batch, identified, name)
    needed = dict.fromkeys([*inputs.names.values(), *(identified or ())])
    rows = frame.select(*(f"`{column.replace('`', '``')}`" for column in needed))
    loaded = job.load_catalog(catalog)
    settings = job.run_settings(loaded, None, options)
    target = to if isinstance(to, Target) else Target(location_of(to))
    problems = missing_columns(frame, inputs, columns, loaded)
    warn(problems, stacklevel=3)
    report = land_frame(settings, partial(run_frame, rows), source, job.catalogue_of(loaded), target)
    report.problems += problems
    return report


def _land_stream(
    frame: DataFrame,
    catalog: AnyCatalog,
    to: AnyPath,
    *,
    name: str | None = None,
    checkpoint: AnyPath | None = None,
    trigger: Mapping[str, Any] | None = None,
    **options: Unpack[FrameOptions],
) -> StreamingQuery:
    """Start a query that lands each batch.

    Raises: frame-identity, over Spark Connect; bad-setting, unsupported-store
    """
    if is_connect(frame.sparkSession):
        message = "over Spark Connect, nothing identifies the batches of a streaming DataFrame"
        hint = "call `land_batch` with a query='NAME' of your own in `foreachBatch`, or run the program by spark-submit"
        raise WirebookError(Problem("frame-identity", message, hint=hint))
    columns = options.get("columns")
    inputs, loaded = frame_columns(frame, columns), job.load_catalog(catalog)
    identity_of(options.get("identity"), frame.columns)
    others: Any = {name: value for name, value in options.items() if name in LandOptions.__optional_keys__}
    job.run_settings(loaded, None, others)  # report invalid options now, not in the first batch
    warn(missing_columns(frame, inputs, columns, loaded), stacklevel=3)
    options["columns"] = inputs.names  # mapped explicitly, so that batches do not warn again
    if checkpoint is None:
        checkpoint = _default_checkpoint(location_of(to), name)
    url = checkpoint_url(frame.sparkSession, checkpoint)
    clear_unfinished(url)
    target = Target(location_of(to))

    def land_one(batch: DataFrame, number: int) -> None:
        land_batch(batch, number, loaded, target, **options)

    writer = frame.writeStream.foreachBatch(land_one).option("checkpointLocation", url)
    writer = writer.queryName(name) if name else writer
    return (writer.trigger(**trigger) if trigger else writer).start()


def _default_checkpoint(root: Location, name: str | None) -> Location:
    """Return the checkpoint folder of a query in a target. It must be permanent, because only Spark knows the offsets
    of a DataFrame that the caller has created.

    Raises: bad-setting
    """
    if name is not None and not QUERY_NAME.fullmatch(name):
        message = f"'{name}' may have only letters, digits, '.', '-' and '_', and begins with a letter or digit"
        raise WirebookError(Problem("bad-setting", message, actual=name, hint="choose another name for the query"))
    return root / "_wirebook" / (f"checkpoints/{name}" if name else "checkpoint")
