"""Compare two schemas of one format: can a reader with one schema read every document that the other allows?

    backward(old, new)    # why a reader with the new schema cannot read some documents of the old one

Rule: the comparison is sound but, for some formats, not complete. If no incompatibility is reported, every document can
be read; a compatible schema may be rejected. docs/compatibility.md lists the rules of each format.
"""

from __future__ import annotations

from collections.abc import Mapping

from wirebook.schema.avro import compatibility as avro
from wirebook.schema.formats import AVRO, JSON_SCHEMA, JSON_STRUCTURE, PROTOBUF, XSD
from wirebook.schema.incompatibilities import TOO_COMPLEX, UNPROVEN, Backward, Incompatibility, TooComplexError
from wirebook.schema.jsonschema import compatibility as jsonschema
from wirebook.schema.jsonstructure import compatibility as jsonstructure
from wirebook.schema.protobuf import compatibility as protobuf
from wirebook.schema.source import SchemaSource
from wirebook.schema.xsd import compatibility as xsd

BACKWARD: Mapping[str, Backward] = {
    JSON_SCHEMA: jsonschema.backward,
    JSON_STRUCTURE: jsonstructure.backward,
    AVRO: avro.backward,
    PROTOBUF: protobuf.backward,
    XSD: xsd.backward,
}
"""The comparison function of each format. It considers all documents that a schema accepts."""

AS_DECLARED: Mapping[str, Backward] = {**BACKWARD, JSON_SCHEMA: jsonschema.backward_as_declared}
"""The same, but only for documents without properties that their schema does not declare (docs/decisions/0091)."""


def backward(
    old: SchemaSource, new: SchemaSource, comparisons: Mapping[str, Backward] = BACKWARD
) -> list[Incompatibility]:
    """Return why a reader with `new` cannot read all documents of `old`. Both must be valid schemas of one format."""
    try:
        return comparisons[new.format.family](old, new)
    except TooComplexError as error:
        return [Incompatibility("", TOO_COMPLEX, None, str(error))]
    except RecursionError:
        return [Incompatibility("", TOO_COMPLEX, None, "the schemas are nested too deeply to be compared")]
    except ValueError as error:  # ProtocError, XsdError, StructureError: an import that the comparison needs is missing
        return [Incompatibility("", UNPROVEN, None, str(error))]


def forward(
    old: SchemaSource, new: SchemaSource, comparisons: Mapping[str, Backward] = BACKWARD
) -> list[Incompatibility]:
    """Return why a reader with `old` cannot read all documents of `new`."""
    return backward(new, old, comparisons)
