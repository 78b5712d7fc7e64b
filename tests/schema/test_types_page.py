"""docs/types.md says what the code does: every row of its tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type

from wirebook.schema import CompiledSchema, Payload, Unsupported, compile_schema

PAGE = Path(__file__).parent.parent.parent / "docs" / "types.md"
ROW = re.compile(r"\| `(?P<schema>[^`]+)` \| `(?P<arrow>[^`]+)` \| `(?P<spark>[^`]+)` \|")
SECTIONS = {
    "JSON Schema": "JsonSchema",
    "JSON Structure": "JsonStructure/draft-02",
    "Avro": "Avro/1.11",
    "Protobuf": "Protobuf/3",
    "XML Schema": "XSD/1.0",
}
WELL_KNOWN = ("timestamp", "duration", "wrappers", "struct", "any", "field_mask", "empty")
PROTO = (
    "".join(f'import "google/protobuf/{name}.proto"; ' for name in WELL_KNOWN)
    + """
    message Root { %s }
    enum E { ZERO = 0; }
    message In { int32 x = 1; }
    message Nothing {}
    message Nested { int32 x = 1; Nested inside = 2; }
"""
)
XSD = """
    <xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
      <xs:element name="Root"><xs:complexType><xs:sequence>%s</xs:sequence></xs:complexType></xs:element>
      <xs:complexType name="In"><xs:sequence><xs:element name="x" type="xs:int"/></xs:sequence>
        <xs:attribute name="k" type="xs:string"/></xs:complexType>
      <xs:complexType name="Nested"><xs:sequence><xs:element name="x" type="xs:int"/>
        <xs:element name="inside" type="Nested" minOccurs="0"/></xs:sequence></xs:complexType>
      <xs:complexType name="Mixed" mixed="true"><xs:sequence/></xs:complexType>
    </xs:schema>
"""


def rows() -> Iterator[Any]:
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        for found in ROW.finditer(body) if title in SECTIONS else ():
            schema, arrow, spark = found.groups()
            yield pytest.param(SECTIONS[title], schema, arrow, spark, id=f"{title}: {schema}"[:90])


def compiled(format: str, schema: str) -> CompiledSchema:
    """A schema of one member `m` that is as the row says."""
    found = compile_schema(
        format, document_of(format, schema), "Root" if format.startswith(("Protobuf", "XSD")) else None
    )
    assert not isinstance(found, Unsupported), found.problems
    return found


def document_of(format: str, schema: str) -> Any:
    if format.startswith("Avro"):
        return {"type": "record", "name": "Root", "fields": [{"name": "m", "type": json.loads(schema)}]}
    if format.startswith("Protobuf"):
        return PROTO % schema
    if format.startswith("XSD"):
        return XSD % schema
    return {"type": "object", "name": "Root", "properties": {"m": json.loads(schema)}}


@pytest.mark.parametrize(("format", "schema", "arrow", "spark"), list(rows()))
def test_row(format: str, schema: str, arrow: str, spark: str) -> None:
    (field,) = compiled(format, schema).fields
    assert str(field.arrow_type) == arrow
    assert spark_name(field.arrow_type) == spark


def spark_name(type_: pa.DataType) -> str:
    """A type as Spark's SQL writes it."""
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'{each.name}: {spark_name(each.type)}' for each in type_)}>"
    if pa.types.is_list(type_):
        return f"ARRAY<{spark_name(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"MAP<{spark_name(type_.key_type)}, {spark_name(type_.item_type)}>"
    return from_arrow_type(type_, prefer_timestamp_ntz=True).simpleString().upper()


def test_all_types_are_on_the_page() -> None:
    assert len(list(rows())) > 145


EXAMPLES = [
    ({"a": {"type": "object", "properties": {"b": {"type": "integer"}}}}, {"a": {"b": 1, "c": 2}}, '{"a":{"c":2}}'),
    ({"n": {"type": "array", "items": {"type": "integer"}}}, {"n": [1, 2**64]}, '{"n":[null,18446744073709551616]}'),
]


@pytest.mark.parametrize(("properties", "payload", "rest"), EXAMPLES)
def test_examples_of_the_rest(properties: dict[str, Any], payload: dict[str, Any], rest: str) -> None:
    assert f"`{rest}`" in PAGE.read_text()
    reading = compile_schema("JsonSchema", {"type": "object", "properties": properties}).read(Payload(None, payload))
    assert reading.row is not None
    assert reading.row["_rest"] == rest
