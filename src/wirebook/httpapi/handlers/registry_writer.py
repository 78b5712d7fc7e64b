"""Writes: entities, collections, capabilities and the model, each request in one transaction.

A write loads the entities that it affects, decides what changes (`wirebook.core.entities.decide`), stores the changes
and renders the response. If any step fails, nothing changes.

Spec: core/http.md#creating-or-updating-entities; core/http.md#updating-the-model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final

from wirebook.core.entities.affected import AffectedEntities, affected_entities
from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.decide import WriteRequest, WriteResult, decide
from wirebook.core.entities.events import Change, changes_of, pack
from wirebook.core.entities.locks import set_lock
from wirebook.core.entities.model_change import Compliance, change_model
from wirebook.core.entities.validation import EnabledValidator
from wirebook.core.model.capabilities import initial_capabilities, update_capabilities
from wirebook.core.model.reader import preserve_homes, read_model
from wirebook.core.model.source import Fetch
from wirebook.core.model.target import DETAILS, RequestTarget
from wirebook.core.query.flags import Flags, Query, parse_flags
from wirebook.core.query.inline import Inline
from wirebook.core.query.views import format_json
from wirebook.httpapi.handlers.context import Groups, RequestContext, ServerContext
from wirebook.httpapi.handlers.entity_reader import read_target
from wirebook.httpapi.handlers.listing import CollectionListing
from wirebook.httpapi.handlers.read_context import ReadContext
from wirebook.httpapi.handlers.settings import Settings, read_settings
from wirebook.httpapi.handlers.write_requests import SETTINGS, changes_settings, flags_after_write, parse_write
from wirebook.httpapi.http.messages import JSON, ApiRequest, ApiResponse, read_json
from wirebook.problems.xregistry import refused
from wirebook.storage.session import Session, StoredSettings
from wirebook.storage.store import OutboxEntry

CORRELATION: Final = "xRegistry-xregcorrelationid"
"""Response header with the correlation id that the change events of a request share."""


@dataclass(slots=True)
class RegistryWriter:
    """One write in its transaction. `fetch` returns the documents that its model includes."""

    session: Session
    settings: Settings
    server: ServerContext
    fetch: Fetch
    _has_new_model: bool = False
    _new_capabilities: tuple[str, ...] | None = None
    _model_changes: list[Change] = field(default_factory=list)

    @classmethod
    def for_request(cls, context: RequestContext) -> RegistryWriter:
        """Return the writer for a request."""
        fetch = context.request.includes or context.server.fetch
        return cls(context.session, context.settings, context.server, fetch)

    # -- entities ---------------------------------------------------------------------------------------------------

    def write_entity(self, request: ApiRequest, target: RequestTarget, flags: Flags) -> ApiResponse:
        """Handle PUT, PATCH, POST or DELETE of an entity or a collection."""
        write = parse_write(request, target, flags)
        changes, result = self._decide(write, flags, request.path)
        if changes_settings(target, request.method, write.metadata):
            flags = self._parse_flags(flags_after_write(request), target, request.method)
        correlation = self._store(changes)[1]
        response = ApiResponse(204)
        if request.method != "DELETE":
            with self.session.limited(self.server.limits.read_seconds) if request.query else nullcontext():
                response = self.render_result(request, target, flags, result)
        if correlation:
            response.headers[CORRELATION] = correlation
        return response

    def import_groups(self, groups: Groups, path: str) -> list[Change]:
        """Write imported Groups like a POST to the Registry, ignoring their epochs, and return the changes."""
        write = WriteRequest("POST", RequestTarget("registry", path), groups)
        changes, _ = self._decide(write, Flags(Inline(), ignore=frozenset({"epoch"})), path)
        return self._store(changes)[0]

    def set_lock(self, target: RequestTarget, *, is_on: bool) -> bool:
        """Make the Resource of a meta read-only for clients, or writable; return whether that changed anything."""
        snapshot = self.session.load(affected_entities("PATCH", target, {}, self.settings.model), self.settings.model)
        changes = ChangeSet(snapshot, self.server.now(), target.path)
        was_changed = set_lock(changes, target, is_on=is_on)
        self._store(changes)
        return was_changed

    def _decide(self, write: WriteRequest, flags: Flags, path: str) -> tuple[ChangeSet, WriteResult]:
        """Write the settings in a write, then load the entities that it affects and decide what changes."""
        affected = affected_entities(write.method, write.target, write.metadata, self.settings.model)
        snapshot = self.session.load(affected, self.settings.model)
        changes, compliance = ChangeSet(snapshot, self.server.now(), path, flags.ignore), None
        if changes_settings(write.target, write.method, write.metadata):
            changes, compliance = self._write_settings(changes, write, flags)
        check_written = compliance.check_written if compliance else None
        return changes, decide(changes, write, self._validator(), check_written)

    def _store(self, changes: ChangeSet) -> tuple[list[Change], str | None]:
        """Store the changes and their events, and return the changes and the correlation id of the events, if any."""
        events = changes_of(changes, model=self._has_new_model, capabilities=self._new_capabilities)
        events += self._model_changes
        entry = OutboxEntry(changes.now, self.server.new_id(), pack(events)) if events else None
        self.session.store(changes, entry)
        return events, entry.correlation if entry else None

    # -- settings in a write of the Registry ------------------------------------------------------------------------

    def _write_settings(
        self, changes: ChangeSet, write: WriteRequest, flags: Flags
    ) -> tuple[ChangeSet, Compliance | None]:
        """Write the capabilities and then the model of a Registry, before everything else in the request.

        The settings before the request determine what it may write. Return the change set for the rest of the request
        and, if the model changes, the checks for the entities that the rest writes.

        Raises: not_available, model_error
        """
        value = write.metadata
        names = [name for name in SETTINGS if name in value and name not in flags.ignore]
        for name in names:
            if not self.settings.is_mutable(name):
                raise refused("not_available", f"/{name}")
        if "capabilities" in names:
            self._change_capabilities(value["capabilities"], is_patch=write.method == "PATCH")
        compliance = None
        if "modelsource" in names:
            written = affected_entities(write.method, write.target, value, changes.model)
            compliance = self._change_model(value["modelsource"], changes, written)
            self._model_changes = changes_of(changes)
            self.session.store(changes)
            affected = affected_entities(write.method, write.target, value, self.settings.model)
            snapshot = self.session.load(affected, self.settings.model)
            changes = ChangeSet(replace(snapshot, registry=changes.registry), changes.now, changes.path, changes.ignore)
        self._check_version_modes()
        return changes, compliance

    def _change_capabilities(self, value: Any, *, is_patch: bool) -> None:
        """Change the capabilities; None restores those of a new registry."""
        current, offer = self.settings.capabilities, self.server.offer
        if value is None:
            new = initial_capabilities(offer)
        else:
            new = update_capabilities(dict(current), value, offer, patch=is_patch)
        self._new_capabilities = tuple(name for name, item in new.items() if current.get(name) != item)
        self._store_settings(
            StoredSettings(self.settings.model.full, self.settings.homes, self.settings.modelsource, new)
        )

    def _change_model(self, source: Any, changes: ChangeSet, written: AffectedEntities | None = None) -> Compliance:
        """Change the model and check all entities against it, except those that the request writes anyway (`written`).

        A `source` of None is a model without types.
        """
        source = {} if source is None else source
        read = read_model(source, self.fetch, tuple(self.settings.capabilities["versionmodes"]))
        new = preserve_homes(changes.model, read)
        compliance = change_model(changes, new.model, self._validator(), written)
        self._has_new_model = True
        self._store_settings(StoredSettings(new.model.full, new.homes, source, self.settings.capabilities))
        return compliance

    def _check_version_modes(self) -> None:
        """Check that the capabilities list the version modes of the model. Raises: model_error"""
        modes = {type_.versionmode for _, type_ in self.settings.model.resource_types()}
        if unlisted := modes - set(self.settings.capabilities["versionmodes"]):
            reason = f"the versionmode '{min(unlisted)}' is in use; the capability 'versionmodes' must list it"
            raise refused("model_error", "/model", error_detail=reason)

    def _store_settings(self, stored: StoredSettings) -> None:
        self.session.store_settings(stored)
        self.settings = read_settings(self.session)

    def _parse_flags(self, query: Query, target: RequestTarget, method: str) -> Flags:
        """Return the flags of a request, parsed by the current model and capabilities, which it may have changed."""
        return parse_flags(query, target, method, self.settings.model, self.settings.capabilities)

    def _validator(self) -> EnabledValidator:
        return EnabledValidator(self.server.validator, self.settings.capabilities)

    # -- settings on their own paths --------------------------------------------------------------------------------

    def put_capabilities(self, request: ApiRequest) -> ApiResponse:
        """Handle PUT or PATCH of /capabilities."""
        value = read_json(request)
        changes = self._registry_changes(request.path)
        self._change_capabilities({} if value is None else value, is_patch=request.method == "PATCH")
        self._check_version_modes()
        self._parse_flags(request.query, RequestTarget("settings", request.path), request.method)
        return self._settings_response(changes, self.settings.capabilities)

    def reset_capabilities(self) -> tuple[str, ...]:
        """Restore the capabilities of a new registry, and return the names of those that change."""
        changes = self._registry_changes("/capabilities")
        self._change_capabilities(None, is_patch=False)
        self._check_version_modes()
        if self._new_capabilities:
            self._settings_response(changes, self.settings.capabilities)
        return self._new_capabilities or ()

    def put_modelsource(self, request: ApiRequest) -> ApiResponse:
        """Handle PUT of /modelsource."""
        value = read_json(request)
        changes = self._registry_changes(request.path)
        self._change_model(value, changes)
        self._parse_flags(request.query, RequestTarget("settings", request.path), request.method)
        return self._settings_response(changes, self.settings.modelsource)

    def _registry_changes(self, path: str) -> ChangeSet:
        """Return a change set with the Registry alone."""
        return ChangeSet(self.session.load(AffectedEntities(), self.settings.model), self.server.now(), path)

    def _settings_response(self, changes: ChangeSet, value: Any) -> ApiResponse:
        """Store the change set with a new epoch of the Registry, and return the response with the new settings."""
        changes.registry.mark_updated(changes.now)
        correlation = self._store(changes)[1]
        response = ApiResponse(200, format_json(value).encode(), {"Content-Type": JSON})
        response.headers[CORRELATION] = correlation or ""
        return response

    # -- responses --------------------------------------------------------------------------------------------------

    def render_result(
        self, request: ApiRequest, target: RequestTarget, flags: Flags, result: WriteResult
    ) -> ApiResponse:
        """Return the response to a write: the entity as a GET returns it, or the written entities of a collection."""
        context = ReadContext(self.session, self.settings, request.base, flags, limits=self.server.limits)
        if result.ids is not None:
            return self._render_collection(context, target, result.ids)
        entity = replace(target, kind="version", version=result.version) if result.version else target
        response = read_target(context, entity)
        if result.created and response.status in (200, 303):
            response.status = 201
            response.headers["Location"] = self._url(request, entity, entity.xid)
        if result.new_version and "Content-Location" not in response.headers:
            version_xid = f"{target.resource_xid}/versions/{result.new_version}"
            response.headers["Content-Location"] = self._url(request, target, version_xid)
        return response

    def _url(self, request: ApiRequest, target: RequestTarget, xid: str) -> str:
        """Return the URL of a Resource or a Version, or that of its metadata if the request addresses the metadata."""
        has_details = target.type is not None and target.type.hasdocument and target.kind in ("resource", "version")
        return f"{request.base}{xid}{DETAILS if has_details and target.details else ''}"

    def _render_collection(self, context: ReadContext, target: RequestTarget, ids: Any) -> ApiResponse:
        """Return the written entities of the target collection, or of several collections (`ids` by plural name)."""
        if not isinstance(ids, Mapping):
            return context.json_response(target, CollectionListing(context, target).render_members(ids))
        context.root = target
        kind = "groups" if target.kind == "registry" else "resources"
        pieces: list[str] = []
        for plural, collection_ids in ids.items():
            if kind == "groups":
                group_type, type_ = self.settings.model.groups[plural], None
            else:
                assert target.group_type
                group_type, type_ = target.group_type, target.group_type.resources[plural]
            listing = CollectionListing(context, RequestTarget(kind, target.path, group_type, target.group, type_))
            pieces += ["," if pieces else "{", json.dumps(plural), ":", *listing.render_members(collection_ids)]
        return context.json_response(target, [*pieces, "}"] if pieces else ["{}"])
