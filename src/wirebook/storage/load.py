"""Load the entities that a write request affects, with a fixed number of queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, bindparam, select

from wirebook.core.entities.affected import AffectedEntities, targets_of
from wirebook.core.entities.rows import parse_members
from wirebook.core.entities.state import (
    Entity,
    Group,
    RegistryEntity,
    Resource,
    ShownVersions,
    Snapshot,
    UnchangedDocument,
    Version,
)
from wirebook.core.model.compiled import Model
from wirebook.storage.keys import key_parameter, key_rows, key_table
from wirebook.storage.lookup import read_locked, read_shown
from wirebook.storage.registry import RegistryRow
from wirebook.storage.statements import Statement
from wirebook.storage.tables import DOCUMENTS, GROUPS, RESOURCES, VERSIONS

Keys = dict[str, int]
"""Row keys by xid."""

Counts = dict[str, dict[str, int]]
"""Numbers of Resources by type, by the xid of their Group."""


class Loader:
    """Loads entities in one transaction. Implements `wirebook.core.entities.state.EntityReader`.

    `keys` has the row keys of loaded entities by xid, `counts` the numbers of Resources in loaded Groups.
    """

    def __init__(self, connection: Connection, model: Model, registry: RegistryRow) -> None:
        self._connection, self._model, self._registry = connection, model, registry
        self.keys: Keys = {}
        self.counts: Counts = {}
        self._groups: dict[int, Group] = {}

    def snapshot(self, affected: AffectedEntities, registry: RegistryEntity) -> Snapshot:
        """Return the snapshot of the entities that a request affects, and of the targets of their cross-references."""
        if affected.every_group:
            group_rows = GROUPS_OF_TYPES.rows(self._connection, keys=[(affected.every_group,)])
        else:
            group_rows = GROUPS_BY_ID.rows(self._connection, keys=affected.groups)
        groups = {(group.type.plural, group.id.lower()): group for group in self._groups_of(group_rows)}
        if affected.every_resource:
            resources = list(self._read_resources(RESOURCES_OF_TYPE, [affected.every_resource]))
        else:
            resources = list(self._read_resources(RESOURCES_BY_ID, affected.resources))
        targets = {resource.xid: resource for resource in resources}
        missing = targets_of(resource.xref for resource in resources) - {
            (resource.group.type.plural, resource.group.id.lower(), resource.type.plural, resource.id.lower())
            for resource in resources
        }
        for target in self._read_resources(RESOURCES_BY_ID, missing) if missing else ():
            targets[target.xid] = target
        by_key = {(resource.group.xid, resource.type.plural, resource.id.lower()): resource for resource in resources}
        return Snapshot(registry, self._model, groups, by_key, self, targets)

    # -- Groups ---------------------------------------------------------------------------------------------------

    def _groups_of(self, rows: Iterable[Any]) -> Iterator[Group]:
        for row in rows:
            if row.key not in self._groups:
                self._groups[row.key] = self._group(row)
            yield self._groups[row.key]

    def _add_groups(self, keys: Collection[int]) -> None:
        """Load the Groups with those keys unless they are loaded."""
        missing = [(key,) for key in keys if key not in self._groups]
        list(self._groups_of(GROUPS_BY_KEY.rows(self._connection, keys=missing)))

    def _group(self, row: Any) -> Group:
        type_ = self._model.groups[row.type]
        members = {type_.id_name: row.id, **parse_members(row.members)}
        group = Group(f"/{row.type}/{row.id}", members, dict(members), type=type_, id=row.id)
        self.keys[group.xid], self.counts[group.xid] = row.key, parse_members(row.counts)
        return group

    # -- Resources ------------------------------------------------------------------------------------------------

    def _read_resources(self, selects: ResourceSelects, keys: Collection[Sequence[str | int]]) -> Iterator[Resource]:
        """Yield Resources with their Versions and Groups."""
        rows = list(selects.resources.rows(self._connection, keys=keys))
        if not rows:
            return
        self._add_groups({row.parent for row in rows})
        by_parent: dict[int, list[Any]] = {}
        for version in selects.versions.rows(self._connection, keys=keys):
            by_parent.setdefault(version.parent, []).append(version)
        for row in rows:
            yield self._resource(row, by_parent.get(row.key, []))

    def _resource(self, row: Any, versions: list[Any]) -> Resource:
        group = self._groups[row.parent]
        type_ = self._model.groups[group.type.plural].resources[row.type]  # the Group may already have its new type
        xid = f"{group.xid}/{row.type}/{row.id}"
        members: dict[str, Any] = {type_.id_name: row.id}
        if row.xref:
            members["xref"] = row.xref
        members |= parse_members(row.meta)
        if not row.xref:
            members |= {"defaultversionid": row.defaultid, "defaultversionsticky": bool(row.sticky)}
        resource = Resource(
            xid, type_, group, row.id, Entity(f"{xid}/meta", members, dict(members)), counter=row.counter
        )
        self.keys[xid] = row.key
        for version in versions:
            resource.versions[version.id] = self._version(version, resource)
        resource.versions_before = dict(resource.versions)
        return resource

    def _version(self, row: Any, resource: Resource) -> Version:
        xid = f"{resource.xid}/versions/{row.id}"
        members = {resource.type.id_name: resource.id, "versionid": row.id}
        members |= parse_members(row.head) | parse_members(row.tail)
        self.keys[xid] = row.key
        document = UnchangedDocument(self._document_reader(row.key)) if row.hasdocument else None
        return Version(xid, members, dict(members), document=document)

    def _document_reader(self, key: int) -> Callable[[], bytes | None]:
        def read() -> bytes | None:
            row = DOCUMENT.row(self._connection, key=key)
            return bytes(row.body) if row else None

        return read

    # -- EntityReader -----------------------------------------------------------------------------------------------

    def resources_of(self, groups: Iterable[Group]) -> Iterator[Resource]:
        """Yield all Resources of Groups, with their Versions."""
        return self._read_resources(RESOURCES_OF_GROUPS, [(self.keys[group.xid],) for group in groups])

    def sources_of(self, xids: Collection[str]) -> Iterator[Resource]:
        """Yield the cross-references to these Resources, without Versions."""
        if not self._registry.xrefs:
            return iter(())
        rows = list(SOURCES.rows(self._connection, keys=[(xid,) for xid in xids]))
        self._add_groups({row.parent for row in rows})
        return (self._resource(row, []) for row in rows)

    def versions_shown_by(self, xids: Collection[str]) -> Iterator[ShownVersions]:
        """Yield the Resources with these xids that have Versions to show."""
        keys = key_table(self._connection, ("xid",), [(xid,) for xid in xids])
        return read_shown(self._connection, self._model, RESOURCES.c.xid.in_(select(keys.c.xid)))

    def versions_shown_in(self, group: Group, plurals: Collection[str]) -> Generator[ShownVersions]:
        """Yield the Resources of these types in a Group that have Versions to show."""
        here = and_(RESOURCES.c.parent == self.keys[group.xid], RESOURCES.c.type.in_(plurals))
        return read_shown(self._connection, self._model, here)

    def locked_in(self, groups: Iterable[Group]) -> Mapping[str, str]:
        """Return the xid of a read-only Resource of each Group that has one, by the xid of the Group."""
        keys = key_table(self._connection, ("key",), [(self.keys[group.xid],) for group in groups])
        return read_locked(self._connection, RESOURCES.c.parent.in_(select(keys.c.key)))

    def everything(self, plurals: Collection[str]) -> Iterator[Group | Resource]:
        """Yield the Groups of these types, then the Resources in them with their Versions."""
        keys = [(plural,) for plural in plurals]
        yield from list(self._groups_of(GROUPS_OF_TYPES.rows(self._connection, keys=keys)))
        yield from self._read_resources(RESOURCES_OF_TYPES, keys)


# -- statements -----------------------------------------------------------------------------------------------------

Columns = Mapping[str, Any]
"""The values that a select compares columns with, by name: columns of a key table, or parameters."""


class ByKeys:
    """A select for a number of keys.

    A single key, the most frequent case, is compared directly, because a key table takes twice the time.
    """

    def __init__(self, names: Sequence[str], build: Callable[[Columns], Select[Any]]) -> None:
        self._names = names
        self._one = Statement(lambda _: build({name: bindparam(name) for name in names}))
        self._many = Statement(lambda dialect: build(dict(key_parameter(dialect, *names).c.items())))

    def rows(self, connection: Connection, *, keys: Collection[Sequence[str | int]]) -> Iterator[Any]:
        """Return the rows, with column names. `keys` must not contain duplicates."""
        if len(keys) == 1:
            (key,) = keys
            return self._one.rows(connection, **dict(zip(self._names, key, strict=True)))
        return self._many.rows(connection, keys=key_rows(self._names, keys)) if keys else iter(())


class ResourceSelects(NamedTuple):
    """Two selects with the same parameters: Resources, and the Versions of the same Resources."""

    resources: ByKeys
    versions: ByKeys


def _resource_selects(
    names: Sequence[str], tables: FromClause, where: Callable[[Columns], ColumnElement[bool]]
) -> ResourceSelects:
    """Return the selects for the Resources in `tables` that meet a condition, and for their Versions."""

    def resources(key: Columns) -> Select[Any]:
        return select(RESOURCES).select_from(tables).where(where(key)).order_by(RESOURCES.c.key)

    def versions(key: Columns) -> Select[Any]:
        below = tables.join(VERSIONS, VERSIONS.c.parent == RESOURCES.c.key)
        return select(VERSIONS).select_from(below).where(where(key)).order_by(VERSIONS.c.parent, VERSIONS.c.key)

    return ResourceSelects(ByKeys(names, resources), ByKeys(names, versions))


def _is_group(key: Columns) -> ColumnElement[bool]:
    return and_(GROUPS.c.type == key["grouptype"], GROUPS.c.folded == key["groupfolded"])


def _is_of_type(key: Columns) -> ColumnElement[bool]:
    return and_(_is_group(key), RESOURCES.c.type == key["type"])


GROUP_ID: Final = ("grouptype", "groupfolded")
BELOW: Final = GROUPS.join(RESOURCES, RESOURCES.c.parent == GROUPS.c.key)
GROUPS_OF_TYPES: Final = ByKeys(
    ("type",), lambda key: select(GROUPS).where(GROUPS.c.type == key["type"]).order_by(GROUPS.c.key)
)
GROUPS_BY_ID: Final = ByKeys(GROUP_ID, lambda key: select(GROUPS).where(_is_group(key)))
GROUPS_BY_KEY: Final = ByKeys(("key",), lambda key: select(GROUPS).where(GROUPS.c.key == key["key"]))
RESOURCES_BY_ID: Final = _resource_selects(
    (*GROUP_ID, "type", "folded"), BELOW, lambda key: and_(_is_of_type(key), RESOURCES.c.folded == key["folded"])
)
RESOURCES_OF_TYPE: Final = _resource_selects((*GROUP_ID, "type"), BELOW, _is_of_type)
RESOURCES_OF_TYPES: Final = _resource_selects(("type",), BELOW, lambda key: GROUPS.c.type == key["type"])
RESOURCES_OF_GROUPS: Final = _resource_selects(("key",), RESOURCES, lambda key: RESOURCES.c.parent == key["key"])
SOURCES: Final = ByKeys(
    ("xref",), lambda key: select(RESOURCES).where(RESOURCES.c.xref == key["xref"]).order_by(RESOURCES.c.key)
)
DOCUMENT: Final = Statement(lambda _: select(DOCUMENTS.c.body).where(DOCUMENTS.c.key == bindparam("key")))
