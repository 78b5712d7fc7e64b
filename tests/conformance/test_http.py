"""The vectors of `http/`, run against the service on each database."""

from __future__ import annotations

import json
from contextlib import closing
from functools import cache
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import pytest

from tests.conformance.run import FOLDER, Response, Values, Vector, read_vectors, run_vector
from tests.httpapi.conftest import BASE, Client, database, postgresql, postgresql_engine, sqlite_engine
from wirebook.core.entities.state import Members
from wirebook.core.model.offered_formats import OFFER
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.problems import CODES
from wirebook.schema.validator import SchemaValidator
from wirebook.storage.database import Database, open_database
from wirebook.storage.session import Session, StoredSettings

__all__ = ["database", "postgresql", "postgresql_engine", "sqlite_engine"]  # fixtures

VECTORS = list(read_vectors())


@cache
def stored(model: str) -> tuple[Members, StoredSettings]:
    """The tables of a new registry with a model."""
    with TemporaryDirectory() as folder, closing(open_database(f"sqlite:///{folder}/registry.db")) as empty:
        make_registry(empty, "test", json.loads(model), OFFER)
        with empty.reading() as session:
            return session.registry_members(), session.settings()


@pytest.mark.parametrize("vector", VECTORS, ids=[f"{vector.area}: {vector.name}" for vector in VECTORS])
def test_vector(database: Database, vector: Vector) -> None:
    with database.exclusive_transaction() as connection:
        Session(connection).create(*stored(json.dumps(vector.model)))
    client = Client(make_service(database, SchemaValidator(), OFFER), database)

    def send(method: str, path: str, headers: dict[str, str], body: bytes) -> Response:
        decoded, mark, query = path.partition("?")
        reply = client.send(method, f"{unquote(decoded)}{mark}{query}", body, **headers)
        return Response(reply.status, {name.lower(): value for name, value in reply.headers.items()}, reply.body)

    try:
        run_vector(vector, send, Values({"base": BASE, "registryid": "test"}, 1), first_choice=True)
    finally:
        client.service.close()


def test_error_types_are_those_of_the_rows() -> None:
    rows = json.loads((FOLDER.parent / "rows" / "errors.json").read_text())
    types = {f"E!{name}": code.status for name, code in CODES.items() if code.text}
    assert {row["id"]: row["status"] for row in rows} == types


def test_names_of_vectors_are_unique() -> None:
    names = [(vector.area, vector.name) for vector in VECTORS]
    assert len(set(names)) == len(names)
