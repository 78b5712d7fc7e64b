# ruff: noqa: E501  (tables of XML)
"""XML Schema: columns, the rest, problems of invalid payloads, and hostile schemas."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema.payloads import damaged
from tests.schema.test_columns import check
from wirebook.schema import REST, CompileOptions, Payload, PayloadLimits, SchemaIndex, Unsupported, compile_schema
from wirebook.schema.xsd.compile import XsdReader
from wirebook.schema.xsd.validate import ElementValidator
from wirebook.schema.xsd.xml_text import parse_xml

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


def schema_of(body: str, attributes: str = "") -> str:
    return f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" {attributes}>{body}</xs:schema>'


def compiled(text: str, part: str | None = None, format: str = "XSD/1.1", **options: Any) -> XsdReader:
    schema = compile_schema(format, text, part, **options)
    assert isinstance(schema, XsdReader), schema.problems
    return schema


ORDER = schema_of(
    """
    <xs:simpleType name="Code"><xs:restriction base="xs:token"><xs:pattern value="[A-Z]{2}[0-9]+"/></xs:restriction>
    </xs:simpleType>
    <xs:simpleType name="Colour"><xs:restriction base="xs:string">
      <xs:enumeration value="red"/><xs:enumeration value="green"/></xs:restriction></xs:simpleType>
    <xs:complexType name="Line"><xs:sequence>
      <xs:element name="sku" type="o:Code"/>
      <xs:element name="count" type="xs:int" default="1"/>
      <xs:element name="price" minOccurs="0"><xs:complexType><xs:simpleContent><xs:extension base="o:Money">
        <xs:attribute name="currency" type="xs:string" default="EUR"/></xs:extension></xs:simpleContent></xs:complexType>
      </xs:element></xs:sequence></xs:complexType>
    <xs:simpleType name="Money"><xs:restriction base="xs:decimal"><xs:totalDigits value="9"/><xs:fractionDigits value="2"/>
    </xs:restriction></xs:simpleType>
    <xs:element name="order"><xs:annotation><xs:documentation>An order.</xs:documentation></xs:annotation>
      <xs:complexType><xs:sequence>
        <xs:element name="id" type="xs:string"><xs:annotation><xs:documentation>The  number
          on the bill.</xs:documentation></xs:annotation></xs:element>
        <xs:element name="at" type="xs:dateTime" nillable="true"/>
        <xs:element name="day" type="xs:date" minOccurs="0"/>
        <xs:element name="line" type="o:Line" maxOccurs="unbounded"/>
        <xs:choice minOccurs="0"><xs:element name="card" type="xs:unsignedLong"/><xs:element name="cash" type="xs:boolean"/>
        </xs:choice>
        <xs:element name="sizes" minOccurs="0"><xs:simpleType><xs:list itemType="xs:short"/></xs:simpleType></xs:element>
        <xs:element name="colour" type="o:Colour" minOccurs="0" maxOccurs="3"/>
        <xs:element name="note" minOccurs="0"><xs:complexType mixed="true"><xs:sequence>
          <xs:element name="b" type="xs:string" minOccurs="0" maxOccurs="unbounded"/></xs:sequence></xs:complexType>
        </xs:element>
      </xs:sequence>
      <xs:attribute name="id" type="xs:integer" use="required"/><xs:attribute name="urgent" type="xs:boolean"/>
      </xs:complexType></xs:element>""",
    'targetNamespace="urn:o" xmlns:o="urn:o" elementFormDefault="qualified"',
)
PLAIN = ORDER.replace('<xs:pattern value="[A-Z]{2}[0-9]+"/>', "").replace(' mixed="true"', "")  # all of it for libxml2
LINES = "<line><sku>AB1</sku><count>2</count><price>1.50</price></line><line><sku> CD22 </sku><count/></line>"


def order(inner: str = LINES, attributes: str = 'id="7"', at: str = "2024-05-01T12:00:00.123456+02:00") -> bytes:
    return f'<order xmlns="urn:o" {XSI} {attributes}><id>x</id><at>{at}</at>{inner}</order>'.encode()


def read(schema: XsdReader, payload: bytes) -> dict[str, Any]:
    reading = schema.read(Payload(payload))
    assert reading.row is not None, reading.problems
    return reading.row


def test_columns_follow_the_schema() -> None:
    schema = compiled(ORDER)
    assert [(field.name, str(field.arrow_type), field.nullable) for field in schema.fields] == [
        ("@id", "decimal128(38, 0)", False),
        ("urgent", "bool", True),
        ("id", "string", False),
        ("at", "timestamp[us, tz=UTC]", True),
        ("day", "date32[day]", True),
        ("line", "list<item: struct<sku: string, count: int32, price: struct<currency: string, value: decimal128(9, 2)>>>", True),
        ("card", "decimal128(20, 0)", True),
        ("cash", "bool", True),
        ("sizes", "list<item: int16>", True),
        ("colour", "list<item: string>", True),
        ("note", "string", True),
    ]  # fmt: skip
    assert {field.name: field.doc for field in schema.fields}["id"] == "The number on the bill."


@pytest.mark.parametrize("text", [ORDER, PLAIN], ids=["with patterns", "without"])
def test_values_are_typed(text: str) -> None:
    inner = LINES + "<card>18446744073709551615</card><sizes> 1 2\n3 </sizes><colour>red</colour><colour>green</colour>"
    row = read(compiled(text), order(inner, 'id="99999999999999999999" urgent="1"'))
    assert row == {
        "@id": Decimal("99999999999999999999"), "urgent": True, "id": "x",
        "at": datetime(2024, 5, 1, 10, 0, 0, 123456, UTC), "day": None,
        "line": [{"sku": "AB1", "count": 2, "price": {"currency": "EUR", "value": Decimal("1.50")}},
                 {"sku": "CD22", "count": 1}],
        "card": Decimal(2**64 - 1), "cash": None, "sizes": [1, 2, 3], "colour": ["red", "green"], "note": None,
        REST: None}  # fmt: skip


def test_mixed_content_is_xml_text() -> None:
    row = read(compiled(ORDER), order(LINES + "<note>so <b>very</b> nice<!-- hidden --></note>"))
    assert row["note"] == f'<note xmlns="urn:o" {XSI}>so <b>very</b> nice</note>'


def test_value_that_does_not_fit_column_goes_to_rest() -> None:
    schema = compiled(ORDER)
    row = read(schema, order("<day>2024-05-01+02:00</day>" + LINES, at="2024-05-01T12:00:00"))
    assert (row["at"], row["day"]) == (datetime(2024, 5, 1, 12, tzinfo=UTC), date(2024, 5, 1))
    assert json.loads(row[REST]) == {"at": "2024-05-01T12:00:00", "day": "2024-05-01+02:00"}
    row = read(schema, order(attributes=f'id="{10**40}"', at="-0044-03-15T00:00:00Z"))
    assert (row["@id"], row["at"]) == (None, None)
    assert json.loads(row[REST]) == {"@id": str(10**40), "at": "-0044-03-15T00:00:00Z"}


def test_nil_and_schema_location_are_not_data() -> None:
    payload = order(attributes='id="1" xsi:schemaLocation="urn:o http://127.0.0.1:9/o.xsd"')
    row = read(compiled(ORDER), payload.replace(b"<at>2024-05-01T12:00:00.123456+02:00</at>", b'<at xsi:nil="true"/>'))
    assert (row["at"], row[REST]) == (None, None)


BAD = [
    (order(LINES.replace("AB1", "ab1")), "/line/0/sku", "ab1", "expected the pattern [A-Z]{2}[0-9]+"),
    (order(LINES.replace(">2<", ">two<")), "/line/0/count", "two", "'two' is not a valid value of the atomic type 'xs:int'."),
    (order(attributes='id="1.5"'), "/id", "1.5", "'1.5' is not a valid value of the atomic type 'xs:integer'."),
    (order("<line><sku>AB1</sku></line>"), "/line", None, "Missing child element(s). Expected is ( {urn:o}count )."),
    (order(LINES + "<surprise/>"), "/surprise", None, "This element is not expected."),
    (order(LINES + "<colour>blue</colour>"), "/colour", "blue", "not an element of the set"),
    (order(LINES.replace("1.50", "1.505")), "/line/0/price", "1.505", "fractionDigits"),
    (b"<order/>", "", "order", "expected the element '{urn:o}order'"),
    (b'<line xmlns="urn:o"/>', "", "{urn:o}line", "expected the element '{urn:o}order'"),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "pointer", "actual", "rule"), BAD, ids=[case[3] for case in BAD])
def test_invalid_payload_has_pointer_value_and_rule(
    payload: bytes, pointer: str, actual: str | None, rule: str
) -> None:
    schema = compiled(ORDER.replace(' mixed="true"', ""))
    assert schema.validator.fast is not None
    reading = schema.read(Payload(payload))
    assert reading.outcome == "invalid-payload"
    assert compiled(ORDER).read(Payload(payload)).outcome == "invalid-payload"  # with the other library
    problem = next(problem for problem in reading.problems if rule in str(problem.message))
    assert (problem.code, problem.slot, problem.actual) == ("payload-invalid", f"payload#{pointer}", actual)


PREFIXED = [
    b'<o:order xmlns:o="urn:o" id="7"><o:id>x</o:id><o:at>today</o:at></o:order>',
    b'<o:order xmlns:o="urn:o" id="7"><o:id>x</o:id><p:at xmlns:p="urn:o">today</p:at></o:order>',
    b'<o:order xmlns:o="urn:o" id="7"><o:id>x</o:id><at xmlns="urn:o">today</at></o:order>',
    b'<order xmlns="urn:o" id="7"><id>x</id><o:at xmlns:o="urn:o">today</o:at></order>',
    b'<o:order xmlns:o="urn:o" id="7"><o:id>x</o:id><o:at xmlns:o="urn:other"/></o:order>',
]


@pytest.mark.parametrize("text", [ORDER, PLAIN], ids=["with patterns", "without"])
@pytest.mark.parametrize("payload", PREFIXED)
def test_pointer_ignores_prefixes(text: str, payload: bytes) -> None:
    """A payload may use any prefix, and another one on each level."""
    reading = compiled(text).read(Payload(payload))
    assert reading.outcome == "invalid-payload"
    assert str(reading.problems[0].slot) in ("payload#/at", "payload#")
    assert next(iter(compiled(text).read(Payload(PREFIXED[0])).problems)).slot == "payload#/at"


def test_pointer_of_repeated_element_has_index() -> None:
    line = "<o:line><o:sku>A1</o:sku><o:count>{}</o:count></o:line>"
    inner = f"<o:id>x</o:id><o:at>2024-05-01T00:00:00Z</o:at>{line.format(1)}{line.format('x')}"
    reading = compiled(PLAIN).read(Payload(f'<o:order xmlns:o="urn:o" id="7">{inner}</o:order>'.encode()))
    assert [problem.slot for problem in reading.problems] == ["payload#/line/1/count"]


def test_attribute_pattern_is_checked() -> None:
    body = (
        '<xs:element name="a"><xs:complexType><xs:attribute name="k"><xs:simpleType><xs:restriction base="xs:string">'
    )
    body += '<xs:pattern value="x+"/></xs:restriction></xs:simpleType></xs:attribute></xs:complexType></xs:element>'
    reading = compiled(schema_of(body)).read(Payload(b'<a k="y"/>'))
    assert [(problem.slot, problem.actual) for problem in reading.problems] == [("payload#/k", "y")]


# -- column layouts ---------------------------------------------------------------------------------------------------

RECURSIVE = schema_of(
    '<xs:element name="node" type="Node"/><xs:complexType name="Node"><xs:sequence><xs:element name="name" type="xs:string"/>'
    '<xs:element name="node" type="Node" minOccurs="0" maxOccurs="unbounded"/></xs:sequence></xs:complexType>'
)


def test_recursive_element_is_xml_text() -> None:
    row = read(
        compiled(RECURSIVE), b"<node><name>a</name><node><name>b</name></node><node><name>c</name></node></node>"
    )
    assert row["node"] == ["<node><name>b</name></node>", "<node><name>c</name></node>"]


def test_wildcard_content_goes_to_rest() -> None:
    body = '<xs:element name="a"><xs:complexType><xs:sequence><xs:element name="x" type="xs:int"/>'
    body += '<xs:any processContents="lax" maxOccurs="unbounded" minOccurs="0"/></xs:sequence>'
    body += '<xs:anyAttribute processContents="lax"/></xs:complexType></xs:element>'
    row = read(compiled(schema_of(body)), b'<a k="1" xmlns:y="urn:y" y:z="2"><x>5</x><y:more>m</y:more><b/><b/></a>')
    assert row["x"] == 5
    assert json.loads(row[REST]) == {
        "@k": "1", "@{urn:y}z": "2", "<{urn:y}more>": ['<y:more xmlns:y="urn:y">m</y:more>'],
        "<b>": ['<b xmlns:y="urn:y"/>'] * 2}  # fmt: skip


DERIVED = schema_of(
    '<xs:complexType name="Base"><xs:sequence><xs:element name="x" type="xs:int"/></xs:sequence></xs:complexType>'
    '<xs:complexType name="More"><xs:complexContent><xs:extension base="Base"><xs:sequence>'
    '<xs:element name="y" type="Short"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>'
    '<xs:simpleType name="Short"><xs:restriction base="xs:string"><xs:pattern value="[a-z]"/></xs:restriction></xs:simpleType>'
    '<xs:element name="a" type="Base"/>'
)


def test_xsi_type_selects_derived_type() -> None:
    schema = compiled(DERIVED)
    payload = f'<a {XSI} xsi:type="More"><x>1</x><y>b</y></a>'.encode()
    row = read(schema, payload)
    assert (row["x"], json.loads(row[REST])["<y>"]) == (1, [f"<y {XSI}>b</y>"])
    reading = schema.read(Payload(payload.replace(b">b<", b">bb<")))
    assert [problem.slot for problem in reading.problems] == ["payload#/y"]  # patterns of the selected type are checked


def test_substitution_group_members_have_columns() -> None:
    body = '<xs:element name="a"><xs:complexType><xs:sequence><xs:element ref="head"/></xs:sequence></xs:complexType></xs:element>'
    body += '<xs:element name="head" abstract="true" type="xs:string"/><xs:element name="one" type="xs:string"'
    body += ' substitutionGroup="head"/><xs:element name="two" type="xs:string" substitutionGroup="head"/>'
    schema = compiled(schema_of(body), "a")
    assert sorted(field.name for field in schema.fields) == ["one", "two"]
    row = read(schema, b"<a><two>t</two></a>")
    assert (row["one"], row["two"], row[REST]) == (None, "t", None)


def test_attribute_with_name_of_text_column_is_prefixed() -> None:
    body = '<xs:element name="a"><xs:complexType><xs:simpleContent><xs:extension base="xs:int">'
    body += '<xs:attribute name="value" type="xs:int"/></xs:extension></xs:simpleContent></xs:complexType></xs:element>'
    assert read(compiled(schema_of(body)), b'<a value="1">2</a>') == {"value": 1, "@value": 2, REST: None}


def test_simple_element_has_value_column() -> None:
    schema = compiled(schema_of('<xs:element name="n" type="xs:long"/>'))
    assert read(schema, b"<n> -5 </n>") == {"value": -5, REST: None}
    assert schema.read(Payload(b"<n> -5 </n>")).value == -5
    assert schema.read(Payload(None, "<n>7</n>")).value == 7  # as the data of a structured event
    assert schema.read(Payload(None, {"n": 7})).outcome == "undecodable"


def test_xml_text_is_encoded_and_validated() -> None:
    schema = compiled(schema_of('<xs:element name="n" type="xs:long"/>'))
    payload = schema.encode("<n>5</n>").payload
    assert payload is not None
    assert (payload.raw, payload.content_type) == (b"<n>5</n>", "application/xml")
    assert [problem.slot for problem in schema.encode(b"<n>x</n>").problems] == ["payload#"]
    assert [problem.slot for problem in schema.encode({"n": 5}).problems] == ["payload#"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_xml_encoding_is_read(encoding: str) -> None:
    schema = compiled(schema_of('<xs:element name="n" type="xs:string"/>'))
    assert read(schema, f'<?xml version="1.0" encoding="{encoding}"?><n>é</n>'.encode(encoding))["value"] == "é"
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + schema_of('<xs:element name="é" type="xs:string"/>')
    assert read(compiled(text), "<é>x</é>".encode())["value"] == "x"


# -- which element ----------------------------------------------------------------------------------------------------

SEVERAL = schema_of(
    '<xs:element name="one" type="xs:int"/><xs:element name="two" type="T"/>'
    '<xs:complexType name="T"><xs:attribute name="k" type="xs:int"/></xs:complexType>'
    '<xs:complexType name="Only"><xs:attribute name="z" type="xs:int"/></xs:complexType>',
    'targetNamespace="urn:s" xmlns="urn:s"',
)


@pytest.mark.parametrize(
    ("part", "element"),
    [("one", "one"), ("two", "two"), ("Only", "Only"), ("/xs:schema/xs:element[@name='two']", "two"), ("element(two)", "two"),
     ('//xs:complexType[@name="Only"]', "Only"), ("xpointer(//xs:element[@name='one'])", "one")],
)  # fmt: skip
def test_fragment_selects_element(part: str, element: str) -> None:
    assert compiled(SEVERAL, part).element == f"{{urn:s}}{element}"


def test_type_without_namespace_prefix_is_selected() -> None:
    bare = SEVERAL.replace(' xmlns="urn:s"', "").replace('<xs:element name="two" type="T"/>', "")
    assert compiled(bare, "T").element == "{urn:s}T"


def test_ambiguous_or_unknown_element_is_reported() -> None:
    unnamed, unknown = compile_schema("XSD/1.0", SEVERAL), compile_schema("XSD/1.0", SEVERAL, "three")
    assert [schema.problems[0].code for schema in (unnamed, unknown) if isinstance(schema, Unsupported)] == [
        "unnamed-type",
        "schema-not-compilable",
    ]


def registry(**schemas: str) -> dict[str, Any]:
    resources = {
        name: {"versions": {"1": {"format": "XMLSchema/1.0", "schema": text}}} for name, text in schemas.items()
    }
    return {"schemagroups": {"g": {"schemas": resources}}}


COMMON = schema_of(
    '<xs:simpleType name="Id"><xs:restriction base="xs:int"/></xs:simpleType>', 'targetNamespace="urn:c"'
)
USER = schema_of(
    '<xs:import namespace="urn:c" schemaLocation="LOCATION"/><xs:element name="a"><xs:complexType>'
    '<xs:attribute name="id" type="c:Id"/><xs:attribute ref="xml:lang"/></xs:complexType></xs:element>',
    'xmlns:c="urn:c"',
).replace("<xs:import", '<xs:import namespace="http://www.w3.org/XML/1998/namespace"/><xs:import', 1)


@pytest.mark.parametrize("location", ["common.xsd", "common", "../x/common.xsd", "http://example.com/common.xsd"])
def test_xsd_import_is_a_catalogue_document(location: str) -> None:
    index = SchemaIndex(registry(user=USER.replace("LOCATION", location), common=COMMON))
    schema = index.find("XSD/1.0", dataschemauri="/schemagroups/g/schemas/user")
    assert not isinstance(schema, Unsupported), schema.problems
    assert {field.name: str(field.arrow_type) for field in schema.fields} == {"id": "int32", "lang": "string"}
    assert read(schema, b'<a id="5" xml:lang="de"/>')["id"] == 5  # type: ignore[arg-type]


def test_external_entities_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "common.xsd").write_text(COMMON)
    for location in (str(tmp_path / "common.xsd"), (tmp_path / "common.xsd").as_uri(), "http://127.0.0.1:9/common.xsd"):
        schema = compile_schema("XSD/1.0", USER.replace("LOCATION", location))
        assert isinstance(schema, Unsupported)
        include = schema_of(f'<xs:include schemaLocation="{location}"/><xs:element name="a" type="xs:int"/>')
        assert "not in the catalogue" in str(compile_schema("XSD/1.0", include).problems)  # type: ignore[union-attr]


def test_payload_schema_location_is_not_followed(tmp_path: Path) -> None:
    """Neither library follows a hint in a payload."""
    (tmp_path / "b.xsd").write_text(schema_of('<xs:element name="b" type="xs:int"/>'))
    body = '<xs:element name="a"><xs:complexType><xs:sequence><xs:any/></xs:sequence></xs:complexType></xs:element>'
    payload = f'<a {XSI} xsi:noNamespaceSchemaLocation="{tmp_path / "b.xsd"}"><b>5</b></a>'.encode()
    schema = compiled(schema_of(body))
    for validator in (schema.validator, ElementValidator(schema.validator.model, None, patterns=False)):
        assert validator.faults(parse_xml(payload))


# -- XSD 1.1 ----------------------------------------------------------------------------------------------------------

ASSERTED = schema_of(
    '<xs:element name="r"><xs:complexType><xs:attribute name="low" type="xs:int"/><xs:attribute name="high" type="xs:int"/>'
    '<xs:assert test="@low le @high"/></xs:complexType></xs:element>'
)


def test_assertions_are_checked() -> None:
    schema = compiled(ASSERTED)
    assert schema.validator.fast is None
    assert read(schema, b'<r low="1" high="2"/>')["high"] == 2
    reading = schema.read(Payload(b'<r low="3" high="2"/>'))
    assert reading.outcome == "invalid-payload"
    assert "@low le @high" in str(reading.problems[0].message)
    assert isinstance(compile_schema("XSD/1.0", ASSERTED), Unsupported)


def test_version_mark_alone_uses_libxml2() -> None:
    marked = 'xmlns:vc="http://www.w3.org/2007/XMLSchema-versioning" vc:minVersion="1.1"'
    assert compiled(schema_of('<xs:element name="a" type="xs:int"/>', marked)).validator.fast is not None
    stamped = compiled(schema_of('<xs:element name="a" type="xs:dateTimeStamp"/>', marked))
    assert read(stamped, b"<a>2024-05-01T00:00:00Z</a>")["value"] == datetime(2024, 5, 1, tzinfo=UTC)


# -- both engines, both libraries -------------------------------------------------------------------------------------


DOLLARS = '<price currency="USD">-0.01</price>'


def random_order(random: Random) -> bytes:
    """Return an order, sometimes an invalid one."""

    def some(*texts: str) -> str:
        return random.choice(texts)

    line = "".join(
        f"<line><sku>{some('AB1', 'XY99', 'AB1', 'ab')}</sku><count>{some('1', '', '+7', 'x')}</count>"
        f"{some('', '<price>1.5</price>', DOLLARS, '<price>1.234</price>')}</line>"
        for _ in range(random.randrange(3)) or [0]
    )
    day = some("", "", "<day>2024-02-29</day>", "<day>2024-02-29Z</day>", "<day>2023-02-29</day>")
    rest = some("", "<card>18446744073709551615</card>", "<cash>0</cash>", "<card>-1</card>")
    rest += some("", "<sizes/>", "<sizes>1 -2</sizes>", "<sizes>99999</sizes>")
    at = some(
        "2024-05-01T12:00:00Z", "2024-05-01T12:00:00", "2024-05-01T12:00:00.123456789Z", "2024-05-01T24:00:00Z", "today"
    )
    return order(day + line + rest, f'id="{some("1", "-5", str(10**40), "1.0")}"', at)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
@pytest.mark.parametrize("text", [ORDER, PLAIN], ids=["with patterns", "without"])
def test_xsd_columns_agree_with_read(text: str, seed: int) -> None:
    random = Random(seed)
    raws = [damaged(raw, random) if random.random() < 0.2 else raw for raw in (random_order(random) for _ in range(25))]
    check(compiled(text), [None, *raws])


COMPILED = {name: compiled(text) for name, text in (("plain", PLAIN), ("derived", DERIVED), ("recursive", RECURSIVE))}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_libxml2_agrees_with_xmlschema(seed: int) -> None:
    """Both agree on which orders are valid."""
    schema, root = COMPILED["plain"], parse_xml(random_order(Random(seed)))
    assert schema.validator.fast is not None
    slow = ElementValidator(schema.validator.model, None, patterns=False)
    assert bool(schema.validator.faults(root)) == bool(slow.faults(root))


# -- hostile ----------------------------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
BOMBS = {
    "billion laughs": f'<!DOCTYPE node [<!ENTITY l0 "ha">{LAUGHS}]><node><name>&l9;</name></node>'.encode(),
    "laughs in an attribute": f'<!DOCTYPE node [<!ENTITY l0 "ha">{LAUGHS}]><node a="&l9;"/>'.encode(),
    "an external entity": b'<!DOCTYPE node [<!ENTITY x SYSTEM "file:///etc/passwd">]><node><name>&x;</name></node>',
    "an external DTD": b'<!DOCTYPE node SYSTEM "http://127.0.0.1:9/x.dtd"><node><name/></node>',
    "a DTD": b"<!DOCTYPE node><node><name/></node>",
    "nested 100,000 deep": b"<node><name/>" * 100_000,
    "nested 250 deep": b"<node><name/>" * 250 + b"</node>" * 250,
    "a text of 12 MB": b"<node><name>" + b"x" * 12_000_000 + b"</name></node>",
    "more than the limit": b"<node>" + b" " * 17_000_000 + b"</node>",
    "many elements": b"<node><name/>" + b"<node><name/></node>" * 100_000 + b"</node>",
    "many attributes": b"<node " + b" ".join(b'a%d=""' % n for n in range(50_000)) + b"/>",
    "nothing": b"",
    "zeros": bytes(1000),
    "no XML": b'{"node": 1}',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_xml_bomb_is_rejected(bomb: str) -> None:
    reading = COMPILED["recursive"].read(Payload(BOMBS[bomb]))
    expected = {"many elements": None, "many attributes": "invalid-payload", "nested 100,000 deep": "oversized",
                "nested 250 deep": "oversized", "more than the limit": "oversized", "a text of 12 MB": "oversized", "billion laughs": "oversized", "laughs in an attribute": "oversized"}  # fmt: skip
    assert reading.outcome == expected.get(bomb, "undecodable"), reading.problems
    assert len(json.dumps([problem.to_dict() for problem in reading.problems])) < 50_000


def doubling(kind: str) -> str:
    groups = "".join(
        f'<xs:group name="g{n}"><xs:{kind}><xs:group ref="g{n + 1}"/><xs:group ref="g{n + 1}"/></xs:{kind}></xs:group>'
        for n in range(40)
    )
    end = f'<xs:group name="g40"><xs:{kind}><xs:element name="x" type="xs:int"/></xs:{kind}></xs:group>'
    return groups + end + '<xs:element name="a"><xs:complexType><xs:group ref="g0"/></xs:complexType></xs:element>'


def restricted(base: str, facet: str) -> str:
    return f'<xs:element name="a"><xs:simpleType><xs:restriction base="{base}">{facet}</xs:restriction></xs:simpleType></xs:element>'


def doubling_unions() -> str:
    types = "".join(
        f'<xs:simpleType name="u{n}"><xs:union memberTypes="u{n + 1} u{n + 1}"/></xs:simpleType>' for n in range(60)
    )
    end = '<xs:simpleType name="u60"><xs:restriction base="xs:int"/></xs:simpleType>'
    return f'{types}{end}<xs:element name="a" type="u0"/>'


MANY = "".join(f'<xs:element name="e{n}" type="xs:int" minOccurs="0"/>' for n in range(700))
TRAPS = {
    "groups that double": doubling("sequence"),
    "choices that double": doubling("choice"),
    "unions that double": doubling_unions(),
    "a union of itself": '<xs:simpleType name="U"><xs:union memberTypes="U U"/></xs:simpleType><xs:element name="a" type="U"/>',
    "a group inside itself": '<xs:group name="g"><xs:sequence><xs:group ref="g"/></xs:sequence></xs:group>'
    '<xs:element name="a"><xs:complexType><xs:group ref="g"/></xs:complexType></xs:element>',
    "a type of itself": '<xs:complexType name="T"><xs:complexContent><xs:extension base="T"/></xs:complexContent>'
    '</xs:complexType><xs:element name="a" type="T"/>',
    "many occurrences": '<xs:element name="a"><xs:complexType><xs:sequence minOccurs="0" maxOccurs="90000"><xs:element name="x" '
    'minOccurs="50000" maxOccurs="99999" type="xs:int"/></xs:sequence></xs:complexType></xs:element>',
    "too many occurrences": '<xs:element name="a"><xs:complexType><xs:sequence><xs:element name="x" maxOccurs="1000000000" '
    'type="xs:int"/></xs:sequence></xs:complexType></xs:element>',
    "700 elements": f'<xs:element name="a"><xs:complexType><xs:sequence>{MANY}</xs:sequence></xs:complexType></xs:element>',
    "a choice of 700": f'<xs:element name="a"><xs:complexType><xs:choice maxOccurs="unbounded">{MANY}</xs:choice>'
    "</xs:complexType></xs:element>",
    "a pattern that others backtrack on": restricted("xs:string", '<xs:pattern value="(x+x+)+y"/>'),
    "another": restricted("xs:string", '<xs:pattern value="(.*a){12}b"/>'),
    "an enormous pattern": restricted("xs:string", '<xs:pattern value="((a{1000}){1000}){1000}"/>'),
    "a long pattern": restricted("xs:string", f'<xs:pattern value="{"a" * 100_000}"/>'),
    "a pattern that is none": restricted("xs:string", '<xs:pattern value="(["/>'),
    "an assertion that counts": ASSERTED[ASSERTED.index("<xs:element") : -12].replace(
        "@low le", "count(1 to 1000000000) le"
    ),
    "an assertion that loops": ASSERTED[ASSERTED.index("<xs:element") : -12].replace("@low le", "for $x in //x return"),
    "an assertion with a pattern": ASSERTED[ASSERTED.index("<xs:element") : -12].replace(
        "@low le @high", "matches(@low, '(a+)+b')"
    ),
    "a facet of many digits": restricted("xs:decimal", f'<xs:maxInclusive value="{"9" * 100_000}"/>'),
    "a huge length": restricted("xs:string", '<xs:maxLength value="99999999999999999999"/>'),
    "nested 150 deep": "<xs:annotation>" * 150 + "</xs:annotation>" * 150 + '<xs:element name="a" type="xs:int"/>',
    "unknown": '<xs:surprise/><xs:element name="a" type="xs:int"/>',
    "dangling": '<xs:element name="a" type="Nowhere"/>',
}


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("format", ["XSD/1.0", "XSD/1.1"])
def test_hostile_xsd_is_rejected_in_bounded_time(trap: str, format: str) -> None:
    schema = compile_schema(format, schema_of(TRAPS[trap]))
    for raw in (
        b"<a/>",
        b"<a>" + b"x" * 40 + b"</a>",
        b"<a>" + b"a" * 5000 + b"!</a>",
        b"<a>" + b"<x>1</x>" * 1000 + b"</a>",
    ):
        reading = schema.read(Payload(raw))
        assert isinstance(schema, Unsupported) == (reading.outcome == "unsupported")


@pytest.mark.parametrize("text", ["", "no XML", "<a/>", "<xs:schema/>", schema_of(""), '<!DOCTYPE a><xs:schema xmlns:xs="x"/>',
                                  schema_of('<xs:element name="a" type="xs:int"/>').replace("<xs:schema", "<!DOCTYPE x [<!ENTITY y 'z'>]><xs:schema")])  # fmt: skip
def test_text_that_is_not_a_schema_is_rejected(text: str) -> None:
    schema = compile_schema("XSD/1.1", text)
    assert isinstance(schema, Unsupported)
    assert [problem.code for problem in schema.problems] == ["schema-not-compilable"]
    assert isinstance(compile_schema("XSD/1.1", {"a": 1}), Unsupported)


def test_xsd_payload_limits_are_enforced() -> None:
    schema = compiled(RECURSIVE, options=CompileOptions(limits=PayloadLimits(size=100, depth=3)))
    assert schema.read(Payload(b"<node><name/><node><name/></node></node>")).outcome is None
    assert schema.read(Payload(b"<node><name/><node><name/><node><name/></node></node></node>")).outcome == "oversized"
    assert schema.read(Payload(b"<node>" + b" " * 100 + b"</node>")).outcome == "oversized"
    column = schema.read_column(pa.array([b"<node><name/></node>", b"<node>" + b" " * 100 + b"</node>"] * 10))
    assert column.settled.tolist() == [True, False] * 10


@pytest.mark.parametrize(
    ("body", "attributes"),
    [
        ("<xs:any processContents='skip'/>", ""),
        ("<xs:sequence/>", f' {XSI} xsi:type="Inner"'),
    ],
    ids=["wildcard", "xsi:type"],
)
def test_depth_of_elements_outside_the_layout_is_limited(body: str, attributes: str) -> None:
    schema = compiled(
        schema_of(
            f'<xs:element name="e" type="Outer"/><xs:complexType name="Outer"><xs:sequence>{body}</xs:sequence>'
            '</xs:complexType><xs:complexType name="Inner"><xs:complexContent><xs:extension base="Outer"><xs:sequence>'
            '<xs:element ref="e" minOccurs="0"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>'
        )
    )
    for levels, outcome in ((199, None), (200, None), (201, "oversized"), (220, "oversized")):
        inner = "<e>" if attributes else "<a>"
        payload = f"<e{attributes}>" + inner.replace(">", f"{attributes}>") * (levels - 1)
        payload += inner.replace("<", "</") * (levels - 1) + "</e>"
        assert schema.read(Payload(payload.encode())).outcome == outcome
