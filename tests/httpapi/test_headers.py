"""Attributes as headers of documents. The rows of the checklist by their ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.httpapi.answers import refuses
from tests.httpapi.conftest import BASE, Client, Reply, model_with
from tests.httpapi.servers import serving
from wirebook.httpapi.http.messages import Incoming

F = "/dirs/d/files/f"


def own(headers: dict[str, str], *, times: bool = False) -> dict[str, str]:
    """The headers that are attributes, but for what changes from one run to the next."""
    volatile = ("xRegistry-createdat", "xRegistry-modifiedat") if not times else ()
    skipped = {*volatile, "xRegistry-xregcorrelationid"}
    return {name: header for name, header in headers.items() if name.startswith("xRegistry-") and name not in skipped}


def test_c_hdr_01_and_05_all_of_them(registry: Client) -> None:
    registry.put(F, b"x", content_type="a/b", xregistry_name="n")
    ids = {"xRegistry-fileid": "f", "xRegistry-versionid": "1"}
    version = {
        "xRegistry-epoch": "1",
        "xRegistry-name": "n",
        "xRegistry-isdefault": "true",
        "xRegistry-ancestorid": "1",
    }
    resource = {"xRegistry-self": f"{BASE}{F}", "xRegistry-xid": F, "xRegistry-metaurl": f"{BASE}{F}/meta"}
    resource |= {"xRegistry-versionsurl": f"{BASE}{F}/versions", "xRegistry-versionscount": "1"}
    assert own(registry.get(F).headers) == ids | version | resource
    below = f"{F}/versions/1"
    at = {"xRegistry-self": f"{BASE}{below}", "xRegistry-xid": below}
    reply = registry.get(below)
    assert own(reply.headers) == ids | version | at
    assert reply.headers.keys() >= {"xRegistry-createdat", "xRegistry-modifiedat"}
    for path in (F, below):
        headers = registry.get(path).headers
        assert headers["Content-Location"] == f"{BASE}{F}/versions/1"
        assert headers["Content-Disposition"] == "f"


@pytest.mark.parametrize("type_", ["any", "object", "integer"])
def test_c_hdr_05_where_versions_have_attributes_of_any_name(registry: Client, type_: str) -> None:
    assert registry.put("/modelsource", model_with("files", attributes={"*": {"type": type_}})).status == 200
    registry.patch("/capabilities", {"shortself": True})
    registry.put(f"{F}$details", {"fileurl": "http://a/b"})
    found = own(registry.get(F).headers)
    assert found["xRegistry-metaurl"] == f"{BASE}{F}/meta"
    assert found["xRegistry-versionsurl"] == f"{BASE}{F}/versions"
    assert found["xRegistry-versionscount"] == "1"
    assert found["xRegistry-fileurl"] == "http://a/b"
    assert {"xRegistry-shortself", "xRegistry-self", "xRegistry-xid", "xRegistry-fileid"} <= found.keys()


def test_c_hdr_02_maps_of_scalars(registry: Client) -> None:
    sent = {"labels": {"a": "1", "b.c.d": "", "e-f": "x y"}, "xmap": {"k": "v"}}
    registry.put(f"{F}$details", sent)
    headers = {name: header for name, header in registry.get(F).headers.items() if "." in name}
    labels = {"xRegistry-labels.a": "1", "xRegistry-labels.b.c.d": "", "xRegistry-labels.e-f": "x%20y"}
    assert headers == labels | {"xRegistry-xmap.k": "v"}
    again = registry.send("PUT", F, b"", **{name.lower(): header for name, header in headers.items()})
    assert {name: header for name, header in again.headers.items() if "." in name} == headers
    assert registry.get(f"{F}$details").json.items() >= sent.items()


def test_c_hdr_02_keys_that_no_header_can_have(registry: Client) -> None:
    sent = {"labels": {"a:b": "1", "c": "2", "e:": "4"}, "xmap": {"k:v": "5"}}
    registry.put(f"{F}$details", sent)
    for path in (F, f"{F}/versions/1"):
        assert {name: header for name, header in registry.get(path).headers.items() if "." in name} == {
            "xRegistry-labels.c": "2"
        }
    registry.put(F, b"x")
    assert registry.get(f"{F}$details").json.items() >= sent.items()


def test_c_hdr_02_maps_of_other_types(registry: Client) -> None:
    types = {"xints": "integer", "xbools": "boolean", "xdecs": "decimal"}
    attributes = {name: {"type": "map", "item": {"type": type_}} for name, type_ in types.items()}
    attributes["xmaps"] = {"type": "map", "item": {"type": "map", "item": {"type": "string"}}}
    resources = {"files": {"singular": "file", "attributes": attributes}}
    registry.put("/modelsource", {"groups": {"dirs": {"singular": "dir", "resources": resources}}})
    sent = {"xints": {"a": -1}, "xbools": {"a": False}, "xdecs": {"a": 1.5}}
    headers = {"xregistry-xints.a": "-1", "xregistry-xbools.a": "false", "xregistry-xdecs.a": "1.5"}
    reply = registry.send("PUT", F, b"", **headers)
    assert {name.lower(): header for name, header in reply.headers.items() if "." in name} == headers
    assert registry.get(f"{F}$details").json.items() >= sent.items()
    registry.patch(f"{F}$details", {"xmaps": {"a": {"b": "c"}}})
    assert not any("xmaps" in name for name in registry.get(F).headers)
    refuses(registry, "PUT", F, b"", "invalid_attribute", **{"xregistry-xints.a": "x"})


def test_c_hdr_03_nothing_complex(registry: Client) -> None:
    complex_ = {"xarr": [1], "xobj": {"a": "b", "n": 1}, "xany": {"a": 1}, "format": "F/1"}
    registry.put(f"{F}$details", complex_)
    names = {name.removeprefix("xRegistry-").partition(".")[0] for name in own(registry.get(F).headers)}
    assert names.isdisjoint({"xarr", "xobj", "xany", "meta", "versions", "file", "filebase64", "contenttype"})
    for name in ("xarr", "xobj", "xobj.a", "meta", "versions"):
        reply = registry.send("PUT", F, b"", **{f"xregistry-{name}": "x"})
        assert reply.status == 400, name
    registry.put(F, b"", xregistry_name="n")
    assert registry.get(f"{F}$details").json.items() >= complex_.items()


def test_c_hdr_04_the_media_type(registry: Client) -> None:
    reply = registry.put(F, b"a", content_type="text/x; a=b")
    assert reply.headers["Content-Type"] == registry.get(F).headers["Content-Type"] == "text/x; a=b"
    assert "xRegistry-contenttype" not in reply.headers
    assert registry.get(f"{F}$details").json["contenttype"] == "text/x; a=b"
    for headers in ({}, {"content_type": "text/other"}):
        sent = {**headers, "xregistry_contenttype": "text/other"}
        error = refuses(registry, "PUT", F, b"a", "extra_xregistry_header", **sent)
        assert error["args"]["error_detail"] == "use the header Content-Type"
    refuses(registry, "PUT", F, b"a", "invalid_attribute", content_type="no media type")
    registry.patch(f"{F}$details", {"contenttype": "a/b"})
    assert registry.get(F).headers["Content-Type"] == "a/b"
    assert "contenttype" not in registry.post(F, b"").headers


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
    answer = registry.service.answer(Incoming("PUT", F, BASE, {}, headers, b"b"))
    assert answer.status == 400
    assert isinstance(answer.body, bytes)
    error = Reply(answer.status, answer.headers, answer.body)
    assert error.error == (400, "header_error", F)
    assert error.json["args"]["name"].lower() == headers[-1][0]
    assert registry.get("/export").body == before


def test_header_of_a_whole_map_beside_headers_of_its_keys_is_no_silent_choice(registry: Client) -> None:
    registry.send("PUT", F, b"", **{"xregistry-labels.a": "1", "xregistry-labels": "null"})
    assert registry.get(f"{F}$details").json["labels"] == {"a": "1"}
    for headers in (
        {"xregistry-labels.b": "1", "xregistry-labels": "x"},
        {"xregistry-labels": "x", "xregistry-labels.b": "1"},
    ):
        refuses(registry, "PUT", F, b"", "invalid_attribute", **headers)


def test_c_hdr_06_the_name_of_a_file(registry: Client) -> None:
    for id_ in ("f", "a.json", "_a:b@c~d"):
        path = f"/dirs/d/files/{id_}"
        assert registry.put(path, b"").headers["Content-Disposition"] == id_
        assert registry.get(f"{path}/versions/1").headers["Content-Disposition"] == id_
        assert "Content-Disposition" not in registry.get(f"{path}$details").headers


def test_c_hdr_07_each_attribute_stays(registry: Client) -> None:
    sent = {"name": "n", "description": "d", "labels": {"a": "b"}, "xint": 5, "xobj": {"a": "b"}, "xarr": [1]}
    registry.put(f"{F}$details", {**sent, "documentation": "http://h"})
    registry.put(F, b"new", xregistry_documentation="null", xregistry_xint="6")
    shown = registry.get(f"{F}$details").json
    assert {name: shown.get(name) for name in sent} == {**sent, "xint": 6}
    assert "documentation" not in shown
    registry.put(f"{F}/versions/1", b"newer")
    assert registry.get(f"{F}$details").json["labels"] == {"a": "b"}
    assert "name" not in registry.get(registry.post(F, b"").headers["xRegistry-self"] + "$details").json


def test_c_hdr_08_null_in_lower_case_alone(registry: Client) -> None:
    for text in ("NULL", "Null", " null", '"null"'):
        shown = registry.put(F, b"", xregistry_description=text)
        assert shown.status in (200, 201)
    registry.put(F, b"", xregistry_description="NULL")
    assert registry.get(f"{F}$details").json["description"] == "NULL"
    registry.send("PUT", F, b"", **{"xregistry-labels.a": "1", "xregistry-labels.b": "2"})
    headers = registry.send("PUT", F, b"", **{"xregistry-labels.a": "null", "xregistry-labels.b": "2"}).headers
    assert [name for name in headers if "labels" in name] == ["xRegistry-labels.b"]
    registry.put(F, b"", xregistry_labels="null")
    assert "labels" not in registry.get(f"{F}$details").json
    registry.put(F, b"", xregistry_epoch="null")
    for name in ("fileid", "versionid", "ancestorid", "createdat"):
        assert registry.put(F, b"", **{f"xregistry_{name}": "null"}).status == 200


def test_headers_are_checked_as_attributes_are(registry: Client) -> None:
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
    sent = {f"xregistry_{name}": text for name, text in ignored.items()}
    assert registry.put(F, b"x", **sent).headers["xRegistry-epoch"] == "2"


def test_numbers_in_headers(registry: Client) -> None:
    for text, number in {"5": 5, "-5": -5, "1e2": 100, "2.0": 2, "9" * 30: int("9" * 30), "007": 7}.items():
        registry.put(F, b"", xregistry_xint=text, xregistry_xdec=text)
        shown = registry.get(f"{F}$details").json
        assert (shown["xint"], shown["xdec"]) == (number, number), text
    registry.put(F, b"", xregistry_xdec="-1.5E-3")
    assert registry.get(F).headers["xRegistry-xdec"] == "-0.0015"


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("Euro € 😀", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
        ('"', "%22"),
        ("100%", "100%25"),
        ("a%20b", "a%2520b"),
        ("\t\n\x7f", "%09%0A%7F"),
        ("!#$&'()*+,-./:;<=>?@[\\]^_`{|}~", "!#$&'()*+,-./:;<=>?@[\\]^_`{|}~"),
        ("é", "%C3%A9"),
        ("", ""),
    ],
)
def test_c_hdr_13_encoding(registry: Client, text: str, header: str) -> None:
    registry.put(f"{F}$details", {"description": text, "labels": {"a": text}})
    headers = registry.get(F).headers
    assert (headers["xRegistry-description"], headers["xRegistry-labels.a"]) == (header, header)
    registry.put(F, b"", xregistry_description="null")
    registry.put(F, b"", xregistry_description=header)
    assert registry.get(f"{F}$details").json["description"] == text


def test_c_hdr_16_names_match_whatever_their_case(registry: Client) -> None:
    registry.send("PUT", F, b"", **{"XREGISTRY-Name": "n", "xRegistry-Labels.A": "1", "Content-Type": "a/b"})
    shown = registry.get(f"{F}$details").json
    assert (shown["name"], shown["labels"], shown["contenttype"]) == ("n", {"a": "1"}, "a/b")
    refuses(registry, "PUT", F, b"", "extra_xregistry_header", **{"XRegistry-FILE": "x"})
    refuses(registry, "PUT", f"{F}$details", {}, "extra_xregistry_header", **{"XREGISTRY-NAME": "x"})


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
    assert registry.put(path, b"{", xregistry_name="n").error[:2] == (400, "extra_xregistry_header")
    assert registry.put(path, b"", xregistry_name="n").error == (400, "missing_body", path)


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
        made = client.put(path, content=b"abc", headers=headers)
        assert (made.status_code, made.content, made.headers["content-type"]) == (201, b"abc", "text/x; a=b")
        shown = client.get(f"{path}$details").json()
        assert (shown["name"], shown["labels"], shown["format"]) == ("n", {"a.b": "Euro €"}, "F/1")
        assert shown["description"] == 'ä "q"'
        found = client.get(path)
        raw = {name.decode(): each.decode("ascii") for name, each in found.headers.raw}
        assert found.headers["xRegistry-description"] == "%C3%A4%20%22q%22"
        assert found.headers["xregistry-labels.a.b"] == "Euro%20%E2%82%AC"
        assert all(each.isprintable() for each in raw.values())
        head = client.head(path)
        same = [each.headers["xregistry-self"] for each in (found, head)]
        assert (head.status_code, head.content, same[0]) == (200, b"", same[1])
        assert client.put(f"{path}$details", json={}, headers={"XRegistry-Name": "n"}).status_code == 400
        assert client.put(path, headers={"XRegistry-SCHEMA": "n"}).status_code == 400
