"""Flags: query parameters that shape requests and answers. The rows of the checklist by their ids.

Spec: core/spec.md#request-flags; core/http.md#request-flags--query-parameters. `filter` has a module of its own.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.httpapi.conftest import BASE, FIXTURE, Client

X = "/dirs/d/datas/x"
F = "/dirs/d/files/f"
SETTINGS = ("/capabilities", "/capabilitiesoffered", "/model", "/modelsource", "/.xregistry")
ENTITIES = ("/", "/dirs/d", f"{F}$details", f"{F}/meta", f"{F}/versions/1$details")
COLLECTIONS = ("/dirs", "/dirs/d/files", f"{F}/versions")


@pytest.fixture
def filled(registry: Client) -> Client:
    assert registry.put(F, b'{"a": 1}', content_type="application/json").status == 201
    assert registry.post(f"{X}/versions", {"v1": {}, "v2": {}}).status == 200
    return registry


def unchanged(registry: Client, method: str, url: str, sent: Any) -> tuple[int, str, str | None]:
    """The error of a request that must not change anything."""
    before = registry.get("/export").body
    reply = registry.send(method, url, sent)
    assert registry.get("/export").body == before
    return reply.error


# -- in general ---------------------------------------------------------------------------------------------------


def test_c_flg_01_how_flags_are_written(filled: Client) -> None:
    one = filled.get("/?inline=dirs.files,dirs.datas").json
    assert one == filled.get("/?inline=dirs.files&inline=dirs.datas").json
    assert filled.get(f"{F}?doc=false").json == filled.get(f"{F}?doc").json
    assert filled.get("/?INLINE=nothing&Doc&inline=").status == 200
    assert "specversion" not in filled.get("/?collections=false").json


def test_c_flg_02_what_is_not_known_is_ignored(filled: Client) -> None:
    plain = filled.get("/").body
    assert filled.get("/?foo=bar&limit=0&offset=x&dirs").body == plain
    assert filled.put("/dirs/e?foo=bar", {}).status == 201
    filled.patch("/capabilities", {"flags": []})
    for flag in ("inline=bogus", "filter=a..b", "sort=x", "specversion=9", "ignore=bogus", "collections", "doc"):
        assert filled.get(f"/dirs?{flag}").status == 200, flag
    assert "dirs" not in filled.get("/?inline=*").json
    assert filled.get(F + "?doc").body == b'{"a": 1}'
    assert filled.delete("/dirs/e?epoch=77").status == 204
    assert filled.put(f"{X}?setdefaultversionid=", {}).status == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_c_flg_03_writes_are_answered_as_asked(filled: Client, method: str) -> None:
    shown = filled.send(method, "/dirs/d?inline=datas.versions", {}).json
    assert list(shown["datas"]["x"]["versions"]) == ["v1", "v2"]
    assert "files" not in shown
    shown = filled.send(method, "/dirs/d?doc&inline=files.file", {}).json
    assert (shown["self"], shown["files"]["f"]["self"]) == ("#/", "#/files/f")
    assert list(filled.send(method, "/?collections", {}).json) == list(filled.get("/?collections").json)
    sent = {"contenttype": "application/json"}
    assert filled.send(method, f"{F}$details?inline=file", sent).json["file"] == {"a": 1}


def test_c_flg_03_collections_that_are_written(filled: Client) -> None:
    sent = {"dirs": {"d": {}, "a": {}}, "boxes": {"b": {}}}
    shown = filled.post("/?inline=dirs.datas.meta", sent).json
    assert list(shown) == ["dirs", "boxes"]
    assert list(shown["dirs"]) == ["a", "d"]
    assert "meta" in shown["dirs"]["d"]["datas"]["x"]
    assert "versions" not in shown["dirs"]["d"]["datas"]["x"]
    shown = filled.post("/?doc&inline=dirs", {"dirs": {"d": {}}}).json
    assert shown["dirs"]["d"]["self"] == "#/dirs/d"
    shown = filled.post("/dirs/d?doc&inline=datas.versions", {"datas": {"x": {}}}).json
    assert shown["datas"]["x"]["versions"]["v1"]["self"] == "#/datas/x/versions/v1"
    shown = filled.post("/dirs?doc&inline=datas", {"d": {}, "a": {}}).json
    assert (list(shown), shown["d"]["datas"]["x"]["self"]) == (["a", "d"], "#/d/datas/x")
    shown = filled.patch(f"{X}/versions?doc", {"v2": {}}).json
    assert (list(shown), shown["v2"]["self"]) == (["v2"], "#/v2")


@pytest.mark.parametrize("flag", ["inline=nothing", "sort=name", "ignore=nothing", "filter=a..b", "specversion=9"])
def test_c_flg_03_a_bad_flag_undoes_the_write(filled: Client, flag: str) -> None:
    for method, url, sent in (("PUT", "/dirs/new", {}), ("PATCH", f"{X}", {"name": "n"}), ("DELETE", X, None)):
        if "sort" not in flag or method != "DELETE":
            assert unchanged(filled, method, f"{url}?{flag}", sent)[0] == 400


@pytest.mark.parametrize("flag", ["inline=nothing", "ignore=nothing", "filter=a..b", "specversion=9"])
def test_a_bad_flag_comes_before_a_wrong_method_and_a_missing_body(registry: Client, flag: str) -> None:
    for method, url in (("PUT", "/dirs"), ("PATCH", F), ("PUT", "/dirs/d"), ("GET", "/dirs/d"), ("POST", "/model")):
        error = registry.send(method, f"{url}?{flag}").error
        assert error[0] == 400
        assert error[1] in ("bad_inline", "bad_ignore", "bad_filter", "unsupported_specversion")
        assert error[2] == url


# -- binary, collections ------------------------------------------------------------------------------------------


def test_c_bin_01_documents_as_base64(filled: Client) -> None:
    for url in (f"{F}$details?binary&inline=file", f"{F}/versions/1$details?binary&inline=file"):
        shown = filled.get(url).json
        assert (shown["filebase64"], "file" in shown) == ("eyJhIjogMX0=", False)
    shown = filled.get(f"{F}$details?binary").json
    assert "file" not in shown
    assert "filebase64" not in shown
    whole = filled.get("/export?binary").json["dirs"]["d"]["files"]["f"]
    assert whole["versions"]["1"]["filebase64"] == "eyJhIjogMX0="
    sent = {"file": "x", "contenttype": "text/plain"}
    assert filled.put(f"{F}$details?binary&inline=*", sent).json["versions"]["1"]["filebase64"] == "eA=="
    assert filled.get(f"{F}?binary").body == b"x"


def test_c_cln_01_collections_alone(filled: Client) -> None:
    found = filled.get("/?collections").json
    assert set(found) == {f"{plural}{end}" for plural in ("dirs", "boxes") for end in ("", "url", "count")}
    whole = filled.get("/?inline=*").json
    assert found["dirs"] == whole["dirs"]
    group = filled.get("/dirs/d?collections").json
    assert {name.removesuffix("url").removesuffix("count") for name in group} == set(
        FIXTURE["groups"]["dirs"]["resources"]
    )
    assert group["files"]["f"]["versions"]["1"]["file"] == {"a": 1}
    assert filled.get("/dirs/d?collections&inline=datas").json == group


def test_c_cln_02_where_they_are_not(filled: Client) -> None:
    for url in (*COLLECTIONS, *ENTITIES[2:], F, *SETTINGS[:4]):
        reply = filled.get(f"{url}?collections")
        assert reply.error == (400, "bad_flag", url)
        assert reply.json["args"] == {"flag": "collections"}
    assert unchanged(filled, "PUT", f"{X}?collections", {}) == (400, "bad_flag", X)
    assert set(filled.get("/export?collections").json) == set(filled.get("/?collections").json)


def test_c_cln_03_they_can_be_posted_back(filled: Client) -> None:
    filled.patch(f"{X}/meta", {"defaultversionid": "v1"})
    everything, group = filled.get("/?collections").json, filled.get("/dirs/d?collections").json
    before = _without_epochs(filled.get("/?doc&inline=*").json["dirs"])
    filled.delete("/dirs")
    assert filled.post("/", everything).status == 200
    assert _without_epochs(filled.get("/?doc&inline=*").json["dirs"]) == before
    assert filled.post("/dirs/other", group).status == 200
    assert filled.get("/dirs/other/files/f").json == {"a": 1}
    assert filled.get("/dirs/other/datas/x/meta").json["defaultversionid"] == "v1"


# -- doc ----------------------------------------------------------------------------------------------------------


def test_c_docv_01_what_is_left_out(filled: Client) -> None:
    filled.patch("/capabilities", {"shortself": True})
    filled.put("/dirs/d/vals/v$details", {"name": "n", "format": "nothing", "val": "x"})
    shown = filled.get("/?doc&inline=*").json
    assert "shortself" not in json.dumps(shown)
    value = shown["dirs"]["d"]["vals"]["v"]
    assert set(value) == {"valid", "self", "xid", "metaurl", "meta", "versionsurl", "versions", "versionscount"}
    version = value["versions"]["1"]
    assert version["name"] == "n"
    assert version["isdefault"] is True
    assert not [name for name in version if "validated" in name]
    assert "formatvalidated" in filled.get("/dirs/d/vals/v$details").json


def test_amb_19_reasons_are_left_out_with_what_they_explain(filled: Client) -> None:
    filled.put("/dirs/d/vals/v$details", {"format": "nothing", "val": "x"})
    assert "formatvalidatedreason" in filled.get("/dirs/d/vals/v/versions/1$details").json
    assert "formatvalidatedreason" not in filled.get("/dirs/d/vals/v/versions/1?doc").json


def test_c_docv_02_metadata_instead_of_documents(filled: Client) -> None:
    for url in (F, f"{F}$details", f"{F}/versions/1", f"{F}/versions/1$details"):
        reply = filled.get(f"{url}?doc")
        assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json; charset=utf-8")
        assert reply.json["self"] == "#/"
    filled.put("/dirs/d/files/u$details", {"fileurl": "http://example.com/u"})
    assert filled.get("/dirs/d/files/u").status == 303
    assert filled.get("/dirs/d/files/u/versions/1?doc").json["fileurl"] == "http://example.com/u"
    assert filled.put(f"{F}?doc", b"new").json["xid"] == F


def test_c_docv_03_urls_of_what_is_there(filled: Client) -> None:
    shown = filled.get(f"{F}?doc").json
    assert (shown["metaurl"], shown["versionsurl"]) == (f"{BASE}{F}/meta", f"{BASE}{F}/versions")
    shown = filled.get(f"{F}?doc&inline=meta").json
    assert (shown["metaurl"], shown["meta"]["self"]) == ("#/meta", "#/meta")
    assert shown["meta"]["defaultversionurl"] == f"{BASE}{F}/versions/1$details"
    shown = filled.get(f"{F}?doc&inline=meta,versions").json
    assert (shown["versionsurl"], shown["meta"]["defaultversionurl"]) == ("#/versions", "#/versions/1")
    shown = filled.get(f"{F}/meta?doc").json
    assert (shown["self"], shown["defaultversionurl"]) == ("#/", f"{BASE}{F}/versions/1$details")
    shown = filled.get("/?doc&inline=boxes").json
    assert (shown["self"], shown["boxesurl"], shown["dirsurl"]) == ("#/", "#/boxes", f"{BASE}/dirs")


def test_c_docv_04_pointers_begin_at_the_answer(filled: Client) -> None:
    assert filled.get("/?doc&inline=*").json["dirs"]["d"]["files"]["f"]["self"] == f"#{F}"
    assert filled.get("/dirs?doc&inline=*").json["d"]["files"]["f"]["self"] == "#/d/files/f"
    assert filled.get("/dirs/d?doc&inline=*").json["files"]["f"]["self"] == "#/files/f"
    assert filled.get("/dirs/d/files?doc&inline=*").json["f"]["self"] == "#/f"
    assert filled.get(f"{F}?doc&inline=*").json["self"] == "#/"
    assert filled.get(f"{F}/versions?doc").json["1"]["self"] == "#/1"
    filled.put("/dirs/a~b", {})
    assert filled.get("/dirs?doc").json["a~b"]["self"] == "#/a~0b"


def test_c_docv_05_cross_references_are_bare(filled: Client) -> None:
    filled.put("/dirs/d/files/s$details", {"meta": {"xref": F}})
    shown = filled.get("/dirs/d?doc&inline=files.*").json["files"]["s"]
    meta = {"fileid": "s", "self": "#/files/s/meta", "xid": "/dirs/d/files/s/meta", "xref": F}
    assert shown == {
        "fileid": "s",
        "self": "#/files/s",
        "xid": "/dirs/d/files/s",
        "metaurl": "#/files/s/meta",
        "meta": meta,
    }
    assert filled.get("/dirs/d/files/s/meta?doc").json == {**meta, "self": "#/"}


def test_c_docv_06_and_they_have_no_versions(filled: Client) -> None:
    filled.put("/dirs/d/files/s$details", {"meta": {"xref": F}})
    for url in ("/dirs/d/files/s/versions", "/dirs/d/files/s/versions/1", "/dirs/d/files/s/versions/1$details"):
        assert filled.get(f"{url}?doc").error == (400, "cannot_doc_xref", "/dirs/d/files/s")
        assert filled.get(url).status == 200


def test_c_docv_07_it_can_be_sent_back(filled: Client) -> None:
    filled.put("/dirs/d/files/s$details", {"meta": {"xref": F}})
    filled.patch(f"{X}/meta", {"defaultversionid": "v1", "labels": {"a": "b"}})
    for url in ("/", "/dirs/d", X):
        whole = filled.get(f"{url}?doc&inline=*").json
        assert filled.put(f"{url}?ignore=epoch", whole).status == 200, url
    before = filled.get("/dirs?doc&inline=*").json
    filled.delete("/dirs")
    assert filled.post("/dirs", before).status == 200
    after = filled.get("/dirs?doc&inline=*").json
    assert _without_epochs(after) == _without_epochs(before)
    assert filled.get("/dirs/d/files/s").json == {"a": 1}


def _without_epochs(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_epochs(each) for name, each in value.items() if name not in ("epoch", "modifiedat")}
    return value


# -- epoch, ignore ------------------------------------------------------------------------------------------------


def test_c_epf_01_the_epoch_of_what_is_deleted(filled: Client) -> None:
    filled.patch(f"{X}/meta", {})
    epoch = filled.get(f"{X}/meta").json["epoch"]
    assert unchanged(filled, "DELETE", f"{X}?epoch=1", None) == (400, "mismatched_epoch", f"{X}/meta")
    assert unchanged(filled, "DELETE", f"{X}/versions/v1?epoch=9", None)[1:] == ("mismatched_epoch", f"{X}/versions/v1")
    assert unchanged(filled, "DELETE", "/dirs/d?epoch=99", None) == (400, "mismatched_epoch", "/dirs/d")
    for text in ("x", "-1", "1.0", "%201", "null"):
        assert unchanged(filled, "DELETE", f"/dirs/d?epoch={text}", None)[:2] == (400, "invalid_attribute")
    assert filled.put("/dirs/d?epoch=99", {}).status == 200
    assert filled.get("/dirs/d?epoch=x").status == 200
    assert filled.delete(f"{X}/versions/v1?epoch=01").status == 204
    assert filled.delete(f"{X}?epoch={epoch + 1}").status == 204
    assert filled.delete("/dirs/d?epoch=").status == 204
    filled.put("/dirs/e", {})
    assert unchanged(filled, "DELETE", "/dirs?epoch=99", None) == (400, "bad_flag", "/dirs")
    assert filled.delete("/dirs?epoch=99", {"e": {}}).status == 204


def test_c_ign_01_epochs_on_every_level(filled: Client) -> None:
    stale = {"epoch": 99, "datas": {"x": {"epoch": 99, "meta": {"epoch": 99}, "versions": {"v1": {"epoch": 99}}}}}
    assert unchanged(filled, "PATCH", "/dirs/d", stale)[1] == "mismatched_epoch"
    assert filled.patch("/dirs/d?ignore=epoch", stale).status == 200
    assert filled.patch("/?ignore=epoch", {"epoch": 99, "dirs": {"d": stale}}).status == 200
    assert filled.post("/dirs?ignore=epoch", {"d": stale}).status == 200
    assert filled.delete("/dirs/d/datas?ignore=epoch", {"x": {"meta": {"epoch": 99}}}).status == 204
    assert unchanged(filled, "PATCH", "/dirs/d?ignore=epoch", {"epoch": "x"})[1] == "invalid_attribute"


def test_c_ign_02_ids_of_the_root_alone(filled: Client) -> None:
    assert filled.put("/dirs/d?ignore=id", {"dirid": "other"}).json["dirid"] == "d"
    assert filled.put("/?ignore=id", {"registryid": "other"}).json["registryid"] == "test"
    assert filled.put(f"{X}?ignore=id", {"dataid": "other"}).json["dataid"] == "x"
    assert filled.put(f"{X}/meta?ignore=id", {"dataid": "other"}).json["dataid"] == "x"
    sent = {"dataid": "other", "versionid": "other"}
    assert filled.put(f"{X}/versions/v1?ignore=id", sent).json["versionid"] == "v1"
    headers = {"xRegistry_fileid": "o", "xRegistry_versionid": "o"}
    assert filled.put(f"{F}/versions/1?ignore=id", b"", **headers).status == 200
    nested = {"datas": {"x": {"dataid": "other"}}}
    assert unchanged(filled, "PUT", "/dirs/d?ignore=id", nested) == (400, "mismatched_id", X)
    assert unchanged(filled, "POST", "/dirs?ignore=id", {"d": {"dirid": "other"}}) == (400, "mismatched_id", "/dirs/d")
    assert unchanged(filled, "PATCH", "/dirs/d?ignore=id", {"dirid": 5})[1] == "invalid_attribute"
    assert unchanged(filled, "PUT", "/dirs/d", {"dirid": "other"}) == (400, "mismatched_id", "/dirs/d")


def test_c_ign_03_settings(filled: Client) -> None:
    capabilities, model = filled.get("/capabilities").json, filled.get("/modelsource").json
    for method in ("PUT", "PATCH"):
        sent = {"capabilities": 5, "modelsource": {"groups": 7}, "name": method}
        assert filled.send(method, "/?ignore=capabilities,modelsource", sent).json["name"] == method
        assert unchanged(filled, method, "/?ignore=modelsource", {"capabilities": 5})[1] == "capability_error"
    assert (filled.get("/capabilities").json, filled.get("/modelsource").json) == (capabilities, model)
    assert filled.put("/modelsource?ignore=modelsource", {"attributes": 5}).status == 400


def test_c_ign_04_the_default_version(filled: Client) -> None:
    sent = {"defaultversionid": "v1", "defaultversionsticky": True}
    assert filled.patch(f"{X}/meta?ignore=defaultversionid,defaultversionsticky", sent).json["defaultversionid"] == "v2"
    assert filled.get(f"{X}/meta").json["defaultversionsticky"] is False
    sent = {"meta": {"defaultversionid": "nothing"}}
    assert filled.patch(f"{X}?ignore=defaultversionid", sent).status == 200
    shown = filled.put(
        f"{X}/meta?ignore=defaultversionsticky", {"defaultversionid": "v1", "defaultversionsticky": True}
    )
    assert (shown.json["defaultversionid"], shown.json["defaultversionsticky"]) == ("v2", False)


def test_c_ign_05_all_of_them(filled: Client) -> None:
    for flag in ("ignore", "ignore=", "ignore=*", "ignore=id,epoch", "ignore=id&ignore=epoch", "ignore=*,id"):
        assert filled.put(f"/dirs/d?{flag}", {"dirid": "other", "epoch": 99}).status == 200, flag
    assert unchanged(filled, "PUT", "/dirs/d?ignore=id,", {"epoch": 99})[1] == "mismatched_epoch"
    assert filled.put("/?ignore", {"capabilities": 5, "modelsource": 5, "registryid": "o", "epoch": 99}).status == 200


@pytest.mark.parametrize("text", ["nothing", "ID", "epoch,nothing", "epoch&ignore=nothing", "%20id"])
def test_c_ign_06_values_that_are_none(filled: Client, text: str) -> None:
    for method, url, sent in (("PUT", "/dirs/d", {}), ("GET", "/dirs", None), ("DELETE", X, None)):
        assert unchanged(filled, method, f"{url}?ignore={text}", sent) == (400, "bad_ignore", url)
    reply = filled.get("/?ignore=epoch,nothing")
    assert reply.json["args"]["value"] == "nothing"


def test_c_ign_06_values_that_are_not_offered(filled: Client) -> None:
    filled.patch("/capabilities", {"ignores": ["epoch"]})
    assert unchanged(filled, "PUT", "/dirs/d?ignore=id", {}) == (400, "bad_ignore", "/dirs/d")
    assert unchanged(filled, "PUT", "/dirs/d?ignore", {"dirid": "other"})[1] == "mismatched_id"
    assert filled.put("/dirs/d?ignore", {"epoch": 99}).status == 200


# -- inline -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("/?inline=foo", "bad_inline"),
        ("/?inline=dirs.foo", "bad_inline"),
        ("/?inline=name", "inline_noninlineable"),
        ("/?inline=dirs.name", "inline_noninlineable"),
        ("/?inline=dirsurl", "bad_inline"),
        ("/?inline=dirs.files.meta.epoch", "inline_noninlineable"),
        ("/?inline=dirs.files.metaurl", "inline_noninlineable"),
        ("/?inline=dirs,labels", "inline_noninlineable"),
        (f"{F}$details?inline=name", "inline_noninlineable"),
        (f"{F}/meta?inline=labels", "inline_noninlineable"),
        (f"{F}/versions/1$details?inline=versions", "bad_inline"),
        ("/model?inline=foo", "bad_inline"),
    ],
)
def test_c_inl_01_what_cannot_be_inlined(filled: Client, url: str, code: str) -> None:
    reply = filled.get(url)
    assert reply.error[0] == 400
    assert reply.error[2] == url.partition("?")[0].removesuffix("$details") or reply.error[2] == url.partition("?")[0]
    assert reply.error[1] in (code, "inline_noninlineable", "bad_inline")


def test_amb_06_what_is_there_and_what_is_not(registry: Client) -> None:
    reply = registry.get("/?inline=dirs.name")
    assert (reply.error, reply.json["args"]) == ((400, "inline_noninlineable", "/"), {"name": "dirs.name"})
    reply = registry.get("/?inline=dirs.nothing")
    assert reply.error == (400, "bad_inline", "/")
    assert reply.json["args"]["value"] == "dirs.nothing"


def test_c_inl_01_what_can(filled: Client) -> None:
    for name in ("model", "modelsource", "capabilities"):
        assert filled.get(f"/?inline={name}").json[name] == filled.get(f"/{name}").json
    assert set(filled.get("/?inline=dirs,boxes").json) >= {"dirs", "boxes"}
    assert filled.get(f"{F}$details?inline=meta").json["meta"] == filled.get(f"{F}/meta").json
    assert filled.get(f"{F}$details?inline=file").json["file"] == {"a": 1}
    assert filled.get("/?inline=['dirs']").json["dirs"].keys() == {"d"}


@pytest.mark.parametrize("flag", ["inline=*", "inline", "inline=", "inline=*,dirs"])
def test_c_inl_02_everything(filled: Client, flag: str) -> None:
    shown = filled.get(f"/?{flag}").json
    assert not {"model", "modelsource", "capabilities"} & set(shown)
    assert shown["boxes"] == {}
    file = shown["dirs"]["d"]["files"]["f"]
    assert (file["file"], file["meta"]["epoch"], file["versions"]["1"]["file"]) == ({"a": 1}, 1, {"a": 1})
    assert {"model", "dirs"} <= set(filled.get("/?inline=model,*").json)


@pytest.mark.parametrize("text", ["dirs*", "*.dirs", "dirs.*.files", "**", "dirs.d*", "dirs.", ".dirs", "dirs..files"])
def test_c_inl_03_a_star_stands_alone_at_the_end(registry: Client, text: str) -> None:
    assert registry.get(f"/?inline={text}").error == (400, "bad_inline", "/")


def test_c_inl_03_below_one_collection(filled: Client) -> None:
    shown = filled.get("/?inline=dirs.files.*").json
    assert set(shown["dirs"]["d"]["files"]["f"]) >= {"file", "meta", "versions"}
    assert "datas" not in shown["dirs"]["d"]


def test_c_inl_04_what_is_above_and_nothing_beside(filled: Client) -> None:
    shown = filled.get("/?inline=dirs.files.versions").json
    assert "boxes" not in shown
    assert "datas" not in shown["dirs"]["d"]
    file = shown["dirs"]["d"]["files"]["f"]
    assert "meta" not in file
    assert "file" not in file["versions"]["1"]
    assert filled.get("/?inline=dirs.files.versions.file").json["dirs"]["d"]["files"]["f"]["versions"]["1"]["file"]


def test_c_inl_05_paths_begin_where_the_request_is(filled: Client) -> None:
    assert filled.get("/dirs?inline=files.file").json["d"]["files"]["f"]["file"] == {"a": 1}
    assert filled.get("/dirs/d/files?inline=file").json["f"]["file"] == {"a": 1}
    assert filled.get(f"{F}/versions?inline=file").json["1"]["file"] == {"a": 1}
    for url in ("/dirs?inline=dirs", "/dirs/d?inline=dirs.files", "/?inline=dirs.d.files", "/?inline=DIRS"):
        assert filled.get(url).error[:2] == (400, "bad_inline")


def test_c_inl_06_a_document_has_one_name(filled: Client) -> None:
    filled.put(f"{F}/versions/b", b"\xff\x00")
    shown = filled.get(f"{F}/versions?inline=file").json
    assert (shown["1"]["file"], shown["b"]["filebase64"]) == ({"a": 1}, "/wA=")
    for url in (f"{F}$details?inline=filebase64", "/?inline=dirs.files.filebase64"):
        assert filled.get(url).error[:2] == (400, "inline_noninlineable")
    assert filled.get(f"{X}?inline=data").status == 200


# -- setdefaultversionid ------------------------------------------------------------------------------------------


def default(registry: Client) -> tuple[str, bool]:
    meta = registry.get(f"{X}/meta").json
    return meta["defaultversionid"], meta["defaultversionsticky"]


@pytest.mark.parametrize(
    ("method", "url", "sent"),
    [
        ("PATCH", X, {"meta": {"defaultversionid": "v2", "defaultversionsticky": False}}),
        ("PUT", X, {}),
        ("PATCH", f"{X}/meta", {"defaultversionid": "v2"}),
        ("PUT", f"{X}/meta", {}),
        ("POST", f"{X}/versions", {"v3": {}}),
        ("PATCH", f"{X}/versions", {"v2": {"name": "n"}}),
        ("PUT", f"{X}/versions/v3", {}),
        ("PATCH", f"{X}/versions/v1", {}),
        ("POST", X, {}),
        ("POST", X, {"versionid": "v2"}),
        ("POST", f"{X}/versions", {}),
    ],
)
def test_c_sdv_01_it_overrides_what_is_sent(filled: Client, method: str, url: str, sent: Any) -> None:
    assert filled.send(method, f"{url}?setdefaultversionid=v1", sent).status in (200, 201)
    assert default(filled) == ("v1", True)


def test_c_sdv_01_a_version_that_is_made(filled: Client) -> None:
    assert filled.put(f"{X}/versions/v9?setdefaultversionid=v9", {}).status == 201
    filled.put(f"{X}/versions/v10", {})
    assert default(filled) == ("v9", True)
    assert filled.put(f"{F}/versions/n?setdefaultversionid=1", b"n").status == 201
    assert filled.get(f"{F}/meta").json["defaultversionid"] == "1"


@pytest.mark.parametrize(
    ("method", "url", "sent"),
    [
        ("PATCH", X, {}),
        ("PUT", f"{X}/meta", {"defaultversionid": "v1", "defaultversionsticky": True}),
        ("PATCH", f"{X}/meta", {"defaultversionid": "v1"}),
        ("POST", f"{X}/versions", {}),
        ("PATCH", f"{X}/versions/v1", {}),
    ],
)
def test_c_sdv_02_null_lets_it_go(filled: Client, method: str, url: str, sent: Any) -> None:
    filled.patch(f"{X}/meta", {"defaultversionid": "v1"})
    assert filled.send(method, f"{url}?setdefaultversionid=null", sent).status == 200
    assert default(filled) == ("v2", False)


def test_c_sdv_03_the_version_that_is_asked_for(filled: Client) -> None:
    made = filled.post(f"{X}?setdefaultversionid=request", {"name": "n"}).json["versionid"]
    assert default(filled) == (made, True)
    assert unchanged(filled, "POST", f"{X}?setdefaultversionid=request", {"versionid": "v1"}) == (
        400,
        "defaultversionid_request",
        X,
    )
    for method in ("POST", "PATCH"):
        assert unchanged(filled, method, f"{X}/versions?setdefaultversionid=request", {"v1": {}})[1:] == (
            "defaultversionid_request",
            X,
        )
    several = {"a": {}, "b": {}}
    assert unchanged(filled, "POST", f"{X}/versions?setdefaultversionid=request", several)[1:] == (
        "too_many_versions",
        f"{X}/versions",
    )
    for method, url in (("PUT", X), ("PATCH", X), ("PUT", f"{X}/meta"), ("PUT", f"{X}/versions/n"), ("DELETE", X)):
        assert unchanged(filled, method, f"{url}?setdefaultversionid=request", {})[1:] == ("bad_flag", url)


@pytest.mark.parametrize(
    ("method", "url", "sent"),
    [
        ("PUT", X, {}),
        ("PATCH", f"{X}/meta", {}),
        ("POST", f"{X}/versions", {"v3": {}}),
        ("POST", f"{X}/versions", {}),
        ("PUT", f"{X}/versions/v3", {}),
        ("DELETE", f"{X}/versions/v2", None),
        ("PUT", "/dirs/d/datas/new", {}),
    ],
)
def test_c_sdv_04_versions_that_are_not_there(filled: Client, method: str, url: str, sent: Any) -> None:
    for text in ("zz", "V1"):
        reply = unchanged(filled, method, f"{url}?setdefaultversionid={text}", sent)
        assert reply[:2] == (400, "unknown_id")
    for text in ("", "v1&setdefaultversionid=v2"):
        assert unchanged(filled, method, f"{url}?setdefaultversionid={text}", sent)[1:] == ("bad_defaultversionid", url)


def test_c_sdv_04_judged_when_versions_are_made(filled: Client) -> None:
    assert filled.post(f"{X}/versions?setdefaultversionid=v3", {"v3": {}, "v4": {}}).status == 200
    assert default(filled) == ("v3", True)


@pytest.mark.parametrize(
    ("method", "url", "sent"),
    [
        ("POST", "/dirs/d/datas", {"x": {}}),
        ("PATCH", "/dirs/d/datas", {"x": {}}),
        ("DELETE", "/dirs/d/datas", {}),
        ("PUT", "/dirs/d", {}),
        ("POST", "/dirs/d", {"datas": {}}),
        ("POST", "/dirs", {}),
        ("PUT", "/", {}),
        ("POST", "/", {}),
    ],
)
def test_c_sdv_05_of_one_resource(filled: Client, method: str, url: str, sent: Any) -> None:
    reply = filled.send(method, f"{url}?setdefaultversionid=v1", sent)
    assert (reply.error, reply.json["args"]) == ((400, "bad_flag", url), {"flag": "setdefaultversionid"})
    assert default(filled) == ("v2", False)


def test_c_sdv_06_after_a_version_is_deleted(filled: Client) -> None:
    filled.put(f"{X}/versions/v3", {})
    epoch = filled.get(f"{X}/meta").json["epoch"]
    assert filled.delete(f"{X}/versions/v3?setdefaultversionid=v1").status == 204
    assert default(filled) == ("v1", True)
    assert filled.get(f"{X}/meta").json["epoch"] == epoch + 1
    error = (400, "unknown_id", f"{X}/meta")
    assert unchanged(filled, "DELETE", f"{X}/versions/v2?setdefaultversionid=v2", None) == error
    assert unchanged(filled, "DELETE", f"{X}/versions?setdefaultversionid=v2", {"v2": {}}) == error
    assert unchanged(filled, "DELETE", f"{X}/versions?setdefaultversionid=v2", {"v1": {}, "v2": {}}) == error
    assert unchanged(filled, "DELETE", f"{X}/versions/v2?setdefaultversionid=none", None) == error
    assert filled.delete(f"{X}/versions?setdefaultversionid=v2", {"v1": {}}).status == 204
    assert default(filled) == ("v2", True)


# -- sort, specversion --------------------------------------------------------------------------------------------


def test_c_srt_01_and_02_and_04_order(registry: Client) -> None:
    sent = {
        "b": {"xint": 10, "name": "b", "xtime": "2024-01-01T00:00:00+02:00", "labels": {"s": "Z"}, "xbool": True},
        "a": {"xint": 9, "name": "B", "xtime": "2023-12-31T23:00:00Z", "labels": {"s": "a"}, "xbool": False},
        "c": {"xint": -40, "name": "ä", "xarr": [7]},
        "D": {"xint": 5.0, "name": "Z", "xarr": [10], "xobj": {"n": 3}},
    }
    registry.post("/dirs/d/datas", sent)

    def order(text: str) -> str:
        return "".join(registry.get(f"/dirs/d/datas?sort={text}").json)

    assert order("xint") == order("xint=asc") == order("xint=") == order("XINT") == "cDab"
    assert order("xint=desc") == "baDc"
    assert order("name") == "abDc"
    assert order("name=desc") == "cDba"
    assert order("xtime") == "cDba"
    assert order("xtime=desc") == "abDc"
    assert order("labels.s") == order("labels['s']") == "cDab"
    assert order("xbool=desc") == "baDc"
    assert order("xarr[0]") == "abcD"
    assert order("xobj.n=desc") == "Dcba"
    assert order("dataid=desc") == "Dcba"
    assert order("labels.nothing=desc") == "Dcba"
    assert order("versionid") == "abcD"
    assert "".join(registry.get("/dirs/d/datas").json) == "abcD"


def test_c_srt_01_every_kind_of_collection(registry: Client) -> None:
    registry.post("/dirs", {"a": {"name": "2"}, "b": {"name": "1"}})
    assert list(registry.get("/dirs?sort=name").json) == ["b", "a"]
    registry.post(f"{X}/versions", {"v1": {"name": "2"}, "v2": {"name": "1"}})
    assert list(registry.get(f"{X}/versions?sort=name").json) == ["v2", "v1"]
    assert list(registry.get(f"{X}/versions?sort=isdefault=desc").json) == ["v2", "v1"]


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_c_srt_01_c_flg_03_answers_to_writes_are_sorted(registry: Client, method: str) -> None:
    for url in ("/dirs", "/dirs/a/datas", f"{X}/versions"):
        registry.post(url, {"zero": {"name": "0"}})
        sent = {"a": {"name": "2", "xany": 1}, "B": {"name": "3", "xany": 0}, "c": {"name": "1"}}
        assert list(registry.send(method, f"{url}?sort=name=desc", sent).json) == ["B", "a", "c"], url
        assert list(registry.send(method, f"{url}?sort=xany", sent).json) == ["c", "B", "a"], url
        assert list(registry.send(method, f"{url}?sort=name&filter=name>1", sent).json) == ["a", "B"], url


def test_c_srt_03_only_collections_are_sorted(filled: Client) -> None:
    for url in (*ENTITIES, F, "/dirs/none", *SETTINGS, "/export"):
        assert filled.get(f"{url}?sort=name").error == (400, "sort_noncollection", url)
    assert unchanged(filled, "PUT", "/dirs/d?sort=name", {}) == (400, "sort_noncollection", "/dirs/d")


UNSORTABLE = ("name=up", "name=ASC", "name=asc=x", "", "=asc", "a..b", "[0]", "labels.*", "name&sort=epoch")
COMPLEX = ("name,description", "na!me", "labels", "xobj", "xarr", "nothing", "files.name", "datas", "deprecated")


@pytest.mark.parametrize("text", [*UNSORTABLE, *COMPLEX])
def test_c_srt_03_what_cannot_be_sorted_by(registry: Client, text: str) -> None:
    reply = registry.get(f"/dirs?sort={text}")
    assert reply.error == (400, "bad_sort", "/dirs")
    assert set(reply.json["args"]) == {"value", "error_detail"}


def test_c_srt_03_of_what_is_below(filled: Client) -> None:
    for text in ("versions.versionid", "meta.epoch", "versions", "meta"):
        assert filled.get(f"/dirs/d/files?sort={text}").error == (400, "bad_sort", "/dirs/d/files")


@pytest.mark.parametrize("text", ["1.0-rc4", "1.0-RC4", "1.0.7-rc4", ""])
def test_c_spv_01_and_02_versions_of_the_text(registry: Client, text: str) -> None:
    for url in ("/", "/dirs", *SETTINGS[:4], "/export"):
        reply = registry.get(f"{url}?specversion={text}")
        assert reply.status == 200
    assert registry.get(f"/?specversion={text}").json["specversion"] == "1.0-rc4"
    assert registry.put(f"/dirs/d?specversion={text}", {}).status == 201


@pytest.mark.parametrize("text", ["1.0", "1", "2", "v1.0-rc4", "1.0-rc4.1", "1.0-rc3", "1.0.0.0-rc4", "x"])
def test_c_spv_01_and_02_versions_that_are_not_there(registry: Client, text: str) -> None:
    for url in ("/", "/dirs/none", *SETTINGS, "/export"):
        reply = registry.get(f"{url}?specversion={text}")
        assert reply.error == (400, "unsupported_specversion", url)
        assert reply.json["args"]["specversion"] == text
        assert "1.0-rc4" in reply.json["args"]["list"].split(",")
    assert unchanged(registry, "PUT", f"/dirs/d?specversion={text}", {})[1] == "unsupported_specversion"


def test_empty_inline_parameter_means_everything(filled: Client) -> None:
    everything = filled.get("/?inline=*,model").body
    for query in ("inline=model&inline", "inline&inline=model", "inline=model&inline=", "inline=model,*"):
        assert filled.get(f"/?{query}").body == everything, query
    assert filled.get("/dirs?inline=datas&inline").body == filled.get("/dirs?inline=*").body


def test_empty_ignore_parameter_means_everything(filled: Client) -> None:
    sent = {"registryid": "other", "epoch": 99, "capabilities": {"flags": []}}
    for query in ("ignore=epoch&ignore", "ignore&ignore=epoch", "ignore=epoch&ignore=", "ignore=*,epoch"):
        assert filled.patch(f"/?{query}", sent).status == 200, query
    assert filled.patch("/?ignore=epoch", sent).status == 400


def test_ignored_epoch_of_a_delete_is_not_checked(filled: Client) -> None:
    paths = [f"{X}/versions/v2", X, "/dirs/d"]
    for path in paths:
        assert filled.delete(f"{path}?epoch=999").error[:2] == (400, "mismatched_epoch")
        assert filled.delete(f"{path}?epoch=999&ignore=id").error[:2] == (400, "mismatched_epoch")
    for path, flag in zip(paths, ("ignore=epoch", "ignore", "ignore=id,epoch"), strict=True):
        assert filled.delete(f"{path}?epoch=999&{flag}").status == 204, path
