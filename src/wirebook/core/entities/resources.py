"""Write a Resource: its Versions, the attributes of its default Version, and its meta.

The steps and their order follow the specification. Formats, constraints and compatibility are checked at the end of
the request, after all its changes (`wirebook.core.entities.invariants`).

Spec: core/spec.md#resource-processing-algorithm; core/resource.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from wirebook.core.entities.attributes import RESOURCE_LEVEL, as_id, check_epoch, check_id, nested_map, refusal, update
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.defaults import choose_default, write_meta
from wirebook.core.entities.documents import (
    Body,
    check_contenttype,
    check_one,
    check_url,
    with_contenttype,
    write_document,
)
from wirebook.core.entities.lineage import relink
from wirebook.core.entities.state import Resource, ResourceLocation, Version
from wirebook.core.entities.versions import SEMVER_COUNTER
from wirebook.core.entities.xref import check_no_reference, is_reference, leave_reference, write_reference
from wirebook.core.model.compiled import Attribute
from wirebook.core.model.datatypes import check_value, preview
from wirebook.core.model.faults import InvalidValue, ValueFault
from wirebook.problems.xregistry import refused

Metadata = Mapping[str, Any]
REQUEST: Final = "request"
"""The value of flags and attributes that refers to the Version that the request creates."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a Resource is written.

    `patch`: partial update. `root`: the Resource is the request's target. `default`: the flag setdefaultversionid, ""
    if absent. `headers`: attributes were sent as HTTP headers, so absent attributes keep their values. `body`: the
    document, if it was sent as the HTTP body.
    """

    patch: bool = False
    root: bool = False
    default: str = ""
    headers: bool = False
    body: Body | None = None


def write_resource(
    change_set: ChangeSet, location: ResourceLocation, metadata: Metadata, options: WriteOptions
) -> Resource:
    """Create or update a Resource. Raises: readonly, mismatched_id, all errors of writing its Versions and meta"""
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
    versions: Mapping[str, Metadata] = {}
    if metadata.get("versions") is not None:
        versions = nested_map(metadata["versions"], "versions", location.xid, change_set.path)
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
    """Advance the counter to the highest numeric id among the Versions sent with a Resource.

    They may come from an export of a registry that had created and deleted Versions with the numbers in between.
    """
    numbers = [int(id_) for id_ in ids if NUMBER.fullmatch(id_)]
    if not resource.counter & SEMVER_COUNTER:
        resource.counter = max([resource.counter, *numbers])


NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}")


def is_locked(change_set: ChangeSet, resource: Resource, options: WriteOptions, subject: str = "") -> bool:
    """Return whether a Resource is read-only and must be skipped.

    A Resource can be skipped only if the request ignores `readonly` and the Resource is not its target.
    Raises: readonly, bad_flag
    """
    if not resource.meta.members.get("readonly"):
        return False
    if "readonly" not in change_set.ignore:
        raise refused("readonly", subject or resource.xid)
    if options.root:
        raise refused(
            "bad_flag",
            change_set.path,
            flag="ignore",
            detail="'readonly' cannot be ignored: the only Resource of the request is read-only.",
        )
    return True


def _meta_of(metadata: Metadata, subject: str) -> Metadata | None:
    """Return the meta in the metadata of a Resource, None if absent, {} if null. Raises: invalid_attribute"""
    if "meta" not in metadata:
        return None
    meta = metadata["meta"]
    if meta is None:
        return {}
    if not isinstance(meta, Mapping):
        why = f"it must be an object; got {preview(meta)}"
        raise refused("invalid_attribute", subject, name="meta", error_detail=why)
    return meta


def _first_target(
    change_set: ChangeSet, resource: Resource, metadata: Metadata, meta: Metadata, *, has_versions: bool
) -> list[str | None]:
    """Return the id of the Version that gets the Resource-level attributes if the Resource has no Versions yet.

    The id is `versionid`, else the meta's `defaultversionid`; None if the server chooses it. The list is empty if no
    Version gets them.
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
    """Create or update a Version. If `id_` is None, the server chooses one. `finish` sets the ancestor if none is sent.

    Raises: versionid_not_allowed, mismatched_id, mismatched_epoch, one_resource, all errors of `update`
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
        members = with_contenttype(version, type_, members, patch=options.patch)
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
        version.document = None  # may be left from an earlier model
    return version


def _check_names(version: Version, metadata: Metadata, *, is_open: bool) -> None:
    """Check that a Version has no attributes of the Resource, whose JSON would then contain them twice.

    If the model allows any name (``*``), the error is that the name is reserved, not that the attribute is unknown.
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
"""The ancestorid of a Version until `finish` sets it by the versionmode."""


def _with_ancestor(version: Version, metadata: Metadata, *, asked: bool) -> Metadata:
    """Return `metadata` with an ancestorid: the one sent, else the stored one; `UNSET` for null and for new Versions.

    `asked`: the server chose the versionid, so `REQUEST` refers to the Version itself.
    Raises: invalid_attribute
    """
    if "ancestorid" not in metadata:
        return {**metadata, "ancestorid": version.members.get("ancestorid", UNSET)}
    ancestor = metadata["ancestorid"]
    if ancestor is None:
        return {**metadata, "ancestorid": UNSET}
    try:
        check_value(Attribute("ancestorid", "string"), ancestor, "ancestorid", lambda *_: True)
        if not ancestor:
            raise InvalidValue(ValueFault(("ancestorid",), "value", "it must not be empty; leave it out instead"))
    except InvalidValue as error:
        raise refusal(error, version.xid) from None
    return {**metadata, "ancestorid": version.id} if ancestor == REQUEST and asked else metadata


# -- after the Versions ---------------------------------------------------------------------------------------------


def finish(change_set: ChangeSet, resource: Resource, meta: Metadata | None, options: WriteOptions) -> None:
    """Set ancestors, meta and default Version after the Versions are written."""
    change_set.changed[resource.xid] = resource
    relink(change_set, resource)
    write_meta(change_set, resource, meta, options.patch, options.default)
    choose_default(change_set, resource)


# -- requests for a meta or for Versions -------------------------------------------------------------------------


def write_meta_alone(
    change_set: ChangeSet, location: ResourceLocation, metadata: Metadata, options: WriteOptions
) -> Resource:
    """Write a meta. A missing Resource is created with one Version, or as a cross-reference."""
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
    change_set: ChangeSet, location: ResourceLocation, versions: Mapping[str, Metadata], options: WriteOptions
) -> list[str]:
    """Write a map of Versions and return their ids.

    Raises: missing_versions, defaultversionid_request, too_many_versions, bad_request, all errors of `write_version`
    """
    resource = change_set.resource(location)
    if not versions and resource is None:
        raise refused("missing_versions", change_set.path)
    default = options.default
    if default == REQUEST:
        if not versions:
            raise refused("defaultversionid_request", location.xid)
        if len(versions) > 1:
            raise refused("too_many_versions", change_set.path)
        default = next(iter(versions))
    if resource is None:
        resource = change_set.add_resource(location)
    else:
        is_locked(change_set, resource, options)
    check_no_reference(change_set, resource)
    ids = sorted(versions, key=str.lower)
    written = [
        write_version(change_set, resource, key, versions[key], WriteOptions(patch=options.patch)) for key in ids
    ]
    if options.default == REQUEST and not written[0].is_new:
        raise refused("defaultversionid_request", location.xid)
    if versions or default:
        finish(change_set, resource, None, WriteOptions(default=default))
    return list(versions)


def write_one_version(
    change_set: ChangeSet, location: ResourceLocation, version: str | None, metadata: Metadata, options: WriteOptions
) -> Version:
    """Write a single Version. `version` is its id; None if the server chooses it."""
    resource = change_set.resource(location)
    if resource is None:
        resource = change_set.add_resource(location)
    else:
        is_locked(change_set, resource, options)
    check_no_reference(change_set, resource)
    written = write_version(change_set, resource, version, metadata, options)
    if options.default == REQUEST and not written.is_new:
        raise refused("defaultversionid_request", location.xid)
    default = written.id if options.default == REQUEST else options.default
    finish(change_set, resource, None, WriteOptions(default=default))
    return written
