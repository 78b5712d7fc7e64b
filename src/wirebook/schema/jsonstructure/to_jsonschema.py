"""Translate JSON Structure to JSON Schema 2020-12: one function per kind of type.

Spec: draft-vasters-json-structure-core "Compound Types", "Composition Rules", "Extensions and Add-Ins".
Deviation: members of an add-in in `$offers` are allowed even if the instance does not name the add-in in `$uses`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wirebook.schema.jsonstructure.constraints import ConstraintTranslation
from wirebook.schema.jsonstructure.types import PRIMITIVES, URN
from wirebook.text.pointers import escape
from wirebook.text.pointers import resolve as resolve_pointer

DOCUMENT = f"{URN}document"
UNION = "x-union"
"""An annotation with the names of the types in an `anyOf`."""
MAX_LEVELS = 64
"""Maximum nesting of inline types, and maximum length of a chain of `$extends`."""
MAX_TYPES = 100_000
"""Maximum types of a document, counting a type in each tuple and each object that inherits it."""
RESERVED = ("$schema", "$uses")
"""Members that every root object may have."""
VALIDATION, COMPOSITION = "JSONStructureValidation", "JSONStructureConditionalComposition"
LISTS, CONDITIONS = ("allOf", "anyOf", "oneOf"), ("not", "if", "then", "else")
"""The keywords of conditional composition whose value is a list of types, and those whose value is one type."""


class StructureError(ValueError):
    """A JSON Structure document is invalid or cannot be used."""


Node = dict[str, Any]


def definition(document: Node, reference: Any) -> tuple[str, Node]:
    """Return the pointer in a `$ref` or `$extends`, and the type there. Raises: StructureError"""
    pointer = reference.removeprefix("#") if isinstance(reference, str) else ""
    node = resolve_pointer(document, pointer) if isinstance(reference, str) and reference.startswith("#") else None
    if not isinstance(node, dict):
        raise StructureError(f"the reference {reference!r} is not in the document")
    return pointer, node


def extended(document: Node, node: Node) -> Node:
    """Return a type with the properties that it inherits by `$extends`, those of the bases first.

    Raises: StructureError
    """
    return _extended(document, node, 0, {})


def _extended(document: Node, node: Node, level: int, known: dict[str, Node]) -> Node:
    bases = node.get("$extends")
    if bases is None or node.get("type") == "choice":
        return node
    if level > MAX_LEVELS:
        raise StructureError(f"'$extends' is circular at {bases!r}")
    properties, required = dict[str, Any](), dict[str, Any]()  # `required` by text, because names may be in lists
    for reference in bases if isinstance(bases, list) else [bases]:
        pointer, base = definition(document, reference)
        if pointer not in known:
            known[pointer] = _extended(document, base, level + 1, known)
        base = known[pointer]
        properties = {**mapping(base, "properties"), **properties}
        required |= {repr(name): name for name in sequence(base, "required")}
    merged = {**properties, **mapping(node, "properties")}
    return {**node, "properties": merged, "required": [*required.values(), *sequence(node, "required")]}


def mapping(node: Node, keyword: str) -> Node:
    """Return the object at a keyword; empty if it is absent. Raises: StructureError"""
    value = node.get(keyword, {})
    if not isinstance(value, dict):
        raise StructureError(f"'{keyword}' must be an object")
    return value


def sequence(node: Node, keyword: str) -> list[Any]:
    """Return the array at a keyword; empty if it is absent. Raises: StructureError"""
    value = node.get(keyword, [])
    if not isinstance(value, list):
        raise StructureError(f"'{keyword}' must be an array")
    return value


class Translation:
    """The translation of one document.

    Shape: `formats` has the predicates that no keyword of JSON Schema can express, by format name; `named` has the
    constraint that each generated pattern or format represents. Both are filled during the translation.
    """

    def __init__(self, document: Node) -> None:
        self.source = document
        self.definitions: dict[str, Any] = {}
        self.used: set[str] = set()
        self.level = 0
        self.remaining = MAX_TYPES
        uses, meta = sequence(document, "$uses"), str(document.get("$schema", ""))
        everything = "extended" in meta or "validation" in meta
        self.validation, self.composition = everything or VALIDATION in uses, everything or COMPOSITION in uses
        self.rules = ConstraintTranslation(self.schema)
        self.formats, self.named = self.rules.formats, self.rules.named

    def document(self, pointer: str) -> Node:
        """Return the JSON Schema of the type at `pointer`. Raises: StructureError"""
        root = resolve_pointer(self.source, pointer)
        schema = self.schema(root, root=True)
        return {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": self.definitions}

    def resources(self) -> list[tuple[str, Node]]:
        """Return the URIs and schemas of the primitive types that the translation refers to."""
        return [(f"{URN}{name}", _primitive(name)) for name in sorted(self.used)]

    # -- types --------------------------------------------------------------------------------------------------

    def schema(self, node: Any, *, root: bool = False) -> Node:
        """Return the JSON Schema of one type. Raises: StructureError"""
        if not isinstance(node, dict):
            raise StructureError("a type must be an object")
        self.remaining -= 1
        if self.remaining < 0:
            raise StructureError(
                f"the document has more than {MAX_TYPES} types when '$extends' and 'tuple' are expanded"
            )
        self.level += 1
        if self.level > MAX_LEVELS:
            raise StructureError(f"types are nested more than {MAX_LEVELS} levels deep")
        schema = self._typed(node, root)
        self.level -= 1
        return schema

    def _typed(self, node: Node, root: bool) -> Node:
        if "$ref" in node:
            return self._reference(node["$ref"])
        type_ = node.get("type")
        if isinstance(type_, list):
            return self._union(type_)
        if isinstance(type_, dict):
            referred = self.schema(type_)
            local = {keyword: node[keyword] for keyword in ("properties", "required") if node.get(keyword)}
            return {"allOf": [referred, self._object({**local, "type": "object"})]} if local else referred
        if type_ is None and not any(keyword in node for keyword in LISTS + CONDITIONS):
            raise StructureError("a type has no 'type'")
        schema = {} if type_ is None else self._named(node, type_, root)
        constraints: list[Node] = [{keyword: node[keyword] for keyword in ("const", "enum") if keyword in node}]
        constraints += self.rules.always(node)
        constraints += self.rules.validation(node) if self.validation else []
        constraints += [self._conditions(node)] if self.composition else []
        return _with(schema, constraints)

    def _named(self, node: Node, type_: Any, root: bool) -> Node:
        """Return the schema of a named type: primitive or compound."""
        if node.get("abstract") is True:
            raise StructureError(f"the type '{node.get('name', '')}' is abstract and has no values")
        if type_ in PRIMITIVES:
            return self._primitive(type_)
        if type_ == "object":
            return self._object(extended(self.source, node), root=root)
        build = COMPOUNDS.get(type_) if isinstance(type_, str) else None
        if build is None:
            raise StructureError(f"the type {type_!r} is unknown")
        return build(self, node)

    def _primitive(self, name: str) -> Node:
        self.used.add(name)
        return {"$ref": f"{URN}{name}"}

    def _reference(self, reference: Any) -> Node:
        pointer, node = definition(self.source, reference)
        if pointer not in self.definitions:
            self.definitions[pointer] = {}  # a type may refer to itself
            level, self.level = self.level, 0
            self.definitions[pointer] = self.schema(node)
            self.level = level
        return {"$ref": f"{DOCUMENT}#/$defs/{escape(pointer)}"}

    def _union(self, types: list[Any]) -> Node:
        names = [type_ for type_ in types if isinstance(type_, str)]
        if len(names) == len(types) == 2 and "null" in names and set(names) <= PRIMITIVES.keys():
            other = names[1 - names.index("null")]
            return self._primitive(f"{other}:null" if other != "null" else "null")
        branches = [self.schema(type_ if isinstance(type_, dict) else {"type": type_}) for type_ in types]
        return {"anyOf": branches, UNION: [type_ if isinstance(type_, str) else _name(type_) for type_ in types]}

    def _object(self, node: Node, *, root: bool = False) -> Node:
        properties = {name: self.schema(property_) for name, property_ in mapping(node, "properties").items()}
        schema: Node = {"type": "object", "properties": properties} | _required(sequence(node, "required"))
        extra = node.get("additionalProperties")
        if extra is False:
            schema["additionalProperties"] = False
            allowed = [*RESERVED, *self._offered()] if root else []
            schema["properties"] = dict.fromkeys(allowed, True) | properties
        elif isinstance(extra, dict):
            schema["additionalProperties"] = self.schema(extra)
        return schema

    def _offered(self) -> list[str]:
        """Return the names of the members that add-ins define."""
        offers = mapping(self.source, "$offers").values()
        addins = [addin for offer in offers for addin in (offer if isinstance(offer, list) else [offer])]
        types = [definition(self.source, addin)[1] if isinstance(addin, str) else addin for addin in addins]
        return [name for type_ in types if isinstance(type_, dict) for name in mapping(type_, "properties")]

    def array(self, node: Node) -> Node:
        """Return the schema of an array or a set."""
        items = {"items": self.schema(node["items"])} if node.get("items") else {}
        return {"type": "array"} | items | ({"uniqueItems": True} if node["type"] == "set" else {})

    def map(self, node: Node) -> Node:
        """Return the schema of a map."""
        values = {"additionalProperties": self.schema(node["values"])} if node.get("values") else {}
        return {"type": "object"} | values

    def tuple(self, node: Node) -> Node:
        """Return the schema of a tuple. Raises: StructureError"""
        properties, order = mapping(node, "properties"), node.get("tuple")
        if not isinstance(order, list) or not all(isinstance(member, str) and member in properties for member in order):
            raise StructureError("'tuple' must list the names of its properties")
        items = [self.schema(properties[name]) for name in order]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}

    def any(self, node: Node) -> Node:  # noqa: ARG002
        """Return the schema of any value."""
        return {}

    def choice(self, node: Node) -> Node:
        """Return the schema of a tagged or an inline choice. Raises: StructureError"""
        choices = mapping(node, "choices")
        if "$extends" not in node:
            options = {name: self.schema(choice) for name, choice in choices.items()}
            return {"type": "object", "properties": options, "additionalProperties": False, "minProperties": 1,
                    "maxProperties": 1}  # fmt: skip
        selector = node.get("selector")
        if not isinstance(selector, str):
            raise StructureError("an inline choice must have a 'selector'")
        chosen = []
        for name, choice in choices.items():
            type_ = variant(self.source, choice)
            properties = {selector: {"type": "any"}, **mapping(type_, "properties")}
            condition = {"required": [selector], "properties": {selector: {"const": name}}}
            chosen.append({"if": condition, "then": self.schema({**type_, "properties": properties})})
        return {"type": "object", "required": [selector], "properties": {selector: {"enum": list(choices)}},
                "allOf": chosen}  # fmt: skip

    def _conditions(self, node: Node) -> Node:
        lists = {
            keyword: [self.schema(item) for item in sequence(node, keyword)] for keyword in LISTS if keyword in node
        }
        return lists | {keyword: self.schema(node[keyword]) for keyword in CONDITIONS if keyword in node}


def _with(own: Node, constraints: list[Node]) -> Node:
    """Return the schema of a type with its constraints; in `allOf` if they have a keyword in common."""
    merged: Node = dict(own)
    clashing = []
    for constraint in constraints:
        if merged.keys() & constraint.keys():
            clashing.append(constraint)
        else:
            merged |= constraint
    return {**merged, "allOf": [*merged.get("allOf", []), *clashing]} if clashing else merged


COMPOUNDS: dict[str, Callable[[Translation, Node], Node]] = {
    "array": Translation.array,
    "set": Translation.array,
    "map": Translation.map,
    "tuple": Translation.tuple,
    "choice": Translation.choice,
    "any": Translation.any,
}


def variant(document: Node, node: Any) -> Node:
    """Return the object type of a choice, with references resolved and inherited properties. Raises: StructureError"""
    for _ in range(MAX_LEVELS):
        if not isinstance(node, dict):
            break
        reference = node.get("$ref") or (node["type"].get("$ref") if isinstance(node.get("type"), dict) else None)
        if reference is None:
            return extended(document, node)
        node = definition(document, reference)[1]
    raise StructureError("a choice must be an object type")


def _primitive(name: str) -> Node:
    plain, _, null = name.partition(":")
    schema = PRIMITIVES[plain].schema
    return schema | {"type": [schema["type"], "null"]} if null else schema


def _required(names: list[Any]) -> Node:
    """Return the schema of `required`: names, or sets of names, exactly one of which must be present.

    Raises: StructureError
    """
    sets = [name for name in names if isinstance(name, list)]
    if not all(isinstance(name, str) for set_ in (sets or [names]) for name in set_):
        raise StructureError("'required' must be a list of names, or of lists of names")
    if sets:
        return {"oneOf": [{"required": set_} for set_ in sets]}
    return {"required": list(dict.fromkeys(names))}


def _name(type_: Any) -> str:
    if not isinstance(type_, dict):
        return str(type_)
    return str(type_["$ref"]).rpartition("/")[2] if type_.get("$ref") else str(type_.get("type"))
