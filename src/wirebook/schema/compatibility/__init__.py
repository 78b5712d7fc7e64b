"""Compatibility of two schemas of a format: why a reader with the new one cannot read all that the old one allows.

    refusals(SchemaFormat("Avro"), old, new)    # backward; forward is the same with old and new exchanged

Rule: sound in every format, complete in none: what is not refused can be read. docs/compatibility.md has the rules.
"""

from __future__ import annotations

from collections.abc import Mapping

from wirebook.schema.avro import compatibility as avro
from wirebook.schema.formats import AVRO, JSON_SCHEMA, JSON_STRUCTURE, PROTOBUF, XSD
from wirebook.schema.incompatibilities import (
    UNPROVEN,
    Backward,
    Refusal,
    TooComplexError,
    too_complex,
)
from wirebook.schema.jsonschema import compatibility as jsonschema
from wirebook.schema.jsonstructure import compatibility as jsonstructure
from wirebook.schema.jsonstructure.to_jsonschema import StructureError
from wirebook.schema.protobuf import compatibility as protobuf
from wirebook.schema.protobuf.compatibility_imports import MissingImportsError
from wirebook.schema.protobuf.protoc import ProtocError
from wirebook.schema.source import SchemaSource
from wirebook.schema.xsd import compatibility as xsd
from wirebook.schema.xsd.source import XsdError

__all__ = [
    "AS_DECLARED",
    "BACKWARD",
    "MissingImportsError",
    "Refusal",
    "TooComplexError",
    "backward",
    "forward",
    "full",
]

BACKWARD: dict[str, Backward] = {
    JSON_SCHEMA: jsonschema.backward,
    JSON_STRUCTURE: jsonstructure.backward,
    AVRO: avro.backward,
    PROTOBUF: protobuf.backward,
    XSD: xsd.backward,
}


AS_DECLARED: dict[str, Backward] = {**BACKWARD, JSON_SCHEMA: jsonschema.backward_as_declared}


def backward(old: SchemaSource, new: SchemaSource, table: Mapping[str, Backward] = BACKWARD) -> list[Refusal]:
    """Why a reader with `new` cannot read all documents of `old`. Both are valid schemas of one family."""
    try:
        return table[new.format.family](old, new)
    except (TooComplexError, RecursionError):
        return [too_complex()]
    except (ProtocError, XsdError, StructureError, ValueError) as error:  # what they import is needed to compare them
        return [Refusal("", UNPROVEN, None, str(error))]


def forward(old: SchemaSource, new: SchemaSource, table: Mapping[str, Backward] = BACKWARD) -> list[Refusal]:
    """Why a reader with `old` cannot read all documents of `new`."""
    return backward(new, old, table)


def full(old: SchemaSource, new: SchemaSource, table: Mapping[str, Backward] = BACKWARD) -> list[Refusal]:
    """Both."""
    return [*backward(old, new, table), *forward(old, new, table)]
