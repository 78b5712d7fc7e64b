"""The stream of events: what changed, as server-sent events, from any point that is still kept.

Spec: core/events.md; docs/registry.md#events.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from wirebook.core.events import cloudevents, unpack
from wirebook.core.versions import instant_key
from wirebook.problems.xregistry import refused
from wirebook.storage.database import Database

PATH: Final = "/.wirebook/events"
BATCH: Final = 500
LAST: Final = "last-event-id"


def start_of(database: Database, last: str | None) -> int:
    """The number that a stream begins after: that of the last event a client has seen, or of the last there is.

    Raises: bad_request, for one that is no longer kept
    """
    with database.reading() as session:
        gone, newest = session.event_range()
    if last is None:
        return newest
    number = last.partition("-")[0]
    if not (number.isascii() and number.isdigit() and int(number[:20]) <= newest):
        raise refused("bad_request", PATH, error_detail=f"'{last[:40]}' is no id of an event")
    if int(number) < gone:
        why = f"events up to {gone} are no longer kept; begin again without Last-Event-ID, and read the registry"
        raise refused("bad_request", PATH, error_detail=why)
    return int(number)


def next_events(database: Database, after: int, base: str) -> tuple[int, str]:
    """The next events as text for a stream, and the number they go up to."""
    with database.reading() as session:
        rows = session.events_after(after, BATCH)
    pieces: list[str] = []
    for number, time, correlation, body in rows:
        pieces += _format(number, cloudevents(unpack(body), base, correlation, _time(time)))
        after = number
    return after, "".join(pieces)


def _format(number: int, events: Iterator[object]) -> Iterator[str]:
    for event in events:
        yield f"id: {number}\nevent: cloudevent\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"


def _time(key: str) -> str:
    """A time as it was before it became a key."""
    whole, _, digits = key.partition(".")
    digits = digits.rstrip("0")
    text = f"{whole}{'.' if digits else ''}{digits}Z"
    assert instant_key(text) == key
    return text
