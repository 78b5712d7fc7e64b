"""Another model for a registry that has entities: all of them comply with it, or it is refused.

What follows from the new model is stored without a new epoch: defaults of new attributes, the order of attributes, what
validation says. Only a new place among the Versions is a change of the Version itself.

Spec: core/model.md#creating-or-updating-the-registry-model; docs/decisions/0098.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from wirebook.core.entities.affected import Touched, targets_of
from wirebook.core.entities.attributes import Level, group_level, meta_level, registry_level, version_level
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.defaults import DEFAULT, STICKY, choose_default, prune_surplus
from wirebook.core.entities.documents import lacks_url
from wirebook.core.entities.invariants import check_constraints, check_shared, members_of
from wirebook.core.entities.lineage import relink
from wirebook.core.entities.rows import format_members
from wirebook.core.entities.state import Entity, Group, Members, Resource, Version
from wirebook.core.entities.validation import DocumentValidator, check_compatibility, check_formats
from wirebook.core.entities.xref import fault_of_target
from wirebook.core.model.compiled import Attribute, Attributes, GroupType, Model, ResourceType
from wirebook.core.model.constraints import BadConstraint, constraints_of
from wirebook.core.model.datatypes import InvalidValue, check_members
from wirebook.core.model.source import model_error
from wirebook.problems.xregistry import refused


def change_model(
    draft: ChangeSet, new: Model, validator: DocumentValidator, written: Touched | None = None
) -> Compliance:
    """Makes `new` the model of the draft and adapts the entities to it, if all of them comply with it.

    `written` names the entities that the same request writes afterwards, besides the Registry. They must comply once
    they are written: the caller calls `check_written` then. None: nothing else is written.
    Raises: model_error, model_compliance_error, hasdocument_violation, setdefaultversionsticky_false, multiple_roots,
    constraint_failure, mismatched_version_attribute, format_*, compatibility_*
    """
    old = draft.model
    _check_singulars(old, new)
    draft.use_model(new)
    compliance = Compliance(draft, old, validator, written or Touched())
    compliance.check()
    if written is None:
        compliance.check_registry()
    return compliance


def _check_singulars(old: Model, new: Model) -> None:
    """Raises: model_error"""
    for place, group in new.groups.items():
        was = old.groups.get(place)
        _check_singular(f"groups.{place}", was, group)
        for name, type_ in group.resources.items() if was else ():
            _check_singular(f"groups.{place}.resources.{name}", was.resources.get(name) if was else None, type_)


def _check_singular(place: str, was: GroupType | ResourceType | None, now: GroupType | ResourceType) -> None:
    if was and was.singular != now.singular:
        raise model_error(f"{place}.singular is '{was.singular}' and cannot become '{now.singular}'")


def _concerned(old: Model, new: Model) -> list[str]:
    """The Group types whose entities may not comply: those that differ; all, where references may lead elsewhere."""
    homes = {(group.plural, type_.plural): type_.home for group, type_ in old.resource_types()}
    kept = {(group.plural, type_.plural): type_.home for group, type_ in new.resource_types()}
    if any(kept.get(place) != home for place, home in homes.items()) or old.groups.keys() - new.groups.keys():
        return list(old.groups)
    return [plural for plural, group in old.groups.items() if not _is_wider(group, new.groups[plural])]


def _is_wider(old: GroupType, new: GroupType) -> bool:
    """Whether all entities of one type are entities of another, as they are."""
    if old.constraints != new.constraints or not _only_adds(group_level(old), group_level(new)):
        return False
    return all(_is_wider_resource(type_, new.resources[name]) for name, type_ in old.resources.items())


def _is_wider_resource(old: ResourceType, new: ResourceType) -> bool:
    about_new = {"setversionid": old.setversionid, "typemap": old.typemap}  # nothing that is there follows from these
    rest = replace(new, attributes=old.attributes, metaattributes=old.metaattributes, **about_new)  # type: ignore[arg-type]
    levels = ((version_level(old), version_level(new)), (meta_level(old), meta_level(new)))
    return rest == old and all(_only_adds(before, now) for before, now in levels)


def _only_adds(before: Level, now: Level) -> bool:
    """Whether a kind of entity only got more attributes, which it need not have and which none can have yet."""
    added = now.attributes.keys() - before.attributes.keys()
    is_new = all(not now.attributes[name].required or name in now.managed for name in added)
    is_same = all(now.attributes.get(name) == attribute for name, attribute in before.attributes.items())
    return is_same and is_new and not (added and "*" in before.attributes)


def _comply(why: str) -> Exception:
    return refused("model_compliance_error", "/model", detail=why)


class _MemberFitting:
    """The members of entities of one kind, by a model that was and by the one that is now."""

    def __init__(self, before: Level, now: Level, draft: ChangeSet) -> None:
        self._now, self._types = now, draft.types
        self._taken = now.managed - before.managed
        self._fixed = now.managed - now.deciding.keys()
        self._attributes = _unlocked(Attributes(now.editable | now.deciding))

    def members(self, entity: Entity) -> Members:
        """The members as they are stored from now on. Raises: model_compliance_error"""
        taken = sorted(entity.members.keys() & self._taken)
        if taken:
            raise _comply(f"{entity.xid}: {taken[0]}: it is the name of something else now.")
        own = {name: value for name, value in entity.members.items() if name not in self._fixed}
        try:
            self._now.check_narrowed(entity.members, self._types)
            checked = check_members(self._attributes, own, "", self._types)
        except InvalidValue as error:
            raise _comply(f"{entity.xid}: {error.name}: {error.why}.") from None
        managed = {name: value for name, value in entity.members.items() if name in self._now.managed}
        return self._now.in_order(managed | checked)


def _unlocked(attributes: Attributes) -> Attributes:
    """Attributes as they are for the server, which keeps the values that clients cannot set."""
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
    """Checks that the entities of a registry comply with another model, and adapts them to it.

    `check` is about the entities that the request leaves alone, `check_written` about those that it `written`.
    """

    def __init__(self, draft: ChangeSet, old: Model, validator: DocumentValidator, written: Touched) -> None:
        self._draft, self._old, self._validator, self._written = draft, old, validator, written
        self._plurals = _concerned(old, draft.model)
        self._fittings: dict[tuple[str, ...], _MemberFitting] = {}
        self._is_written_now = False

    def check(self) -> None:
        """Check what the request does not write; what it writes must only have a type."""
        sources = []
        for entity in self._draft.snapshot.reader.everything(self._plurals) if self._plurals else ():
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

    def check_written(self, draft: ChangeSet) -> None:
        """Check what the request has written, as `draft` has it, with those parts that the request left as they were.

        Settling checks the constraints of written Groups afterwards: on everything in them.
        """
        self._draft, self._is_written_now = draft, True
        self.check_registry()
        sources = []
        for group in draft.snapshot.groups.values():
            if not group.is_new and group.type.plural in self._plurals:
                self._fit(group, self._fitting("group", group.type.plural))
                draft.remodelled.add(group.xid)
        for resource in draft.snapshot.resources.values():
            if resource.is_new or resource.group.type.plural not in self._plurals:
                continue
            if resource.xref is None:
                self._resource(resource, is_bound=True)
                draft.changed[resource.xid] = resource
            else:
                sources.append(resource)
        self._references(sources)

    def check_registry(self) -> None:
        registry, draft = self._draft.registry, self._draft
        registry.members = _MemberFitting(registry_level(self._old), draft.registry_level, draft).members(registry)

    def _is_written(self, entity: Group | Resource) -> bool:
        """Whether the request writes an entity."""
        if isinstance(entity, Group):
            return (entity.type.plural, entity.id.lower()) in self._written.groups
        group = entity.group
        return (group.type.plural, group.id.lower(), entity.type.plural, entity.id.lower()) in self._written.resources

    # -- single entities --------------------------------------------------------------------------------------------

    def _fitting(self, kind: str, *plurals: str) -> _MemberFitting:
        """How entities of a type fit: a Group's, or the ``meta`` or the ``version`` of a Resource's."""
        key = (kind, *plurals)
        if key not in self._fittings:
            before, now = (_level(model, kind, plurals) for model in (self._old, self._draft.model))
            self._fittings[key] = _MemberFitting(before, now, self._draft)
        return self._fittings[key]

    def _fit(self, entity: Entity, fitting: _MemberFitting) -> None:
        entity.members = fitting.members(entity)
        entity.is_rewritten = format_members(entity.members) != format_members(entity.before or {})

    def _group(self, group: Group) -> None:
        type_ = self._draft.model.groups.get(group.type.plural)
        if type_ is None:
            raise _comply(f"There is a Group of the type '{group.type.plural}': {group.xid}.")
        group.type = type_
        if self._is_written(group):
            return
        self._fit(group, self._fitting("group", type_.plural))
        try:
            constraints_of(type_, group.members.get("constraints"))
        except BadConstraint as error:
            raise _comply(f"{group.xid}: {error}.") from None
        if group.is_rewritten:
            self._draft.changed_groups[group.xid] = group

    def _retype(self, resource: Resource) -> None:
        """Give a Resource its type in the new model."""
        type_ = resource.group.type.resources.get(resource.type.plural)
        if type_ is None:
            raise _comply(f"There is a Resource of the type '{resource.type.plural}': {resource.xid}.")
        resource.type = type_

    def _resource(self, resource: Resource, *, is_bound: bool) -> None:
        """`is_bound`: the constraints of its Group are in force now, not once the Group is written."""
        before = self._old.groups[resource.group.type.plural].resources[resource.type.plural]
        self._members(resource, before, resource.type)
        self._whole(resource, before, resource.type, is_bound=is_bound)
        if _differs(resource):
            self._draft.changed[resource.xid] = resource

    def _members(self, resource: Resource, before: ResourceType, now: ResourceType) -> None:
        """The attributes of the meta and of each Version."""
        group = resource.group.type.plural
        self._fit(resource.meta, self._fitting("meta", group, now.plural))
        for version in resource.versions.values():
            if before.hasdocument and not now.hasdocument and _has_document(version, before):
                raise refused("hasdocument_violation", version.xid, plural=now.plural)
            if now.hasdocument and lacks_url(version, now):
                raise _comply(f"{version.xid}: {now.document_names[1]}: it is required.")
            self._fit(version, self._fitting("version", group, now.plural))

    def _whole(self, resource: Resource, before: ResourceType, now: ResourceType, *, is_bound: bool) -> None:
        """What is said of a Resource with all its Versions, in the order in which requests are held to it."""
        draft = self._draft
        if now.maxversions == 1 and resource.meta.members[STICKY]:
            raise refused("setdefaultversionsticky_false", resource.xid)
        if (before.versionmode, before.singleversionroot) != (now.versionmode, now.singleversionroot):
            self._reorder(resource)
        every = _validation(before) != _validation(now)
        check_formats(draft, resource, self._validator, every=every)
        if is_bound:
            check_constraints(draft, resource, members_of(resource))
        check_shared(resource)
        check_compatibility(draft, resource, self._validator, every=every)
        if prune_surplus(draft, resource):
            check_compatibility(draft, resource, self._validator)
            choose_default(draft, resource)

    def _reorder(self, resource: Resource) -> None:
        relink(self._draft, resource)
        if not resource.meta.members[STICKY]:
            resource.meta.members[DEFAULT] = ""
        choose_default(self._draft, resource)

    def _references(self, sources: Collection[Resource]) -> None:
        """Cross-references lead to their own type, and what they show is what their Groups demand."""
        for source in sources:
            if why := fault_of_target(self._draft, source.type, source.xref or ""):
                raise _comply(f"{source.xid} is a cross-reference to '{source.xref}': {why}.")
        now = [each for each in sources if self._is_settled(each)]
        bound = [each for each in now if self._draft.constraints(each.group, each.type.plural)]
        wanted = {each.xref or "" for each in bound}
        shown = {each.xid: each.versions for each in self._draft.snapshot.reader.shown_by(wanted)} if wanted else {}
        for source in bound:
            changed = self._draft.changed.get(source.xref or "")
            check_constraints(self._draft, source, members_of(changed) if changed else shown.get(source.xref or "", {}))

    def _is_settled(self, source: Resource) -> bool:
        """Whether neither the Group of a cross-reference nor its target is still to be written."""
        if self._is_written_now:
            return True
        return not (self._is_written(source.group) or targets_of((source.xref,)) & self._written.resources)


def _level(model: Model, kind: str, plurals: Collection[str]) -> Level:
    group, *rest = plurals
    if kind == "group":
        return group_level(model.groups[group])
    type_ = model.groups[group].resources[rest[0]]
    return meta_level(type_) if kind == "meta" else version_level(type_)


def _has_document(version: Version, type_: ResourceType) -> bool:
    return version.document is not None or type_.document_names[1] in version.members


def _validation(type_: ResourceType) -> tuple[bool, bool, bool]:
    return type_.validateformat, type_.validatecompatibility, type_.strictvalidation


def _differs(resource: Resource) -> bool:
    entities: list[Entity] = [resource.meta, *resource.versions.values()]
    return resource.versions.keys() != resource.had.keys() or any(
        entity.is_rewritten or entity.members != entity.before for entity in entities
    )
