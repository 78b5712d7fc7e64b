"""python-qpid-proton: messages encoded and decoded by its own codec. It has no wheels, so it may be missing."""

from __future__ import annotations

from typing import Any

import pytest

from wirebook.bindings import AmqpMessage, Base64, KafkaRecord
from wirebook.convert.proton import message_of, record_of
from wirebook.problems import WirebookError

proton = pytest.importorskip("proton", reason="python-qpid-proton has no wheels; install the extra 'amqp' to run these")

UUID = "8a2f1e4c-0000-4000-8000-000000000001"
FULL = AmqpMessage(
    header={"durable": True, "priority": 7, "ttl": 1500, "first-acquirer": True, "delivery-count": 3},
    delivery_annotations={"x-d": "1"},
    message_annotations={"x-opt-key": "k", "x-n": 5},
    properties={
        "message-id": {"ulong": 5},
        "user-id": {"binary": "/w=="},
        "to": "/a",
        "subject": "s",
        "reply-to": "/r",
        "correlation-id": {"uuid": UUID},
        "content-type": "application/json",
        "content-encoding": "gzip",
        "absolute-expiry-time": {"timestamp": "2026-01-05T08:00:00.500Z"},
        "creation-time": {"timestamp": "2026-01-05T08:00:00.000Z"},
        "group-id": "g",
        "group-sequence": 9,
        "reply-to-group-id": "rg",
    },
    application_properties={
        "text": "ü",
        "yes": True,
        "n": -5,
        "f": 1.5,
        "none": None,
        "b": {"binary": "/w=="},
        "t": {"timestamp": "1969-12-31T23:59:59.999Z"},
        "u": {"uuid": UUID},
        "s": {"symbol": "x"},
        "ub": {"ubyte": 255},
        "ui": {"uint": 4294967295},
        "ul": {"ulong": 18446744073709551615},
        "i": {"int": -1},
        "fl": {"float": 0.5},
    },
    body=Base64(b"\xff\x00"),
)
TEXT = AmqpMessage(body="text", body_section="amqp-value")
BYTES = AmqpMessage(body=Base64(b"\xff"), body_section="amqp-value")


def coded(message: Any) -> Any:
    """The message after its bytes: written and read by proton."""
    decoded = proton.Message()
    decoded.decode(message.encode())
    return decoded


@pytest.mark.parametrize("wire", [FULL, TEXT, BYTES, AmqpMessage(), AmqpMessage(body="x")])
def test_message_survives_the_round_trip(wire: AmqpMessage) -> None:
    assert record_of(coded(message_of(wire))) == wire


def test_python_values_get_their_amqp_types() -> None:
    wire = AmqpMessage(
        application_properties={"l": {"long": 5}, "d": {"double": 1.5}, "s": {"string": "a"}, "b": {"boolean": True}},
        message_annotations={"x-l": {"list": [1, {"symbol": "a"}]}, "x-m": {"map": {"k": {"null": None}}}},
        body="x",
    )
    record = record_of(coded(message_of(wire)))
    assert record.application_properties == {"l": 5, "d": 1.5, "s": "a", "b": True}
    assert record.message_annotations == {"x-l": {"list": [1, {"symbol": "a"}]}, "x-m": {"map": {"k": None}}}


@pytest.mark.parametrize(
    "wire",
    [
        KafkaRecord(),
        AmqpMessage(footer={"x": 1}),
        AmqpMessage(application_properties={"x": {"decimal32": "1.5"}}),
        AmqpMessage(application_properties={"x": {"timestamp": "2026-12-31T23:59:60Z"}}),
    ],
)
def test_inexpressible_message_is_rejected(wire: Any) -> None:
    with pytest.raises(WirebookError) as error:
        message_of(wire)
    assert [problem.code for problem in error.value.problems] == ["not-expressible"]


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (AmqpMessage(properties={"nope": 1}), "unknown-slot"),
        (AmqpMessage(header={"priority": 300}), "wrong-type"),
        (AmqpMessage(properties={"to": 5}), "wrong-type"),
        (AmqpMessage(properties={"creation-time": "2026-01-01T00:00:00Z"}), "wrong-type"),
        (AmqpMessage(properties={"user-id": {"binary": "?"}}), "wrong-type"),
        (AmqpMessage(application_properties={"x": {"uuid": "x"}}), "wrong-type"),
        (AmqpMessage(application_properties={"x": [1]}), "wrong-type"),
        (AmqpMessage(application_properties={"x": 2**70}), "wrong-type"),
    ],
)
def test_invalid_section_is_rejected(wire: Any, code: str) -> None:
    with pytest.raises(WirebookError) as error:
        message_of(wire)
    assert [problem.code for problem in error.value.problems] == [code]


def test_time_out_of_range_is_rejected() -> None:
    with pytest.raises(WirebookError) as error:
        record_of(proton.Message(properties={"x": proton.timestamp(2**60)}))
    assert [problem.code for problem in error.value.problems] == ["not-expressible"]


def test_structured_body_is_rejected() -> None:
    with pytest.raises(WirebookError) as error:
        record_of(proton.Message(body={"a": 1}))
    assert [problem.code for problem in error.value.problems] == ["not-expressible"]
