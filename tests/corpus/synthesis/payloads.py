"""Payloads that are valid by a schema, drawn at random: JSON Structure, JSON Schema, XML Schema, and Avro and Protobuf in
both encodings.

As much is varied as the schema leaves open: members left out or null, bounds hit exactly, times in all spellings, texts
with surprises, and members that the schema does not name where it allows them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from synthesis import texts
from synthesis.dice import Dice
from synthesis.from_avro import avro
from synthesis.from_protobuf import protobuf
from synthesis.from_schema import JsonSchema
from synthesis.from_structure import Structure
from synthesis.from_xsd import xml
from wirebook.catalog import Catalog
from wirebook.definitions.compile.definition import Definition
from wirebook.schema.formats import parse_format
from wirebook.schema.protobuf.compile import ProtobufReader
from wirebook.schema.xsd.compile import XsdReader

PROTOBUF_TYPES = ("application/protobuf", "application/x-protobuf", "x/binary")
XML_TYPES = ("application/xml", "text/xml", "application/x+xml", "x/binary")


@dataclass(frozen=True)
class Made:
    """A payload: a JSON value, or bytes of a format that is none, and a content type that may be stated for them."""

    value: Any = None
    raw: bytes | None = None
    media_type: str = "x/binary"

    @property
    def is_json(self) -> bool:
        return self.raw is None


def payload_for(catalog: Catalog, definition: Definition, dice: Dice, *, as_json: bool) -> Made:
    """A valid payload of a definition; anything at all where it has no schema, or none that is understood.

    `as_json`: of the two encodings of Avro and Protobuf the JSON one.
    """
    schema = catalog.schema_of(definition)
    if isinstance(schema, ProtobufReader):
        message = protobuf(schema.descriptor, dice, as_json=as_json)
        return Made(message) if as_json else Made(raw=message, media_type=dice.choice(PROTOBUF_TYPES))
    if isinstance(schema, XsdReader):
        element = schema.validator.model.maps.elements[schema.element]
        return Made(raw=xml(element, dice), media_type=dice.choice(XML_TYPES))
    source = source_of(catalog, definition)
    if source is None:
        return Made({"n": dice.randint(0, 9), "text": texts.text(dice)})
    family, document, part = source
    if family == "Avro":
        value = avro(document, part, dice, as_json=as_json)
        return Made(value) if as_json else Made(raw=value)
    if family == "JsonStructure":
        return Made(Structure(document, dice).root(part))
    if family == "JsonSchema":
        return Made(JsonSchema(document, dice, catalog.schemas.resolve).root(part))
    return Made(raw=texts.strange(dice).encode())


def source_of(catalog: Catalog, definition: Definition) -> tuple[str, Any, str | None] | None:
    """The family of a definition's schema, its document, and the part of it that is meant."""
    attributes, inline = definition.attributes, definition.attributes.get("dataschema")
    if inline is not None:
        return parse_format(definition.schema_format or "").family, _parsed(inline), None
    for name in ("dataschemaxid", "dataschemauri"):
        source = catalog.schemas.documents.follow(attributes[name]) if attributes.get(name) else None
        if source is not None and source[0].content is not None:
            document, part = source
            return (
                parse_format(document.format or definition.schema_format or "").family,
                _parsed(document.content),
                part,
            )
    return None


def _parsed(document: Any) -> Any:
    is_text = isinstance(document, str) and document.lstrip()[:1] in ("{", "[", '"')
    return json.loads(document) if is_text else document


def spelled(dice: Dice, value: Any) -> bytes:
    """A JSON value as text, in one of the ways that writers have."""
    style = dice.choice(("wide", "indented", "escaped")) if dice.odd else "compact"
    separators = (",", ":") if style == "compact" else None
    text = json.dumps(
        value, ensure_ascii=style == "escaped", indent=1 if style == "indented" else None, separators=separators
    )
    return text.encode()
