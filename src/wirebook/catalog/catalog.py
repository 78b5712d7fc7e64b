"""The catalogue: definitions that are used.

    catalog = Catalog.load("orders.xreg.json")
    outcome = catalog.match(record)          # a capture record: bytes, str, dict, or a wire message

Spec: message/spec.md, endpoint/spec.md; docs/outcomes.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from os import PathLike
from typing import Any

import orjson

from wirebook.bindings import AnyMessage, Received, WireMessage, read_message, read_record
from wirebook.bindings.write import WriteMode
from wirebook.catalog.building import built_from, sendable
from wirebook.catalog.load import Document, load_registry
from wirebook.catalog.transforming import transformed
from wirebook.definitions.build.builder import BuildRequest, Built
from wirebook.definitions.build.request import Encoding
from wirebook.definitions.compile.definition import Definition, compile_definition
from wirebook.definitions.explain.explanation import Explainer, Explanation
from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.definitions.match.outcome import Outcome
from wirebook.definitions.match.scope import scope_of
from wirebook.definitions.match.selection import EndpointScope, Selector
from wirebook.definitions.resolve.registry import LoadedRegistry
from wirebook.problems import Problem, WirebookError
from wirebook.schema import CompiledSchema, DecodedPayload, Payload, SchemaIndex, Unsupported, without_prefix

Source = str | PathLike[str] | Mapping[str, Any] | Document
Message = WireMessage | Received | Mapping[str, Any] | bytes | str


class Catalog:
    """A loaded registry with its definitions compiled.

    Shape: `registry` is the normalised whole with its diagnostics; `definitions` by XID, in document order. Nothing
    changes after loading, so one catalogue may be shared by threads.
    """

    def __init__(
        self,
        registry: LoadedRegistry,
        options: MatchOptions = DEFAULT_OPTIONS,
        reload: Callable[[], LoadedRegistry] | None = None,
    ) -> None:
        self.registry = registry
        self._reload = reload
        self.options = options
        self.schemas = SchemaIndex(registry.document)
        self._compiled: dict[str, CompiledSchema | Unsupported | None] = {}

    @classmethod
    def load(cls, *sources: Source, options: MatchOptions = DEFAULT_OPTIONS) -> Catalog:
        """A catalogue from files (JSON, YAML), folders, documents as dicts, or xRegistry URLs, stacked in this order.

        Whatever rules a document breaks, it is loaded (`diagnostics` says which), and one that cannot be read does not
        stop the others (`registry.unread`).

        Raises: WirebookError when nothing could be read (``unreadable-file``, ``syntax-error`` ...).
        """
        paths = [os.fspath(source) if isinstance(source, PathLike) else source for source in sources]
        reload = partial(load_registry, *paths, cache={})
        return cls(reload(), options, reload)

    def refreshed(self) -> Catalog:
        """The catalogue as its sources are now: this one, if they still say the same.

        A server is asked whether its answers are those that are known (ETag), and sends only what is not. What does so
        now and then follows a registry. Raises: as `load`, and this catalogue stays as it is
        """
        registry = self._reload() if self._reload else self.registry
        if registry.fingerprint == self.fingerprint:
            return self
        return Catalog(registry, self.options, self._reload)

    @property
    def diagnostics(self) -> tuple[Problem, ...]:
        return self.registry.diagnostics

    @property
    def fingerprint(self) -> str:
        return self.registry.fingerprint

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        return {
            xid: compile_definition(
                xid, message.container, message.attributes, incomplete=message.incomplete, source=message.source
            )
            for xid, message in self.registry.messages.items()
            if not message.problems
        }

    @cached_property
    def scopes(self) -> dict[str, EndpointScope]:
        """What each endpoint allows; the selector has them with one definition for each message."""
        return {xid: scope_of(endpoint) for xid, endpoint in self.registry.endpoints.items()}

    @cached_property
    def selector(self) -> Selector:
        return Selector(self.definitions.values(), self.scopes, self.read_payload, self.options)

    # -- match ------------------------------------------------------------------------------------------------------

    def match(self, message: Message, endpoint: str | None = None) -> Outcome:
        """What one message is. A record that is a batch of events has several: use `match_each`.

        Raises: WirebookError (``unknown-endpoint``; ``malformed-batch`` for a batch of other than one message).
        """
        outcomes = self.match_each(message, endpoint)
        if len(outcomes) != 1:
            text = f"the record holds {len(outcomes)} messages; match_each() gives an outcome for each"
            raise WirebookError(Problem(code="malformed-batch", message=text, actual=len(outcomes)))
        return outcomes[0]

    def match_each(self, message: Message, endpoint: str | None = None) -> tuple[Outcome, ...]:
        """The outcome of every message in a record, in order; none for an empty batch."""
        if endpoint is not None:
            self.check_endpoint(endpoint)
        return tuple(self.selector.select(received, endpoint) for received in received_in(message))

    def check_endpoint(self, xid: str) -> None:
        """Raises: WirebookError (``unknown-endpoint``) when the catalogue has no such endpoint."""
        if xid not in self.scopes:
            known = ", ".join(f"'{scope}'" for scope in sorted(self.scopes)[:10]) or "none"
            text = f"the catalogue has no endpoint '{xid}'; it has: {known}"
            raise WirebookError(Problem(code="unknown-endpoint", message=text, actual=xid))

    # -- explain -----------------------------------------------------------------------------------------------------

    def explain(self, message: Message, endpoint: str | None = None) -> Explanation:
        """Why one message is what it is: what fits or came near, slot by slot, and what would make it fit.

        Raises: WirebookError (``unknown-endpoint``; ``malformed-batch`` for a batch of other than one message).
        """
        explanations = self.explain_each(message, endpoint)
        if len(explanations) != 1:
            text = f"the record holds {len(explanations)} messages; explain_each() gives an explanation for each"
            raise WirebookError(Problem(code="malformed-batch", message=text, actual=len(explanations)))
        return explanations[0]

    def explain_each(self, message: Message, endpoint: str | None = None) -> tuple[Explanation, ...]:
        """The explanation of every message in a record, in order."""
        if endpoint is not None:
            self.check_endpoint(endpoint)
        return tuple(self.explainer.explain(received, endpoint) for received in received_in(message))

    @cached_property
    def explainer(self) -> Explainer:
        return Explainer(self.selector, self.schema_of)

    # -- build ------------------------------------------------------------------------------------------------------

    def build(
        self,
        definition: str,
        context: Mapping[str, Any] | None = None,
        data: Any = None,
        *,
        attributes: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        protocol: str | None = None,
        mode: WriteMode | None = None,
        encoding: Encoding = "place",
        allow_incomplete: bool = False,
    ) -> AnyMessage:
        """A message by the definition with this XID, ready to be sent: the template half of a definition.

        `context` fills the placeholders: strings, or numbers and booleans, which stand for their canonical text (``1``,
        ``true``). `data` is the payload's bytes, or a value, which is written in the format of
        the definition's schema; either is checked. `attributes` (by CloudEvents name) and `properties` (by slot:
        ``key``, ``headers.X-Trace``) are what the definition leaves open. `protocol` is needed when the definition
        binds none. `encoding`: percent-encode placeholders as their ``place`` asks, never (``raw``) or always
        (``rfc6570``). `allow_incomplete` builds although a base message is missing.

        Raises: WirebookError with every problem at once (``missing-context``, ``constant-override``,
        ``illegal-character``, ``payload-invalid``, ``missing-data``, ``not-buildable`` ...).
        """
        request = BuildRequest(
            context or {},
            None,
            attributes or {},
            properties or {},
            protocol,
            mode,
            encoding=encoding,
            allow_incomplete=allow_incomplete,
        )
        return sendable(self.try_build(definition, request, data))

    def try_build(self, definition: str, request: BuildRequest, data: Any = None) -> Built:
        """As `build`, with what is worth knowing besides: the message, or None, and all problems, not only errors.

        Raises: WirebookError (``not-buildable``) when the catalogue has no such definition.
        """
        return built_from(self, definition, request, data)

    # -- transform ---------------------------------------------------------------------------------------------------

    def transform(
        self,
        message: Message | Outcome,
        to: str,
        *,
        endpoint: str | None = None,
        context: Mapping[str, Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        protocol: str | None = None,
        mode: WriteMode | None = None,
    ) -> AnyMessage:
        """The message of the definition `to` that says what `message` says, which some definition has to match.

        Placeholders of one name are one thing: the bindings of the message are the context of the new one. `context`,
        `attributes` and `properties` add what the message does not say.

        Raises: WirebookError (``not-transformable`` with what is wrong with the message; all of `build`).
        """
        outcome = message if isinstance(message, Outcome) else self.match(message, endpoint)
        request = BuildRequest(context or {}, None, attributes or {}, properties or {}, protocol, mode)
        return sendable(self.try_transform(outcome, to, request))

    def try_transform(self, outcome: Outcome, to: str, request: BuildRequest) -> Built:
        """As `transform`, of what was matched already: the message, or None, and all problems, not only errors."""
        return transformed(self, outcome, to, request)

    # -- payloads ---------------------------------------------------------------------------------------------------

    def schema_of(self, definition: Definition) -> CompiledSchema | Unsupported | None:
        """The definition's payload schema, compiled once; None when it names none."""
        if definition.xid not in self._compiled:
            self._compiled[definition.xid] = self._find_schema(definition)
        return self._compiled[definition.xid]

    def _find_schema(self, definition: Definition) -> CompiledSchema | Unsupported | None:
        if not definition.has_schema:
            return None
        names = ("dataschema", "dataschemauri", "dataschemaxid")
        references = {name: definition.attributes[name] for name in names if definition.attributes.get(name)}
        return self.schemas.find(definition.schema_format, **references)

    def read_payload(self, definition: Definition, received: Received) -> DecodedPayload | None:
        """The payload read by the definition's schema: value, columns and problems. None: the definition has none."""
        schema = self.schema_of(definition)
        if schema is None:
            return None
        if isinstance(schema, Unsupported):
            return DecodedPayload(None, None, schema.problems, "unsupported")
        if received.payload is None:
            return _without_data(definition, received, schema)
        payload = self._bare(received, received.payload, schema)
        return _refused(payload) if isinstance(payload, Problem) else schema.read(payload)

    def _bare(self, received: Received, payload: Payload, schema: CompiledSchema) -> Payload | Problem:
        """The payload without Confluent's prefix, where that is asked for."""
        prefixed = self.options.confluent_prefix and received.protocol == "KAFKA" and received.mode != "structured"
        return without_prefix(payload, schema) if prefixed else payload


def _refused(problem: Problem) -> DecodedPayload:
    return DecodedPayload(
        None, None, (problem,), "undecodable" if problem.code == "payload-syntax" else "invalid-payload"
    )


def _without_data(definition: Definition, received: Received, schema: CompiledSchema) -> DecodedPayload:
    """A Kafka tombstone, a null value, is a message, and so is a body of zero bytes where they are a value: Protobuf's
    message of defaults alone. Otherwise data that a schema describes must be there."""
    if received.is_tombstone:
        return DecodedPayload(None, None, (), None)
    if received.is_empty:
        reading = schema.read(Payload(b"", content_type=received.datacontenttype or received.content_type))
        if reading.outcome != "undecodable":
            return reading
    message = f"{definition.xid} has a schema and the message has no data"
    problem = Problem(code="missing-data", slot="payload", expected=definition.schema_format, message=message)
    return DecodedPayload(None, None, (problem,), "invalid-payload")


def received_in(message: Message) -> tuple[Received, ...]:
    """The messages in a record, however it is given; a record that cannot be read is one malformed message."""
    if isinstance(message, Received):
        return (message,)
    if isinstance(message, WireMessage):
        return read_message(message)
    return read_record(_line(message))


def _line(message: Mapping[str, Any] | bytes | str) -> bytes:
    if isinstance(message, Mapping):
        return orjson.dumps(message)
    return message if isinstance(message, bytes) else message.encode("utf-8", "surrogatepass")
