"""Identifiers and the URLs of entities. Rows ID, SELF, XID and SS of the checklist."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import BASE, Client
from tests.httpapi.test_app import Web

X: Final = "/dirs/d/datas/x"
F: Final = "/dirs/d/files/f"
LONG: Final = "a" * 128


def shape(registry: Client) -> dict[str, Any]:
    """Everything there is, without what tells of reading."""
    found: dict[str, Any] = registry.get("/export").json
    return found


# -- ids ----------------------------------------------------------------------------------------------------------


def test_c_id_01_names_of_ids(registry: Client) -> None:
    registry.put(X, {})
    assert registry.get("/").json["registryid"] == "test"
    assert registry.get("/dirs/d").json["dirid"] == "d"
    shown = registry.get(X).json
    assert (shown["dataid"], shown["versionid"]) == ("x", "1")
    version = registry.get(f"{X}/versions/1").json
    assert (version["dataid"], version["versionid"]) == ("x", "1")
    meta = registry.get(f"{X}/meta").json
    assert (meta["dataid"], "versionid" in meta) == ("x", False)


GOOD: Final = ["a", "B", "0", "_", "a-._~:@Z9", "null.", "request2", LONG, "1.0", "_-"]
BAD: Final = ["-a", ".a", "~a", ":a", "@a", "a b", "a/b", "é", "a+b", "a$b", "a%b", f"{LONG}a", "a\u0000", "a,b", ""]


def test_c_id_02_characters(registry: Client) -> None:
    for id_ in GOOD:
        assert registry.put(f"/dirs/{id_}", {"dirid": id_}).status == 201, id_
        assert registry.post("/dirs/d/datas", {id_: {"versions": {id_: {}}}}).status == 200, id_
        assert registry.get(f"/dirs/{id_}").json["self"] == f"{BASE}/dirs/{id_}"
        assert registry.get(f"/dirs/d/datas/{id_}/versions/{id_}").json["versionid"] == id_
    before = shape(registry)
    for id_ in BAD:
        for path, sent in (
            ("/dirs", {id_: {}}),
            ("/", {"dirs": {id_: {}}}),
            ("/dirs/d/datas", {id_: {}}),
            (f"{X}/versions", {id_: {}}),
            ("/dirs/d", {"datas": {"y": {"versions": {id_: {}}}}}),
        ):
            reply = registry.post(path, sent)
            assert reply.error == (400, "malformed_id", path), id_
            assert reply.json["args"]["id"] == id_
    assert shape(registry) == before


@pytest.mark.parametrize("path", ["/dirs/\0", "/dirs/d/datas/\0", f"{X}/versions/\0", "/dirs/\0/datas", "/\0"])
def test_paths_with_a_character_that_no_database_has(registry: Client, path: str) -> None:
    for method in ("GET", "PUT", "PATCH", "POST", "DELETE"):
        assert registry.send(method, path, {}).status in (400, 404, 405)
    assert registry.get("/dirs?limit=1&after=%00").error == (400, "bad_request", "/dirs")
    assert registry.put(X, {"meta": {"xref": "/dirs/d/datas/\0"}}).error[:2] == (400, "malformed_xref")


@pytest.mark.parametrize("below", ["", "/meta", "/versions/1"])
def test_such_paths_are_refused_where_reads_share_a_query_too(registry: Client, below: str) -> None:
    registry.put(X, {})
    web = Web(registry)
    for path in (f"/dirs/d/datas/a%00{below}", f"/dirs/d%00/datas/x{below}", f"/dirs/d/files/a%00{below}$details"):
        assert web.get(X).status_code == 200
        answer = web.get(path)
        assert (answer.status_code, answer.json()["args"]) == (
            400,
            {"error_detail": "the path has the character U+0000"},
        )


@pytest.mark.parametrize("id_", ["-a", "a b", f"{LONG}a", "é"])
def test_c_id_02_characters_in_paths_and_bodies(registry: Client, id_: str) -> None:
    for path in (f"/dirs/{id_}", f"/dirs/d/datas/{id_}", f"{X}/versions/{id_}", f"/dirs/{id_}/datas/x/meta"):
        for method in ("PUT", "PATCH"):
            assert registry.send(method, path, {}).error == (400, "malformed_id", path)
        assert registry.get(path).status == 404
    assert registry.post(X, {"versionid": id_}).error == (400, "malformed_id", X)
    assert registry.put(X, {"versionid": id_}).error == (400, "malformed_id", X)
    assert registry.put(X, {"meta": {"defaultversionid": id_}}).error == (400, "malformed_id", X)
    assert registry.put(F, b"", xregistry_versionid="-a").error == (400, "malformed_id", F)


def test_c_id_03_and_04_case(registry: Client) -> None:
    registry.put("/dirs/abc/datas/Def/versions/V", {})
    before = shape(registry)
    for path, sent, there in (
        ("/dirs/ABC", {}, "/dirs/abc"),
        ("/dirs/Abc/datas/new", {}, "/dirs/abc"),
        ("/dirs/abc/datas/def", {}, "/dirs/abc/datas/Def"),
        ("/dirs/abc/datas/DEF/meta", {}, "/dirs/abc/datas/Def"),
        ("/dirs/abc/datas/Def/versions/v", {}, "/dirs/abc/datas/Def/versions/V"),
        ("/dirs/abc", {"datas": {"dEF": {}}}, "/dirs/abc/datas/Def"),
    ):
        for method in ("PUT", "PATCH"):
            assert registry.send(method, path, sent).error == (400, "bad_request", there), path
        if sent == {} and "meta" not in path:
            assert registry.get(path).error == (404, "not_found", path)
            assert registry.delete(path).status == 404
    for path, sent in (
        ("/dirs", {"new": {}, "NEW": {}}),
        ("/dirs/abc/datas", {"new": {}, "New": {}}),
        ("/dirs/abc/datas/new/versions", {"a": {}, "A": {}}),
        ("/", {"dirs": {"n": {}, "N": {}}}),
    ):
        assert registry.post(path, sent).error[:2] == (400, "bad_request"), path
    assert shape(registry) == before
    assert registry.put("/dirs/abc/files/def", b"").status == 201  # of another type
    assert registry.put("/boxes/ABC", {}).status == 201


PLACES: Final = [
    ("/", "registryid", "test", "registry", "/"),
    ("/dirs/d", "dirid", "d", "dir", "/dirs/d"),
    (X, "dataid", "x", "data", X),
    (X, "versionid", "1", "version", X),
    (f"{X}/versions/1", "versionid", "1", "version", f"{X}/versions/1"),
    (f"{X}/versions/1", "dataid", "x", "data", f"{X}/versions/1"),
    (f"{X}/meta", "dataid", "x", "data", f"{X}/meta"),
]


@pytest.mark.parametrize(("path", "name", "id_", "singular", "subject"), PLACES)
def test_c_id_05_and_07_ids_do_not_change(
    registry: Client, path: str, name: str, id_: str, singular: str, subject: str
) -> None:
    registry.put(X, {})
    before = shape(registry)
    for method in ("PUT", "PATCH"):
        for other in (id_.upper() if id_.isalpha() else f"{id_}0", "other", "-a"):
            reply = registry.send(method, path, {name: other})
            assert reply.error == (400, "mismatched_id", subject)
            assert reply.json["args"] == {"singular": singular, "invalid_id": other, "expected_id": id_}
    assert shape(registry) == before
    for method in ("PUT", "PATCH"):
        assert registry.send(method, path, {name: id_}).json[name] == id_
        assert registry.send(method, path, {name: None}).json[name] == id_


def test_c_id_05_ids_of_what_is_nested(registry: Client) -> None:
    registry.put(X, {})
    before = shape(registry)
    for method, path, sent, subject in (
        ("POST", "/", {"dirs": {"d": {"dirid": "D"}}}, "/dirs/d"),
        ("POST", "/dirs", {"new": {"dirid": "old"}}, "/dirs/new"),
        ("PATCH", "/dirs", {"d": {"dirid": "e"}}, "/dirs/d"),
        ("PUT", "/", {"dirs": {"d": {"datas": {"x": {"dataid": "X"}}}}}, X),
        ("POST", "/dirs/d/datas", {"x": {"dataid": "y"}}, X),
        ("POST", "/dirs/d/datas", {"x": {"meta": {"dataid": "y"}}}, f"{X}/meta"),
        ("POST", f"{X}/versions", {"v": {"dataid": "y"}}, f"{X}/versions/v"),
        ("POST", f"{X}/versions", {"v": {"versionid": "V"}}, f"{X}/versions/v"),
        ("PUT", X, {"versions": {"1": {"versionid": "2"}}}, f"{X}/versions/1"),
        ("POST", X, {"dataid": "y"}, f"{X}/versions/2"),
        ("POST", X, {"dataid": "y", "versionid": "v"}, f"{X}/versions/v"),
        ("PUT", "/dirs/d/datas/new", {"dataid": "y"}, "/dirs/d/datas/new"),
        ("PUT", "/dirs/new", {"dirid": "New"}, "/dirs/new"),
        ("PUT", "/dirs/d/datas/new/meta", {"dataid": "y"}, "/dirs/d/datas/new/meta"),
        ("PUT", f"{X}/versions/new", {"versionid": "y"}, f"{X}/versions/new"),
    ):
        assert registry.send(method, path, sent).error == (400, "mismatched_id", subject), (method, path, sent)
    assert registry.put(F, b"", xregistry_fileid="g").error == (400, "mismatched_id", F)
    assert registry.put(f"{F}/versions/a", b"", xregistry_versionid="b").error[1] == "mismatched_id"
    assert shape(registry) == before


def test_c_id_06_words_that_are_reserved(registry: Client) -> None:
    for word in ("null", "request"):
        for method, path, sent in (
            ("PUT", f"{X}/versions/{word}", {}),
            ("POST", f"{X}/versions", {word: {}}),
            ("POST", X, {"versionid": word}),
            ("PUT", X, {"versionid": word}),
            ("PUT", X, {"versions": {word: {}}}),
            ("PUT", X, {"meta": {"defaultversionid": word}}),
        ):
            assert registry.send(method, path, sent).error == (400, "malformed_id", path), (method, path)
        assert registry.get(X).status == 404
        assert registry.put(f"/dirs/{word}/datas/{word}", {}).status == 201
    assert registry.put(f"{X}/versions/NULL", {}).status == 201


def test_c_id_07_the_default_version_is_named_by_its_id(registry: Client) -> None:
    registry.post(f"{X}/versions", {"v1": {}, "v2": {}})
    for sent in ({"versionid": "v1"}, {"versionid": "v9"}, {"versionid": "v9", "versions": {"v9": {}}},
                 {"versionid": "v1", "meta": {"defaultversionid": "v1", "defaultversionsticky": True}}):  # fmt: skip
        for method in ("PUT", "PATCH"):
            reply = registry.send(method, X, sent)
            assert reply.error == (400, "mismatched_id", X), sent
            assert reply.json["args"]["expected_id"] == "v2"
    assert registry.patch(X, {"versionid": "v2", "name": "n"}).status == 200
    assert registry.put("/dirs/d/datas/y", {"versionid": "first", "name": "n"}).json["versionid"] == "first"


def test_c_id_08_and_09_numbers_that_the_server_chooses(registry: Client) -> None:
    def new() -> str:
        return str(registry.post(X, {}).json["versionid"])

    assert [registry.put(X, {}).json["versionid"], new(), new()] == ["1", "2", "3"]
    registry.delete(f"{X}/versions/3")
    assert new() == "4"
    registry.post(f"{X}/versions", {"5": {}, "07": {}, "100": {}})
    assert [new(), new()] == ["6", "7"]
    assert registry.put(f"{X}/versions/8", {}).status == 201
    registry.delete(f"{X}/versions/8")
    assert new() == "8"
    assert registry.post("/dirs/d/datas/y", {}).json["versionid"] == "1"
    registry.delete(X)
    assert new() == "1"


NUMBERED = {"1": {}, "3": {}, "v": {}, "007": {}, "1.0": {}, "9" * 30: {}}


@pytest.mark.parametrize(
    ("method", "path", "wrap"),
    [
        ("PUT", X, lambda resource: resource),
        ("PATCH", X, lambda resource: resource),
        ("POST", "/dirs/d/datas", lambda resource: {"x": resource}),
        ("PUT", "/dirs/d", lambda resource: {"datas": {"x": resource}}),
        ("POST", "/", lambda resource: {"dirs": {"d": {"datas": {"x": resource}}}}),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_automatic_id_follows_the_numbers_that_a_resource_was_sent_with(
    registry: Client, method: str, path: str, wrap: Any, exists: bool
) -> None:
    if exists:
        registry.put(X, {})
    assert registry.send(method, path, wrap({"versions": NUMBERED})).status in (200, 201)
    assert [registry.post(X, {}).json["versionid"] for _ in range(2)] == ["4", "5"]


def test_automatic_ids_of_an_export_continue_where_they_were(registry: Client) -> None:
    for _ in range(4):
        registry.post(X, {})
    registry.delete(f"{X}/versions/2")
    exported = registry.get("/export").json
    registry.delete("/dirs")
    assert registry.put("/?ignore=epoch", exported).status == 200
    assert registry.post(X, {}).json["versionid"] == "5"


def test_c_id_10_where_only_the_server_chooses(registry: Client) -> None:
    path = "/dirs/d/svids/s"
    for method, at, sent in (
        ("PUT", f"{path}/versions/v", {}),
        ("POST", f"{path}/versions", {"v": {}}),
        ("POST", f"{path}$details", {"versionid": "v"}),
        ("PUT", f"{path}$details", {"versionid": "v"}),
        ("PUT", f"{path}$details", {"versions": {"v": {}}}),
        ("POST", "/dirs/d/svids", {"s": {"versions": {"v": {}}}}),
        ("PUT", f"{path}$details", {"meta": {"defaultversionid": "v"}}),
    ):
        reply = registry.send(method, at if "versions/v" not in at else f"{at}$details", sent)
        assert reply.error == (400, "versionid_not_allowed", path), (method, at)
        assert reply.json["args"] == {"plural": "svids"}
        assert registry.get("/dirs/d").status == 404
    assert registry.put(path, b"", xregistry_versionid="v").error == (400, "versionid_not_allowed", path)
    assert registry.post(path, b"").status == 201
    assert registry.put(f"{path}$details", {"versionid": "1"}).status == 200
    assert registry.post(f"{path}/versions", {"1": {"name": "n"}}).json["1"]["name"] == "n"


# -- self and xid -------------------------------------------------------------------------------------------------


def entities(registry: Client) -> dict[str, Any]:
    """A registry with every kind of entity; all of them as the whole of it shows them, by xid."""
    registry.put(X, {})
    registry.put(F, b"abc")
    registry.put(f"{F}/versions/v2", b"def")
    return walk(registry.get("/?inline=*").json)


def walk(node: Any) -> dict[str, Any]:
    found = {}
    if isinstance(node, dict):
        if "xid" in node:
            found[node["xid"]] = node
        for each in node.values():
            found |= walk(each)
    return found


XIDS: Final = {
    "/", "/dirs/d", X, f"{X}/meta", f"{X}/versions/1", F, f"{F}/meta", f"{F}/versions/1", f"{F}/versions/v2",
}  # fmt: skip


def test_c_self_01_to_03_and_05_c_xid_01_amb_07_every_entity_has_its_url(registry: Client) -> None:
    shown = entities(registry)
    assert shown.keys() == XIDS
    for xid, entity in shown.items():
        has_details = "/files/" in xid and not xid.endswith("/meta")
        assert entity["self"] == f"{BASE}{xid}{'$details' if has_details else ''}"
        alone = registry.get(entity["self"]).json
        assert (alone["self"], alone["xid"]) == (entity["self"], xid)
    assert shown["/"]["self"] == f"{BASE}/"
    assert registry.get("/dirs/d/files").json["f"]["self"] == f"{BASE}{F}$details"
    assert registry.get(f"{F}/versions").json["1"]["self"] == f"{BASE}{F}/versions/1$details"


def test_c_self_02_and_03_in_answers_to_writes(registry: Client) -> None:
    assert registry.put(f"{F}$details", {}).json["self"] == f"{BASE}{F}$details"
    assert registry.post(f"{F}$details", {}).json["self"] == f"{BASE}{F}/versions/2$details"
    assert registry.post("/dirs/d/files", {"g": {}}).json["g"]["self"] == f"{BASE}/dirs/d/files/g$details"
    for method in ("PUT", "PATCH", "GET"):
        reply = registry.send(method, f"{X}$details", None if method == "GET" else {})
        assert (reply.json["self"], reply.json["xid"]) == (f"{BASE}{X}", X)
        assert reply.headers.get("Location", f"{BASE}{X}") == f"{BASE}{X}"
    assert registry.get(f"{X}/versions/1$details").json["self"] == f"{BASE}{X}/versions/1"
    assert registry.get(f"{F}/meta").json["defaultversionurl"] == f"{BASE}{F}/versions/2$details"
    assert registry.get(f"{X}/meta").json["defaultversionurl"] == f"{BASE}{X}/versions/1"


def test_c_self_04_in_headers(registry: Client) -> None:
    made = registry.put(F, b"abc")
    assert (made.headers["xRegistry-self"], made.headers["Location"]) == (f"{BASE}{F}",) * 2
    assert registry.get(F).headers["xRegistry-xid"] == F
    version = registry.get(f"{F}/versions/1").headers
    assert (version["xRegistry-self"], version["xRegistry-xid"]) == (f"{BASE}{F}/versions/1", f"{F}/versions/1")
    assert registry.get(F).headers["xRegistry-metaurl"] == f"{BASE}{F}/meta"


@pytest.mark.parametrize(
    ("path", "pointers"),
    [
        ("/", ["#/", "#/dirs/d", "#/dirs/d/files/a~0b", "#/dirs/d/files/a~0b/versions/1", "#/dirs/d/files/a~0b/meta"]),
        ("/dirs", ["#/d", "#/d/files/a~0b", "#/d/files/a~0b/versions/1", "#/d/files/a~0b/meta"]),
        ("/dirs/d", ["#/", "#/files/a~0b", "#/files/a~0b/versions/1", "#/files/a~0b/meta"]),
        ("/dirs/d/files", ["#/a~0b", "#/a~0b/versions/1", "#/a~0b/meta"]),
        ("/dirs/d/files/a~b$details", ["#/", "#/versions/1", "#/meta"]),
        ("/dirs/d/files/a~b/versions", ["#/1"]),
        ("/dirs/d/files/a~b/versions/1$details", ["#/"]),
        ("/dirs/d/files/a~b/meta", ["#/"]),
    ],
)
def test_c_self_06_document_view(registry: Client, path: str, pointers: list[str]) -> None:
    registry.put("/dirs/d/files/a~b", b"abc")
    shown = registry.get(f"{path}?doc&inline=*" if "versions/" not in path and "/meta" not in path else f"{path}?doc")
    found = {each["self"]: xid for xid, each in walk(shown.json).items()}
    assert set(found) == set(pointers)
    for pointer, xid in found.items():
        node = shown.json
        for step in filter(None, pointer.removeprefix("#/").split("/")):
            node = node[step.replace("~0", "~")]
        assert node["xid"] == xid


def test_c_self_06_what_is_not_there_keeps_its_url(registry: Client) -> None:
    registry.put(F, b"abc")
    shown = registry.get("/dirs/d?doc&inline=files").json
    assert shown["filesurl"] == "#/files"
    assert shown["datasurl"] == f"{BASE}/dirs/d/datas"
    inner = shown["files"]["f"]
    assert (inner["metaurl"], inner["versionsurl"]) == (f"{BASE}{F}/meta", f"{BASE}{F}/versions")
    meta = registry.get(f"{F}$details?doc&inline=meta").json["meta"]
    assert (meta["self"], meta["defaultversionurl"]) == ("#/meta", f"{BASE}{F}/versions/1$details")


def test_c_xid_02_and_03_an_xid_is_what_it_is(registry: Client) -> None:
    entities(registry)
    for path, xid in ((f"{X}$details", X), (f"{F}$details", F), (f"{F}/versions/v2$details", f"{F}/versions/v2")):
        assert registry.get(path).json["xid"] == xid
        for value in ("/dirs/other", 5, "no xid", None):
            for method in ("PUT", "PATCH"):
                assert registry.send(method, path, {"xid": value}).json["xid"] == xid
    assert registry.put(F, b"", xregistry_xid="no xid").headers["xRegistry-xid"] == F


def test_c_xid_04_an_xid_that_is_none(registry: Client) -> None:
    reply = registry.put(X, {"xxid": "dirs/d"})
    assert reply.error == (400, "invalid_attribute", f"{X}/versions/1")
    reply = registry.put(X, {"meta": {"xref": "dirs/d"}})
    assert reply.error == (400, "malformed_xref", X)
    assert reply.json["args"]["xref"] == "dirs/d"


# -- shortself ----------------------------------------------------------------------------------------------------


def test_c_ss_01_to_03_short_urls(registry: Client) -> None:
    assert all("shortself" not in entity for entity in entities(registry).values())
    assert "xRegistry-shortself" not in registry.get(F).headers
    assert registry.patch("/capabilities", {"shortself": True}).json["shortself"] is True
    shown = entities(registry)
    shorts = {xid: each["shortself"] for xid, each in shown.items()}
    assert len(set(shorts.values())) == len(XIDS)
    for xid, short in shorts.items():
        assert short.startswith(f"{BASE}/")
        assert "$" not in short
        alone = registry.get(f"{short}$details" if "/files/" in xid and not xid.endswith("/meta") else short).json
        assert (alone["xid"], alone["shortself"]) == (xid, short)
        assert "shortself" not in registry.get(f"{short}?doc").json
    assert registry.get(F).headers["xRegistry-shortself"] == shorts[F]
    assert registry.get(f"{shorts['/dirs/d']}?inline=files").json["files"].keys() == {"f"}
    assert all("shortself" not in each for each in walk(registry.get("/export").json).values())
    registry.patch("/capabilities", {"shortself": False})
    assert all("shortself" not in entity for entity in entities(registry).values())
    registry.patch("/capabilities", {"shortself": True})
    assert {xid: entity["shortself"] for xid, entity in entities(registry).items()} == shorts


@pytest.mark.parametrize("level", ["registry", "group", "version", "meta"])
def test_c_ss_04_the_name_is_reserved(registry: Client, level: str) -> None:
    source = registry.get("/modelsource").json
    group = source["groups"]["dirs"]
    at = {"registry": source, "group": group, "version": group["resources"]["datas"],
          "meta": group["resources"]["datas"]}[level]  # fmt: skip
    at["metaattributes" if level == "meta" else "attributes"] = {"shortself": {"type": "string"}}
    assert registry.put("/modelsource", source).error[:2] == (400, "model_error")
    for path in ("/", "/dirs/d", X, f"{X}/meta"):
        assert "shortself" not in registry.put(path, {"shortself": "mine"}).json


def test_c_ss_02_and_03_short_urls_are_shorter_and_stay(registry: Client) -> None:
    registry.patch("/capabilities", {"shortself": True})
    group, long = f"/dirs/{'g' * 40}", f"/dirs/{'g' * 40}/files/{'f' * 40}"
    registry.put(long, b"text")
    registry.put(f"{group}/files/xref$details", {"meta": {"xref": long}})
    shown = walk(registry.get(f"{group}?inline=*").json)
    shorts = {xid: entity["shortself"] for xid, entity in shown.items()}
    assert len(set(shorts.values())) == len(shorts) == 7
    assert all(len(short) < len(BASE + xid) for xid, short in shorts.items())
    assert registry.get(shorts[long]).body == b"text"
    assert registry.get(shorts[long]).headers["xRegistry-shortself"] == shorts[long]
    assert registry.get(f"{shorts[long]}/versions").json.keys() == {"1"}
    assert registry.get(f"{shorts[f'{group}/files/xref']}$details").json["xid"] == f"{group}/files/xref"
    assert registry.put(shorts[long], b"new").headers["xRegistry-epoch"] == "2"
    assert registry.patch(f"{shorts[long]}$details?inline=file", {"name": "n"}).json["xid"] == long
    assert registry.post(shorts[long], b"").headers["xRegistry-xid"] == f"{long}/versions/2"
    again = {xid: entity["shortself"] for xid, entity in walk(registry.get(f"{group}?inline=*").json).items()}
    assert again == shorts | {xid: again[xid] for xid in again.keys() - shorts.keys()}
    registry.patch("/capabilities", {"shortself": False})
    assert registry.get(f"{shorts[group]}?inline=files").json["files"].keys() == {"f" * 40, "xref"}
    assert registry.delete(shorts[long]).status == 204
    registry.put(f"{group}/files/other", b"")  # perhaps in the row of the one before
    assert registry.get(shorts[long]).error[:2] == (404, "not_found")


@pytest.mark.parametrize(
    "path", ["/.r/0000", "/.r/00000", "/.g/zzzz1", "/.r/abcd9/meta", "/.r/zzzzzzzzzzzzzzzz", "/.x/00001", "/.r"]
)
def test_c_ss_03_short_urls_of_nothing(registry: Client, path: str) -> None:
    registry.put(X, {})
    for method in ("GET", "PUT", "DELETE"):
        assert registry.send(method, path, {}).error[0] == 404
