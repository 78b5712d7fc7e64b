"""Kafka by confluent-kafka (extra ``kafka``): from `confluent_kafka.Message`, and to arguments of `Producer.produce`.

outcome = catalog.match(record_of(consumer.poll()))
producer.produce(**arguments_of(catalog.build(...)))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebook.bindings import AnyMessage, KafkaRecord, bytes_of, from_bytes
from wirebook.convert.checks import milliseconds_of, not_expressible, of_protocol, required, time_of
from wirebook.problems import Problem, WirebookError

if TYPE_CHECKING:
    from confluent_kafka import Message

NAME = "confluent-kafka"


def record_of(message: Message) -> KafkaRecord:
    """Return the record of a message that was consumed or delivered.

    Raises: WirebookError (``malformed-record``) for an error event
    """
    error = message.error()
    if error is not None:
        text = f"the consumer returned an error event: {error}"
        raise WirebookError(Problem("malformed-record", text, actual=str(error)))
    type_, milliseconds = message.timestamp() or (0, 0)
    try:
        timestamp = time_of(milliseconds) if type_ else None
    except OverflowError:  # a broker may deliver a time outside the years 1 to 9999
        timestamp = None
    headers: Any = message.headers()
    return KafkaRecord(
        topic=message.topic(),
        partition=_natural(message.partition()),
        offset=_natural(message.offset()),
        timestamp=timestamp,
        key=from_bytes(_octets(message.key())),
        headers=[(name, from_bytes(_octets(value))) for name, value in headers] if headers else None,
        value=from_bytes(_octets(message.value())),
    )


def arguments_of(wire: AnyMessage) -> dict[str, Any]:
    """Return the arguments of `Producer.produce`. Raises: WirebookError (``not-expressible``, ``missing-required``)"""
    record = of_protocol(wire, NAME, KafkaRecord)
    arguments: dict[str, Any] = {"topic": required(NAME, "protocoloptions.topic", record.topic)}
    arguments |= {"key": bytes_of(record.key), "value": bytes_of(record.value)}
    if record.headers:
        arguments["headers"] = [(name, bytes_of(value)) for name, value in record.headers]
    if record.partition is not None:
        arguments["partition"] = record.partition
    if record.timestamp is not None:
        try:
            arguments["timestamp"] = milliseconds_of(record.timestamp)
        except ValueError as error:
            expected = "a time of the years 1 to 9999 without a leap second"
            raise not_expressible(NAME, "timestamp", expected, record.timestamp) from error
    return arguments


def _natural(number: int | None) -> int | None:
    return number if number is not None and number >= 0 else None


def _octets(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
