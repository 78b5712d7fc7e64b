"""Resources: their representation, and the steps of a write. Tests are named after rows of the checklist.

Those that cite core/resource.md are about a type whose Versions are ordered by createdat.
"""

from __future__ import annotations

import pytest

from tests.httpapi.answers import default_of, refuses
from tests.httpapi.conftest import Client

X, C, F = "/dirs/d/datas/x", "/dirs/d/cats/x", "/dirs/d/files/x"
WRITES = ["PUT", "PATCH"]


# -- how they are shown -------------------------------------------------------------------------------------------


def test_read_resource_can_be_written_back(registry: Client) -> None:
    registry.put(X, {"name": "n", "meta": {"labels": {"a": "b"}}, "versions": {"a": {}, "b": {"xint": 1}}})
    for query in ("", "?inline=meta", "?inline=versions", "?inline=*"):
        resource = registry.get(f"{X}{query}").json
        assert registry.put(f"{X}{query}", resource).status == 200
        for id_ in ("b", "a"):
            version = registry.get(f"{X}/versions/{id_}").json
            assert registry.put(f"{X}/versions/{id_}", version).status == 200
    assert default_of(registry, X) == ("b", False)
    assert registry.get(f"{X}/meta").json["labels"] == {"a": "b"}


# -- making one ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", WRITES)
def test_versions_that_are_not_a_map_are_rejected(registry: Client, method: str) -> None:
    registry.put(C, {})
    for versions in ([], "x", 5, {"a": None}, {"a": 5}, {"a": {}, "b": []}):
        code = "bad_request" if isinstance(versions, dict) else "invalid_attribute"
        for path in (X, C):
            refuses(registry, method, path, {"versions": versions}, code)
    assert registry.send(method, X, {"versions": None, "meta": None}).status == 201
