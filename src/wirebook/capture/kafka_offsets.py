"""Ask a Kafka broker for the offsets of its topics with confluent-kafka, without Java.

Spark Connect clients use this to plan the batches of a stream. Spark then reads the messages with Kafka's Java client,
so the settings are those of the Java client, which are translated for confluent-kafka (librdkafka).

Spec: docs/how-to/kafka-stream.md; docs/decisions/0226
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from wirebook.capture.kafka_broker import ANSWER_SECONDS, BrokerErrors
from wirebook.capture.kafka_security import PASSWORD_MECHANISMS
from wirebook.problems import Problem, WirebookError

__all__ = ["KafkaOffsets", "librdkafka_settings"]

POLL_SECONDS: Final = 0.1
LOGIN: Final = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))""")
"""A user name or password in the setting `sasl.jaas.config`."""
REFUSALS: Final = {
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}
SAME_SETTINGS: Final = {
    "bootstrap.servers": "bootstrap.servers",
    "client.id": "client.id",
    "security.protocol": "security.protocol",
    "ssl.cipher.suites": "ssl.cipher.suites",
    "ssl.key.password": "ssl.key.password",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
"""The settings of Kafka's Java client that librdkafka also has, with its names for them."""


class KafkaOffsets:
    """Asks a broker for the offsets of topics. It keeps its connection.

    Raises: bad-setting
    """

    def __init__(self, topics: Sequence[str], settings: Mapping[str, str]) -> None:
        self._topics, self._errors = topics, BrokerErrors(topics, settings)
        self._refusal: KafkaError | None = None
        self._is_down = False
        """Whether none of the brokers can be reached."""
        is_committed = settings.get("isolation.level") != "read_uncommitted"
        self._isolation = IsolationLevel.READ_COMMITTED if is_committed else IsolationLevel.READ_UNCOMMITTED
        own = {"error_cb": self._note, "log_level": 0}  # librdkafka would print what `error_cb` reports
        try:
            self._client = AdminClient(librdkafka_settings(settings) | own)
        except KafkaException as error:  # for example, a certificate file that cannot be read
            message = f"the Kafka client cannot start: {error.args[0].str()}"
            raise WirebookError(Problem("bad-setting", message)) from None

    def ask(self) -> dict[str, dict[int, tuple[int, int]]]:
        """Return the first offset that the broker has and the offset after the last one, by topic and partition.

        Unless uncommitted messages are read, the last offset is the one before the first open transaction.

        Raises: broker-unreachable, unknown-topic
        """
        self._refusal, self._is_down = None, False
        try:
            described = self._client.describe_topics(TopicCollection([*self._topics]), request_timeout=ANSWER_SECONDS)
            partitions = {
                topic: [partition.id for partition in self._result(future).partitions]
                for topic, future in described.items()
            }
            places = [TopicPartition(topic, number) for topic, numbers in partitions.items() for number in numbers]
            specs = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
            first, end = (self._offsets(places, spec) for spec in specs)
        except KafkaException as error:
            raise self._explained(error.args[0]) from None
        return {
            topic: {number: (first[topic, number], end[topic, number]) for number in numbers}
            for topic, numbers in partitions.items()
        }

    def _offsets(self, places: Sequence[TopicPartition], spec: OffsetSpec) -> dict[tuple[str, int], int]:
        asked = self._client.list_offsets(
            dict.fromkeys(places, spec), isolation_level=self._isolation, request_timeout=ANSWER_SECONDS
        )
        return {(place.topic, place.partition): self._result(future).offset for place, future in asked.items()}

    def _result(self, future: Future[Any]) -> Any:
        """Wait for an answer, unless all brokers refuse the connection. Raises: KafkaException"""
        while not future.done():
            wait([future], POLL_SECONDS)
            self._client.poll(0)  # calls `_note`
            if self._refusal is not None and self._is_down:
                raise KafkaException(self._refusal)
        return future.result()

    def _note(self, error: KafkaError) -> None:
        if error.code() in REFUSALS:
            self._refusal = error
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._is_down = True

    def _explained(self, error: KafkaError) -> WirebookError:
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return self._errors.unknown_topic()
        if error.code() in REFUSALS:
            return self._errors.refused(error.str())
        if error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError.REQUEST_TIMED_OUT):
            return self._errors.no_answer()
        return self._errors.unusable(error.str())


def librdkafka_settings(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the addresses and the settings of TLS and SASL for librdkafka. Other settings only concern reading.

    Raises: bad-setting, for a setting that only Java understands
    """
    translated = {own: settings[name] for name, own in SAME_SETTINGS.items() if name in settings}
    if "ssl.endpoint.identification.algorithm" in settings:
        algorithm = settings["ssl.endpoint.identification.algorithm"]
        translated["ssl.endpoint.identification.algorithm"] = algorithm or "none"
    return translated | _stores(settings) | _login(settings)


def _stores(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for certificate and key files."""
    files = dict[str, str]()
    if trusted := settings.get("ssl.truststore.location"):
        _check("ssl.truststore.type", settings.get("ssl.truststore.type", "JKS"), ("PEM",))
        files["ssl.ca.location"] = trusted
    if own := settings.get("ssl.keystore.location"):
        kind = _check("ssl.keystore.type", settings.get("ssl.keystore.type", "JKS"), ("PEM", "PKCS12"))
        if kind == "PEM":
            return files | {"ssl.certificate.location": own, "ssl.key.location": own}
        files |= {"ssl.keystore.location": own, "ssl.keystore.password": settings.get("ssl.keystore.password", "")}
    return files


def _login(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the SASL mechanism, the user name and the password."""
    if not settings.get("security.protocol", "").startswith("SASL_"):
        return {}
    mechanism = _check("sasl.mechanism", settings.get("sasl.mechanism", "GSSAPI"), PASSWORD_MECHANISMS)
    named = {
        name: re.sub(r"\\(.)", r"\1", quoted) or plain
        for name, quoted, plain in LOGIN.findall(settings.get("sasl.jaas.config", ""))
    }
    if named.keys() != {"username", "password"}:
        message = "'sasl.jaas.config' has no user name and password that a client of Spark Connect can read"
        hint = 'write username="..." password="..." into it, or name them as credentials of the endpoint'
        raise WirebookError(Problem("bad-setting", message, hint=hint))
    return {"sasl.mechanism": mechanism, **{f"sasl.{name}": text for name, text in named.items()}}


def _check(name: str, value: str, allowed: Sequence[str]) -> str:
    """Raises: bad-setting"""
    if (upper := value.upper()) in allowed:
        return upper
    message = (
        f"'{name}' must be one of {', '.join(allowed)} over Spark Connect, whose client has no Java; got '{value}'"
    )
    hint = "unset SPARK_REMOTE to run Spark on this machine, or run the program by spark-submit"
    raise WirebookError(Problem("bad-setting", message, expected=allowed, actual=value, hint=hint))
