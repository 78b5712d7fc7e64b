"""`wirebook stream`: land the messages of a Kafka or NATS JetStream endpoint as they arrive.

Spec: docs/how-to/kafka-stream.md; docs/decisions/0196
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from wirebook.cli.continuous import Stop, run_until_stopped, watching
from wirebook.cli.land import (
    DeduplicateOption,
    FormatOption,
    IcebergCatalogOption,
    IcebergNamespaceOption,
    StageOption,
    check_format,
    window_of,
)
from wirebook.cli.options import (
    BatchProgressOption,
    CatalogOption,
    ConfluentOption,
    MetricsOption,
    ProgressFormat,
    SecretsOption,
    SetOption,
    TableSettingsOption,
    TargetOption,
    address_of,
    pairs_of,
)
from wirebook.cli.run_output import BatchOutput
from wirebook.cli.serve import seconds_of
from wirebook.cli.sources import load_catalog_to_land

if TYPE_CHECKING:
    from wirebook.capture.endpoints import ReceivedEndpoint
    from wirebook.catalog import Catalog
    from wirebook.landing.runs.report import Report
    from wirebook.spark.stream_sources import ReadLimits, StreamSource

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def stream(  # noqa: PLR0917 (options)
    endpoint: Annotated[str, typer.Option(help="XID of the endpoint to read: Kafka, or NATS with JetStream.")],
    catalog: CatalogOption,
    to: TargetOption,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Land what the topics have now, in several batches, and exit.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Land what the topics have now in one batch, and exit.")] = False,
    interval: Annotated[
        str, typer.Option(help="Time between the starts of batches, such as 30s; 0: no pause.")
    ] = "10s",
    starting: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="earliest|latest|JSON",
            help="Where the first run starts; JSON has the offset of each partition of each topic, and for JetStream a "
            "sequence number can be given. Default: "
            "autooffsetreset of the endpoint, else earliest.",
        ),
    ] = None,
    max_per_batch: Annotated[int, typer.Option(help="Maximum number of messages of a batch.", min=1)] = 1_000_000,
    min_per_batch: Annotated[
        int | None, typer.Option(help="Minimum number of messages of a batch; waits at most 15 minutes.", min=1)
    ] = None,
    fail_on_data_loss: Annotated[
        bool,
        typer.Option(
            "--fail-on-data-loss/--skip-lost",
            help="Whether to stop if the broker has deleted messages that were not read.",
        ),
    ] = True,
    set_: SetOption = None,
    secrets: SecretsOption = None,
    client_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Properties file with settings of the Kafka client; they override the endpoint."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name of the query; its progress is kept under this name. Default: the id of the endpoint."),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Path or URL of the query's progress. Default: a folder below _wirebook of the target.",
        ),
    ] = None,
    jars: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder with the jars of Spark's Kafka connector. Default: fetch them once."
        ),
    ] = None,
    table_format: FormatOption = None,
    iceberg_catalog: IcebergCatalogOption = None,
    iceberg_namespace: IcebergNamespaceOption = None,
    stage_below: StageOption = None,
    tables: TableSettingsOption = None,
    deduplicate: DeduplicateOption = None,
    confluent: ConfluentOption = False,
    metrics_address: MetricsOption = None,
    progress: BatchProgressOption = ProgressFormat.TEXT,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per batch, and one with the sum of all batches.")
    ] = False,
) -> int:
    """Land the messages of a Kafka or NATS JetStream endpoint: one typed table per definition, and dead letters with
    their reasons.

    Runs until it is stopped. Ctrl-C and SIGTERM finish the current batch; the next run continues where this one
    stopped. The catalogue is read again when it changes.

    Exit codes: 0 done or stopped by SIGTERM, 2 the endpoint cannot be read, or the tables cannot be written, 130
    stopped by Ctrl-C.
    """
    if available_now and once:
        raise typer.BadParameter("--available-now and --once are mutually exclusive", param_hint="--once")
    check_format(table_format)
    loaded = load_catalog_to_land(catalog, confluent=confluent)

    from wirebook.capture.endpoints import (  # noqa: PLC0415
        ReceivedEndpoint,
        check_secrets,
        credentials_of,
        read_secrets,
    )
    from wirebook.catalog.live import LiveCatalog  # noqa: PLC0415
    from wirebook.cli.progress import ProgressBar  # noqa: PLC0415
    from wirebook.landing.tables.settings import read_table_settings  # noqa: PLC0415
    from wirebook.landing.watch.lineage import Dataset, RunLineage  # noqa: PLC0415
    from wirebook.spark.checkpoints import check_checkpoint  # noqa: PLC0415
    from wirebook.spark.jars import KAFKA, class_path, locked_jars  # noqa: PLC0415 (half a second for all of these)
    from wirebook.spark.session import is_remote, is_submitted  # noqa: PLC0415
    from wirebook.spark.stream import StreamJob, checkpoint_of, run_stream  # noqa: PLC0415
    from wirebook.spark.stream_sources import ReadLimits  # noqa: PLC0415

    if checkpoint is not None:
        if is_remote():
            message = "over Spark Connect, the target keeps the progress of the stream"
            raise typer.BadParameter(message, param_hint="--checkpoint")
        check_checkpoint(checkpoint)
    stored = read_secrets(secrets)
    check_secrets(stored, loaded, secrets)
    received = ReceivedEndpoint(loaded, endpoint, pairs_of("--set", set_), credentials_of(endpoint, stored))
    source, limits = _source_and_limits(
        loaded,
        received,
        ReadLimits(starting or "", max_per_batch, min_per_batch, fail_on_data_loss),
        client_config,
        reads_all=available_now or once,
    )
    query = name or endpoint.rpartition("/")[2]
    if not NAME.fullmatch(query):
        raise typer.BadParameter(f"'{query}' may have only letters, digits, '.', '-' and '_'", param_hint="--name")
    table_settings = None if tables is None else read_table_settings(tables)  # read once, not in every batch
    job = StreamJob(
        source,
        to,
        query,
        None if is_remote() else checkpoint or checkpoint_of(to, query),
        limits,
        None if available_now or once else 0 if interval == "0" else seconds_of("--interval", interval),
        in_one_batch=once,
        options={
            "endpoint": endpoint,
            "table_format": table_format,
            "iceberg_catalog": iceberg_catalog,
            "iceberg_namespace": iceberg_namespace,
            "stage_below": stage_below,
            "tables": table_settings,
            "deduplicate": window_of(deduplicate),
        },
    )
    output = BatchOutput(progress, as_json=as_json)
    live = LiveCatalog(loaded, catalog, endpoint, output.note)
    settings = {}
    if received.protocol == "KAFKA" and not is_submitted():
        settings["spark.driver.extraClassPath"] = class_path(locked_jars(KAFKA), jars)
    datasets = [Dataset(*dataset) for dataset in source.datasets]
    lineage = RunLineage(f"stream.{query}", datasets, to, output.note, is_streaming=job.is_continuous)
    stop = Stop()

    def run() -> Report:
        with watching(address_of("--metrics-address", metrics_address), endpoint, lineage, output) as observers:
            with ProgressBar("starting Spark", quiet=progress is not ProgressFormat.TEXT) as bar:
                spark = bar.start_spark(settings)

            def started() -> None:
                stop.is_graceful = True
                output.note(f"streaming {source.description} to {to}")

            return run_stream(
                spark,
                job,
                live,
                stop,
                on_start=started,
                on_batch=observers.on_batch,
                on_connection=observers.on_connection,
                note=output.note,
            )

    return run_until_stopped(run, stop, output, to)


def _source_and_limits(
    catalog: Catalog, endpoint: ReceivedEndpoint, limits: ReadLimits, client_config: Path | None, *, reads_all: bool
) -> tuple[StreamSource, ReadLimits]:
    """Return the source to read, and its limits. In `limits`, `starting` is empty if --from is not set."""
    from wirebook.spark.kafka import client_settings  # noqa: PLC0415
    from wirebook.spark.stream_endpoints import stream_source  # noqa: PLC0415

    if endpoint.protocol == "NATS":
        for option, value in (("--client-config", client_config), ("--min-per-batch", limits.min_per_batch)):
            if value is not None:
                raise typer.BadParameter("it is supported for Kafka endpoints only", param_hint=option)
    try:
        return stream_source(catalog, endpoint, limits, client_settings(client_config), reads_all=reads_all)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--from") from None
