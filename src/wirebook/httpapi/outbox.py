"""The outbox: events are sent to a sink from it, in order, and forgotten when they are old.

Both happen beside the requests, which never wait for them. An event is sent until it is accepted, then the next: a sink
gets each at least once, and again those that it accepted just before a server died.

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

from wirebook.httpapi.handlers.feed import Position, entries
from wirebook.httpapi.logs import describe
from wirebook.httpapi.service import Service
from wirebook.storage.database import Leadership
from wirebook.storage.outages import OUTAGES

if TYPE_CHECKING:
    import httpx

LOG: Final = logging.getLogger("wirebook.events")
STRUCTURED: Final = {"Content-Type": "application/cloudevents+json; charset=utf-8", "User-Agent": "wirebook"}
TIMEOUT: Final = 10
"""Seconds within which a sink has to answer."""

POLL: Final = 0.5
"""Seconds between looks for new events, and for whether it is this server's turn."""

STORE: Final = 1.0
"""Seconds after which it is stored how far a sink is, at the latest."""

FIRST, LONGEST = 0.5, 60.0
"""Seconds until an event that was refused is sent again: at first, and at most."""

TRIMMED: Final = 1000
"""Rows that are forgotten in one transaction."""


class NotTaken(Exception):
    """A sink did not accept an event."""


class Sender:
    """Sends events to a sink, when it is this server's turn. `observe` is told ``accepted`` or ``refused`` of each.

    `base` is the URL of the Registry, the source of the events.
    """

    def __init__(self, service: Service, url: str, base: str, observe: Callable[[str], None]) -> None:
        self._service, self._url, self._base, self._observe = service, url, base, observe
        self._place, self._name = place_of(url), name_of(url)
        self._refusals = 0

    def begin(self) -> None:
        """A sink that is new gets what happens from now on."""
        self._service.write(lambda session: session.outbox.begin(self._name, Position(session.outbox.range()[1])))

    def run(self, ending: threading.Event) -> None:
        """Sends until `ending`. While a sink refuses, another server may have its turn."""
        import httpx  # noqa: PLC0415 (most servers have no sink, and it takes long to load)

        with httpx.Client(timeout=TIMEOUT) as client:
            while not ending.is_set():
                try:
                    with self._service.database.leadership(self._name) as turn:
                        if turn:
                            self._deliver(turn, client, ending)
                    ending.wait(POLL)
                except NotTaken as problem:
                    self._refusals += 1
                    LOG.warning("the sink %s did not take an event: %s", self._place, problem)
                    ending.wait(backoff(self._refusals))

    def _deliver(self, turn: Leadership, client: httpx.Client, ending: threading.Event) -> None:
        """Sends until `ending`. Raises: NotTaken"""
        while not ending.is_set():
            turn.check()
            if not self._send_some(client, ending):
                ending.wait(POLL)

    def _send_some(self, client: httpx.Client, ending: threading.Event) -> bool:
        """Sends what there is, for a while, and stores how far it came; says whether that is any further.

        Raises: NotTaken
        """
        start = sent = self._position()
        until = time.monotonic() + STORE
        try:
            for position, event in entries(self._service.database, start, self._base):
                if ending.is_set() or time.monotonic() > until:
                    break
                self._send(client, event)
                sent = position
        finally:
            if sent != start:
                self._service.write(lambda session: session.outbox.advance(self._name, sent))
        return sent != start

    def _position(self) -> Position:
        with self._service.database.reading() as session:
            position = Position(*session.outbox.position(self._name))
            gone, _ = session.outbox.range()
        if gone > position.number:
            LOG.error("events up to %d are no longer kept; the sink %s has them up to %s", gone, self._place, position)
            return Position(gone)
        return position

    def _send(self, client: httpx.Client, event: Mapping[str, Any]) -> None:
        """Raises: NotTaken"""
        import httpx  # noqa: PLC0415

        content = json.dumps(event, ensure_ascii=False).encode()
        try:
            with client.stream("POST", self._url, content=content, headers=STRUCTURED) as answer:
                _read_some(answer)
        except httpx.HTTPError as error:
            self._observe("refused")
            raise NotTaken(type(error).__name__) from error
        self._observe("accepted" if answer.is_success else "refused")
        if not answer.is_success:
            raise NotTaken(f"it answered {answer.status_code}")
        self._refusals = 0


def _read_some(answer: httpx.Response) -> None:
    """What an answer has, if it is short: its connection can be used again then."""
    for place, _ in enumerate(answer.iter_raw(4096)):
        if place == 8:
            return


class Trimmer:
    """Forgets events that are older than `keep` seconds."""

    def __init__(self, service: Service, keep: float) -> None:
        self._service, self._keep = service, keep

    def run(self, ending: threading.Event) -> None:
        while not ending.wait(min(60, self._keep / 4)):
            before = (datetime.now(UTC) - timedelta(seconds=self._keep)).strftime("%Y-%m-%dT%H:%M:%SZ")
            while self._service.write(lambda session: session.outbox.trim(before, TRIMMED)) == TRIMMED:  # noqa: B023
                ending.wait(0.01)


@contextmanager
def beside(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Runs works in threads of their own, anew when one fails, until the end; waits for them then, but not forever."""
    ending = threading.Event()
    threads = [threading.Thread(target=_keep_on, args=(work, ending), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join(TIMEOUT + POLL)


def _keep_on(work: Callable[[threading.Event], None], ending: threading.Event) -> None:
    while not ending.is_set():
        try:
            work(ending)
        except OUTAGES:  # which are logged once for all
            ending.wait(POLL)
        except Exception as error:
            LOG.warning("the outbox waits: %s", describe(error))
            ending.wait(POLL)


def backoff(refusals: int) -> float:
    """Seconds to wait after so many refusals."""
    return float(min(LONGEST, FIRST * 2 ** min(refusals - 1, 30)))


def place_of(url: str) -> str:
    """A URL without what may be a secret: users, passwords, keys, and paths that nobody should guess."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def name_of(url: str) -> str:
    """What a sink is known by, also when its password or key is another: a digest, as its path may be a secret."""
    return hashlib.sha256(f"{place_of(url)}{urlsplit(url).path}".encode()).hexdigest()
