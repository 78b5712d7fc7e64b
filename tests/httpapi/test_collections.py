"""Collections: pages, sorts and filters."""

from __future__ import annotations

import re

import pytest

from tests.httpapi.conftest import BASE, Client


def pages(registry: Client, url: str) -> tuple[list[list[str]], list[str]]:
    """The ids on each page, following `next`, and the counts that the links give."""
    found, counts = [], []
    while url:
        reply = registry.get(url)
        assert reply.status == 200
        found.append(list(reply.json))
        links = dict(re.findall(r"<([^>]*)>;rel=(\w[\w-]*)", reply.headers["Link"]))
        counts += re.findall(r"rel=next;count=(\d+)", reply.headers["Link"])
        url = next((link for link, rel in links.items() if rel == "next"), "")
    return found, counts


@pytest.fixture
def filled(registry: Client) -> Client:
    dirs = {f"d{i}": {"name": f"N{i % 3}", "labels": {"stage": str(i)}, "datas": {"x": {}}} for i in range(7)}
    assert registry.post("/dirs", dirs).status == 200
    return registry


def test_c_pag_05_following_next_gives_each_once(filled: Client) -> None:
    found, counts = pages(filled, "/dirs?limit=3&inline=datas")
    assert found == [["d0", "d1", "d2"], ["d3", "d4", "d5"], ["d6"]]
    assert counts == ["7", "7"]


def test_c_pag_05_with_a_filter_or_a_sort(filled: Client) -> None:
    assert pages(filled, "/dirs?limit=2&filter=name=n0")[0] == [["d0", "d3"], ["d6"]]
    expected = [["d5", "d2"], ["d4", "d1"], ["d6", "d3"], ["d0"]]
    assert pages(filled, "/dirs?limit=2&sort=name=desc&inline=*")[0] == expected


@pytest.mark.parametrize("limit", ["0", "-1", "x", "", "1.5"])
def test_c_pag_01_a_limit_is_a_number_above_zero(registry: Client, limit: str) -> None:
    assert registry.get(f"/dirs?limit={limit}").error[0] == 400


def test_c_srt_02_missing_values_are_lowest(filled: Client) -> None:
    filled.put("/dirs/a", {})
    assert list(filled.get("/dirs?sort=name").json)[:3] == ["a", "d0", "d3"]
    assert list(filled.get("/dirs?sort=name=desc").json)[-1] == "a"
    assert next(iter(filled.get("/dirs?sort=labels.stage=desc").json)) == "d6"


def test_c_srt_03_only_collections_are_sorted(registry: Client) -> None:
    assert registry.get("/?sort=name").error == (400, "sort_noncollection", "/")
    assert registry.get("/dirs?sort=name=up").error[1] == "bad_sort"


def test_c_fil_15_urls_have_what_is_left_of_the_filter(filled: Client) -> None:
    shown = filled.get("/?filter=dirs.name=n1").json
    assert (shown["dirscount"], shown["dirsurl"]) == (2, f"{BASE}/dirs?filter=name=n1")
    assert shown["boxesurl"] == f"{BASE}/boxes?filter=excludeall"
    assert filled.get("/boxes?filter=excludeall").json == {}
    assert list(filled.get(shown["dirsurl"]).json) == ["d1", "d4"]


def test_c_fil_14_an_entity_that_does_not_match_is_not_found(filled: Client) -> None:
    assert filled.get("/dirs/d1?filter=name=other").error == (404, "not_found", "/dirs/d1")
    assert filled.get("/dirs/d1?filter=name=N1").status == 200
    assert filled.get("/?filter=description=no").error == (404, "not_found", "/")


@pytest.mark.parametrize("text", ["name<null", "name<a*", "labels=x", "a..b", "[x]", "name =x", "excludeall,name=x"])
def test_c_fil_10_expressions_that_are_none(registry: Client, text: str) -> None:
    assert registry.get(f"/dirs?filter={text}").error[:2] == (400, "bad_filter")
