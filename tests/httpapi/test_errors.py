"""Errors that need more than a request. The other types have vectors in tests/conformance/http/errors.json.

Spec: core/spec.md#error-processing; core/http.md#error-processing.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, text, update

from tests.httpapi.conftest import BASE, FIXTURE, Client, Reply
from wirebook.core.model.offered_formats import OFFER
from wirebook.httpapi.handlers.context import ResponseLimits
from wirebook.httpapi.service import Service
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.problems import CODES
from wirebook.schema.validator import SchemaValidator
from wirebook.storage.database import Database
from wirebook.storage.session import WriteConflict
from wirebook.storage.tables import RESOURCES

F, X, ALIAS = "/dirs/d/files/f", "/dirs/d/datas/x", "/dirs/d/datas/alias"
STRICT = "/dirs/d/stricts/s"
DRAFT = "JsonSchema/draft-07"
REQS = {
    "singular": "req",
    "hasdocument": False,
    "attributes": {
        "need": {"type": "string", "required": True},
        "same": {"type": "string", "matchversions": True},
    },
}


def model(**changes: Any) -> dict[str, Any]:
    """The source of the model, with other aspects of `files`, `datas` or the model itself."""
    source = copy.deepcopy(FIXTURE)
    source["groups"]["dirs"]["resources"]["reqs"] = copy.deepcopy(REQS)
    for name, aspects in changes.items():
        (source["attributes"] if name == "attributes" else source["groups"]["dirs"]["resources"][name]).update(aspects)
    return source


def schema(type_: str) -> dict[str, Any]:
    return {"format": DRAFT, "strict": {"type": "object", "properties": {"a": {"type": type_}}}}


@pytest.fixture
def filled(database: Database) -> Client:
    make_registry(database, "test", model(), OFFER)
    registry = Client(make_service(database, SchemaValidator(), OFFER), database)
    must(registry, "PUT", F, b"x")
    must(registry, "POST", f"{X}/versions", {"v1": {}, "v2": {}})
    must(registry, "PUT", f"{STRICT}$details", schema("string"))
    must(registry, "PUT", f"{ALIAS}/meta", {"xref": X})
    return registry


def must(registry: Client, *request: Any) -> None:
    reply = registry.send(*request)
    assert reply.status < 300, reply.body


def check(reply: Reply, name: str, subject: str | None, args: dict[str, str]) -> None:
    """All of an answer. The arguments are `args` and, where the type has one, a text of our own about details."""
    type_, body = CODES[name], reply.json
    assert (reply.status, body["type"]) == (type_.status, type_.uri)
    assert reply.headers["Content-Type"] == "application/json; charset=utf-8"
    assert reply.headers["Link"] == f"<{BASE}>;rel=xregistry-root"
    assert body.get("subject") == subject
    arguments = body.get("args", {})
    if "error_detail" in type_.args:
        assert arguments.pop("error_detail")
    assert arguments == args
    assert set(body) <= {"type", "title", "detail", "subject", "args"}
    assert "args" not in body or type_.args
    texts = [*args.values(), subject or ""] if "<subject>" in type_.title else args.values()
    assert all(text in body["title"] for text in texts)


# -- types that need more than a request ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["E!readonly"])
def test_write_to_a_read_only_resource_is_rejected(filled: Client, name: str) -> None:
    with filled.database.transaction() as connection:
        here = RESOURCES.c.xid == X
        meta = connection.execute(select(RESOURCES.c.meta).where(here)).scalar_one()
        locked = meta.replace('"readonly":false', '"readonly":true')
        connection.execute(update(RESOURCES).where(here).values(meta=locked))
    assert filled.get(f"{X}/meta").json["readonly"] is True
    for request in (("PUT", X, {}), ("DELETE", X), ("POST", f"{X}/versions", {"a": {}}), ("PATCH", f"{X}/meta", {})):
        check(filled.send(*request), name[2:], X, {})


@pytest.mark.parametrize("name", ["E!data_retrieval_error", "C-ENT-10"])
def test_failing_database_is_an_internal_error(filled: Client, name: str) -> None:
    with filled.database.transaction() as connection:
        connection.execute(text("ALTER TABLE versions RENAME TO elsewhere"))
    try:
        for path in (X, "/dirs/d/datas?inline=versions", f"{X}/versions/v1"):
            check(filled.get(path), "data_retrieval_error", path.partition("?")[0], {})
        assert filled.get("/dirs/d").status == 200
    finally:
        with filled.database.transaction() as connection:
            connection.execute(text("ALTER TABLE elsewhere RENAME TO versions"))
    assert filled.get(X).status == 200


def failing(filled: Client, error: Exception) -> Client:
    """The same registry with a clock that raises."""

    def now() -> str:
        raise error

    return Client(Service(filled.database, replace(filled.service.context, now=now)), filled.database)


@pytest.mark.parametrize("name", ["E!server_error", "C-ERR-05"])
def test_unexpected_exception_is_an_internal_error(filled: Client, name: str) -> None:
    reply = failing(filled, ZeroDivisionError("secret")).put("/dirs/d", {})
    check(reply, "server_error", "/dirs/d", {})
    assert b"secret" not in reply.body
    assert b"Traceback" not in reply.body


@pytest.mark.parametrize("name", ["E!server_busy", "AMB-15"])
def test_repeated_write_conflicts_are_rejected_as_busy(filled: Client, name: str) -> None:
    check(failing(filled, WriteConflict("always")).put("/dirs/d", {}), "server_busy", "/dirs/d", {})


@pytest.mark.parametrize("name", ["E!too_large", "C-INL-07"])
def test_response_above_the_limit_is_rejected(filled: Client, name: str) -> None:
    limits = ResponseLimits(response=len(filled.get("/?inline=dirs").body))
    registry = Client(Service(filled.database, replace(filled.service.context, limits=limits)), filled.database)
    assert registry.get("/?inline=dirs").status == 200
    assert registry.get("/export").body == filled.get("/export").body
    before = filled.get("/export").body
    for path in ("/", "/dirs", "/dirs/d"):
        check(registry.get(f"{path}?inline=*"), "too_large", path, {})
        check(registry.patch(f"{path}?inline=*", {"d": {}} if path == "/dirs" else {}), "too_large", path, {})
        check(registry.post(f"{path}?inline=*", POSTS[path]), "too_large", path, {})
    assert filled.get("/export").body == before
    assert registry.get("/dirs/d/datas?inline=versions&limit=1").status == 200


ALL = {"x": {}, "y": {}, "z": {}}
POSTS = {"/": {"dirs": {"d": {}}}, "/dirs": {"d": {}}, "/dirs/d": {"datas": ALL, "reqs": {}, "cats": ALL, "sems": ALL}}
