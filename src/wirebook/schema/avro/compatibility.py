"""Avro compatibility: can a reader with the new schema read data that was written with the old one?

Spec: Avro 1.12 "Schema Resolution", "Aliases", "Logical Types" (decimals match by precision and scale).
Reading: the specification does not define whether two different logical types with the same encoding match. Here they
do not, because a reader would mistake milliseconds for microseconds. Adding or removing a logical type does not change
the encoding; such types match.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wirebook.schema.avro.types import AvroType, parse_types
from wirebook.schema.incompatibilities import Incompatibility, Steps
from wirebook.schema.source import SchemaSource
from wirebook.text.pointers import child

PROMOTIONS: Final[dict[str, frozenset[str]]] = {
    "int": frozenset(("long", "float", "double")),
    "long": frozenset(("float", "double")),
    "float": frozenset(("double",)),
    "string": frozenset(("bytes",)),
    "bytes": frozenset(("string",)),
}
"""The kinds that a reader may use in place of the kind that was written."""
COLLECTIONS: Final = {"array": "items", "map": "values"}
MAX_STEPS: Final = 20_000


def backward(old: SchemaSource, new: SchemaSource) -> list[Incompatibility]:
    """Return why data written with `old` cannot be read with `new`. Both must be valid schemas.

    Raises: TooComplexError
    """
    written, _ = parse_types(old.document, old.resolve)
    read, _ = parse_types(new.document, new.resolve)
    return list(_SchemaResolution(Steps(MAX_STEPS)).compare(written, read, ""))


class _SchemaResolution:
    """Compares the types of two schemas.

    Shape: `compared` has the pairs of named types that have been compared or are being compared. A recursive use of a
    pair needs no comparison: it is compatible if everything else in the pair is.
    """

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.compared: set[tuple[str, str]] = set()

    def compare(self, old: AvroType, new: AvroType, path: str) -> Iterator[Incompatibility]:
        """Yield why a reader with the type `new`, at `path` in its schema, cannot read values of the type `old`."""
        self.steps.take()
        if old.kind == "union":  # any branch may have been written
            for branch in old.branches:
                compare = self._read_union if new.kind == "union" else self.compare
                yield from compare(branch, new, path)
        elif new.kind == "union":
            yield from self._read_union(old, new, path)
        elif old.kind == new.kind:
            yield from self._same_kind(old, new, path)
        elif new.kind in PROMOTIONS.get(old.kind, ()):
            yield from _logical_types(old, new, path)
        else:
            yield Incompatibility(path, "type-mismatch", _description(old), _description(new))

    def _same_kind(self, old: AvroType, new: AvroType, path: str) -> Iterator[Incompatibility]:
        if old.items is not None and new.items is not None:
            yield from self.compare(old.items, new.items, child(path, COLLECTIONS[new.kind]))
            return
        if old.name:
            if (old.name, new.name) in self.compared:
                return
            self.compared.add((old.name, new.name))
            # names match if they are equal without namespaces, or if the old one is an alias of the reader's type
            if old.name.rpartition(".")[2] != new.name.rpartition(".")[2] and old.name not in new.aliases:
                yield Incompatibility(child(path, "name"), "name-mismatch", old.name, new.name)
                return
        yield from _logical_types(old, new, path)
        if old.kind == "record":
            yield from self._record(old, new, path)
        elif old.kind == "enum":
            missing = [symbol for symbol in old.symbols if symbol not in new.symbols]
            if missing and new.declaration.get("default") not in new.symbols:
                yield Incompatibility(child(path, "symbols"), "missing-enum-symbols", missing, list(new.symbols))
        elif old.kind == "fixed" and old.size != new.size:
            yield Incompatibility(child(path, "size"), "fixed-size-mismatch", old.size, new.size)

    def _record(self, old: AvroType, new: AvroType, path: str) -> Iterator[Incompatibility]:
        written = dict(old.fields)
        for index, (name, type_) in enumerate(new.fields):
            place = f"{path}/fields/{index}"
            aliases = new.declaration["fields"][index].get("aliases") or ()
            source = next((written[candidate] for candidate in (name, *aliases) if candidate in written), None)
            if source is not None:
                yield from self.compare(source, type_, f"{place}/type")
            elif name not in new.defaults:
                yield Incompatibility(place, "reader-field-missing-default-value", None, name)

    def _read_union(self, old: AvroType, new: AvroType, path: str) -> Iterator[Incompatibility]:
        """Yield why no branch of a reader's union can read values of the type `old`.

        A branch of the same kind with the same full name excludes all other branches.
        """
        branches = list(enumerate(new.branches))
        namesakes = [
            (index, branch)
            for index, branch in branches
            if old.name and branch.kind == old.kind and branch.name == old.name
        ]
        reasons: list[Incompatibility] = []
        for index, branch in namesakes or branches:
            before = set(self.compared)
            incompatibilities = list(self.compare(old, branch, f"{path}/{index}"))
            if not incompatibilities:
                return
            self.compared = before
            if namesakes or (branch.kind == old.kind and not old.name):
                reasons = reasons or incompatibilities
        expected = [_description(branch) for branch in new.branches]
        yield from reasons or [Incompatibility(path, "missing-union-branch", _description(old), expected)]


def _logical_types(old: AvroType, new: AvroType, path: str) -> Iterator[Incompatibility]:
    if old.logical and new.logical and old.logical != new.logical:
        yield Incompatibility(child(path, "logicalType"), "logical-type-mismatch", old.logical, new.logical)
    elif old.logical and new.logical and old.attributes != new.attributes:
        yield Incompatibility(path, "decimal-mismatch", old.attributes, new.attributes)


def _description(type_: AvroType) -> str:
    return f"{type_.kind} {type_.name}" if type_.name else type_.logical or type_.kind
