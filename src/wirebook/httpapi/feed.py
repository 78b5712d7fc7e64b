"""The stream of events: what changed, as server-sent events, from any point that is still kept.

Spec: core/events.md; docs/registry.md#events.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from wirebook.core.events import cloudevents, unpack
from wirebook.core.versions import instant_key
from wirebook.problems.xregistry import refused
from wirebook.storage.database import Database

PATH: Final = "/.wirebook/events"
BATCH: Final = 500
LAST: Final = "last-event-id"
ID: Final = re.compile(r"(?P<number>[0-9]{1,18})(?:-(?P<place>[0-9]{1,9}))?")


class Position(NamedTuple):
    """A place in the outbox: behind the event `place` of the interaction `number`, or behind all of it."""

    number: int
    place: int = sys.maxsize

    @property
    def is_whole(self) -> bool:
        return self.place == sys.maxsize


def start_of(database: Database, last: str | None) -> Position:
    """Where a stream begins: after the last event that a client has seen, or after the last that there is.

    Raises: bad_request, for one that is no longer kept
    """
    with database.reading() as session:
        gone, newest = session.event_range()
    if last is None:
        return Position(newest)
    found = ID.fullmatch(last)
    if found is None or int(found["number"]) > newest:
        raise refused("bad_request", PATH, error_detail=f"'{last[:40]}' is no id of an event")
    position = Position(int(found["number"]), int(found["place"] or sys.maxsize))
    if position.number < gone + (not position.is_whole):
        why = f"events up to {gone} are no longer kept; begin again without Last-Event-ID, and read the registry"
        raise refused("bad_request", PATH, error_detail=why)
    return position


def next_events(database: Database, after: Position, base: str) -> tuple[Position, str]:
    """The next events as text for a stream, and where it is then."""
    pieces: list[str] = []
    for number, events in interactions(database, after, base):
        start = after.place + 1 if number == after.number else 0
        pieces += (_format(_id(number, place, len(events)), events[place]) for place in range(start, len(events)))
        after = Position(number)
    return after, "".join(pieces)


def interactions(
    database: Database, after: Position, base: str, limit: int = BATCH
) -> Iterator[tuple[int, list[Mapping[str, Any]]]]:
    """The next interactions that are not behind a position: their numbers, and all of their events."""
    with database.reading() as session:
        rows = session.events_after(after.number if after.is_whole else after.number - 1, limit)
    for number, time, correlation, body in rows:
        yield number, list(cloudevents(unpack(body), base, correlation, _time(time)))


def _id(number: int, place: int, count: int) -> str:
    """What a client says it has seen last: that number alone when it has seen all of an interaction."""
    return f"{number}" if place == count - 1 else f"{number}-{place}"


def _format(id_: str, event: object) -> str:
    return f"id: {id_}\nevent: cloudevent\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"


def _time(key: str) -> str:
    """A time as it was before it became a key."""
    whole, _, digits = key.partition(".")
    digits = digits.rstrip("0")
    text = f"{whole}{'.' if digits else ''}{digits}Z"
    assert instant_key(text) == key
    return text
