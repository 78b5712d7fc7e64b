"""The payload schemas of a catalogue's definitions: compiled once, used to read payloads.

Spec: message/spec.md#dataschema, #dataschemauri, #dataschemaxid; docs/semantics.md D45.
"""

from __future__ import annotations

from typing import Any, Final

from wirebook.bindings import Received
from wirebook.definitions.compile.definition import Definition
from wirebook.problems import Problem
from wirebook.schema import CompiledSchema, DecodedPayload, Payload, SchemaIndex, Unsupported, without_prefix

REFERENCES: Final = ("dataschema", "dataschemauri", "dataschemaxid")


class PayloadSchemas:
    """Finds, compiles and caches the schema of each definition.

    `confluent_prefix`: Kafka payloads begin with the magic byte and schema id that Confluent's serialisers write.
    """

    def __init__(self, document: dict[str, Any], *, confluent_prefix: bool) -> None:
        self.index = SchemaIndex(document)
        self.confluent_prefix = confluent_prefix
        self._compiled: dict[str, CompiledSchema | Unsupported | None] = {}

    def find(self, definition: Definition) -> CompiledSchema | Unsupported | None:
        """Return the compiled schema of a definition, or None if it has no schema."""
        xid = definition.xid
        if xid not in self._compiled:
            references = {name: definition.attributes[name] for name in REFERENCES if definition.attributes.get(name)}
            has_schema = definition.has_schema
            self._compiled[xid] = self.index.find(definition.schema_format, **references) if has_schema else None
        return self._compiled[xid]

    def read(self, definition: Definition, received: Received) -> DecodedPayload | None:
        """Decode a message's payload with the schema of a definition: value, columns and problems.

        Return None if the definition has no schema.
        """
        schema = self.find(definition)
        if schema is None:
            return None
        if isinstance(schema, Unsupported):
            return DecodedPayload(None, None, schema.problems, "unsupported")
        if received.is_tombstone:
            return DecodedPayload(None, None, (), None)
        if received.payload is None:
            content_type = received.datacontenttype or received.content_type
            return read_without_data(definition, schema, content_type, is_empty=received.is_empty)
        payload: Payload | Problem = received.payload
        if self.confluent_prefix and received.protocol == "KAFKA" and received.mode != "structured":
            payload = without_prefix(received.payload, schema)
        if isinstance(payload, Problem):
            is_syntax = payload.code == "payload-syntax"
            return DecodedPayload(None, None, (payload,), "undecodable" if is_syntax else "invalid-payload")
        return schema.read(payload)


def read_without_data(
    definition: Definition, schema: CompiledSchema, content_type: str | None, *, is_empty: bool
) -> DecodedPayload:
    """Decode a message without data that is not a Kafka tombstone.

    An empty body (`is_empty`) is valid if the schema can decode zero bytes, as Protobuf does: they are a message with
    default values. Any other message of a definition with a schema must have data.
    """
    if is_empty:
        reading = schema.read(Payload(b"", content_type=content_type))
        if reading.outcome != "undecodable":
            return reading
    message = (
        f"the message has no data, but its definition '{definition.xid}' has a schema ({definition.schema_format})"
    )
    problem = Problem(code="missing-data", slot="payload", expected=definition.schema_format, message=message)
    return DecodedPayload(None, None, (problem,), "invalid-payload")
