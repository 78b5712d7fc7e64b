"""Documents. Tests are named after rows of the checklist."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.httpapi.answers import refuses
from tests.httpapi.conftest import Client, model_with

F = "/dirs/d/files/f"


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
    for method, path, content in (
        ("PUT", f"{F}$details", {"file": 'he said "hi"'}),
        ("PATCH", f"{F}$details", {"file": 'he said "hi"'}),
        ("POST", f"{F}$details", {"file": 'he said "hi"'}),
        ("PUT", f"{versions}/v$details", {"file": 'he said "hi"'}),
        ("POST", versions, {"w": {"file": 'he said "hi"'}}),
        ("POST", "/dirs/d", {"files": {"f": {"file": 'he said "hi"'}}}),
    ):
        registry.delete("/dirs")
        assert registry.send(method, path, content).status in (200, 201)
        reply = registry.get(F)
        assert (reply.headers["Content-Type"], reply.json) == ("application/json", 'he said "hi"'), method
        details = registry.get(f"{F}$details?inline=file").json
        assert (details["contenttype"], details["file"]) == ("application/json", 'he said "hi"')


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
    details = registry.put(f"{F}$details?inline=file", {"file": "text"}).json
    assert (registry.get(F).body, details["contenttype"]) == (stored, "application/json")
    assert details.get("file", "text") == "text"


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


@pytest.mark.parametrize("wrong", ["!!", "YQ", "YQ=", "Y Q==", 5, {}, ["YQ=="], "é"])
def test_invalid_base64_document_is_rejected(registry: Client, wrong: Any) -> None:
    error = refuses(registry, "PUT", f"{F}$details", {"filebase64": wrong}, "invalid_attribute")
    assert (error["subject"], error["args"]["name"]) == (f"{F}/versions/1", "filebase64")
