"""The layout of typed tables: the columns of a definition and their types.

The order of columns is: provenance ``_...``, envelope ``ce_...``, placeholders ``ctx_...``, then the fields of the
payload by name.

Spec: docs/land.md#the-target-folder; docs/types.md for payload types.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import pyarrow as pa

from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.slots import ATTRIBUTES, ENVELOPE
from wirebook.landing.tables.comments import OWN, comment_text
from wirebook.schema import CompiledSchema
from wirebook.schema.layout import REST

DEAD_LETTERS = "dead_letters"
RESOLVED = "resolved"
REPEATED = "repeated"
STAGED = "staged"
NO_DEFINITION = (DEAD_LETTERS, REPEATED, RESOLVED, STAGED)
"""Tables that do not belong to a definition. No definition's table has such a name."""
INSTANT = pa.timestamp("us", tz="UTC")
PROVENANCE: dict[str, pa.DataType] = {
    "_file": pa.string(),
    "_line": pa.int64(),
    "_index": pa.int32(),
    "_received": INSTANT,
    "_endpoint": pa.string(),
    "_protocol": pa.string(),
    "_catalogue": pa.string(),
}
REASON = pa.struct({"code": pa.string(), "slot": pa.string(), "expected": pa.string(), "actual": pa.string()})
DEAD_LETTER_SCHEMA = pa.schema({
    "_file": pa.string(),
    "_line": pa.int64(),
    "_index": pa.int32(),
    "received": INSTANT,
    "protocol": pa.string(),
    "endpoint": pa.string(),
    "raw": pa.binary(),
    "outcome": pa.string(),
    "definition": pa.string(),
    "problems": pa.list_(REASON),
    "near": pa.list_(pa.struct({"definition": pa.string(), "problems": pa.list_(REASON)})),
    "_catalogue": pa.string(),
})  # fmt: skip

REPEATED_SCHEMA = pa.schema({
    "_file": pa.string(),
    "_line": pa.int64(),
    "_index": pa.int32(),
    "received": INSTANT,
    "source": pa.string(),
    "id": pa.string(),
    "definition": pa.string(),
    "table": pa.string(),
    "raw": pa.binary(),
    "_catalogue": pa.string(),
})  # fmt: skip
"""Events that had landed before: their position in the source, `source` and `id`, the table that already has them,
and the record."""

RESOLVED_SCHEMA = pa.schema({
    "_file": pa.string(),
    "_line": pa.int64(),
    "_index": pa.int32(),
    "table": pa.string(),
    "definition": pa.string(),
    "_catalogue": pa.string(),
})  # fmt: skip
"""Dead letters that landed in a replay: their position in the source, their table, and the catalogue."""


class OwnTable(NamedTuple):
    """A table without a definition: a description of its rows, and the comments of columns that no other table has."""

    contents: str
    comments: dict[str, str]


_RECORD: Final = {"received": OWN["_received"], "raw": "Record of the message, from which it can be read again"}
OWN_TABLES: Final = {
    DEAD_LETTERS: OwnTable(
        "messages that did not land",
        {
            **_RECORD,
            "protocol": OWN["_protocol"],
            "endpoint": OWN["_endpoint"],
            "outcome": "Kind of failure, such as unexpected or invalid-payload",
            "definition": "XID of the definition that the message matched",
            "problems": "Why the message did not land",
            "near": "The closest definitions, and why the message did not match them",
        },
    ),
    REPEATED: OwnTable(
        "events that had landed before",
        {
            **_RECORD,
            "source": "CloudEvents attribute 'source'",
            "id": "CloudEvents attribute 'id'",
            "definition": "XID of the definition that the event matched",
            "table": "Table that has the event already",
        },
    ),
    RESOLVED: OwnTable(
        "dead letters that have landed since",
        {
            "table": "Table in which the message has landed",
            "definition": "XID of the definition that the message matched",
        },
    ),
    STAGED: OwnTable(
        "definitions without a table of their own",
        {
            "definition": "XID of the definition of the row",
            "table": "Table to which the row belongs",
            "row": "Columns of that table which are missing here, as JSON",
        },
    ),
}

# CloudEvents attributes that every table of events has; `specversion` is always 1.0.
CORE_ATTRIBUTES = tuple(name for name in ATTRIBUTES if name != "specversion")
STAGED_SCHEMA = pa.schema(
    {
        **PROVENANCE,
        "definition": pa.string(),
        "table": pa.string(),
        **{f"ce_{name}": INSTANT if name == "time" else pa.string() for name in CORE_ATTRIBUTES},
        "row": pa.string(),
    }
)
"""Rows of tables that are too small for files of their own. `row` holds, as JSON text, the columns that are missing
here."""

ATTRIBUTE_TYPES: dict[str, pa.DataType] = {
    "integer": pa.int32(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": INSTANT,
    "binary": pa.binary(),
}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column. `source` is the origin of its value: (``provenance`` | ``attribute`` | ``binding`` | ``payload``,
    name). `description` is that of the payload's schema."""

    name: str
    type: pa.DataType
    source: tuple[str, str]
    description: str | None = None


@dataclass(frozen=True)
class TableLayout:
    """The columns of the table of a definition (an XID).

    Shape: with `has_schema`, the payload's fields are columns, and `_rest` holds values without a column; otherwise
    the payload is the binary column ``payload``.
    """

    definition: str
    columns: tuple[TableColumn, ...]
    has_schema: bool

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([(column.name, column.type) for column in self.columns])

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """The descriptions of columns in the payload's schema."""
        return {column.name: comment_text(column.description) for column in self.columns if column.description}

    @cached_property
    def attributes(self) -> tuple[TableColumn, ...]:
        return tuple(column for column in self.columns if column.source[0] == "attribute")


def layout_key(definition: Definition) -> tuple[Any, ...]:
    """Everything that the columns of a definition depend on, except its schema. Definitions with equal keys and the
    same schema share their columns."""
    extensions = (
        tuple((c.slot.name, c.type) for c in definition.constraints if c.slot.section == ENVELOPE)
        if definition.is_cloudevent
        else None
    )
    return extensions, definition.placeholders, definition.protocol in (None, "KAFKA")


def layout_of(definition: Definition, schema: CompiledSchema | None) -> TableLayout:
    """The table of `definition`, whose payload `schema` describes."""
    names = ColumnNames()
    provenance = (TableColumn(name, type_, ("provenance", name)) for name, type_ in PROVENANCE.items())
    bindings = (TableColumn(f"ctx_{name}", pa.string(), ("binding", name)) for name in definition.placeholders)
    columns = (*provenance, *_attributes(definition), *bindings, *_payload(definition, schema))
    unique = tuple(replace(column, name=names.unique(column.name)) for column in columns)
    return TableLayout(definition.xid, unique, schema is not None)


def _attributes(definition: Definition) -> Iterator[TableColumn]:
    """Core attributes, declared extensions, and ``ce_rest`` for values that have no column or do not fit it."""
    if not definition.is_cloudevent:
        return
    declared = {c.slot.name: c for c in definition.constraints if c.slot.section == ENVELOPE}
    extensions = [name for name in declared if name not in ATTRIBUTES]
    for name in (*CORE_ATTRIBUTES, *extensions):
        default = INSTANT if name == "time" else pa.string()
        type_ = ATTRIBUTE_TYPES.get(declared[name].type, default) if name in extensions else default
        yield TableColumn(f"ce_{name}", type_, ("attribute", name))
    yield TableColumn("ce_rest", pa.string(), ("attribute", ""))


def _payload(definition: Definition, schema: CompiledSchema | None) -> Iterator[TableColumn]:
    if schema is None:
        yield TableColumn("payload", pa.binary(), ("payload", ""))
        return
    for field in schema.fields:
        yield TableColumn(field.name, field.arrow_type, ("payload", field.name), field.doc)
    yield TableColumn(REST, pa.string(), ("payload", REST))
    if definition.protocol in (None, "KAFKA"):
        yield TableColumn("_tombstone", pa.bool_(), ("provenance", "_tombstone"))


class ColumnNames:
    """Assigns column names that are unique when case is ignored. The first column keeps its name."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, name: str) -> str:
        chosen = name if name.lower() not in self._taken else f"{name}_{_digest(name)[:6]}"
        while chosen.lower() in self._taken:
            chosen += "_"
        self._taken.add(chosen.lower())
        return chosen


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
