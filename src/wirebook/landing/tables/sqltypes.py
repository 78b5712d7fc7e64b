"""Arrow types as SQL types of Spark and DuckDB, and SQL expressions that decode staged rows. All functions are pure.

Spec: docs/types.md; docs/staging.md#views
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

__all__ = ["duck_members", "duck_name", "duck_text", "spark_ddl", "spark_members", "spark_name", "spark_text"]

Kinds = tuple[tuple[Callable[[pa.DataType], bool], str], ...]
SPARK: Kinds = (
    (pa.types.is_int8, "TINYINT"),
    (pa.types.is_int16, "SMALLINT"),
    (pa.types.is_int32, "INT"),
    (pa.types.is_int64, "BIGINT"),
    (pa.types.is_float32, "FLOAT"),
    (pa.types.is_float64, "DOUBLE"),
    (pa.types.is_boolean, "BOOLEAN"),
    (pa.types.is_date, "DATE"),
    (pa.types.is_binary, "BINARY"),
    (pa.types.is_large_binary, "BINARY"),
    (pa.types.is_string, "STRING"),
    (pa.types.is_large_string, "STRING"),
)
DUCK: dict[str, str] = {"INT": "INTEGER", "STRING": "VARCHAR", "BINARY": "VARCHAR"}
"""DuckDB's names for types that have another name in Spark. Binary values are base64 text in staged rows."""


def _scalar(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return next(name for is_kind, name in SPARK if is_kind(type_))


# -- Spark -----------------------------------------------------------------------------------------------------------


def spark_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def spark_text(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def spark_ddl(fields: Iterable[pa.Field]) -> str:
    """Columns with types, for `CREATE TABLE`, `DataFrameReader.schema` and `from_json`."""
    return ", ".join(f"{spark_name(field.name)} {_spark_type(field.type)}" for field in fields)


def _spark_type(type_: pa.DataType) -> str:
    if pa.types.is_struct(type_):
        members = ", ".join(f"{spark_name(member.name)}: {_spark_type(member.type)}" for member in type_)
        return f"STRUCT<{members}>"
    if pa.types.is_map(type_):
        return f"MAP<{_spark_type(type_.key_type)}, {_spark_type(type_.item_type)}>"
    if pa.types.is_list(type_):
        return f"ARRAY<{_spark_type(type_.value_type)}>"
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP" if type_.tz else "TIMESTAMP_NTZ"
    return _scalar(type_)


def spark_members(fields: list[pa.Field], text: str) -> str:
    """An expression that parses a JSON text as a struct; fails on invalid text."""
    return f"from_json({text}, {spark_text(spark_ddl(fields))}, map('mode', 'FAILFAST'))"


# -- DuckDB ----------------------------------------------------------------------------------------------------------


def duck_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def duck_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def duck_members(fields: list[pa.Field], text: str) -> str:
    """An expression that parses a JSON text as a struct, in which binary values are still base64."""
    structure = {field.name: _duck_structure(field.type) for field in fields}
    return f"json_transform({text}, {duck_text(json.dumps(structure))})"


def duck_value(expression: str, type_: pa.DataType, depth: int = 0) -> str:
    """An expression that decodes the binary values in a result of `duck_members`."""
    if not _has_binary(type_):
        return expression
    if pa.types.is_struct(type_):
        values = {field.name: duck_value(f"{expression}.{duck_name(field.name)}", field.type, depth) for field in type_}
        members = ", ".join(f"{duck_name(name)} := {value}" for name, value in values.items())
        return f"CASE WHEN {expression} IS NOT NULL THEN struct_pack({members}) END"
    member = f"x{depth}"
    if pa.types.is_list(type_):
        return f"[{duck_value(member, type_.value_type, depth + 1)} FOR {member} IN {expression}]"
    if pa.types.is_map(type_):
        value = duck_value(f"{member}.value", type_.item_type, depth + 1)
        entries = f"[{{'key': {member}.key, 'value': {value}}} FOR {member} IN map_entries({expression})]"
        return f"CASE WHEN {expression} IS NOT NULL THEN map_from_entries({entries}) END"
    return f"from_base64({expression})"


def _has_binary(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return any(_has_binary(member.type) for member in type_)
    if pa.types.is_map(type_):
        return _has_binary(type_.item_type)
    if pa.types.is_list(type_):
        return _has_binary(type_.value_type)
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _duck_structure(type_: pa.DataType) -> Any:
    """The structure of a column for `json_transform`."""
    if pa.types.is_struct(type_):
        return {member.name: _duck_structure(member.type) for member in type_}
    if pa.types.is_list(type_):
        return [_duck_structure(type_.value_type)]
    return _duck_type(type_)


def _duck_type(type_: pa.DataType) -> str:
    if pa.types.is_struct(type_):
        members = ", ".join(f"{duck_name(member.name)} {_duck_type(member.type)}" for member in type_)
        return f"STRUCT({members})"
    if pa.types.is_map(type_):
        return f"MAP({_duck_type(type_.key_type)}, {_duck_type(type_.item_type)})"
    if pa.types.is_list(type_):
        return f"{_duck_type(type_.value_type)}[]"
    if pa.types.is_timestamp(type_):
        return "TIMESTAMPTZ" if type_.tz else "TIMESTAMP"
    name = _scalar(type_)
    return DUCK.get(name, name)
