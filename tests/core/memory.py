"""A registry in memory, for tests of the rules without a database."""

from __future__ import annotations

import copy
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from typing import Any

from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.decide import WriteRequest, WriteResult, decide
from wirebook.core.entities.state import Group, RegistryEntity, Resource, ShownVersions, Snapshot
from wirebook.core.model.compiled import Model
from wirebook.core.model.target import parse_target


class NoFormats:
    """A validator that supports no format."""

    def family(self, format_: str) -> str | None:
        return None

    def faults(self, format_: str, document: bytes) -> str | None:
        return None

    def rules(self, format_: str) -> frozenset[str]:
        return frozenset()

    def incompatible(self, rule: str, format_: str, old: bytes, new: bytes) -> str | None:
        return None


class Memory:
    """The stored entities of a registry. `request` changes them, or raises and changes nothing."""

    def __init__(self, model: Model, registryid: str = "test", now: str = "2026-01-01T00:00:00Z") -> None:
        members = {"registryid": registryid, "epoch": 1, "createdat": now, "modifiedat": now}
        self.model, self.validator = model, NoFormats()
        self.registry = RegistryEntity("/", members, dict(members))
        self.groups: dict[tuple[str, str], Group] = {}
        self.resources: dict[tuple[str, str, str], Resource] = {}
        self._ticks = 0

    def request(self, method: str, path: str, sent: Any = None, **options: Any) -> WriteResult:
        change_set = self.change_set(path, options.pop("ignore", ()), options.pop("now", None))
        request = WriteRequest(method, parse_target(path, self.model), sent, **options)
        outcome = decide(change_set, request, self.validator)
        self.apply(change_set)
        return outcome

    def change_set(self, path: str, ignore: Any = (), now: str | None = None) -> ChangeSet:
        self._ticks += 1
        now = now or f"2026-01-01T00:00:{self._ticks:02d}Z"
        registry, groups, resources = copy.deepcopy((self.registry, self.groups, self.resources))
        targets = {resource.xid: resource for resource in resources.values()}
        snapshot = Snapshot(registry, self.model, groups, resources, _Reader(groups, resources), targets)
        return ChangeSet(snapshot, now, path, ignore)

    def apply(self, change_set: ChangeSet) -> None:
        snapshot = change_set.snapshot
        gone = {group.xid for group in snapshot.groups.values() if group.deleted}
        self.registry = snapshot.registry
        self.groups = {key: group for key, group in snapshot.groups.items() if not group.deleted}
        self.resources = {
            key: resource
            for key, resource in snapshot.resources.items()
            if not resource.deleted and resource.group.xid not in gone
        }
        for entity in self._entities():
            entity.before, entity.is_updated, entity.has_own_time = dict(entity.members), False, False
        for resource in self.resources.values():
            resource.versions_before = dict(resource.versions)

    def _entities(self) -> Iterator[Any]:
        yield self.registry
        yield from self.groups.values()
        for resource in self.resources.values():
            yield resource.meta
            yield from resource.versions.values()

    def resource(self, xid: str) -> Resource:
        return next(resource for resource in self.resources.values() if resource.xid == xid)


class _Reader:
    def __init__(self, groups: dict[Any, Group], resources: dict[Any, Resource]) -> None:
        self._groups, self._resources = groups, resources

    def resources_of(self, groups: Iterable[Group]) -> Iterator[Resource]:
        members = list(groups)
        return (resource for resource in self._resources.values() if resource.group in members and not resource.deleted)

    def sources_of(self, xids: Collection[str]) -> Iterator[Resource]:
        return (resource for resource in self._resources.values() if resource.xref in xids and not resource.deleted)

    def versions_shown_by(self, xids: Collection[str]) -> Iterator[ShownVersions]:
        return (
            _shown(resource, resource)
            for resource in self._resources.values()
            if resource.xid in xids and resource.versions
        )

    def versions_shown_in(self, group: Group, plurals: Collection[str]) -> Generator[ShownVersions]:
        by_xid = {resource.xid: resource for resource in self._resources.values()}
        for resource in self.resources_of([group]):
            shown = by_xid.get(resource.xref) if resource.xref else resource
            if resource.type.plural in plurals and shown and shown.versions:
                yield _shown(resource, shown)

    def locked_in(self, groups: Iterable[Group]) -> Mapping[str, str]:
        locked = [resource for resource in self.resources_of(groups) if resource.meta.members.get("readonly")]
        return {resource.group.xid: resource.xid for resource in locked}

    def everything(self, plurals: Collection[str]) -> Iterator[Group | Resource]:
        groups = [group for group in self._groups.values() if group.type.plural in plurals]
        yield from groups
        yield from self.resources_of(groups)


def _shown(resource: Resource, shown: Resource) -> ShownVersions:
    versions = {id_: version.members for id_, version in shown.versions.items()}
    return ShownVersions(resource.xid, resource.type.plural, resource.xref, versions)
