"""Checks that the columns of a DataFrame that hold messages have types that the capture readers can read.

Types are in the JSON form of Spark's schemas: a name such as ``long`` or ``decimal(10,2)``, or an object for arrays,
maps and structs. The type ``void``, which columns without any value have, is allowed everywhere.

Spec: docs/how-to/dataframes.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from wirebook.landing.sources.dataframes import CAPTURE_COLUMNS, VALUE, InputColumns, form_of
from wirebook.problems import Problem, WirebookError

__all__ = ["ColumnType", "check_types", "is_readable"]

MAX_TEXT: Final = 200
"""Maximum length of a type in an error message, in characters."""

STRING: Final = frozenset({"string", "varchar", "char"})
TEXT: Final = STRING | {"binary"}
INTEGER: Final = frozenset({"byte", "short", "integer", "long"})
INSTANT: Final = frozenset({"timestamp", "timestamp_ntz"})


class ColumnType(NamedTuple):
    """A type in the JSON form of Spark's schemas, and its SQL text."""

    json: Any
    text: str


@dataclass(frozen=True, slots=True)
class Content:
    """What a column holds.

    Shape: `fits` is whether it can be read from a type. `allowed` names the usual types. `cast` is the type to which
    hints suggest casting a scalar column; None if no cast helps.
    """

    fits: Callable[[Any], bool]
    allowed: str
    cast: str | None = "string"


# -- types ----------------------------------------------------------------------------------------------------------


def _is_one_of(*names: str) -> Callable[[Any], bool]:
    return lambda type_: _name(type_) in {"void", *names}


def _name(type_: Any) -> str:
    """The name of a type, without its parameters: those of ``varchar(3)`` or ``string collate UNICODE``."""
    match = re.match(r"\w+", type_ if isinstance(type_, str) else type_["type"])
    return match[0] if match else ""


_is_string, _is_text = _is_one_of(*STRING), _is_one_of(*TEXT)


def _is_bytes(type_: Any) -> bool:
    """Whether bytes can be read from a type. Timestamps are converted to RFC 3339 text."""
    return _is_one_of(*TEXT, *INSTANT)(type_) or _is_base64(type_)


def _is_base64(type_: Any) -> bool:
    """Whether a type is ``struct<base64: string>``, which represents bytes as in JSON records."""
    members = type_["fields"] if _name(type_) == "struct" else []
    return [member["name"] for member in members] == ["base64"] and _is_text(members[0]["type"])


def _is_pairs(type_: Any) -> bool:
    match _name(type_):
        case "map":
            return _is_text(type_["keyType"]) and _is_pair_value(type_["valueType"])
        case "array":
            return _is_pair(type_["elementType"])
    return _name(type_) == "void"


def _is_pair(type_: Any) -> bool:
    match _name(type_):
        case "array":
            return _is_string(type_["elementType"])
        case "struct":
            members = {field["name"].casefold(): field["type"] for field in reversed(type_["fields"])}
            name, value = members.get("name", members.get("key")), members.get("value")
            return None not in (name, value) and _is_text(name) and _is_pair_value(value)
    return _name(type_) == "void"


def _is_pair_value(type_: Any) -> bool:
    return _is_text(type_) or _is_base64(type_)


# -- contents -------------------------------------------------------------------------------------------------------

_TEXT: Final = Content(_is_text, "string or binary")
_BYTES: Final = Content(_is_bytes, "binary or string")
_TIME: Final = Content(_is_one_of(*INSTANT, *TEXT), "timestamp, timestamp_ntz, or string (RFC 3339)", "timestamp")
_INTEGER: Final = Content(_is_one_of(*INTEGER), "bigint, int, smallint or tinyint", "bigint")
_BOOLEAN: Final = Content(_is_one_of("boolean"), "boolean", "boolean")
_OBJECT: Final = Content(_is_text, "string (the JSON text of an object)")
_PAIRS: Final = Content(
    _is_pairs,
    "array<struct<key: string, value: binary>> (also 'name' for 'key', and string for binary), map<string, binary>, or "
    "array<array<string>>",
    cast=None,
)
CONTENTS: Final[Mapping[str, Content]] = {
    **dict.fromkeys(CAPTURE_COLUMNS, _TEXT),
    **dict.fromkeys(("body", "key", "value", "payload", "data"), _BYTES),
    **dict.fromkeys(("received", "timestamp"), _TIME),
    **dict.fromkeys(("status", "partition", "offset", "qos"), _INTEGER),
    "retain": _BOOLEAN,
    **dict.fromkeys(("headers", "user_properties"), _PAIRS),
    **dict.fromkeys(("properties", "header", "footer", "application-properties"), _OBJECT),
    **dict.fromkeys(("delivery-annotations", "message-annotations"), _OBJECT),
}
"""What each column of the forms ``capture`` and ``kafka`` holds."""


def _content(form: str, name: str) -> Content:
    return _TEXT if form == "lines" else CONTENTS[name]


def is_readable(form: str, name: str, type_: Any) -> bool:
    """Whether messages can be read from a column of this type. `form` and `name` are as in `InputColumns`."""
    return _content(form, name).fits(type_["sqlType"] if _name(type_) == "udt" else type_)


# -- the check ------------------------------------------------------------------------------------------------------


def check_types(inputs: InputColumns, types: Mapping[str, ColumnType]) -> None:
    """Check the types of the columns that hold messages. `types` maps the columns of the DataFrame to their types.

    Raises: frame-columns, with one problem per column
    """
    wrong = [name for name, theirs in inputs.names.items() if not is_readable(inputs.form, name, types[theirs].json)]
    if wrong:
        without = _without(inputs, wrong)
        raise WirebookError(*(_problem(inputs, name, types[inputs.names[name]], without) for name in wrong))


def _problem(inputs: InputColumns, name: str, type_: ColumnType, without: str | None) -> Problem:
    theirs, content = inputs.names[name], _content(inputs.form, name)
    text = type_.text if len(type_.text) <= MAX_TEXT else f"{type_.text[: MAX_TEXT - 1]}…"
    mapped = "" if theirs.casefold() == name else f", which 'columns' maps to '{name}',"
    message = f"column '{theirs}'{mapped} has the type {text}; allowed: {content.allowed}"
    mends = [_mend(inputs.form, name, theirs, type_.json), without]
    hint = ", or ".join(mend for mend in mends if mend)
    return Problem("frame-columns", message, expected=content.allowed, actual=type_.text, hint=hint)


def _mend(form: str, name: str, theirs: str, type_: Any) -> str:
    content = _content(form, name)
    if form == "kafka" and name == "headers":
        return "read the topic with .option('includeHeaders', 'true') and keep the type of its headers"
    if content.cast is None:
        return "build an array of structs with the members 'name' and 'value'"
    if _name(type_) not in ("struct", "map", "array", "variant"):
        return f"cast it, as in frame.withColumn('{theirs}', frame['{theirs}'].cast('{content.cast}'))"
    if content.cast == "string":
        return f"write it as JSON text, as in frame.withColumn('{theirs}', to_json('{theirs}'))"
    return f"map a column of type {content.cast}, as in columns={{'{name}': ...}}"


def _without(inputs: InputColumns, wrong: list[str]) -> str | None:
    """A hint on how to read messages without the columns of a wrong type; None if the other columns match no form."""
    kept = {name: theirs for name, theirs in inputs.names.items() if name not in wrong}
    form = form_of(kept)
    if form is None:
        return None
    kept = {VALUE: kept[VALUE]} if form == "lines" else kept
    return f"name the columns to read, and not this one, as in columns={kept}"
