"""Concurrent writers on real servers: no update is lost, no epoch is used twice, no event is missing.

One server on SQLite; two on one PostgreSQL, where writers take turns at them.

Spec: docs/registry.md#databases; docs/registry.md#events.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.httpapi.postgres import new_database
from tests.httpapi.servers import Follower, Server, serving
from tests.httpapi.sinks import sink

WRITERS = 8
MODEL: dict[str, Any] = {
    "attributes": {"*": {"type": "any"}},
    "groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", "hasdocument": False}}}},
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    folder = tmp_path_factory.mktemp("concurrency")
    if request.param == "sqlite":
        db, count = f"sqlite:///{folder}/registry.db", 1
    else:
        db, count = new_database(request.getfixturevalue("postgresql"), "concurrency"), 2
    with serving(db, folder / "log", "--model", "empty", count=count) as running:
        with running[0].client() as client:
            assert client.put("/modelsource", json=MODEL).status_code == 200
        yield running
        assert "Traceback" not in (folder / "log").read_text()


def together(servers: list[Server], work: Callable[[httpx.Client, int], list[httpx.Response]]) -> list[httpx.Response]:
    """The responses to all writers. `work` is given a client of the writer's server and the writer's number."""

    def run(number: int) -> list[httpx.Response]:
        with servers[number % len(servers)].client() as client:
            return work(client, number)

    with ThreadPoolExecutor(WRITERS) as pool:
        answers = [answer for batch in pool.map(run, range(WRITERS)) for answer in batch]
    assert not [answer.text for answer in answers if answer.status_code >= 500]
    return answers


def test_concurrent_updates_of_one_entity_are_serialised(servers: list[Server]) -> None:
    path, times = "/dirs/one/files/f/versions/v", 15
    with servers[0].client() as client:
        assert client.put(path, json={}).json()["epoch"] == 1
    answers = together(servers, lambda client, n: [client.patch(path, json={"name": f"{n}"}) for _ in range(times)])
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(answer.json()["epoch"] for answer in answers) == list(range(2, 2 + WRITERS * times))
    last = max(answers, key=lambda answer: int(answer.json()["epoch"]))
    with servers[-1].client() as client:
        assert {**client.get(path).json(), "self": ""} == {**last.json(), "self": ""}


def test_stale_epoch_prevents_a_lost_update(servers: list[Server]) -> None:
    path, times = "/dirs/counted", 10
    with servers[0].client() as client:
        client.put(path, json={"labels": {"count": "0"}})

    def add(client: httpx.Client) -> httpx.Response:
        seen = client.get(path).json()
        count = int(seen["labels"]["count"]) + 1
        return client.patch(path, json={"epoch": seen["epoch"], "labels": {"count": str(count)}})

    answers = together(servers, lambda client, _: [add(client) for _ in range(times)])
    won = [answer for answer in answers if answer.status_code == 200]
    lost = [answer for answer in answers if answer.status_code != 200]
    assert {answer.json()["type"].rpartition("#")[2] for answer in lost} <= {"mismatched_epoch"}
    with servers[-1].client() as client:
        assert client.get(path).json()["labels"]["count"] == str(len(won))
        assert client.get(path).json()["epoch"] == 1 + len(won)


def test_entity_created_concurrently_is_created_once(servers: list[Server]) -> None:
    ids = [f"r{place}" for place in range(12)]
    answers = together(servers, lambda client, _: [client.put(f"/dirs/made/files/{id_}", json={}) for id_ in ids])
    created = Counter(answer.json()["xid"] for answer in answers if answer.status_code == 201)
    assert created == {f"/dirs/made/files/{id_}": 1 for id_ in ids}
    assert {answer.status_code for answer in answers} == {200, 201}
    with servers[-1].client() as client:
        group = client.get("/dirs/made").json()
        assert (group["filescount"], group["epoch"]) == (len(ids), len(ids))
        assert {file["epoch"] for file in client.get("/dirs/made/files").json().values()} == {WRITERS}


def test_concurrent_automatic_version_ids_are_distinct(servers: list[Server]) -> None:
    path = "/dirs/chosen/files/f"
    answers = together(servers, lambda client, _: [client.post(path, json={}) for _ in range(8)])
    ids = sorted(int(answer.json()["versionid"]) for answer in answers)
    assert ids == list(range(1, 1 + WRITERS * 8))
    with servers[-1].client() as client:
        resource = client.get(f"{path}?inline=versions").json()
    assert [version["isdefault"] for version in resource["versions"].values()].count(True) == 1
    assert resource["versionscount"] == len(ids)
    ancestors = [int(version["ancestorid"]) for version in resource["versions"].values()]
    assert sorted(ancestors) == [1, *range(1, len(ids))], "each Version follows the one before it, the first itself"


def test_concurrent_mixed_requests_match_their_events(servers: list[Server]) -> None:
    """Entities, the model and capabilities change concurrently; both event streams contain all changes."""
    followers = [Follower(server.base) for server in (servers * 2)[:2]]
    assert all(follower.is_open.wait(30) for follower in followers)

    def work(client: httpx.Client, number: int) -> list[httpx.Response]:
        if number == 0:
            return [client.put("/modelsource", json=_model(place)) for place in range(6)]
        if number == 1:
            return [client.patch("/capabilities", json={"shortself": place % 2 == 0}) for place in range(6)]
        return [answer for place in range(8) for answer in _churn(client, number, place)]

    answers = together(servers, work)
    allowed = {200, 201, 204, 400, 404}
    assert {answer.status_code for answer in answers} <= allowed, Counter(a.status_code for a in answers)
    done = {answer.headers["xregistry-xregcorrelationid"] for answer in answers if answer.status_code < 300}
    _wait(lambda: all({event["xregcorrelationid"] for event in f.events} >= done for f in followers))
    _wait(lambda: len({len(follower.events) for follower in followers}) == 1)  # the last request's come one by one
    for follower in followers:
        ids = [event["id"] for event in follower.events]
        assert len(ids) == len(set(ids))
        assert {event["xregcorrelationid"] for event in follower.events} == done
    first, second = ([event["id"] for event in follower.events] for follower in followers)
    assert first == second
    with servers[-1].client() as client:
        _compare(client, followers[0].events)


def _model(place: int) -> dict[str, Any]:
    files = {"singular": "file", "hasdocument": False, "attributes": {f"x{place}": {"type": "string"}}}
    return MODEL | {"groups": {"dirs": {"singular": "dir", "resources": {"files": files}}}}


def _churn(client: httpx.Client, number: int, place: int) -> Iterator[httpx.Response]:
    """Writers of even numbers share a Group, which comes and goes; the others have one each."""
    group = f"/dirs/churn{number if number % 2 else ''}"
    nested = {"files": {f"a{place}": {"name": f"{number}"}, "b": {"versions": {f"v{number}-{place}": {}}}}}
    yield client.put(group, json=nested)
    yield client.patch(f"{group}/files/b", json={"name": f"{number}.{place}"})
    yield client.post(f"{group}/files/b", json={})
    yield client.delete(f"{group}/files/a{place}")
    if place % 3 == number % 3:
        yield client.delete(group)


def _compare(client: httpx.Client, events: list[dict[str, Any]]) -> None:
    """The entities that the events create and delete are those that exist."""
    there: set[str] = set()
    for event in events:
        entity, action = event["type"].split(".")[-2:]
        if entity in ("group", "resource", "version"):
            if action == "created":
                assert event["subject"] not in there, event
                there.add(event["subject"])
            elif action == "deleted":
                there.remove(event["subject"])
            else:
                assert event["subject"] in there, event
    groups = client.get("/dirs?inline=files.versions").json()
    xids = {
        xid for group in groups.values() if group["dirid"].startswith("churn") for xid in [group["xid"], *_below(group)]
    }
    assert xids == there


def _below(group: dict[str, Any]) -> Iterator[str]:
    for file in group["files"].values():
        assert len(file["versions"]) == file["versionscount"] > 0
        yield file["xid"]
        yield from (version["xid"] for version in file["versions"].values())


def _wait(holds: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    assert holds()


def test_event_of_several_servers_is_sent_by_one(postgresql: str, tmp_path: Path) -> None:
    """Events are sent in commit order; when the sending server is killed, the other continues without a gap."""
    db, path = new_database(postgresql, "sending"), "/messagegroups/g{}"
    with sink() as target, serving(db, tmp_path / "log", "--events-sink", target.url, count=2) as running:
        answers = together(running, lambda client, n: [client.put(path.format(n), json={}) for _ in range(5)])
        stream = _all_events(running[0], len(answers))
        _wait(lambda: len(target.ids) >= len(stream))
        assert target.ids == stream
        running[0].kill()
        with running[1].client() as client:
            answers += [client.put(path.format(place), json={}) for place in range(20)]
        stream = _all_events(running[1], len(answers))
        _wait(lambda: set(target.ids) >= set(stream))
    assert list(dict.fromkeys(target.ids)) == stream


def _all_events(server: Server, requests: int) -> list[str]:
    """The ids of the events of so many requests, from the first."""
    follower = Follower(server.base, "0")
    _wait(lambda: len({event["xregcorrelationid"] for event in follower.events}) == requests)
    time.sleep(0.2)
    return [event["id"] for event in follower.events]


def test_servers_started_together_create_one_registry(postgresql: str, tmp_path: Path) -> None:
    db = new_database(postgresql, "starting")
    with serving(db, tmp_path / "log", count=4) as running:
        roots = []
        for place, server in enumerate(running):
            with server.client() as client:
                assert client.put(f"/messagegroups/g{place}", json={}).status_code == 201
                roots.append({**client.get("/").json(), "self": ""})
    created = {root["createdat"] for root in roots}
    assert len(created) == 1
    assert [root["epoch"] for root in roots] == [2, 3, 4, 5]
    assert "Traceback" not in (tmp_path / "log").read_text()
