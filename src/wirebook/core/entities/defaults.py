"""The meta of a Resource and the choice of its default Version.

Spec: core/spec.md#meta-entity; core/spec.md#defaultversionid-attribute; core/spec.md#default-version-of-a-resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wirebook.core.entities.attributes import as_id, check_epoch, check_id, refusal, update
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.lineage import links_of, only_version, prune
from wirebook.core.entities.state import Resource
from wirebook.core.entities.versions import MODES
from wirebook.core.entities.xref import visible_epoch
from wirebook.core.model.compiled import Attribute
from wirebook.core.model.datatypes import check_value
from wirebook.core.model.faults import InvalidValue
from wirebook.problems.xregistry import refused

STICKY, DEFAULT = "defaultversionsticky", "defaultversionid"


def write_meta(
    change_set: ChangeSet, resource: Resource, metadata: Mapping[str, Any] | None, patch: bool, flag: str
) -> None:
    """Write the meta (None if none was sent), then set the default Version that it specifies.

    `flag` is the value of setdefaultversionid (an id, ``null`` or "" if absent), which takes precedence.
    Raises: mismatched_id, mismatched_epoch, unknown_id, setdefaultversionsticky_false, all errors of `update`
    """
    meta = resource.meta
    if metadata is not None:
        check_id(metadata, resource.type.singular, resource.id, meta.xid)
        check_epoch(meta, metadata, ignored="epoch" in change_set.ignore, current=visible_epoch(change_set, resource))
        _update(change_set, resource, metadata, patch=patch)
    elif meta.is_new:
        _set_initial_members(change_set, resource)
    elif flag or resource.versions.keys() != resource.versions_before.keys():
        meta.mark_updated(change_set.now)
    _set_default(change_set, resource, metadata, patch, flag)


def _update(change_set: ChangeSet, resource: Resource, metadata: Mapping[str, Any], *, patch: bool) -> None:
    attribute_set = change_set.meta_attributes(resource.type)
    update(resource.meta, attribute_set, metadata, patch=patch, now=change_set.now, types=change_set.types)
    resource.meta.members.setdefault("readonly", False)


def _set_initial_members(change_set: ChangeSet, resource: Resource) -> None:
    """Set the attributes of a new meta that was not in the request. They are cached per model and type."""
    meta, type_, known = resource.meta, resource.type, change_set.model.bare_metas
    key = *type_.home, type_.plural
    if key in known:
        own = {type_.id_name: resource.id, "createdat": change_set.now, "modifiedat": change_set.now}
        meta.members = known[key] | own
        meta.mark_updated(change_set.now)
    else:
        _update(change_set, resource, {}, patch=False)
        known[key] = {**meta.members}


def _set_default(
    change_set: ChangeSet, resource: Resource, metadata: Mapping[str, Any] | None, patch: bool, flag: str
) -> None:
    """Set whether the default Version is sticky, and its id if it is.

    For the id "", `choose_default` selects the newest Version later.
    """
    members = resource.meta.members
    current = members.get(DEFAULT, "")
    sticky, chosen = bool(members.get(STICKY, False)), current
    if metadata is not None or resource.meta.is_new:
        sticky, chosen = _requested_default(change_set, resource, metadata or {}, patch)
    if flag:
        sticky = _check_sticky(change_set, resource, flag != "null")
        chosen = flag if sticky else ""
    if sticky and resource.type.maxversions == 1:
        raise refused("setdefaultversionsticky_false", resource.xid)
    if sticky and chosen and chosen not in resource.versions:
        if flag or chosen != current or chosen not in resource.versions_before:
            raise refused("unknown_id", resource.meta.xid, singular="version", id=chosen)
        sticky, chosen = _must_be_sticky(change_set, resource), ""  # the default Version was deleted
    members[STICKY], members[DEFAULT] = sticky, chosen if sticky else ""


def _requested_default(
    change_set: ChangeSet, resource: Resource, metadata: Mapping[str, Any], patch: bool
) -> tuple[bool, str]:
    """Return whether the default Version is sticky and its id, according to the meta in the request."""
    choice = {
        name: value for name, value in metadata.items() if name in (STICKY, DEFAULT) and name not in change_set.ignore
    }
    chosen = choice.get(DEFAULT)
    if chosen not in (None, ""):
        as_id(chosen, DEFAULT, resource.meta.xid)
    value = choice.get(STICKY)
    if value is None:
        value = _sticky_definition(change_set, resource).default
        if patch and STICKY not in choice and DEFAULT in choice:
            value = bool(chosen)
        elif patch and STICKY not in choice and not resource.meta.is_new:
            value = bool(resource.meta.members.get(STICKY, False))
    sticky = _check_sticky(change_set, resource, value)
    if not sticky or chosen:
        return sticky, chosen or ""
    # Reading: a PATCH that makes the default sticky does not select another Version (checklist AMB-10).
    keeps = patch and DEFAULT not in choice
    return True, resource.meta.members.get(DEFAULT, "") if keeps else ""


def _sticky_definition(change_set: ChangeSet, resource: Resource) -> Attribute:
    """Return the definition of defaultversionsticky in the model."""
    return change_set.meta_attributes(resource.type).attributes[STICKY]


def _check_sticky(change_set: ChangeSet, resource: Resource, value: Any) -> bool:
    """Check a value of defaultversionsticky against the model. Raises: invalid_attribute"""
    try:
        return bool(check_value(_sticky_definition(change_set, resource), value, STICKY, change_set.types))
    except InvalidValue as error:
        raise refusal(error, resource.meta.xid) from None


def _must_be_sticky(change_set: ChangeSet, resource: Resource) -> bool:
    """Return whether the model requires a sticky default Version."""
    attribute = _sticky_definition(change_set, resource)
    return bool(attribute.enum) and attribute.strict and False not in attribute.enum


def prune_surplus(change_set: ChangeSet, resource: Resource) -> bool:
    """Delete the oldest Versions beyond `maxversions`. Return whether there were any. Raises: multiple_roots"""
    has_surplus = prune(change_set, resource)
    if has_surplus and not resource.meta.members[STICKY]:
        resource.meta.members[DEFAULT] = newest(resource)
    return has_surplus


def choose_default(change_set: ChangeSet, resource: Resource) -> None:
    """Set the default Version after all Versions are written: the sticky one, or the newest."""
    members, before = resource.meta.members, resource.meta.before
    if not members[DEFAULT]:
        members[DEFAULT] = newest(resource)
    moved = before is not None and any(members[name] != before.get(name) for name in (DEFAULT, STICKY))
    if moved or resource.versions.keys() != resource.versions_before.keys():
        resource.meta.mark_updated(change_set.now)
    resource.meta.members = change_set.meta_attributes(resource.type).in_order(members)


def newest(resource: Resource) -> str:
    """Return the id of the newest Version."""
    only = only_version(resource)
    if only:
        return only.id
    return MODES[resource.type.versionmode].newest(links_of(resource).values()).versionid
