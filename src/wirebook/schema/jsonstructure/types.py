"""The primitive types of JSON Structure: their JSON values and their columns.

Each type has a small JSON Schema. Integers use draft-04, the only draft in which `1.0` is not an integer, as in JSON
Structure.

Spec: draft-vasters-json-structure-core, "JSON Primitive Types", "Extended Primitive Types".
Reading: `uri` is an RFC 3986 reference, relative or absolute; `time` may have an offset; `jsonpointer` may be a URI
fragment (`#/a`); the fraction of a `decimal` may be omitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from wirebook.schema.digits import integers_between
from wirebook.schema.layout import ScalarColumn
from wirebook.schema.scalar_columns import (
    BASE64,
    BOOLEAN,
    DATE,
    INT8,
    INT16,
    INT32,
    JSON,
    NUMBER,
    TEXT,
    TIMESTAMP,
    decimal_text,
    integer,
    integer_text,
)
from wirebook.text.json import is_json_integer

URN = "urn:json-structure:"
DRAFT_04, DRAFT_07 = "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"

_TIME = "T([0-9]+H([0-9]+M)?([0-9]+(\\.[0-9]+)?S)?|[0-9]+M([0-9]+(\\.[0-9]+)?S)?|[0-9]+(\\.[0-9]+)?S)"
_DAYS = "([0-9]+Y([0-9]+M)?([0-9]+D)?|[0-9]+M([0-9]+D)?|[0-9]+D)"
DURATION = f"^P([0-9]+W|{_DAYS}({_TIME})?|{_TIME})$"
CLOCK = "^([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?$"
DECIMAL = "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$"
UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
POINTER = "^#?(/([^~/]|~[01])*)*$"
BASE64_TEXT = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
MAX_FLOAT = 3.4028235677973362e38
"""The largest number that rounds to a finite 32-bit float."""


@dataclass(frozen=True, eq=False)
class Primitive:
    """A primitive type.

    Shape: `schema` is the JSON Schema of its values; `column` holds them; `bounds` is the range of an integer that is
    written as a string, None for other types.
    """

    schema: dict[str, Any]
    column: ScalarColumn
    bounds: tuple[int, int] | None = None


def _number(low: int, high: int, column: ScalarColumn) -> Primitive:
    return Primitive({"$schema": DRAFT_04, "type": "integer", "minimum": low, "maximum": high}, column)


def _digits(low: int, high: int, arrow: pa.DataType) -> Primitive:
    schema = _schema("string", pattern=f"^{integers_between(low, high)}$")
    return Primitive(schema, integer_text(low, high, arrow), (low, high))


def _schema(type_: str, **keywords: Any) -> dict[str, Any]:
    return {"$schema": DRAFT_07, "type": type_, **keywords}


WIDE = pa.decimal128(38, 0)
INTEGER = _number(-(2**31), 2**31 - 1, INT32)
PRIMITIVES: dict[str, Primitive] = {
    "string": Primitive(_schema("string"), TEXT),
    "number": Primitive(_schema("number"), NUMBER),
    "boolean": Primitive(_schema("boolean"), BOOLEAN),
    "null": Primitive(_schema("null"), JSON),
    "int8": _number(-(2**7), 2**7 - 1, INT8),
    "uint8": _number(0, 2**8 - 1, INT16),
    "int16": _number(-(2**15), 2**15 - 1, INT16),
    "uint16": _number(0, 2**16 - 1, INT32),
    "int32": INTEGER,
    "integer": INTEGER,
    "uint32": _number(0, 2**32 - 1, integer(0, 2**32 - 1, pa.int64())),
    "int64": _digits(-(2**63), 2**63 - 1, pa.int64()),
    "uint64": _digits(0, 2**64 - 1, pa.decimal128(20, 0)),
    "int128": _digits(-(2**127), 2**127 - 1, WIDE),
    "uint128": _digits(0, 2**128 - 1, WIDE),
    "float8": Primitive(_schema("number"), NUMBER),
    "float": Primitive(_schema("number", minimum=-MAX_FLOAT, maximum=MAX_FLOAT), NUMBER),
    "double": Primitive(_schema("number"), NUMBER),
    "decimal": Primitive(_schema("string", pattern=DECIMAL), decimal_text(34, 7)),
    "date": Primitive(_schema("string", format="date"), DATE),
    "datetime": Primitive(_schema("string", format="date-time"), TIMESTAMP),
    "time": Primitive(_schema("string", pattern=CLOCK), TEXT),
    "duration": Primitive(_schema("string", pattern=DURATION), TEXT),
    "uuid": Primitive(_schema("string", pattern=UUID), TEXT),
    "uri": Primitive(_schema("string", format="uri-reference"), TEXT),
    "binary": Primitive(_schema("string", pattern=BASE64_TEXT), BASE64),
    "jsonpointer": Primitive(_schema("string", pattern=POINTER), TEXT),
}
NUMBERS = frozenset(("number", "float8", "float", "double")) | {
    name for name, primitive in PRIMITIVES.items() if primitive.schema["type"] == "integer"
}
NUMBER_TEXTS = frozenset(("decimal",)) | {name for name, primitive in PRIMITIVES.items() if primitive.bounds}


def scalar_column(node: Mapping[str, Any]) -> ScalarColumn:
    """Return the column of a primitive type, which depends on its `precision`, `scale` and `contentEncoding`."""
    type_ = node["type"]
    if type_ == "decimal" and ("precision" in node or "scale" in node):
        precision = node.get("precision", 34)
        scale = node.get("scale", min(7, precision) if is_json_integer(precision) else None)
        return decimal_text(precision, scale) if is_json_integer(precision) and is_json_integer(scale) else TEXT
    if type_ == "binary" and node.get("contentEncoding", "base64") != "base64":
        return TEXT
    return PRIMITIVES[type_].column
