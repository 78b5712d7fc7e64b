"""Events of random writes, compared with the whole registry before and after each write.

Spec: core/events.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.httpapi.conftest import Client
from tests.httpapi.test_events import Log

DERIVED = {"self", "xid", "isdefault", "metaurl", "versionsurl", "meta.self", "meta.xid", "meta.defaultversionurl"}
"""What depends on other attributes, or on where one looks."""

WRITES = 150
Entities = dict[str, tuple[str, dict[str, Any]]]
Request = tuple[str, str, Any]


def entities(registry: Client) -> Entities:
    """Everything by xid, with its kind and its attributes; those of metas are of their Resources."""
    root = registry.get("/?inline=*").json
    by_xid: Entities = {
        "/": ("registry", {name: member for name, member in root.items() if not isinstance(member, dict)})
    }
    for group in (*root["dirs"].values(), *root["boxes"].values()):
        plurals = [name.removesuffix("url") for name in group if f"{name.removesuffix('url')}count" in group]
        by_xid[group["xid"]] = "group", {name: member for name, member in group.items() if name not in plurals}
        by_xid |= {xid: resource for plural in plurals for xid, resource in resources(group[plural])}
    return by_xid


def resources(collection: dict[str, Any]) -> Iterator[tuple[str, tuple[str, dict[str, Any]]]]:
    for resource in collection.values():
        own = {name: value for name, value in resource.items() if name not in ("meta", "versions")}
        yield resource["xid"], ("resource", own | {f"meta.{name}": value for name, value in resource["meta"].items()})
        for version in resource.get("versions", {}).values():
            yield version["xid"], ("version", version)


def changed(before: dict[str, Any], after: dict[str, Any], kind: str) -> set[str]:
    """The names that an event must have at least."""
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} - DERIVED
    documents = {name for name in names if name in ("file", "filebase64")}
    if "contenttype" in names or not documents:  # a document that is shown in another form is the same
        return names - documents
    return (names - documents) | {"file"}


def faults(before: Entities, after: Entities, events: list[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """What events say and did not happen, or what happened and they do not say."""
    by_subject = {(event["subject"], event["type"].rpartition(".")[2]): event for event in events}
    settings = {"/model", "/modelsource", "/capabilities"}
    if len(by_subject) < len(events):
        yield "twice", *(event["subject"] for event in events)
    for xid, action in by_subject:
        there = {"created": (False, True), "deleted": (True, False)}.get(action, (True, True))
        if xid not in settings and action != "deprecation" and (xid in before, xid in after) != there:
            yield f"not {action}", xid
    for xid in before.keys() ^ after.keys():
        action = "created" if xid in after else "deleted"
        if (xid, action) not in by_subject:
            yield f"{action} unsaid", xid
    for xid in before.keys() & after.keys():
        names = changed(before[xid][1], after[xid][1], after[xid][0])
        event = by_subject.get((xid, "updated"), {"data": {"changed": ()}})
        if names - set(event["data"]["changed"]):
            yield "updated unsaid", xid, *names
        if not names and (xid, "updated") in by_subject:
            yield "not updated", xid
        was, now = (
            entities[xid][1].get("deprecated", entities[xid][1].get("meta.deprecated")) for entities in (before, after)
        )
        if (was != now) != ((xid, "deprecation") in by_subject) and after[xid][0] in ("group", "resource"):
            yield "deprecation", xid


def any_request(rng: random.Random) -> Request:
    group, plural = rng.choice(("/dirs/a", "/dirs/b")), rng.choice(("datas", "files", "cats"))
    resource, version = f"{group}/{plural}/{rng.choice('xy')}", rng.choice(("1", "2", "v1", "v2"))
    details = "$details" if plural == "files" else ""
    put = rng.choice(("PUT", "PATCH"))
    makers: list[Callable[[], Request]] = [
        lambda: (put, "/", attributes(rng) | {"dirs": {"a": attributes(rng)}}),
        lambda: (put, rng.choice((group, "/boxes/c")), attributes(rng) | {"deprecated": deprecated(rng)}),
        lambda: (put, group, {"datas": {"x": attributes(rng), "z": {"versions": {"v1": {}, "v2": {}}}}}),
        lambda: (put, f"{resource}{details}", attributes(rng)),
        lambda: (put, f"{group}/files/x$details", {"file": rng.choice(("text", {"a": 1}, None))}),
        lambda: (put, f"{resource}/versions/{version}{details}", attributes(rng)),
        lambda: ("POST", f"{resource}{details}", attributes(rng)),
        lambda: (put, f"{resource}/meta", {"deprecated": deprecated(rng), "labels": {"m": rng.choice("12")}}),
        lambda: (put, f"{resource}/meta", {"defaultversionid": version, "defaultversionsticky": True}),
        lambda: (put, f"{resource}/meta", {"defaultversionsticky": False}),
        lambda: ("POST", f"{resource}/versions", {"v1": attributes(rng), "v3": {}}),
        lambda: ("PATCH", f"{resource}/versions", {"v1": {"ancestorid": rng.choice(("1", "v1", "v2"))}}),
        lambda: ("DELETE", f"{resource}/versions/{version}", None),
        lambda: ("DELETE", f"{resource}/versions?setdefaultversionid=1", {"v1": {}, "v2": {}}),
        lambda: ("DELETE", rng.choice((resource, f"{group}/datas", f"{resource}/versions")), {"x": {}}),
        lambda: ("DELETE", rng.choice(("/dirs/b", "/boxes/c")), None),
    ]
    return rng.choice(makers)()


def attributes(rng: random.Random) -> dict[str, Any]:
    values = {"name": ("p", "q"), "description": ("d", None), "xint": (1, 2), "labels": ({}, {"a": "b"}, None)}
    return {name: rng.choice(value) for name, value in values.items() if rng.random() < 0.4}


def deprecated(rng: random.Random) -> Any:
    return rng.choice((None, {}, {"alternative": "http://h"}, {"removal": "2040-01-01T00:00:00Z"}))


@pytest.mark.parametrize("seed", [1, 2])
def test_events_match_the_changes_of_random_requests(registry: Client, seed: int) -> None:
    rng, log = random.Random(seed), Log(registry)
    before, done = entities(registry), 0
    for _ in range(WRITES):
        request = any_request(rng)
        reply = registry.send(*request)
        after, events = entities(registry), log.read()
        assert reply.status < 500
        if reply.status >= 400:
            assert (after, events) == (before, []), request
        assert not list(faults(before, after, events)), request
        before, done = after, done + (reply.status < 300)
    assert done > WRITES / 2
