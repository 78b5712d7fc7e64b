"""python-qpid-proton: messages encoded and decoded by its own codec. It has no wheels, so it may be missing."""

from __future__ import annotations

from typing import Any

import pytest

from wirebook.bindings import AmqpMessage, Base64, KafkaRecord
from wirebook.bindings.capture import parse_record, to_line
from wirebook.convert.proton import message_of, record_of, record_of_bytes
from wirebook.problems import WirebookError

proton = pytest.importorskip("proton", reason="needs python-qpid-proton, which is built with a C compiler")

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


MAP = AmqpMessage(
    body='{"map":{"n":{"int":1},"l":{"list":[1.5,{"symbol":"s"}]},"x":{"double":"NaN"},"y":{"float":"-Infinity"}}}',
    body_section="amqp-value-json",
)
KEYS = AmqpMessage(body='{"map":[[{"ulong":1},"a"],["b",null]]}', body_section="amqp-value-json")
SEQUENCE = AmqpMessage(body='[[1,{"binary":"/w=="}]]', body_section="amqp-sequence-json")


@pytest.mark.parametrize(
    "wire", [FULL, TEXT, BYTES, MAP, KEYS, SEQUENCE, AmqpMessage(), AmqpMessage(body="x"), AmqpMessage(body="")]
)
def test_message_survives_the_round_trip(wire: AmqpMessage) -> None:
    assert record_of(coded(message_of(wire))) == wire
    assert parse_record(to_line(wire)) == (wire, (), parse_record(to_line(wire)).value)


@pytest.mark.parametrize("wire", [FULL, TEXT, BYTES, MAP, KEYS, SEQUENCE, AmqpMessage(body="x")])
def test_bytes_of_a_message_have_the_same_record(wire: AmqpMessage) -> None:
    assert record_of_bytes(message_of(wire).encode()) == wire


def test_bytes_keep_what_is_a_default() -> None:
    header = bytes.fromhex("005370 c0 08 05 42 5004 43 40 5200")
    assert record_of_bytes(header).header == {"durable": False, "priority": 4, "ttl": 0, "delivery-count": 0}


def test_descriptor_may_be_a_symbol() -> None:
    assert record_of_bytes(b"\x00\xa3\x10amqp:data:binary\xa0\x01x") == AmqpMessage(body="x")


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        ("78", "is not valid AMQP"),
        ("00536f a00178", "a section must be one of header, "),
        ("5301", "a section must be one of header, "),
        ("005375 a00178 005377 a10178", "amqp-value, data cannot be together"),
        ("005377 a10178 005377 a10178", "amqp-value cannot be together"),
        ("005374 c10100 005374 c10100", "application-properties is repeated"),
        ("005374 a10178", "must be a map"),
        ("005370 c00706404040404040", "header has 6 fields"),
        ("005377 a101ff", "is not valid AMQP"),
        ("005377 73ffffffff", "is not valid AMQP"),
    ],
)
def test_invalid_bytes_are_malformed(encoded: str, text: str) -> None:
    with pytest.raises(WirebookError, match=text) as error:
        record_of_bytes(bytes.fromhex(encoded))
    assert [problem.code for problem in error.value.problems] == ["malformed-record"]


def test_too_many_or_too_deep_values_are_malformed() -> None:
    many = b"\xd0" + (70_004).to_bytes(4, "big") + (70_000).to_bytes(4, "big") + b"@" * 70_000
    for value in (many, b"\x00\x40" * 5000 + b"\x40"):
        with pytest.raises(WirebookError, match="or has more than 65535 values"):
            record_of_bytes(b"\x00\x53\x77" + value)


@pytest.mark.parametrize(
    ("type_", "bits", "text"),
    [
        ("decimal32", "32800001", "1"),
        ("decimal32", "b200000f", "-1.5"),
        ("decimal32", "6cb8967f", "9999999"),
        ("decimal32", "6cb89680", "0"),
        ("decimal32", "78000000", "Infinity"),
        ("decimal32", "fc000000", "NaN"),
        ("decimal64", "31c0000000000000", "0"),
        ("decimal64", "31a38d7ea4c67fff", "99999999999999.9"),
        ("decimal64", "6c7386f26fc0ffff", "9999999999999999"),
        ("decimal128", "30400000000000000000000000000007", "7"),
        ("decimal128", "f8000000000000000000000000000000", "-Infinity"),
    ],
)
def test_decimal_number_is_text(type_: str, bits: str, text: str) -> None:
    raw = bytes.fromhex(bits)
    value = getattr(proton, type_)(raw if type_ == "decimal128" else int.from_bytes(raw, "big"))
    record = record_of(coded(proton.Message(properties={"x": value})))
    assert record.application_properties == {"x": {type_: text}}


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
        AmqpMessage(body="{", body_section="amqp-value-json"),
        AmqpMessage(body="[[1],[2]]", body_section="amqp-sequence-json"),
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


def test_value_without_a_type_of_the_format_is_rejected() -> None:
    with pytest.raises(WirebookError) as error:
        record_of(proton.Message(body=proton.Described(proton.symbol("x"), 1)))
    assert [problem.code for problem in error.value.problems] == ["not-expressible"]
