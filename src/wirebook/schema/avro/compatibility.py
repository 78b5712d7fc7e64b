"""Avro: can a reader with the new schema read what was written with the old one?

Spec: Avro 1.12 "Schema Resolution", "Aliases", "Logical Types" (decimals match by precision and scale).
Reading: two different logical types on one encoding do not match, although the text has no word for it: a reader would
take milliseconds for microseconds. A logical type that comes or goes changes no encoding and matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wirebook.schema.avro.names import NAMED, PRIMITIVES, full_name, named_types, namespace_of
from wirebook.schema.avro.types import LOGICAL, SIZES
from wirebook.schema.incompatibilities import Refusal, Steps
from wirebook.schema.source import SchemaSource
from wirebook.text.pointers import child

PROMOTIONS: dict[str, frozenset[str]] = {
    "int": frozenset(("long", "float", "double")),
    "long": frozenset(("float", "double")),
    "float": frozenset(("double",)),
    "string": frozenset(("bytes",)),
    "bytes": frozenset(("string",)),
}
STEPS = 20_000
COLLECTIONS = {"array": "items", "map": "values"}


def backward(old: SchemaSource, new: SchemaSource) -> list[Refusal]:
    """Why data written with `old` cannot be read with `new`; both are valid schemas.

    Raises: TooComplexError
    """
    written, read = _AvroDocument(old.document), _AvroDocument(new.document)
    return list(_Resolution(Steps(STEPS)).between(written.root, read.root, ""))


@dataclass(frozen=True)
class _Type:
    """Shape: `kind` as in the text, `node` what declares it ({} for a bare name), `space` the namespace inside."""

    schema: _AvroDocument
    kind: str
    node: Any
    space: str | None
    name: str = ""

    @property
    def key(self) -> tuple[str, int]:
        return (self.name, 0) if self.name else (self.kind, id(self.node))

    def part(self, word: str) -> _Type:
        return self.schema.type(self.node[word], self.space)

    def branches(self) -> list[_Type]:
        return [self.schema.type(each, self.space) for each in self.node]

    def described(self) -> str:
        return f"{self.kind} {self.name}" if self.name else self.logical()[0] or self.kind

    def logical(self) -> tuple[str | None, Any]:
        """The logical type, where it is valid for the kind, and what tells two of them apart."""
        name = self.node.get("logicalType") if isinstance(self.node, dict) else None
        if not isinstance(name, str) or self.kind not in LOGICAL.get(name, ()):
            return None, None
        if self.kind == "fixed" and self.node.get("size") != SIZES.get(name, self.node.get("size")):
            return None, None
        if name != "decimal":
            return name, None
        attributes = {"precision": self.node.get("precision"), "scale": self.node.get("scale", 0)}
        return (name, attributes) if _is_decimal(attributes) else (None, None)


class _AvroDocument:
    """A document with its names."""

    def __init__(self, document: Any) -> None:
        self.named = dict(named_types(document))
        self.aliases = {alias: full for full, node in self.named.items() for alias in _aliases(node)}
        self.root = self.type(document, None)

    def type(self, node: Any, space: str | None) -> _Type:
        """The type that a node declares or names."""
        while isinstance(node, dict) and isinstance(node.get("type"), dict | list):
            node = node["type"]
        if isinstance(node, list):
            return _Type(self, "union", node, space)
        kind = node["type"] if isinstance(node, dict) else node
        if kind in NAMED:
            inside = namespace_of(node, space)
            return _Type(self, "record" if kind == "error" else kind, node, inside, full_name(node["name"], inside))
        if kind in PRIMITIVES or kind in COLLECTIONS:
            return _Type(self, kind, node if isinstance(node, dict) else {}, space)
        return self._by_name(str(kind), space)

    def _by_name(self, name: str, space: str | None) -> _Type:
        candidates = (full_name(name, space), name)
        full = next(
            (candidate for candidate in candidates if candidate in self.named), self.aliases.get(candidates[0], name)
        )
        return self.type(self.named[full], None)


class _Resolution:
    """Shape: `settled` the pairs of named types that are compared, or being so: a pair inside itself holds if the rest
    does."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.settled: set[Any] = set()

    def between(self, old: _Type, new: _Type, path: str) -> Iterator[Refusal]:
        """Refusals, `path` being the place of `new`."""
        self.steps.take()
        if old.kind == "union":
            yield from self._written_union(old, new, path)
        elif new.kind == "union":
            yield from self._read_union(old, new, path)
        elif old.kind != new.kind:
            if new.kind not in PROMOTIONS.get(old.kind, ()):
                yield Refusal(path, "type-mismatch", old.described(), new.described())
            else:
                yield from self._logical(old, new, path)
        else:
            yield from self._alike(old, new, path)

    def _alike(self, old: _Type, new: _Type, path: str) -> Iterator[Refusal]:
        """Two types of one kind."""
        if old.kind in COLLECTIONS:
            word = COLLECTIONS[old.kind]
            yield from self.between(old.part(word), new.part(word), child(path, word))
            return
        if old.name:
            pair = (old.key, new.key)
            if pair in self.settled:
                return
            self.settled.add(pair)
            if not _names_match(old, new):
                yield Refusal(child(path, "name"), "name-mismatch", old.name, new.name)
                return
        yield from self._logical(old, new, path)
        if old.kind == "record":
            yield from self._record(old, new, path)
        elif old.kind == "enum":
            yield from _symbols(old, new, path)
        elif old.kind == "fixed" and old.node["size"] != new.node["size"]:
            yield Refusal(child(path, "size"), "fixed-size-mismatch", old.node["size"], new.node["size"])

    def _record(self, old: _Type, new: _Type, path: str) -> Iterator[Refusal]:
        written = {each["name"]: each for each in old.node["fields"]}
        for index, field in enumerate(new.node["fields"]):
            place = f"{path}/fields/{index}"
            names = [field["name"], *(field.get("aliases") or ())]
            source = next((written[name] for name in names if name in written), None)
            if source is not None:
                types = old.schema.type(source["type"], old.space), new.schema.type(field["type"], new.space)
                yield from self.between(*types, f"{place}/type")
            elif "default" not in field:
                yield Refusal(place, "reader-field-missing-default-value", None, field["name"])

    def _written_union(self, old: _Type, new: _Type, path: str) -> Iterator[Refusal]:
        """Each branch may have been written."""
        for branch in old.branches():
            if new.kind == "union":
                yield from self._read_union(branch, new, path)
            else:
                yield from self.between(branch, new, path)

    def _read_union(self, old: _Type, new: _Type, path: str) -> Iterator[Refusal]:
        """The branch of the reader's union that matches is the one that is read; a type's full name goes first."""
        branches = list(enumerate(new.branches()))
        same = [each for each in branches if old.name and each[1].kind == old.kind and each[1].name == old.name]
        found: list[Refusal] = []
        for index, branch in same or branches:
            before = set(self.settled)
            refusals = list(self.between(old, branch, f"{path}/{index}"))
            if not refusals:
                return
            self.settled = before
            if same or (branch.kind == old.kind and not old.name):
                found = found or refusals
        expected = [each.described() for _, each in branches]
        yield from found or [Refusal(path, "missing-union-branch", old.described(), expected)]

    @staticmethod
    def _logical(old: _Type, new: _Type, path: str) -> Iterator[Refusal]:
        (before, old_attributes), (after, new_attributes) = old.logical(), new.logical()
        if before and after and before != after:
            yield Refusal(child(path, "logicalType"), "logical-type-mismatch", before, after)
        elif before and after and old_attributes != new_attributes:
            yield Refusal(path, "decimal-mismatch", old_attributes, new_attributes)


def _is_decimal(attributes: dict[str, Any]) -> bool:
    """Are precision and scale allowed? Without that the type is its encoding."""
    precision, scale = attributes["precision"], attributes["scale"]
    whole = type(precision) is int and type(scale) is int
    return whole and precision > 0 and 0 <= scale <= precision


def _names_match(old: _Type, new: _Type) -> bool:
    """By the name without its namespace, or by an alias of the reader."""
    return old.name.rpartition(".")[2] == new.name.rpartition(".")[2] or old.name in _aliases(
        {"namespace": new.space, **new.node}
    )


def _aliases(node: Any) -> frozenset[str]:
    """The other names of a named type, in full."""
    space = namespace_of(node, None)
    return frozenset(full_name(str(alias), space) for alias in node.get("aliases") or ())


def _symbols(old: _Type, new: _Type, path: str) -> Iterator[Refusal]:
    known = set(new.node["symbols"])
    missing = [symbol for symbol in old.node["symbols"] if symbol not in known]
    if missing and new.node.get("default") not in known:
        yield Refusal(child(path, "symbols"), "missing-enum-symbols", missing, new.node["symbols"])
