"""Replace the model of a registry that has entities. If any entity does not comply, the new model is rejected.

Consequences of the new model are stored without a new epoch: defaults of new attributes, the order of attributes,
results of validation. Only a new ancestor counts as a change of a Version.

Spec: core/model.md#creating-or-updating-the-registry-model; docs/decisions/0098.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from wirebook.core.entities.affected import AffectedEntities, targets_of
from wirebook.core.entities.attributes import (
    AttributeSet,
    group_attributes,
    meta_attributes,
    registry_attributes,
    version_attributes,
)
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.defaults import DEFAULT, STICKY, choose_default, prune_surplus
from wirebook.core.entities.documents import lacks_url
from wirebook.core.entities.invariants import check_constraints, check_shared, members_of
from wirebook.core.entities.lineage import relink
from wirebook.core.entities.rows import format_members
from wirebook.core.entities.state import Entity, Group, Members, Resource
from wirebook.core.entities.validation import DocumentValidator, check_compatibility, check_formats
from wirebook.core.entities.xref import target_fault
from wirebook.core.model.compiled import Attribute, Attributes, GroupType, Model, ResourceType
from wirebook.core.model.constraints import BadConstraint, constraints_of
from wirebook.core.model.datatypes import check_members
from wirebook.core.model.faults import InvalidValue
from wirebook.core.model.source import model_error
from wirebook.problems.xregistry import refused


def change_model(
    change_set: ChangeSet, new: Model, validator: DocumentValidator, written: AffectedEntities | None = None
) -> Compliance:
    """Make `new` the model of the change set, check all entities against it and adapt them.

    `written` are the entities other than the Registry that the same request writes afterwards; None if it writes
    nothing else. They must comply after they are written: the caller must then call `check_written`.
    Raises: model_error, model_compliance_error, hasdocument_violation, setdefaultversionsticky_false, multiple_roots,
    constraint_failure, mismatched_version_attribute, format_*, compatibility_*
    """
    old = change_set.model
    _check_singulars(old, new)
    change_set.use_model(new)
    compliance = Compliance(change_set, old, validator, written or AffectedEntities())
    compliance.check()
    if written is None:
        compliance.check_registry()
    return compliance


def _check_singulars(old: Model, new: Model) -> None:
    """Check that no type changes its singular name. Raises: model_error"""
    for path, group in new.groups.items():
        was = old.groups.get(path)
        _check_singular(f"groups.{path}", was, group)
        for name, type_ in group.resources.items() if was else ():
            _check_singular(f"groups.{path}.resources.{name}", was.resources.get(name) if was else None, type_)


def _check_singular(path: str, was: GroupType | ResourceType | None, now: GroupType | ResourceType) -> None:
    if was and was.singular != now.singular:
        raise model_error(f"{path}.singular is '{was.singular}' and cannot become '{now.singular}'")


def _affected_group_types(old: Model, new: Model) -> list[str]:
    """Return the Group types whose entities might not comply.

    These are the types that differ in more than new optional attributes, or all if types are removed or defined
    elsewhere, which may break cross-references.
    """
    homes = {(group.plural, type_.plural): type_.home for group, type_ in old.resource_types()}
    new_homes = {(group.plural, type_.plural): type_.home for group, type_ in new.resource_types()}
    if any(new_homes.get(path) != home for path, home in homes.items()) or old.groups.keys() - new.groups.keys():
        return list(old.groups)
    return [plural for plural, group in old.groups.items() if not _accepts_all(group, new.groups[plural])]


def _accepts_all(old: GroupType, new: GroupType) -> bool:
    """Return whether every entity of the old Group type is valid in the new one without changes."""
    if old.constraints != new.constraints or not _only_adds_optional(group_attributes(old), group_attributes(new)):
        return False
    return all(_accepts_all_resources(type_, new.resources[name]) for name, type_ in old.resources.items())


def _accepts_all_resources(old: ResourceType, new: ResourceType) -> bool:
    about_new = {"setversionid": old.setversionid, "typemap": old.typemap}  # these do not affect existing entities
    rest = replace(new, attributes=old.attributes, metaattributes=old.metaattributes, **about_new)  # type: ignore[arg-type]
    attribute_sets = ((version_attributes(old), version_attributes(new)), (meta_attributes(old), meta_attributes(new)))
    return rest == old and all(_only_adds_optional(before, now) for before, now in attribute_sets)


def _only_adds_optional(before: AttributeSet, now: AttributeSet) -> bool:
    """Return whether the new attributes only add optional attributes that no entity can have yet."""
    added = now.attributes.keys() - before.attributes.keys()
    is_new = all(not now.attributes[name].required or name in now.managed for name in added)
    is_same = all(now.attributes.get(name) == attribute for name, attribute in before.attributes.items())
    return is_same and is_new and not (added and "*" in before.attributes)


def _noncompliance(why: str) -> Exception:
    return refused("model_compliance_error", "/model", detail=why)


class _MemberConversion:
    """Converts the members of entities of one kind from the old model to the new one."""

    def __init__(self, before: AttributeSet, now: AttributeSet, change_set: ChangeSet) -> None:
        self._now, self._types = now, change_set.types
        self._taken = now.managed - before.managed
        self._fixed = now.managed - now.branching_ids.keys()
        self._attributes = _unlocked(Attributes(now.editable | now.branching_ids))

    def members(self, entity: Entity) -> Members:
        """Return the members in stored form under the new model. Raises: model_compliance_error"""
        taken = sorted(entity.members.keys() & self._taken)
        if taken:
            raise _noncompliance(f"{entity.xid}: {taken[0]}: the new model uses this name for another attribute.")
        own = {name: value for name, value in entity.members.items() if name not in self._fixed}
        try:
            self._now.check_enumerated_ids(entity.members, self._types)
            checked = check_members(self._attributes, own, self._types)
        except InvalidValue as error:
            raise _noncompliance(f"{entity.xid}: {error}.") from None
        managed = {name: value for name, value in entity.members.items() if name in self._now.managed}
        return self._now.in_order(managed | checked)


def _unlocked(attributes: Attributes) -> Attributes:
    """Return the attributes without `readonly`, at all levels, since the server may set them."""
    return Attributes({name: _without_lock(attribute) for name, attribute in attributes.items()})


def _without_lock(attribute: Attribute) -> Attribute:
    return replace(
        attribute,
        readonly=False,
        attributes=_unlocked(attribute.attributes),
        item=_without_lock(attribute.item) if attribute.item else None,
        ifvalues={key: _unlocked(siblings) for key, siblings in attribute.ifvalues.items()},
    )


class Compliance:
    """Checks that the entities of a registry comply with a new model, and adapts them.

    `check` covers the entities that the request does not write, `check_written` those that it writes.
    """

    def __init__(
        self, change_set: ChangeSet, old: Model, validator: DocumentValidator, written: AffectedEntities
    ) -> None:
        self._change_set, self._old, self._validator, self._written = change_set, old, validator, written
        self._plurals = _affected_group_types(old, change_set.model)
        self._conversions: dict[tuple[str, ...], _MemberConversion] = {}
        self._is_written_now = False

    def check(self) -> None:
        """Check the entities that the request does not write. The types of all entities must exist."""
        sources = []
        for entity in self._change_set.snapshot.reader.everything(self._plurals) if self._plurals else ():
            if isinstance(entity, Group):
                self._group(entity)
            else:
                self._retype(entity)
                if self._is_written(entity):
                    continue
                if entity.xref is None:
                    self._resource(entity, is_bound=not self._is_written(entity.group))
                else:
                    sources.append(entity)
        self._references(sources)

    def check_written(self, change_set: ChangeSet) -> None:
        """Check the entities that the request has written, including the parts that it left unchanged.

        The end-of-request checks then check the constraints of written Groups on everything in them.
        """
        self._change_set, self._is_written_now = change_set, True
        self.check_registry()
        sources = []
        for group in change_set.snapshot.groups.values():
            if not group.is_new and group.type.plural in self._plurals:
                self._convert(group, self._conversion("group", group.type.plural))
                change_set.groups_with_new_model.add(group.xid)
        for resource in change_set.snapshot.resources.values():
            if resource.is_new or resource.group.type.plural not in self._plurals:
                continue
            if resource.xref is None:
                self._resource(resource, is_bound=True)
                change_set.changed[resource.xid] = resource
            else:
                sources.append(resource)
        self._references(sources)

    def check_registry(self) -> None:
        """Check the Registry's own attributes. Raises: model_compliance_error"""
        registry, change_set = self._change_set.registry, self._change_set
        registry.members = _MemberConversion(
            registry_attributes(self._old), change_set.registry_attributes, change_set
        ).members(registry)

    def _is_written(self, entity: Group | Resource) -> bool:
        """Return whether the request writes an entity."""
        if isinstance(entity, Group):
            return (entity.type.plural, entity.id.lower()) in self._written.groups
        group = entity.group
        return (group.type.plural, group.id.lower(), entity.type.plural, entity.id.lower()) in self._written.resources

    # -- single entities --------------------------------------------------------------------------------------------

    def _conversion(self, kind: str, *plurals: str) -> _MemberConversion:
        """Return the conversion of a Group type, or of the ``meta`` or the ``version`` of a Resource type."""
        key = (kind, *plurals)
        if key not in self._conversions:
            before, now = (_attribute_set(model, kind, plurals) for model in (self._old, self._change_set.model))
            self._conversions[key] = _MemberConversion(before, now, self._change_set)
        return self._conversions[key]

    def _convert(self, entity: Entity, conversion: _MemberConversion) -> None:
        entity.members = conversion.members(entity)
        entity.is_rewritten = format_members(entity.members) != format_members(entity.before or {})

    def _group(self, group: Group) -> None:
        type_ = self._change_set.model.groups.get(group.type.plural)
        if type_ is None:
            raise _noncompliance(
                f"The Group {group.xid} has the type '{group.type.plural}', which the new model lacks."
            )
        group.type = type_
        if self._is_written(group):
            return
        self._convert(group, self._conversion("group", type_.plural))
        try:
            constraints_of(type_, group.members.get("constraints"))
        except BadConstraint as error:
            raise _noncompliance(f"{group.xid}: {error}.") from None
        if group.is_rewritten:
            self._change_set.changed_groups[group.xid] = group

    def _retype(self, resource: Resource) -> None:
        """Set the type of a Resource to that of the new model. Raises: model_compliance_error"""
        type_ = resource.group.type.resources.get(resource.type.plural)
        if type_ is None:
            raise _noncompliance(
                f"The Resource {resource.xid} has the type '{resource.type.plural}', which the new model lacks."
            )
        resource.type = type_

    def _resource(self, resource: Resource, *, is_bound: bool) -> None:
        """Check a Resource. `is_bound`: check its Group's constraints, too, since the Group is not written later."""
        before = self._old.groups[resource.group.type.plural].resources[resource.type.plural]
        self._convert_resource(resource, before, resource.type)
        self._check_resource(resource, before, resource.type, is_bound=is_bound)
        if _has_changed(resource):
            self._change_set.changed[resource.xid] = resource

    def _convert_resource(self, resource: Resource, before: ResourceType, now: ResourceType) -> None:
        """Convert the attributes of the meta and of each Version."""
        group = resource.group.type.plural
        self._convert(resource.meta, self._conversion("meta", group, now.plural))
        for version in resource.versions.values():
            has_document = version.document is not None or before.document_names[1] in version.members
            if before.hasdocument and not now.hasdocument and has_document:
                raise refused("hasdocument_violation", version.xid, plural=now.plural)
            if now.hasdocument and lacks_url(version, now):
                raise _noncompliance(f"{version.xid}: {now.document_names[1]}: the new model requires it.")
            self._convert(version, self._conversion("version", group, now.plural))

    def _check_resource(self, resource: Resource, before: ResourceType, now: ResourceType, *, is_bound: bool) -> None:
        """Check a Resource with all its Versions, in the order of the end-of-request checks."""
        change_set = self._change_set
        if now.maxversions == 1 and resource.meta.members[STICKY]:
            raise refused("setdefaultversionsticky_false", resource.xid)
        if (before.versionmode, before.singleversionroot) != (now.versionmode, now.singleversionroot):
            relink(change_set, resource)
            if not resource.meta.members[STICKY]:
                resource.meta.members[DEFAULT] = ""
            choose_default(change_set, resource)
        every = _validation_aspects(before) != _validation_aspects(now)
        check_formats(change_set, resource, self._validator, every=every)
        if is_bound:
            check_constraints(change_set, resource, members_of(resource))
        check_shared(resource)
        check_compatibility(change_set, resource, self._validator, every=every)
        if prune_surplus(change_set, resource):
            check_compatibility(change_set, resource, self._validator)
            choose_default(change_set, resource)

    def _references(self, sources: Collection[Resource]) -> None:
        """Check that targets of cross-references have the same type and meet the constraints of the sources' Groups."""
        for source in sources:
            if why := target_fault(self._change_set, source.type, source.xref or ""):
                raise _noncompliance(f"{source.xid} is a cross-reference to '{source.xref}': {why}.")
        now = [source for source in sources if self._is_final(source)]
        bound = [source for source in now if self._change_set.constraints(source.group, source.type.plural)]
        targets = {source.xref or "" for source in bound}
        shown = (
            {source.xid: source.versions for source in self._change_set.snapshot.reader.versions_shown_by(targets)}
            if targets
            else {}
        )
        for source in bound:
            changed = self._change_set.changed.get(source.xref or "")
            check_constraints(
                self._change_set, source, members_of(changed) if changed else shown.get(source.xref or "", {})
            )

    def _is_final(self, source: Resource) -> bool:
        """Return whether neither the Group of a cross-reference nor its target is written later in the request."""
        if self._is_written_now:
            return True
        return not (self._is_written(source.group) or targets_of((source.xref,)) & self._written.resources)


def _attribute_set(model: Model, kind: str, plurals: Collection[str]) -> AttributeSet:
    group, *rest = plurals
    if kind == "group":
        return group_attributes(model.groups[group])
    type_ = model.groups[group].resources[rest[0]]
    return meta_attributes(type_) if kind == "meta" else version_attributes(type_)


def _validation_aspects(type_: ResourceType) -> tuple[bool, bool, bool]:
    return type_.validateformat, type_.validatecompatibility, type_.strictvalidation


def _has_changed(resource: Resource) -> bool:
    entities: list[Entity] = [resource.meta, *resource.versions.values()]
    return resource.versions.keys() != resource.versions_before.keys() or any(
        entity.is_rewritten or entity.members != entity.before for entity in entities
    )
