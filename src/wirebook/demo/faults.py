"""Faults injected into the traffic: one row per fault, with the expected outcome of the message."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from wirebook.demo.message_types import BY_NAME, MESSAGE_TYPES, MessageType
from wirebook.demo.records import (
    Record,
    attribute,
    bytes_of,
    data_of,
    payload_of,
    set_attribute,
    set_bytes,
    set_data,
    set_pair,
    set_payload,
)


@dataclass(frozen=True)
class Fault:
    """A fault: the `outcome` of a message with it, and a `code` among its problems.

    Shape: `inject` changes the record in place. It returns bytes if the line is to be cut, and False if the fault does
    not apply. Among the faults of a message type, one is chosen by `weight`.
    """

    name: str
    outcome: str
    code: str
    message_types: tuple[str, ...]
    weight: int
    inject: Callable[[Record, MessageType, Random], bool | bytes | None]


EXTENSIONS: Final = {"alarm": "severity", "assigned": "wave", "forecast": "model"}


# -- metadata -------------------------------------------------------------------------------------------------------


def _misspell_type(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    """Drop a letter: ``kestrel.fleet.postion``."""
    text = attribute(record, "type")
    cut = len(text) - 3 - random.randrange(3)
    set_attribute(record, "type", text[:cut] + text[cut + 1 :])


def _misroute(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    """Change a segment of the topic."""
    member = "subject" if record["protocol"] == "NATS" else "target" if record["protocol"] == "HTTP" else "topic"
    separator = "." if member == "subject" else "/"
    first, *rest = record[member].split(separator)
    if not first:
        record[member] = separator.join(["", "test", *rest[1:]])
    elif random.random() < 0.5:
        record[member] = separator.join([f"{first}-test", *rest])
    else:
        record[member] = separator.join([first, *rest, "v2"])


def _contradict(record: Record, message_type: MessageType, random: Random) -> None:
    """Make the subject contradict the topic, the key or the source."""
    if message_type.name == "charger":
        set_pair(record, "user_properties", "hub", "depot-9")
    else:
        set_attribute(record, "subject", f"{attribute(record, 'subject')}{random.randrange(10)}")


def _drop_mandatory(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    set_attribute(record, random.choice(("id", "source")), None)


def _old_specversion(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    set_attribute(record, "specversion", "0.3")


def _drop_extension(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    set_attribute(record, EXTENSIONS[message_type.name], None)


def _misspell_header(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    set_pair(record, "headers", "movement", {"received": "recieved", "issued": "Issued"}[message_type.name])


def _drop_content_type(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    if record["protocol"] == "KAFKA":
        set_pair(record, "headers", "content-type", None)
    else:
        del record["properties"]["content_type"]


def _drop_signature(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    set_pair(record, "headers", "X-Kestrel-Signature", None)


def _other_format(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    set_pair(record, "headers", "content-type", "application/cloudevents+protobuf")


def _unknown_endpoint(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    record["endpoint"] += "-old"


# -- payloads -------------------------------------------------------------------------------------------------------

GONE: Final = object()
# For each message type: a path in the payload, and a value there that violates the schema (GONE removes the member).
VIOLATIONS: Final[dict[str, tuple[tuple[tuple[str | int, ...], Any], ...]]] = {
    "placed": (
        (("total",), GONE),
        (("lines", 0, "quantity"), 0),
        (("total", "amount"), "12,90"),
        (("coupon",), "SPRING5"),
        (("hub",), "southgate"),
    ),
    "packed": ((("crates",), []), (("crates", 0, "weight"), 250), (("packer",), None)),
    "cancelled": ((("reason",), "other"),),
    "customer_changed": ((("consents", "newsletter"), "yes"), (("since",), GONE)),
    "received": ((("quantity",), 0), (("batch",), GONE)),
    "issued": ((("left",), -3), (("reason",), "lost"), (("quantity",), "2")),
    "settled": ((("payments",), []), (("fee", "amount"), -25)),
    "position": (
        (("battery",), 131),
        (("lat",), 954.2),
        (("odometer",), 41_000_512),
        (("at",), GONE),
        (("ignition",), True),
    ),
    "delivered": ((("attempt",), 9), (("deposit",), 4.5), (("result",), "thrown-over-fence")),
    "assigned": ((("stops",), []), (("tour",), "12"), (("stops", 0, "eta"), "soon")),
    "temperature": ((("celsius",), 999.9), (("door",), "ajar"), (("celsius",), "-18.4"), (("door",), GONE)),
    "alarm": ((("code",), "on-fire"),),
    "metered": ((("imported",), 3.25), (("quality",), GONE), (("counter",), "12.5"), (("phases",), [])),
    "forecast": ((("points",), []), (("points", 0, "kilowatts"), -1)),
    "charger": ((("power",), -1.0), (("state",), "unknown"), (("energy",), GONE)),
}


def _violate(record: Record, message_type: MessageType, random: Random) -> bool:
    """Make one member of the payload violate its schema."""
    if payload_of(record) is None:
        return False
    path, value = random.choice(VIOLATIONS[message_type.name])
    data = data_of(record)
    holder = data
    for step in path[:-1]:
        holder = holder[step]
    if value is GONE:
        del holder[path[-1]]
    else:
        holder[path[-1]] = copy.copy(value)
    set_data(record, data)
    return True


def _cut_payload(record: Record, message_type: MessageType, random: Random) -> bool:  # noqa: ARG001
    text = payload_of(record)
    if text is None:
        return False
    set_payload(record, text[: random.randrange(len(text) // 4, len(text) - 1)])
    return True


def _not_a_number(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    """Sensor firmware prints NaN when it has no reading."""
    set_payload(record, '{"celsius":NaN,"door":"closed"}')


def _latin_1(record: Record, message_type: MessageType, random: Random) -> bool:  # noqa: ARG001
    """Encode a name with an umlaut in Latin-1."""
    text = payload_of(record)
    if text is None or text.isascii():
        return False
    set_bytes(record, text.encode("latin-1"))
    return True


def _cut_avro(record: Record, message_type: MessageType, random: Random) -> bool:  # noqa: ARG001
    set_bytes(record, bytes_of(record)[: random.randrange(4, 40)])
    return True


def _clear(record: Record, message_type: MessageType, random: Random) -> None:  # noqa: ARG001
    """Empty the payload. In MQTT this clears a retained message, but the definition requires data."""
    set_payload(record, "")


def _cut_line(record: Record, message_type: MessageType, random: Random) -> bytes:  # noqa: ARG001
    """Cut the line, as if the recorder lost its end (`inject` cuts it)."""
    return b"cut"


# -- the table ------------------------------------------------------------------------------------------------------


def _names(*without: str, when: Callable[[MessageType], bool] = lambda message_type: True) -> tuple[str, ...]:  # noqa: ARG005
    return tuple(
        message_type.name for message_type in MESSAGE_TYPES if when(message_type) and message_type.name not in without
    )


_EVENTS: Final = _names(when=lambda message_type: message_type.is_event)
_BINARY_EVENTS: Final = _names(when=lambda message_type: message_type.is_event and message_type.mode == "binary")
_TWICE_SAID: Final = (*_names("settled", when=lambda message_type: message_type.is_event), "charger")
_KAFKA: Final = _names(when=lambda message_type: message_type.file.startswith("kafka"))
_TEMPLATED: Final = _names(*_KAFKA, "delivered", "alarm")

FAULTS: Final = (
    Fault("misspelt-type", "unexpected", "mismatch", _EVENTS, 14, _misspell_type),
    Fault("wrong-topic", "unexpected", "mismatch", _KAFKA, 6, _misroute),
    Fault("wrong-segment", "unexpected", "template-mismatch", _TEMPLATED, 10, _misroute),
    Fault("contradiction", "unexpected", "placeholder-conflict", _TWICE_SAID, 12, _contradict),
    Fault("missing-mandatory", "malformed", "malformed-cloudevent", _BINARY_EVENTS, 9, _drop_mandatory),
    Fault("old-specversion", "malformed", "malformed-cloudevent", _BINARY_EVENTS, 2, _old_specversion),
    Fault("missing-extension", "unexpected", "missing-required", tuple(EXTENSIONS), 3, _drop_extension),
    Fault("misspelt-header", "unexpected", "mismatch", ("received", "issued"), 6, _misspell_header),
    Fault("no-content-type", "unexpected", "missing-value", ("received", "issued", "charger"), 5, _drop_content_type),
    Fault("missing-signature", "unexpected", "missing-required", ("settled",), 2, _drop_signature),
    Fault("other-format", "unsupported", "unsupported-event-format", ("forecast",), 2, _other_format),
    Fault("unknown-endpoint", "malformed", "unknown-endpoint", _names(), 2, _unknown_endpoint),
    Fault("schema-violation", "invalid-payload", "payload-invalid", tuple(VIOLATIONS), 42, _violate),
    Fault("cut-payload", "undecodable", "payload-syntax", _names("captured", "forecast"), 8, _cut_payload),
    Fault("not-a-number", "undecodable", "payload-syntax", ("temperature",), 3, _not_a_number),
    Fault("latin-1", "undecodable", "payload-syntax", ("placed", "customer_changed", "delivered"), 2, _latin_1),
    Fault("cut-avro", "undecodable", "payload-syntax", ("captured",), 3, _cut_avro),
    Fault("no-data", "invalid-payload", "missing-data", ("position", "temperature"), 4, _clear),
    Fault("cut-line", "malformed", "malformed-record", _names("captured"), 4, _cut_line),
)  # fmt: skip


def _faults_of(name: str) -> tuple[tuple[Fault, ...], tuple[int, ...]]:
    """Return the faults that a message type can have, and their weights. Weights are relative within a type, so rare
    types have faults as often as others."""
    fitting = tuple(fault for fault in FAULTS if name in fault.message_types)
    return fitting, tuple(fault.weight for fault in fitting)


FAULTS_OF: Final = {name: _faults_of(name) for name in BY_NAME}
SHARE: Final = 0.025


def choose_fault(message_type: MessageType, random: Random) -> Fault | None:
    """Choose the fault of the next message of a type; None for most messages."""
    if random.random() >= SHARE:
        return None
    faults, weights = FAULTS_OF[message_type.name]
    return random.choices(faults, weights)[0]


def inject(
    fault: Fault, line: bytes, record: Record, message_type: MessageType, random: Random
) -> bytes | Record | None:
    """Return the message with the fault: a record, or a damaged line. Return None if the fault does not apply."""
    done = fault.inject(record, message_type, random)
    if done is False:
        return None
    return line[: random.randrange(20, len(line) - 1)] if isinstance(done, bytes) else record
