"""`$details`, and where an answer says an entity is. The rows of the checklist by their ids."""

from __future__ import annotations

import json
from typing import Any

from tests.httpapi.conftest import BASE, Client

F = "/dirs/d/files/f"


def test_c_dtl_01_metadata_or_document(registry: Client) -> None:
    version = f"{F}/versions/1"
    registry.put(F, b"abc", content_type="text/plain")
    for path in (F, version):
        assert registry.get(path).body == b"abc"
        shown = registry.get(f"{path}$details")
        assert shown.headers["Content-Type"] == "application/json; charset=utf-8"
        assert (shown.json["contenttype"], shown.json["self"]) == ("text/plain", f"{BASE}{path}$details")
        assert not any(name.lower().startswith("xregistry-f") for name in shown.headers)
        assert registry.put(f"{path}$details", {"name": "n"}).json["name"] == "n"
        assert registry.patch(f"{path}$details", {"description": "d"}).json["name"] == "n"
        assert registry.put(path, b'{"name": "x"}').body == b'{"name": "x"}'
        assert registry.get(f"{path}$details").json["name"] == "n"
        registry.put(path, b"abc", content_type="text/plain")
    made = registry.post(f"{F}$details", {"name": "posted", "file": "new"})
    assert (made.status, made.json["self"]) == (201, f"{BASE}{F}/versions/2$details")
    assert made.headers["Location"] == made.headers["Content-Location"] == made.json["self"]
    posted = registry.post(F, b"raw", xregistry_name="doc")
    assert (posted.status, posted.body) == (201, b"raw")
    assert posted.headers["Location"] == posted.headers["xRegistry-self"] == f"{BASE}{F}/versions/3"
    assert registry.delete(f"{F}/versions/3$details").status == 204
    assert registry.delete(f"{F}$details").status == 204
    assert registry.get(F).status == 404


def test_c_dtl_02_without_documents_it_is_nothing(registry: Client) -> None:
    x = "/dirs/d/datas/x"
    reply = registry.put(f"{x}$details", {"name": "n"})
    assert (reply.status, reply.headers["Location"]) == (201, f"{BASE}{x}")
    assert reply.headers["Content-Location"] == f"{BASE}{x}/versions/1"
    for path in (x, f"{x}/versions/1"):
        assert registry.get(f"{path}$details").body == registry.get(path).body
        assert registry.patch(f"{path}$details", {}).json["self"] == f"{BASE}{path}"
        assert registry.put(f"{path}$details", {}).json["self"] == f"{BASE}{path}"
    assert registry.post(f"{x}$details", {}).headers["Location"] == f"{BASE}{x}/versions/2"
    assert registry.delete(f"{x}$details").status == 204
    assert registry.get(f"{x}$details").error == (404, "not_found", x)


def test_c_dtl_03_by_any_method(registry: Client) -> None:
    registry.put(F, b"")
    for method in ("GET", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"):
        for path in ("/dirs$details", "/dirs/none$details", f"{F}/versions$details", f"{F}/meta$details"):
            assert registry.send(method, path, {}).error == (400, "bad_details", path), (method, path)
        assert registry.send(method, f"{F}$details/meta", {}).error == (400, "bad_details", f"{F}$details")


def test_amb_22_it_says_which_methods_there_are(registry: Client) -> None:
    for path in (F, f"{F}/versions/1"):
        reply = registry.patch(path, {})
        assert reply.status == 405
        assert "PATCH" not in reply.headers["Allow"].split(", ")
        assert registry.get("/dirs/d").status == 404


def test_c_dtl_05_collections_have_metadata(registry: Client) -> None:
    sent = {"f": {"name": "n", "file": "abc", "contenttype": "text/plain", "versions": {"v": {"file": "abc"}}}}
    reply = registry.post("/dirs/d/files", sent)
    assert reply.json["f"]["self"] == f"{BASE}{F}$details"
    assert registry.get(f"{F}/versions/v").body == b'"abc"'
    for url, path in (
        ("/dirs/d/files", []),
        ("/dirs/d?inline=files", ["files"]),
        ("/dirs?inline=files", ["d", "files"]),
        ("/?inline=dirs.files", ["dirs", "d", "files"]),
    ):
        found = registry.get(url).json
        for step in path:
            found = found[step]
        assert found["f"] == registry.get(f"{F}$details").json
    versions = registry.get(f"{F}/versions").json
    assert versions["v"] == registry.get(f"{F}/versions/v$details").json
    assert registry.patch(f"{F}/versions", {"v": {"name": "m"}}).json["v"]["name"] == "m"
    assert registry.patch("/dirs/d/files", {"f": {"filebase64": "eHl6"}}).json["f"]["name"] == "m"
    assert registry.get(F).body == b"xyz"


def test_amb_07_and_08_where_an_entity_is(registry: Client) -> None:
    """`self` has the suffix wherever it is metadata, and a Version that was posted its own xid."""
    registry.put(F, b"")
    posted = registry.post(f"{F}$details", {}).json
    assert (posted["self"], posted["xid"]) == (f"{BASE}{F}/versions/2$details", f"{F}/versions/2")
    again = registry.post(f"{F}$details", {"versionid": "1"}).json
    assert (again["self"], again["xid"]) == (f"{BASE}{F}/versions/1$details", f"{F}/versions/1")
    shown = registry.get(f"{F}$details?inline=*").json
    assert shown["self"] == f"{BASE}{F}$details"
    assert shown["meta"]["self"] == f"{BASE}{F}/meta"
    assert {version["self"] for version in shown["versions"].values()} == {posted["self"], again["self"]}


def test_amb_09_post_says_whether_it_made_a_version(registry: Client) -> None:
    for suffix, sent in (("$details", {"versionid": "v"}), ("", None)):
        path = f"/dirs/d/files/g{suffix}"
        headers = {} if sent else {"xregistry_versionid": "w"}
        first, second = (registry.post(path, sent if sent else b"", **headers) for _ in range(2))
        assert (first.status, second.status) == (201, 200)
        assert "Location" in first.headers
        assert "Location" not in second.headers


def test_c_dtl_03_where_it_is_not(registry: Client) -> None:
    entities = ("/$details", "/dirs$details", "/dirs/d$details", "/dirs/d/files$details", f"{F}/meta$details")
    for path in (*entities, "/dirs/$details", "/dirs/d/files/$details", f"{F}/versions/$details"):
        assert registry.get(path).error[:2] == (400, "bad_details"), path


def test_c_dtl_04_patch_needs_it(registry: Client) -> None:
    reply = registry.patch(F, {})
    assert reply.error == (405, "details_required", F)
    assert reply.headers["Allow"] == "DELETE, GET, OPTIONS, POST, PUT"


# -- where it is --------------------------------------------------------------------------------------------------


def test_c_http_05_to_07_what_was_made_is_where(registry: Client) -> None:
    reply = registry.put(f"{F}$details", {})
    assert (reply.status, reply.headers["Location"]) == (201, f"{BASE}{F}$details")
    assert reply.headers["Location"] == reply.json["self"]
    again = registry.put(f"{F}$details", {})
    assert (again.status, "Location" in again.headers) == (200, False)
    assert registry.put("/dirs/e", {}).headers["Location"] == f"{BASE}/dirs/e"
    document = registry.put("/dirs/d/files/g", b"x")
    assert document.headers["Location"] == f"{BASE}/dirs/d/files/g"
    assert document.headers["Content-Location"] == f"{BASE}/dirs/d/files/g/versions/1"


def test_c_http_11_post_makes_a_version(registry: Client) -> None:
    reply = registry.post("/dirs/d/datas/x", {"name": "n"})
    assert (reply.status, reply.json["versionid"]) == (201, "1")
    assert reply.headers["Location"] == reply.json["self"] == f"{BASE}/dirs/d/datas/x/versions/1"
    assert registry.post("/dirs/d/datas/x", {"versionid": "1", "name": "m"}).status == 200
    assert registry.post("/dirs/d/datas/x", {"versionid": "v"}).status == 201


def test_c_http_13_versions_of_nothing(registry: Client) -> None:
    assert registry.post("/dirs/d/datas/x/versions", {}).error[:2] == (400, "missing_versions")
    registry.put("/dirs/d/datas/x", {})
    reply = registry.post("/dirs/d/datas/x/versions", {})
    assert (reply.status, reply.json) == (200, {})


def test_c_http_16_documents_elsewhere(registry: Client) -> None:
    registry.put(f"{F}$details", {"fileurl": "http://h/x?a=b"})
    reply = registry.get(F)
    assert (reply.status, reply.headers["Location"], reply.body) == (303, "http://h/x?a=b", b"")
    assert reply.headers["xRegistry-fileurl"] == "http://h/x?a=b"


def test_c_http_10_an_empty_body(registry: Client) -> None:
    assert registry.put("/dirs/d").error == (400, "missing_body", "/dirs/d")
    assert registry.put(f"{F}$details").error[:2] == (400, "missing_body")


def test_export_comes_back(registry: Client) -> None:
    registry.put(F, b'{"x": 1}', content_type="application/json", xregistry_name="n")
    registry.put("/dirs/d/datas/t", {"name": "t", "versions": {"a": {}, "b": {}}})
    registry.put("/dirs/d/datas/s", {"meta": {"xref": "/dirs/d/datas/t"}})
    exported = registry.get("/export").json
    registry.delete("/dirs")
    reply = registry.put("/?ignore=epoch", exported)
    assert reply.status == 200, reply.body
    again = registry.get("/export").json

    def still(value: Any) -> Any:
        """Without what an import changes."""
        if isinstance(value, dict):
            return {
                name: still(each) for name, each in value.items() if name not in ("epoch", "modifiedat", "createdat")
            }
        return value

    assert json.dumps(still(again)) == json.dumps(still(exported))
