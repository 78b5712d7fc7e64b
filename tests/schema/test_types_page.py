"""docs/types.md matches the code: every row of its tables."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import json_format
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, MapType, StructType

from tests.schema.type_values import VALUES
from wirebook.schema import REST, CompiledSchema, Payload, Unsupported, compile_schema
from wirebook.schema.avro.columns import LOGICAL, PLAIN
from wirebook.schema.jsonstructure.to_jsonschema import COMPOUNDS
from wirebook.schema.jsonstructure.types import PRIMITIVES
from wirebook.schema.protobuf.columns import PLAIN_JSON, WRAPPERS
from wirebook.schema.protobuf.compile import ProtobufReader
from wirebook.schema.xsd.types import BUILTIN

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
SCALARS = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
           "sfixed32", "sfixed64", "bool", "string", "bytes")  # fmt: skip
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
        for match in ROW.finditer(body) if title in SECTIONS else ():
            schema, arrow, spark = match.groups()
            yield pytest.param(SECTIONS[title], schema, arrow, spark, id=f"{title}: {schema}"[:90])


def compiled(format: str, schema: str) -> CompiledSchema:
    """Return a schema with one member `m` of the type in the row."""
    schema_ = compile_schema(
        format, document_of(format, schema), "Root" if format.startswith(("Protobuf", "XSD")) else None
    )
    assert not isinstance(schema_, Unsupported), schema_.problems
    return schema_


def document_of(format: str, schema: str) -> Any:
    if format.startswith("Avro"):
        return {"type": "record", "name": "Root", "fields": [{"name": "m", "type": json.loads(schema)}]}
    if format.startswith("Protobuf"):
        return PROTO % schema
    if format.startswith("XSD"):
        return XSD % schema
    return {"type": "object", "name": "Root", "properties": {"m": json.loads(schema)}}


@pytest.mark.parametrize(("format", "schema", "arrow", "spark"), list(rows()))
def test_table_row_matches_columns(format: str, schema: str, arrow: str, spark: str) -> None:
    (field,) = compiled(format, schema).fields
    assert str(field.arrow_type) == arrow
    assert spark_name(field.arrow_type) == spark


def spark_name(type_: pa.DataType) -> str:
    """Return a type as Spark's SQL writes it."""
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'{field.name}: {spark_name(field.type)}' for field in type_)}>"
    if pa.types.is_list(type_):
        return f"ARRAY<{spark_name(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"MAP<{spark_name(type_.key_type)}, {spark_name(type_.item_type)}>"
    return from_arrow_type(type_, prefer_timestamp_ntz=True).simpleString().upper()


def test_table_rows_and_example_values_match() -> None:
    on_the_page = [(format, schema) for format, schema, _, _ in map(attrgetter("values"), rows())]
    assert len(on_the_page) == len(set(on_the_page))
    assert set(on_the_page) == {(format, schema) for format, values in VALUES.items() for schema in values}


def test_every_type_is_documented() -> None:
    """Every named type of each format is on the page."""
    page = {format: " ".join(schema for row, schema, _, _ in map(attrgetter("values"), rows()) if row == format)
            for format in VALUES}  # fmt: skip
    named = {
        "JsonStructure/draft-02": [f'"{name}"' for name in (*PRIMITIVES, *COMPOUNDS, "object")],
        "Avro/1.11": [f'"{name}"' for name in (*PLAIN, *LOGICAL, "array", "map", "record")],
        "Protobuf/3": [f"{name} m" for name in (*SCALARS, *WRAPPERS, *PLAIN_JSON)],
        "XSD/1.0": [f"xs:{name}" for name in BUILTIN if name != "dateTimeStamp"],
        "JsonSchema": [f'"{name}"' for name in ("string", "integer", "number", "boolean", "null", "object", "array")],
    }
    assert {format: [name for name in names if name not in page[format]] for format, names in named.items()} == {
        format: [] for format in named
    }


def payload_of(format: str, schema: str) -> tuple[bytes, Any]:
    """Return the payload of a row, written by the library of the format, and its cell."""
    value, cell = VALUES[format][schema]
    if format.startswith("Avro"):
        out, parsed = io.BytesIO(), fastavro.parse_schema(document_of(format, schema))
        fastavro.schemaless_writer(out, parsed, {"m": value})
        return out.getvalue(), cell
    if format.startswith("Protobuf"):
        reader = compiled(format, schema)
        assert isinstance(reader, ProtobufReader)
        pool = reader.descriptor.file.pool
        message = json_format.ParseDict({"m": value}, reader.class_(), descriptor_pool=pool)
        return message.SerializeToString(), cell
    if format.startswith("XSD"):
        return f"<Root>{value}</Root>".encode(), cell
    return json.dumps({"m": value}).encode(), cell


@pytest.mark.parametrize(("format", "schema", "arrow", "spark"), list(rows()))
def test_example_value_is_read_exactly(format: str, schema: str, arrow: str, spark: str) -> None:
    """Read singly and as a column, the payload has the cell; written back, it is read again."""
    raw, cell = payload_of(format, schema)
    reader = compiled(format, schema)
    column = reader.read_column(pa.array([raw] * 20, pa.binary()))
    assert column.settled.all() or REST in schema
    assert column.columns["m"][19].as_py() == cell
    reading = reader.read(Payload(raw))
    assert reading.row is not None, reading.problems
    (field,) = reader.fields
    assert pa.array([reading.row["m"]], field.arrow_type)[0].as_py() == cell
    assert (reading.row[REST], column.columns[REST][19].as_py()) in ((None, None), (LEFT, LEFT))
    encoded = reader.encode(reading.value)  # type: ignore[attr-defined]
    assert encoded.payload is not None, encoded.problems
    assert reader.read(encoded.payload).row == reading.row


def sql_name(type_: Any) -> str:
    """Return a type of Spark as its SQL writes it."""
    if isinstance(type_, StructType):
        return f"STRUCT<{', '.join(f'{field.name}: {sql_name(field.dataType)}' for field in type_)}>"
    if isinstance(type_, ArrayType):
        return f"ARRAY<{sql_name(type_.elementType)}>"
    if isinstance(type_, MapType):
        return f"MAP<{sql_name(type_.keyType)}, {sql_name(type_.valueType)}>"
    return str(type_.simpleString().upper())


LEFT = '{"m":{"x":5}}'  # the rest of the only row whose value does not fit its column


@pytest.mark.spark
def test_types_and_values_agree_on_spark(tmp_path: Path, one_java: dict[str, str]) -> None:
    """All rows as columns of one table: Spark has the types of the page and the values of Python."""
    table_rows = [row.values for row in rows()]
    columns = {}
    for number, (format, schema, _, _) in enumerate(table_rows):
        raw, _ = payload_of(format, schema)
        columns[f"c{number}"] = compiled(format, schema).read_column(pa.array([raw] * 20, pa.binary())).columns["m"]
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    arguments = [sys.executable, "-c", ON_SPARK, str(tmp_path / "rows.parquet"), str(tmp_path / "back")]
    folder, environment = PAGE.parent.parent, os.environ | one_java
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [spark for _, _, _, spark in table_rows]
    back = pq.read_table(tmp_path / "back")
    for number, (format, schema, _, _) in enumerate(table_rows):
        assert back.column(number)[0].as_py() == VALUES[format][schema][1], (format, schema)


ON_SPARK = """
import json, sys
from tests.schema.test_types_page import sql_name
from wirebook.spark.session import session

spark = session("types", cores=1)
spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
frame = spark.read.parquet(sys.argv[1])
print(json.dumps([sql_name(field.dataType) for field in frame.schema]))
frame.coalesce(1).write.option("compression", "none").parquet(sys.argv[2])
"""


EXAMPLES = [
    ({"a": {"type": "object", "properties": {"b": {"type": "integer"}}}}, {"a": {"b": 1, "c": 2}}, '{"a":{"c":2}}'),
    ({"n": {"type": "array", "items": {"type": "integer"}}}, {"n": [1, 2**64]}, '{"n":[null,18446744073709551616]}'),
]


@pytest.mark.parametrize(("properties", "payload", "rest"), EXAMPLES)
def test_rest_example_matches(properties: dict[str, Any], payload: dict[str, Any], rest: str) -> None:
    assert f"`{rest}`" in PAGE.read_text()
    reading = compile_schema("JsonSchema", {"type": "object", "properties": properties}).read(Payload(None, payload))
    assert reading.row is not None
    assert reading.row["_rest"] == rest
