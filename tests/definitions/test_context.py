"""Placeholders from numbers and booleans: their canonical text."""

from __future__ import annotations

from typing import Any

import pytest

from wirebook.catalog import Catalog
from wirebook.problems import WirebookError

XID = "/messagegroups/g/messages/m"


def catalog() -> Catalog:
    options = {"subject": "orders.{order}"}
    message = {"protocol": "NATS", "protocoloptions": options}
    return Catalog.load({"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": message}}}})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (-7, "-7"),
        (2**64, "18446744073709551616"),
        (True, "true"),
        (False, "false"),
        (1.0, "1"),
        (-0.0, "0"),
        (1e20, "100000000000000000000"),
        ("1_50", "1_50"),
    ],
)
def test_number_or_boolean_fills_a_placeholder_by_its_canonical_text(value: Any, text: str) -> None:
    built: Any = catalog().build(XID, {"order": value})
    assert built.subject == f"orders.{text}"
    assert catalog().match(built).bindings == {"order": text}


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.5, "1.5"), (1e-6, "0.000001"), (1e-7, "1e-7"), (1e21, "1e+21"), (0.1 + 0.2, "0.30000000000000004")],
)
def test_float_has_the_text_of_rfc_8785(value: float, text: str) -> None:
    message = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"subject": {"type": "string", "value": "{n}"}}}
    loaded = Catalog.load({"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": message}}}})
    attributes = {"source": "/s", "type": "t"}
    built = loaded.build(XID, {"n": value}, attributes=attributes, protocol="KAFKA")
    assert loaded.match(built).bindings == {"n": text}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, "null"),
        ({}, "an object"),
        ([1], "an array"),
        (b"x", "bytes"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        pytest.param(1 << 20_000, "an integer of more than 4096 bits", id="large"),
    ],
)
def test_value_without_a_text_is_rejected(value: Any, found: str) -> None:
    with pytest.raises(WirebookError) as caught:
        catalog().build(XID, {"order": value})
    (problem,) = caught.value.problems
    assert problem.code == "missing-context"
    assert problem.message == (
        f"the placeholder 'order' of protocoloptions.subject must be a string, a number or a boolean; got {found}"
    )
