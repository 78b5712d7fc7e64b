"""The tables of a registry, which are the same in SQLite and PostgreSQL.

Members of entities are stored as JSON text (`wirebook.core.entities.rows`). Values to look up, sort or compare have
columns as well. Text keys are folded in Python and compare by code point.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    false,
    text,
)
from sqlalchemy.types import TypeEngine

METADATA: Final = MetaData()
KEY: Final[TypeEngine[int]] = BigInteger().with_variant(Integer, "sqlite")
"""The type of row keys: SQLite generates only INTEGER keys."""


def _text(name: str, *, nullable: bool = False, default: str | None = None) -> Column[str]:
    kind = Text().with_variant(Text(collation="C"), "postgresql")
    return Column(name, kind, nullable=nullable, server_default=default)


def _parent(table: str) -> Column[int]:
    return Column("parent", KEY, ForeignKey(f"{table}.key", ondelete="CASCADE"), nullable=False)


def _number(name: str, default: int = 0) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=str(default))


def _some(name: str, column: str) -> Index:
    """Return a partial index of the rows that have a value, for columns that are mostly null."""
    there = text(f"{column} IS NOT NULL")
    return Index(name, column, sqlite_where=there, postgresql_where=there)


REGISTRY: Final = Table(
    "registry",
    METADATA,
    Column("key", KEY, primary_key=True),
    _text("registryid"),
    _text("members"),
    _number("revision"),
    _number("settings"),
    _number("events"),
    _number("lastkey"),
    Column("xrefs", Boolean, nullable=False, server_default=false()),
)
"""One row, which every write changes.

`revision` is the number of the last write; other rows have the `revision` of the write that stored them. `settings` is
the number of the last change of model or capabilities, `events` that of the last row in the outbox. `lastkey` is the
last key of a Group, Resource or Version. `xrefs`: the registry has or had a cross-reference.
"""

SETTINGS: Final = Table(
    "settings",
    METADATA,
    Column("key", KEY, ForeignKey("registry.key"), primary_key=True),
    _text("modelsource"),
    _text("model"),
    _text("capabilities"),
)
"""One large row. `model` is the full model with the homes of imported types."""

GROUPS: Final = Table(
    "groups",
    METADATA,
    Column("key", KEY, primary_key=True),
    _text("type"),
    _text("id"),
    _text("folded"),
    _text("members"),
    _number("epoch"),
    _text("createdat"),
    _text("modifiedat"),
    _text("name", nullable=True),
    _text("counts", default=""),
    _number("revision"),
    Index("groups_id", "type", "folded", unique=True),
    Index("groups_name", "type", "name"),
)
"""`counts` has the number of Resources by type, as members of a JSON object. It is stored here because adding or
deleting a Resource updates the row of its Group anyway.
"""

RESOURCES: Final = Table(
    "resources",
    METADATA,
    Column("key", KEY, primary_key=True),
    _parent("groups"),
    _text("type"),
    _text("id"),
    _text("folded"),
    _text("xid"),
    _text("meta"),
    _number("epoch"),
    _text("createdat"),
    _text("defaultid"),
    Column("sticky", Boolean, nullable=False),
    _text("xref", nullable=True),
    _number("counter"),
    _number("count"),
    _number("revision"),
    Index("resources_id", "parent", "type", "folded", unique=True),
    Index("resources_xid", "xid", unique=True),
    _some("resources_xref", "xref"),
)
VERSIONS: Final = Table(
    "versions",
    METADATA,
    Column("key", KEY, primary_key=True),
    _parent("resources"),
    _text("id"),
    _text("folded"),
    _text("head"),
    _text("tail"),
    _number("epoch"),
    _text("createdat"),
    _text("modifiedat"),
    _text("name", nullable=True),
    _text("format", nullable=True),
    _text("contenttype", nullable=True),
    Column("isdefault", Boolean, nullable=False),
    Column("hasdocument", Boolean, nullable=False),
    _number("revision"),
    Index("versions_id", "parent", "folded", unique=True),
    Index("versions_name", "name"),
    _some("versions_format", "format"),
    Index("versions_createdat", "createdat"),
    Index("versions_modifiedat", "modifiedat"),
)
DOCUMENTS: Final = Table(
    "documents",
    METADATA,
    Column("key", KEY, ForeignKey("versions.key", ondelete="CASCADE"), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
LABELS: Final = Table(
    "labels",
    METADATA,
    Column("kind", Integer, primary_key=True),
    Column("owner", KEY, primary_key=True),
    Column("name", Text().with_variant(Text(collation="C"), "postgresql"), primary_key=True),
    _text("value"),
    Index("labels_value", "kind", "name", "value"),
    sqlite_with_rowid=False,
)
"""Labels of Groups, Versions and metas, folded, for filters."""

EVENTS: Final = Table(
    "events",
    METADATA,
    Column("key", KEY, primary_key=True, autoincrement=False),
    _text("time"),
    _text("correlation"),
    _text("body"),
)
"""The outbox: one row per request that changed something, numbered in commit order."""
SINKS: Final = Table(
    "sinks",
    METADATA,
    Column("name", Text().with_variant(Text(collation="C"), "postgresql"), primary_key=True),
    _number("number"),
    _number("place"),
)
"""The progress of each sink: the last event that it received is at position `place` of row `number` of the outbox."""
