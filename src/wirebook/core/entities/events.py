"""Events: the changes of a request as CloudEvents.

Each changed entity has one event: deleted, created or updated. A change of `deprecated` has an additional event.

Spec: core/events.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.state import Entity, Group, Members, Resource, Version
from wirebook.core.model.compiled import ResourceType

PREFIX: Final = "io.xregistry"


@dataclass(slots=True)
class Change:
    """The change of one entity. `changed` are the names of the changed attributes, for updates and deprecations."""

    entity: str
    action: str
    xid: str
    changed: dict[str, None] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """The CloudEvents attribute `type`."""
        return f"{PREFIX}.{self.entity}.{self.action}"


def changes_of(
    change_set: ChangeSet, *, model: bool = False, capabilities: Iterable[str] | None = None
) -> list[Change]:
    """Return all changes of a request, the Registry first.

    `model`: the request replaced the model. `capabilities` are the names of changed capabilities; None if the request
    did not write them.
    """
    settings: list[Change] = []
    if model:
        settings += [Change("modelsource", "updated", "/modelsource"), Change("model", "updated", "/model")]
    if capabilities is not None:
        settings.append(Change("capabilities", "updated", "/capabilities", dict.fromkeys(capabilities)))
    grown: dict[str, set[str]] = {}
    for resource in change_set.changed.values():
        if resource.deleted or resource.is_new:
            grown.setdefault(resource.group.xid, set()).add(resource.type.plural)
    groups = [_group(group, sorted(grown.get(group.xid, ()))) for group in change_set.changed_groups.values()]
    resources = [_resource(resource) for resource in change_set.changed.values() if not resource.group.deleted]
    below = [
        change
        for entity_changes in (*groups, *resources, _deleted_with_groups(change_set))
        for change in entity_changes
    ]
    if change_set.registry.is_updated or settings:
        names = [*_differences(change_set.registry.before or {}, change_set.registry.members)]
        names += ["modelsource", "model"] if model else []
        names += ["capabilities"] if capabilities is not None else []
        groups_changed = change_set.changed_groups.values()
        grown_types = sorted({group.type.plural for group in groups_changed if group.deleted or group.is_new})
        names += [name for plural in grown_types for name in (plural, f"{plural}count")]
        settings.insert(0, Change("registry", "updated", "/", dict.fromkeys(names)))
    return [*settings, *below]


def pack(changes: Iterable[Change]) -> str:
    """Serialize the changes of a request, without values that depend on the consumer, such as the base URL."""
    rows = [[change.entity, change.action, change.xid, list(change.changed)] for change in changes]
    return msgspec.json.encode(rows).decode()


def unpack(text: str) -> list[Change]:
    """Parse a text that `pack` returned."""
    return [
        Change(entity, action, xid, dict.fromkeys(changed))
        for entity, action, xid, changed in msgspec.json.decode(text)
    ]


def _differences(before: Members, now: Members) -> Iterator[str]:
    for name in (*before, *(name for name in now if name not in before)):
        if before.get(name) != now.get(name):
            yield name


# -- Groups -------------------------------------------------------------------------------------------------------


def _group(group: Group, plurals: Iterable[str]) -> Iterator[Change]:
    """Yield the changes of a Group. `plurals` are its collections in which Resources were created or deleted."""
    if group.deleted:
        yield Change("group", "deleted", group.xid)
    elif group.is_new:
        yield Change("group", "created", group.xid)
        yield from _deprecation("group", group.xid, group)
    elif group.is_updated:
        names = [*_differences(group.before or {}, group.members)]
        names += [name for plural in plurals for name in (plural, f"{plural}count")]
        yield Change("group", "updated", group.xid, dict.fromkeys(names))
        yield from _deprecation("group", group.xid, group)


def _deprecation(kind: str, xid: str, entity: Entity) -> Iterator[Change]:
    before, now = (entity.before or {}).get("deprecated"), entity.members.get("deprecated")
    if before != now:
        yield Change(kind, "deprecation", xid, dict.fromkeys(_differences(before or {}, now or {})))


def _deleted_with_groups(change_set: ChangeSet) -> Iterator[Change]:
    """Yield the deletions of the Resources and Versions in deleted Groups."""
    gone = [group for group in change_set.changed_groups.values() if group.deleted and not group.is_new]
    for resource in change_set.snapshot.reader.resources_of(gone) if gone else ():
        yield from _resource_deletion(resource)


# -- Resources and Versions ---------------------------------------------------------------------------------------


def _resource_deletion(resource: Resource) -> Iterator[Change]:
    yield Change("resource", "deleted", resource.xid)
    for id_ in sorted(resource.versions_before):
        yield Change("version", "deleted", f"{resource.xid}/versions/{id_}")


def _resource(resource: Resource) -> Iterator[Change]:
    if resource.deleted:
        yield from _resource_deletion(resource)
        return
    versions = list(_versions(resource))
    if resource.is_new:
        yield Change("resource", "created", resource.xid)
        yield from _deprecation("resource", resource.xid, resource.meta)
    elif changed := _changed_attributes(resource, versions):
        yield Change("resource", "updated", resource.xid, changed)
        yield from _deprecation("resource", resource.xid, resource.meta)
    yield from versions


def _versions(resource: Resource) -> Iterator[Change]:
    for id_ in sorted(resource.versions_before.keys() - resource.versions.keys()):
        yield Change("version", "deleted", f"{resource.xid}/versions/{id_}")
    for version in resource.versions.values():
        if version.is_new:
            yield Change("version", "created", version.xid)
        elif version.is_updated:
            changed = [*_differences(version.before or {}, version.members)]
            changed += [resource.type.singular] if version.document is not version.document_before else []
            yield Change("version", "updated", version.xid, dict.fromkeys(changed))


def _changed_attributes(resource: Resource, versions: list[Change]) -> dict[str, None]:
    """Return the changed attributes of a Resource: of its meta, its default Version, its collection of Versions."""
    meta, before = resource.meta.members, resource.meta.before or {}
    names = [f"meta.{name}" for name in _differences(before, meta)]
    old, new = before.get("defaultversionid"), meta.get("defaultversionid")
    if old != new:
        names += [*_attributes_with_values(resource.type, resource.versions_before.get(old or ""), before=True)]
        names += [*_attributes_with_values(resource.type, resource.versions.get(new or ""))]
    default = f"{resource.xid}/versions/{new}"
    names += [
        name
        for version in versions
        if version.xid == default and version.action == "updated"
        for name in version.changed
    ]
    if any(version.action != "updated" for version in versions):
        names += ["meta.epoch", "meta.modifiedat", "versions", "versionscount"]
    return dict.fromkeys(names)


def _attributes_with_values(type_: ResourceType, version: Version | None, *, before: bool = False) -> Iterator[str]:
    """Yield the names of a Version's attributes that have values, after the request or `before` it."""
    if version is None:
        return
    yield from ("self", "xid", "isdefault")
    yield from (version.before or {}) if before else version.members
    if (version.document_before if before else version.document) is not None:
        yield type_.singular


# -- as CloudEvents -----------------------------------------------------------------------------------------------


def cloudevents(changes: Iterable[Change], base: str, correlation: str, time: str) -> Iterator[Mapping[str, Any]]:
    """Yield the changes of one request as CloudEvents.

    An event id consists of the request's correlation id and the position of the change.
    """
    for position, change in enumerate(changes):
        event: dict[str, Any] = {
            "specversion": "1.0",
            "id": f"{correlation}-{position}",
            "type": change.type,
            "source": base or "/",
            "subject": change.xid,
            "time": time,
            "xregcorrelationid": correlation,
        }
        if change.changed:
            event |= {"datacontenttype": "application/json", "data": {"changed": list(change.changed)}}
        yield event
