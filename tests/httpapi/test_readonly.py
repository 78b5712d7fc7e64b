"""Read-only Resources, and writes that skip them. Tests are named after rows of the checklist."""

from __future__ import annotations

import pytest
from sqlalchemy import func, update

from tests.httpapi.answers import refuses, seen
from tests.httpapi.conftest import Client
from wirebook.storage.tables import RESOURCES

D = "/dirs/d/datas"
X = f"{D}/x"


def lock(registry: Client, xid: str) -> None:
    """Makes a Resource read-only, which no request can."""
    locked = func.replace(RESOURCES.c.meta, '"readonly":false', '"readonly":true')
    with registry.database.transaction() as connection:
        change = update(RESOURCES).where(RESOURCES.c.xid == xid).values(meta=locked)
        assert connection.execute(change).rowcount == 1


def test_c_ro_01_clients_do_not_set_it(registry: Client) -> None:
    assert registry.put(X, {"meta": {"readonly": True}}).status == 201
    for method, url, content in (
        ("PUT", f"{X}/meta", {"readonly": True}),
        ("PATCH", f"{X}/meta", {"readonly": "nonsense"}),
        ("PATCH", X, {"meta": {"readonly": None}}),
        ("POST", D, {"x": {"meta": {"readonly": True}}}),
    ):
        assert registry.send(method, url, content).status == 200
        assert registry.get(f"{X}/meta").json["readonly"] is False
    lock(registry, X)
    assert registry.get(f"{X}/meta").json["readonly"] is True
    assert registry.get(f"{D}?filter=meta.readonly=true").json.keys() == {"x"}


WRITES_TO_ONE = [
    ("PUT", X, {}, X),
    ("PATCH", X, {"name": "n"}, X),
    ("POST", X, {}, X),
    ("DELETE", X, None, X),
    ("PUT", f"{X}/meta", {"readonly": False}, X),
    ("PATCH", f"{X}/meta", {}, X),
    ("PUT", f"{X}/meta", {"xref": f"{D}/y"}, X),
    ("PUT", f"{X}/versions/1", {}, X),
    ("PUT", f"{X}/versions/new", {}, X),
    ("PATCH", f"{X}/versions/1", {}, X),
    ("DELETE", f"{X}/versions/1", None, f"{X}/versions/1"),
    ("POST", f"{X}/versions", {"1": {}}, X),
    ("PATCH", f"{X}/versions", {"v": {}}, X),
    ("DELETE", f"{X}/versions", {"1": {}}, X),
    ("DELETE", f"{X}/versions", None, X),
]
WRITES_TO_MANY = [
    ("POST", D, {"x": {}, "y": {"name": "n"}}, X),
    ("PATCH", D, {"x": {"name": "n"}, "y": {"name": "n"}}, X),
    ("DELETE", D, {"x": {}, "y": {}}, X),
    ("DELETE", D, None, X),
    ("POST", "/dirs/d", {"datas": {"x": {}, "y": {"name": "n"}}}, X),
    ("PUT", "/dirs/d", {"datas": {"x": {}, "y": {"name": "n"}}}, X),
    ("PATCH", "/dirs", {"d": {"datas": {"x": {"meta": {}}, "y": {"name": "n"}}}}, X),
    ("PATCH", "/", {"dirs": {"d": {"datas": {"x": {"versions": {"1": {}}}, "y": {"name": "n"}}}}}, X),
]
GROUPS_GONE = [("DELETE", "/dirs/d", None, "/dirs/d"), ("DELETE", "/dirs", None, "/dirs/d")]


@pytest.fixture
def locked(registry: Client) -> Client:
    """A registry with a read-only Resource, and another beside it."""
    registry.post(D, {"x": {"versions": {"1": {}, "2": {}}}, "y": {}})
    lock(registry, X)
    return registry


def test_c_ro_02_it_is_not_written(locked: Client) -> None:
    for method, url, content, subject in WRITES_TO_ONE + WRITES_TO_MANY + GROUPS_GONE:
        error = refuses(locked, method, url, content, "readonly")
        assert (error["status"], error["subject"]) == (400, subject), (method, url)


def test_c_ro_03_it_is_left_out(locked: Client) -> None:
    before = locked.get(f"{X}?inline=*").body
    for method, url, content, _ in WRITES_TO_MANY:
        locked.put(f"{D}/y", {})
        reply = locked.send(method, f"{url}?ignore=readonly", content)
        assert reply.status == (204 if method == "DELETE" else 200)
        assert locked.get(f"{X}?inline=*").body == before
        y = locked.get(f"{D}/y")
        assert y.status == 404 if method == "DELETE" else y.json["name"] == "n"


def test_c_ro_03_also_if_nothing_is_left(locked: Client) -> None:
    before = locked.get("/export").body
    assert seen(locked.post(f"{D}?ignore=readonly", {"x": {}}).json) == {"x": seen(locked.get(X).json)}
    assert locked.delete(f"{D}?ignore=readonly", {"x": {"meta": {"epoch": 99}}}).status == 204
    assert locked.delete("/dirs?ignore=readonly").status == 204
    assert locked.get("/export").body == before


def test_c_ro_04_alone_it_cannot_be_left_out(locked: Client) -> None:
    for method, url, content, _ in [*WRITES_TO_ONE, GROUPS_GONE[0]]:
        error = refuses(locked, method, f"{url}?ignore=readonly", content, "bad_flag")
        assert (error["status"], error["subject"], error["args"]) == (400, url, {"flag": "ignore"})


def test_c_ro_04_the_flag_changes_nothing_where_nothing_is_read_only(registry: Client) -> None:
    assert registry.put(f"{X}?ignore=readonly", {}).status == 201
    assert registry.put(f"{X}/versions/v?ignore=readonly", {}).status == 201
    assert registry.delete(f"{X}?ignore=readonly").status == 204
