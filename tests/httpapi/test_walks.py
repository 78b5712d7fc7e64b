"""Random valid and invalid requests: rejected ones change nothing, and responses are consistent."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from tests.httpapi.conftest import Client

Json = dict[str, Any]

GROUPS, RESOURCES, VERSIONS = ("a", "b"), ("x", "y"), ("1", "2", "v1", "1.0.0")
TYPES: Final = ("datas", "files", "cats", "sems", "caps", "ones", "svids")
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "name": ("n", "m", None, ""),
    "labels": ({}, {"a": "b"}, {"A": "b"}, None),
    "createdat": ("2001-01-01T00:00:00Z", "2030-01-01T00:00:00Z", None, "now"),
    "modifiedat": ("2001-01-01T00:00:00Z", None),
    "epoch": (1, 2, None, "x"),
    "xint": (1, None, "1"),
    "xobj": ({}, {"a": "s"}, {"n": "x"}),
    "xany": (1, [], {"a": [1]}, "text"),
    "self": ("https://example.com", 5),
    "unknown": (1,),
}
FLAGS: Final = (
    "inline=*",
    "doc&inline=*",
    "ignore",
    "setdefaultversionid=v1",
    "setdefaultversionid=request",
    "epoch=1",
)
METHODS: Final = ("PUT", "PATCH", "POST", "PUT", "PATCH", "POST", "DELETE")


class Walker:
    """Makes up requests."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> tuple[str, str, Any]:
        method, group = self._one(METHODS), f"/dirs/{self._one(GROUPS)}"
        resource = f"{group}/{self._one(TYPES)}/{self._one(RESOURCES)}"
        details = self._one(("$details", "$details", ""))
        path, make = self._one((
            ("/", self._registry),
            (group, self._group),
            (resource.rpartition("/")[0], lambda: self._map(RESOURCES, self._resource)),
            (resource + details, self._version if method == "POST" else self._resource),
            (f"{resource}/meta", self._meta),
            (f"{resource}/versions", lambda: self._map(VERSIONS, self._version)),
            (f"{resource}/versions/{self._one(VERSIONS)}{details}", self._version),
        ))  # fmt: skip
        return method, path + (f"?{self._one(FLAGS)}" if self._seldom(4) else ""), self._content(method, make)

    def _content(self, method: str, make: Callable[[], Json]) -> Any:
        return None if method == "DELETE" and self._seldom(2) else make()

    def _one(self, values: Any) -> Any:
        return self._random.choice(values)

    def _seldom(self, times: int) -> bool:
        return self._random.randrange(times) == 0

    def _map(self, ids: tuple[str, ...], make: Callable[[], Json]) -> Json:
        return {id_: make() for id_ in self._random.sample(ids, self._one((0, 1, 1, 2)))}

    def _common(self) -> Json:
        return {name: self._one(VALUES[name]) for name in self._random.sample(list(VALUES), self._one((0, 0, 0, 1, 2)))}

    def _registry(self) -> Json:
        return {"dirs": self._map(GROUPS, self._group)} | (self._common() if self._seldom(2) else {})

    def _group(self) -> Json:
        return {self._one(TYPES): self._map(RESOURCES, self._resource)} | (self._common() if self._seldom(2) else {})

    def _resource(self) -> Json:
        resource = self._version()
        if self._seldom(4):
            resource["meta"] = self._meta()
        if self._seldom(4):
            resource["versions"] = self._map(VERSIONS, self._version)
        return resource

    def _version(self) -> Json:
        ids = {"versionid": self._one(VERSIONS)} if self._seldom(4) else {}
        return self._common() | ids | ({"ancestorid": self._one((*VERSIONS, None))} if self._seldom(4) else {})

    def _meta(self) -> Json:
        meta: Json = {"labels": {"a": "b"}} if self._seldom(3) else {}
        if self._seldom(3):
            meta |= {"defaultversionid": self._one(VERSIONS), "defaultversionsticky": self._one((True, False))}
        if self._seldom(5):
            target = f"/dirs/{self._one(GROUPS)}/{self._one(TYPES)}/{self._one(RESOURCES)}"
            meta["xref"] = self._one((target, None))
        return meta


@pytest.mark.parametrize("seed", range(2))
def test_c_ent_03_and_07_whatever_is_content(registry: Client, seed: int) -> None:
    walker, before, done = Walker(seed), registry.get("/export").body, 0
    for i in range(80):
        method, url, content = walker.request()
        reply = registry.send(method, url, content)
        assert reply.status < 500, (method, url, content)
        after = registry.get("/export")
        assert after.status == 200
        if reply.status >= 400:
            assert after.body == before, (method, url, content, reply.error)
        else:
            done += 1
        before = after.body
        if i % 10 == 9:
            check(registry)
    assert done > 10


def check(registry: Client) -> None:
    """That everything leads to what it shows, and that counts, defaults and ancestors are right."""
    for entity in entities(registry.get("/?inline=*").json):
        alone = registry.get(entity["self"])
        assert alone.status == 200, entity["self"]
        assert alone.json == {name: entity[name] for name in alone.json}
        for name in entity:
            if f"{name}count" in entity:
                assert entity[f"{name}count"] == len(entity[name])
        if "versions" in entity:
            check_versions(entity)


def check_versions(resource: Json) -> None:
    versions = resource["versions"]
    assert [id_ for id_, version in versions.items() if version["isdefault"]] == [resource["versionid"]]
    assert resource["meta"]["defaultversionid"] == resource["versionid"]
    assert all(version["ancestorid"] in versions for version in versions.values())


def entities(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        if "xid" in value:
            yield value
        for child in value.values():
            yield from entities(child)
