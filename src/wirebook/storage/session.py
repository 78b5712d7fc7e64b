"""A database session: the operations of one request in one transaction.

Other packages read and write a registry only through sessions.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ARRAY, Connection, Dialect, Select, Text, any_, bindparam, func, insert, select
from sqlalchemy.exc import IntegrityError, OperationalError

from wirebook.core.entities.affected import AffectedEntities
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.rows import GroupRow, ResourceRow, VersionRow, format_members, parse_members
from wirebook.core.entities.state import Members, RegistryEntity, Snapshot
from wirebook.core.model.compiled import Model
from wirebook.core.model.target import RequestTarget
from wirebook.storage.load import Loader
from wirebook.storage.ordering import Ordering
from wirebook.storage.outbox import Outbox
from wirebook.storage.reading import (
    TARGET,
    ReadScope,
    SqlRowSource,
    resource_query,
    resource_row,
    version_query,
    version_row,
)
from wirebook.storage.registry import RegistryRow, clock, next_revision, read_registry
from wirebook.storage.search import Search
from wirebook.storage.statements import Statement, is_open
from wirebook.storage.store import ChangeWriter, OutboxEntry, store_settings
from wirebook.storage.streaming import close_results, limit_statements, within
from wirebook.storage.tables import GROUPS, REGISTRY, RESOURCES, SETTINGS, VERSIONS

Homes = Mapping[tuple[str, str], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class StoredSettings:
    """Model and capabilities in stored form: the `full` model, with the `homes` of imported types, and its source."""

    full: Mapping[str, Any]
    homes: Homes
    modelsource: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    revision: int = 0


class WriteConflict(Exception):
    """Another write came first, or the database is too busy. A retry may succeed."""


class RollbackRequired(Exception):
    """A write failed, and its whole transaction must be rolled back.

    The write had changed something, or its failure ended the transaction.
    """


class ReadFailure(Exception):
    """The database failed during a read."""


def conflict_errors(dialect: Dialect) -> tuple[type[Exception], ...]:
    """Return the exceptions that a write conflict raises, from SQLAlchemy or from the driver (see `Statement`)."""
    driver = dialect.loaded_dbapi
    return IntegrityError, OperationalError, driver.IntegrityError, driver.OperationalError


class Session:
    """A transaction. `registry` is the Registry's row if the statement that began the transaction read it."""

    def __init__(self, connection: Connection, registry: RegistryRow | None = None) -> None:
        self.connection, self._registry_row = connection, registry
        self._loader: Loader | None = None
        self._changes = 0
        self._prefetched: Mapping[str, ResourceRow] = {}

    def close(self) -> None:
        """Close results that were not read to their end because a response was aborted."""
        close_results(self.connection)

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Limit the time of reads within a write. Raises: TooSlow"""
        with within(self.connection, seconds):
            limit_statements(self.connection, seconds)
            yield
            limit_statements(self.connection, 0)

    @contextmanager
    def rollback_if_changed(self) -> Iterator[None]:
        """Pass on exceptions of a block that changed nothing.

        Raises: RollbackRequired, if the block changed something or its exception ended the transaction
        """
        before, failed = self._changes, conflict_errors(self.connection.dialect)
        try:
            yield
        except Exception as error:
            self.close()
            # A full disk ends a transaction of SQLite; a failed statement ends one of PostgreSQL.
            if self._changes != before or not is_open(self.connection) or isinstance(error, failed):
                raise RollbackRequired from error
            raise

    @property
    def has_changed(self) -> bool:
        """Whether the transaction changed something."""
        return self._changes > 0

    def write_registry_row(self) -> None:
        """Write the Registry's row unchanged in `finish`, to test whether the database is writable."""
        self._changes += 1

    # -- the Registry ---------------------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return whether the database has a Registry."""
        return self.connection.execute(select(REGISTRY.c.key)).first() is not None

    def create(self, members: Members, stored: StoredSettings) -> None:
        """Create the Registry. A database has only one."""
        row: dict[str, Any] = {"registryid": members["registryid"], "members": format_members(members)}
        row |= {"key": 1, "revision": clock(), "settings": clock()}
        self.connection.execute(insert(REGISTRY), row)
        self.connection.execute(insert(SETTINGS), {"key": 1, **_settings_columns(stored)})

    @property
    def _registry(self) -> RegistryRow:
        if self._registry_row is None:
            self._registry_row = read_registry(self.connection)
        return self._registry_row

    def revision(self) -> int:
        """Return the revision of model and capabilities."""
        return self._registry.settings

    def settings(self) -> StoredSettings:
        """Return model and capabilities."""
        row = _SETTINGS.row(self.connection)
        stored = json.loads(row.model)
        homes = {_parse_pair(key): _parse_pair(home) for key, home in stored["homes"].items()}
        source, capabilities = json.loads(row.modelsource), json.loads(row.capabilities)
        return StoredSettings(stored["full"], homes, source, capabilities, self.revision())

    def store_settings(self, stored: StoredSettings) -> None:
        """Store model and capabilities with a new revision."""
        self._changes += 1
        store_settings(self.connection, _settings_columns(stored))
        self._registry.settings = next_revision(self._registry.settings)

    def registry_members(self) -> Members:
        """Return the Registry's attributes."""
        return parse_members(self._registry.members)

    def group_counts(self) -> dict[str, int]:
        """Return the number of Groups of each type."""
        query = select(GROUPS.c.type, func.count()).group_by(GROUPS.c.type)
        return {row[0]: row[1] for row in self.connection.execute(query)}

    # -- single entities --------------------------------------------------------------------------------------------

    def group(self, plural: str, id_: str) -> GroupRow | None:
        """Return the row of a Group, or None."""
        row = _GROUP.row(self.connection, type=plural, folded=id_.lower())
        if row is None or row.id != id_:
            return None
        return GroupRow(row.key, row.id, row.members, parse_members(row.counts))

    def prefetch(self, xids: Iterable[str]) -> None:
        """Read Resources ahead, for a read-only transaction of PostgreSQL."""
        rows = _RESOURCES.rows(self.connection, xids=list(xids))
        self._prefetched = {row.xid: _resource_row(row) for row in rows}

    def resource(self, xid: str, *, document: bool = True) -> ResourceRow | None:
        """Return the row of a Resource, or None. `document`: with the document of its default Version."""
        known = None if document else self._prefetched.get(xid)
        if known is not None:
            return known
        row = _RESOURCE[document].row(self.connection, xid=xid)
        return None if row is None else _resource_row(row)

    def version(self, resource: ResourceRow, id_: str, *, document: bool = True) -> VersionRow | None:
        """Return the row of a Version that a Resource shows, or None. `document`: with its document."""
        row = _VERSION[document].row(self.connection, key=resource.key, folded=id_.lower())
        return None if row is None or row.id != id_ else version_row(row)

    def xid_of(self, *, is_group: bool, key: int) -> str | None:
        """Return the xid of the Group or the Resource with a key, or None."""
        if is_group:
            group = self.connection.execute(select(GROUPS.c.type, GROUPS.c.id).where(GROUPS.c.key == key)).first()
            return group and f"/{group.type}/{group.id}"
        xid: str | None = self.connection.execute(select(RESOURCES.c.xid).where(RESOURCES.c.key == key)).scalar()
        return xid

    # -- collections ------------------------------------------------------------------------------------------------

    def row_source(self, scope: ReadScope) -> SqlRowSource:
        """Return the rows of a response."""
        return SqlRowSource(self.connection, scope)

    def ordering(
        self,
        model: Model,
        target: RequestTarget,
        owner: int,
        keys: set[int] | None = None,
        *,
        ids: Collection[str] | None = None,
    ) -> Ordering:
        """Return the entities of a collection, or those with `ids`, for sorting.

        `owner` is the row key of the entity that contains the collection; `keys` are the entities that a filter leaves.
        """
        return Ordering(self.connection, model, target, owner, keys, ids=ids)

    def search(self, model: Model, within: tuple[int, ...] = ()) -> Search:
        """Return the search for a filter in the whole registry, or below the Group and Resource with keys `within`."""
        return Search(self.connection, model, within)

    @property
    def outbox(self) -> Outbox:
        """The outbox. In a write, its use counts as a change, because the caller may change it."""
        self._changes += 1
        return Outbox(self.connection, self._registry)

    # -- writing ----------------------------------------------------------------------------------------------------

    def load(self, affected: AffectedEntities, model: Model) -> Snapshot:
        """Load the entities that a request affects."""
        self._loader = Loader(self.connection, model, self._registry)
        members = self.registry_members()
        return self._loader.snapshot(affected, RegistryEntity("/", members, dict(members)))

    def store(self, change_set: ChangeSet, event: OutboxEntry | None = None) -> None:
        """Store a change set that was made from the last `load`, and its events in one outbox entry."""
        self._changes += 1
        assert self._loader
        writer = ChangeWriter(self.connection, self._registry, self._loader.keys, self._loader.counts)
        writer.store(change_set, event)
        self._prefetched = writer.resource_rows

    def finish(self) -> None:
        """Update the Registry's row if the transaction changed something. Call this before the commit."""
        if self._changes:
            self._registry.write(self.connection)


# -- statements -----------------------------------------------------------------------------------------------------


def _resource(*, document: bool) -> Statement:
    query = _resources(document=document).where(RESOURCES.c.xid == bindparam("xid"))
    return Statement(lambda _: query)


def _resources(*, document: bool) -> Select[Any]:
    """Return the query for Resources with the additional columns that `_resource_row` reads."""
    more = RESOURCES.c.revision, TARGET.c.revision.label("target_revision"), RESOURCES.c.xid.label("xid")
    return resource_query(documents=document).add_columns(*more)


def _resource_row(row: Any) -> ResourceRow:
    return resource_row(row[:-3], (row.revision, row.target_revision or 0))


def _version(*, document: bool) -> Statement:
    here = (RESOURCES.c.key == bindparam("key")) & (VERSIONS.c.folded == bindparam("folded"))
    return Statement(lambda _: version_query(documents=document).where(here))


def _group(_: str) -> Select[Any]:
    here = (GROUPS.c.type == bindparam("type")) & (GROUPS.c.folded == bindparam("folded"))
    return select(GROUPS.c.key, GROUPS.c.id, GROUPS.c.members, GROUPS.c.counts).where(here)


_SETTINGS: Final = Statement(lambda _: select(SETTINGS))
_GROUP: Final = Statement(_group)
_RESOURCE: Final = {document: _resource(document=document) for document in (False, True)}
_RESOURCES: Final = Statement(
    lambda _: _resources(document=False).where(RESOURCES.c.xid == any_(bindparam("xids", type_=ARRAY(Text))))
)
_VERSION: Final = {document: _version(document=document) for document in (False, True)}


def _settings_columns(stored: StoredSettings) -> dict[str, str]:
    """Return the columns of model and capabilities."""
    homes = {"/".join(key): "/".join(home) for key, home in stored.homes.items()}
    return {
        "model": json.dumps({"full": stored.full, "homes": homes}, ensure_ascii=False),
        "modelsource": json.dumps(stored.modelsource, ensure_ascii=False),
        "capabilities": json.dumps(stored.capabilities, ensure_ascii=False),
    }


def _parse_pair(text: str) -> tuple[str, str]:
    group, _, resources = text.partition("/")
    return group, resources
