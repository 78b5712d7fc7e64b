"""The document of a Version: the three attributes that can contain it, and its conversion for storage and responses.

    <RESOURCE>        a JSON value
    <RESOURCE>base64  bytes
    <RESOURCE>url     the address of a document stored elsewhere

Spec: core/spec.md#resource-attribute-processing; core/model.md#groupsstringresourcesstringtypemap.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from wirebook.core.entities.attributes import refusal
from wirebook.core.entities.state import Version
from wirebook.core.model.compiled import ResourceType
from wirebook.core.model.datatypes import check_value, preview
from wirebook.core.model.faults import InvalidValue
from wirebook.core.wildcards import matches_wildcard
from wirebook.problems.xregistry import refused
from wirebook.text.json import parse_json
from wirebook.text.mediatypes import is_media_type

JSON_TYPE: Final = "application/json"
IMPLICIT: Final[Mapping[str, str]] = {"application/json": "json", "*+json": "json", "text/plain": "string"}


class Body(NamedTuple):
    """A document that was sent as the HTTP body, not as an attribute."""

    document: bytes


def with_contenttype(
    version: Version, type_: ResourceType, metadata: Mapping[str, Any], *, patch: bool
) -> Mapping[str, Any]:
    """Return `metadata` with the contenttype for a document that was sent as an attribute.

    Without a contenttype in the request, the attribute `<RESOURCE>` makes it JSON. In a PATCH, so does
    `<RESOURCE>base64`, but a stored contenttype is kept. `version` is in its state before the request.
    """
    name, _, encoded = type_.document_names
    came = metadata.get(name) is not None or (patch and metadata.get(encoded) is not None)
    if not came or "contenttype" in metadata or (patch and "contenttype" in version.members):
        return metadata
    return {**metadata, "contenttype": JSON_TYPE}


def write_document(
    version: Version, type_: ResourceType, metadata: Mapping[str, Any], *, patch: bool, body: Body | None
) -> None:
    """Set the document of `version`. The request's attributes are already in `version.members`.

    If the request contains no document, the stored one is kept. null removes it, and a full update (PUT) removes a
    document that is stored elsewhere.
    Raises: invalid_attribute
    """
    name, url, encoded = type_.document_names
    named = [attribute for attribute in type_.document_names if attribute in metadata]
    present = [attribute for attribute in named if metadata[attribute] is not None]
    if body is not None and not present:
        _set_document(version, url, body.document)
    elif url in present:
        value = metadata[url]
        if not isinstance(value, str) or not value or any(ord(character) < 0x20 for character in value):
            why = "it must be a non-empty URL without control characters"
            raise refused("invalid_attribute", version.xid, name=url, error_detail=why)
        _set_document(version, url, None)
        version.members[url] = value
    elif name in present:
        _set_document(
            version, url, format_document(metadata[name], quoted=_is_json(version.members.get("contenttype"), type_))
        )
    elif encoded in present:
        _set_document(version, url, _decode(version, encoded, metadata[encoded]))
    elif named or (url in version.members and not patch):
        _set_document(version, url, None)


def check_one(type_: ResourceType, metadata: Mapping[str, Any], subject: str) -> None:
    """Check that at most one of the three attributes has a value. Raises: one_resource"""
    if type_.hasdocument and sum(metadata.get(name) is not None for name in type_.document_names) > 1:
        raise refused("one_resource", subject, list=",".join(type_.document_names))


def lacks_url(version: Version, type_: ResourceType) -> bool:
    """Return whether the model requires the URL of an external document and the Version has none."""
    url = type_.document_names[1]
    return type_.attributes[url].required and url not in version.members


def check_url(version: Version, type_: ResourceType) -> None:
    """Check the URL of a document against the model. Raises: required_attribute_missing, invalid_attribute"""
    url = type_.document_names[1]
    if lacks_url(version, type_):
        raise refused("required_attribute_missing", version.xid, list=url)
    if type_.attributes[url].enum and url in version.members:
        try:
            check_value(type_.attributes[url], version.members[url], url, lambda *_: True)
        except InvalidValue as error:
            raise refusal(error, version.xid) from None


def check_contenttype(version: Version) -> None:
    """Check that the contenttype is a media type, since it is sent as an HTTP header. Raises: invalid_attribute"""
    contenttype = version.members.get("contenttype")
    if contenttype is not None and not is_media_type(contenttype):
        why = f"{preview(contenttype)} is not a media type"
        raise refused("invalid_attribute", version.xid, name="contenttype", error_detail=why)


def _set_document(version: Version, url: str, document: bytes | None) -> None:
    version.members.pop(url, None)
    version.document = document or None


def _decode(version: Version, name: str, text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError):
        why = "it must be a base64 string (RFC 4648, with padding)"
        raise refused("invalid_attribute", version.xid, name=name, error_detail=why) from None


def _is_json(contenttype: str | None, type_: ResourceType) -> bool:
    """Return whether a document of this media type must be JSON, by the typemap or by the media type itself."""
    representation = representation_of(contenttype, type_.typemap)
    return representation == "json" or (representation == "binary" and representation_of(contenttype, {}) == "json")


def format_document(value: Any, *, quoted: bool) -> bytes:
    """Return the bytes of a document that was sent as a JSON value.

    A string is stored as its characters or, if `quoted`, as a JSON string.
    """
    if isinstance(value, str) and not quoted:
        return value.encode()
    return json.dumps(value, ensure_ascii=False, indent=2).encode()


# -- responses ---------------------------------------------------------------------------------------------------


def inlined(document: bytes | None, contenttype: str | None, type_: ResourceType, *, binary: bool) -> tuple[str, str]:
    """Return the attribute that contains a document, and its JSON text.

    By contenttype, the value is the JSON of the document or its text as a string. If neither is possible, it is base64.
    """
    name, _, encoded = type_.document_names
    representation = "binary" if binary or not document else representation_of(contenttype, type_.typemap)
    try:
        if document and representation == "json":
            return name, _embeddable_json(document)
        if document and representation == "string":
            return name, json.dumps(document.decode(), ensure_ascii=False)
    except ValueError:
        pass  # the content does not match its contenttype
    return encoded, json.dumps(base64.b64encode(document or b"").decode())


def _embeddable_json(document: bytes) -> str:
    """Return the text of a JSON document, in which numbers keep their spelling.

    Raises: ValueError, if a request could not contain it as an attribute: null would mean that there is no document,
    and duplicate members are an error
    """
    if parse_json(document, max_depth=DEEPEST, strict=True) is None:
        raise ValueError(document)
    return document.decode().strip()


DEEPEST: Final = 80
"""Maximum nesting of JSON in an attribute: a request may have 100 levels, including those above the attribute."""


def representation_of(contenttype: str | None, typemap: Mapping[str, str]) -> str:
    """Return how responses represent documents of a media type: binary, json or string."""
    bare = (contenttype or "").partition(";")[0].strip().lower()
    for rules in (typemap, IMPLICIT):
        representations = {
            representation for pattern, representation in rules.items() if matches_wildcard(bare, pattern)
        }
        if representations:
            return representations.pop() if len(representations) == 1 else "binary"
    return "binary"
