"""The outbox: sends change events to a sink in order, and deletes old events.

Both run in their own threads, and requests never wait for them. An event is sent again until the sink accepts it, then
the next event is sent. A sink receives each event at least once, unless the event is too old and deleted first. After a
crash, a sink receives events again that it accepted just before.

Spec: core/events.md; cloudevents http-protocol-binding#structured-content-mode; docs/registry.md#events.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from wirebook.httpapi.handlers.events import EventPosition, read_events
from wirebook.httpapi.logs import describe
from wirebook.httpapi.service import Service
from wirebook.storage.database import Leadership
from wirebook.storage.outages import OUTAGES

if TYPE_CHECKING:
    import httpx

LOG: Final = logging.getLogger("wirebook.events")
STRUCTURED: Final = {"Content-Type": "application/cloudevents+json; charset=utf-8", "User-Agent": "wirebook"}
RESPONSE_SECONDS: Final = 10
"""Seconds that a sink may take to connect, to read and to send each part of a response."""

POLL_SECONDS: Final = 0.5
"""Seconds between two polls for new events, or for the leadership of this server."""

SAVE_SECONDS: Final = 1.0
"""Seconds after which no further event is sent before the position of the sink is stored."""

FIRST_BACKOFF, MAX_BACKOFF = 0.5, 60.0
"""Seconds before a rejected event is sent again, at first and at most."""

TRIM_ROWS: Final = 1000
"""Maximum number of rows that one transaction deletes."""

RESPONSE_CHUNKS: Final = 8
"""Chunks of 4 KiB after which the rest of a response is not read."""


class EventNotAccepted(Exception):
    """The sink did not accept an event."""


class EventSender:
    """Sends events to the sink at `url` while this server is the leader for the sink.

    `base` is the URL of the Registry, which is the source of the events. `observe` is called with ``accepted`` or
    ``refused`` for each event.
    """

    def __init__(self, service: Service, url: str, base: str, observe: Callable[[str], None]) -> None:
        self._service, self._url, self._base, self._observe = service, url, base, observe
        self._origin, self._sink_id = origin_of(url), sink_id(url)
        self._rejections = 0

    def register(self) -> None:
        """Store the sink if it is new. It then receives the events from now on."""
        self._service.write(
            lambda session: session.outbox.begin(self._sink_id, EventPosition(session.outbox.range()[1]))
        )

    def run(self, stopping: threading.Event) -> None:
        """Send events until `stopping` is set. While the sink rejects an event, another server may become leader."""
        import httpx  # noqa: PLC0415 (most servers have no sink, and importing it takes long)

        with httpx.Client(timeout=RESPONSE_SECONDS) as client:
            while not stopping.is_set():
                try:
                    with self._service.database.leadership(self._sink_id) as turn:
                        if turn:
                            self._send_during(turn, client, stopping)
                    stopping.wait(POLL_SECONDS)
                except EventNotAccepted as error:
                    self._rejections += 1
                    seconds = backoff(self._rejections)
                    LOG.warning(
                        "the sink %s did not accept an event: %s; retrying in %g s", self._origin, error, seconds
                    )
                    stopping.wait(seconds)

    def _send_during(self, turn: Leadership, client: httpx.Client, stopping: threading.Event) -> None:
        """Send events while this server is the leader. Raises: EventNotAccepted"""
        while not stopping.is_set():
            turn.check()
            if not self._send_batch(client, stopping):
                stopping.wait(POLL_SECONDS)

    def _send_batch(self, client: httpx.Client, stopping: threading.Event) -> bool:
        """Send the next events, store the position of the sink, and return whether the sink accepted any event.

        Raises: EventNotAccepted
        """
        start = position = self._position()
        deadline = time.monotonic() + SAVE_SECONDS
        try:
            for after, event in read_events(self._service.database, start, self._base):
                if stopping.is_set() or time.monotonic() > deadline:
                    break
                self._send(client, event)
                position = after
        finally:
            if position != start:
                self._service.write(lambda session: session.outbox.advance(self._sink_id, position))
        return position != start

    def _position(self) -> EventPosition:
        with self._service.database.reading() as session:
            position = EventPosition(*session.outbox.position(self._sink_id))
            trimmed, _ = session.outbox.range()
        if trimmed > position.number:
            LOG.error(
                "the sink %s misses events: it has those up to %s, and events up to %d are no longer kept",
                self._origin,
                position,
                trimmed,
            )
            return EventPosition(trimmed)
        return position

    def _send(self, client: httpx.Client, event: Mapping[str, Any]) -> None:
        """Raises: EventNotAccepted"""
        import httpx  # noqa: PLC0415

        content = json.dumps(event, ensure_ascii=False).encode()
        try:
            with client.stream("POST", self._url, content=content, headers=STRUCTURED) as response:
                for number, _ in enumerate(response.iter_raw(4096), 1):  # a connection is reused only if it is read
                    if number == RESPONSE_CHUNKS:
                        break
        except httpx.HTTPError as error:
            self._observe("refused")
            raise EventNotAccepted(type(error).__name__) from error
        self._observe("accepted" if response.is_success else "refused")
        if not response.is_success:
            raise EventNotAccepted(f"its response has status {response.status_code}")
        self._rejections = 0


class EventTrimmer:
    """Deletes events that are older than `keep_seconds`."""

    def __init__(self, service: Service, keep_seconds: float) -> None:
        self._service, self._keep_seconds = service, keep_seconds

    def run(self, stopping: threading.Event) -> None:
        """Delete old events until `stopping` is set."""
        while not stopping.wait(min(60, self._keep_seconds / 4)):
            before = (datetime.now(UTC) - timedelta(seconds=self._keep_seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
            while self._service.write(lambda session: session.outbox.trim(before, TRIM_ROWS)) == TRIM_ROWS:  # noqa: B023
                stopping.wait(0.01)


@contextmanager
def run_in_background(*loops: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run loops in their own threads, and restart a loop that fails.

    At the end, stop the loops and wait for them for a limited time.
    """
    stopping = threading.Event()
    threads = [threading.Thread(target=_restart, args=(loop, stopping), daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join(RESPONSE_SECONDS + POLL_SECONDS)


def _restart(loop: Callable[[threading.Event], None], stopping: threading.Event) -> None:
    while not stopping.is_set():
        try:
            loop(stopping)
        except OUTAGES:  # the database logs them
            stopping.wait(POLL_SECONDS)
        except Exception as error:
            LOG.warning("the outbox failed, retrying: %s", describe(error))
            stopping.wait(POLL_SECONDS)


def backoff(rejections: int) -> float:
    """Return the seconds to wait after this number of consecutive rejections."""
    return float(min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** min(rejections - 1, 30)))


def origin_of(url: str) -> str:
    """Return the scheme, host and port of a URL.

    Its other parts may be secrets: users, passwords, keys, unguessable paths.
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def sink_id(url: str) -> str:
    """Return the id under which the position of a sink is stored.

    It does not depend on passwords and keys in the URL. It is a digest because the path may be a secret.
    """
    return hashlib.sha256(f"{origin_of(url)}{urlsplit(url).path}".encode()).hexdigest()
