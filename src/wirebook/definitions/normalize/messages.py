"""Dialects: message groups and message definitions in every spelling seen, rewritten to 1.0-rc4.

Each repair is a problem of its own; nothing changes silently. The same function reads a message and each of its
Versions, in a group and in an endpoint.

Spec: docs/catalogues.md#dialects; message/spec.md#message-definition-registry-model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from wirebook.definitions.normalize import names
from wirebook.definitions.normalize.message_options import UNUSABLE, normalise_options, property_definition
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.normalize.rewriting import RewriteCursor, RewrittenEntity
from wirebook.text.pointers import child

Roots = tuple[str, ...]

# -- what every entity has ------------------------------------------------------------------------------------------


def normalise_identity(entity: RewrittenEntity, id_name: str, key: str) -> None:
    """The identifier under its name of 1.0; the key of the map is what counts."""
    if "id" in entity.values:
        entity.rename("id", id_name, "old-id-name")
    given = entity.values.get(id_name)
    if given is not None and given != key:
        message = f"'{id_name}' is {preview(given)!r} and the key is {preview(key)!r}; the key counts"
        entity.report("id-mismatch", entity.at(id_name), message, expected=key, actual=given)
        entity.values[id_name] = key


def normalise_origin(entity: RewrittenEntity) -> None:
    """0.5's `origin` is a label since 1.0."""
    if not isinstance(entity.values.get("origin"), str):
        return
    labels = entity.inner("labels") or {}
    source = entity.log.source_of(entity.at("origin"))
    value = entity.values.pop("origin")
    entity.values["labels"] = labels
    if labels.setdefault("origin", value) == value:
        entity.log.origins[entity.at("labels", "origin")] = source
    message = "'origin' is a label"
    entity.report(
        "misplaced-attribute", entity.at("labels", "origin"), message, expected="labels.origin", actual="origin"
    )


def drop_server_attributes(entity: RewrittenEntity) -> None:
    """From a document before 1.0: addresses and counts, which say where it was and nothing about the messages."""
    if not entity.old:
        return
    for name in list(entity.values):
        if name == "self" or names.COLLECTION_SUMMARY.match(name):
            entity.drop(name, "it is the server's to say", "server-attribute")


def normalise_meta(entity: RewrittenEntity, roots: Roots) -> None:
    """`xref` and what 0.5 wrote beside the resource belong in `meta`; `xref` is an XID."""
    moved = (*names.META_NAMES, "epoch") if entity.old else names.META_NAMES
    present = [name for name in moved if name in entity.values]
    meta = entity.inner("meta")
    if meta is None and present:
        meta = entity.values["meta"] = {}
    for name in present:
        _move_into(entity, meta, name)
    for name in names.SERVER_META_NAMES:
        entity.drop(name, "it is the server's to say", "server-attribute")
    drop_server_attributes(entity)
    if meta is not None:
        normalise_reference(entity, meta, "xref", entity.at("meta", "xref"), roots)


def _move_into(entity: RewrittenEntity, meta: dict[str, Any] | None, name: str) -> None:
    if meta is None:
        return
    source, target = entity.log.source_of(entity.at(name)), entity.at("meta", name)
    value = entity.values.pop(name)
    if meta.setdefault(name, value) != value:
        message = f"'{name}' differs from 'meta.{name}', which counts"
        entity.log.origins[target] = source
        entity.report("conflicting-names", target, message, expected=meta[name], actual=value)
        return
    entity.log.origins[target] = source
    message = f"'{name}' belongs in 'meta'"
    entity.report("misplaced-attribute", target, message, expected=f"meta.{name}", actual=name)


def normalise_reference(entity: RewrittenEntity, holder: dict[str, Any], name: str, pointer: str, roots: Roots) -> None:
    """A reference into this registry as an XID."""
    value = holder.get(name)
    if isinstance(value, str) and (reference := names.canonical_reference(value, roots)) != value:
        report_reference(entity, pointer, value, reference)
        holder[name] = reference


def report_reference(entity: RewrittenEntity, pointer: str, value: str, reference: str) -> None:
    """Note that `value` is read as `reference`."""
    code, message = "old-reference-form", f"'{preview(value)}' is '{preview(reference)}'"
    if names.lacks_slash(value):
        code, message = (
            "missing-slash",
            f"'{preview(value)}' lacks the slash that an XID begins with: '{preview(reference)}'",
        )
    entity.report(code, pointer, message, expected=reference, actual=value)


def normalise_text(entity: RewrittenEntity, name: str, canonical: Callable[[str], str], code: str) -> None:
    """An attribute whose value has one name: an empty text is no value, other spellings get the one."""
    value = entity.values.get(name)
    if value is None:
        return
    if not isinstance(value, str):
        entity.report(
            "wrong-shape",
            entity.at(name),
            f"'{name}' must be a string; found '{preview(value)}'",
            expected="a string",
            actual=value,
        )
        del entity.values[name]
    elif not value.strip():
        message = f"'{name}' must be a non-empty string; the empty one is ignored"
        entity.report("bad-attribute", entity.at(name), message, expected="a non-empty string", actual=value)
        del entity.values[name]
    elif (spelled := canonical(value)) != value:
        message = f"'{preview(value)}' is '{preview(spelled)}'"
        entity.report(code, entity.at(name), message, expected=spelled, actual=value)
        entity.values[name] = spelled


# -- selectors ------------------------------------------------------------------------------------------------------


def normalise_selectors(entity: RewrittenEntity, *, core_format: bool = False, keep_precision: bool = False) -> None:
    """`envelope` and `protocol`, from whichever attribute said so, in their one spelling.

    `core_format`: `format` may also be the attribute that every Version has since 1.0. `keep_precision`: an envelope
    without a version is less precise on purpose, and stays so.
    """
    _place_format(entity, core_format=core_format)
    for old, new in names.SELECTOR_NAMES.items():
        entity.rename(old, new)
    for name in ("envelope", "protocol"):
        _drop_none(entity, name)
    envelope = _precise_envelope if keep_precision else names.canonical_envelope
    if not keep_precision:
        _add_envelope_version(entity)
    normalise_text(entity, "envelope", envelope, "old-envelope-name")
    normalise_text(entity, "protocol", names.canonical_protocol, "old-protocol-name")


def _add_envelope_version(entity: RewrittenEntity) -> None:
    """A message names the version of CloudEvents; without one it is read as 1.0 (R2, R3)."""
    value = entity.values.get("envelope")
    if isinstance(value, str) and names.names_cloudevents(value) and not value.strip().partition("/")[2]:
        message = f"envelope '{preview(value)}' has no version; it is read as '{names.CLOUDEVENTS}', write that"
        entity.report("bad-envelope", entity.at("envelope"), message, expected=names.CLOUDEVENTS, actual=value)
        entity.values["envelope"] = names.CLOUDEVENTS


def _precise_envelope(text: str) -> str:
    has_no_version = text.strip().removesuffix("/").casefold() == "cloudevents"
    return "CloudEvents" if has_no_version else names.canonical_envelope(text)


def _place_format(entity: RewrittenEntity, *, core_format: bool) -> None:
    """0.5's `format`: an envelope when it says CloudEvents, else a protocol; rc4's is left alone."""
    # Reading: on a message that nothing marks as older, a format that is no protocol of ours is rc4's core attribute.
    value = entity.values.get("format")
    if not isinstance(value, str):
        return
    if names.names_cloudevents(value):
        entity.rename("format", "envelope")
    elif names.is_known_protocol(value) or not core_format or entity.old:
        entity.rename("format", "protocol")


def _drop_none(entity: RewrittenEntity, name: str) -> None:
    value = entity.values.get(name)
    if isinstance(value, str) and value.strip().casefold() == names.NO_SELECTOR:
        message = f"'{name}' is '{value}', read as not given"
        entity.report("none-selector", entity.at(name), message, actual=value)
        del entity.values[name]


# -- messages -------------------------------------------------------------------------------------------------------


def normalise_message(
    entity: RewrittenEntity, key: str, *, protocol: str | None, roots: Roots, version: bool = False
) -> None:
    """A message, or a Version of one. `protocol` is its container's, for options without a selector of their own."""
    entity.old = entity.old or not names.BEFORE_1_NAMES.isdisjoint(entity.values)
    if version:
        _normalise_version_identity(entity, key)
    else:
        normalise_identity(entity, "messageid", key)
        _place_uri(entity)
        normalise_meta(entity, roots)
    normalise_origin(entity)
    normalise_selectors(entity, core_format=True)
    for old, new in (names.MESSAGE_NAMES | names.VERSION_NAMES).items():
        entity.rename(old, new)
    _normalise_base(entity, roots)
    _normalise_payload(entity, roots)
    _normalise_metadata(entity)
    _normalise_message_options(entity, protocol)
    if not version:
        _normalise_versions(entity, protocol, roots)


def _normalise_version_identity(entity: RewrittenEntity, key: str) -> None:
    """In 0.5 the `id` of a Version is its resource's."""
    message_id = entity.xid.split("/")[4]
    if "id" in entity.values and entity.values["id"] == message_id:
        entity.rename("id", "messageid", "old-id-name")
        entity.values.setdefault("versionid", key)
    normalise_identity(entity, "versionid", key)


def _place_uri(entity: RewrittenEntity) -> None:
    """The texts' own picture of a borrowed message says ``uri``; what works is `xref` (docs/catalogues.md#dialects)."""
    value = entity.values.get("uri")
    if isinstance(value, str) and "/messages/" in names.canonical_reference(value):
        entity.rename("uri", "xref")


def _normalise_base(entity: RewrittenEntity, roots: Roots) -> None:
    """The base under its one name and as an XID; several spellings must agree (D35)."""
    for name in names.BASE_NAMES:
        normalise_reference(entity, entity.values, name, entity.at(name), roots)
    preferred = next((name for name in names.BASE_NAMES if entity.values.get(name)), None)
    if preferred is None:
        return
    if preferred != "basemessage":
        entity.values.pop("basemessage", None)
        entity.rename(preferred, "basemessage", "old-base-name")
    for name in names.BASE_NAMES[1:]:
        entity.rename(name, "basemessage", "old-base-name")


def _normalise_payload(entity: RewrittenEntity, roots: Roots) -> None:
    normalise_text(entity, "dataschemaformat", names.canonical_format, "old-format-name")
    for name in ("dataschemauri", "dataschemaxid"):
        normalise_reference(entity, entity.values, name, entity.at(name), roots)


def _normalise_metadata(entity: RewrittenEntity) -> None:
    metadata = entity.inner("envelopemetadata")
    if metadata is None:
        return
    _unwrap_attributes(entity, metadata)
    for name in list(metadata):
        place = RewriteCursor(entity, entity.at("envelopemetadata", name))
        definition = property_definition(metadata[name], place)
        if definition is UNUSABLE:
            del metadata[name]
        else:
            metadata[name] = definition


SCALAR_MEMBERS: Final = ("type", "value", "required")


def _unwrap_attributes(entity: RewrittenEntity, metadata: dict[str, Any]) -> None:
    """``attributes`` is a wrapper, unless it looks like a property definition of that name (D44)."""
    wrapped = metadata.get("attributes")
    if not isinstance(wrapped, dict) or not wrapped or not all(isinstance(value, dict) for value in wrapped.values()):
        return
    if any(name in wrapped and not isinstance(wrapped[name], dict) for name in SCALAR_MEMBERS):
        return
    pointer = entity.at("envelopemetadata")
    source = entity.log.source_of(child(pointer, "attributes"))
    del metadata["attributes"]
    for name, definition in wrapped.items():
        target = child(pointer, name)
        if name in metadata and metadata[name] != definition:
            message, inner = (
                f"'{name}' stands outside of 'attributes' too and differs; that counts",
                child(source, name),
            )
            entity.log.report_source(
                "conflicting-names", inner, message, entity.xid, expected=metadata[name], actual=definition
            )
            continue
        metadata[name] = definition
        entity.log.origins[target] = child(source, name)
    message = "the attributes stand in 'envelopemetadata' itself"
    entity.log.report_source("wrapped-metadata", source, message, entity.xid, actual="attributes")


def _normalise_message_options(entity: RewrittenEntity, protocol: str | None) -> None:
    options = entity.inner("protocoloptions")
    if options is not None:
        chosen = entity.values.get("protocol") or protocol
        entity.values["protocoloptions"] = normalise_options(entity, chosen, options)


def _normalise_versions(entity: RewrittenEntity, protocol: str | None, roots: Roots) -> None:
    chosen = entity.values.get("protocol") or protocol
    entity.rewrite_each(
        "versions", lambda version, key: normalise_message(version, key, protocol=chosen, roots=roots, version=True)
    )


# -- groups ---------------------------------------------------------------------------------------------------------


def normalise_group(entity: RewrittenEntity, key: str, roots: Roots) -> None:
    """A message group with all its messages."""
    normalise_identity(entity, "messagegroupid", key)
    normalise_origin(entity)
    drop_server_attributes(entity)
    normalise_selectors(entity, keep_precision=True)
    entity.rename("definitions", "messages", "old-collection-name")
    normalise_messages(entity, roots)


def normalise_messages(entity: RewrittenEntity, roots: Roots) -> None:
    """The messages that a group or an endpoint holds."""
    protocol = entity.values.get("protocol")
    entity.rewrite_each(
        "messages", lambda message, key: normalise_message(message, key, protocol=protocol, roots=roots)
    )
