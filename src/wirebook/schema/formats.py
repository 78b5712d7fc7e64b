"""Names of payload formats.

Spec: xregistry-1.0-rc4/schema/spec.md#43-schema-formats (`JsonSchema`, `JsonStructure`, `Avro`, `XSD`, `Protobuf`); the
aliases occur in practice. Names are case-insensitive.
"""

from __future__ import annotations

from dataclasses import dataclass

JSON_SCHEMA, JSON_STRUCTURE, AVRO, PROTOBUF, XSD = "JsonSchema", "JsonStructure", "Avro", "Protobuf", "XSD"
TEXTS = (PROTOBUF, XSD)
"""Formats whose schemas are text, not JSON."""
FAMILIES = {
    "jsonschema": JSON_SCHEMA,
    "jsonstructure": JSON_STRUCTURE,
    "avro": AVRO,
    "apacheavro": AVRO,
    "protobuf": PROTOBUF,
    "proto": PROTOBUF,
    "xsd": XSD,
    "xmlschema": XSD,
}


@dataclass(frozen=True, slots=True)
class SchemaFormat:
    """The family of a format, such as ``JsonSchema``, and its version, such as ``draft-07``; None if it has none."""

    family: str
    version: str | None = None

    def __str__(self) -> str:
        return self.family if self.version is None else f"{self.family}/{self.version}"


def parse_format(name: str) -> SchemaFormat:
    """Return the format with a name. The name of an unknown family is kept unchanged."""
    family, _, version = name.strip().partition("/")
    known = FAMILIES.get(family.strip().lower().replace("-", "").replace(" ", ""), family.strip())
    return SchemaFormat(known, version.strip().lower() or None)
