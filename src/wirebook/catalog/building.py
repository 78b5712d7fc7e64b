"""Build a message: encode the data in the format of the definition's schema, then build the message around it.

Spec: docs/semantics.md D12, D21-D25, D40.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from wirebook.bindings import KafkaRecord, Mqtt3Publish
from wirebook.definitions.build.builder import BuildRequest, Built, build, content_type_of, payload_of
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.match.options import MatchOptions
from wirebook.problems import Problem, Severity
from wirebook.schema import CompiledSchema, Encoded, Encoder, Payload, Unsupported
from wirebook.text.json import JsonError, parse_json

Schema = CompiledSchema | Unsupported | None


@dataclass(frozen=True, slots=True)
class TextOrBytes:
    """Data from a file: a JSON value to encode if the schema accepts it, otherwise the bytes of the payload."""

    raw: bytes


def build_message(
    definition: Definition, schema: Schema, request: BuildRequest, data: Any, options: MatchOptions
) -> Built:
    """Build a message with `data` as its payload. The result has all problems of the definition, slots and payload."""
    encoded = _encode(definition, schema, request, data)
    built = build(definition, replace(request, payload=encoded.payload), options)
    problems = [*built.problems, *encoded.problems]
    if not isinstance(schema, Unsupported | None):
        payload = encoded.payload
        is_mqtt_3 = isinstance(built.wire, Mqtt3Publish) and not definition.is_cloudevent
        if is_mqtt_3 and payload is not None and payload.raw is not None:
            # MQTT 3.1.1 has no content type, so the payload must also be valid without one.
            problems += schema.read(Payload(payload.raw)).problems
        is_tombstone = isinstance(built.wire, KafkaRecord) and built.wire.value is None
        if data is None and built.wire is not None and not is_tombstone:
            message = (
                f"the definition '{definition.xid}' has a schema ({definition.schema_format}), so data is required"
            )
            problems.append(Problem("missing-data", message, slot="payload", expected=definition.schema_format))
    has_errors = any(problem.severity is Severity.ERROR for problem in problems)
    return Built(None if has_errors else built.wire, tuple(problems))


def _encode(definition: Definition, schema: Schema, request: BuildRequest, data: Any) -> Encoded:
    """Encode `data`: None, bytes, a value, a `Payload` (used unchanged) or a `TextOrBytes`."""
    if data is None:
        return Encoded(None)
    if isinstance(data, TextOrBytes):
        return _encode_text_or_bytes(definition, schema, request, data.raw)
    payload = payload_of(data, definition.schema_format)
    assert payload is not None
    content_type = content_type_of(definition, replace(request, payload=payload if isinstance(data, Payload) else None))
    if isinstance(schema, Unsupported):
        return Encoded(None, schema.problems)
    if schema is not None and payload.raw is None:
        if isinstance(schema, Encoder):
            return schema.encode(payload.value, content_type)
        message = f"values cannot be encoded as {schema.format}; pass the payload as bytes"
        actual = type(payload.value).__name__
        return Encoded(None, (Problem("not-encodable", message, slot="payload", expected="bytes", actual=actual),))
    if not isinstance(data, Payload):
        payload = Payload(payload.raw, payload.value, content_type)
    return Encoded(payload, () if schema is None else schema.read(payload).problems)


def _encode_text_or_bytes(definition: Definition, schema: Schema, request: BuildRequest, raw: bytes) -> Encoded:
    """Encode JSON text as a value, unless only its bytes are a valid payload; other data is used unchanged."""
    as_bytes = _encode(definition, schema, request, raw)
    if isinstance(schema, Unsupported | None):
        return as_bytes
    try:
        value = parse_json(raw)
    except JsonError:
        return as_bytes
    as_value = _encode(definition, schema, request, value)
    return as_bytes if as_value.problems and not as_bytes.problems else as_value
