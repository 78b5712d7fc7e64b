"""Store a change set: insert, update and delete rows, with a fixed number of statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, update

from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.rows import ResourceRow, VersionRow, format_members, group_text, meta_text, version_texts
from wirebook.core.entities.state import Entity, Group, Resource, UnchangedDocument, Version
from wirebook.core.entities.versions import instant_key
from wirebook.core.query.comparison import fold
from wirebook.storage.keys import key_parameter, key_rows, text_key
from wirebook.storage.load import Counts, Keys
from wirebook.storage.registry import RegistryRow
from wirebook.storage.statements import Statement, pipelined
from wirebook.storage.tables import DOCUMENTS, EVENTS, GROUPS, LABELS, RESOURCES, SETTINGS, VERSIONS

GROUP, VERSION, META = 1, 2, 3
"""Kinds of owners in the table of labels."""

Rows = list[tuple[str, dict[str, Any]]]
"""Rows with their xids."""


class OutboxEntry(NamedTuple):
    """The change events of a request, as a row of the outbox."""

    time: str
    correlation: str
    body: str


class ChangeWriter:
    """Writes one change set, except for changes of the Registry's row, which are made in `registry` only.

    `keys` has the loaded row keys by xid, `counts` the numbers of Resources in Groups; both are updated.
    `resource_rows` has the written Resource as a read would return it, if there is only one and its default Version was
    written.
    """

    def __init__(self, connection: Connection, registry: RegistryRow, keys: Keys, counts: Counts) -> None:
        self._connection, self._registry, self._keys, self._counts = connection, registry, keys, counts
        self._labels: list[tuple[int, str, Entity]] = []
        self._next_key = 0
        self.resource_rows: dict[str, ResourceRow] = {}

    def store(self, change_set: ChangeSet, event: OutboxEntry | None = None) -> None:
        """Write the change set and its events."""
        with pipelined(self._connection):
            self._store(change_set, event)

    def _store(self, change_set: ChangeSet, event: OutboxEntry | None) -> None:
        if not (event or change_set.registry.is_updated or change_set.changed or change_set.changed_groups):
            return
        groups = [changed_group for changed_group in change_set.changed_groups.values() if not changed_group.deleted]
        resources = [resource for resource in change_set.changed.values() if not resource.group.deleted]
        left = [resource for resource in resources if not resource.deleted]
        versions = [(resource, version) for resource in left for version in _to_write(resource)]
        self._advance(change_set, groups, left, versions, event)
        self._delete(
            GROUPS, [changed_group.xid for changed_group in change_set.changed_groups.values() if changed_group.deleted]
        )
        self._delete(RESOURCES, [resource.xid for resource in resources if resource.deleted])
        for resource in resources:
            if change := resource.is_new - resource.deleted:
                counts = self._counts.setdefault(resource.group.xid, {})
                counts[resource.type.plural] = counts.get(resource.type.plural, 0) + change
        self._upsert(GROUPS, [(group.xid, self._group_row(group)) for group in groups])
        rows = [(resource.xid, self._resource_row(resource)) for resource in left]
        self._upsert(RESOURCES, rows)
        version_rows = self._versions(left, versions)
        if len(left) == 1 and left[0].xref is None:
            self._remember(left[0], rows[0][1], dict(version_rows))
        self._labels += [(GROUP, group.xid, group) for group in groups]
        self._labels += [(META, resource.xid, resource.meta) for resource in left]
        self._store_labels()

    def _advance(
        self,
        change_set: ChangeSet,
        groups: Sequence[Group],
        resources: Sequence[Resource],
        versions: Sequence[tuple[Resource, Version]],
        event: OutboxEntry | None,
    ) -> None:
        """Assign numbers to the write and the new rows, and add the events to the outbox."""
        xids = (
            [group.xid for group in groups]
            + [resource.xid for resource in resources]
            + [version.xid for _, version in versions]
        )
        new = sum(xid not in self._keys for xid in xids)
        self._next_key = self._registry.lastkey
        self._registry.advance(new, happened=event is not None)
        self._registry.xrefs = self._registry.xrefs or any(resource.xref for resource in resources)
        if change_set.registry.is_updated:
            self._registry.members = format_members(change_set.registry.members)
        if event:
            time, number = instant_key(event.time), self._registry.events
            ADD_EVENT.run(self._connection, key=number, time=time, correlation=event.correlation, body=event.body)

    # -- rows -----------------------------------------------------------------------------------------------------

    def _delete(self, table: Table, xids: Sequence[str]) -> None:
        self._delete_keys(table, [self._keys.pop(xid) for xid in xids if xid in self._keys])

    def _delete_keys(self, table: Table, keys: Sequence[int]) -> None:
        if keys:
            DELETE[table.name].run(self._connection, keys=key_rows(("key",), [(key,) for key in keys]))

    def _upsert(self, table: Table, rows: Rows) -> None:
        """Update existing rows, by xid, and insert the others."""
        new = [(xid, row) for xid, row in rows if xid not in self._keys]
        old = [
            row | {"row": self._keys[xid], "revision": self._registry.revision}
            for xid, row in rows
            if xid in self._keys
        ]
        old.sort(key=len)
        for columns, rows_ in groupby(old, tuple):
            _update(table, columns).run_many(self._connection, [*rows_])
        for xid, row in new:
            self._next_key += 1
            row["key"] = self._keys[xid] = self._next_key
            row["revision"] = self._registry.revision
        INSERT[table.name].run_many(self._connection, [row for _, row in new])

    def _group_row(self, group: Group) -> dict[str, Any]:
        """Return the columns of a Group, without an unchanged name, so that the index on names is not updated."""
        members, before = group.members, group.before
        row = {
            "type": group.type.plural,
            "id": group.id,
            "folded": group.id.lower(),
            "members": group_text(members, group.type.id_name),
            "epoch": members["epoch"],
            "createdat": instant_key(members["createdat"]),
            "modifiedat": instant_key(members["modifiedat"]),
            "counts": format_members(self._counts.get(group.xid, {})),
        }
        if before is None or before.get("name") != members.get("name"):
            row["name"] = _key(members.get("name"))
        return row

    def _resource_row(self, resource: Resource) -> dict[str, Any]:
        members = resource.meta.members
        return {
            "parent": self._keys[resource.group.xid],
            "type": resource.type.plural,
            "id": resource.id,
            "folded": resource.id.lower(),
            "xid": resource.xid,
            "meta": meta_text(members, resource.type.id_name),
            "epoch": members["epoch"],
            "createdat": instant_key(members["createdat"]),
            "defaultid": members.get("defaultversionid", ""),
            "sticky": members.get("defaultversionsticky", False),
            "xref": resource.xref,
            "counter": resource.counter,
            "count": len(resource.versions),
        }

    def _versions(self, resources: Sequence[Resource], written: Sequence[tuple[Resource, Version]]) -> Rows:
        gone = [
            f"{resource.xid}/versions/{id_}"
            for resource in resources
            for id_ in resource.versions_before.keys() - resource.versions.keys()
        ]
        self._delete(VERSIONS, gone)
        rows = [(version.xid, self._version_row(resource, version)) for resource, version in written]
        self._upsert(VERSIONS, rows)
        self._documents([version for _, version in written])
        self._labels += [(VERSION, version.xid, version) for _, version in written]
        return rows

    def _remember(self, resource: Resource, row: dict[str, Any], versions: dict[str, dict[str, Any]]) -> None:
        """Keep the row of a Resource for the response. `versions` has the written rows by xid."""
        xid = f"{resource.xid}/versions/{resource.default}"
        if xid not in versions:
            return
        key, version = self._keys[resource.xid], versions[xid]
        default = VersionRow(
            self._keys[xid], key, version["id"], version["head"], version["tail"], version["contenttype"]
        )
        shown = (row["parent"], row["id"], row["meta"], row["defaultid"], row["sticky"], row["count"])
        self.resource_rows[resource.xid] = ResourceRow(key, *shown, default, revisions=(self._registry.revision, 0))

    def _version_row(self, resource: Resource, version: Version) -> dict[str, Any]:
        members = version.members
        head, tail = version_texts(members, resource.type.id_name)
        return {
            "parent": self._keys[resource.xid],
            "id": version.id,
            "folded": version.id.lower(),
            "head": head,
            "tail": tail,
            "epoch": members["epoch"],
            "createdat": instant_key(members["createdat"]),
            "modifiedat": instant_key(members["modifiedat"]),
            "name": _key(members.get("name")),
            "format": _key(members.get("format")),
            "contenttype": members.get("contenttype"),
            "isdefault": resource.default == version.id,
            "hasdocument": version.document is not None,
        }

    def _documents(self, versions: Sequence[Version]) -> None:
        written = [version for version in versions if not isinstance(version.document, UnchangedDocument)]
        self._delete_keys(DOCUMENTS, [self._keys[version.xid] for version in written if not version.is_new])
        rows = [{"key": self._keys[version.xid], "body": version.document} for version in written if version.document]
        INSERT[DOCUMENTS.name].run_many(self._connection, rows)

    # -- labels ---------------------------------------------------------------------------------------------------

    def _store_labels(self) -> None:
        """Rewrite the labels of entities whose labels changed; most entities have none."""
        changed = [
            (kind, xid, label) for kind, xid, label in self._labels if _labels(label.before) != _labels(label.members)
        ]
        old = [(kind, self._keys[xid]) for kind, xid, entity in changed if _labels(entity.before)]
        if old:
            DELETE_LABELS.run(self._connection, keys=key_rows(("kindkey", "ownerkey"), old))
        rows = [
            {"kind": kind, "owner": self._keys[xid], "name": name, "value": text_key(fold(value))}
            for kind, xid, entity in changed
            for name, value in _labels(entity.members).items()
        ]
        INSERT[LABELS.name].run_many(self._connection, rows)


def _to_write(resource: Resource) -> Iterator[Version]:
    """Yield the Versions to write.

    They are new, changed or stored as a different text, or became or ceased to be the default.
    """
    was, now = (resource.meta.before or {}).get("defaultversionid"), resource.meta.members.get("defaultversionid")
    moved = {was, now} if was != now else set()
    for version in resource.versions.values():
        is_changed = version.is_rewritten or version.before != version.members
        if is_changed or version.id in moved or not isinstance(version.document, UnchangedDocument):
            yield version


def _labels(members: Any) -> dict[str, str]:
    return (members or {}).get("labels") or {}


def _key(value: Any) -> str | None:
    return text_key(fold(value)) if isinstance(value, str) else None


def store_settings(connection: Connection, columns: dict[str, str]) -> None:
    """Store model and capabilities."""
    STORE_SETTINGS.run(connection, **columns)


# -- statements -----------------------------------------------------------------------------------------------------

FIXED: Final = frozenset({"key", "parent", "type", "id", "folded", "xid", "row"})
"""Columns that never change in a row, and the parameter `row` that identifies it."""


def _store_settings(_: str) -> Any:
    names = "model", "modelsource", "capabilities"
    return update(SETTINGS).values({name: bindparam(name, type_=SETTINGS.c[name].type) for name in names})


def _insert(table: Table) -> Statement:
    return Statement(lambda _: insert(table))


@cache
def _update(table: Table, columns: tuple[str, ...]) -> Statement:
    values = {name: bindparam(name, type_=table.c[name].type) for name in columns if name not in FIXED}
    return Statement(lambda _: update(table).where(table.c.key == bindparam("row")).values(values))


def _delete(table: Table) -> Statement:
    return Statement(lambda dialect: delete(table).where(table.c.key.in_(select(key_parameter(dialect, "key").c.key))))


def _delete_labels(dialect: str) -> Any:
    keys = key_parameter(dialect, "kindkey", "ownerkey")
    same = select(keys).where(keys.c.kindkey == LABELS.c.kind, keys.c.ownerkey == LABELS.c.owner)
    return delete(LABELS).where(same.exists())


STORE_SETTINGS: Final = Statement(_store_settings)
ADD_EVENT: Final = Statement(lambda _: insert(EVENTS))
INSERT: Final = {table.name: _insert(table) for table in (GROUPS, RESOURCES, VERSIONS, DOCUMENTS, LABELS)}
DELETE: Final = {table.name: _delete(table) for table in (GROUPS, RESOURCES, VERSIONS, DOCUMENTS)}
DELETE_LABELS: Final = Statement(_delete_labels)
