"""The schema documents of a catalogue, and the resolution of references to them.

Spec: schema/spec.md#42-schema-resources; docs/semantics.md D45 (suffixes), D46 (the default Version).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote, urljoin

from wirebook.core.names import version_order
from wirebook.text.json import JsonError, parse_json

LOCAL = "https://catalogue.invalid"
"""The prefix of the base URI of a document without an address; its XID follows."""
MAX_REFERENCE = 2000
"""Imports of at least this length are not looked up. Units: characters."""
ADDRESSES = ("self", "shortself", "schemauri", "schemaurl")


@dataclass(frozen=True, slots=True)
class SchemaDocument:
    """A schema Version.

    Shape: `xid` is that of the Version, or of the Resource for its default Version; `content` is None if the schema is
    not in the catalogue; `addresses` are its absolute URIs.
    """

    xid: str
    format: str | None
    content: Any
    addresses: tuple[str, ...]

    @property
    def base_uri(self) -> str:
        """The URI against which relative references in the document resolve."""
        return self.addresses[0] if self.addresses else f"{LOCAL}{quote(self.xid, safe='/:@~')}"


class Documents:
    """All schema documents of a registry, by XID and by absolute URI.

    Shape: `registry` is a canonical document: ``schemagroups`` -> ``schemas`` -> ``versions``.
    """

    def __init__(self, registry: Mapping[str, Any]) -> None:
        self.by_xid: dict[str, SchemaDocument] = {}
        self.by_uri: dict[str, SchemaDocument] = {}
        for document in _documents(registry):
            self.by_xid[document.xid] = document
            for address in document.addresses:
                self.by_uri.setdefault(address, document)

    def follow(self, reference: str) -> tuple[SchemaDocument, str | None] | None:
        """Return the document that a reference names, and the name of a part of it, if any; None if it is unknown.

        Rule: `reference` is an XID, ``#/schemagroups/...``, or an absolute URI that is an address or the `$id` of a
        document. A fragment, further path segments, or a suffix after a colon name a part.
        """
        address, _, fragment = reference.removeprefix("#").removeprefix(LOCAL).partition("#")
        if address.startswith("/"):
            return self._follow_path(unquote(address), unquote(fragment))
        for head, suffix in _splits(address):
            if head in self.by_uri:
                return self.by_uri[head], suffix or unquote(fragment) or None
        return None

    def imported(self, name: str, base_uri: str) -> SchemaDocument | None:
        """Return the document that the document at `base_uri` imports as `name`, a path or a URI; None if unknown.

        Rule: `name` is first resolved as a reference relative to `base_uri`. Otherwise, the document is the schema
        whose id is the path or its last segment (``common/units.proto``, ``common/units``, ``common.units``,
        ``units.proto``, ``units``): the one in the same group, else the only one in the catalogue.
        """
        for reference in (urljoin(base_uri, name), urljoin(base_uri.partition("/versions/")[0], name), name):
            document, part = (len(reference) < MAX_REFERENCE and self.follow(reference)) or (None, None)
            if document is not None and document.content is not None and part is None:
                return document
        group = base_uri.removeprefix(LOCAL).partition("/schemas/")[0]
        for schema_id in _ids_for(name):
            named = self._by_id.get(schema_id.lower(), ())
            in_group = [
                document
                for document in named
                if f"{group}/" in document.xid or document.base_uri.startswith(f"{group}/")
            ]
            for candidates in (in_group, named):
                if len(candidates) == 1:
                    return candidates[0]
        return None

    @cached_property
    def _by_id(self) -> dict[str, list[SchemaDocument]]:
        """The default Versions with content, by schema id in lower case."""
        documents: dict[str, list[SchemaDocument]] = {}
        for xid, document in self.by_xid.items():
            parts = xid.split("/")
            if len(parts) == 5 and document.content is not None:
                documents.setdefault(parts[4].lower(), []).append(document)
        return documents

    def _follow_path(self, path: str, fragment: str) -> tuple[SchemaDocument, str | None] | None:
        """Return the document at a path, and the name of its part; None if there is none (D45).

        Rule: the path of a Version is tried before the path of a Resource. The last id may end in a colon and a suffix;
        the longest id is tried first. The part is the suffix with the remaining path; without a suffix, it is the
        fragment, else the remaining path.
        """
        parts = path.split("/")
        for count in (7, 5):
            head, tail = "/".join(parts[:count]), "/".join(parts[count:])
            for xid, suffix in _splits(head) if len(parts) >= count else ():
                if xid in self.by_xid:
                    rest = f"/{tail}" if tail else ""
                    return self.by_xid[xid], (f"{suffix}{rest}" if suffix else fragment or rest) or None
        return None


def _ids_for(name: str) -> Iterator[str]:
    """Yield the ids that the schema at an imported path may have, most likely first."""
    path = name.rpartition("#")[2].rpartition("://")[2].strip("/")
    for candidate in (path, path.rpartition("/")[2]):
        stem, dot, ending = candidate.rpartition(".")
        bare = stem if dot and ending.lower() in ("proto", "xsd") else candidate
        yield from dict.fromkeys((candidate, bare, candidate.replace("/", "."), bare.replace("/", ".")))


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Yield all of `text`, then its two parts at each colon, from right to left."""
    yield text, ""
    cut = text.rfind(":")
    while cut > 0:
        yield text[:cut], text[cut + 1 :]
        cut = text.rfind(":", 0, cut)


# -- from the registry ------------------------------------------------------------------------------------------------


def _documents(registry: Mapping[str, Any]) -> Iterator[SchemaDocument]:
    for group_id, group in _entities(registry, "schemagroups"):
        for schema_id, schema in _entities(group, "schemas"):
            xid = f"/schemagroups/{group_id}/schemas/{schema_id}"
            versions = dict(_entities(schema, "versions"))
            for version_id, version in versions.items():
                yield _document(f"{xid}/versions/{version_id}", _inherited(schema, group) | version)
            default = versions.get(_default_version(schema, versions) or "", {})
            yield _document(xid, _inherited({}, group) | schema | default)


def _entities(parent: Any, collection: str) -> Iterator[tuple[str, dict[str, Any]]]:
    entities = parent.get(collection) if isinstance(parent, Mapping) else None
    if isinstance(entities, Mapping):
        yield from ((str(key), value) for key, value in entities.items() if isinstance(value, dict))


def _inherited(schema: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
    """Return the format that a Version inherits from its Resource or Group."""
    formats = [entity.get("format") for entity in (schema, group)]
    return {"format": next((format_ for format_ in formats if format_), None)}


def _default_version(schema: dict[str, Any], versions: dict[str, dict[str, Any]]) -> str | None:
    """Return the id of the default Version (D46); None if there are no Versions.

    Rule: `defaultversionid` of `meta` or of the Resource, the Version with `isdefault`, `versionid` of the Resource;
    the first that exists. Otherwise, the newest by its id.
    """
    meta = schema.get("meta")
    named = meta.get("defaultversionid") if isinstance(meta, dict) else None
    flagged = [key for key, version in versions.items() if version.get("isdefault") is True]
    candidates = [named, schema.get("defaultversionid"), *flagged, schema.get("versionid")]
    known = (str(candidate) for candidate in candidates if candidate is not None and str(candidate) in versions)
    return next(known, None) or max(versions, key=version_order, default=None)


def _document(xid: str, attributes: dict[str, Any]) -> SchemaDocument:
    content, format_ = _content(attributes), attributes.get("format")
    names = [*(attributes.get(attribute) for attribute in ADDRESSES), *_identifiers(content)]
    addresses = tuple(name.rstrip("#") for name in names if isinstance(name, str) and ":" in name.split("/", 1)[0])
    return SchemaDocument(xid, format_ if isinstance(format_, str) else None, content, addresses)


def _identifiers(content: Any) -> list[Any]:
    """Return `$id` and `id` of a JSON document, which may be stored as text."""
    if isinstance(content, str) and content.lstrip("\ufeff \t\r\n").startswith("{") and 'id"' in content:
        content = json_of(content)
    return [content.get("$id"), content.get("id")] if isinstance(content, dict) else []


def json_of(content: Any) -> Any:
    """Return the value of a JSON document, which may be stored as text; None if the text is not JSON."""
    if not isinstance(content, str):
        return content
    try:
        return parse_json(content.encode("utf-8", "surrogatepass"))
    except JsonError:
        return None


def _content(attributes: dict[str, Any]) -> Any:
    """Return the schema in `schema` (any JSON value, or text) or `schemabase64`; None if it is not inline (D43)."""
    for name in ("schema", "schemaobject", "schemastring"):
        if attributes.get(name) is not None:
            return attributes[name]
    encoded = attributes.get("schemabase64")
    try:
        return base64.b64decode(encoded, validate=True).decode() if isinstance(encoded, str) else None
    except (binascii.Error, UnicodeDecodeError):
        return None
