"""Epochs and times: what counts as a change of what. Rows EPOCH and TIME of the checklist."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.httpapi.conftest import Client

X: Final = "/dirs/d/datas/x"
V1: Final = f"{X}/versions/1"
V2: Final = f"{X}/versions/2"
META: Final = f"{X}/meta"
ALL: Final = ("/", "/dirs/d", META, V1)
OLD, LATE = "2001-01-01T00:00:00Z", "2099-01-01T00:00:00.5Z"


@pytest.fixture
def full(registry: Client) -> Client:
    """A registry with a Group, a Resource and one Version."""
    assert registry.put(X, {}).status == 201
    return registry


def epochs(registry: Client, *paths: str) -> list[int]:
    return [registry.get(path).json["epoch"] for path in paths or ALL]


def times(registry: Client, *paths: str) -> list[str]:
    return [registry.get(path).json["modifiedat"] for path in paths or ALL]


def test_c_epoch_01_every_kind_of_entity_has_one(full: Client) -> None:
    assert epochs(full) == [2, 1, 1, 1]  # the Registry was there before
    full.patch(V1, {})
    assert epochs(full, X, V1, META) == [2, 2, 1]
    full.put(V2, {})
    assert epochs(full, X, V1, V2) == [1, 2, 1]


@pytest.mark.parametrize(
    ("method", "path", "sent", "raised"),
    [
        ("PATCH", "/", {}, "/"),
        ("PUT", "/", {}, "/"),
        ("PATCH", "/dirs/d", {}, "/dirs/d"),
        ("PUT", "/dirs/d", {"datas": {}}, "/dirs/d"),
        ("PATCH", X, {}, V1),
        ("PUT", X, {}, V1),
        ("PUT", V1, {}, V1),
        ("PATCH", V1, {}, V1),
        ("PATCH", META, {}, META),
        ("PUT", META, {}, META),
        ("PATCH", X, {"meta": {}}, f"{V1} {META}"),
        ("PUT", X, {"versions": {"1": {}}}, V1),
        ("POST", "/dirs", {"d": {}}, "/dirs/d"),
        ("PATCH", "/dirs/d/datas", {"x": {}}, V1),
        ("POST", f"{X}/versions", {"1": {}}, V1),
        ("POST", X, {"versionid": "1"}, V1),
        ("POST", "/", {"dirs": {"d": {"datas": {"x": {}}}}}, f"/dirs/d {V1}"),
        ("PUT", "/", {"dirs": {"d": {"datas": {"x": {"meta": {}}}}}}, f"/ /dirs/d {META} {V1}"),
        ("POST", "/", {}, ""),
        ("POST", "/", {"dirs": {}}, ""),
        ("POST", "/dirs", {}, ""),
        ("PATCH", "/dirs", {}, ""),
        ("POST", "/dirs/d", {}, ""),
        ("POST", "/dirs/d", {"datas": {}}, ""),
        ("POST", "/dirs/d/datas", {}, ""),
        ("PATCH", f"{X}/versions", {}, ""),
        ("POST", f"{X}/versions", {}, ""),
    ],
)
def test_c_epoch_02_06_and_10_c_time_03_and_06_what_is_written_is_raised_and_nothing_else(
    full: Client, method: str, path: str, sent: Any, raised: str
) -> None:
    before, then = epochs(full), times(full)
    assert full.send(method, path, sent).status == 200
    assert epochs(full) == [epoch + (each in raised.split()) for epoch, each in zip(before, ALL, strict=True)]
    moved = [now > time for now, time in zip(times(full), then, strict=True)]
    assert moved == [each in raised.split() for each in ALL]


def test_c_epoch_02_the_same_again_is_an_update(full: Client) -> None:
    for path in ("/", "/dirs/d", V1, META):
        shown = full.get(path).json
        for method in ("PUT", "PATCH"):
            again = full.send(method, path, shown).json
            assert again["epoch"] == shown["epoch"] + 1
            assert again["modifiedat"] > shown["modifiedat"]
            assert {**again, "epoch": 0, "modifiedat": ""} == {**shown, "epoch": 0, "modifiedat": ""}
            shown = again


@pytest.mark.parametrize("epoch", [9, 0, "x", -1, 1.5, None, [], True])
def test_c_epoch_03_on_creation_it_is_ignored(registry: Client, epoch: Any) -> None:
    assert registry.put("/dirs/d", {"epoch": epoch}).json["epoch"] == 1
    assert registry.put(X, {"epoch": epoch, "meta": {"epoch": epoch}}).json["epoch"] == 1
    assert registry.post(X, {"epoch": epoch}).json["epoch"] == 1
    assert registry.put(f"{X}/versions/v", {"epoch": epoch}).json["epoch"] == 1
    assert registry.put("/dirs/d/datas/y/meta", {"epoch": epoch}).json["epoch"] == 1
    nested = {"e": {"epoch": epoch, "datas": {"x": {"versions": {"v": {"epoch": epoch}}}}}}
    assert registry.post("/dirs", nested).json["e"]["epoch"] == 1


@pytest.mark.parametrize(
    ("path", "subject", "nest"),
    [
        ("/", "/", lambda each: each),
        ("/dirs/d", "/dirs/d", lambda each: each),
        (X, V1, lambda each: each),
        (V1, V1, lambda each: each),
        (META, META, lambda each: each),
        ("/", "/dirs/d", lambda each: {"dirs": {"new": {}, "d": each}}),
        ("/dirs/d", V1, lambda each: {"name": "n", "datas": {"new": {}, "x": each}}),
        ("/dirs/d", META, lambda each: {"datas": {"x": {"meta": each}}}),
        (X, META, lambda each: {"name": "n", "meta": each}),
        (X, V1, lambda each: {"versions": {"a": {}, "1": each}}),
        ("/", V1, lambda each: {"dirs": {"d": {"datas": {"x": {"versions": {"1": each}}}}}}),
    ],
)
def test_c_epoch_04_another_one_is_refused_wherever_it_stands(full: Client, path: str, subject: str, nest: Any) -> None:
    current = epochs(full, subject)[0]
    before = full.get("/export").body
    for bad in (current + 1, current - 1, 10**20):
        for method in ("PUT", "PATCH"):
            reply = full.send(method, path, nest({"epoch": bad}))
            assert reply.error == (400, "mismatched_epoch", subject)
            assert reply.json["args"] == {"bad_epoch": str(bad), "epoch": str(current)}
            assert full.get("/export").body == before
    for right in (current, float(current + 1), None):
        assert full.put(path, nest({"epoch": right})).status == 200
        current += 1
        assert epochs(full, subject) == [current]
        if right is not None:
            assert full.put(path, nest({"epoch": right})).error[1] == "mismatched_epoch"


def test_c_epoch_04_in_collections_and_deletes(full: Client) -> None:
    before = full.get("/export").body
    for method, path, sent, subject in (
        ("POST", "/", {"dirs": {"d": {"epoch": 9}}}, "/dirs/d"),
        ("POST", "/dirs", {"a": {}, "d": {"epoch": 9}}, "/dirs/d"),
        ("PATCH", "/dirs", {"a": {}, "d": {"epoch": 9}}, "/dirs/d"),
        ("POST", "/dirs/d/datas", {"x": {"epoch": 9}}, V1),
        ("POST", f"{X}/versions", {"1": {"epoch": 9}, "2": {}}, V1),
        ("POST", X, {"versionid": "1", "epoch": 9}, V1),
        ("DELETE", "/dirs", {"d": {"epoch": 9}}, "/dirs/d"),
        ("DELETE", "/dirs/d/datas", {"x": {"meta": {"epoch": 9}}}, META),
        ("DELETE", f"{X}/versions", {"1": {"epoch": 9}}, V1),
        ("DELETE", "/dirs/d?epoch=9", None, "/dirs/d"),
        ("DELETE", f"{X}?epoch=9", None, META),
        ("DELETE", f"{V1}?epoch=9", None, V1),
    ):
        assert full.send(method, path, sent).error == (400, "mismatched_epoch", subject), (method, path)
    reply = full.put("/dirs/d/files/f", b"", xregistry_epoch="9")
    assert reply.status == 201
    assert full.put("/dirs/d/files/f", b"", xregistry_epoch="9").error[1] == "mismatched_epoch"
    full.delete("/dirs/d/files/f")
    assert full.delete("/dirs", {"d": {"epoch": None}}).status == 204
    assert full.get("/dirs").json == {}
    assert before != full.get("/export").body


@pytest.mark.parametrize(
    ("method", "path", "sent", "raised"),
    [
        ("PUT", "/dirs/e", {}, "/"),
        ("POST", "/dirs", {"e": {}, "f": {}}, "/"),
        ("POST", "/", {"dirs": {"e": {}}, "boxes": {"b": {}}}, "/"),
        ("PUT", "/dirs/e/datas/y/versions/v", {}, "/"),
        ("DELETE", "/boxes/there", None, "/"),
        ("PUT", "/dirs/d/datas/y", {}, "/dirs/d"),
        ("PUT", "/dirs/d/datas/y/meta", {}, "/dirs/d"),
        ("POST", "/dirs/d", {"datas": {"y": {}, "z": {}}, "files": {"f": {}}}, "/dirs/d"),
        ("PUT", "/dirs/d", {"datas": {"y": {}}}, "/dirs/d"),
        ("PUT", V2, {}, META),
        ("POST", X, {}, META),
        ("PUT", X, {"versions": {"1": {}, "2": {}}}, f"{META} {V1}"),
        ("PATCH", X, {"meta": {}, "versions": {"2": {}}}, META),  # the default Version is "there"
        ("DELETE", "/dirs/d/datas/there", None, "/dirs/d"),
        ("DELETE", f"{X}/versions/there", None, META),
        ("DELETE", f"{X}/versions", {"there": {}}, META),
        ("DELETE", "/dirs/d/datas/there/versions/1", None, "/dirs/d"),
    ],
)
def test_c_epoch_05_c_time_06_children_that_come_and_go(
    full: Client, method: str, path: str, sent: Any, raised: str
) -> None:
    full.put("/boxes/there", {})
    full.put("/dirs/d/datas/there", {})
    full.put(f"{X}/versions/there", {"ancestorid": "1"})
    before, then = epochs(full), times(full)
    assert full.send(method, path, sent).status in (200, 201, 204)
    assert epochs(full) == [epoch + (each in raised.split()) for epoch, each in zip(before, ALL, strict=True)]
    moved = [now > time for now, time in zip(times(full), then, strict=True)]
    assert moved == [each in raised.split() for each in ALL]


def test_c_epoch_05_what_is_made_with_its_children_starts_at_one(registry: Client) -> None:
    registry.put("/", {"dirs": {"d": {"datas": {"x": {"versions": {"1": {}, "2": {}}}}}}})
    assert epochs(registry, "/", "/dirs/d", META, V1, V2) == [2, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("PATCH", "/capabilities", {}),
        ("PATCH", "/capabilities", {"shortself": True}),
        ("PATCH", "/", {"capabilities": {}}),
        ("PATCH", "/", {"capabilities": {"pagination": False}, "name": "n"}),
        ("PUT", "/", {"capabilities": None}),
    ],
)
def test_c_epoch_07_capabilities_are_the_registrys(full: Client, method: str, path: str, sent: Any) -> None:
    before, then = epochs(full), times(full)
    assert full.send(method, path, sent).status == 200
    assert epochs(full) == [before[0] + 1, *before[1:]]
    assert times(full)[0] > then[0]


def test_c_epoch_07_the_model_is_the_registrys(full: Client) -> None:
    source = full.get("/modelsource").json
    before = epochs(full)
    for i, (method, path, sent) in enumerate(
        (
            ("PUT", "/modelsource", source),
            ("PATCH", "/", {"modelsource": source}),
            ("PUT", "/", {"modelsource": source, "capabilities": None, "dirs": {"n": {}}}),
            ("PUT", "/modelsource", {**source, "description": "d"}),
        )
    ):
        assert full.send(method, path, sent).status == 200
        assert epochs(full) == [before[0] + i + 1, *before[1:]]


def test_c_epoch_08_another_default_is_a_change_of_the_meta(full: Client) -> None:
    full.put(V2, {})
    before = epochs(full, META, V1, V2)
    for sent in ({"defaultversionid": "1"}, {"defaultversionid": "2"}, {"defaultversionsticky": False}):
        full.patch(META, sent)
        before[0] += 1
        assert epochs(full, META, V1, V2) == before
    full.patch(f"{META}?setdefaultversionid=1", {})
    assert epochs(full, META, V1, V2) == [before[0] + 1, *before[1:]]


def test_c_epoch_09_another_ancestor_is_a_change_of_the_version(full: Client) -> None:
    full.put(V2, {})
    full.put(f"{X}/versions/3", {})
    then = times(full, V1, V2, f"{X}/versions/3")
    full.delete(V2)
    last = full.get(f"{X}/versions/3").json
    assert (last["ancestorid"], last["epoch"], last["modifiedat"] > then[2]) == ("3", 2, True)
    assert epochs(full, V1) == [1]
    assert times(full, V1) == then[:1]
    cat = "/dirs/d/cats/c"
    full.post(f"{cat}/versions", {"a": {"createdat": OLD}, "z": {"createdat": LATE}})
    full.put(f"{cat}/versions/m", {"createdat": "2050-01-01T00:00:00Z"})
    assert epochs(full, f"{cat}/versions/a", f"{cat}/versions/m", f"{cat}/versions/z") == [1, 1, 2]


# -- times --------------------------------------------------------------------------------------------------------

WRITES: Final = ["/", "/dirs/d", X, V1, META]


@pytest.mark.parametrize("path", WRITES)
def test_c_time_01_and_02_createdat(full: Client, path: str) -> None:
    made = full.get(path).json["createdat"]
    for method in ("PUT", "PATCH"):
        for sent in (OLD, LATE, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
            assert full.send(method, path, {"createdat": sent}).json["createdat"] == sent
            assert full.send(method, path, {}).json["createdat"] == sent
        shown = full.send(method, path, {"createdat": None}).json
        assert shown["createdat"] == shown["modifiedat"] > made
        assert full.send(method, path, {"createdat": "2000-01-01T01:00:00+01:00"}).json["createdat"] < OLD
        for bad in ("", "now", 5, "2000-01-01"):
            assert full.send(method, path, {"createdat": bad}).json["args"]["name"] == "createdat"


@pytest.mark.parametrize("path", WRITES)
def test_c_time_03_and_04_modifiedat(full: Client, path: str) -> None:
    for method in ("PUT", "PATCH"):
        shown = full.get(path).json["modifiedat"]
        for make in (lambda _: {}, lambda _: {"modifiedat": None}, lambda time: {"modifiedat": time}):
            sent = make(shown)
            now = full.send(method, path, sent).json["modifiedat"]
            assert now > shown, sent
            shown = now
        for time in (OLD, LATE):
            assert full.send(method, path, {"modifiedat": time}).json["modifiedat"] == time
            assert full.get(path).json["modifiedat"] == time
        same = full.send(method, path, {"modifiedat": "2099-01-01T01:00:00.500+01:00"}).json["modifiedat"]
        assert OLD < same < LATE
        for bad in ("", "now", 5):
            reply = full.send(method, path, {"modifiedat": bad})
            assert (reply.error[1], reply.json["args"]["name"]) == ("invalid_attribute", "modifiedat")


def test_c_time_01_and_04_of_what_is_new(registry: Client) -> None:
    sent = {"createdat": LATE, "modifiedat": OLD}
    nested = {"e": {**sent, "datas": {"x": {**sent, "meta": sent}}}}
    assert registry.post("/dirs", nested).status == 200
    for path in ("/dirs/e", "/dirs/e/datas/x", "/dirs/e/datas/x/meta"):
        shown = registry.get(path).json
        assert (shown["createdat"], shown["modifiedat"]) == (LATE, OLD)
    reply = registry.put("/dirs/d/files/f", b"", xregistry_createdat=LATE, xregistry_modifiedat=OLD)
    assert (reply.headers["xRegistry-createdat"], reply.headers["xRegistry-modifiedat"]) == (LATE, OLD)


@pytest.mark.parametrize("sent", ["2024-04-31T12:00:00Z", "yesterday", "", 5])
@pytest.mark.parametrize("path", ["/dirs/n", "/dirs/d/datas/n", "/dirs/d/datas/n/versions/v", "/dirs/d/datas/n/meta"])
def test_c_typ_05_what_is_no_time_is_refused_on_creation_too(registry: Client, path: str, sent: Any) -> None:
    for name in ("createdat", "modifiedat"):
        reply = registry.put(path, {name: sent})
        assert (reply.error[1], reply.json["args"]["name"]) == ("invalid_attribute", name)


def test_c_time_04_a_time_that_was_sent_stays_when_children_come(full: Client) -> None:
    assert full.put("/dirs/d", {"modifiedat": OLD, "datas": {"new": {}}}).json["modifiedat"] == OLD
    assert full.patch("/", {"modifiedat": OLD, "dirs": {"new": {}}}).json["modifiedat"] == OLD
    full.patch(X, {"meta": {"modifiedat": OLD}, "versions": {"v": {}}})
    assert times(full, META) == [OLD]


def test_c_time_05_there_is_one_now(full: Client) -> None:
    versions = {"1": {"createdat": None}, "2": {}}
    datas = {"x": {"meta": {"createdat": None}, "versions": versions}, "new": {}}
    sent = {"createdat": None, "dirs": {"d": {"createdat": None, "datas": datas}, "new": {}}}
    full.put("/", sent)
    paths = ["/", "/dirs/d", X, META, V1, V2, "/dirs/d/datas/new", "/dirs/d/datas/new/meta", "/dirs/new"]
    stamps = {full.get(path).json[name] for path in paths for name in ("createdat", "modifiedat")}
    assert len(stamps) == 1
