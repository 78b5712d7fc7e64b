"""The event stream: changes of the registry as server-sent events, from any position that is still kept.

Starlette does not support server-sent events, so the stream is rendered here.

Spec: core/events.md; docs/registry.md#events.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from starlette.concurrency import run_in_threadpool

from wirebook.core.entities.events import cloudevents, unpack
from wirebook.core.entities.versions import instant_key
from wirebook.httpapi.handlers.health import ServerState
from wirebook.httpapi.http.messages import ApiRequest, ApiResponse
from wirebook.problems.xregistry import refused
from wirebook.storage.database import Database
from wirebook.storage.outages import Unavailable

EVENTS_PATH: Final = "/.wirebook/events"
BATCH: Final = 50
"""Outbox entries per read. Each has the events of one request, and may be large."""

POLL_SECONDS: Final = 0.5
"""Seconds between two polls for new events."""

LAST_EVENT_ID: Final = "last-event-id"
EVENT_ID: Final = re.compile(r"(?P<number>[0-9]{1,18})(?:-(?P<event>[0-9]{1,9}))?")


class EventPosition(NamedTuple):
    """A position in the outbox: after the event number `event` of entry `number`, or after the whole entry."""

    number: int
    event: int = sys.maxsize

    @property
    def is_whole(self) -> bool:
        """Whether the position is after all events of its entry."""
        return self.event == sys.maxsize

    def __str__(self) -> str:
        """The id of the event before the position."""
        return f"{self.number}" if self.is_whole else f"{self.number}-{self.event}"


async def stream_events(server: ServerState, request: ApiRequest) -> ApiResponse:
    """Handle GET of the event stream, which ends when the client disconnects or the server stops.

    Raises: bad_request, database_unavailable
    """
    try:
        position = await run_in_threadpool(start_position, server.database, request.header(LAST_EVENT_ID))
    except Unavailable:
        raise refused("database_unavailable", EVENTS_PATH) from None
    headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "Vary": "Host, Origin"}
    return ApiResponse(200, _event_chunks(server, position, request.base), headers)


async def _event_chunks(server: ServerState, position: EventPosition, base: str) -> AsyncIterator[bytes]:
    while not server.stopping.is_set():
        text = ""
        with suppress(Unavailable):  # the stream continues when the database is back
            position, text = await run_in_threadpool(next_events, server.database, position, base)
        yield text.encode() or b": nothing new\n\n"
        if not text:
            with suppress(TimeoutError):
                await asyncio.wait_for(server.stopping.wait(), POLL_SECONDS)


def start_position(database: Database, last_event_id: str | None) -> EventPosition:
    """Return the position after the last event that a client received; without one, after the newest event.

    Raises: bad_request, if the id is not valid or its events are no longer kept
    """
    with database.reading() as session:
        oldest_kept, newest = session.outbox.range()
    if last_event_id is None:
        return EventPosition(newest)
    match = EVENT_ID.fullmatch(last_event_id)
    if match is None or int(match["number"]) > newest:
        reason = f"the Last-Event-ID '{last_event_id[:40]}' is not the id of an event"
        raise refused("bad_request", EVENTS_PATH, error_detail=reason)
    position = EventPosition(int(match["number"]), int(match["event"] or sys.maxsize))
    if position.number < oldest_kept + (not position.is_whole):
        reason = (
            f"events up to {oldest_kept} are no longer kept; connect without Last-Event-ID and read the registry again"
        )
        raise refused("bad_request", EVENTS_PATH, error_detail=reason)
    return position


def next_events(database: Database, position: EventPosition, base: str) -> tuple[EventPosition, str]:
    """Return the position after the next events, and these events in the format of server-sent events."""
    pieces: list[str] = []
    for after, event in read_events(database, position, base):
        pieces.append(f"id: {after}\nevent: cloudevent\ndata: {json.dumps(event, ensure_ascii=False)}\n\n")
        position = after
    return position, "".join(pieces)


def read_events(
    database: Database, position: EventPosition, base: str
) -> Iterator[tuple[EventPosition, Mapping[str, Any]]]:
    """Yield the events of up to a batch of outbox entries after a position, each with the position after it.

    `base` is the URL of the Registry.
    """
    with database.reading() as session:
        rows = session.outbox.after(position.number if position.is_whole else position.number - 1, BATCH)
    for number, time, correlation, body in rows:
        events = list(cloudevents(unpack(body), base, correlation, _timestamp(time)))
        start = position.event + 1 if number == position.number else 0
        for index, event in enumerate(events[start:], start):
            yield (EventPosition(number) if index == len(events) - 1 else EventPosition(number, index)), event


def _timestamp(key: str) -> str:
    """Return the timestamp from which `instant_key` made a key."""
    whole, _, digits = key.partition(".")
    digits = digits.rstrip("0")
    text = f"{whole}{'.' if digits else ''}{digits}Z"
    assert instant_key(text) == key
    return text
