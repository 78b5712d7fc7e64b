"""Normalise message groups and message definitions: rewrite every known spelling to 1.0-rc4.

Every change is reported as a problem. The same function handles messages and their Versions, in groups and in
endpoints.

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

# The reported reason why `epoch`, `messagesurl` and similar attributes of a document are ignored.
SERVER_ATTRIBUTE: Final = "a server sets it"

# -- attributes of every entity ---------------------------------------------------------------------------------------


def normalise_identity(entity: RewrittenEntity, id_name: str, key: str) -> None:
    """Rename the identifier to its name in 1.0. If it differs from the key in the map, the key takes precedence."""
    if "id" in entity.values:
        entity.rename("id", id_name, "old-id-name")
    id_ = entity.values.get(id_name)
    if id_ is not None and id_ != key:
        message = f"'{id_name}' is '{preview(id_)}' but the key is '{preview(key)}', which is used; make them equal"
        entity.report("id-mismatch", entity.at(id_name), message, expected=key, actual=id_)
        entity.values[id_name] = key


def normalise_origin(entity: RewrittenEntity) -> None:
    """Move `origin` (0.5) to `labels`. A label `origin` takes precedence."""
    if isinstance(entity.values.get("origin"), str):
        entity.move("origin", "labels")


def drop_server_attributes(entity: RewrittenEntity) -> None:
    """Drop URLs and counts from a document before 1.0: they are those of the server that it came from."""
    if not entity.old:
        return
    for name in list(entity.values):
        if name == "self" or names.COLLECTION_SUMMARY.match(name):
            entity.drop(name, SERVER_ATTRIBUTE, "server-attribute")


def normalise_meta(entity: RewrittenEntity, roots: Roots) -> None:
    """Move `xref`, and other attributes that 0.5 has in the Resource, to `meta`, and normalise `xref` to an XID."""
    meta_names = (*names.META_NAMES, "epoch") if entity.old else names.META_NAMES
    meta = entity.inner("meta")
    if meta is not None:
        normalise_reference(entity, meta, "xref", entity.at("meta", "xref"), roots)
    normalise_reference(entity, entity.values, "xref", entity.at("xref"), roots)
    for name in meta_names:
        if name in entity.values:
            entity.move(name, "meta")
    for name in names.SERVER_META_NAMES:
        entity.drop(name, SERVER_ATTRIBUTE, "server-attribute")
    drop_server_attributes(entity)


def normalise_reference(entity: RewrittenEntity, holder: dict[str, Any], name: str, pointer: str, roots: Roots) -> None:
    """Normalise a reference into this registry to an XID."""
    value = holder.get(name)
    if isinstance(value, str) and (reference := names.canonical_reference(value, roots)) != value:
        report_reference(entity, pointer, value, reference)
        holder[name] = reference


def report_reference(entity: RewrittenEntity, pointer: str, value: str, reference: str) -> None:
    """Report that `value` was read as `reference`."""
    code, message = "old-reference-form", f"'{preview(value)}' was read as the XID '{preview(reference)}'"
    if names.lacks_slash(value):
        code, message = "missing-slash", f"an XID begins with a slash; write '{preview(reference)}'"
    entity.report(code, pointer, message, expected=reference, actual=value)


def normalise_text(entity: RewrittenEntity, name: str, canonical: Callable[[str], str], code: str) -> None:
    """Replace a value by its canonical spelling. Empty strings, and values of other types, are reported and dropped."""
    value = entity.values.get(name)
    if value is None:
        return
    if not isinstance(value, str):
        message = f"'{name}' must be a string; found '{preview(value)}'"
        entity.report("wrong-shape", entity.at(name), message, expected="a string", actual=value)
        del entity.values[name]
    elif not value.strip():
        message = f"'{name}' must be a non-empty string; the empty one is ignored"
        entity.report("bad-attribute", entity.at(name), message, expected="a non-empty string", actual=value)
        del entity.values[name]
    elif (spelled := canonical(value)) != value:
        message = f"'{preview(value)}' was read as '{preview(spelled)}', its name in 1.0-rc4"
        entity.report(code, entity.at(name), message, expected=spelled, actual=value)
        entity.values[name] = spelled


# -- selectors ------------------------------------------------------------------------------------------------------


def normalise_selectors(entity: RewrittenEntity, *, core_format: bool = False, keep_precision: bool = False) -> None:
    """Normalise `envelope` and `protocol`, which earlier specifications call `format` and `binding`.

    `core_format`: `format` may also be the attribute that every Version has since 1.0. `keep_precision`: no version is
    added to an envelope without one.
    """
    _place_format(entity, core_format=core_format)
    for old, new in names.SELECTOR_NAMES.items():
        entity.rename(old, new, canonical=names.canonical_protocol)
    for name in ("envelope", "protocol"):
        value = entity.values.get(name)
        if isinstance(value, str) and value.strip().casefold() == names.NO_SELECTOR:
            message = f"'{value}' means that there is no {name}; remove '{name}'"
            entity.report("none-selector", entity.at(name), message, actual=value)
            del entity.values[name]
    envelope = _precise_envelope if keep_precision else names.canonical_envelope
    if not keep_precision:
        _add_envelope_version(entity)
    normalise_text(entity, "envelope", envelope, "old-envelope-name")
    normalise_text(entity, "protocol", names.canonical_protocol, "old-protocol-name")


def _add_envelope_version(entity: RewrittenEntity) -> None:
    """Add the version that the envelope of a message must have: CloudEvents is read as CloudEvents/1.0 (R2, R3)."""
    value = entity.values.get("envelope")
    if isinstance(value, str) and names.names_cloudevents(value) and not value.strip().partition("/")[2]:
        message = f"the envelope '{preview(value)}' has no version; write '{names.CLOUDEVENTS}' (assumed here)"
        entity.report("bad-envelope", entity.at("envelope"), message, expected=names.CLOUDEVENTS, actual=value)
        entity.values["envelope"] = names.CLOUDEVENTS


def _precise_envelope(text: str) -> str:
    has_no_version = text.strip().removesuffix("/").casefold() == "cloudevents"
    return "CloudEvents" if has_no_version else names.canonical_envelope(text)


def _place_format(entity: RewrittenEntity, *, core_format: bool) -> None:
    """Rename the `format` of 0.5: to `envelope` if it is CloudEvents, otherwise to `protocol`."""
    # Reading: without signs of an older specification, a `format` that is not a known protocol is the attribute of rc4.
    value = entity.values.get("format")
    if not isinstance(value, str):
        return
    if names.names_cloudevents(value):
        entity.rename("format", "envelope", canonical=names.canonical_envelope)
    elif names.is_known_protocol(value) or not core_format or entity.old:
        entity.rename("format", "protocol", canonical=names.canonical_protocol)


# -- messages -------------------------------------------------------------------------------------------------------


def normalise_message(
    entity: RewrittenEntity, key: str, *, protocol: str | None, roots: Roots, version: bool = False
) -> None:
    """Normalise a message, or one of its Versions. `protocol` is that of its group, for messages without a protocol."""
    entity.old = entity.old or not names.BEFORE_1_NAMES.isdisjoint(entity.values)
    if version:
        _normalise_version_identity(entity, key)
    else:
        normalise_identity(entity, "messageid", key)
        uri = entity.values.get("uri")
        if isinstance(uri, str) and "/messages/" in names.canonical_reference(uri):
            entity.rename("uri", "xref")  # as in a figure of the specification (docs/catalogues.md#dialects)
        normalise_meta(entity, roots)
    normalise_origin(entity)
    normalise_selectors(entity, core_format=True)
    for old, new in (names.MESSAGE_NAMES | names.VERSION_NAMES).items():
        entity.rename(old, new, canonical=names.canonical_format if new == "dataschemaformat" else str)
    _normalise_base(entity, roots)
    normalise_text(entity, "dataschemaformat", names.canonical_format, "old-format-name")
    for name in ("dataschemauri", "dataschemaxid"):
        normalise_reference(entity, entity.values, name, entity.at(name), roots)
    _normalise_metadata(entity)
    protocol = entity.values.get("protocol") or protocol
    options = entity.inner("protocoloptions")
    if options is not None:
        entity.values["protocoloptions"] = normalise_options(entity, protocol, options)
    if not version:
        entity.rewrite_each(
            "versions",
            lambda member, id_: normalise_message(member, id_, protocol=protocol, roots=roots, version=True),
        )


def _normalise_version_identity(entity: RewrittenEntity, key: str) -> None:
    """Normalise the identifiers of a Version. In 0.5, its `id` is that of the Resource."""
    message_id = entity.xid.split("/")[4]
    if "id" in entity.values and entity.values["id"] == message_id:
        entity.rename("id", "messageid", "old-id-name")
        entity.values.setdefault("versionid", key)
    normalise_identity(entity, "versionid", key)


def _normalise_base(entity: RewrittenEntity, roots: Roots) -> None:
    """Rename every spelling of `basemessage`, and normalise the value to an XID; all spellings must agree (D35)."""
    for name in names.BASE_NAMES:
        normalise_reference(entity, entity.values, name, entity.at(name), roots)
    preferred = next((name for name in names.BASE_NAMES if entity.values.get(name)), None)
    if preferred is None:
        return
    if preferred != "basemessage":
        empty = entity.values.pop("basemessage", None)
        if empty is not None:
            message = (
                f"'basemessage' is '{preview(empty)}', which is ignored, since '{preferred}' has a value; remove it"
            )
            entity.report("empty-value", entity.at("basemessage"), message, actual=empty)
        entity.rename(preferred, "basemessage", "old-base-name")
    for name in names.BASE_NAMES[1:]:
        entity.rename(name, "basemessage", "old-base-name")


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
    """Move the members of ``attributes`` one level up, unless it is itself a property definition (D44)."""
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
            message = f"'attributes.{name}' differs from '{name}', which is used; remove 'attributes.{name}'"
            details = {"expected": metadata[name], "actual": definition}
            entity.log.report_source("conflicting-names", child(source, name), message, entity.xid, **details)
            continue
        metadata[name] = definition
        entity.log.origins[target] = child(source, name)
    message = "'attributes' was unwrapped: write its members in 'envelopemetadata' itself"
    entity.log.report_source("wrapped-metadata", source, message, entity.xid, actual="attributes")


# -- groups ---------------------------------------------------------------------------------------------------------


def normalise_group(entity: RewrittenEntity, key: str, roots: Roots) -> None:
    """Normalise a message group with its messages."""
    normalise_identity(entity, "messagegroupid", key)
    normalise_origin(entity)
    drop_server_attributes(entity)
    normalise_selectors(entity, keep_precision=True)
    entity.rename("definitions", "messages", "old-collection-name")
    normalise_messages(entity, roots)


def normalise_messages(entity: RewrittenEntity, roots: Roots) -> None:
    """Normalise the messages of a group or an endpoint."""
    protocol = entity.values.get("protocol")
    entity.rewrite_each(
        "messages", lambda message, key: normalise_message(message, key, protocol=protocol, roots=roots)
    )
