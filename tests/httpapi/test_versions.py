"""Versions: lineage in each mode, limits, and shared attributes. Tests are named after rows of the checklist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.httpapi.answers import default_of, lineage, refuses
from tests.httpapi.conftest import Client, model_with

X = "/dirs/d/datas/x"


def at(year: int) -> str:
    return f"{year}-01-01T00:00:00Z"


# -- how they are shown -------------------------------------------------------------------------------------------


NOT_SEMVER = ["notsemver", "1", "1.0", "v1.0.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "1.0.0-a_b"]


@pytest.mark.parametrize("id_", NOT_SEMVER)
def test_id_that_is_not_a_semantic_version_is_rejected_in_semver_mode(registry: Client, id_: str) -> None:
    path = "/dirs/d/sems/x"
    registry.put(path, {})
    for method, url, content in (
        ("PUT", f"{path}/versions/{id_}", {}),
        ("PATCH", f"{path}/versions", {"1.2.0": {}, id_: {}}),
        ("POST", path, {"versionid": id_}),
        ("PATCH", path, {"versions": {id_: {}}}),
        ("PUT", "/dirs/d/sems/new", {"versionid": id_}),
        ("PUT", "/dirs/d/sems/new", {"meta": {"defaultversionid": id_}}),
        ("POST", "/", {"dirs": {"d": {"sems": {"new": {"versions": {id_: {}}}}}}}),
    ):
        error = refuses(registry, method, url, content, "malformed_id")
        assert (error["status"], error["args"]["id"]) == (400, id_)
        assert "MAJOR.MINOR.PATCH, for example 1.0.0" in error["args"]["error_detail"]


@pytest.mark.parametrize("id_", ["0.0.0", "1.0.0-rc.1", "10.20.30", "1.0.0-0.3.7", "1.0.0-x-y-z.--", "1.0.0-0a.00a"])
def test_semantic_version_is_accepted_in_semver_mode(registry: Client, id_: str) -> None:
    assert registry.put(f"/dirs/d/sems/x/versions/{id_}", {}).status == 201


def test_automatic_id_in_semver_mode_is_the_next_minor_version(registry: Client) -> None:
    path = "/dirs/d/sems/x"

    def new() -> str:
        return str(registry.post(path, {}).json["versionid"])

    assert [registry.put(path, {}).json["versionid"], new(), new()] == ["1.0.0", "1.1.0", "1.2.0"]
    for id_, following in (("1.2.7", "1.3.0"), ("2.0.0-rc.1", "2.0.0"), ("2.4.1-rc.1", "2.5.0"), ("0.9.0", "2.6.0")):
        registry.put(f"{path}/versions/{id_}", {})
        assert new() == following
        assert default_of(registry, path) == (following, False)
    registry.delete(f"{path}/versions", {"2.6.0": {}, "2.5.0": {}})
    assert new() == "2.7.0"
    registry.put(f"{path}/versions/3.0.0", {})
    assert new() == "3.1.0"
    registry.put(f"{path}/versions/99999999999999999999.0.0", {})
    assert new() == "99999999999999999999.1.0"


@pytest.mark.parametrize("aspects", [{}, {"hasdocument": True}, {"setversionid": False}])
def test_automatic_ids_follow_the_versionmode_when_it_changes(registry: Client, aspects: dict[str, Any]) -> None:
    path = "/dirs/d/datas/x"

    def change(mode: str) -> None:
        model = model_with("datas", versionmode=mode, singleversionroot=True, **aspects)
        assert registry.put("/modelsource", model).status == 200

    def new() -> str:
        return registry.post(f"{path}$details", {}).json["versionid"]

    assert registry.put("/modelsource", model_with("datas", **aspects)).status == 200
    assert (new(), new()) == ("1", "2")
    change("semver")
    assert (new(), new()) == ("2.1.0", "2.2.0")
    assert lineage(registry, path) == {"1": "1", "2": "1", "2.1.0": "2", "2.2.0": "2.1.0"}
    change("createdat")
    assert new() == "3"


# -- who is whose ancestor ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_null_ancestor_makes_an_existing_version_follow_the_newest_other(registry: Client, method: str) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}, "c": {"ancestorid": "a"}})
    attributes = {"createdat": at(2001), "ancestorid": None}
    assert registry.send(method, f"{X}/versions/a", attributes).json["ancestorid"] == "a"
    assert lineage(registry, X) == {"a": "a", "b": "a", "c": "a"}
    assert registry.send(method, f"{X}/versions/c", {"ancestorid": None}).json["ancestorid"] == "b"
    assert registry.send(method, X, {"ancestorid": None}).json["ancestorid"] == "b"
    registry.post(f"{X}/versions", {"d": {"ancestorid": "b", "createdat": at(2000)}})
    assert registry.send(method, f"{X}/versions/d", {"createdat": at(2000), "ancestorid": None}).json["ancestorid"] == (
        "c"
    )


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_null_ancestors_of_existing_versions_are_chained_by_creation_then_id(registry: Client, method: str) -> None:
    created = {"a": 2003, "B": 2001, "c": 2001, "d": 2000}
    registry.post(f"{X}/versions", {id_: {"createdat": at(year)} for id_, year in created.items()})
    assert lineage(registry, X) == {"a": "a", "B": "a", "c": "B", "d": "c"}
    epochs = {id_: version["epoch"] for id_, version in registry.get(f"{X}/versions").json.items()}
    unset = {id_: {"createdat": at(year), "ancestorid": None} for id_, year in created.items()}
    registry.send(method, f"{X}/versions", unset)
    assert lineage(registry, X) == {"d": "d", "B": "d", "c": "B", "a": "c"}
    versions = registry.get(f"{X}/versions").json
    assert {id_: version["epoch"] - epochs[id_] for id_, version in versions.items()} == dict.fromkeys(created, 1)
    assert default_of(registry, X) == ("a", False)


def test_null_ancestors_of_existing_versions_come_before_new_versions(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "m": {}})
    registry.post(f"{X}/versions", {"z": {"createdat": at(1999)}, "b": {}, "m": {"ancestorid": None}})
    assert lineage(registry, X) == {"a": "a", "m": "a", "b": "m", "z": "b"}


def test_null_ancestor_of_a_version_with_descendants_makes_no_circle(registry: Client) -> None:
    registry.post(f"{X}/versions", {"a": {}, "b": {}, "c": {}})
    registry.post(f"{X}/versions", {"a": {"ancestorid": None}, "b": {"ancestorid": None}})
    assert lineage(registry, X) == {"a": "a", "b": "a", "c": "b"}
    registry.delete(f"{X}/versions", {"a": {}, "c": {}})
    assert registry.patch(f"{X}/versions/b", {"ancestorid": None}).json["ancestorid"] == "b"
