"""Protobuf: columns agree with `read` and with the library's own JSON; problems of malformed bytes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from multiprocessing import get_context
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import json_format, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema.payloads import damaged
from tests.schema.test_columns import check
from wirebook.schema import REST, CompileOptions, Payload, PayloadLimits, SchemaIndex, Unsupported, compile_schema
from wirebook.schema import reader as reading
from wirebook.schema.protobuf import protoc
from wirebook.schema.protobuf.compile import ProtobufReader

EVERYTHING = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/empty.proto";
// Everything that a message may have.
message Order {
  // The number on the bill.
  string id = 1;
  int32 a = 2; sint64 b = 3; uint32 c = 4; uint64 d = 5; fixed32 e = 6; sfixed64 f = 7; bool g = 8; float h = 9;
  double i = 10; bytes j = 11; Kind kind = 12; optional string note = 13; optional Kind other = 14;
  repeated int32 numbers = 15; repeated Kind kinds = 16; repeated string words = 17 [packed = false];
  map<string, Line> lines = 18; map<int64, Kind> by_number = 19; map<bool, double> flags = 20;
  oneof choice { string text = 21; Line line = 22; google.protobuf.Empty nothing = 23; }
  repeated Line more = 24;
  google.protobuf.Timestamp at = 25; google.protobuf.Duration took = 26;
  google.protobuf.Int64Value count = 27; google.protobuf.StringValue label = 28;
  google.protobuf.Struct extra = 29; google.protobuf.Value any_value = 30; google.protobuf.ListValue list = 31;
  google.protobuf.Any packed = 32; google.protobuf.FieldMask mask = 33;
  Tree tree = 34; repeated Tree trees = 35; repeated google.protobuf.Timestamp times = 36;
  repeated uint64 wide = 39;
  enum Kind { NONE = 0; GOOD = 1; BAD = 2; }
}
message Line {
  string sku = 1; int32 count = 2; Part part = 3;
  message Part { double weight = 1; optional bool ok = 2; }
}
message Tree { string name = 1; float size = 2; repeated Tree children = 3; bytes raw = 4; Order.Kind kind = 5; }
"""
PROTO2 = """
syntax = "proto2";
message Reading {
  required string id = 1;
  optional int32 level = 2 [default = 7];
  optional Mode mode = 3 [default = FAST];
  repeated Mode modes = 4 [packed = true];
  optional group Detail = 5 { optional string text = 1; required int32 code = 2; }
  optional Reading inner = 6;
  map<string, Mode> by_name = 7;
  extensions 100 to 200;
}
enum Mode { OFF = 0; SLOW = 1; FAST = 2; }
"""
EXTENDED = PROTO2 + "extend Reading { optional string remark = 100; repeated Mode seen = 101; }"


def compiled(text: str, message: str | None = None, format: str = "Protobuf/3") -> ProtobufReader:
    schema = compile_schema(format, text, message)
    assert isinstance(schema, ProtobufReader), schema.problems
    return schema


SCHEMAS = {"proto3": compiled(EVERYTHING, "Order"), "proto2": compiled(PROTO2), "extended": compiled(EXTENDED)}
SCHEMAS["tree"] = compiled(EVERYTHING, "shop.Tree")
SCHEMAS["names"] = compiled(
    'syntax = "proto3"; message N { uint64 HasField = 1; '
    "optional int32 DESCRIPTOR = 2; optional string ListFields = 3; "
    "repeated Value FromString = 4; message Value { int32 value = 1; Name ByteSize = 2; message Name {} } "
    "message UnknownFields {} message IsInitialized { int32 x = 1; } IsInitialized def = 5; string _rest = 6; }"
)
SCHEMAS["edition"] = compiled(
    'edition = "2023"; message E { int32 a = 1; string b = 2 [features.field_presence = IMPLICIT]; }'
)


def filled(message: Any, random: Random, level: int = 0) -> Any:
    """Return a message with some fields set to values of every kind, limits included."""
    for field in type(message).DESCRIPTOR.fields:
        if random.random() < (0.5 if level < 4 else 0.05) or field.is_required:
            _fill(message, field, random, level)
    return message


def _fill(message: Any, field: Any, random: Random, level: int) -> None:
    target = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = field.message_type.fields
        for _ in range(random.randrange(4)):
            if value.message_type is None:
                target[_scalar(key, random)] = _scalar(value, random)
            else:
                filled(target[_scalar(key, random)], random, level + 1)
    elif field.is_repeated:
        for _ in range(random.choice([0, 1, 2, 5])):
            if field.message_type is None:
                target.append(_scalar(field, random))
            else:
                filled(target.add(), random, level + 1)
    elif field.message_type is not None:
        target.SetInParent()
        filled(target, random, level + 1)
    else:
        setattr(message, field.name, _scalar(field, random))


def _scalar(field: Any, random: Random) -> Any:
    kind = field.cpp_type
    if field.enum_type is not None:
        numbers = [value.number for value in field.enum_type.values]
        return random.choice(numbers if field.enum_type.is_closed or random.random() < 0.95 else [99, -1])
    if kind == field.CPPTYPE_STRING:
        return random.choice(
            [b"", b"\x00\xff", b"abc"] if field.type == field.TYPE_BYTES else ["", "é€😀", "abc", "a" * 40]
        )
    if kind == field.CPPTYPE_BOOL:
        return random.random() < 0.5
    if kind in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        return random.choice([0.0, -0.0, 1.5, 0.1, float("inf"), float("nan"), 1e30])
    bits = 32 if kind in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 64
    signed = kind in (field.CPPTYPE_INT32, field.CPPTYPE_INT64)
    edges = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, -1] if signed else [2**bits - 1]
    return random.choice([0, 1, 150, 1_000_000_000, *edges])


def raws_of(schema: ProtobufReader, random: Random, count: int = 30) -> list[bytes | None]:
    """Payloads of every kind: valid, with unknown fields, damaged and null."""
    raws: list[bytes | None] = []
    for _ in range(count):
        raw, chance = filled(schema.class_(), random).SerializePartialToString(), random.random()
        if chance < 0.05:
            raws.append(None)
        elif chance < 0.1:
            raws.append(
                raw + bytes.fromhex(random.choice(["f83e05", "fa3e0161", "fd3e01020304", "fb3e0801fc3e", "0801"]))
            )
        else:
            raws.append(damaged(raw, random) if chance > 0.8 else raw)
    return raws


@pytest.mark.parametrize("name", SCHEMAS)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_protobuf_columns_agree_with_read(name: str, seed: int) -> None:
    check(SCHEMAS[name], raws_of(SCHEMAS[name], Random(seed)))


@pytest.mark.parametrize("name", ["proto3", "proto2", "edition"])
def test_plain_messages_are_settled(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, random = SCHEMAS[name], Random(1)
    raws = [filled(schema.class_(), random).SerializeToString() for _ in range(40)]
    plain = [raw for raw in raws if schema.read(Payload(raw)).row[REST] is None]  # type: ignore[index]
    monkeypatch.setattr(reading, "read_each", None)
    assert len(plain) > 15 or name == "proto3"
    assert schema.read_column(pa.array((plain or [b""]) * 20, pa.binary())).settled.all()


@pytest.mark.parametrize("name", ["proto3", "proto2", "tree"])
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_binary_and_json_give_the_same_value(name: str, seed: int) -> None:
    """The library's JSON is read as the same row as its bytes."""
    schema, random = SCHEMAS[name], Random(seed)
    message = filled(schema.class_(), random)
    for odd in (
        "packed",
        "took",
        "any_value",
        "at",
        "times",
        "mask",
        "extra",
        "list",
    ):  # some values have no JSON form
        if odd in message.DESCRIPTOR.fields_by_name:
            message.ClearField(odd)
    text = json_format.MessageToJson(message, preserving_proto_field_name=random.random() < 0.5)
    again = schema.read(Payload(text.encode(), content_type="application/json"))
    reading = schema.read(Payload(message.SerializeToString()))
    assert reading.row is not None, reading.problems
    assert repr(again.row) == repr(reading.row), (again.problems, text)


ORDER = SCHEMAS["proto3"]


def row_of(what: str, **fields: Any) -> dict[str, Any]:
    message = json_format.ParseDict(fields, ORDER.class_())
    reading = ORDER.read(Payload(message.SerializeToString()))
    assert reading.row is not None, (what, reading.problems)
    assert ORDER.read_column(pa.array([message.SerializeToString()] * 20)).settled.all()
    return reading.row


def test_unset_fields_are_defaults_or_null() -> None:
    empty = row_of("nothing is set")
    assert (empty["id"], empty["a"], empty["kind"], empty["numbers"], empty["lines"]) == ("", 0, "NONE", [], {})
    assert [empty[name] for name in ("note", "other", "text", "line", "at", "count", "tree")] == [None] * 7
    given_ = row_of("set to what they are anyway", note="", other="NONE", text="", count=0)
    assert [given_[name] for name in ("note", "other", "text", "count")] == ["", "NONE", "", 0]


def test_values_are_read_exactly() -> None:
    row = row_of("edges", d=str(2**64 - 1), c=2**32 - 1, b=str(-(2**63)), wide=[str(2**63), "0"],
                 at="2024-05-01T12:00:00.123456Z", by_number={"-5": "BAD", "3": "GOOD"}, flags={"true": "NaN"},
                 extra={"b": [1, None], "a": "x"}, label="l", took="1.5s", mask="a.b,c")  # fmt: skip
    assert (row["d"], row["c"], row["b"]) == (Decimal(2**64 - 1), 2**32 - 1, -(2**63))
    assert row["wide"] == [Decimal(2**63), Decimal(0)]
    assert row["at"] == datetime(2024, 5, 1, 12, 0, 0, 123456, UTC)
    assert row["by_number"] == {"-5": "BAD", "3": "GOOD"}
    assert row["extra"] == '{"a":"x","b":[1.0,null]}'
    assert (row["label"], row["took"], row["mask"]) == (
        "l",
        {"seconds": 1, "nanos": 500000000},
        {"paths": ["a.b", "c"]},
    )
    assert row[REST] is None


def test_unknown_fields_go_to_rest() -> None:
    nanos = row_of("nanoseconds", at="2024-05-01T12:00:00.123456789Z")
    assert nanos["at"] == datetime(2024, 5, 1, 12, 0, 0, 123456, UTC)
    assert json.loads(nanos[REST]) == {"at": "2024-05-01T12:00:00.123456789Z"}
    raw = bytes.fromhex("6063" + "f83e05" + "f83e06" + "fa3e0161" + "b2010b" + "0a0361626310019a3f0101")
    row = ORDER.read(Payload(raw)).row
    assert row is not None
    assert row["kind"] is None
    assert json.loads(row[REST]) == {"kind": 99, "1007": [{"varint": 5}, {"varint": 6}, {"bytes": "YQ=="}],
                                     "line": {"1011": [{"bytes": "AQ=="}]}}  # fmt: skip


def test_extensions_go_to_rest() -> None:
    schema = SCHEMAS["extended"]
    raw = bytes.fromhex("0a0161" + "a206026869" + "a80602")
    row = schema.read(Payload(raw)).row
    assert row is not None
    assert json.loads(row[REST]) == {"[remark]": "hi", "[seen]": ["FAST"]}


def test_recursive_message_is_json_text() -> None:
    message = json_format.ParseDict(
        {"tree": {"name": "a", "children": [{"size": "NaN", "raw": "AP8="}]}}, ORDER.class_()
    )
    row = ORDER.read(Payload(message.SerializeToString())).row
    assert row is not None
    assert row["tree"]["children"] == ['{"size":"NaN","raw":"AP8="}']


BAD = {
    "0a": ("undecodable", "payload-syntax", "payload#/id", "the payload ends inside an integer (byte 1)"),
    "0a05aa": ("undecodable", "payload-syntax", "payload#/id", "a length of 5, but 1 bytes are left (byte 1)"),
    "0a01ff": ("undecodable", "payload-syntax", "payload#/id", "a string is not valid UTF-8 (byte 2)"),
    "b201020aff": ("undecodable", "payload-syntax", "payload#/line/sku", "the payload ends inside an integer (byte 4)"),
    "00": ("undecodable", "payload-syntax", "payload#", "0 is not a valid field number (byte 0)"),
    "0f": ("undecodable", "payload-syntax", "payload#/id", "invalid wire type 7 (byte 1)"),
    "0c": ("undecodable", "payload-syntax", "payload#", "group 1 ends but did not begin (byte 0)"),
    "10ffffffffffffffffffff01": (
        "undecodable", "payload-syntax", "payload#/a", "an integer has more than 64 bits (byte 1)"),
    "0805": ("invalid-payload", "payload-invalid", "payload#/id", "field 1 is encoded as varint"),
    "b201020805": ("invalid-payload", "payload-invalid", "payload#/line/sku", "field 1 is encoded as varint"),
}  # fmt: skip


@pytest.mark.parametrize("raw", BAD)
def test_malformed_bytes_are_reported_with_place(raw: str) -> None:
    outcome, code, slot, message = BAD[raw]
    reading = ORDER.read(Payload(bytes.fromhex(raw)))
    (problem,) = reading.problems
    assert (reading.outcome, problem.code) == (outcome, code)
    assert (problem.slot, problem.message) == (slot, message)


def test_missing_required_fields_are_reported() -> None:
    schema = SCHEMAS["proto2"]
    reading = schema.read(Payload(bytes.fromhex("2b2c" + "3200")))
    assert reading.outcome == "invalid-payload"
    assert [(problem.slot, problem.expected) for problem in reading.problems] == [
        ("payload#/detail", {"required": "code"}),
        ("payload#", {"required": "id"}),
        ("payload#/inner", {"required": "id"}),
    ]


def test_unknown_value_of_closed_enum_goes_to_rest() -> None:
    row = SCHEMAS["proto2"].read(Payload(bytes.fromhex("0a0161" + "1809"))).row
    assert row is not None
    assert (row["mode"], json.loads(row[REST])) == (None, {"3": [{"varint": 9}]})
    assert SCHEMAS["proto2"].read(Payload(b"\x0a\x01\xff")).outcome == "undecodable"


BAD_JSON = {
    '{"id": 5}': "payload#/id",
    '{"surprise": 1}': "payload#",
    '{"line": {"part": {"weight": "x"}}}': "payload#/line/part/weight",
    '{"more": [{}, {"count": 1.5}]}': "payload#/more/1/count",
    '{"kinds": ["GOOD", "UGLY"]}': "payload#/kinds/1",
    '{"lines": {"a": {"count": true}}}': "payload#/lines/a/count",
    '{"at": "yesterday"}': "payload#/at",
    "[1]": "payload#",
    "5": "payload#",
    "null": "payload#",
}


@pytest.mark.parametrize("text", BAD_JSON)
def test_invalid_json_is_reported_with_place(text: str) -> None:
    reading = ORDER.read(Payload(text.encode(), content_type="application/json; charset=utf-8"))
    assert reading.outcome == "invalid-payload"
    assert [(problem.code, problem.slot) for problem in reading.problems] == [("payload-invalid", BAD_JSON[text])]


NO_JSON = ("packed", "took", "any_value", "at", "times", "mask", "extra", "list", "kind", "other")


@pytest.mark.parametrize("content_type", [None, "application/x-protobuf", "application/json"])
@pytest.mark.parametrize("name", ["proto3", "proto2", "tree", "edition"])
def test_written_message_is_read_back(name: str, content_type: str | None) -> None:
    schema, random = SCHEMAS[name], Random(7)
    for _ in range(40):
        message = filled(schema.class_(), random)
        for odd in NO_JSON if content_type == "application/json" else ():
            if odd in type(message).DESCRIPTOR.fields_by_name:
                message.ClearField(odd)
        reading = schema.read(Payload(message.SerializeToString()))
        encoded = schema.encode(reading.value, content_type)
        assert encoded.payload is not None, (encoded.problems, reading.value)
        assert repr(schema.read(encoded.payload).row) == repr(reading.row)


PARTS: dict[str, tuple[dict[str, Any], str]] = {
    "a duration": ({"took": {"seconds": 1, "nanos": "x"}}, "payload#/took"),
    "too many seconds": ({"took": {"seconds": 2**70}}, "payload#/took"),
    "an Any": ({"packed": {"type_url": 5}}, "payload#/packed"),
    "bytes of an Any": ({"packed": {"value": "!"}}, "payload#/packed"),
    "paths": ({"mask": {"paths": "ab"}}, "payload#/mask"),
    "in a list": ({"times": ["2024-05-01T12:00:00Z", {"seconds": 1.5}]}, "payload#/times/1"),
    "a key of a map": ({"by_number": {"x": "GOOD"}}, "payload#/by_number/x"),
}


@pytest.mark.parametrize("name", PARTS)
def test_invalid_well_known_message_is_rejected(name: str) -> None:
    value, slot = PARTS[name]
    (problem,) = ORDER.encode(value).problems
    assert (problem.code, problem.slot) == ("payload-invalid", slot)
    assert problem.message not in (None, "does not fit")


def test_map_keys_are_written_in_order() -> None:
    """The library's own order changes between processes."""
    keys = [f"{n:03}" for n in range(100)]
    shuffled = Random(1).sample(keys, len(keys))
    value = {
        "id": "1",
        "lines": {key: {"count": 1} for key in shuffled},
        "by_number": {str(int(key)): "GOOD" for key in shuffled},
        "extra": {"inner": dict.fromkeys(shuffled, 1)},
        "trees": [{"name": "a", "size": 2.0}],
    }
    payload = ORDER.encode(value, "application/json").payload
    assert payload is not None
    assert isinstance(payload.raw, bytes)
    written = json.loads(payload.raw)
    assert list(written) == ["id", "lines", "by_number", "extra", "trees"]
    assert list(written["lines"]) == list(written["extra"]["inner"]) == keys
    assert list(written["by_number"]) == sorted(str(int(key)) for key in keys)


def test_value_without_json_form_is_rejected() -> None:
    value = {"packed": {"type_url": "x/y", "value": b"\xff"}}
    assert ORDER.encode(value).payload is not None
    assert [problem.code for problem in ORDER.encode(value, "application/json").problems] == ["payload-invalid"]


def test_unwritable_value_is_rejected() -> None:
    assert [problem.slot for problem in ORDER.encode({"line": {"count": "many"}}).problems] == ["payload#/line/count"]
    assert [problem.expected for problem in SCHEMAS["proto2"].encode({"level": 1}).problems] == [{"required": "id"}]
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC)
    encoded = ORDER.encode({"at": moment, "j": b"\xff", "d": Decimal(2**64 - 1)})
    assert encoded.payload is not None
    row = ORDER.read(encoded.payload).row
    assert row is not None
    assert (row["at"], row["j"], row["d"]) == (moment, b"\xff", Decimal(2**64 - 1))


def test_comments_become_descriptions() -> None:
    docs = {field.name: field.doc for field in ORDER.fields}
    assert (docs["id"], docs["note"]) == ("The number on the bill.", None)


# -- schemas ----------------------------------------------------------------------------------------------------------

ONE = 'syntax = "proto3"; package p; message One { string x = 1; }'
TWO = 'syntax = "proto3"; package p; message One { Two two = 1; } '
TWO += "message Two { string y = 1; message In { int32 z = 1; } }"


@pytest.mark.parametrize(
    ("text", "part", "columns"),
    [(ONE, None, ["x"]), (ONE, "One", ["x"]), (ONE, "p.One", ["x"]), (ONE, ".p.One", ["x"]), (ONE, "/One", ["x"]),
     (TWO, None, ["two"]), (TWO, "Two", ["y"]), (TWO, "Two.In", ["z"]), (TWO, "In", ["z"]), (TWO, "p.Two.In", ["z"]),
     ("message M { float x = 1; }", None, ["x"]), ("\ufeff" + ONE, None, ["x"])],
)  # fmt: skip
def test_fragment_selects_message(text: str, part: str | None, columns: list[str]) -> None:
    assert [field.name for field in compiled(text, part).fields] == columns


NOT_COMPILABLE = {
    "": "no message",
    "message": "Expected message name",
    'syntax = "proto3"; message M { float x = 1; } }': 'schema.proto:1:47: Unmatched "}"',
    'syntax = "proto3"; message M { Nowhere x = 1; }': '"Nowhere" is not defined',
    'syntax = "proto3"; import "nowhere.proto"; message M {}': "nowhere.proto: File not found",
    'syntax = "proto3"; import "../../../../etc/passwd"; message M {}': "etc/passwd",
    'syntax = "proto3"; import "/etc/passwd"; message M {}': "etc/passwd",
    'syntax = "proto9"; message M {}': "Unrecognized syntax",
    'syntax = "proto3"; enum E { A = 0; }': "no message",
}


@pytest.mark.parametrize("text", NOT_COMPILABLE)
def test_invalid_schema_is_rejected(text: str) -> None:
    schema = compile_schema("Protobuf/3", text)
    assert isinstance(schema, Unsupported)
    assert [problem.code for problem in schema.problems] == ["schema-not-compilable"]
    assert NOT_COMPILABLE[text] in str(schema.problems[0].message)
    assert "/tmp" not in str(schema.problems[0].message)
    assert schema.read(Payload(b"")).outcome == "unsupported"


def test_unnamed_message_is_reported() -> None:
    schema = compile_schema("Protobuf/3", "message A {} message B {}")
    assert isinstance(schema, Unsupported)
    assert [problem.code for problem in schema.problems] == ["unnamed-type"]
    assert isinstance(compile_schema("Protobuf/3", ONE, "Three"), Unsupported)
    assert isinstance(compile_schema("Protobuf/3", {"a": 1}), Unsupported)


def registry(**schemas: str) -> dict[str, Any]:
    resources = {name: {"versions": {"1": {"format": "Protobuf/3", "schema": text}}} for name, text in schemas.items()}
    return {"schemagroups": {"shop": {"schemas": resources}}}


MONEY = 'syntax = "proto3"; package money; message Money { int64 units = 1; string currency = 2; }'


@pytest.mark.parametrize(
    ("path", "schemaid"),
    [("money.proto", "money.proto"), ("money.proto", "money"), ("common/money.proto", "common.money"),
     ("common/money.proto", "money"), ("/schemagroups/shop/schemas/money", "other"), ("Money.proto", "money")],
)  # fmt: skip
def test_protobuf_import_is_a_catalogue_document(path: str, schemaid: str) -> None:
    bill = f'syntax = "proto3"; import "{path}"; message Bill {{ money.Money total = 1; }}'
    index = SchemaIndex(registry(bill=bill, **{schemaid: MONEY}))
    schema = index.find("Protobuf/3", dataschemauri="/schemagroups/shop/schemas/bill")
    if path.startswith("/"):
        assert isinstance(schema, Unsupported)  # protoc does not support absolute paths
    else:
        assert str(schema.fields[0].arrow_type) == "struct<units: int64, currency: string>"
        assert list(index.problems()) == []
    inline = index.find("Protobuf/3", dataschema=bill)
    assert isinstance(inline, Unsupported) == isinstance(schema, Unsupported)


def test_nested_imports_are_resolved_and_cycles_rejected() -> None:
    a = 'import "b.proto"; message A { B b = 1; }'
    b = 'import "c.proto"; message B { C c = 1; }'
    assert not isinstance(
        SchemaIndex(registry(a=a, b=b, c="message C { int32 x = 1; }")).find(
            "Proto/3", dataschemauri="/schemagroups/shop/schemas/a"
        ),
        Unsupported,
    )
    circle = SchemaIndex(registry(a=a, b=b, c='import "a.proto"; message C { A a = 1; }'))
    assert "recursively" in str(circle.find("Proto/3", dataschemauri="/schemagroups/shop/schemas/a").problems)  # type: ignore[union-attr]


def test_document_of_several_messages_is_not_reported() -> None:
    index = SchemaIndex(registry(all="message A { int32 x = 1; } message B { int32 y = 1; }"))
    assert list(index.problems()) == []
    for reference in ("/schemagroups/shop/schemas/all:B", "#/schemagroups/shop/schemas/all/versions/1:B",
                      "/schemagroups/shop/schemas/all#B"):  # fmt: skip
        assert [field.name for field in index.find("Protobuf/3", dataschemauri=reference).fields] == ["y"]


# -- hostile ----------------------------------------------------------------------------------------------------------


def test_protobuf_payload_limits_are_enforced() -> None:
    schema = compile_schema(
        "Protobuf", EVERYTHING, "Tree", options=CompileOptions(limits=PayloadLimits(size=100, depth=3))
    )
    nested = [b""]
    for _ in range(150):
        nested.append(b"\x1a" + _varint(len(nested[-1])) + nested[-1])
    assert schema.read(Payload(nested[2])).outcome is None
    assert schema.read(Payload(nested[3])).outcome == "oversized"
    assert schema.read(Payload(bytes(101))).outcome == "oversized"
    whole = SCHEMAS["tree"]
    assert whole.read(Payload(nested[90])).outcome is None
    assert [problem.code for problem in whole.read(Payload(nested[140])).problems] == ["payload-too-deep"]
    column = whole.read_column(pa.array([nested[90], nested[140]] * 10))
    assert column.settled.tolist() == [True, False] * 10


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + _varint(number >> 7)


DOUBLING = 'syntax = "proto3";' + "".join(
    f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(30)
) + "message M30 { string x = 1; }"  # fmt: skip
TRAPS = {
    "2**30 columns": (DOUBLING, "M0"),
    "10,000 fields": ("message M {" + "".join(f"int32 f{n} = {n + 1};" for n in range(10_000)) + "}", None),
    "nested 1,000 deep": ("message M {" * 1000 + "}" * 1000, None),
    "a message of itself": ("message M { M m = 1; }", "M"),
    "brackets": ("message M { option (x) = " + "{ a " * 5000, None),
    "a long number": ("message M { int32 x = " + "9" * 100_000 + "; }", None),
    "a long name": (f"message {'M' * 100_000} {{ int32 x = 1; }}", None),
    "many imports": ("".join(f'import "x{n}.proto";\n' for n in range(20_000)) + "message M {}", None),
    "blank lines": ("\n" * 1_000_000 + "message M { int32 x = 1; }", None),
    "too long": ("// " + "x" * 5_000_000 + "\nmessage M { int32 x = 1; }", None),
    "bytes that are no text": ("message M { int32 \ud800 = 1; }", None),
    "zeros": ("\0" * 1000, None),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_hostile_protobuf_schema_is_rejected_in_bounded_time(trap: str) -> None:
    text, part = TRAPS[trap]
    schema = compile_schema("Protobuf/3", text, part)
    for raw in (b"", b"\x0a" * 50, bytes(50), b"\x0a\x02\x0a\x00"):
        assert schema.read(Payload(raw)).outcome in (None, "undecodable", "invalid-payload", "unsupported", "oversized")
    schema.read_column(pa.array([b""] * 20, pa.binary()))


def test_schemas_do_not_share_descriptors() -> None:
    """Two Versions of one message side by side, with the library's own types untouched."""
    first, second = compiled(ONE), compiled(ONE.replace("string x", "int32 x"))
    assert [str(schema.fields[0].arrow_type) for schema in (first, second)] == ["string", "int32"]
    assert message_factory.GetMessageClass(first.descriptor) is not message_factory.GetMessageClass(second.descriptor)


def _named_in_a_child(name: str, answers: Any) -> None:
    answers.put(compiled(ONE.replace("string x", f"string {name}")).fields[0].name)


def test_threads_and_forks_compile_concurrently() -> None:
    compiled(ONE)
    with ThreadPoolExecutor(4) as pool:
        names = [f"y{n}" for n in range(12)]
        assert (
            list(pool.map(lambda name: compiled(ONE.replace("string x", f"string {name}")).fields[0].name, names))
            == names
        )
    context = get_context("fork")
    answers = context.Queue()
    children = [context.Process(target=_named_in_a_child, args=(f"z{n}", answers)) for n in range(2)]
    for child in children:
        child.start()
    assert sorted(answers.get(timeout=60) for _ in children) == ["z0", "z1"]
    for child in children:
        child.join(timeout=60)


def test_dead_protoc_is_restarted() -> None:
    compiled(ONE)
    assert protoc.PROCESS.running is not None
    protoc.PROCESS.running.kill()
    protoc.PROCESS.running.wait()
    assert [field.name for field in compiled(ONE).fields] == ["x"]


def test_busy_protoc_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only that schema fails."""
    monkeypatch.setattr(protoc, "TIMEOUT", 0)
    schema = compile_schema("Protobuf/3", EVERYTHING, "Order")
    assert isinstance(schema, Unsupported)
    assert "longer than 0 seconds" in str(schema.problems[0].message)
    monkeypatch.undo()
    assert [field.name for field in compiled(ONE).fields] == ["x"]
