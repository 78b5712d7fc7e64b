"""The outbox: events reach a sink in order and at least once, and no request waits for it.

Spec: docs/registry.md#events.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import chain, repeat
from typing import Any

import pytest
from sqlalchemy import func, select, text

from tests.httpapi.conftest import BASE, Client, serve
from tests.httpapi.postgres import new_database
from tests.httpapi.sinks import Sink, sink
from wirebook.httpapi import outbox
from wirebook.httpapi.handlers.events import EventPosition, read_events
from wirebook.httpapi.outbox import EventSender, EventTrimmer, backoff, origin_of, run_in_background, sink_id
from wirebook.httpapi.service import Service
from wirebook.storage.database import Database, open_database
from wirebook.storage.tables import EVENTS

FAST = 0.02


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits, for tests."""
    monkeypatch.setattr(outbox, "FIRST_BACKOFF", FAST)
    monkeypatch.setattr(outbox, "MAX_BACKOFF", 4 * FAST)
    monkeypatch.setattr(outbox, "POLL_SECONDS", FAST)


@pytest.fixture
def target() -> Iterator[Sink]:
    with sink() as server:
        yield server


def sending(registry: Client, url: str, seen: list[str] | None = None) -> AbstractContextManager[None]:
    """Sends events to a sink while the context is open."""
    sender = EventSender(registry.service, url, BASE, (seen if seen is not None else []).append)
    sender.register()
    return run_in_background(sender.run)


def write(registry: Client, *ids: str) -> None:
    for id_ in ids:
        assert registry.put(f"/dirs/{id_}", {}).status < 300


def all_events(database: Database) -> list[Any]:
    """The events of the stream from its beginning."""
    events: list[Any] = []
    after, before = EventPosition(0), None
    while after != before:
        before = after
        for after, event in read_events(database, before, BASE):  # noqa: B007
            events.append(event)
    return events


def test_new_sink_receives_later_events_in_order(registry: Client, target: Sink) -> None:
    write(registry, "before")
    already = len(all_events(registry.database))
    with sending(registry, target.url):
        write(registry, *(f"d{place}" for place in range(60)))
        expected = all_events(registry.database)[already:]
        assert target.wait_for(len(expected)) == expected
    assert {header["content-type"] for header in target.headers} == {"application/cloudevents+json; charset=utf-8"}
    assert set(target.paths) == {"/take"}


@pytest.mark.parametrize("refusal", [0, 301, 400, 404, 410, 429, 500, 503])
def test_rejected_event_is_sent_again(registry: Client, target: Sink, refusal: int) -> None:
    answers = chain([204, refusal, refusal, 204, refusal], repeat(200))
    target.status = lambda: next(answers)
    seen: list[str] = []
    with sending(registry, target.url, seen):
        write(registry, "a", "b")
        expected = all_events(registry.database)
        assert target.wait_for(len(expected)) == expected
    assert len(target.offered) == len(expected) + 3
    assert (seen.count("refused"), seen.count("accepted")) == (3, len(expected))


def test_unreachable_sink_receives_events_later(registry: Client) -> None:
    gone = Sink()
    gone.server.server_close()
    with sending(registry, gone.url):
        write(registry, "a")
        time.sleep(5 * FAST)
        back = Sink(gone.port)
        with sink_at(back):
            back.wait_for(len(all_events(registry.database)))


def sink_at(server: Sink) -> AbstractContextManager[None]:
    return run_in_background(lambda ending: _serve(server, ending.is_set))


def _serve(receiver: Sink, is_over: Callable[[], bool]) -> None:
    receiver.server.timeout = 0.05
    while not is_over():
        receiver.server.handle_request()
    receiver.server.server_close()


def test_sender_resumes_after_a_restart(registry: Client, target: Sink) -> None:
    with sending(registry, target.url):
        write(registry, "a")
        target.wait_for(2)
    write(registry, "b")
    with sending(registry, target.url):
        assert target.wait_for(4) == all_events(registry.database)
    with sending(registry, f"{target.url}?key=another"):  # the same sink
        write(registry, "c")
        assert target.wait_for(6) == all_events(registry.database)


def test_sender_resumes_within_the_events_of_one_request(registry: Client, target: Sink) -> None:
    answers = chain(repeat(204, 3), repeat(500))
    target.status = lambda: next(answers)
    with sending(registry, target.url):
        registry.post("/", {"dirs": {"a": {}, "b": {}, "c": {}, "d": {}}})
        target.wait_for(3)
    target.status = lambda: 204
    with sending(registry, target.url):
        assert target.wait_for(5) == all_events(registry.database)


def test_sinks_have_separate_positions(registry: Client, target: Sink) -> None:
    with sending(registry, target.url), sending(registry, f"{target.url}/other"):
        write(registry, "a")
        target.wait_for(4)
    assert sorted(target.ids) == sorted(2 * [event["id"] for event in all_events(registry.database)])
    assert sorted(target.paths) == ["/take"] * 2 + ["/take/other"] * 2


def test_requests_do_not_wait_for_a_sink(registry: Client, target: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "RESPONSE_SECONDS", 0.2)
    target.status = lambda: time.sleep(5) or 204
    with sending(registry, target.url):
        write(registry, "first")
        while not target.offered:
            time.sleep(FAST)
        started = time.monotonic()
        write(registry, *(f"d{place}" for place in range(20)))
        assert time.monotonic() - started < 2.5  # the sink would have taken 100 seconds
        assert not target.events


def test_sink_down_for_long_receives_the_kept_events(
    registry: Client, target: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    target.status = lambda: 500
    with sending(registry, target.url):
        write(registry, "a", "b")
        while not target.offered:
            time.sleep(FAST)
    registry.service.write(lambda session: session.outbox.trim("9999-01-01T00:00:00Z", 1))
    target.status = lambda: 204
    with sending(registry, target.url):
        assert [event["subject"] for event in target.wait_for(2)] == ["/", "/dirs/b"]
    assert "misses events: it has those up to 0, and events up to 1 are no longer kept" in caplog.text


def test_old_events_are_deleted(registry: Client) -> None:
    write(registry, "a", "b")
    with registry.database.transaction() as connection:
        connection.execute(text("UPDATE events SET time = '2020-01-01T00:00:00.000000000' WHERE key < 2"))
    with run_in_background(EventTrimmer(registry.service, 60).run):
        time.sleep(5 * FAST)
        assert count(registry.database) == 2, "not before their time"
    with run_in_background(EventTrimmer(registry.service, FAST * 4).run):
        until = time.monotonic() + 20
        while count(registry.database) > 0 and time.monotonic() < until:
            time.sleep(FAST)
    assert count(registry.database) == 0


def count(database: Database) -> int:
    with database.transaction() as connection:
        return int(connection.execute(select(func.count()).select_from(EVENTS)).scalar_one())


def test_trimming_uses_several_transactions(registry: Client) -> None:
    write(registry, *"abcde")
    trimmed = [registry.service.write(lambda session: session.outbox.trim("9999-01-01T00:00:00Z", 2)) for _ in range(4)]
    assert trimmed == [2, 2, 1, 0]


def test_sink_position_never_decreases(registry: Client) -> None:
    def positions(*moves: tuple[int, int]) -> list[tuple[int, int]]:
        stored = []
        for move in moves:
            registry.service.write(lambda session, move=move: session.outbox.advance("s", move))  # type: ignore[misc]
            with registry.database.reading() as session:
                stored.append(session.outbox.position("s"))
        return stored

    registry.service.write(lambda session: session.outbox.begin("s", (5, 2)))
    registry.service.write(lambda session: session.outbox.begin("s", (9, 9)))
    assert positions((5, 1), (4, 7), (5, 3), (6, 0), (5, 9)) == [(5, 2), (5, 2), (5, 3), (6, 0), (6, 0)]


def test_one_server_at_a_time_sends_to_a_sink(postgresql: str, target: Sink) -> None:
    """Each event is sent once and in order by two servers; when one stops, the other continues."""
    address = new_database(postgresql, "turns")
    first, second = open_database(address), open_database(address)
    registry = serve(first, {"groups": {"dirs": {"singular": "dir"}}})
    other = Client(Service(second, registry.service.context), second)
    with sending(other, target.url):
        with sending(registry, target.url):
            for place in range(20):
                write((registry, other)[place % 2], f"d{place}")
            assert target.wait_for(40) == all_events(first)
        write(registry, "later")
        assert target.wait_for(42) == all_events(first)
    assert len(target.offered) == 42
    first.close()
    second.close()


def test_sink_secrets_are_not_logged_or_stored(
    registry: Client, target: Sink, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="wirebook")
    target.status = lambda: 500
    with sending(registry, f"http://user:hush1@127.0.0.1:{target.port}/hush2?key=hush3#hush4"):
        write(registry, "a")
        while len(target.offered) < 2:
            time.sleep(FAST)
    assert target.headers[0]["authorization"].startswith("Basic ")
    assert (
        f"the sink http://127.0.0.1:{target.port} did not accept an event: its response has status 500" in caplog.text
    )
    with registry.database.transaction() as connection:
        stored = connection.execute(text("SELECT name FROM sinks")).scalars().all()
    assert "hush" not in caplog.text + "".join(stored)


@pytest.mark.parametrize("url", ["http://h/p", "http://u:p@h/p", "http://h/p?q", "http://h/p#f"])
def test_sink_id_does_not_depend_on_keys(url: str) -> None:
    assert sink_id(url) == sink_id("http://h/p")
    assert origin_of(url) == "http://h"


def test_sink_id_depends_on_the_path() -> None:
    assert len({sink_id(url) for url in ("http://h/p", "http://h/q", "https://h/p", "http://h:81/p")}) == 4


def test_backoff_grows_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert [backoff(times) for times in (1, 2, 3, 7, 8, 9, 10_000)] == [0.5, 1, 2, 32, 60, 60, 60]
