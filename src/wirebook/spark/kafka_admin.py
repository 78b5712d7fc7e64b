"""Check the topics of a Kafka broker before Spark reads them. If they are missing, or the broker is unreachable, Spark
itself would retry for three minutes and print a Java stack trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from wirebook.capture.kafka_broker import ANSWER_SECONDS, BrokerErrors
from wirebook.problems import WirebookError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirebook.spark.kafka import KafkaSource

__all__ = ["check_topics"]


def check_topics(spark: SparkSession, source: KafkaSource) -> dict[str, int]:
    """Check that the broker answers, accepts the credentials, and has the topics. Return their numbers of partitions.

    Checks nothing, and returns an empty dict, if the connector is not on the class path of the session itself. Over
    Spark Connect there is no JVM to call, and `wirebook.capture.kafka_offsets` asks the broker instead.

    Raises: broker-unreachable, unknown-topic
    """
    from py4j.java_gateway import JavaClass  # noqa: PLC0415 (comes with PySpark)
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415

    try:
        jvm: Any = spark._jvm
        admin_class = jvm.org.apache.kafka.clients.admin.Admin
    except AttributeError:
        return {}
    if not isinstance(admin_class, JavaClass):
        return {}
    properties = jvm.java.util.Properties()
    timeouts = {"default.api.timeout.ms": ANSWER_SECONDS * 1000, "request.timeout.ms": ANSWER_SECONDS * 1000 // 2}
    for name, value in {**source.settings, **timeouts}.items():
        properties.setProperty(name, str(value))
    topics = jvm.java.util.ArrayList()
    for topic in source.topics:
        topics.add(topic)
    try:
        admin = admin_class.create(properties)
        try:
            described = admin.describeTopics(topics).allTopicNames().get()
            return {topic: described.get(topic).partitions().size() for topic in source.topics}
        finally:
            admin.close(jvm.java.time.Duration.ofSeconds(1))
    except Py4JJavaError as error:
        raise _problem(source, list(_causes(error.java_exception))) from error


def _causes(exception: Any) -> Iterator[tuple[str, str]]:
    """The short class names and messages of a Java exception and its causes."""
    while exception is not None:
        yield exception.getClass().getSimpleName(), str(exception.getMessage() or "")
        exception = exception.getCause()


def _problem(source: KafkaSource, causes: list[tuple[str, str]]) -> WirebookError:
    errors, names = BrokerErrors(source.topics, source.settings), {name for name, _ in causes}
    name, message = causes[-1]
    if "UnknownTopicOrPartitionException" in names:
        return errors.unknown_topic()
    if any("Timeout" in name for name in names):
        return errors.no_answer()
    if any("Authentication" in name or "Authorization" in name or "Ssl" in name for name in names):
        return errors.refused(message)
    return errors.unusable(f"{name.removesuffix('Exception')}: {message}")
