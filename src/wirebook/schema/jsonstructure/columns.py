"""The columns of a JSON Structure type.

As for JSON Schema, the layout is a best guess, because values that do not fit go to ``_rest``. Tuples, unions of types
without a common column, `any`, and recursive uses of a type are JSON text. A tagged choice is a struct with one member
per choice; an inline choice is one struct with the members of all choices.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from wirebook.schema.jsonschema.columns import MAX_COLUMNS, MAX_LEVELS, descriptions_of
from wirebook.schema.jsonstructure.to_jsonschema import Node, definition, extended, mapping, sequence, variant
from wirebook.schema.jsonstructure.types import PRIMITIVES, scalar_column
from wirebook.schema.layout import ColumnLayout, List, Map, Struct
from wirebook.schema.merging import join
from wirebook.schema.scalar_columns import JSON, TEXT
from wirebook.text.pointers import resolve as resolve_pointer


def layout_of(document: Node, pointer: str) -> ColumnLayout:
    """Return the column layout of the type at `pointer`. Raises: StructureError"""
    return _StructureColumns(document).layout(resolve_pointer(document, pointer))


class _StructureColumns:
    def __init__(self, document: Node) -> None:
        self.document = document
        self.remaining = MAX_COLUMNS
        self.ancestors: list[str] = []

    def layout(self, node: Any) -> ColumnLayout:
        self.remaining -= 1
        if not isinstance(node, dict) or self.remaining < 0 or len(self.ancestors) > MAX_LEVELS:
            return JSON
        type_ = node.get("type")
        if "$ref" in node:
            return self._referred(node["$ref"])
        if isinstance(type_, list):
            types = [branch for branch in type_ if branch != "null"]
            layouts = [self.layout(branch if isinstance(branch, dict) else {"type": branch}) for branch in types]
            return reduce(join, layouts) if layouts else JSON
        if isinstance(type_, dict):
            return self.layout(type_)
        self.ancestors.append("")
        layout = self._named(node, type_)
        self.ancestors.pop()
        return layout

    def _referred(self, reference: Any) -> ColumnLayout:
        pointer, node = definition(self.document, reference)
        if pointer in self.ancestors:
            return JSON
        self.ancestors.append(pointer or "#")
        layout = self.layout(node)
        self.ancestors.pop()
        return layout

    def _named(self, node: Node, type_: Any) -> ColumnLayout:
        if type_ in PRIMITIVES:
            return scalar_column(node)
        if type_ == "object":
            return self._object(extended(self.document, node))
        if type_ in ("array", "set") and node.get("items"):
            return List(self.layout(node["items"]))
        if type_ == "map" and node.get("values"):
            return Map(self.layout(node["values"]))
        return self._choice(node) if type_ == "choice" else JSON

    def _object(self, node: Node) -> ColumnLayout:
        properties = mapping(node, "properties")
        members = {name: self.layout(property_) for name, property_ in properties.items()}
        required = frozenset(name for name in sequence(node, "required") if isinstance(name, str))
        never_null = required - {name for name in required if _nullable(properties.get(name))}
        return Struct(members, never_null, descriptions_of(properties))

    def _choice(self, node: Node) -> ColumnLayout:
        choices = mapping(node, "choices")
        if "$extends" not in node:
            return Struct({name: self.layout(choice) for name, choice in choices.items()})
        selector: ColumnLayout = Struct({str(node.get("selector")): TEXT})
        return reduce(join, (self.layout(variant(self.document, choice)) for choice in choices.values()), selector)


def _nullable(node: Any) -> bool:
    type_ = node.get("type") if isinstance(node, dict) else None
    return type_ == "null" or (isinstance(type_, list) and "null" in type_) or not isinstance(type_, str | list)
