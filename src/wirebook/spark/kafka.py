"""Read a Kafka endpoint: derive the options of Spark's Kafka source from the definition of the endpoint.

The definition states the addresses, the topic, the partition, and the type of authorization. A properties file in the
format of Kafka's own tools can override the definition. Credentials come from that file, a secrets file or the
environment, never from the definition.

Spec: endpoint/spec.md#protocoloptions; docs/how-to/kafka-stream.md; docs/decisions/0196
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from wirebook.capture.endpoints import ReceivedEndpoint
from wirebook.capture.kafka_security import (
    JAAS,
    MECHANISM,
    PROTOCOL,
    missing_credentials,
    require_login,
    security_of,
    without_scheme,
)
from wirebook.catalog import Catalog
from wirebook.definitions.compile.slots import BARE, family
from wirebook.problems import Problem, WirebookError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "EARLIEST",
    "LATEST",
    "KafkaSource",
    "client_settings",
    "kafka_source",
    "load_with_connector",
    "starting_offsets",
]

EARLIEST: Final = -2
LATEST: Final = -1

SECRET: Final = re.compile(r"password|jaas|secret|token|keystore\.key")
"""Matches the names of settings whose values are secret."""
OWN_SETTINGS: Final = {
    "auto.offset.reset": "use --from",
    "enable.auto.commit": "the checkpoint keeps the offsets",
    "interceptor.classes": "Spark does not support it",
    "key.deserializer": "keys are read as bytes",
    "value.deserializer": "values are read as bytes",
}
"""Settings that users cannot override, with the reason."""
DEFAULTS: Final = {
    "isolation.level": "read_committed",
    "max.partition.fetch.bytes": str(4 << 20),
    "max.poll.records": "5000",
}
"""Kafka's own defaults read uncommitted messages, too, and at most 1 MiB and 500 messages at once. Larger reads make
batches faster. Spark keeps up to 64 consumers of one partition each, which then hold at most about 256 MiB."""
LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""The Java login modules of the mechanisms with a user name and a password."""
RECORDS_PER_TASK: Final = 200_000
"""The maximum number of messages per task, so that cores do not wait for the one that reads a large partition."""


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """The topics to read. `settings` are those of Kafka's consumer; they may contain secrets and are never printed."""

    endpoint: str
    topics: tuple[str, ...]
    servers: str
    settings: Mapping[str, str] = field(repr=False)
    partition: int | None = None
    group: str | None = None
    offset_reset: str | None = None

    @property
    def secrets(self) -> list[str]:
        """The values that must not be printed."""
        return [value for name, value in self.settings.items() if SECRET.search(name)]

    def options(
        self, *, starting: str, max_per_batch: int | None, min_per_batch: int | None, fail_on_data_loss: bool
    ) -> dict[str, str]:
        """Return the options of Spark's Kafka source for a streaming query."""
        options = self._options(fail_on_data_loss) | {"startingOffsets": starting}
        if self.group and "group.id" not in self.settings:
            options["groupIdPrefix"] = self.group
        if self.partition is None:
            options["subscribe"] = ",".join(self.topics)
        else:
            options["assign"] = json.dumps({topic: [self.partition] for topic in self.topics})
        if max_per_batch:
            options["maxOffsetsPerTrigger"] = str(max_per_batch)
        if min_per_batch:
            options["minOffsetsPerTrigger"] = str(min_per_batch)
        return options

    def range_options(
        self, ranges: Mapping[tuple[str, int], tuple[int, int]], run: str, *, fail_on_data_loss: bool
    ) -> dict[str, str]:
        """Return the options of Spark's Kafka source for a batch. `ranges` maps topic and partition to the first
        offset and the offset after the last one. The batches of a `run` share a group id; otherwise each batch would
        need new consumers."""
        assigned, starting, ending = dict[str, list[int]](), dict[str, dict[str, int]](), dict[str, dict[str, int]]()
        for (topic, number), (first, end) in ranges.items():
            assigned.setdefault(topic, []).append(number)
            starting.setdefault(topic, {})[str(number)] = first
            ending.setdefault(topic, {})[str(number)] = end
        names = {"assign": assigned, "startingOffsets": starting, "endingOffsets": ending}
        group = {"kafka.group.id": f"{self.group or 'spark-kafka-relation'}-{run}"}
        return group | self._options(fail_on_data_loss) | {name: json.dumps(value) for name, value in names.items()}

    def _options(self, fail_on_data_loss: bool) -> dict[str, str]:
        options = {
            "includeHeaders": "true",
            "failOnDataLoss": str(fail_on_data_loss).lower(),
            "maxRecordsPerPartition": str(RECORDS_PER_TASK),
        }
        return options | {f"kafka.{name}": value for name, value in self.settings.items()}

    def first_offsets(
        self, position: Mapping[str, Any] | None, starting: str, partitions: Mapping[str, Iterable[int]]
    ) -> dict[str, dict[str, int]]:
        """Return where a stream starts in the `partitions` of each topic: at the position of an earlier run, if there
        is one, else at `starting`. New partitions start at their first message, new topics where a new stream would."""
        if position is None:
            position = {} if starting in ("earliest", "latest") else json.loads(starting)
        offsets, new_topic = {}, LATEST if starting == "latest" else EARLIEST
        for topic, numbers in partitions.items():
            known = position.get(topic)
            default, own = (new_topic, {}) if known is None else (EARLIEST, known)
            read = numbers if self.partition is None else [self.partition]
            offsets[topic] = {str(number): own.get(str(number), default) for number in read}
        return offsets


def load_with_connector(load: Callable[[], DataFrame]) -> DataFrame:
    """Load a DataFrame from Spark's Kafka source, and explain the error if the connector is missing.

    Raises: missing-jars
    """
    from pyspark.errors import AnalysisException  # noqa: PLC0415 (half a second)

    try:
        frame = load()
        _ = frame.schema  # over Spark Connect, the server looks for the connector only now
    except AnalysisException as error:
        if "kafka" not in str(error).casefold() or "data source" not in str(error).casefold():
            raise
        message = "this Spark session has no Kafka connector"
        hint = (
            "add the jars of `python -m wirebook.spark.jars FOLDER` to spark-submit, with --jars; for Spark Connect, "
            "to that of the server"
        )
        raise WirebookError(Problem("missing-jars", message, hint=hint)) from error
    return frame


# -- the definition -------------------------------------------------------------------------------------------------


def kafka_source(catalog: Catalog, endpoint: ReceivedEndpoint, overrides: Mapping[str, str]) -> KafkaSource:
    """Combine the definition of an endpoint, its credentials and settings of the Kafka client into a `KafkaSource`.

    Raises: not-receivable, incomplete-endpoint, bad-address, bad-option, missing-context, missing-credentials,
    bad-setting
    """
    if family(endpoint.protocol) != "KAFKA":
        message = (
            f"'{endpoint.xid}' has the protocol {endpoint.protocol}; only endpoints of Kafka, and of NATS with "
            "JetStream, can be streamed"
        )
        hint = "receive its messages with `wirebook capture`, and land them with `wirebook land --follow`"
        error = endpoint.problem("not-receivable", "protocol", message, ["KAFKA", "NATS"], endpoint.protocol)
        raise WirebookError(msgspec.structs.replace(error.problems[0], hint=hint))
    for name in overrides.keys() & OWN_SETTINGS.keys():
        raise WirebookError(Problem("bad-setting", f"'{name}' cannot be set: {OWN_SETTINGS[name]}"))
    addresses = (overrides.get("bootstrap.servers") or endpoint.bootstrap_servers()).split(",")
    servers = ",".join(map(without_scheme, addresses))
    security = _security(endpoint, addresses, overrides)
    return KafkaSource(
        endpoint.xid,
        _topics(catalog, endpoint),
        servers,
        {**DEFAULTS, **security, **overrides, "bootstrap.servers": servers},
        partition=endpoint.option("partition"),
        group=endpoint.option("consumergroup"),
        offset_reset=endpoint.option("autooffsetreset"),
    )


def _topics(catalog: Catalog, endpoint: ReceivedEndpoint) -> tuple[str, ...]:
    """Return the topic of the endpoint, or the constant topics of its messages.

    Raises: incomplete-endpoint, missing-context, bad-option
    """
    if topic := endpoint.option("topic"):
        return (topic,)
    definitions = catalog.definitions
    members = [definitions[xid] for xid in catalog.scopes[endpoint.xid].members or () if xid in definitions]
    named = {
        str(constraint.declared)
        for message in members
        for constraint in message.constraints
        if (constraint.slot.section, constraint.slot.name) == (BARE, "topic") and constraint.literal is not None
    }
    return tuple(sorted(named)) or (endpoint.required("topic", "its messages have no topics without placeholders"),)


# -- security -------------------------------------------------------------------------------------------------------


def _security(endpoint: ReceivedEndpoint, addresses: Iterable[str], overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of TLS and SASL, which the caller combines with `overrides`.

    Raises: bad-address, missing-credentials, bad-setting
    """
    protocol, mechanism = security_of(endpoint, addresses, overrides)
    settings = {PROTOCOL: protocol, **_certificates(endpoint)}
    if mechanism is None:
        return settings
    settings[MECHANISM] = mechanism
    if JAAS in overrides:
        return settings
    if mechanism not in LOGIN_MODULES:
        hint = f"set '{JAAS}' in the file of --client-config, as for Kafka's own tools"
        raise missing_credentials(endpoint, mechanism, hint)
    user, password = (re.sub(r'(["\\])', r"\\\1", text) for text in require_login(endpoint, mechanism))
    return settings | {JAAS: f'{LOGIN_MODULES[mechanism]} required username="{user}" password="{password}";'}


def _certificates(endpoint: ReceivedEndpoint) -> dict[str, str]:
    """The settings for the PEM files of the credentials.

    Raises: bad-setting
    """
    credentials, settings = endpoint.credentials, dict[str, str]()
    try:
        if credentials.cafile:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _read(credentials.cafile)}
        if credentials.certfile:
            key = _read(credentials.keyfile or credentials.certfile)
            chain = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": _read(credentials.certfile)}
            settings |= chain | {"ssl.keystore.key": key}
    except (OSError, UnicodeDecodeError) as error:
        message = f"the certificates of '{endpoint.xid}' cannot be read: {error}"
        raise WirebookError(Problem("bad-setting", message, xid=endpoint.xid)) from error
    return settings


def _read(file: str) -> str:
    return Path(file).read_text("utf-8")


# -- settings -------------------------------------------------------------------------------------------------------


def client_settings(file: Path | None) -> dict[str, str]:
    """Read settings of the Kafka client from a properties file. Errors never contain its content.

    Raises: unreadable-file, bad-setting
    """
    if file is None:
        return {}
    try:
        return dict(parse_properties(file.read_text("utf-8")))
    except OSError as error:
        message = f"'{file}' cannot be read: {error.strerror or error}"
        raise WirebookError(Problem("unreadable-file", message, file=str(file))) from error
    except ValueError:
        message = f"'{file}' is not a valid properties file in UTF-8: each line must be NAME=VALUE"
        raise WirebookError(Problem("bad-setting", message, file=str(file))) from None


def parse_properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a properties file. Comments, line continuations and escapes are parsed as in Java.

    Raises: ValueError
    """
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", text)
    for line in joined.splitlines():
        stripped = line.lstrip(" \t\f")
        if not stripped or stripped[0] in "#!":
            continue
        parts = re.match(r"((?:[^\\=:\s]|\\.)+)\s*[=:]?\s*(.*)", stripped)
        if parts is None:
            raise ValueError(line)
        yield _unescaped(parts[1]), _unescaped(parts[2])


def _unescaped(text: str) -> str:
    known = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else known.get(match[2], match[2])

    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(.))", character, text)


def starting_offsets(text: str, topics: Iterable[str]) -> str:
    """Validate a starting position: ``earliest``, ``latest``, or JSON that maps topics to partitions to offsets.

    Raises: ValueError, with what is wrong
    """
    if text in ("earliest", "latest"):
        return text
    expected = 'earliest, latest, or JSON such as {"orders": {"0": 42, "1": -2}} (-2: earliest, -1: latest)'
    try:
        offsets = json.loads(text)
    except ValueError:
        raise ValueError(f"'{text}' is not one of {expected}") from None
    if not isinstance(offsets, dict) or not all(isinstance(partitions, dict) for partitions in offsets.values()):
        raise ValueError(f"'{text}' is not one of {expected}")
    if {*offsets} != {*topics}:
        message = f"the offsets are for the topics {sorted(offsets)}, but the endpoint has the topics {sorted(topics)}"
        raise ValueError(message)
    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            if not partition.isdecimal() or type(offset) is not int or offset < -2:
                raise ValueError(f"'{topic}' has {json.dumps({partition: offset})}; expected a partition and an offset")
    return json.dumps(offsets)
