"""Writing a Resource: its Versions, the attributes of its default Version, its meta; and what follows from them.

The steps are those of the text and in its order. Formats, constraints and compatibility are held at the end of the
request, when everything it changes is in place (see `wirebook.core.entities.invariants`).

Spec: core/spec.md#resource-processing-algorithm; core/resource.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.entities.attributes import RESOURCE_LEVEL, as_id, check_epoch, check_id, nested_map, update
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.defaults import choose_default, write_meta
from wirebook.core.entities.documents import Body, check_contenttype, check_one, check_url, with_type, write_document
from wirebook.core.entities.lineage import relink
from wirebook.core.entities.state import Resource, ResourceLocation, Version
from wirebook.core.entities.versions import SEMVER_COUNTER
from wirebook.core.entities.xref import check_no_reference, is_reference, leave_reference, write_reference
from wirebook.core.model.compiled import Attribute
from wirebook.core.model.datatypes import InvalidValue, check_value, shown
from wirebook.problems.xregistry import refused

Sent = Mapping[str, Any]
REQUEST: Final = "request"
"""What stands in flags and attributes for the Version that the server chooses an id for."""


@dataclass(frozen=True, slots=True)
class How:
    """How a Resource is written: in part (`patch`), as what the request addresses (`root`), and with which default
    (``setdefaultversionid``; "" where the flag was not given). `headers`: attributes came as headers, so that those
    which are absent stay; `body` is the document, where it came as one."""

    patch: bool = False
    root: bool = False
    default: str = ""
    headers: bool = False
    body: Body | None = None


def write_resource(draft: ChangeSet, place: ResourceLocation, sent: Sent, how: How) -> Resource:
    """Makes or changes a Resource. Raises: what its parts raise, readonly, mismatched_id"""
    resource = draft.resource(place)
    if resource is not None and is_locked(draft, resource, how):
        return resource
    check_id(sent, place.type.singular, place.id, place.xid, ignored=how.root and "id" in draft.ignore)
    meta = _meta_of(sent, place.xid)
    if is_reference(resource, meta, how.patch):
        return write_reference(draft, place, sent, meta or {}, body=how.body, default=how.default)
    was_reference = resource is not None and resource.xref is not None
    if resource is None:
        resource = draft.add_resource(place)
    elif was_reference:
        leave_reference(draft, resource)
    versions = _versions_of(draft, sent, place.xid)
    if resource.is_new or was_reference:
        targets = _first_target(draft, resource, sent, meta or {}, has_versions=bool(versions))
    else:
        check_id(sent, "version", resource.default, resource.xid)
        targets = [resource.default]
    for key in sorted(versions, key=str.lower):
        write_version(draft, resource, key, versions[key], How(patch=how.patch))
    _skip_numbers(resource, versions)
    for target in targets:
        if target not in versions:
            own = {name: value for name, value in sent.items() if name not in RESOURCE_LEVEL}
            check_one(place.type, own, place.xid)
            write_version(draft, resource, target, own, how)
    finish(draft, resource, meta, how)
    return resource


def _skip_numbers(resource: Resource, ids: Collection[str]) -> None:
    """Make the counter continue after the highest number among the Versions sent with a Resource: those may have been
    exported from a registry that had made, and deleted, Versions with the numbers in between."""
    numbers = [int(id_) for id_ in ids if NUMBER.fullmatch(id_)]
    if not resource.counter & SEMVER_COUNTER:
        resource.counter = max([resource.counter, *numbers])


NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}")


def is_locked(draft: ChangeSet, resource: Resource, how: How, subject: str = "") -> bool:
    """Whether a Resource is read-only and is to be left out, which only one among others can be.

    Raises: readonly, bad_flag
    """
    if not resource.meta.members.get("readonly"):
        return False
    if "readonly" not in draft.ignore:
        raise refused("readonly", subject or resource.xid)
    if how.root:
        raise refused("bad_flag", draft.path, flag="ignore", detail="The request is about a read-only Resource alone.")
    return True


def _meta_of(sent: Sent, subject: str) -> Sent | None:
    """Return the meta in a Resource, or None if it has none; null is an empty meta. Raises: invalid_attribute"""
    if "meta" not in sent:
        return None
    meta = sent["meta"]
    if meta is None:
        return {}
    if not isinstance(meta, Mapping):
        why = f"it must be an object, not {shown(meta)}"
        raise refused("invalid_attribute", subject, name="meta", error_detail=why)
    return meta


def _versions_of(draft: ChangeSet, sent: Sent, owner: str) -> Mapping[str, Sent]:
    versions = sent.get("versions")
    return {} if versions is None else nested_map(versions, "versions", owner, draft.path)


def _first_target(
    draft: ChangeSet, resource: Resource, sent: Sent, meta: Sent, *, has_versions: bool
) -> list[str | None]:
    """The Version that gets the attributes at the level of a Resource that has none yet: by one clue or another.

    None is one whose id the server chooses; the list is empty where nothing gets them.
    """
    named = sent.get("versionid")
    if named is not None:
        return [as_id(named, "versionid", resource.xid)]
    clue = None if "defaultversionid" in draft.ignore else meta.get("defaultversionid")
    if clue:
        return [as_id(clue, "defaultversionid", resource.meta.xid)]
    return [] if has_versions else [None]


# -- one Version --------------------------------------------------------------------------------------------------


def write_version(draft: ChangeSet, resource: Resource, id_: str | None, sent: Sent, how: How) -> Version:
    """Makes or changes a Version. Without an id the server chooses one; `finish` chooses an ancestor that is not sent.

    Raises: versionid_not_allowed, mismatched_id, mismatched_epoch, one_resource, what `update` raises
    """
    type_ = resource.type
    version = None if id_ is None else draft.version(resource, id_)
    if version is None:
        if id_ is not None and not type_.setversionid:
            raise refused("versionid_not_allowed", resource.xid, plural=type_.plural)
        version = draft.add_version(resource, id_)
    ignored = how.root and "id" in draft.ignore
    check_id(sent, type_.singular, resource.id, version.xid, ignored=ignored)
    check_id(sent, "version", version.id, version.xid, ignored=ignored)
    check_epoch(version, sent, ignored="epoch" in draft.ignore)
    _check_names(version, sent, is_open="*" in type_.attributes)
    members = _with_ancestor(version, sent, asked=id_ is None)
    if type_.hasdocument:
        members = with_type(version, type_, members, patch=how.patch)
    update(
        version,
        draft.version_level(type_),
        members,
        patch=how.patch or how.headers,
        now=draft.now,
        types=draft.types,
        kept=("ancestorid",),
        constraints=draft.constraints(resource.group, type_.plural),
    )
    check_contenttype(version)
    if type_.hasdocument:
        check_one(type_, sent, version.xid)
        write_document(version, type_, sent, patch=how.patch, body=how.body)
        check_url(version, type_)
        version.members = draft.version_level(type_).in_order(version.members)
    elif not how.patch:
        version.document = None  # An earlier model may have allowed one.
    return version


def _check_names(version: Version, sent: Sent, *, is_open: bool) -> None:
    """Check that a Version has no attribute of the Resource: the Resource would show it twice.

    Where the model allows any name (``*``), such a name is not an unknown attribute, but a reserved one.
    Raises: invalid_attribute, unknown_attribute
    """
    reserved = sorted(RESOURCE_LEVEL.intersection(sent))
    if not reserved:
        return
    if is_open:
        why = "the name is reserved for an attribute of the Resource; use another name"
        raise refused("invalid_attribute", version.xid, name=reserved[0], error_detail=why)
    detail = f"Attributes of the Resource, not of a Version: {', '.join(reserved)}."
    raise refused("unknown_attribute", version.xid, name=reserved[0], detail=detail)


UNSET: Final = ""
"""The ancestorid of a Version until `finish` chooses an ancestor by the versionmode."""


def _with_ancestor(version: Version, sent: Sent, *, asked: bool) -> Sent:
    """Return `sent` with an ancestorid: the one sent, or the stored one where it is absent, or `UNSET`, which null asks
    for and new Versions start with.

    Raises: invalid_attribute
    """
    if "ancestorid" not in sent:
        return {**sent, "ancestorid": version.members.get("ancestorid", UNSET)}
    given = sent["ancestorid"]
    if given is None:
        return {**sent, "ancestorid": UNSET}
    try:
        check_value(Attribute("ancestorid", "string"), given, "ancestorid", lambda *_: True)
    except InvalidValue as error:
        raise refused("invalid_attribute", version.xid, name="ancestorid", error_detail=error.why) from None
    if not given:
        raise refused("invalid_attribute", version.xid, name="ancestorid", error_detail="it is empty")
    return {**sent, "ancestorid": version.id} if given == REQUEST and asked else sent


# -- what follows -------------------------------------------------------------------------------------------------


def finish(draft: ChangeSet, resource: Resource, meta: Sent | None, how: How) -> None:
    """Ancestors, meta and default Version, once the Versions are written."""
    draft.changed[resource.xid] = resource
    relink(draft, resource)
    write_meta(draft, resource, meta, how.patch, how.default)
    choose_default(draft, resource)


# -- what a request may address instead of a whole Resource -------------------------------------------------------


def write_meta_alone(draft: ChangeSet, place: ResourceLocation, sent: Sent, how: How) -> Resource:
    """PUT or PATCH of a meta; a Resource that is not there is made, with one Version or as a cross-reference."""
    resource = draft.resource(place)
    if resource is not None and is_locked(draft, resource, how):
        return resource
    is_ignored = how.root and "id" in draft.ignore and place.type.id_name in sent
    meta = {**sent, place.type.id_name: place.id} if is_ignored else sent
    if is_reference(resource, meta, how.patch):
        return write_reference(draft, place, {}, meta, default=how.default)
    if resource is None:
        resource = draft.add_resource(place)
    elif resource.xref is not None:
        leave_reference(draft, resource)
    if not resource.versions:
        write_version(draft, resource, None, {}, How())
    finish(draft, resource, meta, how)
    return resource


def write_versions(draft: ChangeSet, place: ResourceLocation, sent: Mapping[str, Sent], how: How) -> list[str]:
    """POST or PATCH of Versions: the ids of those written.

    Raises: missing_versions, defaultversionid_request, too_many_versions, bad_request, what `write_version` raises
    """
    resource = draft.resource(place)
    if not sent and resource is None:
        raise refused("missing_versions", draft.path)
    default = how.default
    if default == REQUEST:
        _check_one(draft, place.xid, sent)
        default = next(iter(sent))
    if resource is None:
        resource = draft.add_resource(place)
    else:
        is_locked(draft, resource, how)
    check_no_reference(draft, resource)
    ids = sorted(sent, key=str.lower)
    written = [write_version(draft, resource, key, sent[key], How(patch=how.patch)) for key in ids]
    if how.default == REQUEST and not written[0].is_new:
        raise refused("defaultversionid_request", place.xid)
    if sent or default:
        finish(draft, resource, None, How(default=default))
    return list(sent)


def _check_one(draft: ChangeSet, xid: str, sent: Mapping[str, Sent]) -> None:
    if not sent:
        raise refused("defaultversionid_request", xid)
    if len(sent) > 1:
        raise refused("too_many_versions", draft.path)


def write_one_version(draft: ChangeSet, place: ResourceLocation, version: str | None, sent: Sent, how: How) -> Version:
    """PUT or PATCH of a Version, or POST to its Resource, with the id in the body or without one."""
    resource = draft.resource(place)
    if resource is None:
        resource = draft.add_resource(place)
    else:
        is_locked(draft, resource, how)
    check_no_reference(draft, resource)
    written = write_version(draft, resource, version, sent, how)
    if how.default == REQUEST and not written.is_new:
        raise refused("defaultversionid_request", place.xid)
    finish(draft, resource, None, How(default=written.id if how.default == REQUEST else how.default))
    return written
