"""Rules of the core specification for every entity: names, data types, identity, counts, Versions.

Each document is checked separately.

Spec: core/spec.md#attributes-and-extensions, #registry-collections, #meta-entity, #version-entity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from wirebook.core.entities.versions import instant_key
from wirebook.core.model.attributes import (
    ATTRIBUTE_NAME,
    ATTRIBUTE_NAME_IN_WORDS,
    COMPATIBILITIES,
    RESERVED_VERSIONS,
)
from wirebook.core.model.compiled import Attributes
from wirebook.core.names import GROUP_TYPES, IDENTIFIER_IN_WORDS, SINGULARS, is_identifier
from wirebook.core.timestamps import normal_timestamp
from wirebook.definitions.compile.mediatype import parse_media_type
from wirebook.definitions.explain.similar_names import nearest_typo
from wirebook.definitions.lint.attributes import (
    check_attribute,
    check_extension,
    fits,
    group_attributes,
    is_collection,
    is_identifier_name,
    meta_attributes,
    registry_attributes,
    resource_attributes,
    version_attributes,
)
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.normalize.names import canonical_reference, lacks_slash
from wirebook.definitions.normalize.preview import preview
from wirebook.text.pointers import child, escape, unescape

SPECVERSION: Final = re.compile(r"(?i)(?:0\.[0-9]+(?:-.+)?|1\.0(?:-rc[1-4])?)\Z")
COMPATIBILITY_RULES: Final = ("none", *COMPATIBILITIES)
Findings = Iterator[tuple[str, Finding]]


@dataclass(frozen=True, slots=True)
class LintedEntity:
    """An entity of a document: its XID, place and values, and the definitions of the attributes that it may have."""

    xid: str
    pointer: str
    values: dict[str, Any]
    attributes: Attributes
    kind: str

    def at(self, *names: object) -> str:
        """Return the pointer of a value in the entity."""
        pointer = self.pointer
        for name in names:
            pointer = child(pointer, name)
        return pointer


def check_entities(document: dict[str, Any]) -> Findings:
    """Check the registry, and each group, Resource, Version and `meta` of one document; yield (XID, finding)."""
    for entity in _entities(document):
        for finding in _check_entity(entity):
            yield entity.xid or "/", finding
    for xid, resource, pointer, collection in _resources(document):
        for finding in _check_resource(resource, pointer, collection):
            yield xid, finding


def check_letter_case(document: dict[str, Any]) -> Findings:
    """Report siblings whose identifiers differ only in case."""
    for collection in GROUP_TYPES:
        yield from _check_siblings("", "", document, collection)
        for key, group in _members(document, collection):
            pointer = child(f"/{collection}", key)
            yield from _check_siblings(f"/{collection}/{key}", pointer, group, GROUP_TYPES[collection][1])
    for xid, resource, pointer, _ in _resources(document):
        yield from _check_siblings(xid, pointer, resource, "versions")


def _check_siblings(holder: str, holder_pointer: str, values: dict[str, Any], collection: str) -> Findings:
    first: dict[str, str] = {}
    for key, _ in _members(values, collection):
        other = first.setdefault(key.casefold(), key)
        if other != key:
            message = f"'{preview(key)}' and '{preview(other)}' differ only by case; rename one"
            pointer = child(f"{holder_pointer}/{collection}", key)
            yield f"{holder}/{collection}/{key}", Finding("identifiers-differ-by-case", pointer, message, None, key)


# -- the entities of a document ---------------------------------------------------------------------------------------


def _members(values: dict[str, Any], collection: str) -> Iterator[tuple[str, dict[str, Any]]]:
    members = values.get(collection)
    if isinstance(members, dict):
        yield from ((str(key), value) for key, value in members.items() if isinstance(value, dict))


def _entities(document: dict[str, Any]) -> Iterator[LintedEntity]:
    yield LintedEntity("", "", document, registry_attributes(), "registry")
    for collection in GROUP_TYPES:
        attributes = group_attributes(collection)
        for key, group in _members(document, collection):
            pointer = child(f"/{collection}", key)
            yield LintedEntity(f"/{collection}/{key}", pointer, group, attributes, SINGULARS[collection])
    for xid, resource, pointer, collection in _resources(document):
        kind = SINGULARS[collection]
        yield LintedEntity(xid, pointer, resource, resource_attributes(collection), kind)
        if isinstance(meta := resource.get("meta"), dict):
            yield LintedEntity(f"{xid}/meta", f"{pointer}/meta", meta, meta_attributes(collection), "meta")
        for key, version in _members(resource, "versions"):
            at = child(f"{pointer}/versions", key)
            yield LintedEntity(f"{xid}/versions/{key}", at, version, version_attributes(collection), "version")


def _resources(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str, str]]:
    """Yield (XID, Resource, pointer, collection) of every message and schema."""
    for groups, (_, collection, _) in GROUP_TYPES.items():
        for key, group in _members(document, groups):
            pointer = f"{child(f'/{groups}', key)}/{collection}"
            for name, resource in _members(group, collection):
                yield f"/{groups}/{key}/{collection}/{name}", resource, child(pointer, name), collection


# -- one entity -------------------------------------------------------------------------------------------------------


def _check_entity(entity: LintedEntity) -> Iterator[Finding]:
    for name, value in entity.values.items():
        if value is None or name == "$schema":
            continue
        attribute = entity.attributes.get(name)
        if attribute is None:
            yield from _check_extension(entity, name, value)
            continue
        if is_identifier_name(name) and value == entity.xid.rpartition("/")[2]:
            continue  # an invalid identifier is reported for the entity
        findings = list(check_attribute(attribute, value, entity.at(name)))
        yield from findings
        if name.endswith("count") and not findings:
            yield from _check_count(entity, name, value)
    yield from _check_identity(entity)
    yield from _check_deprecated(entity)
    yield from _check_statements(entity)


def _check_count(entity: LintedEntity, name: str, value: int) -> Iterator[Finding]:
    collection = name.removesuffix("count")
    members = entity.values.get(collection)
    if is_collection(entity.attributes.get(collection)) and isinstance(members, dict) and len(members) != value:
        message = f"'{name}' is {value}, but '{collection}' has {len(members)}; correct it or remove it"
        yield Finding("count-differs", entity.at(name), message, len(members), value)


def _check_extension(entity: LintedEntity, name: str, value: Any) -> Iterator[Finding]:
    """Check an attribute that the specifications do not define: its name, its spelling and its length."""
    choices = [
        known for known, attribute in entity.attributes.items() if known not in entity.values and fits(attribute, value)
    ]
    plain = re.sub("[^a-z0-9]", "", name.lower())
    known = plain if plain in choices else nearest_typo(plain, choices)
    if known is None and isinstance(value, dict):  # the document may have the collection twice, once misspelt
        known = nearest_typo(
            name, [known for known, attribute in entity.attributes.items() if is_collection(attribute)]
        )
    if known in choices and is_collection(entity.attributes.get(known or "")) and value:
        message = f"a {entity.kind} has no collection '{preview(name)}', so its members are ignored; write '{known}'"
        yield Finding("misspelt-collection", entity.at(name), message, known, name)
    elif not ATTRIBUTE_NAME.match(name):
        meant = f"; did you mean '{known}'?" if known is not None else ""
        message = f"'{preview(name)}' is not a valid attribute name{meant}"
        yield Finding("bad-member-name", entity.at(name), message, ATTRIBUTE_NAME_IN_WORDS, name)
    elif known is not None:
        message = f"a {entity.kind} has no attribute '{preview(name)}', so it is ignored; did you mean '{known}'?"
        yield Finding("misspelt-attribute", entity.at(name), message, known, name)
    yield from check_extension(name, value, entity.at(name))


def _check_identity(entity: LintedEntity) -> Iterator[Finding]:
    """Check that `xid` and `self` agree with the place of the entity."""
    xid, address, own = entity.values.get("xid"), entity.values.get("self"), entity.xid or "/"
    if isinstance(xid, str) and (lacks_slash(xid) or canonical_reference(xid) != own):
        message = f"'xid' is '{preview(xid)}', but the entity is '{preview(own)}'; correct it or remove it"
        yield Finding("xid-mismatch", entity.at("xid"), message, own, xid)
    if isinstance(address, str) and entity.xid and not _leads_to(address, entity):
        message = f"'self' is '{preview(address)}', but must end with the XID '{preview(own)}'; correct it or remove it"
        yield Finding("self-mismatch", entity.at("self"), message, own, address)


def _check_deprecated(entity: LintedEntity) -> Iterator[Finding]:
    deprecated = entity.values.get("deprecated")
    if not isinstance(deprecated, dict):
        return
    effective, removal = deprecated.get("effective"), deprecated.get("removal")
    instants = [instant_key(text) for value in (effective, removal) if (text := normal_timestamp(str(value)))]
    if len(instants) == 2 and instants[1] < instants[0]:
        message = f"'removal' ('{removal}') must not be before 'effective' ('{effective}')"
        yield Finding("removal-before-effective", entity.at("deprecated", "removal"), message, effective, removal)


def _leads_to(address: str, entity: LintedEntity) -> bool:
    # Reading: a document may be a part of a registry, so a relative URL may begin below the root of the registry.
    if address.startswith("#"):
        place = unquote(address[1:]).removesuffix("$details")
        return entity.pointer.endswith(place) or entity.xid.endswith(place)
    path = unquote(re.sub(r"[?#].*", "", address)).removesuffix("$details").rstrip("/")
    return canonical_reference(f"#{path}" if path.startswith("/") else path).endswith(entity.xid) or path.endswith(
        entity.xid
    )


VALIDATIONS: Final = (
    ("formatvalidated", "formatvalidatedreason"),
    ("compatibilityvalidated", "compatibilityvalidatedreason"),
)


def _check_statements(entity: LintedEntity) -> Iterator[Finding]:
    """Check the `specversion` of a registry, and the media type and validation results of a Version."""
    specversion = entity.values.get("specversion")
    is_registry = entity.kind == "registry"
    if is_registry and isinstance(specversion, str) and specversion and not SPECVERSION.match(specversion):
        message = f"'{preview(specversion)}' is not a version of the specification; write '1.0-rc4' (assumed here)"
        yield Finding("unknown-text", entity.at("specversion"), message, "1.0-rc4", specversion)
    media_type = entity.values.get("contenttype")
    if "contenttype" in entity.attributes and isinstance(media_type, str) and parse_media_type(media_type) is None:
        message = f"'{preview(media_type)}' is not a valid media type"
        yield Finding("contenttype-without-type", entity.at("contenttype"), message, "type/subtype", media_type)
    for name, reason in VALIDATIONS if "formatvalidated" in entity.attributes else ():
        result, why = entity.values.get(name), entity.values.get(reason)
        if result is False and why is None:
            message = f"'{reason}' is required when '{name}' is false"
            yield Finding("validation-reason", entity.at(name), message, reason)
        elif result is not False and why is not None:
            message = f"'{reason}' is only allowed when '{name}' is false; remove it"
            yield Finding("validation-reason", entity.at(reason), message, None, why)


# -- a resource and its Versions --------------------------------------------------------------------------------------


def _check_resource(resource: dict[str, Any], pointer: str, collection: str) -> Iterator[Finding]:
    meta: dict[str, Any] = resource["meta"] if isinstance(resource.get("meta"), dict) else {}
    versions = dict(_members(resource, "versions"))
    yield from _check_names(resource, pointer, collection, versions)
    yield from _check_compatibility(meta, f"{pointer}/meta")
    if "xref" in meta:
        return
    if versions:
        yield from _check_ancestors(versions, f"{pointer}/versions")
    yield from _check_default(resource, meta, versions, pointer)


def _check_names(
    resource: dict[str, Any], pointer: str, collection: str, versions: dict[str, Any]
) -> Iterator[Finding]:
    """Check the Resource's id in `meta` and in each Version, and the ids of the Versions."""
    name, own = f"{SINGULARS[collection]}id", unescape(pointer.rpartition("/")[2])
    holders = [("meta", resource.get("meta"))] + [
        (f"versions/{escape(key)}", version) for key, version in versions.items()
    ]
    for place, holder in holders:
        id_ = holder.get(name) if isinstance(holder, dict) else None
        if isinstance(id_, str) and id_ != own:
            message = f"'{name}' is '{preview(id_)}', but the {SINGULARS[collection]} is '{preview(own)}'"
            yield Finding("id-mismatch", f"{pointer}/{place}/{name}", message, own, id_)
    for key in versions:
        if not is_identifier(key) or key in RESERVED_VERSIONS:
            reserved = "; it is a reserved word" if key in RESERVED_VERSIONS else ""
            message = f"'{preview(key)}' is not a valid Version id{reserved}"
            yield Finding("bad-identifier", child(f"{pointer}/versions", key), message, IDENTIFIER_IN_WORDS, key)


def _check_compatibility(meta: dict[str, Any], pointer: str) -> Iterator[Finding]:
    compatibility = meta.get("compatibility")
    if isinstance(compatibility, str) and compatibility and compatibility.casefold() not in COMPATIBILITY_RULES:
        message = f"'{preview(compatibility)}' is not a compatibility rule of the specification"
        place = f"{pointer}/compatibility"
        yield Finding("unknown-compatibility", place, message, list(COMPATIBILITY_RULES), compatibility)


def _check_ancestors(versions: dict[str, Any], pointer: str) -> Iterator[Finding]:
    """Check that each ancestor exists, and that chains of ancestors end at a root."""
    ancestors = {key: version.get("ancestorid") for key, version in versions.items()}
    for key, ancestor in ancestors.items():
        if isinstance(ancestor, str) and ancestor not in versions:
            message = f"the ancestor '{preview(ancestor)}' is not a Version of this Resource"
            at = f"{child(pointer, key)}/ancestorid"
            yield Finding("dangling-ancestor", at, message, list(versions)[:10], ancestor)
    for key in _cycles(ancestors):
        message = f"the ancestors of the Version '{preview(key)}' form a cycle; a root is its own ancestor"
        yield Finding("ancestor-cycle", f"{child(pointer, key)}/ancestorid", message, None, ancestors[key])


def _cycles(ancestors: dict[str, Any]) -> Iterator[str]:
    """Yield one Version of each cycle."""
    visited: set[str] = set()
    for start in ancestors:
        path: dict[str, None] = {}
        key = start
        while key not in visited and key not in path:
            path[key] = None
            parent = ancestors.get(key)
            if not isinstance(parent, str) or parent == key or parent not in ancestors:
                break
            key = parent
        else:
            if key in path:
                yield key
        visited.update(path)


def _check_default(
    resource: dict[str, Any], meta: dict[str, Any], versions: dict[str, Any], pointer: str
) -> Iterator[Finding]:
    """Check that all attributes that name the default Version agree."""
    named, own = meta.get("defaultversionid"), resource.get("versionid")
    if isinstance(named, str) and versions and named not in versions:
        return  # reported as unknown-default-version
    default = named if isinstance(named, str) else own
    if isinstance(named, str) and isinstance(own, str) and own != named:
        message = f"'versionid' is '{preview(own)}', but 'meta.defaultversionid' is '{preview(named)}'; make them equal"
        yield Finding("default-differs", f"{pointer}/versionid", message, named, own)
    if resource.get("isdefault") is False:
        message = "'isdefault' must not be false: a Resource has the attributes of its default Version"
        yield Finding("default-differs", f"{pointer}/isdefault", message, True, False)
    for key, version in versions.items():
        is_default = version.get("isdefault")
        if isinstance(is_default, bool) and isinstance(default, str) and is_default != (key == default):
            message = f"'isdefault' is {str(is_default).lower()}, but the default Version is '{preview(default)}'"
            at = f"{child(f'{pointer}/versions', key)}/isdefault"
            yield Finding("default-differs", at, message, not is_default, is_default)
