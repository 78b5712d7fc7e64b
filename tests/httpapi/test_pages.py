"""Pages of collections and the links between them. The rows of the checklist by their ids.

Spec: pagination/spec.md; core/http.md#pagination.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.httpapi.conftest import BASE, Client, Reply
from tests.httpapi.servers import serving

ROOT = f"<{BASE}>;rel=xregistry-root"
LINK = re.compile(r"<([^<>]*)>;rel=([\w-]+)(?:;count=(\d+))?")


def links(reply: Reply) -> dict[str, tuple[str, str]]:
    """The URL and the count of each relation but that to the root."""
    found = {rel: (url, count) for url, rel, count in LINK.findall(reply.headers["Link"])}
    assert found.pop("xregistry-root") == (BASE, "")
    assert (
        ", ".join(f"<{url}>;rel={rel};count={n}" for rel, (url, n) in found.items()) + (", " if found else "") + ROOT
        == reply.headers["Link"]
    )
    return found


def walk(registry: Client, url: str) -> list[Reply]:
    """The pages from `url` on, each of which must be one, with links as they have to be."""
    replies = [registry.get(url)]
    while following := links(replies[-1]).get("next"):
        replies.append(registry.get(following[0]))
        assert len(replies) < 20
    assert {reply.status for reply in replies} == {200}
    return replies


@pytest.fixture
def filled(registry: Client) -> Client:
    ids = [f"e{i}" for i in range(5)]
    versions = {f"v{i}": {"name": f"N{i % 2}"} for i in range(5)}
    resources = {id_: {"versions": versions, "name": "n"} for id_ in ids}
    dirs = {id_: {"datas": resources if id_ == "e0" else {}, "labels": {"a": id_}} for id_ in ids}
    assert registry.post("/dirs", dirs).status == 200
    return registry


FLAGS = (
    "inline=*",
    "doc&inline=*",
    "sort=epoch=desc",
    "filter=name",
    "filter=name!=no&inline",
    "filter=excludeall",
    "foo=a+%26b",
)
COLLECTIONS = ["/dirs", "/dirs/e0/datas", "/dirs/e0/datas/e0/versions"]


@pytest.mark.parametrize("path", COLLECTIONS)
def test_c_pag_01_to_05_the_pages_of_a_collection(filled: Client, path: str) -> None:
    whole = filled.get(path).json
    for limit in (1, 2, 4, 5, 6, 1000):
        replies = walk(filled, f"{path}?limit={limit}")
        assert [len(reply.json) for reply in replies[:-1]] == [limit] * (len(replies) - 1)
        assert 1 <= len(replies[-1].json) <= limit
        assert [item for reply in replies for item in reply.json.items()] == list(whole.items())
        for place, reply in enumerate(replies):
            found = links(reply)
            assert {count for _, count in found.values()} <= {"5"}
            assert ("next" in found) == (place < len(replies) - 1)
            assert "prev" not in found or place > 0


@pytest.mark.parametrize("path", COLLECTIONS)
def test_c_pag_05_flags_stay_in_force(filled: Client, path: str) -> None:
    for flags in FLAGS:
        whole = filled.get(f"{path}?{flags}").json
        replies = walk(filled, f"{path}?{flags}&limit=2")
        assert [item for reply in replies for item in reply.json.items()] == list(whole.items())
        assert {count for reply in replies for _, count in links(reply).values()} <= {str(len(whole))}


def test_c_pag_05_pages_of_what_is_sorted_both_ways(filled: Client) -> None:
    for sort in ("name", "name=desc", "versionid=desc", "labels.a"):
        path = f"{COLLECTIONS[2]}?sort={sort}"
        assert [id_ for reply in walk(filled, f"{path}&limit=2") for id_ in reply.json] == list(filled.get(path).json)


def test_c_pag_05_pages_of_what_is_sorted_by_numbers_of_any_size(filled: Client) -> None:
    for i, value in enumerate([10**400, 1.5, -(10**400), 2**64]):
        assert filled.patch(f"/dirs/e{i}", {"xany": value}).status == 200
    for sort, ids in (("xany", ["e4", "e2", "e1", "e3", "e0"]), ("xany=desc", ["e0", "e3", "e1", "e2", "e4"])):
        assert [id_ for reply in walk(filled, f"/dirs?sort={sort}&limit=1") for id_ in reply.json] == ids


@pytest.mark.parametrize("flags", ["", "&sort=labels.a"])
def test_c_pag_05_what_changes_on_the_way(filled: Client, flags: str) -> None:
    first = filled.get(f"/dirs?limit=2{flags}")
    assert list(first.json) == ["e0", "e1"]
    filled.delete("/dirs/e1")
    filled.put("/dirs/e11", {"labels": {"a": "e11"}})
    second = filled.get(links(first)["next"][0])
    assert list(second.json) == ["e11", "e2"]


@pytest.mark.parametrize("path", COLLECTIONS)
def test_c_pag_01_a_limit_is_above_zero(filled: Client, path: str) -> None:
    for limit in ("0", "-1", "x", "", "1.5", "1e2", " 1", "%2B1", "9" * 30, str(1 << 64), "%D9%A3"):
        assert filled.get(f"{path}?limit={limit}").error == (400, "bad_request", path), limit


def test_c_pag_01_the_largest_limit(filled: Client) -> None:
    reply = filled.get(f"/dirs?limit={2**64 - 1}")
    assert (len(reply.json), "next" in links(reply)) == (5, False)


def test_places_that_are_none(filled: Client) -> None:
    for place in ("-", "%00", "a b", "e1/../e2", "[]"):
        assert filled.get(f"/dirs?limit=1&after={place}").error == (400, "bad_request", "/dirs")
    for place in ("e1", "-", "%00", "W10", "bnVsbA", "W1swLDFdLCJlMSJd"):
        assert filled.get(f"/dirs?limit=1&sort=name&after={place}").error == (400, "bad_request", "/dirs")


def test_c_pag_01_without_the_capability_there_are_no_pages(filled: Client) -> None:
    filled.patch("/capabilities", {"pagination": False})
    for limit in ("1", "0", "x"):
        reply = filled.get(f"/dirs?limit={limit}")
        assert (len(reply.json), reply.headers["Link"]) == (5, ROOT)


def test_c_pag_06_only_collections_have_pages(filled: Client) -> None:
    for path in ("/", "/dirs/e0", "/dirs/e0/datas/e0", "/dirs/e0/datas/e0/meta", "/export", "/model", "/capabilities"):
        plain = filled.get(f"{path}?inline=*" if path in ("/", "/dirs/e0") else path)
        paged = filled.get(f"{path}?inline=*&limit=1" if path in ("/", "/dirs/e0") else f"{path}?limit=0")
        assert (paged.body, paged.headers["Link"]) == (plain.body, ROOT)
    assert list(filled.post("/dirs?limit=1", {"e0": {}, "e1": {}}).json) == ["e0", "e1"]


def test_c_pag_07_pages_are_made_on_demand_alone(filled: Client) -> None:
    for path in (*COLLECTIONS, "/boxes", "/dirs?filter=excludeall", "/dirs?sort=name"):
        assert filled.get(path).headers["Link"] == ROOT
    empty = filled.get("/boxes?limit=1")
    assert (empty.status, empty.json, "next" in links(empty)) == (200, {}, False)


def test_a_server_keeps_to_the_limits_that_it_was_started_with(tmp_path: Path) -> None:
    options = ("--max-page", "2", "--max-response", "1")
    with serving(f"sqlite:///{tmp_path / 'r.db'}", tmp_path / "log", *options) as (server,), server.client() as client:
        groups = {f"g{i}": {"description": "d" * 4000} for i in range(300)}
        assert client.post("/schemagroups", json=groups).status_code == 406
        assert client.get("/schemagroups").json() == {}
        for part in ([*groups][:150], [*groups][150:]):
            assert client.post("/schemagroups", json={id_: groups[id_] for id_ in part}).status_code == 200
        page = client.get("/schemagroups?limit=100")
        assert list(page.json()) == ["g0", "g1"]
        assert "rel=next;count=300" in page.headers["Link"]
        large = client.get("/schemagroups")
        assert (large.status_code, large.json()["type"].rpartition("#")[2]) == (406, "too_large")
        assert len(client.get("/export").json()["schemagroups"]) == 300
