"""The flag `filter`, and dot notation in it. Tests are named after rows of the checklist.

Spec: core/spec.md#filter-flag; core/spec.md#dot-notation-in-filters; core/http.md#filter-flag.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.httpapi.conftest import BASE, Client

DATAS: dict[str, Any] = {
    "a": {
        "name": "Alpha",
        "description": "",
        "xint": 9,
        "xdec": 1.5,
        "xbool": True,
        "xtime": "2024-06-01T12:00:00+02:00",
        "xuri": "HTTP://Example.com/A",
        "labels": {"stage": "Dev", "1": "one", "a.b": "dotted"},
        "xarr": [1, 2],
        "xobj": {"a": "x", "n": 1},
        "xmap": {"k": "v"},
        "xany": {"deep": [{"n": 7}]},
    },
    "b": {"name": "beta*star", "xint": 10, "xdec": -2, "xbool": False, "xarr": [], "xany": 5},
    "c": {"name": "Ärger", "description": "a b&c+d", "xint": -3, "labels": {"stage": "prod"}, "xany": "text"},
    "d": {"xtime": "2024-06-01T10:00:00.5Z", "xint": 9007199254740993, "xstr": "null"},
}


@pytest.fixture
def filled(registry: Client) -> Client:
    assert registry.post("/dirs/d/datas", DATAS).status == 200
    return registry


def matching_ids(registry: Client, *filters: str, at: str = "/dirs/d/datas") -> str:
    """The ids that filters leave of a collection, as one text."""
    reply = registry.get(f"{at}?{'&'.join(f'filter={quote(filter_)}' for filter_ in filters)}")
    assert reply.status == 200, reply.body
    return "".join(reply.json)


def test_c_fil_the_time_of_a_meta_is_an_instant(registry: Client) -> None:
    for id_, time in (("a", "2024-06-01T10:00:00Z"), ("b", "2024-06-01T10:00:00.5Z"), ("c", "2025-01-01T00:00:00Z")):
        assert registry.put(f"/dirs/d/datas/{id_}", {"meta": {"createdat": time}}).status == 201
    for op, ids in (("=", "a"), ("!=", "bc"), ("<=", "a"), (">", "bc"), ("<", ""), (">=", "abc")):
        assert matching_ids(registry, f"meta.createdat{op}2024-06-01T12:00:00+02:00") == ids, op
    assert matching_ids(registry, "meta.createdat=2024-06-01T10:00:00.500Z") == "b"


def test_leading_wildcard_matches_attributes_at_every_level(registry: Client) -> None:
    labels = {"labels": {"k": "v"}}
    members = {
        "dirs": {"d1": {**labels, "datas": {"x": {"meta": labels, "versions": {"1": labels, "2": {}}}, "y": {}}}}
    }
    members["dirs"]["d2"] = {"datas": {"x": {"versions": {"1": {"name": "v"}}}}}
    assert registry.patch("/", {**labels, **members}).status == 200
    for url, filter_, expected in (
        ("/", "*.k=v", ["d1", "d2"]),
        ("/", "*.k=w", None),
        ("/", "dirs.*.k=v", ["d1"]),
        ("/", "dirs.*=d2", ["d2"]),
        ("/", "dirs.datas.*=v", ["d2"]),
        ("/", "dirs.datas.versions.*.k=v", ["d1"]),
        ("/", "dirs.datas.meta.*.k=v", ["d1"]),
        ("/", "dirs.datas.meta.*=1", ["d1", "d2"]),
        ("/dirs", "*.k=v", ["d1"]),
        ("/dirs", "datas.versions.*.k=v", ["d1"]),
        ("/dirs/d1", "*.k=v", ["x", "y"]),
        ("/dirs/d1", "datas.versions.*.k=v", ["x"]),
        ("/dirs/d1/datas", "versions.*.k=v", ["x"]),
        ("/dirs/d1/datas", "meta.*.k=v", ["x"]),
        ("/dirs/d1/datas/x", "versions.*.k=v", ["1"]),
        ("/dirs/d1/datas/x", "meta.*.k=v", ["1", "2"]),
        ("/dirs/d1/datas/x/versions", "*.k=v", ["1"]),
    ):
        reply = registry.get(f"{url}?inline=*&filter={quote(filter_)}")
        if expected is None:
            assert reply.error == (404, "not_found", "/"), filter_
            continue
        plural = {"/": "dirs", "/dirs/d1": "datas", "/dirs/d1/datas/x": "versions"}.get(url)
        assert list(reply.json[plural] if plural else reply.json) == expected, (url, filter_)
    assert registry.get("/dirs/d1/datas/x/meta?filter=*.k=v").status == 200
    assert registry.get("/dirs/d1/datas/x/meta?filter=*.k=w").status == 404


def test_leading_wildcard_skips_attributes_of_responses(registry: Client) -> None:
    stored = registry.put("/dirs/d/datas/x", {"versions": {"1": {}, "2": {}, "3": {}, "4": {}, "5": {}}}).json
    for name in ("self", "metaurl", "versionsurl"):
        assert registry.get(f"/dirs/d/datas?filter=*={quote(stored[name])}").json == {}
    assert registry.get("/dirs/d/datas?filter=*=5").json.keys() == {"x"}  # versionid
    assert registry.get("/dirs/d/datas?filter=*.versionid").json == {}


def test_filter_compares_timestamps_of_wildcard_extensions_as_instants(registry: Client) -> None:
    open_ = {"*": {"type": "timestamp"}}
    types = {"singular": "dir", "attributes": open_, "resources": {}}
    assert registry.put("/modelsource", {"groups": {"dirs": types}}).status == 200
    registry.put("/dirs/d", {"when": "2024-06-01T10:00:00"})
    assert registry.get("/dirs/d").json["when"] == "2024-06-01T10:00:00Z"
    for text in ("when=2024-06-01T12:00:00+02:00", "*=2024-06-01T12:00:00+02:00", "when<2024-06-01T10:00:01"):
        assert registry.get(f"/dirs?filter={quote(text)}").json.keys() == {"d"}, text


def test_quoted_names_may_contain_quotes_operators_and_commas(registry: Client) -> None:
    members = {"it's": "x", 'a"b': "x", "a]=b": "x", "a,b<c": "x", "[1]": "x"}
    assert registry.put("/dirs/d/datas/a", {"xany": members}).status == 201
    registry.put("/dirs/d/datas/b", {"xany": {"a": "x"}})
    for name in ('["it\'s"]', "['a\"b']", "['a]=b']", "['a,b<c']", "['[1]']"):
        filter_ = f"xany{name}=x"
        assert matching_ids(registry, filter_) == "a", filter_
        assert matching_ids(registry, f"dataid=a, {filter_},xany{name}") == "a", filter_
        nested = registry.get(f"/dirs?filter={quote('datas.' + filter_)}").json["d"]["datasurl"]
        assert registry.get(nested.removeprefix(BASE)).json.keys() == {"a"}, nested


def test_index_with_too_many_digits_is_rejected(filled: Client) -> None:
    assert matching_ids(filled, "xarr[999999999]=1") == ""
    for digits in ("9" * 10, "9" * 5000, "٣"):
        reply = filled.get(f"/dirs/d/datas?filter={quote(f'xarr[{digits}]=1')}")
        assert reply.error == (400, "bad_filter", "/dirs/d/datas"), digits


def test_filter_with_too_many_expressions_is_rejected(filled: Client) -> None:
    for count in (257, 1000, 5000):
        joined = ",".join(["name=alpha"] * count)
        for query in (f"filter={joined}", "&".join(["filter=name=alpha"] * count), f"filter=name&filter={joined}"):
            reply = filled.get(f"/dirs/d/datas?{query}")
            assert reply.error == (400, "bad_filter", "/dirs/d/datas")
            assert "at most 256" in reply.json["args"]["error_detail"]
            assert len(reply.body) < 1000


@pytest.mark.parametrize(
    "text", ["name=alpha", "xstr!=*", "xany.deep[*].n=7", "*.stage=d*", "meta.*=1", "description=**a**", "xobj.a=x"]
)
def test_filter_with_the_most_expressions_is_answered(filled: Client, text: str) -> None:
    joined = ",".join([text] * 256)
    assert filled.get(f"/dirs/d/datas?filter={quote(joined)}").status == 200
    assert filled.get("/dirs/d/datas?" + "&".join([f"filter={quote(text)}"] * 256)).status == 200


def test_filter_with_a_long_value_is_answered(filled: Client) -> None:
    for text in (f"xstr={'a' * 60_000}", f"xany=*{'a' * 60_000}*", f"xany.{'k' * 60_000}=1", f"*={'*a' * 30_000}"):
        assert filled.get(f"/dirs/d/datas?filter={text}").json == {}


def test_document_view_points_to_the_default_version_only_if_the_filter_selects_it(registry: Client) -> None:
    registry.put("/dirs/d/datas/x", {"versions": {"1": {"name": "a"}, "2": {"name": "b"}}})
    for filter_, pointer in (("name=b", True), ("name=a", False), ("versionid=1", False)):
        for url, query, prefix in (
            ("/", f"dirs.datas.versions.{filter_}", "#/dirs/d/datas/x"),
            ("/dirs/d/datas", f"versions.{filter_}", "#/x"),
            ("/dirs/d/datas/x", f"versions.{filter_}", "#"),
        ):
            view = registry.get(f"{url}?doc&inline=*&filter={query}").json
            view = view.get("dirs", {}).get("d", {}).get("datas", view).get("x", view)
            expected = f"{prefix}/versions/2" if pointer else f"{BASE}/dirs/d/datas/x/versions/2"
            assert view["meta"]["defaultversionurl"] == expected, (url, filter_)
            assert ("2" in view["versions"]) == pointer
