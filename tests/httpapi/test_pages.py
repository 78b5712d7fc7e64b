"""Pages of collections and the links between them. Tests are named after rows of the checklist.

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
    relations = {rel: (url, count) for url, rel, count in LINK.findall(reply.headers["Link"])}
    assert relations.pop("xregistry-root") == (BASE, "")
    assert (
        ", ".join(f"<{url}>;rel={rel};count={n}" for rel, (url, n) in relations.items())
        + (", " if relations else "")
        + ROOT
        == reply.headers["Link"]
    )
    return relations


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
def test_c_pag_05_flags_stay_in_force(filled: Client, path: str) -> None:
    for flags in FLAGS:
        whole = filled.get(f"{path}?{flags}").json
        replies = walk(filled, f"{path}?{flags}&limit=2")
        assert [item for reply in replies for item in reply.json.items()] == list(whole.items())
        assert {count for reply in replies for _, count in links(reply).values()} <= {str(len(whole))}


def test_invalid_page_position_is_rejected(filled: Client) -> None:
    for place in ("-", "%00", "a b", "e1/../e2", "[]"):
        assert filled.get(f"/dirs?limit=1&after={place}").error == (400, "bad_request", "/dirs")
    for place in ("e1", "-", "%00", "W10", "bnVsbA", "W1swLDFdLCJlMSJd"):
        assert filled.get(f"/dirs?limit=1&sort=name&after={place}").error == (400, "bad_request", "/dirs")


def test_server_options_set_the_limits(tmp_path: Path) -> None:
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
