"""Writing: a request is loaded, decided, stored and answered in one transaction, or leaves no trace.

Spec: core/http.md#creating-or-updating-entities.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final

from wirebook.core.entities.affected import AffectedEntities, affected_entities
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.decide import ALL, WriteRequest, WriteResult, decide
from wirebook.core.entities.deletes import listed_map
from wirebook.core.entities.documents import Body
from wirebook.core.entities.events import Change, changes_of, pack
from wirebook.core.entities.locks import set_lock
from wirebook.core.entities.model_change import Compliance, change_model
from wirebook.core.entities.validation import DocumentValidator, EnabledValidator
from wirebook.core.model.capabilities import Offer, change, everything
from wirebook.core.model.reader import preserve_homes, read_model
from wirebook.core.model.source import Fetch
from wirebook.core.model.target import DETAILS, RequestTarget
from wirebook.core.query.flags import Flags, Query, parse_flags
from wirebook.core.query.inline import Inline
from wirebook.core.query.views import format_json
from wirebook.httpapi.handlers.imports import Groups, ReadCatalogue
from wirebook.httpapi.handlers.listing import CollectionListing
from wirebook.httpapi.handlers.reads import EntityReads
from wirebook.httpapi.http.headers import PREFIX, parse_headers
from wirebook.httpapi.http.messages import JSON, ApiResponse, Incoming, read_json
from wirebook.httpapi.options import LIMITS, ResponseLimits
from wirebook.httpapi.settings import Settings, read_settings
from wirebook.problems.xregistry import refused
from wirebook.storage.session import Session, StoredSettings
from wirebook.storage.store import OutboxEntry


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What answering needs besides the registry: the time, what can be checked, what may be fetched, who reads
    catalogues of other dialects, if anyone does, and how much is answered at once."""

    now: Callable[[], str]
    new_id: Callable[[], str]
    validator: DocumentValidator
    offer: Offer
    fetch: Fetch
    read_catalogue: ReadCatalogue | None = None
    limits: ResponseLimits = LIMITS


@dataclass(slots=True)
class Writing:
    """One request that writes, in its transaction. `fetch` gets what its model includes."""

    session: Session
    settings: Settings
    rules: WriteContext
    fetch: Fetch
    _is_new_model: bool = False
    _new_capabilities: tuple[str, ...] | None = None
    _by_model: list[Change] = field(default_factory=list)

    def entity(self, incoming: Incoming, target: RequestTarget, flags: Flags) -> ApiResponse:
        """PUT, PATCH, POST or DELETE of an entity or a collection."""
        request = read_request(incoming, target, flags)
        draft, outcome = self._decide(request, flags, incoming.path)
        if changes_settings(target, incoming.method, request.metadata):
            query = {name: values for name, values in incoming.query.items() if name != "ignore"}
            flags = self.flags(query, target, incoming.method)
        correlation = self._store_draft(draft)[1]
        answer = ApiResponse(204)
        if incoming.method != "DELETE":
            with self.session.limited(self.rules.limits.read_seconds) if incoming.query else nullcontext():
                answer = self.answer(incoming, target, flags, outcome)
        if correlation:
            answer.headers[CORRELATION] = correlation
        return answer

    def catalogue(self, groups: Groups, path: str) -> list[Change]:
        """Groups that are imported, as a POST to the Registry has them, whatever their epochs. What was changed."""
        request = WriteRequest("POST", RequestTarget("registry", path), groups)
        draft, _ = self._decide(request, Flags(Inline(), ignore=frozenset({"epoch"})), path)
        return self._store_draft(draft)[0]

    def lock(self, target: RequestTarget, *, is_on: bool) -> bool:
        """Makes a Resource read-only for clients, or not; says whether it was not so before."""
        snapshot = self.session.load(affected_entities("PATCH", target, {}, self.settings.model), self.settings.model)
        draft = ChangeSet(snapshot, self.rules.now(), target.path)
        was_changed = set_lock(draft, target, is_on=is_on)
        self._store_draft(draft)
        return was_changed

    def _decide(self, request: WriteRequest, flags: Flags, path: str) -> tuple[ChangeSet, WriteResult]:
        wanted = affected_entities(request.method, request.target, request.metadata, self.settings.model)
        snapshot = self.session.load(wanted, self.settings.model)
        draft, compliance = ChangeSet(snapshot, self.rules.now(), path, flags.ignore), None
        if changes_settings(request.target, request.method, request.metadata):
            draft, compliance = self._change_settings(draft, request, flags)
        return draft, decide(draft, request, self._validator(), compliance.check_written if compliance else None)

    def _store_draft(self, draft: ChangeSet) -> tuple[list[Change], str | None]:
        """Stores what happened, and puts it into the outbox. What it was, and its correlation."""
        model, capabilities = self._is_new_model, self._new_capabilities
        changes = changes_of(draft, model=model, capabilities=capabilities) + self._by_model  # before it is stored
        event = OutboxEntry(draft.now, self.rules.new_id(), pack(changes)) if changes else None
        self.session.store(draft, event)
        return changes, event.correlation if event else None

    def _change_settings(
        self, draft: ChangeSet, request: WriteRequest, flags: Flags
    ) -> tuple[ChangeSet, Compliance | None]:
        """Change the capabilities and the model that are sent with the Registry: before everything else, in that order.

        A request can change what was mutable before it. Returns the draft for the rest of the request and, with another
        model, what checks the entities that the rest writes.
        """
        sent = request.metadata
        kinds = [kind for kind in SETTINGS if kind in sent and kind not in flags.ignore]
        for kind in kinds:
            if not self.settings.is_mutable(kind):
                raise refused("not_available", f"/{kind}")
        if "capabilities" in kinds:
            self.capabilities(sent["capabilities"], patch=request.method == "PATCH")
        compliance = None
        if "modelsource" in kinds:
            draft, compliance = self._change_model(draft, request, sent)
        self._check_modes()
        return draft, compliance

    def _change_model(
        self, draft: ChangeSet, request: WriteRequest, sent: Mapping[str, Any]
    ) -> tuple[ChangeSet, Compliance]:
        """Store the entities as the new model has them, and load again what the request is about."""
        written = affected_entities(request.method, request.target, sent, draft.model)
        compliance = self.modelsource(sent["modelsource"], draft, written)
        self._by_model = changes_of(draft)
        self.session.store(draft)
        model = self.settings.model
        found = self.session.load(affected_entities(request.method, request.target, sent, model), model)
        return ChangeSet(replace(found, registry=draft.registry), draft.now, draft.path, draft.ignore), compliance

    def flags(self, query: Query, target: RequestTarget, method: str) -> Flags:
        """The flags of a request by the model and the capabilities that it leaves behind."""
        return parse_flags(query, target, method, self.settings.model, self.settings.capabilities)

    def _validator(self) -> EnabledValidator:
        return EnabledValidator(self.rules.validator, self.settings.capabilities)

    def capabilities(self, sent: Any, *, patch: bool) -> None:
        """Change the capabilities. A null is those of a fresh registry."""
        current = self.settings.capabilities
        new = (
            everything(self.rules.offer) if sent is None else change(dict(current), sent, self.rules.offer, patch=patch)
        )
        self._new_capabilities = tuple(name for name, value in new.items() if current.get(name) != value)
        self._store(StoredSettings(self.settings.model.full, self.settings.homes, self.settings.modelsource, new))

    def _check_modes(self) -> None:
        """Check that the capabilities list the version modes of the model. Raises: model_error"""
        modes = {type_.versionmode for _, type_ in self.settings.model.resource_types()}
        if unlisted := modes - set(self.settings.capabilities["versionmodes"]):
            why = f"the versionmode '{min(unlisted)}' is in use; the capability 'versionmodes' must list it"
            raise refused("model_error", "/model", error_detail=why)

    def modelsource(self, source: Any, draft: ChangeSet, written: AffectedEntities | None = None) -> Compliance:
        """Change the model, with which all entities must comply; `written` is what the request writes besides. A null
        is a model without types."""
        source = {} if source is None else source
        read = read_model(source, self.fetch, tuple(self.settings.capabilities["versionmodes"]))
        new = preserve_homes(draft.model, read)
        compliance = change_model(draft, new.model, self._validator(), written)
        self._is_new_model = True
        self._store(StoredSettings(new.model.full, new.homes, source, self.settings.capabilities))
        return compliance

    def _store(self, stored: StoredSettings) -> None:
        self.session.store_settings(stored)
        self.settings = read_settings(self.session)  # not kept for other requests: this one may still fail

    # -- settings on paths of their own -----------------------------------------------------------------------------

    def put_capabilities(self, incoming: Incoming) -> ApiResponse:
        """PUT or PATCH of /capabilities."""
        sent = read_json(incoming)
        draft = self._registry_draft(incoming.path)
        self.capabilities({} if sent is None else sent, patch=incoming.method == "PATCH")
        self._check_modes()
        self._check_flags(incoming)
        return self._touched(draft, self.settings.capabilities)

    def reset_capabilities(self) -> tuple[str, ...]:
        """Restores the capabilities of a new registry. Returns the names of those that were different."""
        draft = self._registry_draft("/capabilities")
        self.capabilities(None, patch=False)
        self._check_modes()
        if self._new_capabilities:
            self._touched(draft, self.settings.capabilities)
        return self._new_capabilities or ()

    def put_modelsource(self, incoming: Incoming) -> ApiResponse:
        """PUT of /modelsource."""
        sent = read_json(incoming)
        draft = self._registry_draft(incoming.path)
        self.modelsource(sent, draft)
        self._check_flags(incoming)
        return self._touched(draft, self.settings.modelsource)

    def _check_flags(self, incoming: Incoming) -> None:
        self.flags(incoming.query, RequestTarget("settings", incoming.path), incoming.method)

    def _registry_draft(self, path: str) -> ChangeSet:
        snapshot = self.session.load(AffectedEntities(), self.settings.model)
        return ChangeSet(snapshot, self.rules.now(), path)

    def _touched(self, draft: ChangeSet, shown: Any) -> ApiResponse:
        draft.registry.mark_updated(draft.now)
        correlation = self._store_draft(draft)[1]
        answer = ApiResponse(200, format_json(shown).encode(), {"Content-Type": JSON})
        answer.headers[CORRELATION] = correlation or ""
        return answer

    # -- answers --------------------------------------------------------------------------------------------------

    def answer(self, incoming: Incoming, target: RequestTarget, flags: Flags, outcome: WriteResult) -> ApiResponse:
        """What a GET would answer, or the entities that were processed, with where it was made."""
        reading = EntityReads(self.session, self.settings, incoming.base, flags, limits=self.rules.limits)
        if outcome.ids is not None:
            return self._processed(reading, target, outcome)
        shown = target
        if outcome.version:
            shown = replace(target, kind="version", version=outcome.version)
        answer = reading.entity(shown)
        if outcome.created and answer.status in (200, 303):
            answer.status = 201
            answer.headers["Location"] = self._url(incoming, shown, shown.xid)
        if outcome.new_version and "Content-Location" not in answer.headers:
            version = f"{target.resource_xid}/versions/{outcome.new_version}"
            answer.headers["Content-Location"] = self._url(incoming, target, version)
        return answer

    def _url(self, incoming: Incoming, target: RequestTarget, xid: str) -> str:
        """The URL of the Resource that is the target, or of a Version of it: of the metadata if that was asked for."""
        has = target.type is not None and target.type.hasdocument and target.kind in ("resource", "version")
        return f"{incoming.base}{xid}{DETAILS if has and target.details else ''}"

    def _processed(self, reading: EntityReads, target: RequestTarget, outcome: WriteResult) -> ApiResponse:
        if not isinstance(outcome.ids, Mapping):
            return reading.collection(target, outcome.ids)
        kind = "groups" if target.kind == "registry" else "resources"
        reading.root = target
        pieces: list[str] = []
        for plural, ids in outcome.ids.items():
            model = self.settings.model
            group = model.groups[plural] if kind == "groups" else target.group_type
            type_ = None if kind == "groups" else target.group_type.resources[plural]  # type: ignore[union-attr]
            inner = RequestTarget(kind, target.path, group, target.group, type_)
            pieces += ["," if pieces else "{", json.dumps(plural), ":", *CollectionListing(reading, inner).members(ids)]
        return reading.json_of(target, [*pieces, "}"] if pieces else ["{}"])


CORRELATION: Final = "xRegistry-xregcorrelationid"


SETTINGS: Final = ("capabilities", "modelsource")
"""What of a Registry changes how the rest of a request is read."""


def changes_settings(target: RequestTarget, method: str, sent: Any) -> bool:
    """Whether a request sends capabilities or a model with the Registry."""
    if target.kind != "registry" or method not in ("PUT", "PATCH") or not isinstance(sent, Mapping):
        return False
    return any(kind in sent for kind in SETTINGS)


def read_request(incoming: Incoming, target: RequestTarget, flags: Flags) -> WriteRequest:
    """The request, from body or headers.

    Raises: missing_body, parsing_data, bad_flag, extra_xregistry_header, header_error, extra_xref_attribute
    """
    method = incoming.method
    if method == "DELETE":
        return WriteRequest(method, target, _listed(incoming, target, flags), None, flags.default, flags.epoch)
    if not target.is_document:
        extra = next((name for name, _ in incoming.headers if name.startswith(PREFIX)), None)
        if extra and incoming.body:
            why = "the attributes are in the body"
            raise refused("extra_xregistry_header", incoming.path, name=extra, error_detail=why)
        sent = read_json(incoming)
        return WriteRequest(method, target, {} if sent is None else sent, None, flags.default)
    assert target.type
    sent = parse_headers(incoming.headers, target.type, incoming.path)
    url = target.type.document_names[1]
    if sent.get(url) is not None and incoming.body:
        why = "the document is elsewhere, so the body must be empty"
        raise refused("extra_xregistry_header", incoming.path, name=f"xRegistry-{url}", error_detail=why)
    return WriteRequest(method, target, sent, Body(incoming.body), flags.default)


def _listed(incoming: Incoming, target: RequestTarget, flags: Flags) -> Mapping[str, Any] | None:
    """What a DELETE lists. Raises: parsing_data, bad_flag"""
    if target.is_collection and incoming.body:
        return listed_map(read_json(incoming), incoming.path)
    if target.is_collection and flags.epoch is not None:
        # Reading: who gives an epoch means one entity, and must not lose all that are beside it (checklist AMB-05).
        detail = "It is for one entity, and without a map this would delete all of them."
        raise refused("bad_flag", target.path, flag="epoch", detail=detail)
    return ALL
