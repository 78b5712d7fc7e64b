"""A registry on each database, and a client that calls it without a socket."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tests.core.memory import NoFormats
from tests.httpapi.postgres import MISSING, is_installed, running_postgresql
from wirebook.core.entities.state import Members
from wirebook.core.model.capabilities import Offer
from wirebook.httpapi.http.messages import ApiRequest, parse_query
from wirebook.httpapi.service import Service
from wirebook.httpapi.setup import make_registry, make_service
from wirebook.storage.database import Database, open_database
from wirebook.storage.session import Session, StoredSettings
from wirebook.storage.tables import METADATA

BASE = "http://registry.test"
WAIT = 5.0
DOCUMENTS: dict[str, Any] = {"hasdocument": True}
EXTENSIONS = {
    name: {"type": type_}
    for name, type_ in {
        "xbool": "boolean",
        "xdec": "decimal",
        "xint": "integer",
        "xuint": "uinteger",
        "xstr": "string",
        "xtime": "timestamp",
        "xuri": "uri",
        "xuriabs": "uriabsolute",
        "xurirel": "urirelative",
        "xtemplate": "uritemplate",
        "xurl": "url",
        "xxid": "xid",
        "xxidtype": "xidtype",
        "xany": "any",
    }.items()
} | {
    "xarr": {"type": "array", "item": {"type": "integer"}},
    "xmap": {"type": "map", "item": {"type": "string"}},
    "xobj": {"type": "object", "attributes": {"a": {"type": "string"}, "n": {"type": "integer"}}},
}


def _type(singular: str, **aspects: Any) -> dict[str, Any]:
    return {"singular": singular, "attributes": EXTENSIONS, **aspects}


FIXTURE: dict[str, Any] = {
    "attributes": EXTENSIONS,
    "groups": {
        "dirs": {
            "singular": "dir",
            "attributes": EXTENSIONS,
            "resources": {
                "files": _type("file"),
                "datas": _type("data", hasdocument=False),
                "ones": _type("one", maxversions=1),
                "caps": _type("cap", maxversions=2),
                "svids": _type("svid", setversionid=False),
                "cats": _type("cat", versionmode="createdat", singleversionroot=True, hasdocument=False),
                "sems": _type("sem", versionmode="semver", singleversionroot=True, hasdocument=False),
                "vals": _type("val", validateformat=True, validatecompatibility=True),
                "stricts": _type("strict", validateformat=True, validatecompatibility=True, strictvalidation=True),
            },
        },
        "boxes": {"singular": "box", "ximportresources": ["/dirs/files"]},
    },
}
"""The model that the checklist suggests."""


def model_with(plural: str, **aspects: Any) -> dict[str, Any]:
    """The model of the tests with other aspects of a type of Resources in `dirs`, or with one that it does not have."""
    dirs = FIXTURE["groups"]["dirs"]
    type_ = dirs["resources"].get(plural, {"singular": plural[:-1], "hasdocument": False})
    return {"groups": {"dirs": {**dirs, "resources": {**dirs["resources"], plural: {**type_, **aspects}}}}}


@dataclass
class Reply:
    """A response. `json` is its parsed body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str, str | None]:
        """Status, name and subject of an error."""
        body = self.json
        return self.status, body["type"].rpartition("#")[2], body.get("subject")


@dataclass
class Client:
    """Sends requests to a service."""

    service: Service
    database: Database
    headers: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, url: str, content: Any = None, **headers: str) -> Reply:
        path, _, query = url.partition("?")
        body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
        named = [(name.lower().replace("_", "-"), value) for name, value in headers.items()]
        incoming = ApiRequest(method, path.removeprefix(BASE) or "/", BASE, parse_query(query), named, body)
        answer = self.service.handle(incoming)
        payload = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
        return Reply(answer.status, answer.headers, payload)

    def get(self, url: str, **headers: str) -> Reply:
        return self.send("GET", url, None, **headers)

    def put(self, url: str, content: Any = None, **headers: str) -> Reply:
        return self.send("PUT", url, content, **headers)

    def patch(self, url: str, content: Any = None, **headers: str) -> Reply:
        return self.send("PATCH", url, content, **headers)

    def post(self, url: str, content: Any = None, **headers: str) -> Reply:
        return self.send("POST", url, content, **headers)

    def delete(self, url: str, content: Any = None, **headers: str) -> Reply:
        return self.send("DELETE", url, content, **headers)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL database."""
    if not is_installed():
        pytest.skip(MISSING)
    with running_postgresql() as address:
        yield address


@pytest.fixture(scope="session")
def postgresql_engine(postgresql: str) -> Iterator[Engine]:
    """Connections shared by all tests: new ones would parse and plan every statement again."""
    opened = open_database(postgresql)
    yield opened.engine
    opened.close()


@pytest.fixture(scope="session")
def sqlite_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Connections to the file of an empty SQLite database, and later to copies of it: statements are compiled once."""
    file = tmp_path_factory.mktemp("migrated") / "registry.db"
    opened = open_database(f"sqlite:///{file}")
    opened.engine.dispose()  # writes everything to the file
    yield opened.engine
    opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database."""
    if request.param == "sqlite":
        engine = request.getfixturevalue("sqlite_engine")
        file = shutil.copy(engine.url.database, tmp_path)

        def connect_to_copy(_dialect: Any, _record: Any, arguments: list[Any], _settings: Any) -> None:
            arguments[0] = file

        event.listen(engine, "do_connect", connect_to_copy)
        opened = Database(engine)
        yield opened
        opened.close()
        event.remove(engine, "do_connect", connect_to_copy)
    else:
        engine = request.getfixturevalue("postgresql_engine")
        opened = Database(engine)
        with opened.transaction() as connection:  # for a few rows, DELETE is cheaper than TRUNCATE
            connection.exec_driver_sql("; ".join(f"DELETE FROM {table}" for table in reversed(METADATA.sorted_tables)))
        yield opened
        deadline = time.monotonic() + WAIT
        while engine.pool.checkedout() and time.monotonic() < deadline:
            time.sleep(0.01)  # a request that timed out or was aborted still has its connection for a moment
        if engine.pool.checkedout():
            engine.dispose()


OFFER = Offer({"jsonschema*": ("backward", "forward", "full")})


@cache
def new_rows(model: str) -> tuple[Members, StoredSettings]:
    """The rows of a new registry with a model, cached because reading the model takes longer than most tests."""
    with TemporaryDirectory() as folder, closing(open_database(f"sqlite:///{folder}/registry.db")) as database:
        make_registry(database, "test", json.loads(model), OFFER)
        with database.reading() as session:
            return session.registry_members(), session.settings()


def serve(database: Database, model: dict[str, Any]) -> Client:
    with database.exclusive_transaction() as connection:
        Session(connection).create(*new_rows(json.dumps(model)))
    return Client(make_service(database, NoFormats(), OFFER), database)


@pytest.fixture
def registry(database: Database) -> Iterator[Client]:
    """A registry with the model of the checklist."""
    served = serve(database, FIXTURE)
    yield served
    served.service.close()
