"""Entities: ids, epochs, times, collections. A test for each row of the checklist, named by its id."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import Client, serve
from wirebook.storage.database import Database


def test_c_ent_01_every_level_has_its_path(registry: Client) -> None:
    assert registry.put("/dirs/d/files/f/versions/v1", b"x").status == 201
    paths = ("/", "/dirs", "/dirs/d", "/dirs/d/files", "/dirs/d/files/f", "/dirs/d/files/f/meta")
    versions = ("/dirs/d/files/f/versions", "/dirs/d/files/f/versions/v1")
    assert [registry.get(path).status for path in paths + versions] == [200] * 8


def test_c_ent_05_parents_are_made(registry: Client) -> None:
    assert registry.put("/dirs/new/files/f/versions/v1", b"").status == 201
    assert registry.get("/dirs/new").json["filescount"] == 1


def test_c_ent_07_a_request_that_fails_has_no_effect(registry: Client) -> None:
    reply = registry.put("/dirs/d?inline=nothing", {})
    assert reply.error[:2] == (400, "bad_inline")
    assert registry.get("/dirs/d").error == (404, "not_found", "/dirs/d")
    assert registry.get("/").json["epoch"] == 1


def test_c_ent_08_json_that_cannot_be_read(registry: Client) -> None:
    for body in (b"{", b"[1,]", b'{"a":1} x', b'{"a":NaN}', b'{"name":"\\ud800"}', b"\xff", b"[]", b'"x"'):
        assert registry.put("/dirs/d", body).error[:2] == (400, "parsing_data"), body


def test_c_ent_03_and_04_amb_21_a_resource_has_versions_and_one_meta(registry: Client) -> None:
    path = "/dirs/d/datas/x"
    ways = (
        ("PUT", path, {}),
        ("PATCH", path, {}),
        ("PUT", path, {"versions": {}}),
        ("PUT", path, {"versions": {"a": {}}}),
        ("POST", path, {}),
        ("PUT", f"{path}/meta", {}),
        ("PATCH", f"{path}/meta", {}),
        ("PUT", f"{path}/versions/v", {}),
        ("POST", f"{path}/versions", {"v": {}}),
        ("PATCH", f"{path}/versions", {"v": {}}),
        ("POST", "/dirs/d/datas", {"x": {}}),
        ("POST", "/dirs/d", {"datas": {"x": {"meta": {}}}}),
        ("PUT", "/", {"dirs": {"d": {"datas": {"x": {"versions": {}}}}}}),
    )
    for method, url, sent in ways:
        assert registry.send(method, url, sent).status in (200, 201), (method, url)
        assert registry.get(path).json["versionscount"] == 1
        assert registry.get(f"{path}/meta").json["xid"] == f"{path}/meta"
        (version,) = registry.get(f"{path}/versions").json
        for last in (f"{path}/versions/{version}", f"{path}/versions"):
            assert registry.delete(last, None if last.endswith(version) else {version: {}}).status == 204
            for gone in (path, f"{path}/meta", f"{path}/versions", f"{path}/versions/{version}"):
                assert registry.get(gone).error[:2] == (404, "not_found"), (method, gone)
            registry.send(method, url, sent)
        assert registry.delete(path).status == 204
        assert registry.get(f"{path}/meta").error == (404, "not_found", f"{path}/meta")


NEEDED: Final[dict[str, Any]] = {
    "groups": {
        "reqs": {
            "singular": "req",
            "attributes": {"need": {"type": "string", "required": True}},
            "resources": {"datas": {"singular": "data", "hasdocument": False}},
        },
        "dirs": {
            "singular": "dir",
            "resources": {
                "files": {"singular": "file", "attributes": {"need": {"type": "string", "required": True}}},
                "metas": {"singular": "meta_", "metaattributes": {"need": {"type": "string", "required": True}}},
                "fulls": {
                    "singular": "full",
                    "attributes": {"need": {"type": "string", "required": True, "default": "n"}},
                },
            },
        },
    }
}


def test_c_ent_06_amb_03_parents_that_need_more_are_not_made(database: Database) -> None:
    registry = serve(database, NEEDED)
    before = registry.get("/export").body
    for method, path, sent, subject in (
        ("PUT", "/reqs/r/datas/x", {}, "/reqs/r"),
        ("PUT", "/reqs/r/datas/x/versions/v", {}, "/reqs/r"),
        ("PUT", "/reqs/r/datas/x/meta", {}, "/reqs/r"),
        ("POST", "/reqs/r/datas", {"x": {}}, "/reqs/r"),
        ("POST", "/reqs/r", {"datas": {"x": {}}}, "/reqs/r"),
        ("POST", "/reqs/r/datas/x/versions", {"v": {}}, "/reqs/r"),
        ("POST", "/reqs", {"r": {}}, "/reqs/r"),
        ("PATCH", "/reqs/r", {"need": None}, "/reqs/r"),
        ("PUT", "/dirs/d/files/f", b"text", "/dirs/d/files/f/versions/1"),
        ("PUT", "/dirs/d/files/f/meta", {}, "/dirs/d/files/f/versions/1"),
        ("POST", "/dirs/d/files/f$details", {}, "/dirs/d/files/f/versions/1"),
        ("PUT", "/dirs/d/metas/m/versions/1$details", {}, "/dirs/d/metas/m/meta"),
        ("POST", "/dirs/d/metas", {"m": {}}, "/dirs/d/metas/m/meta"),
    ):
        reply = registry.send(method, path, sent)
        assert reply.error == (400, "required_attribute_missing", subject), (method, path)
        assert reply.json["args"] == {"list": "need"}
        assert registry.get("/export").body == before
    assert registry.put("/dirs/d/fulls/f/versions/1$details", {}).json["need"] == "n"
    assert registry.put("/reqs/r", {"need": "n", "datas": {"x": {}}}).status == 201
    assert registry.put("/dirs/d/metas/m$details", {"meta": {"need": "n"}}).status == 201


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        ("/dirs/none", "/dirs/none"),
        ("/dirs/D", "/dirs/D"),
        ("/dirs/d/datas/none", "/dirs/d/datas/none"),
        ("/dirs/none/datas/x", "/dirs/none/datas/x"),
        ("/dirs/none/datas", "/dirs/none"),
        ("/dirs/d/datas/none/meta", "/dirs/d/datas/none/meta"),
        ("/dirs/d/datas/none/versions", "/dirs/d/datas/none"),
        ("/dirs/d/datas/x/versions/none", "/dirs/d/datas/x/versions/none"),
        ("/dirs/d/files/none", "/dirs/d/files/none"),
        ("/dirs/d/files/none$details", "/dirs/d/files/none"),
        ("/dirs/d/files/none/versions/1$details", "/dirs/d/files/none/versions/1"),
        ("/dirs/none?inline=datas", "/dirs/none"),
        ("/dirs/d/datas/none?doc", "/dirs/d/datas/none"),
    ],
)
def test_c_ent_12_what_is_not_there(registry: Client, path: str, subject: str) -> None:
    registry.put("/dirs/d/datas/x", {})
    reply = registry.get(path)
    assert reply.error == (404, "not_found", subject)
    assert "args" not in reply.json
    if path.rpartition("/")[2] not in ("datas", "versions") and "?" not in path:
        reply = registry.delete(path)
        assert reply.status in ((405,) if path.endswith("/meta") else (404,))


def test_c_fil_13_the_worked_examples(registry: Client) -> None:
    registry.put("/dirs/g1/datas/r1/versions/v1", {})
    registry.put("/dirs/g1/datas/r1/versions/v2", {})
    registry.put("/dirs/g1/datas/r2/versions/v1", {})
    registry.put("/dirs/g2/datas/r3/versions/v1", {})

    def leaves(query: str) -> list[str]:
        found = registry.get(f"/?{query}&inline=*").json
        return [
            f"{group}/{resource}/{version}"
            for group, folder in found["dirs"].items()
            for resource, inner in folder["datas"].items()
            for version in inner["versions"]
        ]

    assert leaves("filter=dirs.datas.dataid=r1") == ["g1/r1/v1", "g1/r1/v2"]
    assert leaves("filter=dirs.dirid=g2&filter=dirs.datas.dataid=r1") == ["g1/r1/v1", "g1/r1/v2", "g2/r3/v1"]
    assert leaves("filter=dirs.dirid=g1&filter=dirs.datas.dataid=r1") == ["g1/r1/v1", "g1/r1/v2", "g1/r2/v1"]
    assert leaves("filter=dirs.dirid=g1,dirs.datas.dataid=r1") == ["g1/r1/v1", "g1/r1/v2"]
