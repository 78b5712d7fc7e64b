"""The stream of events: what changed, as server-sent events, from any point that is still kept.

Spec: core/events.md; docs/registry.md#events.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from wirebook.core.entities.events import cloudevents, unpack
from wirebook.core.entities.versions import instant_key
from wirebook.problems.xregistry import refused
from wirebook.storage.database import Database

PATH: Final = "/.wirebook/events"
BATCH: Final = 50
"""Interactions that are read at once; each may be large."""

LAST: Final = "last-event-id"
ID: Final = re.compile(r"(?P<number>[0-9]{1,18})(?:-(?P<place>[0-9]{1,9}))?")


class Position(NamedTuple):
    """A place in the outbox: behind the event `place` of the interaction `number`, or behind all of it."""

    number: int
    place: int = sys.maxsize

    @property
    def is_whole(self) -> bool:
        return self.place == sys.maxsize

    def __str__(self) -> str:
        """What a client says it has seen last: the number alone when it has seen all of an interaction."""
        return f"{self.number}" if self.is_whole else f"{self.number}-{self.place}"


def start_of(database: Database, last: str | None) -> Position:
    """Where a stream begins: after the last event that a client has seen, or after the last that there is.

    Raises: bad_request, for one that is no longer kept
    """
    with database.reading() as session:
        gone, newest = session.outbox.range()
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
    for position, event in entries(database, after, base):
        pieces.append(f"id: {position}\nevent: cloudevent\ndata: {json.dumps(event, ensure_ascii=False)}\n\n")
        after = position
    return after, "".join(pieces)


def entries(database: Database, after: Position, base: str) -> Iterator[tuple[Position, Mapping[str, Any]]]:
    """The next events, not all that there are, each with the position behind it. `base` is the URL of the Registry."""
    with database.reading() as session:
        rows = session.outbox.after(after.number if after.is_whole else after.number - 1, BATCH)
    for number, time, correlation, body in rows:
        events = list(cloudevents(unpack(body), base, correlation, _time(time)))
        start = after.place + 1 if number == after.number else 0
        for place, event in enumerate(events[start:], start):
            yield (Position(number) if place == len(events) - 1 else Position(number, place)), event


def _time(key: str) -> str:
    """A time as it was before it became a key."""
    whole, _, digits = key.partition(".")
    digits = digits.rstrip("0")
    text = f"{whole}{'.' if digits else ''}{digits}Z"
    assert instant_key(text) == key
    return text
