"""Events: what each request writes to the outbox. Tests are named after rows of the checklist.

Spec: core/events.md.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from sqlalchemy import delete, insert

from tests.httpapi.conftest import BASE, Client
from wirebook.core.entities.versions import instant_key
from wirebook.httpapi.handlers.events import next_events, start_position
from wirebook.problems.xregistry import Refused
from wirebook.storage.tables import EVENTS


class Log:
    """The events since the last read."""

    def __init__(self, registry: Client) -> None:
        self._database = registry.database
        self._after = start_position(self._database, None)

    def read(self) -> list[dict[str, Any]]:
        self._after, text = next_events(self._database, self._after, BASE)
        lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines]

    def short(self) -> dict[tuple[str, str], set[str]]:
        """Type without its prefix and subject, with the attributes that changed."""
        return {
            (event["type"].removeprefix("io.xregistry."), event["subject"]): set(
                event.get("data", {}).get("changed", ())
            )
            for event in self.read()
        }


@pytest.fixture
def log(registry: Client) -> Log:
    registry.put("/dirs/d/datas/x/versions/v1", {"name": "one"})
    return Log(registry)


def test_c_evt_01_attributes_of_events(registry: Client, log: Log) -> None:
    reply = registry.put("/dirs/e", {})
    events = log.read()
    assert {event["source"] for event in events} == {BASE}
    assert {event["time"] for event in events} == {reply.json["modifiedat"]}
    assert {event["xregcorrelationid"] for event in events} == {reply.headers["xRegistry-xregcorrelationid"]}
    assert len({event["id"] for event in events}) == len(events) == 2


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
    events = log.short()
    assert events["version.created", "/dirs/d/datas/x/versions/v2"] == set()
    assert events["resource.updated", "/dirs/d/datas/x"] >= {
        "meta.epoch",
        "meta.modifiedat",
        "meta.defaultversionid",
        "versions",
        "versionscount",
        "name",
    }
    assert len(events) == 2


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
    events = log.short()
    assert events["model.updated", "/model"] == events["modelsource.updated", "/modelsource"] == set()
    assert events["registry.updated", "/"] >= {"model", "modelsource", "epoch", "modifiedat"}
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


DEFAULT = {"meta.defaultversionid", "meta.epoch", "meta.modifiedat"}
COUNTED = {"meta.epoch", "meta.modifiedat", "versions", "versionscount"}
SHOWN = {"dataid", "versionid", "self", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestorid"}
CHANGED = {"epoch", "modifiedat"}
Y = "/dirs/d/datas/y"


@pytest.fixture
def two(registry: Client, log: Log) -> Client:
    """A Resource whose Versions have different attributes."""
    assert registry.post(f"{Y}/versions", {"v1": {"name": "n"}, "v2": {"labels": {"a": "b"}}}).status == 200
    log.read()
    return registry


def test_c_evt_05_and_11_changes_of_meta(two: Client, log: Log) -> None:
    two.patch(f"{Y}/meta", {"compatibility": "full"})
    assert log.short() == {("resource.updated", Y): {"meta.epoch", "meta.modifiedat", "meta.compatibility"}}
    two.patch(f"{Y}/meta", {"compatibility": None, "deprecated": {"alternative": "http://h"}})
    names = {"meta.epoch", "meta.modifiedat", "meta.compatibility", "meta.deprecated"}
    assert log.short() == {("resource.updated", Y): names, ("resource.deprecation", Y): {"alternative"}}
    two.patch(f"{Y}/meta", {})
    assert log.short() == {("resource.updated", Y): {"meta.epoch", "meta.modifiedat"}}


def test_c_evt_05_what_has_changed_has_names_alone(two: Client, log: Log) -> None:
    two.put("/", {"name": "n"})
    source = two.get("/modelsource").json
    two.put("/", {"labels": {"a": "b"}, "modelsource": source, "capabilities": two.get("/capabilities").json})
    two.put("/dirs/d/datas/z", {})
    two.delete("/dirs/d")
    events = log.read()
    for event in events:
        assert set(event) <= {*ATTRIBUTES, "datacontenttype", "data"}
        if event["type"].rpartition(".")[2] in ("created", "deleted") or event["subject"] in ("/model", "/modelsource"):
            assert "data" not in event
        elif "data" in event:
            assert set(event["data"]) == {"changed"}
            assert all(isinstance(name, str) for name in event["data"]["changed"])
            assert len(set(event["data"]["changed"])) == len(event["data"]["changed"])
    assert events[0]["data"]["changed"] == ["epoch", "modifiedat", "name"]


def test_c_evt_05_documents_are_attributes(registry: Client, log: Log) -> None:
    path = "/dirs/d/files/f"
    registry.put(path, b"one", content_type="text/plain")
    log.read()
    for file in ({"file": "two", "contenttype": "text/plain"}, {"filebase64": "eA==", "contenttype": "text/plain"}):
        registry.put(f"{path}$details", file)
        events = log.short()
        assert events["version.updated", f"{path}/versions/1"] == events["resource.updated", path] == {*CHANGED, "file"}
    registry.patch(f"{path}$details", {"name": "n"})
    assert log.short()["version.updated", f"{path}/versions/1"] == {*CHANGED, "name"}
    registry.patch(f"{path}$details", {"fileurl": "http://h"})
    assert log.short()["version.updated", f"{path}/versions/1"] == {*CHANGED, "file", "fileurl"}


def test_c_evt_08_and_10_versions_that_become_the_default(two: Client, log: Log) -> None:
    two.post(Y, {"description": "d"})
    names = {*DEFAULT, *COUNTED, *SHOWN, "labels", "description"}
    assert log.short() == {("resource.updated", Y): names, ("version.created", f"{Y}/versions/1"): set()}
    two.delete(f"{Y}/versions/1")
    assert log.short() == {("resource.updated", Y): names, ("version.deleted", f"{Y}/versions/1"): set()}


def test_c_evt_08_versions_beside_a_default_that_stays(two: Client, log: Log) -> None:
    two.patch(f"{Y}/meta", {"defaultversionid": "v1", "defaultversionsticky": True})
    log.read()
    two.post(Y, {})
    assert log.short() == {("resource.updated", Y): COUNTED, ("version.created", f"{Y}/versions/1"): set()}
    two.put(f"{Y}/versions/v3", {})
    assert log.short() == {("resource.updated", Y): COUNTED, ("version.created", f"{Y}/versions/v3"): set()}


def test_c_evt_10_the_default_moves(two: Client, log: Log) -> None:
    two.patch(f"{Y}/meta", {"defaultversionid": "v1", "defaultversionsticky": True})
    names = {*DEFAULT, *SHOWN, "labels", "name"}
    assert log.short() == {("resource.updated", Y): {*names, "meta.defaultversionsticky"}}
    two.patch(f"{Y}/meta", {"defaultversionid": "v2"})
    assert log.short() == {("resource.updated", Y): names}
    two.patch(f"{Y}/meta", {"defaultversionid": "v2"})
    assert log.short() == {("resource.updated", Y): {"meta.epoch", "meta.modifiedat"}}


def test_c_evt_02_one_event_of_each_kind(two: Client, log: Log) -> None:
    nested = {
        "datas": {"y": {"versions": {"v1": {}, "v3": {}}, "meta": {"deprecated": {}}}, "n": {"versions": {"a": {}}}}
    }
    two.put("/", {"name": "n", "dirs": {"d": {**nested, "deprecated": {"removal": "2040-01-01T00:00:00Z"}}, "e": {}}})
    events = [(event["type"], event["subject"]) for event in log.read()]
    assert len(set(events)) == len(events)
    whats = [subject for type_, subject in events if not type_.endswith("deprecation")]
    assert len(set(whats)) == len(whats)
    assert set(events) == {
        ("io.xregistry.registry.updated", "/"),
        ("io.xregistry.group.updated", "/dirs/d"),
        ("io.xregistry.group.deprecation", "/dirs/d"),
        ("io.xregistry.group.created", "/dirs/e"),
        ("io.xregistry.resource.updated", Y),
        ("io.xregistry.resource.deprecation", Y),
        ("io.xregistry.version.updated", f"{Y}/versions/v1"),
        ("io.xregistry.version.updated", f"{Y}/versions/v2"),  # the default, of which nothing was sent
        ("io.xregistry.version.created", f"{Y}/versions/v3"),
        ("io.xregistry.resource.created", "/dirs/d/datas/n"),
        ("io.xregistry.version.created", "/dirs/d/datas/n/versions/a"),
    }


ATTRIBUTES = ("specversion", "id", "type", "source", "subject", "time", "xregcorrelationid")
WRITES: list[tuple[Any, ...]] = [
    ("PUT", "/", {}),
    ("PATCH", "/capabilities", {}),
    ("POST", "/", {"dirs": {"p": {}}}),
    ("PATCH", "/dirs", {"p": {}}),
    ("PUT", "/dirs/e/files/f", b"x"),
    ("POST", "/dirs/e/files/f", b"x"),
    ("PATCH", "/dirs/e/files/f/meta", {}),
    ("DELETE", "/dirs/e/files/f/versions", {"1": {}}),
    ("DELETE", "/dirs/e"),
]


def test_c_evt_03_and_04_what_belongs_together(two: Client, log: Log) -> None:
    seen: set[str] = set()
    for request in WRITES:
        reply = two.send(*request)
        events = log.read()
        (correlation,) = {event["xregcorrelationid"] for event in events}
        (time,) = {event["time"] for event in events}
        assert reply.headers["xRegistry-xregcorrelationid"] == correlation
        assert correlation.lower() not in seen
        assert time.endswith("Z")
        seen.add(correlation.lower())
        for event in events:
            if event["type"].endswith("updated") and event["subject"] == "/":
                assert two.get("/").json["modifiedat"] == time
    for request in (("GET", "/"), ("DELETE", "/dirs", {}), ("POST", "/dirs", {}), ("PUT", "/nope", {})):
        assert "xRegistry-xregcorrelationid" not in two.send(*request).headers
    assert log.read() == []


def test_amb_12_readings_of_contradictions(two: Client, log: Log) -> None:
    two.put("/dirs/d/datas/z", {})
    events = log.short()
    assert ("group.updated", "/dirs/d") in events
    assert ("registry.updated", "/") not in events
    assert ("version.created", "/dirs/d/datas/z/versions/1") in events
    two.patch("/dirs/d/datas/z/meta", {"deprecated": {}})
    assert "meta.deprecated" in log.short()["resource.updated", "/dirs/d/datas/z"]


def test_c_evt_12_what_is_deprecated_from_the_start(registry: Client, log: Log) -> None:
    registry.put("/dirs/e", {"deprecated": {"alternative": "http://h"}})
    assert log.short()["group.deprecation", "/dirs/e"] == {"alternative"}
    registry.put("/dirs/e/datas/x/meta", {"deprecated": {"removal": "2040-01-01T00:00:00Z"}})
    assert log.short()["resource.deprecation", "/dirs/e/datas/x"] == {"removal"}
    registry.patch("/dirs/e", {"deprecated": {"alternative": "http://h", "documentation": "http://h"}})
    assert log.short()["group.deprecation", "/dirs/e"] == {"documentation"}
    registry.put("/dirs/e", {})
    events = log.short()
    assert events["group.deprecation", "/dirs/e"] == {"alternative", "documentation"}
    assert events["group.updated", "/dirs/e"] == {"epoch", "modifiedat", "deprecated"}


def test_c_evt_15_a_request_that_fails_gives_none(registry: Client, log: Log) -> None:
    assert registry.put("/dirs/d", {"epoch": 99}).status == 400
    assert log.read() == []


def test_event_stream_resumes_after_the_last_event_id(registry: Client, log: Log) -> None:
    database = registry.database
    _, text = next_events(database, start_position(database, "0"), BASE)
    entries = [entry for entry in text.split("\n\n") if entry]
    ids = [entry.partition("\n")[0].removeprefix("id: ") for entry in entries]
    assert len(set(ids)) == len(ids) > 2
    for place, id_ in enumerate(ids):  # also in the midst of what one request did
        _, rest = next_events(database, start_position(database, id_), BASE)
        assert rest.split("\n\n")[:-1] == entries[place + 1 :]


@pytest.mark.parametrize("id_", ["99", "99-0", "-1", "x", "1-", "1-x", "", " 1", "1" * 30, "٣"])
def test_unknown_last_event_id_is_rejected(registry: Client, log: Log, id_: str) -> None:
    with pytest.raises(Refused, match="is not the id of an event"):
        start_position(registry.database, id_)


def test_last_event_id_of_trimmed_events_is_rejected(registry: Client, log: Log) -> None:
    registry.put("/dirs/d", {})
    newest = start_position(registry.database, None).number
    with registry.database.writing() as session:
        assert session.outbox.trim("9999-01-01T00:00:00Z", 1000) == newest
    assert start_position(registry.database, str(newest)).number == newest
    for gone in ("0", "1", "1-0", f"{newest}-0"):
        with pytest.raises(Refused, match="no longer kept"):
            start_position(registry.database, gone)
    registry.put("/dirs/d", {})
    assert [event["subject"] for event in log.read() if event["type"].endswith("group.updated")] == ["/dirs/d"]


def test_trimming_leaves_no_gaps_if_clocks_differ(registry: Client, log: Log) -> None:
    days = ("2020-01-01", "2020-01-03", "2020-01-02", "2020-01-04")
    rows = [
        {"key": 10 + place, "time": instant_key(f"{day}T00:00:00Z"), "correlation": "c", "body": "[]"}
        for place, day in enumerate(days)
    ]
    with registry.database.transaction() as connection:
        connection.execute(delete(EVENTS))
        connection.execute(insert(EVENTS), rows)
    with registry.database.writing() as session:
        assert session.outbox.trim("2020-01-02T12:00:00Z", 1000) == 3
        assert [number for number, *_ in session.outbox.after(0, 10)] == [13]
