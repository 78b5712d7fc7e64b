"""Entities: ids, epochs, times, collections. A test for each row of the checklist, named by its id."""

from __future__ import annotations

from tests.httpapi.conftest import BASE, Client


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


def test_c_id_03_ids_are_unique_whatever_their_case(registry: Client) -> None:
    registry.put("/dirs/abc", {})
    assert registry.put("/dirs/ABC", {}).status == 400
    assert registry.get("/dirs/ABC").status == 404


def test_c_id_09_numbers_of_versions_never_go_back(registry: Client) -> None:
    for _ in range(3):
        registry.post("/dirs/d/datas/x", {})
    registry.delete("/dirs/d/datas/x/versions/3")
    assert registry.post("/dirs/d/datas/x", {}).json["versionid"] == "4"


def test_c_epoch_02_every_update_raises_it(registry: Client) -> None:
    registry.put("/dirs/d", {})
    assert registry.patch("/dirs/d", {}).json["epoch"] == 2
    assert registry.put("/dirs/d", {}).json["epoch"] == 3


def test_c_epoch_04_another_epoch_is_refused(registry: Client) -> None:
    registry.put("/dirs/d", {})
    assert registry.put("/dirs/d", {"epoch": 9}).error == (400, "mismatched_epoch", "/dirs/d")
    assert registry.put("/dirs/d", {"epoch": None}).status == 200


def test_c_col_02_urls_and_counts(registry: Client) -> None:
    root = registry.get("/").json
    assert (root["dirsurl"], root["dirscount"]) == (f"{BASE}/dirs", 0)
    assert registry.get("/dirs").json == {}


def test_c_del_04_a_collection_without_a_body(registry: Client) -> None:
    registry.post("/dirs", {"a": {}, "b": {}})
    assert registry.delete("/dirs", {"a": {}}).status == 204
    assert list(registry.get("/dirs").json) == ["b"]
    assert registry.delete("/dirs").status == 204
    assert registry.get("/dirs").json == {}


def test_c_del_09_the_last_version_takes_the_resource_along(registry: Client) -> None:
    registry.put("/dirs/d/datas/x", {})
    assert registry.delete("/dirs/d/datas/x/versions/1").status == 204
    assert registry.get("/dirs/d/datas/x").status == 404
    assert registry.get("/dirs/d").json["datascount"] == 0


def test_c_fil_13_the_worked_examples(registry: Client) -> None:
    registry.put("/dirs/g1/datas/r1/versions/v1", {})
    registry.put("/dirs/g1/datas/r1/versions/v2", {})
    registry.put("/dirs/g1/datas/r2/versions/v1", {})
    registry.put("/dirs/g2/datas/r3/versions/v1", {})

    def leaves(query: str) -> list[str]:
        found = registry.get(f"/?{query}&inline=*").json
        return [
            f"{group}/{resource}/{version}"
            for group, each in found["dirs"].items()
            for resource, inner in each["datas"].items()
            for version in inner["versions"]
        ]

    assert leaves("filter=dirs.datas.dataid=r1") == ["g1/r1/v1", "g1/r1/v2"]
    assert leaves("filter=dirs.dirid=g2&filter=dirs.datas.dataid=r1") == ["g1/r1/v1", "g1/r1/v2", "g2/r3/v1"]
    assert leaves("filter=dirs.dirid=g1&filter=dirs.datas.dataid=r1") == ["g1/r1/v1", "g1/r1/v2", "g1/r2/v1"]
    assert leaves("filter=dirs.dirid=g1,dirs.datas.dataid=r1") == ["g1/r1/v1", "g1/r1/v2"]


def test_c_xref_01_a_source_shows_its_target(registry: Client) -> None:
    registry.put("/dirs/d/datas/t", {"name": "target"})
    reply = registry.put("/dirs/d/datas/s", {"meta": {"xref": "/dirs/d/datas/t"}})
    assert reply.status == 201
    shown = registry.get("/dirs/d/datas/s?inline=*").json
    assert (shown["name"], shown["dataid"], shown["meta"]["xref"]) == ("target", "s", "/dirs/d/datas/t")
    assert shown["versions"]["1"]["self"] == f"{BASE}/dirs/d/datas/s/versions/1"
    registry.delete("/dirs/d/datas/t")
    assert set(registry.get("/dirs/d/datas/s").json) == {"dataid", "self", "xid", "metaurl"}
