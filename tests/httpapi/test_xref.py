"""Cross-references between Resources. Tests are named after rows of the checklist."""

from __future__ import annotations

import pytest

from tests.httpapi.conftest import Client

D = "/dirs/d/datas"
T, X = f"{D}/t", f"{D}/x"
REFERENCE = {"meta": {"xref": T}}


@pytest.fixture
def target(registry: Client) -> Client:
    """A registry with a Resource that is referred to, and nothing else."""
    versions = {"a": {"xint": 1}, "b": {"name": "B", "labels": {"v": "1"}}}
    registry.put(T, {"versions": versions, "meta": {"labels": {"m": "1"}, "defaultversionid": "b"}})
    return registry


# -- writing ------------------------------------------------------------------------------------------------------


def test_automatic_version_ids_continue_after_a_cross_reference(target: Client) -> None:
    for _ in range(3):
        target.post(X, {})
    for expected in ("4", "5"):
        assert target.put(X, REFERENCE).status == 200
        assert target.put(X, {"meta": {}}).json["versionid"] == expected
    assert target.post(X, {}).json["versionid"] == "6"
    target.put(f"{X}/versions/7", {})
    assert target.post(X, {}).json["versionid"] == "8"
    target.delete(X)
    target.put(X, REFERENCE)
    assert target.put(X, {"meta": {}}).json["versionid"] == "1"
