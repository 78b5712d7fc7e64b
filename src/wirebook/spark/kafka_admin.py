"""Ask a Kafka broker for its topics before reading them: Spark would try for three minutes, and print a Java trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from wirebook.problems import Problem, WirebookError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wirebook.spark.kafka import KafkaSource

__all__ = ["check_topics"]

TIMEOUT_SECONDS: Final = 15
ADMIN: Final = "org.apache.kafka.clients.admin.Admin"


def check_topics(spark: SparkSession, source: KafkaSource) -> dict[str, int]:
    """Check that the broker answers, accepts the credentials, and has the topics; returns their numbers of partitions.

    Has no effect, and returns nothing, where Java's classes cannot be called: on Spark Connect, or if the connector is
    not on the class path of the session itself.

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
    timeouts = {"default.api.timeout.ms": TIMEOUT_SECONDS * 1000, "request.timeout.ms": TIMEOUT_SECONDS * 1000 // 2}
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
    names = {name for name, _ in causes}
    name, message = causes[-1]
    code, hint = "broker-unreachable", None
    if "UnknownTopicOrPartitionException" in names:
        quoted = ", ".join(f"'{topic}'" for topic in source.topics)
        code, text = "unknown-topic", f"the broker at {source.servers} does not have the topic {quoted}"
        hint = "create it, or correct 'topic' in the protocoloptions of the endpoint"
    elif any("Timeout" in name for name in names):
        text = f"the broker at {source.servers} did not answer within {TIMEOUT_SECONDS} seconds"
        hint = f"check the addresses, and whether the broker needs TLS; security.protocol is {_protocol(source)}"
    elif any("Authentication" in name or "Authorization" in name or "Ssl" in name for name in names):
        text = f"the broker at {source.servers} refuses the connection ({_protocol(source)}): {message}"
        hint = "check the credentials and certificates"
    else:
        text = f"the broker at {source.servers} cannot be used: {re.sub(r'Exception$', '', name)}: {message}"
    return WirebookError(Problem(code, text, hint=hint))


def _protocol(source: KafkaSource) -> str:
    mechanism = source.settings.get("sasl.mechanism")
    return " with ".join(filter(None, (source.settings.get("security.protocol"), mechanism)))
