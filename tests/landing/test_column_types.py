"""The types of a DataFrame's columns: those that are allowed are those of which a message can be read."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from wirebook.catalog import Catalog
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.landing.sources.column_types import ColumnType, check_types, is_readable
from wirebook.landing.sources.dataframes import FORMS, KAFKA_COLUMNS, InputColumns, input_columns
from wirebook.problems import WirebookError
from wirebook.spark.matching import outcomes_of

BASE64 = {"type": "struct", "fields": [{"name": "base64", "type": "string"}]}
OBJECTS = ("properties", "header", "delivery-annotations", "message-annotations", "application-properties", "footer")
TEXTS = {"received": "2026-01-01T00:00:00Z", "timestamp": "2026-01-01T00:00:00Z", "body-section": "data"}
TEXTS |= {"endpoint": "/endpoints/none", "protocol": "KAFKA"} | dict.fromkeys(OBJECTS, "{}")
NUMBERS = {"status": 100}
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
RECORDS = {
    "HTTP": ("method", "target", "status", "headers", "body"),
    "MQTT/5.0": ("topic", "qos", "retain", "properties", "user_properties", "payload"),
    "AMQP/1.0": ("header", *OBJECTS[2:], "body-section"),
    "NATS": ("subject", "reply-to", "data"),
    "KAFKA": (*KAFKA_COLUMNS, "received", "endpoint"),
}
"""Members of the capture format by a protocol that has them."""


class Sample(NamedTuple):
    """A type as Spark and Arrow write it. `value` makes a value from the text and number that are valid in a column."""

    spark: Any
    arrow: pa.DataType
    value: Any


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def struct(**members: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": type_} for name, type_ in members.items()]}


ARROW = {
    "string": pa.string(),
    "binary": pa.binary(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(10,0)": pa.decimal128(10, 0),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "interval day to second": pa.duration("us"),
    "void": pa.null(),
}


def arrow(type_: Any) -> pa.DataType:
    if isinstance(type_, str):
        return ARROW[type_]
    if type_["type"] == "array":
        return pa.list_(arrow(type_["elementType"]))
    if type_["type"] == "map":
        return pa.map_(arrow(type_["keyType"]), arrow(type_["valueType"]))
    return pa.struct([(member["name"], arrow(member["type"])) for member in type_["fields"]])


def value_of(type_: Any, column: str) -> Any:
    """A value of a type; a text or number is one that the column may have."""
    if not isinstance(type_, str):
        match type_["type"]:
            case "array":
                element = value_of(type_["elementType"], column)
                return [element] * (2 if isinstance(type_["elementType"], str) and column == "pair" else 1)
            case "map":
                return [("h", value_of(type_["valueType"], "pair"))]
        return {member["name"]: value_of(member["type"], "pair") for member in type_["fields"]}
    text, number = "YQ==" if column == "pair" else TEXTS.get(column, "x"), NUMBERS.get(column, 1)
    values = {"string": text, "binary": text.encode(), "boolean": True, "date": date(2026, 1, 1), "void": None}
    values |= {"timestamp": MOMENT, "timestamp_ntz": MOMENT, "interval day to second": timedelta(1)}
    return values.get(type_, Decimal(number) if type_.startswith("decimal") else number)


PAIR_TYPES = [
    array(struct(key="string", value="binary")),
    array(struct(name="string", value="binary")),
    array(struct(value="binary", key="string")),
    array(struct(value="string", extra="integer", name="binary")),
    array(struct(Key="string", Value="string", extra="integer")),
    array(struct(NAME="string", value="binary")),
    array(struct(key="string", value=BASE64)),
    array(struct(key="string", value="integer")),
    array(struct(key="string", value="timestamp")),
    array(struct(key="integer", value="binary")),
    array(struct(key="string")),
    array(struct(_1="string", _2="binary")),
    array(array("string")),
    array(array("binary")),
    array("string"),
    array("integer"),
    map_of("string", "binary"),
    map_of("binary", "string"),
    map_of("string", BASE64),
    map_of("string", "integer"),
    map_of("string", array("binary")),
    BASE64,
    struct(base64="binary"),
    struct(base64="integer"),
    struct(base64="string", other="string"),
    struct(a="string"),
]
TYPES = [*ARROW, *PAIR_TYPES]


@pytest.fixture(scope="module")
def engine() -> CatalogueEngine:
    """A catalogue that every valid record matches."""
    messages = {f"m{n}": {"messageid": f"m{n}", "protocol": protocol} for n, protocol in enumerate(RECORDS)}
    group = {"messagegroupid": "g", "messages": messages}
    endpoint = {"endpointid": "none", "usage": ["consumer"], "messagegroups": ["/messagegroups/g"]}
    document = {"specversion": "1.0-rc4", "registryid": "r", "messagegroups": {"g": group}}
    return CatalogueEngine(Catalog.load(document | {"endpoints": {"none": endpoint}}))


def lands(engine: CatalogueEngine, form: str, column: str, type_: Any) -> bool:
    """Whether a value of the type is read as a member of a message, by the functions that Spark's workers call."""
    if form == "lines":
        columns = {}
    elif form == "kafka":
        columns = {"value": pa.array([b"1"]), "topic": pa.array(["t"])}
    else:
        protocol = next(protocol for protocol, members in RECORDS.items() if column in (*members, "protocol"))
        protocol = "KAFKA" if column == "protocol" else protocol
        columns = {"protocol": pa.array([protocol])}
        if protocol in ("KAFKA", "MQTT/5.0"):
            columns["topic"] = pa.array(["t"])
    name = "pair" if isinstance(type_, dict) and type_["type"] == "array" else column
    value = value_of(type_, name)
    if form == "lines" and value is not None:
        value = b'{"protocol":"KAFKA","topic":"t"}' if type_ in ("string", "binary") else value
    columns[column] = pa.array([value], arrow(type_))
    batch = pa.RecordBatch.from_pydict(columns)
    try:
        (row,) = outcomes_of(batch, engine, InputColumns(form, {name: name for name in columns})).to_pylist()
    except pa.ArrowNotImplementedError:
        return False
    return bool(row["outcome"] != "malformed")


@pytest.mark.parametrize(("form", "column"), [(form, name) for form, (_, names) in FORMS.items() for name in names])
def test_readable_types_are_those_of_which_a_value_lands(engine: CatalogueEngine, form: str, column: str) -> None:
    differing = []
    for type_ in TYPES:
        if type_ == "void":
            assert is_readable(form, column, type_)  # null, as in a column of the right type
        elif is_readable(form, column, type_) != lands(engine, form, column, type_):
            differing.append(type_)
    # A time would be read as its RFC 3339 text, which names no topic, method, target or subject.
    is_text = column in ("topic", "method", "target", "subject", "reply-to")
    assert differing == (["timestamp", "timestamp_ntz"] if is_text else [])


@pytest.mark.parametrize(
    ("type_", "column"),
    [
        ("varchar(3)", "topic"),
        ("char(3)", "value"),
        ("string collate UNICODE", "topic"),
        (array("void"), "headers"),
        (array(array("void")), "headers"),
        (array(struct(key="string", value="void")), "headers"),
        ({"type": "udt", "pyClass": "a.B", "sqlType": "binary"}, "value"),
        (array(struct(key="string collate UNICODE", value="binary")), "headers"),
    ],
)
def test_further_types_of_spark_are_readable(type_: Any, column: str) -> None:
    assert is_readable("kafka", column, type_)


@pytest.mark.parametrize("type_", ["variant", "time(6)", "interval year", "geometry(OGC:CRS84)"])
@pytest.mark.parametrize("form", ["lines", "kafka"])
def test_types_without_text_are_not_readable(form: str, type_: str) -> None:
    assert not is_readable(form, "value", type_)


def failure(types: dict[str, ColumnType], chosen: dict[str, str] | None = None) -> WirebookError:
    with pytest.raises(WirebookError, match="frame-columns") as error:
        check_types(input_columns([*types], chosen), types)
    return error.value


KAFKA = {"value": ColumnType("binary", "binary"), "topic": ColumnType("string", "string")}
INT, STRING = ColumnType("integer", "int"), ColumnType("string", "string")


def test_error_names_the_column_the_types_and_the_remedies() -> None:
    error = failure(KAFKA | {"topic": INT, "headers": STRING})
    headers, topic = error.problems
    assert topic.message == "column 'topic' has the type int; allowed: string or binary"
    assert (topic.expected, topic.actual) == ("string or binary", "int")
    assert topic.hint == (
        "cast it, as in frame.withColumn('topic', frame['topic'].cast('string')), or name the columns to read, and "
        "not this one, as in columns={'value': 'value'}"
    )
    assert headers.message.startswith("column 'headers' has the type string; allowed: array<struct<key: string, value")
    assert headers.hint is not None
    assert ".option('includeHeaders', 'true')" in headers.hint


def test_error_names_the_mapped_column() -> None:
    types = {"payload": ColumnType(struct(a="string"), "struct<a:string>"), "topic": STRING}
    (problem,) = failure(types, {"value": "payload", "topic": "topic"}).problems
    assert problem.message.startswith(
        "column 'payload', which 'columns' maps to 'value', has the type struct<a:string>"
    )
    assert problem.hint == "write it as JSON text, as in frame.withColumn('payload', to_json('payload'))"


@pytest.mark.parametrize(
    ("column", "type_", "hint"),
    [
        ("offset", STRING, "frame['offset'].cast('bigint')), or name the columns to read, and not this one, as in "),
        ("timestamp", ColumnType("long", "bigint"), "frame['timestamp'].cast('timestamp')), or name"),
        ("offset", ColumnType(struct(a="string"), "struct<a:string>"), "map a column of type bigint, as in columns={"),
    ],
)
def test_error_tells_how_to_mend_each_column(column: str, type_: ColumnType, hint: str) -> None:
    (problem,) = failure(KAFKA | {column: type_}).problems
    assert problem.hint is not None
    assert hint in problem.hint
    kept = input_columns([*KAFKA, column], {"value": "value", "topic": "topic"})
    assert problem.hint.endswith(f"as in columns={dict(sorted(kept.names.items(), reverse=True))}")
    check_types(kept, KAFKA)


def test_long_type_is_shortened_in_the_message() -> None:
    (problem,) = failure({"value": ColumnType(struct(a="string"), "struct<" + "a:string," * 100)}).problems
    assert len(problem.message) < 300
    assert problem.actual == "struct<" + "a:string," * 100


def test_other_columns_may_have_any_type() -> None:
    types = KAFKA | {"note": INT, "protocols": INT, "timestampType": INT}
    check_types(input_columns([*types]), types)
    check_types(input_columns(["value", "offset"]), {"value": STRING, "offset": ColumnType("date", "date")})


def test_column_that_occurs_twice_is_an_error() -> None:
    with pytest.raises(WirebookError, match="has several columns of the name 'topic'"):
        input_columns(["value", "topic", "topic"])
    input_columns(["value", "note", "note"])
