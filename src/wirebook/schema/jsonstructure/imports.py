"""JSON Structure's imports: types of other documents of the catalogue, put where a document imports them.

Rule: `$import` brings the root type of a document, under its name, and its definitions, `$importdefs` the definitions
alone; at the root they become definitions, in a namespace its members. What a document defines itself goes first.
References inside what is imported follow it to its new place. Nothing is fetched.

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

WORDS = ("$import", "$importdefs")
REFERENCES = ("$ref", "$extends", "$root")
MAX_LEVELS = 16
MAX_IMPORTS = 200
MAX_NODES = 200_000  # of all that is imported, each time that it is


def with_imports(document: Any, base_uri: str, resolve: Resolve) -> Any:
    """The document with what it imports in it; itself where it imports nothing. Raises: StructureError"""
    if not isinstance(document, dict) or not any(_importing(document)):
        return document
    return _Imports(resolve).whole(document, _base_of(document, base_uri), ())


def _importing(document: Node) -> Iterator[Node]:
    """The root and the namespaces that import something."""
    for namespace, _ in _namespaces(document, ""):
        if any(word in namespace for word in WORDS):
            yield namespace


def _namespaces(document: Node, pointer: str) -> Iterator[tuple[Node, str]]:
    yield document, pointer
    if isinstance(found := document.get("definitions"), dict):
        yield from _inner(found, f"{pointer}/definitions", 0)


def _inner(namespace: Node, pointer: str, level: int) -> Iterator[tuple[Node, str]]:
    yield namespace, pointer
    for name, each in namespace.items():
        if isinstance(each, dict) and not _is_type(each) and level < MAX_LEVELS:
            yield from _inner(each, child(pointer, name), level + 1)


def _is_type(node: Node) -> bool:
    return "type" in node or "$ref" in node or "$extends" in node


def _base_of(document: Node, base_uri: str) -> str:
    declared = document.get("$id")
    return urljoin(base_uri, declared) if isinstance(declared, str) else base_uri


class _Imports:
    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve
        self.count = 0
        self.left = MAX_NODES

    def whole(self, document: Node, base: str, open_: tuple[str, ...]) -> Node:
        """A document with its imports; `open_` are the documents that are being imported into."""
        root = {name: each for name, each in document.items() if name not in WORDS}
        definitions = mapping(document, "definitions")
        made = self._namespace(definitions, "/definitions", base, open_)
        made = self._types(document, "/definitions", base, open_) | made
        return root | ({"definitions": made} if made else {})

    def _namespace(self, namespace: Node, pointer: str, base: str, open_: tuple[str, ...]) -> Node:
        if len(pointer) > 4000:
            raise StructureError("namespaces are nested too deeply")
        own = {
            name: self._namespace(each, child(pointer, name), base, open_)
            if isinstance(each, dict) and not _is_type(each)
            else each
            for name, each in namespace.items()
            if name not in WORDS
        }
        return self._types(namespace, pointer, base, open_) | own

    def _types(self, namespace: Node, pointer: str, base: str, open_: tuple[str, ...]) -> Node:
        """What a namespace imports, as it is to stand at `pointer`."""
        found: Node = {}
        for word in WORDS:
            if word in namespace:
                document, uri = self._document(namespace[word], base, open_)
                types = dict(mapping(document, "definitions"))
                if word == "$import" and "type" in document:
                    types = {_name(document, uri): _without_definitions(document)} | types
                moved = {name: self._moved(type_, document, pointer, uri) for name, type_ in types.items()}
                found = moved | found
        return found

    def _document(self, reference: Any, base: str, open_: tuple[str, ...]) -> tuple[Node, str]:
        if not isinstance(reference, str):
            raise StructureError(f"an import names a document by its URI, not by {reference!r:.60}")
        uri = urljoin(base, reference)
        self.count += 1
        if uri in open_:
            raise StructureError(f"imports go in circles at '{uri}'")
        if len(open_) >= MAX_LEVELS or self.count > MAX_IMPORTS:
            raise StructureError(f"more than {MAX_IMPORTS} imports, or {MAX_LEVELS} one inside the other")
        document = self.resolve(uri) or self.resolve(reference)
        if not isinstance(document, dict):
            raise StructureError(f"the import '{reference}' is not in the catalogue; nothing is fetched")
        return self.whole(document, _base_of(document, uri), (*open_, uri)), uri

    def _moved(self, node: Any, document: Node, pointer: str, uri: str) -> Any:
        """A copy in which references lead to where the types are now."""
        self.left -= 1
        if self.left < 0:
            raise StructureError(f"imports come to more than {MAX_NODES} parts")
        if isinstance(node, list):
            return [self._moved(each, document, pointer, uri) for each in node]
        if not isinstance(node, dict):
            return node
        return {
            name: _moved_reference(each, document, pointer, uri)
            if name in REFERENCES
            else self._moved(each, document, pointer, uri)
            for name, each in node.items()
        }


def _moved_reference(reference: Any, document: Node, pointer: str, uri: str) -> Any:
    if isinstance(reference, list):
        return [_moved_reference(each, document, pointer, uri) for each in reference]
    if not isinstance(reference, str) or not reference.startswith("#"):
        return reference
    old = reference.removeprefix("#").rstrip("/")
    if not old:
        return f"#{child(pointer, _name(document, uri))}"
    inside = old.removeprefix("/definitions")
    return f"#{pointer}{inside}" if inside != old and resolve_pointer(document, old) is not None else reference


def _name(document: Node, uri: str) -> str:
    name = document.get("name")
    if not isinstance(name, str) or not name:
        raise StructureError(f"the root type of '{uri}' has no 'name' that it could be imported under")
    return name


def _without_definitions(document: Node) -> Node:
    return {name: each for name, each in document.items() if name not in ("definitions", "$schema", "$id", "$uses")}
