"""The flag `filter`, and dot notation in it. The rows of the checklist by their ids.

Spec: core/spec.md#filter-flag; core/spec.md#dot-notation-in-filters; core/http.md#filter-flag.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.httpapi.conftest import BASE, Client, serve
from wirebook.storage.database import Database

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


def found(registry: Client, *filters: str, at: str = "/dirs/d/datas") -> str:
    """The ids that filters leave of a collection, as one text."""
    reply = registry.get(f"{at}?{'&'.join(f'filter={quote(filter_)}' for filter_ in filters)}")
    assert reply.status == 200, reply.body
    return "".join(reply.json)


HOLDS = {
    "C-FIL-01": {"xint>0,xint<10": "a", "xint>0, xbool=false": "b"},
    "C-FIL-02": {
        "xint": "abcd",
        "xint=9": "a",
        "xint=null": "",
        "description=": "a",
        "xint!=9": "bcd",
        "xint<>9": "bcd",
    }
    | {"xint<9": "c", "xint<=9": "ac", "xint>9": "bd", "xint>=9": "abd"},
    "C-FIL-03": {"name": "abc", "name=null": "d", "name!=null": "abc", "name<>null": "abc", "description": "ac"},
    "C-FIL-04": {"name!=alpha": "bcd", "xbool!=true": "bcd", "labels.stage!=dev": "bcd", "xint!=nine": "abcd"},
    "C-FIL-05": {"xtime<2030-01-01T00:00:00Z": "ad", "name<z": "ab", "nothing<5": "", "xint<abc": "", "xint>abc": ""},
    "C-FIL-06": {
        "name=ALPHA": "a",
        "name=äRGER": "c",
        "name=A\u0308rger": "c",
        "name=arger": "",
        "xuri=http://example.COM/a": "a",
    }
    | {
        "xint>=9.0": "abd",
        "xint=09": "a",
        "xint=9e0": "a",
        "xdec=-2.0": "b",
        "xdec>-2": "a",
        "xint=9007199254740992": "",
    }
    | {"xint=9007199254740993": "d", "xbool=TRUE": "", "xbool=true": "a", "xbool<true": "b", "xbool>=false": "ab"}
    | {"xtime=2024-06-01T10:00:00Z": "a", "xtime=2024-06-01T13:00:00+03:00": "a", "xtime>2024-06-01T10:00:00Z": "d"},
    "C-FIL-07": {"name=*A": "a", "name=*a*": "ab", "name=al*a": "a", "name=beta\\*star": "b", "name=beta\\*s*": "b"}
    | {"name=alp\\*a": "", "description=*": "ac", "xint=*": "abcd", "xint=1*": "", "name!=*a*": "cd", "name=al*z": ""}
    | {"name<>*": "d", "xany=*": "abc", "xtime=2024-06-01*": "ad"},
    "C-FIL-08": {"versions.versionid=1": "abcd", "versions.isdefault=true": "abcd", "meta.readonly=false": "abcd"}
    | {"meta.defaultversionid=1": "abcd", "meta.xref": "", "labels.stage=dev": "a", "xarr[0]=1": "a", "xobj.n=1": "a"},
    "C-FIL-09": {
        "nothing": "",
        "nothing=5": "",
        "no.thing=5": "",
        "xobj.zz=1": "",
        "name.x=1": "",
        "nothing!=5": "abcd",
    }
    | {"nothing=null": "abcd", "self": "", "metaurl": "", "versionscount=1": "", "dataid=A": "a", "NAME=alpha": "a"},
    "C-DOT-01": {"['name']=alpha": "a", '["name"]=alpha': "a", "labels['a.b']=dotted": "a", "labels.1=one": "a"}
    | {"labels['1']=one": "a", "labels[1]=one": "", "xarr[1]=2": "a", "xarr[2]": "", "xarr['1']=2": "", "xarr.1": ""}
    | {"xany.deep[0].n=7": "a", "xany['deep'][0]['n']=7": "a", "xany=5": "b", "xany=text": "c", "labels['a=b']": ""},
    "C-DOT-02": {
        "labels.*=dev": "a",
        "labels.*": "ac",
        "labels['*']": "",
        "labels[*]": "",
        "xarr[*]=2": "a",
        "xarr.*": "",
    }
    | {
        "xarr[*]": "a",
        "xarr[*]!=2": "bcd",
        "*": "abcd",
        "*=alpha": "a",
        "*=9": "a",
        "*!=9": "bcd",
        "*.stage=dev": "a",
        "*.stage": "ac",
        "*.k=v": "a",
        "*['a.b']=dotted": "a",
        "*[0]=1": "a",
        "*[*]=2": "a",
        "*.*=v": "a",
        "*.deep[0].n=7": "a",
        "*=2024-06-01T10:00:00Z": "a",
        "*=2024-06-01T13:00:00+03:00": "a",
        "*=2024-06-01T10:00:00": "a",
        "*.none": "",
        "labels['sta*']": "",
        "xmap.*=v": "a",
        "xany.deep[*].n=7": "a",
        "xobj.*=x": "a",
        "xarr[*]=null": "bcd",
    },
}


@pytest.mark.parametrize("row", HOLDS)
def test_what_holds(filled: Client, row: str) -> None:
    for text, ids in HOLDS[row].items():
        assert (text, found(filled, text)) == (text, ids)


def test_c_fil_01_several_filters_are_alternatives(filled: Client) -> None:
    assert found(filled, "xint=9", "name=beta*") == "ab"
    assert found(filled, "xint=9,name=zz", "xint<0,labels.stage=prod") == "c"
    assert found(filled, "", "xint=9") == "a"
    assert filled.get("/dirs/d/datas?filter=").json.keys() == DATAS.keys()


def test_c_fil_06_a_filter_of_form_encoded_text(filled: Client) -> None:
    assert list(filled.get("/dirs/d/datas?filter=description=a+b%26c%2Bd").json) == ["c"]


BROKEN = ("name<null", "name>=null", "name<a*", "labels=x", "labels!=x", "xarr=1", "xobj=1", "labels=*", "versions=1")
SYNTAX = (
    "=x",
    "<5",
    "a..b",
    ".name",
    "name.",
    "[x]",
    "[-1]",
    "[0]",
    "xarr[",
    "xarr[0",
    "labels['a]",
    "name =x",
    "xarr[]",
    "na!me=x",
    "na-me",
    "$schema",
    "%",
    "(name=x)",
    "labels.sta*",
    "labels.*age=dev",
    "na*=alpha",
    "*name",
    "**",
    "xmap.k*.l",
    "xint>0,,name",
    "xint>0,",
    ",xint>0",
    ",",
    "name, ,xint",
    ",excludeall",
)
TWICE = ("excludeall,name=x", "name=x,excludeall", "excludeall,excludeall", "excludeall&filter=name=x")


@pytest.mark.parametrize("text", [*BROKEN, *SYNTAX, *TWICE])
def test_c_fil_05_and_10_and_17_expressions_that_are_none(registry: Client, text: str) -> None:
    sent = text if "excludeall" in text else quote(text)
    reply = registry.get(f"/dirs/d/datas?filter={sent}")
    assert reply.error == (400, "bad_filter", "/dirs/d/datas")
    assert set(reply.json["args"]) == {"value", "error_detail"}


TREE: dict[str, Any] = {
    "g1": {"datas": {"r1": {"versions": {"v1": {}, "v2": {}}}, "r2": {"versions": {"v1": {"name": "n"}}}}},
    "g2": {"datas": {"r3": {"versions": {"v1": {}}}}},
}


@pytest.fixture
def tree(registry: Client) -> Client:
    assert registry.post("/dirs", TREE).status == 200
    return registry


def leaves(registry: Client, *filters: str) -> list[str]:
    """The Versions that are left, checked against the counts."""
    reply = registry.get(f"/?inline=*&{'&'.join(f'filter={filter_}' for filter_ in filters)}")
    assert reply.status == 200, reply.body
    left = []
    assert reply.json["dirscount"] == len(reply.json["dirs"])
    for group, entity in reply.json["dirs"].items():
        assert entity["datascount"] == len(entity["datas"])
        for id_, data in entity["datas"].items():
            assert data["versionscount"] == len(data["versions"])
            left += [f"{group}/{id_}/{version}" for version in data["versions"]]
    return left


def test_c_fil_13_the_worked_examples(tree: Client) -> None:
    r1 = ["g1/r1/v1", "g1/r1/v2"]
    assert leaves(tree, "dirs.datas.dataid=r1") == r1
    assert leaves(tree, "dirs.dirid=g2", "dirs.datas.dataid=r1") == [*r1, "g2/r3/v1"]
    assert leaves(tree, "dirs.dirid=g1", "dirs.datas.dataid=r1") == [*r1, "g1/r2/v1"]
    assert leaves(tree, "dirs.dirid=g1,dirs.datas.dataid=r1") == r1
    assert leaves(tree, "dirs.datas.versions.versionid=v1") == ["g1/r1/v1", "g1/r2/v1", "g2/r3/v1"]
    assert leaves(tree, "dirs.dirid=g1,dirs.datas.versions.versionid=v1") == ["g1/r1/v1", "g1/r2/v1"]
    assert leaves(tree, "dirs.datas.dataid=r3,dirs.dirid=g1", "dirs.datas.versions.name=n") == ["g1/r2/v1"]


def test_c_fil_11_only_what_matches_is_left_and_counted(tree: Client) -> None:
    shown = tree.get("/?filter=dirs.datas.dataid=r1&inline=dirs").json
    assert (shown["dirscount"], list(shown["dirs"]), shown["boxescount"]) == (1, ["g1"], 0)
    group = shown["dirs"]["g1"]
    assert (group["datascount"], group["filescount"]) == (1, 0)
    assert tree.get("/dirs/g1?filter=datas.versions.versionid=v2").json["datascount"] == 1
    shown = tree.get("/dirs/g1/datas/r1?filter=versions.versionid=v2&inline=versions").json
    assert (list(shown["versions"]), shown["versionscount"]) == (["v2"], 1)
    assert list(tree.get("/dirs/g1/datas/r1/versions?filter=versionid=V2").json) == ["v2"]


def test_c_fil_12_nothing_is_inlined(tree: Client) -> None:
    assert "dirs" not in tree.get("/?filter=dirs.datas.dataid=r1").json
    assert "versions" not in tree.get("/dirs/g1/datas?filter=versions.versionid=v1").json["r1"]


@pytest.mark.parametrize(
    ("url", "filters"),
    [
        ("/dirs/g1", {"dirid=g1": 200, "dirid=G2": 404, "datas.dataid=r3": 404, "datas.dataid=r1,dirid=g1": 200}),
        ("/dirs/g1/datas/r2", {"versionid=v1": 200, "meta.defaultversionid=v1": 200, "meta.epoch>7": 404}),
        ("/dirs/g1/datas/r2/meta", {"epoch=1": 200, "epoch=2": 404, "readonly=false": 200, "labels.x": 404}),
        ("/dirs/g1/datas/r2/versions/v1", {"name=N": 200, "name=x": 404, "isdefault=true,epoch=1": 200}),
        ("/", {"registryid=TEST": 200, "registryid=x": 404, "dirs.dirid=none": 404, "epoch>0": 200}),
    ],
)
def test_c_fil_14_an_entity_that_does_not_match_is_not_found(tree: Client, url: str, filters: dict[str, int]) -> None:
    for text, status in filters.items():
        reply = tree.get(f"{url}?filter={text}")
        assert (text, reply.status) == (text, status)
        if status == 404:
            assert reply.error == (404, "not_found", url)


def test_c_fil_14_documents_are_not_filtered(registry: Client) -> None:
    registry.put("/dirs/d/files/f", b"abc")
    for flag in ("name=x", "excludeall"):
        assert registry.get(f"/dirs/d/files/f?filter={flag}").body == b"abc"
        assert registry.get(f"/dirs/d/files/f/versions/1?filter={flag}").body == b"abc"
        assert registry.get(f"/dirs/d/files/f$details?filter={flag}").error == (404, "not_found", "/dirs/d/files/f")


def test_c_fil_15_urls_have_what_is_left_of_the_filter(tree: Client) -> None:
    shown = tree.get("/?filter=dirs.dirid=g2&filter=dirs.datas.dataid=r1&inline=*").json
    assert shown["dirsurl"] == f"{BASE}/dirs?filter=dirid=g2&filter=datas.dataid=r1"
    assert shown["dirs"]["g1"]["datasurl"] == f"{BASE}/dirs/g1/datas?filter=dataid=r1"
    assert shown["dirs"]["g2"]["datasurl"] == f"{BASE}/dirs/g2/datas"
    assert shown["dirs"]["g1"]["datas"]["r1"]["versionsurl"] == f"{BASE}/dirs/g1/datas/r1/versions"
    shown = tree.get("/?filter=registryid=test,dirs.datas.dataid=r1,dirs.datas.versions.versionid=v2&inline=dirs.datas")
    assert shown.json["dirsurl"] == f"{BASE}/dirs?filter=datas.dataid=r1,datas.versions.versionid=v2"
    data = shown.json["dirs"]["g1"]["datas"]["r1"]
    assert data["versionsurl"] == f"{BASE}/dirs/g1/datas/r1/versions?filter=versionid=v2"
    shown = tree.get("/?filter=dirs.dirid=g1&filter=dirs.datas.versions.versionid=v2&inline=dirs.datas").json
    assert shown["dirs"]["g1"]["datas"]["r2"]["versionsurl"] == f"{BASE}/dirs/g1/datas/r2/versions"


@pytest.mark.parametrize("text", ["a b&c+d", "100%", "x#y", "ä", 'q"<>', "é=1"])
def test_c_fil_15_urls_can_be_followed(registry: Client, text: str) -> None:
    registry.post("/dirs/d/datas", {"x": {"name": text}, "y": {"name": "other"}})
    url = registry.get(f"/?filter=dirs.datas.name={quote(text, safe='')}").json["dirsurl"]
    assert url.isascii()
    assert " " not in url
    group = registry.get(url).json["d"]
    assert group["datascount"] == 1
    assert list(registry.get(group["datasurl"]).json) == ["x"]


def test_c_fil_16_urls_of_nothing(tree: Client) -> None:
    shown = tree.get("/?filter=dirs.datas.dataid=r1&inline=dirs.datas").json
    assert shown["boxesurl"] == f"{BASE}/boxes?filter=excludeall"
    assert shown["dirs"]["g1"]["filesurl"] == f"{BASE}/dirs/g1/files?filter=excludeall"
    assert tree.get("/dirs/g2?filter=dirid=g2").json["filesurl"] == f"{BASE}/dirs/g2/files?filter=excludeall"
    assert tree.get(shown["boxesurl"]).json == {}


def test_c_fil_17_excludeall(tree: Client) -> None:
    for url in ("/dirs", "/dirs/g1/datas", "/dirs/g1/datas/r1/versions", "/dirs?inline=*"):
        reply = tree.get(f"{url}{'&' if '?' in url else '?'}filter=excludeall")
        assert (reply.status, reply.json) == (200, {})
    for url in ("/", "/dirs/g1", "/dirs/g1/datas/r1", "/dirs/g1/datas/r1/meta", "/dirs/g1/datas/r1/versions/v1"):
        assert tree.get(f"{url}?filter=excludeall").error == (404, "not_found", url)
    assert tree.get("/dirs?filter=excludeall=1").json == {}


def test_c_fil_11_with_other_flags(tree: Client) -> None:
    shown = tree.get("/?collections&filter=dirs.datas.dataid=r3").json
    assert (list(shown["dirs"]), shown["boxes"], shown["dirscount"]) == (["g2"], {}, 1)
    shown = tree.get("/?doc&inline=dirs.datas&filter=dirs.datas.dataid=r3").json
    assert shown["dirsurl"] == "#/dirs"
    assert shown["dirs"]["g2"]["datas"]["r3"]["versionsurl"] == f"{BASE}/dirs/g2/datas/r3/versions"
    assert list(tree.get("/export?filter=dirs.datas.dataid=r3").json["dirs"]) == ["g2"]
    assert list(tree.get("/dirs/g1/datas?filter=versions.versionid=v1&sort=dataid=desc").json) == ["r2", "r1"]
    assert list(tree.get("/dirs/g1/datas?filter=versions.versionid=v1&sort=dataid=desc&limit=1").json) == ["r2"]
    assert list(tree.get("/dirs/g1/datas?filter=dataid=r2&limit=1").json) == ["r2"]


def test_c_fil_08_of_a_cross_reference(tree: Client) -> None:
    tree.put("/dirs/g2/datas/s", {"meta": {"xref": "/dirs/g1/datas/r1"}})
    assert found(tree, "meta.xref=/dirs/g1/datas/r1", at="/dirs/g2/datas") == "s"
    assert found(tree, "versionid=v2", at="/dirs/g2/datas") == "s"
    shown = tree.get("/dirs/g2/datas?filter=versions.versionid=v2&inline=versions").json
    assert list(shown["s"]["versions"]) == ["v2"]


def test_c_fil_08_attributes_that_values_of_others_bring(database: Database) -> None:
    siblings = {"xtopic": {"type": "string"}, "xwhen": {"type": "timestamp"}}
    kind = {"type": "string", "ifvalues": {"queue": {"siblingattributes": siblings}}}
    resource = {"singular": "thing", "hasdocument": False, "attributes": {"xkind": kind}}
    model = {"groups": {"boxes": {"singular": "box", "resources": {"things": resource}}}}
    registry = serve(database, model)
    sent = {"a": {"xkind": "queue", "xtopic": "Orders"}, "b": {"xkind": "other"}}
    assert registry.post("/boxes/b/things", sent).status == 200
    assert found(registry, "xtopic=orders", at="/boxes/b/things") == "a"
    assert list(registry.get("/boxes/b/things?sort=xtopic=desc").json) == ["a", "b"]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_c_flg_03_a_filter_undoes_what_it_does_not_let_pass(registry: Client, method: str) -> None:
    reply = registry.send(method, "/dirs/d?filter=name=zz", {"name": "n"})
    assert reply.error == (404, "not_found", "/dirs/d")
    assert registry.get("/dirs").json == {}
    assert registry.send(method, "/dirs/d?filter=name=N", {"name": "n"}).status == 201
    assert registry.post("/dirs?filter=name=x", {"e": {"name": "x"}, "f": {}}).json.keys() == {"e"}
    assert registry.get("/dirs/f").status == 200
    reply = registry.post("/dirs/d/datas/x?filter=versionid=2", {})
    assert reply.error[:2] == (404, "not_found")
    assert registry.get("/dirs/d/datas").json == {}


def test_c_fil_the_time_of_a_meta_is_an_instant(registry: Client) -> None:
    for id_, time in (("a", "2024-06-01T10:00:00Z"), ("b", "2024-06-01T10:00:00.5Z"), ("c", "2025-01-01T00:00:00Z")):
        assert registry.put(f"/dirs/d/datas/{id_}", {"meta": {"createdat": time}}).status == 201
    for op, ids in (("=", "a"), ("!=", "bc"), ("<=", "a"), (">", "bc"), ("<", ""), (">=", "abc")):
        assert found(registry, f"meta.createdat{op}2024-06-01T12:00:00+02:00") == ids, op
    assert found(registry, "meta.createdat=2024-06-01T10:00:00.500Z") == "b"


def test_leading_wildcard_matches_attributes_at_every_level(registry: Client) -> None:
    labels = {"labels": {"k": "v"}}
    sent = {"dirs": {"d1": {**labels, "datas": {"x": {"meta": labels, "versions": {"1": labels, "2": {}}}, "y": {}}}}}
    sent["dirs"]["d2"] = {"datas": {"x": {"versions": {"1": {"name": "v"}}}}}
    assert registry.patch("/", {**labels, **sent}).status == 200
    for url, filter_, shown in (
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
        if shown is None:
            assert reply.error == (404, "not_found", "/"), filter_
            continue
        plural = {"/": "dirs", "/dirs/d1": "datas", "/dirs/d1/datas/x": "versions"}.get(url)
        assert list(reply.json[plural] if plural else reply.json) == shown, (url, filter_)
    assert registry.get("/dirs/d1/datas/x/meta?filter=*.k=v").status == 200
    assert registry.get("/dirs/d1/datas/x/meta?filter=*.k=w").status == 404


def test_leading_wildcard_skips_what_only_answers_have(registry: Client) -> None:
    shown = registry.put("/dirs/d/datas/x", {"versions": {"1": {}, "2": {}, "3": {}, "4": {}, "5": {}}}).json
    for name in ("self", "metaurl", "versionsurl"):
        assert registry.get(f"/dirs/d/datas?filter=*={quote(shown[name])}").json == {}
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


def test_document_view_points_to_the_default_version_only_if_the_filter_leaves_it(registry: Client) -> None:
    registry.put("/dirs/d/datas/x", {"versions": {"1": {"name": "a"}, "2": {"name": "b"}}})
    for filter_, pointer in (("name=b", True), ("name=a", False), ("versionid=1", False)):
        for url, query, prefix in (
            ("/", f"dirs.datas.versions.{filter_}", "#/dirs/d/datas/x"),
            ("/dirs/d/datas", f"versions.{filter_}", "#/x"),
            ("/dirs/d/datas/x", f"versions.{filter_}", "#"),
        ):
            shown = registry.get(f"{url}?doc&inline=*&filter={query}").json
            shown = shown.get("dirs", {}).get("d", {}).get("datas", shown).get("x", shown)
            expected = f"{prefix}/versions/2" if pointer else f"{BASE}/dirs/d/datas/x/versions/2"
            assert shown["meta"]["defaultversionurl"] == expected, (url, filter_)
            assert ("2" in shown["versions"]) == pointer
