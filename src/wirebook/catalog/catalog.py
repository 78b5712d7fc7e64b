"""The catalogue: load definitions, then match, explain, build and transform messages with them.

    catalog = Catalog.load("orders.xreg.json")
    outcome = catalog.match(record)          # a capture record: bytes, str, dict, or a wire message

A *definition* describes one type of message: it constrains *slots* of the message, such as the CloudEvents attribute
`type`, the Kafka key or a header. Its values may contain *placeholders* (``{order}``). Matching extracts the values of
the placeholders from a message, and building inserts them. Definitions, schemas and endpoints are addressed by XIDs,
such as ``/messagegroups/orders/messages/shop.order.created``.

Spec: message/spec.md, endpoint/spec.md; docs/outcomes.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import cached_property, partial
from os import PathLike
from typing import Any

import orjson

from wirebook.bindings import AnyMessage, Received, WireMessage, read_message, read_record
from wirebook.bindings.write import WriteMode
from wirebook.catalog.building import build_message
from wirebook.catalog.load import Document, load_registry
from wirebook.catalog.payloads import PayloadSchemas
from wirebook.catalog.transforming import transform_message
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
from wirebook.schema import CompiledSchema, DecodedPayload, SchemaIndex, Unsupported

CatalogSource = str | PathLike[str] | Mapping[str, Any] | Document
Message = WireMessage | Received | Mapping[str, Any] | bytes | str


class Catalog:
    """A loaded registry with its message definitions compiled.

        catalog = Catalog.load("orders.xreg.json")

    `registry` is the normalised registry. A catalogue is immutable after loading, so threads can share it.
    """

    def __init__(
        self,
        registry: LoadedRegistry,
        options: MatchOptions = DEFAULT_OPTIONS,
        reload: Callable[[], LoadedRegistry] | None = None,
    ) -> None:
        self.registry = registry
        self.options = options
        self._reload = reload
        self._payload_schemas = PayloadSchemas(registry.document, confluent_prefix=options.confluent_prefix)

    def __getstate__(self) -> dict[str, Any]:
        """Omit schemas and sources: a copy in another process compiles schemas itself and cannot be refreshed."""
        return {name: value for name, value in vars(self).items() if name not in ("_payload_schemas", "_reload")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _reload=None)
        confluent_prefix = self.options.confluent_prefix
        self._payload_schemas = PayloadSchemas(self.registry.document, confluent_prefix=confluent_prefix)

    def __repr__(self) -> str:
        messages, endpoints = len(self.registry.messages), len(self.registry.endpoints)
        return f"Catalog(messages={messages}, endpoints={endpoints}, fingerprint={self.fingerprint[:8]!r})"

    @classmethod
    def load(cls, *sources: CatalogSource, options: MatchOptions = DEFAULT_OPTIONS) -> Catalog:
        """Load files (JSON, YAML), folders, dicts or xRegistry URLs as one catalogue.

            catalog = Catalog.load("orders.xreg.json", "https://registry.example.com")

        Of two definitions with the same XID, that of the earlier source is used. Rule violations and unreadable sources
        do not prevent loading; `diagnostics` lists them.

        Raises: WirebookError if no source can be read (``unreadable-file``, ``syntax-error``, ...).
        """
        paths = [os.fspath(source) if isinstance(source, PathLike) else source for source in sources]
        reload = partial(load_registry, *paths, cache={})
        return cls(reload(), options, reload)

    def refreshed(self) -> Catalog:
        """Read the sources again; return this catalogue if they are unchanged, otherwise a new one.

            catalog = catalog.refreshed()

        Requests to registries are conditional (ETags), so unchanged documents are not sent again.

        Raises: WirebookError, as `load`; this catalogue stays usable.
        """
        registry = self._reload() if self._reload else self.registry
        if registry.fingerprint == self.fingerprint:
            return self
        return Catalog(registry, self.options, self._reload)

    def compiled(self) -> Catalog:
        """Return what another process needs to match messages: the compiled definitions, the schemas and the endpoints.

        The result lacks the source documents, the diagnostics, and definitions that never match. The other process
        unpickles definitions on first use.
        """
        schemas = self.registry.document.get("schemagroups", {})
        registry = LoadedRegistry({"schemagroups": schemas}, {}, self.registry.endpoints)
        vars(registry)["fingerprint"] = self.fingerprint
        catalog = Catalog(registry, self.options)
        selector = self.selector.reading(catalog.read_payload)
        vars(catalog).update(definitions=selector.by_xid, scopes=self.scopes, selector=selector)
        return catalog

    @property
    def diagnostics(self) -> tuple[Problem, ...]:
        """The problems found while loading, with file, line and column. `wirebook lint` checks more rules."""
        return self.registry.diagnostics

    @property
    def fingerprint(self) -> str:
        """A digest of the normalised registry; equal for catalogues with the same content."""
        return self.registry.fingerprint

    @cached_property
    def definitions(self) -> Mapping[str, Definition]:
        """The usable message definitions by XID, in document order. Definitions that contradict themselves are absent.

        catalog.definitions["/messagegroups/orders/messages/shop.order.created"].protocol
        """
        return {
            xid: compile_definition(
                xid, message.container, message.attributes, incomplete=message.incomplete, source=message.source
            )
            for xid, message in self.registry.messages.items()
            if not message.problems
        }

    @cached_property
    def scopes(self) -> dict[str, EndpointScope]:
        """The definitions and constraints of each endpoint, by XID. `selector` has them without aliases."""
        return {xid: scope_of(endpoint) for xid, endpoint in self.registry.endpoints.items()}

    @cached_property
    def selector(self) -> Selector:
        """The selector, which finds the definition of a message; built on first use."""
        return Selector(self.definitions.values(), self.scopes, self.read_payload, self.options)

    # -- match ------------------------------------------------------------------------------------------------------

    def match(self, message: Message, endpoint: str | None = None) -> Outcome:
        """Match one message. For a record that contains a batch of events, use `match_each`.

            outcome = catalog.match({"protocol": "KAFKA", "topic": "orders", "value": '{"item": "lamp"}'})
            outcome.outcome, outcome.definition, outcome.bindings

        `endpoint`: the XID of an endpoint; only its definitions are candidates.

        Raises: WirebookError (``unknown-endpoint``; ``malformed-batch`` if the record does not hold exactly one
        message).
        """
        outcomes = self.match_each(message, endpoint)
        if len(outcomes) != 1:
            raise _not_one_message(len(outcomes), "match_each")
        return outcomes[0]

    def match_each(self, message: Message, endpoint: str | None = None) -> tuple[Outcome, ...]:
        """Match every message of a record, in order; the result is empty for an empty batch.

        Raises: WirebookError (``unknown-endpoint``).
        """
        if endpoint is not None:
            self.check_endpoint(endpoint)
        return tuple(self.selector.select(received, endpoint) for received in received_messages(message))

    def check_endpoint(self, xid: str) -> None:
        """Raise WirebookError (``unknown-endpoint``) if the catalogue does not have this endpoint."""
        check_known_endpoint(xid, self.scopes)

    # -- explain -----------------------------------------------------------------------------------------------------

    def explain(self, message: Message, endpoint: str | None = None) -> Explanation:
        """Explain why one message does or does not match: the closest definitions, slot by slot.

            print(catalog.explain(record).to_dict())

        Raises: WirebookError (``unknown-endpoint``; ``malformed-batch`` if the record does not hold exactly one
        message).
        """
        explanations = self.explain_each(message, endpoint)
        if len(explanations) != 1:
            raise _not_one_message(len(explanations), "explain_each")
        return explanations[0]

    def explain_each(self, message: Message, endpoint: str | None = None) -> tuple[Explanation, ...]:
        """Explain every message of a record, in order.

        Raises: WirebookError (``unknown-endpoint``).
        """
        if endpoint is not None:
            self.check_endpoint(endpoint)
        return tuple(self.explainer.explain(received, endpoint) for received in received_messages(message))

    @cached_property
    def explainer(self) -> Explainer:
        """The explainer of outcomes; built on first use."""
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
        """Build a message of the definition with this XID, ready to be sent.

            record = catalog.build(
                "/messagegroups/orders/messages/shop.order.created",
                {"shop": "lund", "order": "1001"},
                {"item": "lamp", "quantity": 2},
            )

        - `context`: the values of the placeholders. Numbers and booleans become their JSON text (``1``, ``true``).
        - `data`: the payload as bytes, or a value, which is encoded in the format of the definition's schema. Both are
          validated.
        - `attributes` (by CloudEvents name) and `properties` (by slot: ``key``, ``headers.X-Trace``): values that the
          definition leaves open.
        - `protocol`: required if the definition has none.
        - `encoding`: percent-encode placeholder values as their ``place`` requires, never (``raw``), or always
          (``rfc6570``).
        - `allow_incomplete`: build even if a base message is missing.

        Raises: WirebookError with all problems (``missing-context``, ``constant-override``, ``illegal-character``,
        ``payload-invalid``, ``missing-data``, ``not-buildable``, ...).
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
        return _wire_message(self.try_build(definition, request, data))

    def try_build(self, definition: str, request: BuildRequest, data: Any = None) -> Built:
        """Build a message; return it (None if there is an error) with all problems, warnings included.

        Raises: WirebookError (``not-buildable``) if the catalogue does not have this definition.
        """
        usable = self.definition(definition)
        return build_message(usable, self.schema_of(usable), request, data, self.options)

    def definition(self, xid: str) -> Definition:
        """Return the usable definition with this XID.

        Raises: WirebookError (``not-buildable``) with the closest XID, or with the reason why the definition cannot be
        used.
        """
        definition = self.definitions.get(xid)
        if definition is not None:
            return definition
        message = self.registry.messages.get(xid)
        if message is not None:
            reasons = "; ".join(problem.message for problem in message.problems)
            text = f"the definition '{xid}' contradicts itself: {reasons}"
            raise WirebookError(Problem("not-buildable", text, xid=xid), *message.problems)
        messageid = xid.rpartition("/")[2]
        close = get_close_matches(xid, list(self.definitions), n=1)
        close = close or [known for known in self.definitions if known.rpartition("/")[2] == messageid]
        hint = f"did you mean '{close[0]}'?" if close else None
        raise WirebookError(Problem("not-buildable", f"the catalogue has no definition '{xid}'", actual=xid, hint=hint))

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
        """Transform a message that a definition matches into a message of the definition `to`.

            event = catalog.transform(record, "/messagegroups/events/messages/shop.order.created")

        Placeholders with the same name have the same value in both messages. `context`, `attributes` and `properties`
        add values that `message` does not have.

        Raises: WirebookError (``not-transformable`` with the problems of the message; and as `build`).
        """
        outcome = message if isinstance(message, Outcome) else self.match(message, endpoint)
        request = BuildRequest(context or {}, None, attributes or {}, properties or {}, protocol, mode)
        return _wire_message(self.try_transform(outcome, to, request))

    def try_transform(self, outcome: Outcome, to: str, request: BuildRequest) -> Built:
        """Transform a matched message; return it (None if there is an error) with all problems, warnings included.

        Raises: WirebookError (``not-buildable``) if the catalogue does not have the definition `to`.
        """
        target = self.definition(to)
        return transform_message(outcome, target, self.schema_of(target), request, self.options)

    # -- payloads ---------------------------------------------------------------------------------------------------

    @property
    def schemas(self) -> SchemaIndex:
        """The schemas of the registry."""
        return self._payload_schemas.index

    def schema_of(self, definition: Definition) -> CompiledSchema | Unsupported | None:
        """Return the compiled payload schema of a definition, or None if it has none."""
        return self._payload_schemas.find(definition)

    def read_payload(self, definition: Definition, received: Received) -> DecodedPayload | None:
        """Decode a payload with the schema of a definition; return None if it has none."""
        return self._payload_schemas.read(definition, received)


def received_messages(message: Message) -> tuple[Received, ...]:
    """Return the messages of a record of any accepted type. An unreadable record is one malformed message."""
    if isinstance(message, Received):
        return (message,)
    if isinstance(message, WireMessage):
        return read_message(message)
    if isinstance(message, Mapping):
        return read_record(orjson.dumps(message))
    return read_record(message if isinstance(message, bytes) else message.encode("utf-8", "surrogatepass"))


def _not_one_message(count: int, method: str) -> WirebookError:
    message = f"expected one message, but the record holds {count}; call {method}()"
    return WirebookError(Problem(code="malformed-batch", message=message, actual=count))


def _wire_message(built: Built) -> AnyMessage:
    if built.wire is None:
        raise WirebookError(*built.errors)
    return built.wire


def check_known_endpoint(xid: str, known: Collection[str]) -> None:
    """Raise WirebookError (``unknown-endpoint``) if a catalogue with the endpoints `known` does not have this one."""
    if xid not in known:
        has = ", ".join(f"'{endpoint}'" for endpoint in sorted(known)[:10]) or "none"
        message = f"the catalogue has no endpoint '{xid}'; it has: {has}"
        raise WirebookError(Problem(code="unknown-endpoint", message=message, actual=xid))
