"""Building: a definition of a catalogue, with a payload in the format of its schema, as a message.

Spec: docs/semantics.md D12, D21-D25, D40
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from wirebook.bindings import AnyMessage, KafkaRecord, Mqtt3Publish
from wirebook.definitions.build.builder import BuildRequest, Built, build, content_type_of, payload_of
from wirebook.definitions.compile.definition import Definition
from wirebook.problems import Problem, Severity, WirebookError
from wirebook.schema import CompiledSchema, Encoded, Encoder, Payload, Unsupported
from wirebook.text.json import JsonError, parse_json

if TYPE_CHECKING:
    from wirebook.catalog.catalog import Catalog


@dataclass(frozen=True, slots=True)
class TextOrBytes:
    """Data from a file: a JSON value to be encoded where that fits the definition, else the bytes as they are."""

    raw: bytes


def built_from(catalog: Catalog, xid: str, request: BuildRequest, data: Any) -> Built:
    """The message and everything that is to be said about it: definition, slots, payload.

    Raises: WirebookError (``not-buildable``) when the catalogue has no such definition.
    """
    definition = usable_definition(catalog, xid)
    encoded = _encoded(catalog, definition, request, data)
    built = build(definition, replace(request, payload=encoded.payload), catalog.options)
    unsaid = () if definition.is_cloudevent else _unsaid_type(catalog.schema_of(definition), built, encoded.payload)
    problems = (*built.problems, *encoded.problems, *unsaid, *_missing_data(catalog, definition, built, data))
    has_errors = any(problem.severity is Severity.ERROR for problem in problems)
    return Built(None if has_errors else built.wire, problems)


def usable_definition(catalog: Catalog, xid: str) -> Definition:
    """Raises: WirebookError (``not-buildable``), with the nearest name, or why the definition is not usable."""
    found = catalog.definitions.get(xid)
    if found is not None:
        return found
    message = catalog.registry.messages.get(xid)
    if message is not None:
        reasons = "; ".join(problem.message for problem in message.problems)
        text = f"the definition '{xid}' contradicts itself: {reasons}"
        raise WirebookError(Problem("not-buildable", text, xid=xid), *message.problems)
    near = get_close_matches(xid, list(catalog.definitions), n=1) or _of_id(catalog, xid)
    hint = f"did you mean '{near[0]}'?" if near else None
    raise WirebookError(Problem("not-buildable", f"the catalogue has no definition '{xid}'", actual=xid, hint=hint))


def _of_id(catalog: Catalog, messageid: str) -> list[str]:
    return [xid for xid in catalog.definitions if xid.rpartition("/")[2] == messageid.rpartition("/")[2]]


def sendable(built: Built) -> AnyMessage:
    """Raises: WirebookError with every problem, when there is an error among them."""
    if built.wire is None:
        raise WirebookError(*built.errors)
    return built.wire


# -- payload ----------------------------------------------------------------------------------------------------------


def _encoded(catalog: Catalog, definition: Definition, request: BuildRequest, data: Any) -> Encoded:
    if data is None:
        return Encoded(None)
    if isinstance(data, TextOrBytes):
        return _from_file(catalog, definition, request, data.raw)
    payload = payload_of(data, definition.schema_format)
    assert payload is not None
    kept = replace(request, payload=payload if isinstance(data, Payload) else None)
    content_type = content_type_of(definition, kept)
    schema = catalog.schema_of(definition)
    if isinstance(schema, Unsupported):
        return Encoded(None, schema.problems)
    if payload.raw is None and schema is not None:
        return _encoded_value(schema, payload.value, content_type)
    sent = payload if isinstance(data, Payload) else Payload(payload.raw, payload.value, content_type)
    return Encoded(sent, _wrong_bytes(schema, sent))


def _encoded_value(schema: CompiledSchema, value: Any, content_type: str | None) -> Encoded:
    if isinstance(schema, Encoder):
        return schema.encode(value, content_type)
    text = f"values are not written as {schema.format}; give the payload's bytes"
    return Encoded(
        None, (Problem("not-encodable", text, slot="payload", expected="bytes", actual=type(value).__name__),)
    )


def _wrong_bytes(schema: CompiledSchema | None, payload: Payload) -> tuple[Problem, ...]:
    return () if schema is None else schema.read(payload).problems


def _unsaid_type(
    schema: CompiledSchema | Unsupported | None, built: Built, payload: Payload | None
) -> tuple[Problem, ...]:
    """MQTT 3.1.1 has no place for a content type: its readers take a payload for what it is without one."""
    if not isinstance(built.wire, Mqtt3Publish) or payload is None or payload.raw is None:
        return ()
    return () if schema is None else schema.read(Payload(payload.raw)).problems


def _from_file(catalog: Catalog, definition: Definition, request: BuildRequest, raw: bytes) -> Encoded:
    """JSON that the definition's format can say is a value, anything else is the payload itself."""
    as_bytes = _encoded(catalog, definition, request, raw)
    schema = catalog.schema_of(definition)
    if schema is None or isinstance(schema, Unsupported):
        return as_bytes
    try:
        value = parse_json(raw)
    except JsonError:
        return as_bytes
    as_value = _encoded(catalog, definition, request, value)
    return as_bytes if as_value.problems and not as_bytes.problems else as_value


def _missing_data(catalog: Catalog, definition: Definition, built: Built, data: Any) -> tuple[Problem, ...]:
    """A schema asks for data; only a Kafka record without a value is a message without (a tombstone)."""
    schema = catalog.schema_of(definition)
    tombstone = isinstance(built.wire, KafkaRecord) and built.wire.value is None
    if data is not None or schema is None or isinstance(schema, Unsupported) or tombstone or built.wire is None:
        return ()
    text = f"{definition.xid} has a schema, so the message needs data"
    return (Problem("missing-data", text, slot="payload", expected=definition.schema_format),)
