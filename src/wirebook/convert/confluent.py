"""Kafka by confluent-kafka (extra ``kafka``): `confluent_kafka.Message`, and what `Producer.produce` takes.

outcome = catalog.match(record_of(consumer.poll()))
producer.produce(**arguments_of(catalog.build(...)))
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from wirebook.bindings import AnyMessage, KafkaRecord, bytes_of, from_bytes
from wirebook.convert.refusal import needed, refuse, require
from wirebook.problems import Problem, WirebookError

if TYPE_CHECKING:
    from confluent_kafka import Message

NAME = "confluent-kafka"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def record_of(message: Message) -> KafkaRecord:
    """The record that was consumed, or whose delivery is reported.

    Raises: WirebookError (``malformed-record``) for an error event, which is no message.
    """
    error = message.error()
    if error is not None:
        text = f"the consumer gave an error event: {error}"
        raise WirebookError(Problem("malformed-record", text, actual=str(error)))
    kind, milliseconds = message.timestamp() or (0, 0)
    headers: Any = message.headers()
    return KafkaRecord(
        topic=message.topic(),
        partition=_natural(message.partition()),
        offset=_natural(message.offset()),
        timestamp=_time_of(milliseconds) if kind else None,
        key=from_bytes(_octets(message.key())),
        headers=[(name, from_bytes(_octets(value))) for name, value in headers] if headers else None,
        value=from_bytes(_octets(message.value())),
    )


def arguments_of(wire: AnyMessage) -> dict[str, Any]:
    """What `Producer.produce` takes. Raises: WirebookError (``not-expressible``, ``missing-required``)."""
    require(wire, NAME, KafkaRecord)
    assert isinstance(wire, KafkaRecord)
    found: dict[str, Any] = {"topic": needed(NAME, "protocoloptions.topic", wire.topic)}
    found |= {"key": bytes_of(wire.key), "value": bytes_of(wire.value)}
    if wire.headers:
        found["headers"] = [(name, bytes_of(value)) for name, value in wire.headers]
    if wire.partition is not None:
        found["partition"] = wire.partition
    if wire.timestamp is not None:
        found["timestamp"] = _milliseconds(wire.timestamp)
    return found


def _natural(number: int | None) -> int | None:
    return number if number is not None and number >= 0 else None


def _octets(value: Any) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _time_of(milliseconds: int) -> str | None:
    """The time as text; None beyond the years 1 to 9999, which a broker may pass on."""
    try:
        moment = _EPOCH + milliseconds * _MILLISECOND
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds(text: str) -> int:
    try:
        return (datetime.fromisoformat(text.upper()) - _EPOCH) // _MILLISECOND
    except ValueError as error:
        raise refuse(NAME, "timestamp", "a time of the years 1 to 9999, without leap second", text) from error
