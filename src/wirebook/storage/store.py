"""Storing what a request changed: rows that are new, rows that differ, rows that go. A fixed number of statements.

New Groups, Resources and Versions are put in with many rows a statement, parents first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, bindparam, delete, insert, select, text, update

from wirebook.core.comparison import fold
from wirebook.core.draft import Draft
from wirebook.core.rows import format_members, group_text, meta_text, version_texts
from wirebook.core.state import Entity, Group, Kept, Resource, Version
from wirebook.core.versions import instant_key
from wirebook.storage.keys import key_table
from wirebook.storage.load import Keys
from wirebook.storage.tables import DOCUMENTS, GROUPS, LABELS, REGISTRY, RESOURCES, VERSIONS

GROUP, VERSION, META = 1, 2, 3
"""Whose labels they are, in the table of labels."""


class Changes:
    """Writes one draft. `keys` are the rows that were loaded, by xid; those that are made join them."""

    def __init__(self, connection: Connection, keys: Keys) -> None:
        self._connection, self._keys = connection, keys
        self._labels: list[tuple[int, str, Entity]] = []

    def store(self, draft: Draft) -> None:
        groups = list(draft.changed_groups.values())
        resources = list(draft.changed.values())
        self._registry(draft)
        gone = [each for each in groups if each.deleted]
        self._delete(GROUPS, [each.xid for each in gone])
        self._delete(RESOURCES, [each.xid for each in resources if each.deleted and not each.group.deleted])
        self._groups([each for each in groups if not each.deleted])
        left = [each for each in resources if not each.deleted and not each.group.deleted]
        self._resources(left)
        self._versions(left)
        self._store_labels()
        self._count([each for each in resources if not each.group.deleted])

    def _registry(self, draft: Draft) -> None:
        registry = draft.registry
        if registry.is_touched:
            members = format_members(registry.members)
            self._connection.execute(update(REGISTRY).values(members=members, revision=REGISTRY.c.revision + 1))

    # -- rows -----------------------------------------------------------------------------------------------------

    def _delete(self, table: Table, xids: Sequence[str]) -> None:
        keys = [self._keys.pop(xid) for xid in xids if xid in self._keys]
        if keys:
            wanted = key_table(self._connection, ("key",), [(key,) for key in keys])
            self._connection.execute(delete(table).where(table.c.key.in_(select(wanted.c.key))))

    def _put(self, table: Table, rows: list[tuple[str, dict[str, Any]]]) -> None:
        """Changes rows that are there, by xid, and puts in the others: a Version gives up being the default first."""
        new = [(xid, row) for xid, row in rows if xid not in self._keys]
        old = [row | {"row": self._keys[xid]} for xid, row in rows if xid in self._keys]
        old.sort(key=lambda row: row.get("isdefault", False))
        if old:
            columns: dict[str, Any] = {name: bindparam(name) for name in old[0] if name != "row"}
            columns["revision"] = table.c.revision + 1
            self._connection.execute(update(table).where(table.c.key == bindparam("row")).values(columns), old)
        if new:
            made = self._connection.execute(
                insert(table).returning(table.c.key, sort_by_parameter_order=True), [row for _, row in new]
            )
            self._keys.update({xid: key for (xid, _), key in zip(new, made.scalars(), strict=True)})

    def _groups(self, groups: list[Group]) -> None:
        self._put(GROUPS, [(each.xid, _group_row(each)) for each in groups])
        self._labels += [(GROUP, each.xid, each) for each in groups]

    def _resources(self, resources: list[Resource]) -> None:
        rows = [(each.xid, self._resource_row(each)) for each in resources]
        self._put(RESOURCES, rows)
        self._labels += [(META, each.xid, each.meta) for each in resources]

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
            "createdat": members["createdat"],
            "defaultid": members.get("defaultversionid", ""),
            "sticky": members.get("defaultversionsticky", False),
            "xref": resource.xref,
            "counter": resource.counter,
            "count": len(resource.versions),
        }

    def _versions(self, resources: list[Resource]) -> None:
        gone = [f"{each.xid}/versions/{id_}" for each in resources for id_ in each.had - each.versions.keys()]
        self._delete(VERSIONS, gone)
        written = [(each, version) for each in resources for version in self._to_write(each)]
        rows = [(version.xid, self._version_row(resource, version)) for resource, version in written]
        self._put(VERSIONS, rows)
        self._documents([version for _, version in written])
        self._labels += [(VERSION, version.xid, version) for _, version in written]

    def _to_write(self, resource: Resource) -> Iterator[Version]:
        """Versions that are new, differ, or are the default now or were it."""
        was = (resource.meta.before or {}).get("defaultversionid")
        moved = (
            {was, resource.meta.members.get("defaultversionid")}
            if was != resource.meta.members.get("defaultversionid")
            else set()
        )
        for version in resource.versions.values():
            if version.before != version.members or version.id in moved or not isinstance(version.document, Kept):
                yield version

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

    def _documents(self, versions: list[Version]) -> None:
        written = [each for each in versions if not isinstance(each.document, Kept)]
        old = [self._keys[each.xid] for each in written if not each.is_new]
        if old:
            wanted = key_table(self._connection, ("key",), [(key,) for key in old])
            self._connection.execute(delete(DOCUMENTS).where(DOCUMENTS.c.key.in_(select(wanted.c.key))))
        rows = [{"key": self._keys[each.xid], "body": each.document} for each in written if each.document]
        if rows:
            self._connection.execute(insert(DOCUMENTS), rows)

    # -- labels and counts ----------------------------------------------------------------------------------------

    def _store_labels(self) -> None:
        """Rewrites the labels of what changed; most things have none, before and after."""
        changed = [
            (kind, xid, each) for kind, xid, each in self._labels if _labels(each.before) != _labels(each.members)
        ]
        old = [(kind, self._keys[xid]) for kind, xid, each in changed if _labels(each.before)]
        if old:
            wanted = key_table(self._connection, ("kindkey", "ownerkey"), old)
            same = select(wanted).where(wanted.c.kindkey == LABELS.c.kind, wanted.c.ownerkey == LABELS.c.owner)
            self._connection.execute(delete(LABELS).where(same.exists()))
        rows = [
            {"kind": kind, "owner": self._keys[xid], "name": name, "value": fold(value)}
            for kind, xid, each in changed
            for name, value in _labels(each.members).items()
        ]
        if rows:
            self._connection.execute(insert(LABELS), rows)

    def _count(self, resources: list[Resource]) -> None:
        """Adds what came to what the Groups have, and takes away what went."""
        changes: Counter[tuple[str, str]] = Counter()
        for each in resources:
            changes[each.group.xid, each.type.plural] += each.is_new - each.deleted
        rows = [{"parent": self._keys[xid], "type": plural, "count": n} for (xid, plural), n in changes.items() if n]
        if rows:
            self._connection.execute(ADD_COUNT, rows)


ADD_COUNT: Final = text(
    "INSERT INTO counts (parent, type, count) VALUES (:parent, :type, :count) "
    "ON CONFLICT (parent, type) DO UPDATE SET count = counts.count + excluded.count"
)


def _labels(members: Any) -> dict[str, str]:
    return (members or {}).get("labels") or {}


def _key(value: Any) -> str | None:
    return fold(value) if isinstance(value, str) else None


def _group_row(group: Group) -> dict[str, Any]:
    members = group.members
    return {
        "type": group.type.plural,
        "id": group.id,
        "folded": group.id.lower(),
        "members": group_text(members, group.type.id_name),
        "epoch": members["epoch"],
        "createdat": instant_key(members["createdat"]),
        "modifiedat": instant_key(members["modifiedat"]),
        "name": _key(members.get("name")),
    }


def store_settings(connection: Connection, columns: dict[str, str]) -> None:
    """The model and the capabilities, when a request changed them."""
    connection.execute(update(REGISTRY).values(**columns, settings=REGISTRY.c.settings + 1))
