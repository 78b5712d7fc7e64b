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
from wirebook.core.model.datatypes import InvalidValue, check_value, preview
from wirebook.problems.xregistry import refused

Metadata = Mapping[str, Any]
REQUEST: Final = "request"
"""What stands in flags and attributes for the Version that the server chooses an id for."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a Resource is written: in part (`patch`), as what the request addresses (`root`), and with which default
    (``setdefaultversionid``; "" where the flag was not given). `headers`: attributes came as headers, so that those
    which are absent stay; `body` is the document, where it came as one."""

    patch: bool = False
    root: bool = False
    default: str = ""
    headers: bool = False
    body: Body | None = None


def write_resource(
    change_set: ChangeSet, location: ResourceLocation, metadata: Metadata, options: WriteOptions
) -> Resource:
    """Makes or changes a Resource. Raises: what its parts raise, readonly, mismatched_id"""
    resource = change_set.resource(location)
    if resource is not None and is_locked(change_set, resource, options):
        return resource
    check_id(
        metadata, location.type.singular, location.id, location.xid, ignored=options.root and "id" in change_set.ignore
    )
    meta = _meta_of(metadata, location.xid)
    if is_reference(resource, meta, options.patch):
        return write_reference(change_set, location, metadata, meta or {}, body=options.body, default=options.default)
    was_reference = resource is not None and resource.xref is not None
    if resource is None:
        resource = change_set.add_resource(location)
    elif was_reference:
        leave_reference(change_set, resource)
    versions = _versions_of(change_set, metadata, location.xid)
    if resource.is_new or was_reference:
        targets = _first_target(change_set, resource, metadata, meta or {}, has_versions=bool(versions))
    else:
        check_id(metadata, "version", resource.default, resource.xid)
        targets = [resource.default]
    for key in sorted(versions, key=str.lower):
        write_version(change_set, resource, key, versions[key], WriteOptions(patch=options.patch))
    _skip_numbers(resource, versions)
    for target in targets:
        if target not in versions:
            own = {name: value for name, value in metadata.items() if name not in RESOURCE_LEVEL}
            check_one(location.type, own, location.xid)
            write_version(change_set, resource, target, own, options)
    finish(change_set, resource, meta, options)
    return resource


def _skip_numbers(resource: Resource, ids: Collection[str]) -> None:
    """Make the counter continue after the highest number among the Versions sent with a Resource: those may have been
    exported from a registry that had made, and deleted, Versions with the numbers in between."""
    numbers = [int(id_) for id_ in ids if NUMBER.fullmatch(id_)]
    if not resource.counter & SEMVER_COUNTER:
        resource.counter = max([resource.counter, *numbers])


NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}")


def is_locked(change_set: ChangeSet, resource: Resource, options: WriteOptions, subject: str = "") -> bool:
    """Whether a Resource is read-only and is to be left out, which only one among others can be.

    Raises: readonly, bad_flag
    """
    if not resource.meta.members.get("readonly"):
        return False
    if "readonly" not in change_set.ignore:
        raise refused("readonly", subject or resource.xid)
    if options.root:
        raise refused(
            "bad_flag", change_set.path, flag="ignore", detail="The request is about a read-only Resource alone."
        )
    return True


def _meta_of(metadata: Metadata, subject: str) -> Metadata | None:
    """Return the meta in a Resource, or None if it has none; null is an empty meta. Raises: invalid_attribute"""
    if "meta" not in metadata:
        return None
    meta = metadata["meta"]
    if meta is None:
        return {}
    if not isinstance(meta, Mapping):
        why = f"it must be an object, not {preview(meta)}"
        raise refused("invalid_attribute", subject, name="meta", error_detail=why)
    return meta


def _versions_of(change_set: ChangeSet, metadata: Metadata, owner: str) -> Mapping[str, Metadata]:
    versions = metadata.get("versions")
    return {} if versions is None else nested_map(versions, "versions", owner, change_set.path)


def _first_target(
    change_set: ChangeSet, resource: Resource, metadata: Metadata, meta: Metadata, *, has_versions: bool
) -> list[str | None]:
    """The Version that gets the attributes at the level of a Resource that has none yet: by one clue or another.

    None is one whose id the server chooses; the list is empty where nothing gets them.
    """
    named = metadata.get("versionid")
    if named is not None:
        return [as_id(named, "versionid", resource.xid)]
    clue = None if "defaultversionid" in change_set.ignore else meta.get("defaultversionid")
    if clue:
        return [as_id(clue, "defaultversionid", resource.meta.xid)]
    return [] if has_versions else [None]


# -- one Version --------------------------------------------------------------------------------------------------


def write_version(
    change_set: ChangeSet, resource: Resource, id_: str | None, metadata: Metadata, options: WriteOptions
) -> Version:
    """Makes or changes a Version. Without an id the server chooses one; `finish` chooses an ancestor that is not sent.

    Raises: versionid_not_allowed, mismatched_id, mismatched_epoch, one_resource, what `update` raises
    """
    type_ = resource.type
    version = None if id_ is None else change_set.version(resource, id_)
    if version is None:
        if id_ is not None and not type_.setversionid:
            raise refused("versionid_not_allowed", resource.xid, plural=type_.plural)
        version = change_set.add_version(resource, id_)
    ignored = options.root and "id" in change_set.ignore
    check_id(metadata, type_.singular, resource.id, version.xid, ignored=ignored)
    check_id(metadata, "version", version.id, version.xid, ignored=ignored)
    check_epoch(version, metadata, ignored="epoch" in change_set.ignore)
    _check_names(version, metadata, is_open="*" in type_.attributes)
    members = _with_ancestor(version, metadata, asked=id_ is None)
    if type_.hasdocument:
        members = with_type(version, type_, members, patch=options.patch)
    update(
        version,
        change_set.version_attributes(type_),
        members,
        patch=options.patch or options.headers,
        now=change_set.now,
        types=change_set.types,
        preserved=("ancestorid",),
        constraints=change_set.constraints(resource.group, type_.plural),
    )
    check_contenttype(version)
    if type_.hasdocument:
        check_one(type_, metadata, version.xid)
        write_document(version, type_, metadata, patch=options.patch, body=options.body)
        check_url(version, type_)
        version.members = change_set.version_attributes(type_).in_order(version.members)
    elif not options.patch:
        version.document = None  # An earlier model may have allowed one.
    return version


def _check_names(version: Version, metadata: Metadata, *, is_open: bool) -> None:
    """Check that a Version has no attribute of the Resource: the Resource would show it twice.

    Where the model allows any name (``*``), such a name is not an unknown attribute, but a reserved one.
    Raises: invalid_attribute, unknown_attribute
    """
    reserved = sorted(RESOURCE_LEVEL.intersection(metadata))
    if not reserved:
        return
    if is_open:
        why = "the name is reserved for an attribute of the Resource; use another name"
        raise refused("invalid_attribute", version.xid, name=reserved[0], error_detail=why)
    detail = f"Attributes of the Resource, not of a Version: {', '.join(reserved)}."
    raise refused("unknown_attribute", version.xid, name=reserved[0], detail=detail)


UNSET: Final = ""
"""The ancestorid of a Version until `finish` chooses an ancestor by the versionmode."""


def _with_ancestor(version: Version, metadata: Metadata, *, asked: bool) -> Metadata:
    """Return `metadata` with an ancestorid: the one sent, or the stored one where it is absent, or `UNSET`, which
    null asks
    for and new Versions start with.

    Raises: invalid_attribute
    """
    if "ancestorid" not in metadata:
        return {**metadata, "ancestorid": version.members.get("ancestorid", UNSET)}
    ancestor = metadata["ancestorid"]
    if ancestor is None:
        return {**metadata, "ancestorid": UNSET}
    try:
        check_value(Attribute("ancestorid", "string"), ancestor, "ancestorid", lambda *_: True)
    except InvalidValue as error:
        raise refused("invalid_attribute", version.xid, name="ancestorid", error_detail=error.why) from None
    if not ancestor:
        raise refused("invalid_attribute", version.xid, name="ancestorid", error_detail="it is empty")
    return {**metadata, "ancestorid": version.id} if ancestor == REQUEST and asked else metadata


# -- what follows -------------------------------------------------------------------------------------------------


def finish(change_set: ChangeSet, resource: Resource, meta: Metadata | None, options: WriteOptions) -> None:
    """Ancestors, meta and default Version, once the Versions are written."""
    change_set.changed[resource.xid] = resource
    relink(change_set, resource)
    write_meta(change_set, resource, meta, options.patch, options.default)
    choose_default(change_set, resource)


# -- what a request may address instead of a whole Resource -------------------------------------------------------


def write_meta_alone(
    change_set: ChangeSet, location: ResourceLocation, metadata: Metadata, options: WriteOptions
) -> Resource:
    """PUT or PATCH of a meta; a Resource that is not there is made, with one Version or as a cross-reference."""
    resource = change_set.resource(location)
    if resource is not None and is_locked(change_set, resource, options):
        return resource
    is_ignored = options.root and "id" in change_set.ignore and location.type.id_name in metadata
    meta = {**metadata, location.type.id_name: location.id} if is_ignored else metadata
    if is_reference(resource, meta, options.patch):
        return write_reference(change_set, location, {}, meta, default=options.default)
    if resource is None:
        resource = change_set.add_resource(location)
    elif resource.xref is not None:
        leave_reference(change_set, resource)
    if not resource.versions:
        write_version(change_set, resource, None, {}, WriteOptions())
    finish(change_set, resource, meta, options)
    return resource


def write_versions(
    change_set: ChangeSet, location: ResourceLocation, metadata: Mapping[str, Metadata], options: WriteOptions
) -> list[str]:
    """POST or PATCH of Versions: the ids of those written.

    Raises: missing_versions, defaultversionid_request, too_many_versions, bad_request, what `write_version` raises
    """
    resource = change_set.resource(location)
    if not metadata and resource is None:
        raise refused("missing_versions", change_set.path)
    default = options.default
    if default == REQUEST:
        _check_one(change_set, location.xid, metadata)
        default = next(iter(metadata))
    if resource is None:
        resource = change_set.add_resource(location)
    else:
        is_locked(change_set, resource, options)
    check_no_reference(change_set, resource)
    ids = sorted(metadata, key=str.lower)
    written = [
        write_version(change_set, resource, key, metadata[key], WriteOptions(patch=options.patch)) for key in ids
    ]
    if options.default == REQUEST and not written[0].is_new:
        raise refused("defaultversionid_request", location.xid)
    if metadata or default:
        finish(change_set, resource, None, WriteOptions(default=default))
    return list(metadata)


def _check_one(change_set: ChangeSet, xid: str, metadata: Mapping[str, Metadata]) -> None:
    if not metadata:
        raise refused("defaultversionid_request", xid)
    if len(metadata) > 1:
        raise refused("too_many_versions", change_set.path)


def write_one_version(
    change_set: ChangeSet, location: ResourceLocation, version: str | None, metadata: Metadata, options: WriteOptions
) -> Version:
    """PUT or PATCH of a Version, or POST to its Resource, with the id in the body or without one."""
    resource = change_set.resource(location)
    if resource is None:
        resource = change_set.add_resource(location)
    else:
        is_locked(change_set, resource, options)
    check_no_reference(change_set, resource)
    written = write_version(change_set, resource, version, metadata, options)
    if options.default == REQUEST and not written.is_new:
        raise refused("defaultversionid_request", location.xid)
    finish(
        change_set, resource, None, WriteOptions(default=written.id if options.default == REQUEST else options.default)
    )
    return written
