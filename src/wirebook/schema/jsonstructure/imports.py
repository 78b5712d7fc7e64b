"""Resolve the imports of a JSON Structure document: copy types of other catalogue documents into it.

Rule: `$import` copies the root type of a document, under its name, and its definitions; `$importdefs` copies only the
definitions. An import at the root of a document adds definitions; an import in a namespace adds members to it. The
document's own definitions take precedence. References inside copied types are changed to the new places. Nothing is
fetched.

Spec: draft-vasters-json-structure-import.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin

from wirebook.schema.jsonstructure.to_jsonschema import Node, StructureError, mapping
from wirebook.schema.source import Resolve
from wirebook.text.pointers import child
from wirebook.text.pointers import resolve as resolve_pointer

KEYWORDS = ("$import", "$importdefs")
REFERENCES = ("$ref", "$extends", "$root")
OF_DOCUMENT = ("definitions", "$schema", "$id", "$uses")
"""Keywords at the root of a document that do not belong to its root type."""
MAX_LEVELS = 16
MAX_IMPORTS = 200
MAX_NODES = 200_000
"""Maximum JSON values that all imports of a document copy."""


def with_imports(document: Any, base_uri: str, resolve: Resolve) -> Any:
    """Return the document with its imports resolved; the same object if it has none. Raises: StructureError"""
    if not isinstance(document, dict) or not _has_imports(document):
        return document
    return _Imports(resolve).whole(document, _base_of(document, base_uri), ())


def _has_imports(document: Node) -> bool:
    """Return whether the root or a namespace of a document has an import."""
    definitions = document.get("definitions")
    namespaces = [document, *(_namespaces(definitions, 0) if isinstance(definitions, dict) else ())]
    return any(keyword in namespace for namespace in namespaces for keyword in KEYWORDS)


def _namespaces(namespace: Node, level: int) -> Iterator[Node]:
    """Yield a namespace and its nested namespaces."""
    yield namespace
    for member in namespace.values():
        if isinstance(member, dict) and not _is_type(member) and level < MAX_LEVELS:
            yield from _namespaces(member, level + 1)


def _is_type(node: Node) -> bool:
    return "type" in node or "$ref" in node or "$extends" in node


def _base_of(document: Node, base_uri: str) -> str:
    identifier = document.get("$id")
    return urljoin(base_uri, identifier) if isinstance(identifier, str) else base_uri


class _Imports:
    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve
        self.count = 0
        self.left = MAX_NODES

    def whole(self, document: Node, base: str, open_: tuple[str, ...]) -> Node:
        """Return a document with its imports resolved. `open_` has the URIs of the documents being resolved."""
        root = {name: member for name, member in document.items() if name not in KEYWORDS}
        definitions = mapping(document, "definitions")
        imported = self._namespace(definitions, "/definitions", base, open_)
        imported = self._types(document, "/definitions", base, open_) | imported
        return root | ({"definitions": imported} if imported else {})

    def _namespace(self, namespace: Node, pointer: str, base: str, open_: tuple[str, ...]) -> Node:
        if len(pointer) > 4000:
            raise StructureError("namespaces are nested too deeply")
        own = {
            name: self._namespace(member, child(pointer, name), base, open_)
            if isinstance(member, dict) and not _is_type(member)
            else member
            for name, member in namespace.items()
            if name not in KEYWORDS
        }
        return self._types(namespace, pointer, base, open_) | own

    def _types(self, namespace: Node, pointer: str, base: str, open_: tuple[str, ...]) -> Node:
        """Return the types that a namespace imports, with references changed for their new place at `pointer`."""
        imported: Node = {}
        for keyword in KEYWORDS:
            if keyword in namespace:
                document, uri = self._document(namespace[keyword], base, open_)
                types = dict(mapping(document, "definitions"))
                if keyword == "$import" and "type" in document:
                    root = {name: member for name, member in document.items() if name not in OF_DOCUMENT}
                    types = {_name(document, uri): root} | types
                moved = {name: self._moved(type_, document, pointer, uri) for name, type_ in types.items()}
                imported = moved | imported
        return imported

    def _document(self, reference: Any, base: str, open_: tuple[str, ...]) -> tuple[Node, str]:
        if not isinstance(reference, str):
            raise StructureError(f"an import must be the URI of a document, not {reference!r:.60}")
        uri = urljoin(base, reference)
        self.count += 1
        if uri in open_:
            raise StructureError(f"the import '{uri}' imports itself")
        if len(open_) >= MAX_LEVELS or self.count > MAX_IMPORTS:
            raise StructureError(f"more than {MAX_IMPORTS} imports, or more than {MAX_LEVELS} levels of imports")
        document = self.resolve(uri) or self.resolve(reference)
        if not isinstance(document, dict):
            raise StructureError(f"the import '{reference}' is not in the catalogue; imports are not fetched")
        return self.whole(document, _base_of(document, uri), (*open_, uri)), uri

    def _moved(self, node: Any, document: Node, pointer: str, uri: str) -> Any:
        """Return a copy of `node` in which references name the new places of the types of `document`."""
        self.left -= 1
        if self.left < 0:
            raise StructureError(f"the imports have more than {MAX_NODES} values in total")
        if isinstance(node, list):
            return [self._moved(member, document, pointer, uri) for member in node]
        if not isinstance(node, dict):
            return node
        return {
            name: _moved_reference(member, document, pointer, uri)
            if name in REFERENCES
            else self._moved(member, document, pointer, uri)
            for name, member in node.items()
        }


def _moved_reference(reference: Any, document: Node, pointer: str, uri: str) -> Any:
    if isinstance(reference, list):
        return [_moved_reference(item, document, pointer, uri) for item in reference]
    if not isinstance(reference, str) or not reference.startswith("#"):
        return reference
    old = reference.removeprefix("#").rstrip("/")
    if not old:
        return f"#{child(pointer, _name(document, uri))}"
    path = old.removeprefix("/definitions")
    return f"#{pointer}{path}" if path != old and resolve_pointer(document, old) is not None else reference


def _name(document: Node, uri: str) -> str:
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise StructureError(f"the root type of '{uri}' cannot be imported: it has no 'name'")
    return name
