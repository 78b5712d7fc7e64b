"""Writing XML: a written value is valid for both libraries and is read back as the same value."""

# ruff: noqa: E501 (schemas in one line)

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
import xmlschema
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tests.schema.test_xsd import COMPILED, ORDER, compiled, random_order
from wirebook.schema import REST, Payload
from wirebook.schema.xsd.compile import XsdReader

NAMESPACE = 'targetNamespace="urn:x" xmlns:t="urn:x"'
NODE = '<xs:complexType name="N"><xs:sequence>{}<xs:element name="n" type="N" minOccurs="0" maxOccurs="2"/></xs:sequence></xs:complexType>'


def schema_of(body: str, attributes: str = "") -> str:
    return f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" {attributes}>{body}</xs:schema>'


def el(name: str, type_: str = "int", more: str = "") -> str:
    return f'<xs:element name="{name}" type="xs:{type_}" {more}/>'


def in_root(content: str) -> str:
    return f'<xs:element name="r">{content}</xs:element>'


def root(content: str, attributes: str = "") -> str:
    return schema_of(in_root(content), attributes)


def sequence(*content: str, more: str = "") -> str:
    return f"<xs:complexType><xs:sequence {more}>{''.join(content)}</xs:sequence></xs:complexType>"


def choice(*content: str, more: str = "") -> str:
    return f"<xs:complexType><xs:choice {more}>{''.join(content)}</xs:choice></xs:complexType>"


TYPES = {
    "string": " a<&é ", "boolean": True, "int": -5, "decimal": Decimal("1.5"), "double": 1.5, "float": 0.25,
    "dateTime": datetime(2024, 5, 1, 12, 0, 0, 123456, UTC), "date": date(2024, 5, 1), "base64Binary": b"\xff\x00",
    "hexBinary": b"\xff\x00", "NMTOKENS": ["a", "b"], "integer": Decimal(10**37), "unsignedLong": Decimal(2**64 - 1),
    "duration": "P1DT2H", "time": "12:00:00", "anyURI": "https://example.com/a?b", "gYear": "2024", "byte": -128,
}  # fmt: skip
SUBSTITUTES = (
    '<xs:element name="h" type="xs:string" abstract="true"/><xs:element name="h1" type="xs:string" substitutionGroup="h"/>'
    '<xs:element name="h2" type="xs:string" substitutionGroup="h"/>'
)
HEAD, BASE = '<xs:element ref="h" maxOccurs="3"/>', '<xs:element name="b" type="t:B"/>'
DERIVED = (
    f'<xs:complexType name="B"><xs:sequence>{el("x")}</xs:sequence></xs:complexType><xs:complexType name="D">'
    f'<xs:complexContent><xs:extension base="t:B"><xs:sequence>{el("y")}</xs:sequence></xs:extension></xs:complexContent>'
    "</xs:complexType>"
)
MONEY = (
    '<xs:complexType><xs:simpleContent><xs:extension base="xs:int"><xs:attribute name="unit" type="xs:string"/>'
    "</xs:extension></xs:simpleContent></xs:complexType>"
)
ONE_OR_OTHER = sequence(
    f"<xs:choice><xs:sequence>{el('a')}{el('b')}</xs:sequence><xs:sequence>{el('c')}{el('d')}</xs:sequence></xs:choice>",
    el("z"),
)
ANY = sequence(el("a"), '<xs:any processContents="lax" minOccurs="0" maxOccurs="unbounded"/>')
WRITTEN: dict[str, tuple[str, Any, str]] = {
    "elements of the namespace": (
        root(sequence(el("a")), f'{NAMESPACE} elementFormDefault="qualified"'), {"a": 1}, '<r xmlns="urn:x"><a>1</a></r>'),
    "elements of none": (
        root(sequence(el("a")), NAMESPACE), {"a": 1}, '<ns0:r xmlns:ns0="urn:x"><a>1</a></ns0:r>'),
    "a qualified attribute": (
        root('<xs:complexType><xs:attribute name="k" type="xs:int" form="qualified"/></xs:complexType>', NAMESPACE),
        {"k": 1}, '<r xmlns="urn:x" xmlns:ns0="urn:x" ns0:k="1"/>'),
    "in the order of the schema": (root(sequence(el("z"), el("a"))), {"a": 1, "z": 2}, "<r><z>2</z><a>1</a></r>"),
    "in any order": (root(f"<xs:complexType><xs:all>{el('b')}{el('a')}</xs:all></xs:complexType>"), {"a": 1, "b": 2},
                     "<r><b>2</b><a>1</a></r>"),
    "one alternative": (root(choice(el("a"), el("b", "date"))), {"a": None, "b": date(2024, 5, 1)},
                        "<r><b>2024-05-01</b></r>"),
    "the selected alternative": (root(ONE_OR_OTHER), {"c": 1, "d": 2, "z": 3}, "<r><c>1</c><d>2</d><z>3</z></r>"),
    "alternatives again and again": (root(choice(el("a"), el("b"), more='maxOccurs="unbounded"')), {"a": [1, 2], "b": [3]},
                                     "<r><a>1</a><a>2</a><b>3</b></r>"),
    "a sequence again and again": (root(sequence(el("a"), el("b"), more='maxOccurs="unbounded"')), {"a": [1, 2], "b": [3, 4]},
                                   "<r><a>1</a><b>3</b><a>2</a><b>4</b></r>"),
    "a sequence with lists, again": (
        root(sequence(el("a"), el("b", more='maxOccurs="unbounded"'), more='maxOccurs="2"')), {"a": [1, 2], "b": [3, 4, 5]},
        "<r><a>1</a><b>3</b><b>4</b><a>2</a><b>5</b></r>"),
    "nothing, and nil": (
        root(sequence(el("a", more='nillable="true"'), el("b", more='minOccurs="0"'),
                      el("c", more='nillable="true" maxOccurs="9"'))), {"a": None, "b": None, "c": [None, 1]},
        '<r xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><a xsi:nil="true"/><c xsi:nil="true"/><c>1</c></r>'),
    "an attribute with the name of an element": (
        root(f'<xs:complexType><xs:sequence>{el("a")}</xs:sequence><xs:attribute name="a" type="xs:int"/></xs:complexType>'),
        {"a": 1, "@a": 2}, '<r a="2"><a>1</a></r>'),
    "text beside attributes": (root(MONEY), {"unit": "kg", "value": 5}, '<r unit="kg">5</r>'),
    "a type inside itself": (
        schema_of(NODE.format(el("x")) + '<xs:element name="r" type="N"/>'),
        {"x": 1, "n": [{"x": 2, "n": [{"x": 3}]}, {"x": 4}]},
        "<r><x>1</x><n><x>2</x><n><x>3</x></n></n><n><x>4</x></n></r>"),
    "a type inside itself, as XML text": (
        schema_of(NODE.format(el("x")) + '<xs:element name="r" type="N"/>'), {"x": 1, "n": ["<n><x>2</x></n>"]},
        "<r><x>1</x><n><x>2</x></n></r>"),
    "substitutes": (
        schema_of(SUBSTITUTES + in_root(sequence(HEAD, el("z")))),
        {"h1": ["a", "b"], "h2": ["c"], "z": 1}, "<r><h1>a</h1><h1>b</h1><h2>c</h2><z>1</z></r>"),
    "a derived type": (
        schema_of(DERIVED + in_root(sequence(BASE)), NAMESPACE),
        {"b": {"@xsi:type": "D", "x": 1, "y": 2}},
        '<ns0:r xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:ns0="urn:x"><b xsi:type="ns0:D"><x>1</x>'
        "<y>2</y></b></ns0:r>"),
    "any element": (root(ANY), {"a": 1, "<q>": ["<q>5</q>", "<q/>"]}, "<r><a>1</a><q>5</q><q/></r>"),
    "mixed content": (root('<xs:complexType mixed="true"><xs:sequence/></xs:complexType>'), "<r>hi</r>", "<r>hi</r>"),
    "nothing inside": (root("<xs:complexType/>"), {}, "<r/>"),
    "a simple element": (schema_of('<xs:element name="r" type="xs:string"/>'), "hello", "<r>hello</r>"),
    "a list": (root(sequence('<xs:element name="l"><xs:simpleType><xs:list itemType="xs:int"/></xs:simpleType></xs:element>')),
               {"l": [1, 2]}, "<r><l>1 2</l></r>"),
    "a union": (root(sequence('<xs:element name="u"><xs:simpleType><xs:union memberTypes="xs:int xs:date"/></xs:simpleType>'
                              "</xs:element>")), {"u": date(2024, 5, 1)}, "<r><u>2024-05-01</u></r>"),
    "a number of JSON": (root(sequence(el("a"), el("d", "decimal"))), {"a": 1.0, "d": 1e30},
                         f"<r><a>1</a><d>1{'0' * 30}</d></r>"),
}  # fmt: skip


def written(schema: XsdReader, value: Any) -> bytes:
    encoded = schema.encode(value)
    assert encoded.payload is not None, encoded.problems
    assert encoded.payload.content_type == "application/xml"
    assert encoded.payload.raw is not None
    return encoded.payload.raw


@pytest.mark.parametrize("name", WRITTEN)
def test_value_is_written_as_element(name: str) -> None:
    text, value, expected = WRITTEN[name]
    schema = compiled(text, "r")
    raw = written(schema, value)
    assert raw.decode().rpartition("?>")[2].strip() == expected
    xmlschema.XMLSchema11(text).validate(etree.fromstring(raw))
    reading = schema.read(Payload(raw))
    again = schema.read(Payload(written(schema, reading.value)))
    assert again.row == reading.row


@pytest.mark.parametrize("name", TYPES)
def test_simple_value_round_trips(name: str) -> None:
    schema = compiled(root(sequence(el("m", name))), "r")
    assert schema.read(Payload(written(schema, {"m": TYPES[name]}))).row == {"m": TYPES[name], REST: None}


@pytest.mark.parametrize(("value", "text"), [(float("inf"), "INF"), (float("-inf"), "-INF"), (float("nan"), "NaN")])
def test_non_finite_number_is_written_as_xsd_text(value: float, text: str) -> None:
    schema = compiled(root(sequence(el("m", "double"))), "r")
    assert f"<m>{text}</m>".encode() in written(schema, {"m": value})


REJECTED: dict[str, tuple[str, Any, str, str]] = {
    "no such member": (root(sequence(el("a"))), {"a": 1, "b": 2}, "payload#/b", "one of the members a"),
    "a member of xs:any": (root(ANY), {"a": 1, "q": 5}, "payload#/q", "children from xs:any are a list of XML texts"),
    "XML text that is none": (root(ANY), {"a": 1, "<q>": ["<q>"]}, "payload#/<q>/0", "XML text"),
    "an entity": (root(ANY), {"a": 1, "<q>": ["<!DOCTYPE q [<!ENTITY e 'x'>]><q>&e;</q>"]}, "payload#/<q>/0", "declaration"),
    "a number for a text": (root(sequence(el("a", "string"))), {"a": 5}, "payload#/a", "a value of the type 'string'"),
    "an object for a number": (root(sequence(el("a"))), {"a": {"x": 1}}, "payload#/a", "a value of the type 'int'"),
    "a list for one": (root(sequence(el("a"))), {"a": [1]}, "payload#/a", "a value of the type 'int'"),
    "a text that is no number": (root(sequence(el("a"))), {"a": "x"}, "payload#/a", "not a valid value"),
    "out of range": (root(sequence(el("a", "byte"))), {"a": 128}, "payload#/a", "not a valid value"),
    "a number for an object": (root(sequence(el("a"))), 5, "payload#", "an object"),
    "a number for mixed content": (root('<xs:complexType mixed="true"><xs:sequence/></xs:complexType>'), 5, "payload#", "mixed"),
    "nothing for what is asked for": (root(sequence(el("a"))), {"a": None}, "payload#", "Missing child"),
    "both alternatives": (root(choice(el("a"), el("b"))), {"a": 1, "b": 2}, "payload#/b", "not expected"),
    "too many": (root(sequence(el("a", more='maxOccurs="2"'))), {"a": [1, 2, 3]}, "payload#/a", "not expected"),
    "a character that XML has not": (root(sequence(el("a", "string"))), {"a": "\0"}, "payload#/a", "characters that XML allows"),
    "a required attribute": (
        root('<xs:complexType><xs:attribute name="k" type="xs:int" use="required"/></xs:complexType>'), {}, "payload#", "'k'"),
    "a type that is not derived": (
        schema_of(DERIVED + in_root(sequence(BASE)), NAMESPACE),
        {"b": {"@xsi:type": "No", "x": 1}}, "payload#/b", "derived from 'B'"),
    "an assertion": (
        root(f'<xs:complexType><xs:sequence>{el("a")}{el("b")}</xs:sequence><xs:assert test="a lt b"/></xs:complexType>'),
        {"a": 2, "b": 1}, "payload#", "assertion"),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_value_outside_schema_is_rejected_with_its_place(name: str) -> None:
    text, value, slot, message = REJECTED[name]
    encoded = compiled(text, "r", "XSD/1.1").encode(value)
    assert encoded.payload is None
    assert {problem.code for problem in encoded.problems} == {"payload-invalid"}
    assert encoded.problems[0].slot is not None
    assert encoded.problems[0].slot.startswith(slot)
    assert message in str(encoded.problems[0].message)


def test_value_nested_too_deeply_is_rejected() -> None:
    schema = compiled(schema_of(NODE.format(el("x")) + '<xs:element name="r" type="N"/>'), "r")
    value: dict[str, Any] = {"x": 1}
    for _ in range(300):
        value = {"x": 1, "n": [value]}
    assert {problem.code for problem in schema.encode(value).problems} == {"payload-too-deep"}


@pytest.mark.parametrize("schema", [compiled(ORDER), COMPILED["plain"]], ids=["with patterns", "without"])
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_read_value_is_written_back(schema: XsdReader, seed: int) -> None:
    """The row of a valid order is the row of the order written from its value."""
    reading = schema.read(Payload(random_order(Random(seed))))
    if reading.row is not None:
        assert schema.read(Payload(written(schema, reading.value))).row == reading.row


# -- what repeats as a whole ------------------------------------------------------------------------------------------

REPEATED = {
    "choice": (choice(el("a"), el("b", "date"), more='maxOccurs="unbounded"'), b"<r><a>1</a><b>2024-05-01</b><a>2</a></r>"),
    "sequence": (sequence(el("a"), el("b", "date"), more='maxOccurs="2"'),
                 b"<r><a>1</a><b>2024-05-01</b><a>2</a><b>2024-05-01</b></r>"),
    "optional": (sequence(el("a"), more='minOccurs="0"'), b"<r/>"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_content_model_keeps_all_children(name: str) -> None:
    content, payload = REPEATED[name]
    schema = compiled(root(content), "r")
    row = schema.read(Payload(payload)).row
    assert row is not None
    assert (row["a"], row[REST]) == (None if name == "optional" else [1, 2], None)
    assert [str(field.arrow_type) for field in schema.fields][:1] == [
        "int32" if name == "optional" else "list<item: int32>"
    ]
    assert schema.fields[0].nullable
    assert schema.read_column(pa.array([payload] * 20)).settled.all()


ORDER_OF_COLUMNS = """
import sys
from tests.schema.test_xsd_write import HEAD, SUBSTITUTES, in_root, schema_of, sequence
from tests.schema.test_xsd import compiled

more = "".join(f'<xs:element name="s{n}" type="xs:string" substitutionGroup="h"/>' for n in range(20))
print([field.name for field in compiled(schema_of(SUBSTITUTES + more + in_root(sequence(HEAD))), "r").fields])
"""


def test_column_order_is_the_same_in_every_process() -> None:
    """Many processes with different hash seeds write the same table."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", ORDER_OF_COLUMNS],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(outputs) == 1
    assert "s19" in outputs.pop()
