"""Loading what a request touches: a fixed number of queries, however many entities it names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, FromClause, Select, and_, bindparam, select, true

from wirebook.core.model import Model
from wirebook.core.rows import parse_members
from wirebook.core.state import Entity, Group, Kept, Registry, Resource, Shown, Snapshot, Version
from wirebook.core.touched import ResourceKey, Touched, targets_of
from wirebook.storage.keys import key_rows, key_table, wanted
from wirebook.storage.lookup import read_locked, read_shown
from wirebook.storage.statements import Statement
from wirebook.storage.tables import DOCUMENTS, GROUPS, RESOURCES, VERSIONS

Keys = dict[str, int]
"""The numbers of rows by xid."""


class Loader:
    """Loads entities in one transaction; `keys` has the row of each, by xid."""

    def __init__(self, connection: Connection, model: Model) -> None:
        self._connection, self._model = connection, model
        self.keys: Keys = {}
        self._groups: dict[int, Group] = {}

    def snapshot(self, touched: Touched, registry: Registry) -> Snapshot:
        """What a request found."""
        groups = {(each.type.plural, each.id.lower()): each for each in self._wanted_groups(touched)}
        resources = list(self._wanted_resources(touched))
        named = {_place(each): each for each in resources}
        targets = {each.xid: each for each in resources}
        missing = targets_of(each.xref for each in resources) - set(named)
        for target in self._by_keys(missing):
            targets[target.xid] = target
        found = {(each.group.xid, each.type.plural, each.id.lower()): each for each in resources}
        return Snapshot(registry, self._model, groups, found, self, targets)

    # -- Groups ---------------------------------------------------------------------------------------------------

    def _wanted_groups(self, touched: Touched) -> Iterator[Group]:
        if touched.every_group:
            return self._groups_of(GROUPS_OF_TYPE.rows(self._connection, type=touched.every_group))
        keys = key_rows(("type", "folded"), touched.groups)
        return self._groups_of(GROUPS_BY_ID.rows(self._connection, wanted=keys) if touched.groups else ())

    def _groups_of(self, rows: Iterable[Any]) -> Iterator[Group]:
        for row in rows:
            if row.key not in self._groups:
                self._groups[row.key] = self._group(row)
            yield self._groups[row.key]

    def _add_groups(self, keys: Collection[int]) -> None:
        """Sees to it that the Groups with those keys are there."""
        missing = [(key,) for key in keys if key not in self._groups]
        if missing:
            list(self._groups_of(GROUPS_BY_KEY.rows(self._connection, wanted=key_rows(("key",), missing))))

    def _group(self, row: Any) -> Group:
        type_ = self._model.groups[row.type]
        members = {type_.id_name: row.id, **parse_members(row.members)}
        group = Group(f"/{row.type}/{row.id}", members, dict(members), type=type_, id=row.id)
        self.keys[group.xid] = row.key
        return group

    # -- Resources ------------------------------------------------------------------------------------------------

    def _wanted_resources(self, touched: Touched) -> Iterator[Resource]:
        if touched.every_resource is None:
            return self._by_keys(touched.resources)
        type_, group, plural = touched.every_resource
        return self._read_resources(RESOURCES_OF_TYPE, grouptype=type_, groupfolded=group, type=plural)

    def _by_keys(self, keys: Collection[ResourceKey]) -> Iterator[Resource]:
        return self._read_resources(RESOURCES_BY_ID, wanted=key_rows(ID, keys)) if keys else iter(())

    def _read_resources(self, found: Found, **parameters: Any) -> Iterator[Resource]:
        """Resources with their Versions and Groups."""
        rows = list(found.resources.rows(self._connection, **parameters))
        self._add_groups({row.parent for row in rows})
        by_parent: dict[int, list[Any]] = {}
        for version in found.versions.rows(self._connection, **parameters) if rows else ():
            by_parent.setdefault(version.parent, []).append(version)
        for row in rows:
            yield self._resource(row, by_parent.get(row.key, []))

    def _resource(self, row: Any, versions: list[Any]) -> Resource:
        group = self._groups[row.parent]
        type_ = self._model.groups[group.type.plural].resources[row.type]  # the Group's may be another by now
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
        for each in versions:
            resource.versions[each.id] = self._version(each, resource)
        resource.had = dict(resource.versions)
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
            row = DOCUMENT.row(self._connection, wanted=key)
            return bytes(row.body) if row else None

        return read

    # -- what rules may look at beyond the snapshot -----------------------------------------------------------------

    def resources_of(self, groups: Iterable[Group]) -> Iterator[Resource]:
        keys = [(self.keys[each.xid],) for each in groups]
        return self._read_resources(RESOURCES_OF_GROUPS, wanted=key_rows(("key",), keys)) if keys else iter(())

    def sources_of(self, xids: Collection[str]) -> Iterator[Resource]:
        rows = list(SOURCES.rows(self._connection, wanted=key_rows(("xref",), [(xid,) for xid in xids])))
        self._add_groups({row.parent for row in rows})
        return (self._resource(row, []) for row in rows)

    def shown_by(self, xids: Collection[str]) -> Iterator[Shown]:
        wanted = key_table(self._connection, ("xid",), [(xid,) for xid in xids])
        return read_shown(self._connection, self._model, RESOURCES.c.xid.in_(select(wanted.c.xid)))

    def shown_in(self, group: Group, plurals: Collection[str]) -> Generator[Shown]:
        here = and_(RESOURCES.c.parent == self.keys[group.xid], RESOURCES.c.type.in_(plurals))
        return read_shown(self._connection, self._model, here)

    def locked_in(self, groups: Iterable[Group]) -> Mapping[str, str]:
        wanted = key_table(self._connection, ("key",), [(self.keys[each.xid],) for each in groups])
        return read_locked(self._connection, RESOURCES.c.parent.in_(select(wanted.c.key)))

    def everything(self, plurals: Collection[str]) -> Iterator[Group | Resource]:
        wanted = key_rows(("type",), [(each,) for each in plurals])
        yield from list(self._groups_of(GROUPS_OF_TYPES.rows(self._connection, wanted=wanted)))
        yield from self._read_resources(RESOURCES_OF_TYPES, wanted=wanted)


def _place(resource: Resource) -> ResourceKey:
    group = resource.group
    return group.type.plural, group.id.lower(), resource.type.plural, resource.id.lower()


# -- statements -----------------------------------------------------------------------------------------------------

ID: Final = ("grouptype", "groupfolded", "type", "folded")


class Found(NamedTuple):
    """Two statements: Resources, and the Versions of the same Resources."""

    resources: Statement
    versions: Statement


def _found(where: Callable[[str], tuple[FromClause, ColumnElement[bool]]]) -> Found:
    """`where`: the tables in which Resources are found, and the condition."""

    def resources(dialect: str) -> Select[Any]:
        tables, condition = where(dialect)
        return select(RESOURCES).select_from(tables).where(condition).order_by(RESOURCES.c.key)

    def versions(dialect: str) -> Select[Any]:
        tables, condition = where(dialect)
        below = tables.join(VERSIONS, VERSIONS.c.parent == RESOURCES.c.key)
        return select(VERSIONS).select_from(below).where(condition).order_by(VERSIONS.c.parent, VERSIONS.c.key)

    return Found(Statement(resources), Statement(versions))


def _by_id(dialect: str) -> tuple[FromClause, ColumnElement[bool]]:
    keys = wanted(dialect, *ID)
    group = and_(GROUPS.c.type == keys.c.grouptype, GROUPS.c.folded == keys.c.groupfolded)
    own = and_(RESOURCES.c.parent == GROUPS.c.key, RESOURCES.c.type == keys.c.type, RESOURCES.c.folded == keys.c.folded)
    return keys.join(GROUPS, group).join(RESOURCES, own), true()


def _of_type(_: str) -> tuple[FromClause, ColumnElement[bool]]:
    group = and_(GROUPS.c.type == bindparam("grouptype"), GROUPS.c.folded == bindparam("groupfolded"))
    return RESOURCES.join(GROUPS), and_(group, RESOURCES.c.type == bindparam("type"))


def _is_of_types(dialect: str) -> ColumnElement[bool]:
    return GROUPS.c.type.in_(select(wanted(dialect, "type").c.type))


def _groups_by_id(dialect: str) -> Select[Any]:
    keys = wanted(dialect, "type", "folded")
    return select(GROUPS).join(keys, and_(GROUPS.c.type == keys.c.type, GROUPS.c.folded == keys.c.folded))


def _sources(dialect: str) -> Select[Any]:
    keys = wanted(dialect, "xref")
    return select(RESOURCES).join(keys, keys.c.xref == RESOURCES.c.xref).order_by(RESOURCES.c.key)


GROUPS_OF_TYPE: Final = Statement(lambda _: select(GROUPS).where(GROUPS.c.type == bindparam("type")))
GROUPS_OF_TYPES: Final = Statement(lambda dialect: select(GROUPS).where(_is_of_types(dialect)).order_by(GROUPS.c.key))
GROUPS_BY_ID: Final = Statement(_groups_by_id)
GROUPS_BY_KEY: Final = Statement(
    lambda dialect: select(GROUPS).where(GROUPS.c.key.in_(select(wanted(dialect, "key").c.key)))
)
RESOURCES_BY_ID: Final = _found(_by_id)
RESOURCES_OF_TYPE: Final = _found(_of_type)
RESOURCES_OF_TYPES: Final = _found(lambda dialect: (RESOURCES.join(GROUPS), _is_of_types(dialect)))
RESOURCES_OF_GROUPS: Final = _found(
    lambda dialect: (RESOURCES, RESOURCES.c.parent.in_(select(wanted(dialect, "key").c.key)))
)
SOURCES: Final = Statement(_sources)
DOCUMENT: Final = Statement(lambda _: select(DOCUMENTS.c.body).where(DOCUMENTS.c.key == bindparam("wanted")))
