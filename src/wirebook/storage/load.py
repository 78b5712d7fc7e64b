"""Loading what a request touches: a fixed number of queries, however many entities it names."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, select

from wirebook.core.model import Model
from wirebook.core.rows import parse_members
from wirebook.core.state import Entity, Group, Kept, Registry, Resource, Shown, Snapshot, Version
from wirebook.core.touched import ResourceKey, Touched, targets_of
from wirebook.storage.keys import key_table
from wirebook.storage.lookup import read_locked, read_shown
from wirebook.storage.tables import DOCUMENTS, GROUPS, REGISTRY, RESOURCES, VERSIONS

Keys = dict[str, int]
"""The numbers of rows by xid."""


def load_registry(connection: Connection) -> Registry:
    row = connection.execute(select(REGISTRY)).one()
    members = parse_members(row.members)
    capabilities, source = json.loads(row.capabilities), json.loads(row.modelsource)
    return Registry("/", members, dict(members), capabilities=capabilities, modelsource=source)


class Loader:
    """Loads entities in one transaction; `keys` has the row of each, by xid."""

    def __init__(self, connection: Connection, model: Model) -> None:
        self._connection, self._model = connection, model
        self.keys: Keys = {}
        self._groups: dict[int, Group] = {}

    def snapshot(self, wanted: Touched) -> Snapshot:
        """What a request found. The registry is read first: who writes it holds the lock."""
        registry = load_registry(self._connection)
        groups = {(each.type.plural, each.id.lower()): each for each in self._wanted_groups(wanted)}
        resources = list(self._wanted_resources(wanted))
        named = {_place(each): each for each in resources}
        targets = {each.xid: each for each in resources}
        missing = targets_of(each.xref for each in resources) - set(named)
        for target in self._by_keys(missing):
            targets[target.xid] = target
        found = {(each.group.xid, each.type.plural, each.id.lower()): each for each in resources}
        return Snapshot(registry, self._model, groups, found, self, targets)

    # -- Groups ---------------------------------------------------------------------------------------------------

    def _wanted_groups(self, wanted: Touched) -> Iterator[Group]:
        if wanted.every_group:
            yield from self._read_groups(select(GROUPS).where(GROUPS.c.type == wanted.every_group))
        elif wanted.groups:
            keys = key_table(self._connection, ("type", "folded"), wanted.groups)
            join = and_(GROUPS.c.type == keys.c.type, GROUPS.c.folded == keys.c.folded)
            yield from self._read_groups(select(GROUPS).join(keys, join))

    def _read_groups(self, query: Select[Any]) -> Iterator[Group]:
        for row in self._connection.execute(query):
            if row.key not in self._groups:
                self._groups[row.key] = self._group(row)
            yield self._groups[row.key]

    def _group(self, row: Any) -> Group:
        type_ = self._model.groups[row.type]
        members = {type_.id_name: row.id, **parse_members(row.members)}
        group = Group(f"/{row.type}/{row.id}", members, dict(members), type=type_, id=row.id)
        self.keys[group.xid] = row.key
        return group

    # -- Resources ------------------------------------------------------------------------------------------------

    def _wanted_resources(self, wanted: Touched) -> Iterator[Resource]:
        if wanted.every_resource:
            type_, group, plural = wanted.every_resource
            where = and_(GROUPS.c.type == type_, GROUPS.c.folded == group, RESOURCES.c.type == plural)
            yield from self._read_resources(RESOURCES.join(GROUPS), where)
        else:
            yield from self._by_keys(wanted.resources)

    def _by_keys(self, wanted: Iterable[ResourceKey]) -> Iterator[Resource]:
        wanted = list(wanted)
        if wanted:
            names = ("grouptype", "groupfolded", "type", "folded")
            keys = key_table(self._connection, names, wanted)
            groups = and_(GROUPS.c.type == keys.c.grouptype, GROUPS.c.folded == keys.c.groupfolded)
            same = and_(
                RESOURCES.c.parent == GROUPS.c.key, RESOURCES.c.type == keys.c.type, RESOURCES.c.folded == keys.c.folded
            )
            yield from self._read_resources(keys.join(GROUPS, groups).join(RESOURCES, same), None)

    def _read_resources(self, tables: FromClause, where: ColumnElement[bool] | None) -> Iterator[Resource]:
        """Resources with their Versions and Groups, in three queries."""

        def of(*columns: Any) -> Select[Any]:
            query = select(*columns)
            return query if where is None else query.where(where)

        for _ in self._read_groups(of(GROUPS).select_from(tables).distinct()):
            pass
        rows = self._connection.execute(of(RESOURCES).select_from(tables).order_by(RESOURCES.c.key)).all()
        versions = self._connection.execute(
            of(VERSIONS)
            .select_from(tables.join(VERSIONS, VERSIONS.c.parent == RESOURCES.c.key))
            .order_by(VERSIONS.c.parent, VERSIONS.c.key)
        )
        by_parent: dict[int, list[Any]] = {}
        for version in versions:
            by_parent.setdefault(version.parent, []).append(version)
        for row in rows:
            yield self._resource(row, by_parent.get(row.key, []))

    def _resource(self, row: Any, versions: list[Any]) -> Resource:
        group = self._groups[row.parent]
        type_ = group.type.resources[row.type]
        xid = f"{group.xid}/{row.type}/{row.id}"
        members: dict[str, Any] = {type_.id_name: row.id}
        if row.xref:
            members["xref"] = row.xref
        members |= parse_members(row.meta)
        if not row.xref:
            members |= {"defaultversionid": row.defaultid, "defaultversionsticky": row.sticky}
        resource = Resource(
            xid, type_, group, row.id, Entity(f"{xid}/meta", members, dict(members)), counter=row.counter
        )
        self.keys[xid] = row.key
        for each in versions:
            resource.versions[each.id] = self._version(each, resource)
        resource.had = frozenset(resource.versions)
        return resource

    def _version(self, row: Any, resource: Resource) -> Version:
        xid = f"{resource.xid}/versions/{row.id}"
        members = {resource.type.id_name: resource.id, "versionid": row.id}
        members |= parse_members(row.head) | parse_members(row.tail)
        self.keys[xid] = row.key
        document = Kept(self._document_reader(row.key)) if row.hasdocument else None
        return Version(xid, members, dict(members), document=document)

    def _document_reader(self, key: int) -> Callable[[], bytes | None]:
        def read() -> bytes | None:
            body = self._connection.execute(select(DOCUMENTS.c.body).where(DOCUMENTS.c.key == key)).scalar()
            return bytes(body) if body is not None else None

        return read

    # -- what rules may look at beyond the snapshot -----------------------------------------------------------------

    def resources_of(self, group: Group) -> Iterator[Resource]:
        where = RESOURCES.c.parent == self.keys[group.xid]
        return self._read_resources(RESOURCES.join(GROUPS), where)

    def sources_of(self, xids: Collection[str]) -> Iterator[Resource]:
        wanted = key_table(self._connection, ("xref",), [(xid,) for xid in xids])
        found = select(RESOURCES).join(wanted, wanted.c.xref == RESOURCES.c.xref).order_by(RESOURCES.c.key)
        rows = self._connection.execute(found).all()
        if rows:
            owners = key_table(self._connection, ("key",), [(row.parent,) for row in rows])
            list(self._read_groups(select(GROUPS).where(GROUPS.c.key.in_(select(owners.c.key)))))
        return (self._resource(row, []) for row in rows)

    def shown_by(self, xids: Collection[str]) -> Iterator[Shown]:
        wanted = key_table(self._connection, ("xid",), [(xid,) for xid in xids])
        return read_shown(self._connection, self._model, RESOURCES.c.xid.in_(select(wanted.c.xid)))

    def shown_in(self, group: Group, plurals: Collection[str]) -> Iterator[Shown]:
        here = and_(RESOURCES.c.parent == self.keys[group.xid], RESOURCES.c.type.in_(plurals))
        return read_shown(self._connection, self._model, here)

    def locked_in(self, groups: Iterable[Group]) -> Mapping[str, str]:
        wanted = key_table(self._connection, ("key",), [(self.keys[each.xid],) for each in groups])
        return read_locked(self._connection, RESOURCES.c.parent.in_(select(wanted.c.key)))

    def everything(self) -> Iterator[Group | Resource]:
        for group in list(self._read_groups(select(GROUPS).order_by(GROUPS.c.key))):
            yield group
            yield from self.resources_of(group)


def _place(resource: Resource) -> ResourceKey:
    group = resource.group
    return group.type.plural, group.id.lower(), resource.type.plural, resource.id.lower()
