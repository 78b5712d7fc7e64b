"""Another model for a registry: read, checked, and held against everything that is there.

Spec: core/model.md#creating-or-updating-the-registry-model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wirebook.core.constraints import check_model_constraints
from wirebook.core.datatypes import Unfit, check_members, shown, types_of
from wirebook.core.dotpath import BadPath
from wirebook.core.draft import Draft
from wirebook.core.entity import Level
from wirebook.core.lineage import prune, relink
from wirebook.core.model import Model, ResourceType, compile_model
from wirebook.core.model_attributes import check_targets
from wirebook.core.model_full import complete
from wirebook.core.model_language import check_language
from wirebook.core.model_source import Fetch, Homes, expand_includes, import_resources, model_error
from wirebook.core.settlement import check_constraints, check_shared, members_of
from wirebook.core.state import Entity, Group, Resource
from wirebook.core.validation import content
from wirebook.core.xref import fault_of_target
from wirebook.problems.xregistry import refused


@dataclass(frozen=True, slots=True)
class NewModel:
    """A model and where its imported types are from."""

    model: Model
    homes: Homes


def read_model(source: Any, fetch: Fetch, modes: tuple[str, ...]) -> NewModel:
    """The model of a source that a client sent. Raises: model_error, model_required_true, model_scalar_default,
    invalid_attribute"""
    if not isinstance(source, Mapping):
        raise model_error(f"it must be an object, not {shown(source)}")
    expanded = expand_includes(source, fetch)
    check_language(expanded, modes)
    complete_source, homes = import_resources(expanded)
    try:
        model = compile_model(complete(complete_source), homes)
    except BadPath as error:
        raise model_error(f"constraints: {error}") from None
    check_targets(model, types_of(model))
    check_model_constraints(model)
    return NewModel(model, homes)


def change_model(draft: Draft, new: Model) -> None:
    """Makes `new` the model of the draft, if everything that is there complies with it.

    Raises: model_compliance_error, hasdocument_violation, setdefaultversionsticky_false, and what single entities break
    """
    found = list(draft.snapshot.reader.everything())
    draft.use_model(new)
    for entity in found:
        if isinstance(entity, Group):
            _check_group(draft, entity)
        else:
            _check_resource(draft, entity)
    _check_references(draft, [entity for entity in found if isinstance(entity, Resource)])
    _check(draft.registry_level, draft.registry, draft)


def _comply(why: str) -> Exception:
    return refused("model_compliance_error", "/model", detail=why)


def _check_group(draft: Draft, group: Group) -> None:
    type_ = draft.model.groups.get(group.type.plural)
    if type_ is None or type_.singular != group.type.singular:
        raise _comply(f"There is a Group of the type '{group.type.plural}': {group.xid}.")
    group.type = type_
    _check(draft.level_of(type_), group, draft)


def _check(level: Level, entity: Entity, draft: Draft) -> None:
    own = {name: value for name, value in entity.members.items() if name not in level.managed}
    try:
        check_members(level.editable, own, "", draft.types)
    except Unfit as error:
        raise _comply(f"{entity.xid}: {error.name}: {error.why}.") from None


def _check_resource(draft: Draft, resource: Resource) -> None:
    type_ = resource.group.type.resources.get(resource.type.plural)
    if type_ is None or type_.singular != resource.type.singular:
        raise _comply(f"There is a Resource of the type '{resource.type.plural}': {resource.xid}.")
    before, resource.type = resource.type, type_
    if resource.xref is not None:
        return
    _check(draft.meta_level(type_), resource.meta, draft)
    for version in resource.versions.values():
        if (
            before.hasdocument
            and not type_.hasdocument
            and (content(version) or before.document_names[1] in version.members)
        ):
            raise refused("hasdocument_violation", version.xid, plural=type_.plural)
        _check(draft.version_level(type_), version, draft)
    if type_.maxversions == 1 and resource.meta.members.get("defaultversionsticky"):
        raise refused("setdefaultversionsticky_false", resource.xid)
    _reorder(draft, resource, before, type_)
    check_constraints(draft, resource, members_of(resource))
    check_shared(resource)


def _check_references(draft: Draft, resources: list[Resource]) -> None:
    """Cross-references lead to their own type, and what they show is what their Groups demand."""
    by_xid = {each.xid: each for each in resources}
    for source in resources:
        if source.xref is None:
            continue
        if why := fault_of_target(draft, source.type, source.xref):
            raise _comply(f"{source.xid} is a cross-reference to '{source.xref}': {why}.")
        target = by_xid.get(source.xref)
        if target and target.xref is None:
            check_constraints(draft, source, members_of(target))


def _reorder(draft: Draft, resource: Resource, before: ResourceType, now: ResourceType) -> None:
    """What another mode or number of Versions does to those that are there."""
    if (before.versionmode, before.maxversions, before.singleversionroot) == (
        now.versionmode,
        now.maxversions,
        now.singleversionroot,
    ):
        return
    count = len(resource.versions)
    relink(draft, resource)
    prune(draft, resource)
    if len(resource.versions) != count:
        resource.meta.touch(draft.now)
    draft.changed[resource.xid] = resource
