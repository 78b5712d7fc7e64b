"""Documents, their headers and `$details`. The rows of the checklist by their ids."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.httpapi.conftest import BASE, Client

F = "/dirs/d/files/f"


def test_c_doc_01_documents_are_inlined_on_demand(registry: Client) -> None:
    registry.put(F, b"abc", content_type="text/plain")
    assert "file" not in registry.get(f"{F}$details").json
    assert registry.get(f"{F}$details?inline=file").json["file"] == "abc"
    registry.put(f"{F}$details", {"fileurl": "http://h/x"})
    assert registry.get(f"{F}$details").json["fileurl"] == "http://h/x"


def test_c_doc_02_one_of_three(registry: Client) -> None:
    reply = registry.put(f"{F}$details", {"file": 1, "fileurl": "http://h"})
    assert reply.error == (400, "one_resource", F)
    assert registry.put(f"{F}$details", {"file": 1, "fileurl": None}).status == 201


def test_c_doc_04_without_any_of_them_a_document_stays(registry: Client) -> None:
    registry.put(F, b"abc", content_type="text/plain")
    registry.put(f"{F}$details", {"contenttype": "text/plain"})
    assert registry.get(F).body == b"abc"


def test_c_doc_05_and_a_url_goes(registry: Client) -> None:
    registry.put(f"{F}$details", {"fileurl": "http://h/x"})
    assert "fileurl" in registry.patch(f"{F}$details", {}).json
    assert "fileurl" not in registry.put(f"{F}$details", {}).json
    assert registry.get(F).body == b""


@pytest.mark.parametrize("name", ["file", "fileurl", "filebase64"])
def test_c_doc_06_null_empties_it(registry: Client, name: str) -> None:
    registry.put(F, b"abc")
    assert registry.patch(f"{F}$details", {name: None}).status == 200
    assert registry.get(F).body == b""


def test_c_doc_07_bytes_come_back(registry: Client) -> None:
    content = bytes(range(256))
    registry.put(f"{F}$details", {"filebase64": base64.b64encode(content).decode()})
    assert registry.get(F).body == content


def test_c_doc_08_json_has_its_type(registry: Client) -> None:
    registry.put(F, b"abc", content_type="text/plain")
    assert registry.put(f"{F}$details", {"file": {"a": 1}}).json["contenttype"] == "application/json"


def test_c_doc_09_a_patch_keeps_the_type(registry: Client) -> None:
    registry.put(F, b"abc", content_type="text/plain")
    assert registry.patch(f"{F}$details", {"file": {"a": 1}}).json["contenttype"] == "text/plain"
    registry.put("/dirs/d/files/g", b"")
    assert registry.patch("/dirs/d/files/g$details", {"filebase64": "eHg="}).json["contenttype"] == "application/json"


@pytest.mark.parametrize(
    ("content", "type_", "shown"),
    [
        (b'{"a": 1}', "application/json", {"file": {"a": 1}}),
        (b'{"a": 1}', "application/x+json; charset=utf-8", {"file": {"a": 1}}),
        (b"abc", "text/plain; charset=utf-8", {"file": "abc"}),
        (b"{", "application/json", {"filebase64": "ew=="}),
        (b"abc", "text/html", {"filebase64": "YWJj"}),
        (b"", "text/plain", {"filebase64": ""}),
    ],
)
def test_c_doc_10_to_13_how_a_document_is_shown(registry: Client, content: bytes, type_: str, shown: Any) -> None:
    registry.put(F, content, content_type=type_)
    found = registry.get(f"{F}$details?inline=file").json
    assert {name: found[name] for name in ("file", "filebase64") if name in found} == shown
    assert registry.get(f"{F}$details?inline=file&binary").json["filebase64"] == base64.b64encode(content).decode()


def test_c_doc_15_a_type_without_documents(registry: Client) -> None:
    assert registry.put("/dirs/d/datas/x", {"data": 1}).error[1] == "unknown_attribute"


def test_c_doc_17_the_body_is_the_document(registry: Client) -> None:
    reply = registry.put(F, b"\x00\xff")
    assert (reply.status, reply.body, "Content-Type" in reply.headers) == (201, b"\x00\xff", False)
    assert registry.get(f"{F}/versions/1").body == b"\x00\xff"


def test_c_hdr_01_attributes_are_headers(registry: Client) -> None:
    sent = {"name": "Euro € 😀", "labels": {"a.b": "x y"}, "xint": 5, "xarr": [1], "xobj": {"a": "b"}, "xbool": True}
    registry.put(f"{F}$details", sent)
    headers = registry.get(F).headers
    assert headers["xRegistry-name"] == "Euro%20%E2%82%AC%20%F0%9F%98%80"
    assert (headers["xRegistry-labels.a.b"], headers["xRegistry-xint"]) == ("x%20y", "5")
    assert (headers["xRegistry-xbool"], headers["xRegistry-isdefault"]) == ("true", "true")
    assert not {"xRegistry-xarr", "xRegistry-xobj", "xRegistry-xobj.a", "xRegistry-meta"} & headers.keys()


def test_c_hdr_05_what_a_resource_adds(registry: Client) -> None:
    registry.put(F, b"")
    own = {"xRegistry-metaurl", "xRegistry-versionsurl", "xRegistry-versionscount"}
    assert own <= registry.get(F).headers.keys()
    assert not own & registry.get(f"{F}/versions/1").headers.keys()
    assert registry.get(F).headers["Content-Disposition"] == "f"


def test_c_hdr_07_headers_that_are_not_sent_leave_things(registry: Client) -> None:
    registry.put(F, b"a", content_type="text/plain", xregistry_name="n")
    headers = registry.put(F, b"b").headers
    assert (headers["xRegistry-name"], "Content-Type" in headers) == ("n", False)


def test_c_hdr_08_null_deletes(registry: Client) -> None:
    registry.put(F, b"a", xregistry_name="n")
    assert "xRegistry-name" not in registry.put(F, b"a", xregistry_name="null").headers


def test_c_hdr_09_maps_are_replaced(registry: Client) -> None:
    registry.send("PUT", F, b"", **{"xregistry-labels.a": "1", "xregistry-labels.b": "2"})
    headers = registry.send("PUT", F, b"", **{"xregistry-labels.c": "3"}).headers
    assert {name: value for name, value in headers.items() if "labels" in name} == {"xRegistry-labels.c": "3"}


@pytest.mark.parametrize("path", [f"{F}$details", "/dirs/d/datas/x", "/dirs/d"])
def test_c_hdr_10_not_with_metadata(registry: Client, path: str) -> None:
    assert registry.put(path, {}, xregistry_name="n").error[:2] == (400, "extra_xregistry_header")


@pytest.mark.parametrize("name", ["file", "filebase64"])
def test_c_hdr_11_not_the_document(registry: Client, name: str) -> None:
    assert registry.send("PUT", F, b"", **{f"xregistry-{name}": "x"}).error[:2] == (400, "extra_xregistry_header")


def test_c_hdr_12_a_url_or_a_body(registry: Client) -> None:
    assert registry.put(F, b"abc", xregistry_fileurl="http://h").status == 400
    assert registry.put(F, b"", xregistry_fileurl="http://h").headers["xRegistry-fileurl"] == "http://h"


@pytest.mark.parametrize(
    ("sent", "stored"), [('"a \\" b"', 'a " b'), ("%e2%82%AC", "€"), ("%61", "a"), ("a%2520", "a%20"), ("", "")]
)
def test_c_hdr_14_decoding(registry: Client, sent: str, stored: str) -> None:
    registry.put(F, b"", xregistry_description=sent)
    assert registry.get(f"{F}$details").json["description"] == stored


def test_c_hdr_15_bytes_that_are_no_text(registry: Client) -> None:
    assert registry.put(F, b"", xregistry_name="%C0%A0").error == (400, "header_error", F)


def test_c_dtl_03_where_it_is_not(registry: Client) -> None:
    for path in ("/$details", "/dirs$details", "/dirs/d$details", "/dirs/d/files$details", f"{F}/meta$details"):
        assert registry.get(path).error[:2] == (400, "bad_details"), path


def test_c_dtl_04_patch_needs_it(registry: Client) -> None:
    reply = registry.patch(F, {})
    assert reply.error == (405, "details_required", F)
    assert reply.headers["Allow"] == "DELETE, GET, OPTIONS, POST, PUT"


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
