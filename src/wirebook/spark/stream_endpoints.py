"""Endpoints as sources of streams: `stream_source` for `wirebook stream`, and `read_stream` for queries of your own.

Spec: docs/how-to/kafka-stream.md, docs/how-to/jetstream.md; docs/decisions/0196, 0207
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from wirebook.capture.endpoints import ReceivedEndpoint, check_secrets, credentials_of, read_secrets
from wirebook.catalog import Catalog
from wirebook.landing.job import AnyCatalog, load_catalog
from wirebook.problems import Problem, WirebookError
from wirebook.problems.extras import library
from wirebook.spark.session import is_connect
from wirebook.spark.stream_sources import ReadLimits, StreamSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["read_stream", "stream_source"]


def read_stream(
    spark: SparkSession,
    endpoint: str,
    catalog: AnyCatalog,
    *,
    starting: str | None = None,
    max_per_batch: int | None = None,
    fail_on_data_loss: bool = True,
    settings: Mapping[str, str] | None = None,
    values: Mapping[str, str] | None = None,
    secrets: Path | None = None,
) -> DataFrame:
    """Read an endpoint of Kafka, or of NATS with JetStream, as a streaming DataFrame: for `match`, `land`, or a query
    of your own.

        stream = read_stream(spark, "/endpoints/ovens", "plants.xreg.json")
        query = land(stream, "plants.xreg.json", "tables/", identity=("file", "line"))

    For Kafka, the columns are those of Spark's Kafka source, including headers; the session needs the Kafka connector.
    For JetStream, they are ``value`` (a line of the capture format), and ``file`` and ``line`` (the stream and the
    sequence number), which identify a message. Only Spark's checkpoint records the progress of a query.

    `endpoint` is an XID. `starting` is where a new query starts: ``earliest``, ``latest``, offsets of partitions as
    JSON (Kafka), or a sequence number (JetStream). The default is that of the endpoint, else ``earliest``.
    `max_per_batch` and `settings` are for Kafka; `settings` of the Kafka client override those of the endpoint.
    `values` replace placeholders in the options of the endpoint. `secrets` is a file with credentials; those in the
    environment take precedence.

    Raises: WirebookError (unknown-endpoint, not-receivable, incomplete-endpoint, bad-setting, missing-credentials,
    broker-unreachable, unknown-topic, missing-jars, missing-extra, ...)
    """
    loaded, stored = load_catalog(catalog), read_secrets(secrets)
    check_secrets(stored, loaded, secrets)
    received = ReceivedEndpoint(loaded, endpoint, values or {}, credentials_of(endpoint, stored))
    if received.protocol == "NATS":
        _check_for_nats(spark, received, {"max_per_batch": max_per_batch, "settings": settings})
    limits = ReadLimits(starting or "", max_per_batch, None, fail_on_data_loss)
    try:
        source, limits = stream_source(loaded, received, limits, settings or {})
    except ValueError as error:
        raise WirebookError(Problem("bad-setting", f"starting: {error}", actual=starting)) from None
    if not is_connect(spark):  # the check needs the JVM of the driver
        source.check(spark)
    return source.frame(spark, limits)


def _check_for_nats(spark: SparkSession, endpoint: ReceivedEndpoint, of_kafka: Mapping[str, object]) -> None:
    if is_connect(spark):
        message = "over Spark Connect, a stream of JetStream is read by `wirebook stream` only"
        raise WirebookError(Problem("not-receivable", message, xid=endpoint.xid))
    for name, value in of_kafka.items():
        if value is not None:
            message = f"{name} is for endpoints of Kafka; '{endpoint.xid}' has the protocol {endpoint.protocol}"
            raise WirebookError(Problem("bad-setting", message, xid=endpoint.xid))


def stream_source(
    catalog: Catalog,
    endpoint: ReceivedEndpoint,
    limits: ReadLimits,
    settings: Mapping[str, str],
    *,
    reads_all: bool = False,
) -> tuple[StreamSource, ReadLimits]:
    """Return the source of an endpoint, and the limits with a valid `starting`. With `reads_all`, a JetStream source
    ends with the last message that the stream has now; Kafka needs no such limit. If `limits` has no
    `starting`, the default of the endpoint applies. `settings` are those of Kafka's client.

    Raises: ValueError (what is wrong with `starting`), missing-extra, and those of `jetstream_of` and `kafka_source`
    """
    if endpoint.protocol == "NATS":
        module = library("wirebook.spark.jetstream_endpoint")
        first = module.starting_sequence(limits.starting or "earliest")
        return module.jetstream_of(endpoint, ends=reads_all), replace(limits, starting=first)
    from wirebook.spark.kafka import kafka_source, starting_offsets  # noqa: PLC0415
    from wirebook.spark.kafka_stream import KafkaStream  # noqa: PLC0415

    source = kafka_source(catalog, endpoint, settings)
    first = starting_offsets(limits.starting or source.offset_reset or "earliest", source.topics)
    return KafkaStream(source), replace(limits, starting=first)
