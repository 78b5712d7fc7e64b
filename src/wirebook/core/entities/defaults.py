"""The meta of a Resource and its default Version.

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
from wirebook.core.entities.xref import shown_epoch
from wirebook.core.model.compiled import Attribute
from wirebook.core.model.datatypes import InvalidValue, check_value
from wirebook.problems.xregistry import refused

STICKY, DEFAULT = "defaultversionsticky", "defaultversionid"


def write_meta(draft: ChangeSet, resource: Resource, sent: Mapping[str, Any] | None, patch: bool, flag: str) -> None:
    """Gives the meta what was sent (None: nothing), and then the choice of the default Version that is in it.

    `flag` is the id, ``null`` or "" of the flag setdefaultversionid, which is stronger.
    Raises: mismatched_id, mismatched_epoch, unknown_id, setdefaultversionsticky_false, what `update` raises
    """
    meta = resource.meta
    if sent is not None:
        check_id(sent, resource.type.singular, resource.id, meta.xid)
        check_epoch(meta, sent, ignored="epoch" in draft.ignore, current=shown_epoch(draft, resource))
        _update(draft, resource, sent, patch=patch)
    elif meta.is_new:
        _make(draft, resource)
    elif flag or resource.versions.keys() != resource.had.keys():
        meta.touch(draft.now)
    _choose(draft, resource, sent, patch, flag)


def _update(draft: ChangeSet, resource: Resource, sent: Mapping[str, Any], *, patch: bool) -> None:
    level = draft.meta_level(resource.type)
    update(resource.meta, level, sent, patch=patch, now=draft.now, types=draft.types)
    resource.meta.members.setdefault("readonly", False)


def _make(draft: ChangeSet, resource: Resource) -> None:
    """Gives a new meta what it has where nothing is sent, which is worked out once for a model."""
    meta, type_, known = resource.meta, resource.type, draft.model.bare_metas
    key = *type_.home, type_.plural
    if key in known:
        own = {type_.id_name: resource.id, "createdat": draft.now, "modifiedat": draft.now}
        meta.members = known[key] | own
        meta.touch(draft.now)
    else:
        _update(draft, resource, {}, patch=False)
        known[key] = {**meta.members}


def _choose(draft: ChangeSet, resource: Resource, sent: Mapping[str, Any] | None, patch: bool, flag: str) -> None:
    """Sets whether the default is sticky, and which it is where the request says it; else "" for the newest."""
    members = resource.meta.members
    current = members.get(DEFAULT, "")
    sticky, chosen = bool(members.get(STICKY, False)), current
    if sent is not None or resource.meta.is_new:
        sticky, chosen = _sent_choice(draft, resource, sent or {}, patch)
    if flag:
        sticky = _checked(draft, resource, flag != "null")
        chosen = flag if sticky else ""
    if sticky and resource.type.maxversions == 1:
        raise refused("setdefaultversionsticky_false", resource.xid)
    if sticky and chosen and chosen not in resource.versions:
        if flag or chosen != current or chosen not in resource.had:
            raise refused("unknown_id", resource.meta.xid, singular="version", id=chosen)
        sticky, chosen = _is_pinned(draft, resource), ""  # the default was deleted
    members[STICKY], members[DEFAULT] = sticky, chosen if sticky else ""


def _sent_choice(draft: ChangeSet, resource: Resource, sent: Mapping[str, Any], patch: bool) -> tuple[bool, str]:
    """Sticky or not and the Version, as a meta that was sent says it."""
    given = {name: value for name, value in sent.items() if name in (STICKY, DEFAULT) and name not in draft.ignore}
    chosen = given.get(DEFAULT)
    if chosen not in (None, ""):
        as_id(chosen, DEFAULT, resource.meta.xid)
    sticky = _sticky(draft, resource, given, patch)
    if not sticky or chosen:
        return sticky, chosen or ""
    # Reading: a PATCH that makes the default sticky keeps the one there is (checklist AMB-10).
    keeps = patch and DEFAULT not in given
    return True, resource.meta.members.get(DEFAULT, "") if keeps else ""


def _sticky(draft: ChangeSet, resource: Resource, given: Mapping[str, Any], patch: bool) -> bool:
    value = given.get(STICKY)
    if value is None:
        value = _attribute(draft, resource).default
        if patch and STICKY not in given and DEFAULT in given:
            value = bool(given[DEFAULT])
        elif patch and STICKY not in given and not resource.meta.is_new:
            value = bool(resource.meta.members.get(STICKY, False))
    return _checked(draft, resource, value)


def _attribute(draft: ChangeSet, resource: Resource) -> Attribute:
    """What the model says of being sticky."""
    return draft.meta_level(resource.type).attributes[STICKY]


def _checked(draft: ChangeSet, resource: Resource, value: Any) -> bool:
    """Sticky or not, as the model lets it be."""
    try:
        return bool(check_value(_attribute(draft, resource), value, STICKY, draft.types))
    except InvalidValue as error:
        raise refusal(error, resource.meta.xid) from None


def _is_pinned(draft: ChangeSet, resource: Resource) -> bool:
    """Whether the model lets no default Version be one that is not sticky."""
    attribute = _attribute(draft, resource)
    return bool(attribute.enum) and attribute.strict and False not in attribute.enum


def prune_surplus(draft: ChangeSet, resource: Resource) -> bool:
    """Deletes the oldest Versions of a Resource that has more than it may have; says whether it had.

    Raises: multiple_roots
    """
    has_surplus = prune(draft, resource)
    if has_surplus and not resource.meta.members[STICKY]:
        resource.meta.members[DEFAULT] = newest(resource)
    return has_surplus


def choose_default(draft: ChangeSet, resource: Resource) -> None:
    """The default Version, as it is once everything is written: the one that is sticky, or the newest."""
    members, before = resource.meta.members, resource.meta.before
    if not members[DEFAULT]:
        members[DEFAULT] = newest(resource)
    moved = before is not None and any(members[name] != before.get(name) for name in (DEFAULT, STICKY))
    if moved or resource.versions.keys() != resource.had.keys():
        resource.meta.touch(draft.now)
    resource.meta.members = draft.meta_level(resource.type).in_order(members)


def newest(resource: Resource) -> str:
    only = only_version(resource)
    if only:
        return only.id
    return MODES[resource.type.versionmode].newest(links_of(resource).values()).versionid
