"""Documents. The rows of the checklist by their ids."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.httpapi.answers import refuses
from tests.httpapi.conftest import BASE, Client, model_with

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


def test_c_att_13_a_url_that_the_model_asks_for(registry: Client) -> None:
    xid = f"{F}/versions/1"
    registry.put(F, b"here")
    asked = {"fileurl": {"type": "url", "required": True, "enum": ["http://h/a", "http://h/b"]}}
    assert registry.put("/modelsource", model_with("files", attributes=asked)).error[1] == "model_compliance_error"
    registry.delete("/dirs")
    assert registry.put("/modelsource", model_with("files", attributes=asked)).status == 200
    for sent in ({}, {"file": "here"}):
        assert registry.put(f"{F}$details", sent).error == (400, "required_attribute_missing", xid)
    assert registry.put(f"{F}$details", {"fileurl": "http://h/c"}).error == (400, "invalid_attribute", xid)
    assert registry.put(f"{F}$details", {"fileurl": "http://h/b"}).status == 201
    for sent in ({"fileurl": None}, {"file": "here"}):
        assert registry.patch(f"{F}$details", sent).error == (400, "required_attribute_missing", xid)
    assert registry.patch(f"{F}$details", {"name": "n"}).status == 200


def test_c_doc_08_the_type_is_one_that_the_model_allows(registry: Client) -> None:
    required = {"contenttype": {"type": "string", "required": True}}
    registry.put("/modelsource", model_with("files", attributes=required))
    assert registry.put(f"{F}$details", {"file": {"a": 1}}).json["contenttype"] == "application/json"
    registry.delete("/dirs")
    narrow = {"contenttype": {"type": "string", "enum": ["text/plain"]}}
    registry.put("/modelsource", model_with("files", attributes=narrow))
    reply = registry.put(f"{F}$details", {"file": {"a": 1}})
    assert reply.error == (400, "invalid_attribute", f"{F}/versions/1")
    assert registry.put(f"{F}$details", {"file": "a", "contenttype": "text/plain"}).status == 201


@pytest.mark.parametrize(
    ("type_", "stored"),
    [
        ("application/json", b'"text"'),
        ("Application/X+JSON; q=1", b'"text"'),
        ("text/plain", b"text"),
        ("application/xml", b"text"),
        (None, b"text"),
    ],
)
def test_string_document_is_json_if_its_content_type_is(registry: Client, type_: str | None, stored: bytes) -> None:
    registry.put(f"{F}$details", {"file": "text", "contenttype": type_})
    assert registry.get(F).body == stored


def test_string_document_without_content_type_is_valid_json(registry: Client) -> None:
    versions = f"{F}/versions"
    for method, path, sent in (
        ("PUT", f"{F}$details", {"file": 'he said "hi"'}),
        ("PATCH", f"{F}$details", {"file": 'he said "hi"'}),
        ("POST", f"{F}$details", {"file": 'he said "hi"'}),
        ("PUT", f"{versions}/v$details", {"file": 'he said "hi"'}),
        ("POST", versions, {"w": {"file": 'he said "hi"'}}),
        ("POST", "/dirs/d", {"files": {"f": {"file": 'he said "hi"'}}}),
    ):
        registry.delete("/dirs")
        assert registry.send(method, path, sent).status in (200, 201)
        reply = registry.get(F)
        assert (reply.headers["Content-Type"], reply.json) == ("application/json", 'he said "hi"'), method
        shown = registry.get(f"{F}$details?inline=file").json
        assert (shown["contenttype"], shown["file"]) == ("application/json", 'he said "hi"')


def test_string_document_of_a_patch_keeps_to_the_stored_content_type(registry: Client) -> None:
    registry.put(F, b"old", content_type="text/plain")
    registry.patch(f"{F}$details", {"file": "new"})
    assert (registry.get(F).body, registry.get(F).headers["Content-Type"]) == (b"new", "text/plain")
    registry.put(F, b"5", content_type="application/json")
    registry.patch(f"{F}$details", {"file": "new"})
    assert registry.get(F).json == "new"


@pytest.mark.parametrize(("form", "stored"), [("json", b'"text"'), ("binary", b'"text"'), ("string", b"text")])
def test_string_document_follows_the_typemap(registry: Client, form: str, stored: bytes) -> None:
    registry.put("/modelsource", model_with("files", typemap={"application/json": form}))
    shown = registry.put(f"{F}$details?inline=file", {"file": "text"}).json
    assert (registry.get(F).body, shown["contenttype"]) == (stored, "application/json")
    assert shown.get("file", "text") == "text"


@pytest.mark.parametrize("content", [b'"text"', b'""', b"text", b"5", b"null", b""])
def test_c_http_15_documents_of_an_export_come_back(registry: Client, content: bytes) -> None:
    registry.put(F, content, content_type="application/json")
    sent = registry.get("/export").json
    registry.delete("/dirs")
    assert registry.put("/?ignore=epoch", sent).status == 200
    assert registry.get(F).body == content


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


DEEP = b"[" * 81 + b"]" * 81


@pytest.mark.parametrize(
    "document",
    [
        b'"\\ud800"',
        b"[1e400]",
        b'\xef\xbb\xbf{"a": 1}',
        b" null",
        DEEP,
        b"[" * 5000 + b"]" * 5000,
        b'{"a": 1, "a": 1}',
        b'{"a": [{"b": {"c": 1, "d": ":", "c": 2}}]}',
        b'{"a": "\\u003a", "b": 1, "b": 2}',
        b'{"k": 1, "\\u006b": 2}',
        b'{"a": 123456789012345678901234567890, "a": 1}',
    ],
)
def test_c_doc_11_c_http_15_what_no_request_may_have_is_base64(registry: Client, document: bytes) -> None:
    registry.put(F, document, content_type="application/json")
    assert registry.get(f"{F}$details?inline=file").json["filebase64"] == base64.b64encode(document).decode()
    assert registry.put("/?ignore=epoch", registry.get("/export").body).status == 200
    assert registry.get(F).body == document


@pytest.mark.parametrize("document", [b'{"a":"\\u003a:"}', b'{"a":{"a":":"}}', b'{"a":12345678901234567890123}'])
def test_document_without_duplicate_members_is_inlined_as_json(registry: Client, document: bytes) -> None:
    registry.put(F, document, content_type="application/json")
    assert b'"file":' + document in registry.get(f"{F}$details?inline=file").body


@pytest.mark.parametrize("type_", ["application/json", "application/x+json", "text/plain", None])
def test_duplicate_members_of_a_document_in_the_body_are_kept(registry: Client, type_: str | None) -> None:
    document = b'{"a": 1, "a": 2}'
    headers = {"content_type": type_} if type_ else {}
    for method, path in (("PUT", F), ("PUT", f"{F}/versions/1"), ("POST", F)):
        assert registry.send(method, path, document, **headers).body == document
    exported = registry.get("/export").body
    assert registry.put("/?ignore=epoch", exported).status == 200
    assert registry.get(F).body == document


def test_c_doc_10_c_http_15_as_deep_as_it_may_be(registry: Client) -> None:
    registry.put(F, b" 12345678901234567890.50 ", content_type="application/json")
    assert b'"file":12345678901234567890.50,' in registry.get(f"{F}$details?inline=file").body
    registry.put(F, DEEP[1:-1], content_type="application/json")
    assert "file" in registry.get(f"{F}$details?inline=file").json
    assert registry.put("/?ignore=epoch", registry.get("/export").body).status == 200


def test_c_doc_15_a_type_without_documents(registry: Client) -> None:
    assert registry.put("/dirs/d/datas/x", {"data": 1}).error[1] == "unknown_attribute"


def test_c_doc_17_the_body_is_the_document(registry: Client) -> None:
    reply = registry.put(F, b"\x00\xff")
    assert (reply.status, reply.body, "Content-Type" in reply.headers) == (201, b"\x00\xff", False)
    assert registry.get(f"{F}/versions/1").body == b"\x00\xff"


def test_c_doc_03_setting_one_removes_the_others(registry: Client) -> None:
    forms: list[tuple[dict[str, Any], bytes]] = [
        ({"file": {"a": 1}}, b'{\n  "a": 1\n}'),
        ({"fileurl": "http://h/x"}, b""),
        ({"filebase64": "YWJj"}, b"abc"),
        ({"file": "text", "contenttype": "text/plain"}, b"text"),
        ({"fileurl": "http://h/y"}, b""),
        ({"file": None, "filebase64": "eA=="}, b"x"),
    ]
    for method in ("PUT", "PATCH", "POST"):
        for sent, content in forms:
            reply = registry.send(method, f"{F}$details", {"versionid": "1", **sent} if method == "POST" else sent)
            assert reply.status in (200, 201), reply.body
            url = sent.get("fileurl")
            assert reply.json.get("fileurl") == url
            shown = registry.get(f"{F}$details?inline=file").json
            assert len({"file", "fileurl", "filebase64"} & shown.keys()) == 1
            document = registry.get(F)
            assert (document.status, document.body) == ((303, b"") if url else (200, content))


def test_c_doc_02_two_in_any_request(registry: Client) -> None:
    registry.put(F, b"abc")
    two = {"file": {}, "filebase64": "YQ=="}
    for method, url, sent in (
        ("PATCH", f"{F}$details", two),
        ("POST", f"{F}$details", two),
        ("PUT", f"{F}/versions/1$details", {"fileurl": "http://h", "filebase64": ""}),
        ("POST", "/dirs/d/files", {"f": two}),
        ("PATCH", f"{F}/versions", {"1": {**two, "fileurl": "http://h"}}),
    ):
        error = refuses(registry, method, url, sent, "one_resource")
        assert (error["status"], error["args"]) == (400, {"list": "file,fileurl,filebase64"})


def test_c_doc_06_null_by_any_way(registry: Client) -> None:
    for method in ("PUT", "PATCH"):
        for name in ("file", "fileurl", "filebase64"):
            for stored in ({"file": 1}, {"fileurl": "http://h"}, {"filebase64": "YQ=="}):
                registry.put(f"{F}$details", stored)
                assert "fileurl" not in registry.send(method, f"{F}$details", {name: None}).json
                assert (registry.get(F).status, registry.get(F).body) == (200, b"")
                assert registry.get(f"{F}$details?inline=file").json["filebase64"] == ""


@pytest.mark.parametrize("wrong", ["!!", "YQ", "YQ=", "Y Q==", 5, {}, ["YQ=="], "é"])
def test_base64_that_is_none(registry: Client, wrong: Any) -> None:
    error = refuses(registry, "PUT", f"{F}$details", {"filebase64": wrong}, "invalid_attribute")
    assert (error["subject"], error["args"]["name"]) == (f"{F}/versions/1", "filebase64")


def test_c_doc_14_how_types_are_looked_up(registry: Client) -> None:
    typemap = {
        "text/*": "string",
        "text/Mine": "JSON",
        "application/*+x": "json",
        "application/y+*": "json",
        "application/json": "binary",
        "*": "string",
    }
    shown = {
        "TEXT/html; charset=utf-8": "file",
        "text/mine": "filebase64",  # two that do not agree
        "application/a+x": "filebase64",
        "application/json": "filebase64",
    }
    for types, expected in (
        (typemap, shown),
        ({"text/*": "string", "text/mine": "string"}, {"text/Mine;a=b": "file", "text/": "filebase64"}),
        (
            {"*/x": "json"},
            {"a/x": "file", "application/vnd.b+json": "file", "text/plain": "file", "a/xx": "filebase64"},
        ),
        ({"*+json": "binary"}, {"application/vnd.b+json": "filebase64", "application/json": "file"}),
        ({}, {"Application/JSON; charset=utf-8": "file", "text/PLAIN;q=1": "file", "text/json": "filebase64"}),
    ):
        source = {
            "groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", "typemap": types}}}}
        }
        assert registry.put("/modelsource", source).status == 200
        for contenttype, name in expected.items():
            if registry.put(F, b"[1]", content_type=contenttype).status >= 400:
                assert contenttype == "text/"
                continue
            found = registry.get(f"{F}$details?inline=file").json
            assert {"file", "filebase64"} & found.keys() == {name}, (types, contenttype)


@pytest.mark.parametrize("url", ["http://h/x?a=b#c", "urn:example:a:b", "../relative", "ftp://h/x", "x:y"])
def test_c_doc_16_any_uri_is_stored(registry: Client, url: str) -> None:
    reply = registry.put(f"{F}$details", {"fileurl": url, "contenttype": "application/xml"})
    assert (reply.status, reply.json["fileurl"], reply.json["contenttype"]) == (201, url, "application/xml")
    found = registry.get(F)
    assert (found.status, found.body, found.headers["Content-Type"]) == (303, b"", "application/xml")
    assert found.headers["xRegistry-fileurl"] == url
    assert registry.put(F, b"", xregistry_fileurl=url).status == 303
    assert registry.get(f"{F}$details?inline=file").json["fileurl"] == url
    assert {"file", "filebase64"}.isdisjoint(registry.get(f"{F}$details?inline=*").json)


def test_c_doc_16_what_is_no_uri(registry: Client) -> None:
    for wrong in (5, "", {}, "a\nb"):
        error = refuses(registry, "PUT", f"{F}$details", {"fileurl": wrong}, "invalid_attribute")
        assert error["args"]["name"] == "fileurl"


def test_c_doc_17_each_version_has_its_own(registry: Client) -> None:
    registry.put(F, b"one", content_type="a/b")
    registry.post(F, b"two")
    registry.put(f"{F}/versions/v", b"")
    contents = {"": b"", "/versions/1": b"one", "/versions/2": b"two", "/versions/v": b""}
    assert {path: registry.get(f"{F}{path}").body for path in contents} == contents
    assert registry.get(F).headers["Content-Location"] == f"{BASE}{F}/versions/v"
    registry.patch(f"{F}/meta", {"defaultversionid": "1"})
    assert (registry.get(F).body, registry.get(F).headers["Content-Type"]) == (b"one", "a/b")
    registry.put(F, b"new")
    assert registry.get(f"{F}/versions/1").body == b"new"
