"""The number of queries of a request does not depend on the number of entities."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from tests.httpapi.conftest import Client
from wirebook.storage.database import Database
from wirebook.storage.statements import Statement

READS = [
    "/",
    "/?inline=*",
    "/export",
    "/dirs",
    "/dirs?inline=*",
    "/dirs?limit=2",
    "/dirs?sort=name=desc",
    "/dirs?sort=description&limit=2",
    "/dirs?filter=datas.name=n*",
    "/dirs?filter=datas.description=t*,name=n*&filter=datas.versions.labels.k=v&inline=*",
    "/dirs/g0",
    "/dirs/g0?inline=*&doc",
    "/dirs/g0?filter=datas.meta.epoch>0&inline=datas.meta",
    "/dirs/g0/datas",
    "/dirs/g0/datas?inline=*",
    "/dirs/g0/datas?limit=2",
    "/dirs/g0/datas?limit=2&sort=labels.k",
    "/dirs/g0/datas?filter=versions.name=n&sort=description",
    "/dirs/g0/datas/r0",
    "/dirs/g0/datas/r0?inline=*",
    "/dirs/g0/datas/r0?filter=versions.versionid=v0",
    "/dirs/g0/datas/r0/meta",
    "/dirs/g0/datas/r0/versions",
    "/dirs/g0/datas/r0/versions?limit=2&sort=name",
    "/dirs/g0/datas/r0/versions/v0",
    "/dirs/g0/datas/x0?inline=*",
]


@contextmanager
def counted(database: Database, patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that run meanwhile, SQLAlchemy's and those that are compiled once; many rows of one are one."""
    seen: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        seen.append(statement)

    def noted(name: str) -> Any:
        own = getattr(Statement, name)

        def run(self: Statement, connection: Any, *args: Any, **parameters: Any) -> Any:
            seen.append(self.compiled_for(connection).text)
            return own(self, connection, *args, **parameters)

        return run

    event.listen(database.engine, "before_cursor_execute", note)
    with patch.context() as patching:
        for name in ("run", "run_many"):
            patching.setattr(Statement, name, noted(name))
        yield seen
    event.remove(database.engine, "before_cursor_execute", note)


def tree(size: int) -> dict[str, Any]:
    """Groups, Resources and Versions, `size` of each in what has them; and references to them."""
    versions = {f"v{number}": {"name": f"n{number}", "labels": {"k": "v"}} for number in range(size)}
    datas: dict[str, Any] = {f"r{number}": {"versions": versions} for number in range(size)}
    references = {f"x{number}": {"meta": {"xref": f"/dirs/g0/datas/r{number}"}} for number in range(size)}
    files = {f"f{number}": {"file": "text"} for number in range(size)}
    return {f"g{number}": {"name": "n", "datas": datas | references, "files": files} for number in range(size)}


def count(registry: Client, patch: pytest.MonkeyPatch, method: str, url: str, content: Any = None) -> list[str]:
    with counted(registry.database, patch) as seen:
        reply = registry.send(method, url, content)
    assert reply.status < 300, (url, reply.body)
    return seen


def test_read_query_count_is_independent_of_size(registry: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[dict[str, list[str]]] = []
    for size in (3, 9):
        assert registry.post("/dirs", tree(size)).status == 200
        statements.append({url: count(registry, monkeypatch, "GET", url) for url in READS})
    few, many = statements
    assert {url: len(seen) for url, seen in many.items()} == {url: len(seen) for url, seen in few.items()}
    assert max(map(len, many.values())) <= 20


WRITES = [
    ("PATCH", "/", lambda size: {"dirs": tree(size)}),
    ("POST", "/dirs", tree),
    ("PUT", "/dirs/g0", lambda size: tree(size)["g0"]),
    ("PATCH", "/dirs/g0", lambda size: tree(size)["g0"]),
    ("POST", "/dirs/g0/datas", lambda size: tree(size)["g0"]["datas"]),
    ("PUT", "/dirs/g0/datas/r0", lambda size: tree(size)["g0"]["datas"]["r0"]),
    ("POST", "/dirs/g0/datas/r0/versions", lambda size: tree(size)["g0"]["datas"]["r0"]["versions"]),
    ("DELETE", "/dirs/g0/datas", lambda size: {f"x{number}": {} for number in range(size)}),
    ("DELETE", "/dirs/g0/datas/r0", lambda _: None),
    ("DELETE", "/dirs/g0", lambda _: None),
    ("DELETE", "/dirs", lambda size: {f"g{number}": {} for number in range(1, size)}),
]


def test_write_query_count_is_independent_of_size(registry: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.put("/dirs/g", {"datas": {"x": {"meta": {"xref": "/dirs/g/datas/r"}}}})  # they are looked for from here on
    registry.delete("/dirs/g")
    statements = []
    for size in (3, 9):
        statements.append([count(registry, monkeypatch, method, url, content(size)) for method, url, content in WRITES])
    for (method, url, _), few, many in zip(WRITES, *statements, strict=True):
        assert (method, url, len(many)) == (method, url, len(few)), sorted(set(many))
