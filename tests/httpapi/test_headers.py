"""Attributes as headers of documents. Tests are named after rows of the checklist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.httpapi.answers import refuses
from tests.httpapi.conftest import BASE, Client, Reply, model_with
from tests.httpapi.servers import serving
from wirebook.httpapi.http.messages import ApiRequest

F = "/dirs/d/files/f"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content_type": ""},
        {"content_type": "null"},
        {"xregistry_contenttype": "null"},
        {"content_type": "text/x", "xregistry_contenttype": "null"},
    ],
)
@pytest.mark.parametrize("path", [F, f"{F}/versions/1"])
def test_null_content_type_erases_it(registry: Client, path: str, headers: dict[str, str]) -> None:
    registry.put(path, b"a", content_type="text/plain")
    assert "Content-Type" not in registry.put(path, b"a", **headers).headers
    assert "contenttype" not in registry.get(f"{path}$details").json


META_HEADERS = [
    "meta",
    "meta.labels",
    "meta.labels.x",
    "meta.epoch",
    "meta.defaultversionsticky",
    "meta.xref",
    "META.a",
]


@pytest.mark.parametrize("name", [*META_HEADERS, "versions", "versions.1", "versions.1.name"])
@pytest.mark.parametrize("text", ["null", "true", "1", ""])
def test_header_that_names_meta_or_versions_is_rejected(registry: Client, name: str, text: str) -> None:
    registry.put(F, b"a")
    registry.put(f"{F}/meta", {"labels": {"a": "b"}, "defaultversionid": "1", "defaultversionsticky": True})
    for method, path in (("PUT", F), ("POST", F), ("PUT", f"{F}/versions/1"), ("PUT", "/dirs/d/files/new")):
        error = refuses(registry, method, path, b"a", "extra_xregistry_header", **{f"xregistry-{name}": text})
        assert error["args"]["name"] == f"xRegistry-{name.lower()}"
        used = f"{'/'.join(path.split('/')[:5])}/{name.lower().partition('.')[0]}"
        assert error["args"]["error_detail"].endswith(f"use the path '{used}'")


@pytest.mark.parametrize("name", ["xobj", "xobj.a", "xarr", "xarr.0"])
def test_header_that_names_a_complex_attribute_is_rejected(registry: Client, name: str) -> None:
    complex_ = {"xarr": [1], "xobj": {"a": "b"}}
    registry.put(f"{F}$details", complex_)
    texts = ("x", "null") if "." in name else ("x", "")
    for text in texts:
        error = refuses(registry, "PUT", F, b"", "extra_xregistry_header", **{f"xregistry-{name}": text})
        assert f"use '{F}$details'" in error["args"]["error_detail"]
    base = name.partition(".")[0]
    assert registry.put(F, b"", **{f"xregistry-{base}": "null"}).status == 200
    assert base not in registry.get(f"{F}$details").json


def test_header_of_a_map_of_maps_is_rejected(registry: Client) -> None:
    maps = {"xmaps": {"type": "map", "item": {"type": "map", "item": {"type": "string"}}}}
    registry.put("/modelsource", model_with("files", attributes=maps))
    registry.put(f"{F}$details", {"xmaps": {"a": {"b": "c"}}})
    for name, text in (("xmaps.a", "null"), ("xmaps.a", "x"), ("xmaps", "x")):
        refuses(registry, "PUT", F, b"", "extra_xregistry_header", **{f"xregistry-{name}": text})


@pytest.mark.parametrize(
    "headers",
    [
        [("xregistry-name", "a"), ("xregistry-name", "b")],
        [("xregistry-name", "a"), ("xregistry-name", "a")],
        [("xregistry-labels.a", "1"), ("xregistry-name", "n"), ("xregistry-labels.a", "2")],
        [("content-type", "text/a"), ("content-type", "text/b")],
    ],
)
def test_repeated_header_is_rejected(registry: Client, headers: list[tuple[str, str]]) -> None:
    registry.put(F, b"a")
    before = registry.get("/export").body
    answer = registry.service.handle(ApiRequest("PUT", F, BASE, {}, headers, b"b"))
    assert answer.status == 400
    assert isinstance(answer.body, bytes)
    error = Reply(answer.status, answer.headers, answer.body)
    assert error.error == (400, "header_error", F)
    assert error.json["args"]["name"].lower() == headers[-1][0]
    assert registry.get("/export").body == before


def test_header_of_a_whole_map_beside_headers_of_its_keys_is_rejected(registry: Client) -> None:
    registry.send("PUT", F, b"", **{"xregistry-labels.a": "1", "xregistry-labels": "null"})
    assert registry.get(f"{F}$details").json["labels"] == {"a": "1"}
    for headers in (
        {"xregistry-labels.b": "1", "xregistry-labels": "x"},
        {"xregistry-labels": "x", "xregistry-labels.b": "1"},
    ):
        refuses(registry, "PUT", F, b"", "invalid_attribute", **headers)


def test_header_value_is_checked_like_an_attribute(registry: Client) -> None:
    registry.put(F, b"abc")
    for name, text, code in (
        ("zz", "x", "unknown_attribute"),
        ("xref", "/dirs/d/files/g", "unknown_attribute"),
        ("defaultversionid", "1", "unknown_attribute"),
        ("readonly", "true", "unknown_attribute"),
        ("xbool", "True", "invalid_attribute"),
        ("xbool", "1", "invalid_attribute"),
        ("xint", "1.5", "invalid_attribute"),
        ("xint", "", "invalid_attribute"),
        ("xint", "1_0", "invalid_attribute"),
        ("xint", "%D9%A3", "invalid_attribute"),
        ("xint", "1e400", "invalid_attribute"),
        ("xdec", "1e400", "invalid_attribute"),
        ("xdec", "NaN", "invalid_attribute"),
        ("xdec", "-Infinity", "invalid_attribute"),
        ("xdec", "9" * 4001, "invalid_attribute"),
        ("xdec", "1_0.5", "invalid_attribute"),
        ("xuint", "-1", "invalid_attribute"),
        ("xtime", "yesterday", "invalid_attribute"),
        ("name", "", "invalid_attribute"),
        ("labels", "x", "invalid_attribute"),
        ("epoch", "x", "invalid_attribute"),
        ("epoch", "7", "mismatched_epoch"),
        ("fileid", "F", "mismatched_id"),
        ("versionid", "2", "mismatched_id"),
        ("ancestorid", "2", "unknown_id"),
    ):
        error = refuses(registry, "PUT", F, b"x", code, **{f"xregistry_{name}": text})
        assert error["status"] == 400
        assert error["subject"] == (F if code in ("mismatched_id", "unknown_id") else f"{F}/versions/1"), name
    ignored = {"self": "x", "xid": "y", "isdefault": "no", "metaurl": "5", "versionsurl": "", "versionscount": "-1"}
    headers = {f"xregistry_{name}": text for name, text in ignored.items()}
    assert registry.put(F, b"x", **headers).headers["xRegistry-epoch"] == "2"


def test_header_number_is_converted_or_rejected(registry: Client) -> None:
    for text, number in {"5": 5, "-5": -5, "1e2": 100, "2.0": 2, "9" * 30: int("9" * 30), "007": 7}.items():
        registry.put(F, b"", xregistry_xint=text, xregistry_xdec=text)
        details = registry.get(f"{F}$details").json
        assert (details["xint"], details["xdec"]) == (number, number), text
    registry.put(F, b"", xregistry_xdec="-1.5E-3")
    assert registry.get(F).headers["xRegistry-xdec"] == "-0.0015"


def test_c_hdr_16_on_the_wire(tmp_path: Path) -> None:
    """What a server makes of names and bytes that clients send, and what clients get."""
    path = "/schemagroups/g/schemas/s"
    with serving(f"sqlite:///{tmp_path / 'r.db'}", tmp_path / "log") as servers, servers[0].client() as client:
        headers = [
            (b"XREGISTRY-NAME", b"n"),
            (b"xRegistry-Labels.A.b", b"Euro%20%e2%82%ac"),
            (b"xregistry-FORMAT", b"F/1"),
        ]
        twice = [*headers, (b"xregistry-Name", b"m")]
        assert client.put(path, content=b"abc", headers=twice).json()["type"].endswith("#header_error")
        headers += [(b"xRegistry-description", "ä ".encode() + b'"\\"q\\""'), (b"CONTENT-type", b"text/x; a=b")]
        created = client.put(path, content=b"abc", headers=headers)
        assert (created.status_code, created.content, created.headers["content-type"]) == (201, b"abc", "text/x; a=b")
        details = client.get(f"{path}$details").json()
        assert (details["name"], details["labels"], details["format"]) == ("n", {"a.b": "Euro €"}, "F/1")
        assert details["description"] == 'ä "q"'
        response = client.get(path)
        raw = {name.decode(): value.decode("ascii") for name, value in response.headers.raw}
        assert response.headers["xRegistry-description"] == "%C3%A4%20%22q%22"
        assert response.headers["xregistry-labels.a.b"] == "Euro%20%E2%82%AC"
        assert all(value.isprintable() for value in raw.values())
        head = client.head(path)
        same = [reply.headers["xregistry-self"] for reply in (response, head)]
        assert (head.status_code, head.content, same[0]) == (200, b"", same[1])
        assert client.put(f"{path}$details", json={}, headers={"XRegistry-Name": "n"}).status_code == 400
        assert client.put(path, headers={"XRegistry-SCHEMA": "n"}).status_code == 400
