"""What writes answer, what their bodies may be, exports, and headers. The rows of the checklist by their ids.

Spec: core/http.md#creating-or-updating-entities; core/http.md#get-export.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import refuses
from tests.httpapi.conftest import BASE, FIXTURE, Client, serve
from wirebook.storage.database import Database

F, X = "/dirs/d/files/f", "/dirs/d/datas/x"
JSON = "application/json; charset=utf-8"


@pytest.fixture
def filled(registry: Client) -> Client:
    assert registry.put(F, b'{"a": 1}', content_type="application/json").status == 201
    assert registry.post(f"{X}/versions", {"v1": {}, "v2": {}}).status == 200
    return registry


# -- answers to writes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("GET", "/", None),
        ("GET", "/dirs", None),
        ("GET", f"{F}$details", None),
        ("GET", f"{F}/meta", None),
        ("GET", "/export", None),
        ("GET", "/capabilitiesoffered", None),
        ("PUT", "/", {}),
        ("POST", "/", {}),
        ("POST", "/dirs/d", {}),
        ("PATCH", f"{X}/meta", {}),
        ("PUT", "/capabilities", {"versionmodes": ["*"]}),
        ("PUT", "/modelsource", FIXTURE),
        ("GET", "/nope", None),
        ("PUT", "/model", {}),
        ("POST", f"{X}/versions", b"{"),
    ],
)
def test_c_http_04_json_says_that_it_is(filled: Client, method: str, path: str, sent: Any) -> None:
    reply = filled.send(method, path, sent)
    assert reply.headers["Content-Type"] == JSON
    assert isinstance(reply.json, dict)
    reply.body.decode("utf-8")


def test_c_http_05_and_06_what_is_made_and_what_is_changed(registry: Client) -> None:
    paths = (
        "/dirs/d",
        X,
        f"{X}/meta",
        f"{X}/versions/v1",
        f"{F}$details",
        f"{F}/versions/v1$details",
        "/dirs/d/datas/m/meta",
    )
    for method in ("PUT", "PATCH"):
        registry.delete("/dirs")
        for path in paths:
            reply = registry.send(method, path, {})
            if path != f"{X}/meta":
                assert (reply.status, reply.headers["Location"]) == (201, reply.json["self"]), path
            assert reply.json == registry.get(path).json
            again = registry.send(method, path, {})
            assert (again.status, again.headers.get("Location")) == (200, None), path
            assert again.json == registry.get(path).json
    reply = registry.patch("/", {"name": "n"})
    assert (reply.status, "Location" in reply.headers) == (200, False)


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_c_http_07_one_of_several_new_versions(registry: Client, method: str) -> None:
    registry.put(X, {})
    several = registry.send(method, X, {"versions": {"b": {}, "a": {}}})
    assert several.headers["Content-Location"] == f"{BASE}{X}/versions/b"
    registry.patch(f"{X}/meta", {"defaultversionid": "a"})
    beside = registry.send(method, X, {"versions": {"d": {}, "a": {}, "c": {}}})
    assert (beside.status, beside.json["versionid"]) == (200, "a")
    assert beside.headers["Content-Location"] == f"{BASE}{X}/versions/d"


def test_c_http_07_where_a_new_version_is(registry: Client) -> None:
    made = [
        (registry.put(X, {}), f"{X}/versions/1"),
        (registry.patch("/dirs/d/datas/y", {"versionid": "a"}), "/dirs/d/datas/y/versions/a"),
        (registry.put(f"{X}/versions/v2", {}), f"{X}/versions/v2"),
        (registry.put(f"{F}$details", {}), f"{F}/versions/1$details"),
        (registry.patch(f"{F}/versions/b$details", {}), f"{F}/versions/b$details"),
        (registry.put("/dirs/d/files/g", b"x"), "/dirs/d/files/g/versions/1"),
    ]
    for reply, version in made:
        assert (reply.status, reply.headers["Content-Location"]) == (201, BASE + version)
    for path in (X, f"{X}/versions/v2", f"{F}$details"):
        assert "Content-Location" not in registry.put(path, {}).headers


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_c_http_08_collections_answer_with_what_was_written(filled: Client, method: str) -> None:
    filled.put("/dirs/other/datas/other", {})
    made = {
        "/dirs": ({"a": {}, "d": {}}, ["a", "d"]),
        "/dirs/d/datas": ({"z": {}, "x": {}, "a": {}}, ["a", "x", "z"]),
        f"{X}/versions": ({"v3": {}, "v1": {}}, ["v1", "v3"]),
        "/boxes": ({}, []),
    }
    for path, (sent, ids) in made.items():
        reply = filled.send(method, path, sent)
        assert (reply.status, list(reply.json), "Location" in reply.headers) == (200, ids, False)
        assert all(each == filled.get(path).json[id_] for id_, each in reply.json.items())
    for path, sent in (("/", {"dirs": {"n": {}}, "boxes": {}}), ("/dirs/d", {"datas": {"n": {}}, "files": {}})):
        reply = filled.post(path, sent)
        assert (reply.status, {name: list(each) for name, each in reply.json.items()}) == (
            200,
            {name: list(each) for name, each in sent.items()},
        )


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_c_http_09_nothing_is_inlined_unasked(registry: Client, method: str) -> None:
    nested = {"datas": {"x": {"meta": {}, "versions": {"v": {}}}}, "files": {"f": {"file": {"a": 1}}}}
    assert not {"datas", "files"} & registry.send(method, "/dirs/d", nested).json.keys()
    shown = registry.send(
        method, "/", {"dirs": {"d": {}}, "capabilities": {"versionmodes": ["*"]}, "modelsource": FIXTURE}
    )
    assert not {"dirs", "capabilities", "model", "modelsource"} & shown.json.keys()
    assert not {"meta", "versions"} & registry.send(method, X, {"meta": {}, "versions": {"w": {}}}).json.keys()
    for path in (f"{F}$details", f"{F}/versions/1$details"):
        assert not {"file", "filebase64"} & registry.send(method, path, {"file": "x"}).json.keys()
    for path, sent in (("/dirs", {"d": nested}), ("/dirs/d/files", nested["files"])):
        for each in registry.post(path, sent).json.values():
            assert not {"datas", "files", "file", "meta", "versions"} & each.keys()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *[(method, path) for method in ("PUT", "PATCH") for path in ("/", "/capabilities", "/dirs/d", X, f"{X}/meta")],
        *[(method, path) for method in ("POST", "PATCH") for path in ("/dirs", "/dirs/d/files", f"{X}/versions")],
        *[("POST", path) for path in ("/", "/dirs/d", X, f"{F}$details")],
        *[("PUT", path) for path in ("/modelsource", f"{F}$details", f"{F}/versions/1$details", f"{X}/versions/v1")],
    ],
)
def test_c_http_10_a_body_is_needed_and_must_be_an_object(filled: Client, method: str, path: str) -> None:
    before = filled.get("/export").body
    assert filled.send(method, path).error == (400, "missing_body", path)
    for body in (b" ", b"{", b"{} {}", b"{,}", b'{"a":1,}', b"\xef\xbb\xbf{}", b'{"name": "\xff"}', b'{"name": NaN}'):
        assert filled.send(method, path, body).error == (400, "parsing_data", path), body
    for body in (b"[]", b"5", b'"x"', b"true"):
        code = filled.send(method, path, body).error[1]
        special = {"/capabilities": "capability_error", "/modelsource": "model_error"}
        assert code == special.get(path, "parsing_data")
    deep = b'{"labels":' * 101 + b"{}" + b"}" * 101
    assert filled.send(method, path, deep).error == (400, "parsing_data", path)
    assert filled.send(method, path, b'{"name":' * 200_000).error == (400, "parsing_data", path)
    assert filled.get("/export").body == before


DUPLICATES = {
    b'{"name": "a", "name": "b"}': ("name", "/name"),
    b'{"a": {"labels": {"x": "1", "y": "2", "x": "1"}}}': ("x", "/a/labels/x"),
    b'{"versions": {"v": {"xarr": [1, {"n": {}, "n": {}}]}}}': ("n", "/versions/v/xarr/1/n"),
    b'{"a/b~": {"\\u0061": 1, "a": 1}}': ("a", "/a~1b~0/a"),
}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *[(method, path) for method in ("PUT", "PATCH") for path in ("/", "/capabilities", "/dirs/d", X, f"{X}/meta")],
        *[(method, path) for method in ("POST", "PATCH") for path in ("/dirs", "/dirs/d/files", f"{X}/versions")],
        *[("POST", path) for path in ("/", "/dirs/d", X, f"{F}$details")],
        *[("PUT", path) for path in ("/modelsource", f"{F}$details", f"{F}/versions/1$details", f"{X}/versions/v1")],
        *[("DELETE", path) for path in ("/dirs", "/dirs/d/files", f"{X}/versions")],
    ],
)
def test_duplicate_member_in_a_body_is_rejected(filled: Client, method: str, path: str) -> None:
    for body, (name, pointer) in DUPLICATES.items():
        error = refuses(filled, method, path, body, "parsing_data")
        why = f"duplicate member '{name}' at '{pointer}'; keep one of them"
        assert (error["status"], error["args"]["error_detail"]) == (400, why)


def test_c_http_10_any_type_of_body_is_read_as_json(registry: Client) -> None:
    for type_ in (
        "text/plain",
        "application/xml",
        "",
        "application/x-www-form-urlencoded",
        "application/json; charset=x",
    ):
        reply = registry.put("/dirs/d", {"labels": {"a": type_}}, content_type=type_, accept="text/html")
        assert (reply.json["labels"], reply.headers["Content-Type"]) == ({"a": type_}, JSON)


def test_c_neg_03_patches_are_plain_json(filled: Client) -> None:
    filled.patch("/dirs/d", {"labels": {"a": "1"}})
    for type_ in ("application/merge-patch+json", "application/json-patch+json"):
        assert filled.patch("/dirs/d", {"labels": {"b": "2"}}, content_type=type_).json["labels"] == {"b": "2"}
    assert filled.patch("/dirs/d", [{"op": "remove", "path": "/labels"}]).error == (400, "parsing_data", "/dirs/d")


def test_c_http_11_and_12_amb_09_a_version_by_post(registry: Client) -> None:
    for path, sent, end in (
        ("/dirs/n/datas/x", {"name": "a"}, ""),
        ("/dirs/n/files/x$details", {"name": "a"}, "$details"),
    ):
        for id_ in ("1", "2"):
            reply = registry.post(path, sent)
            url = f"{BASE}{path.removesuffix('$details')}/versions/{id_}{end}"
            assert (reply.status, reply.headers["Location"], reply.json["self"]) == (201, url, url)
        again = registry.post(path, {"versionid": "1"})
        assert (again.status, "Location" in again.headers, again.json["versionid"]) == (200, False, "1")
        assert "name" not in again.json
        made = registry.post(path, {"versionid": "v", "metaurl": "x", "versionscount": 7, "versionsurl": 5})
        assert (made.status, made.json["versionid"]) == (201, "v")
    reply = registry.post("/dirs/n/files/doc", b"text", content_type="text/plain")
    assert (reply.status, reply.body) == (201, b"text")
    assert reply.headers["Location"] == reply.headers["xRegistry-self"] == f"{BASE}/dirs/n/files/doc/versions/1"


def test_amb_08_a_version_by_post_has_its_own_xid(registry: Client) -> None:
    reply = registry.post(f"{F}$details", {})
    assert (reply.json["xid"], reply.json["self"]) == (f"{F}/versions/1", f"{BASE}{F}/versions/1$details")


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_c_http_13_a_resource_has_a_version(filled: Client, method: str) -> None:
    path = "/dirs/new/datas/new/versions"
    reply = filled.send(method, path, {})
    assert reply.error == (400, "missing_versions", path)
    assert "args" not in reply.json
    assert filled.get("/dirs/new").status == 404
    reply = filled.send(method, f"{X}/versions", {})
    assert (reply.status, reply.json) == (200, {})
    assert filled.post("/dirs/new/datas", {"n": {"versions": {}}}).json["n"]["versionscount"] == 1


# -- exports ------------------------------------------------------------------------------------------------------


def test_c_http_14_exports_are_the_whole_document(filled: Client) -> None:
    whole = filled.get("/export").body
    assert whole == filled.get("/?doc&inline=*,capabilities,modelsource").body
    assert not {"model"} & filled.get("/export").json.keys()
    assert filled.get("/export?inline=dirs").body == filled.get("/?doc&inline=dirs").body
    assert (
        filled.get("/export?filter=dirs.dirid=no").json
        == filled.get("/?doc&inline=*,capabilities,modelsource&filter=dirs.dirid=no").json
    )
    filled.patch("/capabilities", {"flags": []})
    whole = filled.get("/export").body
    assert filled.get("/export").json["dirs"]["d"]["files"]["f"]["versions"]["1"]["file"] == {"a": 1}
    for flag in ("inline=dirs", "inline", "inline=nothing", "doc=", "filter=["):  # which are not offered
        assert filled.get(f"/export?{flag}").body == whole


def test_c_http_15_exports_can_be_put_back(database: Database) -> None:
    registry = serve(database, FIXTURE)
    registry.put(F, b'{"a": 1}', content_type="application/json", xregistry_name="n")
    registry.post(f"{X}/versions?setdefaultversionid=v1", {"v1": {"xany": [1]}, "v2": {"labels": {"a": "b"}}})
    registry.put("/dirs/d/datas/alias/meta", {"xref": X})
    registry.patch("/", {"labels": {"of": "registry"}})
    whole = registry.get("/export").json
    assert registry.put("/", whole).status == 200
    assert without_times(registry.get("/export").json) == without_times(whole)
    registry.delete("/dirs")
    assert registry.put("/?ignore=epoch", whole).status == 200
    assert without_times(registry.get("/export").json) == without_times(whole)


def without_times(value: Any) -> Any:
    """The same without what every write changes."""
    if isinstance(value, dict):
        return {name: without_times(each) for name, each in value.items() if name not in ("epoch", "modifiedat")}
    return value


# -- headers ------------------------------------------------------------------------------------------------------


def test_c_http_16_documents_elsewhere(registry: Client) -> None:
    registry.put(f"{F}$details", {"fileurl": "http://h/doc"})
    for path in (F, f"{F}/versions/1"):
        reply = registry.get(path)
        assert (reply.status, reply.body) == (303, b"")
        assert reply.headers["Location"] == reply.headers["xRegistry-fileurl"] == "http://h/doc"
        assert "Content-Type" not in reply.headers
    written = registry.put(F, b"", xregistry_fileurl="http://h/other")
    assert (written.status, written.headers["Location"], written.body) == (303, "http://h/other", b"")
    made = registry.put("/dirs/d/files/g", b"", xregistry_fileurl="http://h/g")
    assert (made.status, made.headers["Location"]) == (201, f"{BASE}/dirs/d/files/g")


def test_c_http_17_where_the_default_version_is(filled: Client) -> None:
    filled.post(F, b"two")
    for _ in range(2):
        default = filled.get(f"{F}/meta").json["defaultversionurl"].removesuffix("$details")
        assert filled.get(F).headers["Content-Location"] == default
        filled.patch(f"{F}/meta", {"defaultversionid": "1", "defaultversionsticky": True})
    for path in (f"{F}$details", X):
        assert "Content-Location" not in filled.get(path).headers


def test_c_neg_01_writes_need_no_conditions(filled: Client) -> None:
    assert filled.put("/dirs/d", {}).status == 200
    assert filled.put("/dirs/d", {}, if_match='"other"').status == 412
    assert filled.put("/dirs/d", {}, if_none_match='"other"').status == 200
    assert filled.put("/dirs/d", {}, if_unmodified_since='"other"').status == 200
    for name in ("if_match", "if_none_match", "if_unmodified_since"):
        assert filled.delete(f"{X}/versions/none", **{name: "*"}).status == 404


def test_c_neg_04_there_is_nothing_of_meta_in_headers(filled: Client) -> None:
    reply = filled.put(F, b"x", xregistry_metaurl="http://h", xregistry_isdefault="false")
    assert (reply.status, reply.headers["xRegistry-isdefault"]) == (200, "true")
    assert filled.put(F, b"x", xregistry_meta="n").status == 400
    assert filled.put(f"{X}/versions/v1", {"isdefault": True}).json["isdefault"] is False
    assert filled.get("/dirs/d$details").error[1] == "bad_details"
