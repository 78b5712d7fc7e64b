"""Groups: what they show, and what they demand of their Resources. Rows GRP."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import BASE, Client, serve
from wirebook.storage.database import Database

TEXT: Final = {"type": "string"}
VERSION: Final[dict[str, Any]] = {
    "kind": {"type": "string", "enum": ["a", "b", "c"], "strict": False},
    "size": {"type": "integer"},
    "where": {"type": "object", "attributes": {"zone": TEXT}},
    "many": {"type": "array", "item": TEXT},
    "named": {"type": "map", "item": TEXT},
    "free": {"type": "any"},
    "mode": {"type": "string", "ifvalues": {"x": {"siblingattributes": {"sibling": TEXT}}}},
    "*": {"type": "any"},
}
GROUP: Final[dict[str, Any]] = {"kind": TEXT, "many": {"type": "array", "item": TEXT}, "*": {"type": "any"}}


def source(**constraints: Any) -> dict[str, Any]:
    """A model in which the Groups of one type have constraints, and those of another borrow their Resources."""
    things = {"singular": "thing", "hasdocument": False, "attributes": VERSION}
    home = {"singular": "home", "attributes": GROUP, "resources": {"things": things}}
    guest = {"singular": "guest", "attributes": GROUP, "ximportresources": ["/homes/things"]}
    rules = {f"things.{key}": constraint for key, constraint in constraints.items()}
    return {"groups": {"homes": home, "guests": {**guest, "constraints": rules} if rules else guest}}


@pytest.fixture
def plain(database: Database) -> Client:
    return serve(database, source())


def test_c_grp_01_what_a_group_shows(plain: Client) -> None:
    sent = {
        "name": "n", "description": "d", "documentation": "http://h/d", "icon": "http://h/i", "labels": {"a": ""},
        "createdat": "2001-01-01T00:00:00Z", "modifiedat": "2002-01-01T00:00:00Z", "deprecated": {},
        "constraints": {"things.kind": {"enum": ["a"]}}, "kind": "a", "other": [1],
    }  # fmt: skip
    shown = plain.put("/homes/h", sent)
    assert (shown.status, plain.get("/homes/h").json) == (201, shown.json)
    assert shown.json == {
        "homeid": "h", "self": f"{BASE}/homes/h", "xid": "/homes/h", "epoch": 1, **sent,
        "thingsurl": f"{BASE}/homes/h/things", "thingscount": 0,
    }  # fmt: skip
    assert list(shown.json)[:12] == [
        "homeid", "self", "xid", "epoch", "name", "description", "documentation", "icon", "labels", "createdat",
        "modifiedat", "deprecated",
    ]  # fmt: skip
    bare = plain.put("/guests/g", {}).json
    assert list(bare) == ["guestid", "self", "xid", "epoch", "createdat", "modifiedat", "thingsurl", "thingscount"]


THINGS: Final = "/homes/h/things"
BORROWED: Final = "/guests/g/things/t"


@pytest.fixture
def guests(database: Database) -> Client:
    """Guests allow two kinds, give one by default, and the kind of a guest is that of its things."""
    registry = serve(database, source(kind={"enum": ["a", "b"], "default": "a", "equals": "kind"}))
    assert registry.put(f"{THINGS}/t", {"kind": "b"}).status == 201
    return registry


def test_c_grp_11_borrowed_resources_comply(guests: Client) -> None:
    guests.put(f"{THINGS}/c", {"kind": "c"})
    reference = {"meta": {"xref": f"{THINGS}/c"}}
    reply = guests.put(BORROWED, reference)
    assert reply.error == (400, "constraint_failure", BORROWED)
    assert reply.json["args"] == {"kind": "enum", "path": "kind"}
    assert guests.get("/guests/g").status == 404
    assert guests.put(BORROWED, {"meta": {"xref": f"{THINGS}/t"}}).json["kind"] == "b"
    assert guests.patch("/guests/g", {"kind": "a"}).error == (400, "constraint_failure", BORROWED)
    assert guests.patch("/guests/g", {"kind": "b"}).status == 200
    before = guests.get("/export").body
    for method, path, sent, kind in (
        ("PATCH", f"{THINGS}/t", {"kind": "c"}, "enum"),
        ("PUT", f"{THINGS}/t", {"kind": "a"}, "equals"),
        ("PUT", f"{THINGS}/t", {}, "equals"),
        ("POST", f"{THINGS}/t", {"kind": "c"}, "enum"),
        ("PUT", "/homes/h", {"things": {"t": {"kind": "c"}}}, "enum"),
    ):
        reply = guests.send(method, path, sent)
        assert reply.error == (400, "constraint_failure", BORROWED), (method, path)
        assert reply.json["args"]["kind"] == kind
        assert guests.get("/export").body == before
    assert guests.patch(f"{THINGS}/t", {"size": 1}).status == 200


def test_c_grp_11_they_get_no_defaults(guests: Client) -> None:
    guests.put(f"{THINGS}/u", {})
    assert "kind" not in guests.put(BORROWED, {"meta": {"xref": f"{THINGS}/u"}}).json
    assert guests.put("/guests/g/things/own", {}).json["kind"] == "a"
    assert guests.patch("/guests/g", {"kind": "a"}).error == (400, "constraint_failure", BORROWED)


NO_KEYS: Final = "many many[0] named named.x free free.x where labels.x unknown where.unknown sibling * meta.readonly"


@pytest.mark.parametrize("key", NO_KEYS.split())
def test_c_grp_12_keys_that_no_constraint_can_have(plain: Client, key: str) -> None:
    before = plain.get("/modelsource").json
    assert plain.put("/modelsource", source(**{key: {"enum": []}})).error == (400, "model_error", "/model")
    assert plain.get("/modelsource").json == before
    reply = plain.put("/homes/h", {"constraints": {f"things.{key}": {"enum": []}}})
    assert reply.error[0] == 400
    assert plain.get("/homes/h").status == 404


def test_c_grp_12_keys_that_one_can(plain: Client) -> None:
    rules = {"kind": {"enum": ["a"]}, "where.zone": {"enum": ["z"], "default": "z"}, "size": {"enum": [1, 2]},
             "versionid": {"enum": ["1"]}, "name": {"equals": "kind"}}  # fmt: skip
    assert plain.put("/modelsource", source(**rules)).status == 200
    assert plain.put("/guests/g", {"constraints": {"things.where.zone": {}}}).status == 201
    assert plain.put("/guests/g/things/t", {"where": {}}).json["where"] == {"zone": "z"}
    assert plain.post("/guests/g/things/t", {}).error[1] == "constraint_failure"
    assert plain.put("/guests/g/things/u", {"size": 3}).error[1] == "constraint_failure"
    for equals in ("unknown", "many", "many[0]", "labels.x", "epoch"):
        assert plain.put("/modelsource", source(name={"equals": equals})).error[1] == "model_error"
    assert plain.put("/modelsource", source(name={"equals": ""})).status == 200


def test_c_grp_02_and_03_what_is_null_is_not_there(plain: Client) -> None:
    sent = {"things.kind": None, "things.size": {"enum": None, "default": None, "equals": None}}
    shown = plain.put("/homes/h", {"constraints": sent})
    assert (shown.status, shown.json["constraints"].get("things.size", {})) == (201, {})
    assert plain.put("/homes/h/things/t", {"kind": "z", "size": 5}).status == 201
    assert plain.put("/modelsource", source(kind=None, size={"enum": None})).status == 200
