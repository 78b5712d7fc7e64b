"""The expected definition of a message: every definition is tried without the index, and the rank decides (D48)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from synthesis.messages import Message
from wirebook.bindings import Received, as_structured, read_events, read_record
from wirebook.catalog import Catalog
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.match import tolerated_faults
from wirebook.definitions.match.matcher import Match, match_metadata
from wirebook.definitions.match.selection import EndpointScope


@dataclass(frozen=True)
class Place:
    """What fits a message best.

    Shape: `best` are the XIDs of equal and highest rank; `fits`: is the message's own definition among those that fit
    at all; `bindings` are those of its own definition, None when `ambiguous` splits were possible.
    """

    best: frozenset[str]
    fits: bool


def places_of(catalog: Catalog, message: Message) -> list[Place]:
    """One for each message in the line."""
    read = read_events if message.is_event_file else read_record
    return [_place(catalog, received, message.definition) for received in read(message.line)]


def _place(catalog: Catalog, received: Received, own: str) -> Place:
    matches = list(_matches(catalog, received))
    best = max((match.rank for match in matches), default=None)
    winners = frozenset(
        match.definition.xid
        for match in matches
        if match.rank == best and tolerated_faults.tolerate(match.definition, received) is not None
    )
    return Place(winners, any(match.definition.xid == own for match in matches))


def _matches(catalog: Catalog, received: Received) -> Iterator[Match]:
    selector = catalog.selector
    scope = selector.scopes.get(received.endpoint) if received.endpoint else selector.default_scope
    if scope is None or not (
        received.kind in ("native", "cloudevent") or tolerated_faults.has_only_wrong_values(received)
    ):
        return
    if scope.protocol and received.wire is not None and scope.protocol != received.protocol:
        return
    structured = as_structured(received)
    yield from _of_view(catalog, MessageView(received), scope, events_only=False)
    if structured is not None:
        yield from _of_view(catalog, MessageView(structured, is_reinterpreted=True), scope, events_only=True)


def _of_view(catalog: Catalog, view: MessageView, scope: EndpointScope, *, events_only: bool) -> Iterator[Match]:
    for xid, definition in catalog.definitions.items():
        outside = scope.members is not None and xid not in scope.members
        if outside or definition.incomplete or (events_only and not definition.is_cloudevent):
            continue
        match = match_metadata(definition, view, endpoint=scope.constraints)
        if isinstance(match, Match):
            yield match
