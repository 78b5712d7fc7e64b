"""The change set of one request: look up, create and delete entities, including the effects on their parents.

Spec: core/spec.md#epoch-attribute; core/spec.md#implicit-creation-of-parent-entities; core/spec.md#deleting-entities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from wirebook.core.entities.attributes import (
    AttributeSet,
    check_new_id,
    group_attributes,
    meta_attributes,
    registry_attributes,
    version_attributes,
)
from wirebook.core.entities.state import (
    Entity,
    Group,
    Members,
    RegistryEntity,
    Resource,
    ResourceLocation,
    Snapshot,
    Version,
)
from wirebook.core.entities.versions import MODES
from wirebook.core.model.compiled import GroupConstraint, GroupType, Model, ResourceType
from wirebook.core.model.constraints import BadConstraint, constraints_of
from wirebook.core.model.datatypes import Types, types_of
from wirebook.problems.xregistry import refused


@dataclass
class ChangeSet:
    """The state of the registry during one request, with the changes that the request has made so far.

    `now` is the time of all changes; `path` is the request's path, for error messages. `ignore` contains the values of
    the flag `ignore`. `groups_with_new_model` are the xids of Groups that the request writes under a new model:
    everything in them must meet their constraints.
    """

    snapshot: Snapshot
    now: str
    path: str
    ignore: Collection[str] = ()
    model: Model = field(init=False)
    changed_groups: dict[str, Group] = field(init=False, default_factory=dict)
    changed: dict[str, Resource] = field(init=False, default_factory=dict)
    groups_with_new_model: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self.model = self.snapshot.model

    @property
    def registry(self) -> RegistryEntity:
        """The Registry's entity."""
        return self.snapshot.registry

    @cached_property
    def types(self) -> Types:
        """The test whether the current model has a type."""
        return types_of(self.model)

    @property
    def registry_attributes(self) -> AttributeSet:
        """The attributes of the Registry in the current model."""
        return self._attribute_set(("registry",), lambda: registry_attributes(self.model))

    def group_attributes(self, type_: GroupType) -> AttributeSet:
        """Return the attributes of a Group type, cached with the model."""
        return self._attribute_set(("group", type_.plural), lambda: group_attributes(type_))

    def version_attributes(self, type_: ResourceType) -> AttributeSet:
        """Return the attributes of the Versions of a Resource type, cached with the model."""
        return self._attribute_set(("version", type_.home, type_.plural), lambda: version_attributes(type_))

    def meta_attributes(self, type_: ResourceType) -> AttributeSet:
        """Return the attributes of the meta of a Resource type, cached with the model."""
        return self._attribute_set(("meta", type_.home, type_.plural), lambda: meta_attributes(type_))

    def _attribute_set(self, key: tuple[Any, ...], make: Callable[[], AttributeSet]) -> AttributeSet:
        attribute_sets = self.model.attribute_sets
        if key not in attribute_sets:
            attribute_sets[key] = make()
        attribute_set: AttributeSet = attribute_sets[key]
        return attribute_set

    def use_model(self, model: Model) -> None:
        """Replace the model. All later operations use the new model."""
        self.model = self.snapshot.model = model
        self.__dict__.pop("types", None)

    # -- lookup ---------------------------------------------------------------------------------------------------

    def group(self, type_: GroupType, id_: str) -> Group | None:
        """Return a Group that exists and is not deleted. Raises: bad_request if the id differs only in case"""
        group = self.snapshot.groups.get((type_.plural, id_.lower()))
        if group is None or group.deleted:
            return None
        self._check_case(group.id, id_, group.xid)
        return group

    def resource(self, location: ResourceLocation) -> Resource | None:
        """Return a Resource that exists and is not deleted. Raises: bad_request if the id differs only in case"""
        resource = self.snapshot.resources.get((location.group.xid, location.type.plural, location.id.lower()))
        if resource is None or resource.deleted:
            return None
        self._check_case(resource.id, location.id, resource.xid)
        return resource

    def version(self, resource: Resource, id_: str) -> Version | None:
        """Return a Version of a Resource. Raises: bad_request if the id differs only in case"""
        if id_ in resource.versions:
            return resource.versions[id_]
        folded = id_.lower()
        for other in resource.versions:
            if other.lower() == folded:
                self._check_case(other, id_, resource.versions[other].xid)
        return None

    def _check_case(self, existing: str, requested: str, xid: str) -> None:
        if existing != requested:
            why = f"'{requested}' differs only in case from the existing id '{existing}'; use that id"
            raise refused("bad_request", xid, error_detail=why)

    # -- creating -------------------------------------------------------------------------------------------------

    def add_group(self, type_: GroupType, id_: str) -> Group:
        """Add a Group without attributes; the caller must `update` it. Raises: malformed_id"""
        check_new_id(id_, self.path)
        members = {type_.id_name: id_, "epoch": 1}
        group = Group(f"/{type_.plural}/{id_}", members, type=type_, id=id_)
        self.snapshot.groups[type_.plural, id_.lower()] = group
        self.registry.mark_updated(self.now)
        self.changed_groups[group.xid] = group
        return group

    def add_resource(self, location: ResourceLocation) -> Resource:
        """Add a Resource without Versions; the caller must add them. Raises: malformed_id"""
        check_new_id(location.id, self.path)
        meta = Entity(f"{location.xid}/meta", {location.type.id_name: location.id, "epoch": 1})
        resource = Resource(location.xid, location.type, location.group, location.id, meta)
        self.snapshot.resources[location.group.xid, location.type.plural, location.id.lower()] = resource
        self.mark_parent_updated(location.group)
        self.changed[location.xid] = resource
        return resource

    def add_version(self, resource: Resource, id_: str | None) -> Version:
        """Add a Version without attributes; the caller must `update` it. Raises: malformed_id

        If `id_` is None, the versionmode generates the id.
        """
        mode = MODES[resource.type.versionmode]
        if id_ is None:
            id_, resource.counter = mode.next_id(resource.counter, resource.versions)
        else:
            check_new_id(id_, self.path, version=True)
            if why := mode.id_fault(id_):
                raise refused("malformed_id", self.path, id=id_, error_detail=why)
        members = {resource.type.id_name: resource.id, "versionid": id_, "epoch": 1}
        version = Version(f"{resource.xid}/versions/{id_}", members)
        resource.versions[id_] = version
        return version

    def mark_parent_updated(self, entity: Entity) -> None:
        """Mark a parent as updated because an entity was added to it or deleted from it."""
        if not entity.is_new:
            entity.mark_updated(self.now)
        if isinstance(entity, Group):
            self.changed_groups[entity.xid] = entity

    # -- deleting -------------------------------------------------------------------------------------------------

    def delete_group(self, group: Group) -> None:
        """Delete a Group with everything in it."""
        group.deleted = True
        self.changed_groups[group.xid] = group
        self.registry.mark_updated(self.now)

    def delete_resource(self, resource: Resource) -> None:
        """Delete a Resource with its Versions."""
        resource.deleted = True
        self.changed[resource.xid] = resource
        self.mark_parent_updated(resource.group)

    # -- constraints ----------------------------------------------------------------------------------------------

    def constraints(self, group: Group, resources: str) -> tuple[GroupConstraint, ...]:
        """Return the effective constraints on a Resource type in a Group. Raises: bad_request"""
        return tuple(
            constraint for constraint in self.constraints_of(group, group.members) if constraint.resources == resources
        )

    def constraints_of(self, group: Group, members: Members) -> tuple[GroupConstraint, ...]:
        """Return the effective constraints of a Group with these members. Raises: bad_request"""
        try:
            return constraints_of(group.type, members.get("constraints"))
        except BadConstraint as error:
            raise refused("bad_request", self.path, error_detail=f"Group '{group.xid}': {error}") from None
