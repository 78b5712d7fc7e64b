"""Events: what each request leaves in the outbox. The rows of the checklist by their ids.

Spec: core/events.md.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import delete, insert

from tests.httpapi.conftest import BASE, Client
from wirebook.core.versions import instant_key
from wirebook.httpapi.feed import next_events, start_of
from wirebook.problems.xregistry import Refused
from wirebook.storage.tables import EVENTS


class Log:
    """The events since it was made or last read."""

    def __init__(self, registry: Client) -> None:
        self._database = registry.database
        self._after = start_of(self._database, None)

    def read(self) -> list[dict[str, Any]]:
        self._after, text = next_events(self._database, self._after, BASE)
        lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines]

    def short(self) -> dict[tuple[str, str], set[str]]:
        """Type without its prefix and subject, with the attributes that changed."""
        return {
            (each["type"].removeprefix("io.xregistry."), each["subject"]): set(each.get("data", {}).get("changed", ()))
            for each in self.read()
        }


@pytest.fixture
def log(registry: Client) -> Log:
    registry.put("/dirs/d/datas/x/versions/v1", {"name": "one"})
    return Log(registry)


def test_c_evt_01_attributes_of_events(registry: Client, log: Log) -> None:
    reply = registry.put("/dirs/e", {})
    events = log.read()
    assert {each["source"] for each in events} == {BASE}
    assert {each["time"] for each in events} == {reply.json["modifiedat"]}
    assert {each["xregcorrelationid"] for each in events} == {reply.headers["xRegistry-xregcorrelationid"]}
    assert len({each["id"] for each in events}) == len(events) == 2


def test_c_evt_06_a_group_comes_and_goes(registry: Client, log: Log) -> None:
    names = {"epoch", "modifiedat", "dirs", "dirscount"}
    registry.put("/dirs/e", {})
    assert log.short() == {("registry.updated", "/"): names, ("group.created", "/dirs/e"): set()}
    registry.delete("/dirs/e")
    assert log.short() == {("registry.updated", "/"): names, ("group.deleted", "/dirs/e"): set()}


def test_c_evt_07_a_resource_comes(registry: Client, log: Log) -> None:
    registry.put("/dirs/d/datas/y", {})
    assert log.short() == {
        ("group.updated", "/dirs/d"): {"epoch", "modifiedat", "datas", "datascount"},
        ("resource.created", "/dirs/d/datas/y"): set(),
        ("version.created", "/dirs/d/datas/y/versions/1"): set(),
    }


def test_c_evt_08_a_version_comes(registry: Client, log: Log) -> None:
    registry.put("/dirs/d/datas/x/versions/v2", {})
    found = log.short()
    assert found["version.created", "/dirs/d/datas/x/versions/v2"] == set()
    assert found["resource.updated", "/dirs/d/datas/x"] >= {
        "meta.epoch",
        "meta.modifiedat",
        "meta.defaultversionid",
        "versions",
        "versionscount",
        "name",
    }
    assert len(found) == 2


def test_c_evt_09_the_default_version_changes_and_another(registry: Client, log: Log) -> None:
    registry.patch("/dirs/d/datas/x/versions/v1", {"name": "two"})
    names = {"name", "epoch", "modifiedat"}
    assert log.short() == {
        ("resource.updated", "/dirs/d/datas/x"): names,
        ("version.updated", "/dirs/d/datas/x/versions/v1"): names,
    }
    registry.put("/dirs/d/datas/x/versions/v2", {})
    log.read()
    registry.patch("/dirs/d/datas/x/versions/v1", {"name": "three"})
    assert log.short() == {("version.updated", "/dirs/d/datas/x/versions/v1"): names}


def test_c_evt_12_deprecation(registry: Client, log: Log) -> None:
    registry.patch("/dirs/d", {"deprecated": {"removal": "2030-01-01T00:00:00Z"}})
    assert log.short() == {
        ("group.updated", "/dirs/d"): {"epoch", "modifiedat", "deprecated"},
        ("group.deprecation", "/dirs/d"): {"removal"},
    }


def test_c_evt_13_model_and_capabilities(registry: Client, log: Log) -> None:
    source = registry.get("/modelsource").json
    registry.put("/modelsource", source)
    found = log.short()
    assert found["model.updated", "/model"] == found["modelsource.updated", "/modelsource"] == set()
    assert found["registry.updated", "/"] >= {"model", "modelsource", "epoch", "modifiedat"}
    registry.patch("/capabilities", {"shortself": True})
    assert log.short()["capabilities.updated", "/capabilities"] == {"shortself"}


def test_c_evt_14_a_group_with_what_is_in_it(registry: Client, log: Log) -> None:
    registry.delete("/dirs/d")
    assert set(log.short()) == {
        ("registry.updated", "/"),
        ("group.deleted", "/dirs/d"),
        ("resource.deleted", "/dirs/d/datas/x"),
        ("version.deleted", "/dirs/d/datas/x/versions/v1"),
    }


def test_c_evt_15_a_request_that_fails_gives_none(registry: Client, log: Log) -> None:
    assert registry.put("/dirs/d", {"epoch": 99}).status == 400
    assert log.read() == []


def test_a_stream_goes_on_where_a_client_was(registry: Client, log: Log) -> None:
    database = registry.database
    _, text = next_events(database, start_of(database, "0"), BASE)
    entries = [entry for entry in text.split("\n\n") if entry]
    ids = [entry.partition("\n")[0].removeprefix("id: ") for entry in entries]
    assert len(set(ids)) == len(ids) > 2
    for place, id_ in enumerate(ids):  # also in the midst of what one request did
        _, rest = next_events(database, start_of(database, id_), BASE)
        assert rest.split("\n\n")[:-1] == entries[place + 1 :]


@pytest.mark.parametrize("id_", ["99", "99-0", "-1", "x", "1-", "1-x", "", " 1", "1" * 30, "٣"])
def test_an_id_that_no_event_has(registry: Client, log: Log, id_: str) -> None:
    with pytest.raises(Refused, match="no id of an event"):
        start_of(registry.database, id_)


def test_events_that_are_no_longer_kept(registry: Client, log: Log) -> None:
    registry.put("/dirs/d", {})
    newest = start_of(registry.database, None).number
    with registry.database.writing() as session:
        assert session.outbox.trim("9999-01-01T00:00:00Z", 1000) == newest
    assert start_of(registry.database, str(newest)).number == newest
    for gone in ("0", "1", "1-0", f"{newest}-0"):
        with pytest.raises(Refused, match="no longer kept"):
            start_of(registry.database, gone)
    registry.put("/dirs/d", {})
    assert [each["subject"] for each in log.read() if each["type"].endswith("group.updated")] == ["/dirs/d"]


def test_what_is_kept_has_no_gaps_whatever_clocks_said(registry: Client, log: Log) -> None:
    days = ("2020-01-01", "2020-01-03", "2020-01-02", "2020-01-04")
    rows = [
        {"key": 10 + place, "time": instant_key(f"{day}T00:00:00Z"), "correlation": "c", "body": "[]"}
        for place, day in enumerate(days)
    ]
    with registry.database.connected() as connection:
        connection.execute(delete(EVENTS))
        connection.execute(insert(EVENTS), rows)
    with registry.database.writing() as session:
        assert session.outbox.trim("2020-01-02T12:00:00Z", 1000) == 3
        assert [number for number, *_ in session.outbox.after(0, 10)] == [13]
