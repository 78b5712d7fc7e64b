"""Databases: durability of commits, connections and migrations.

Spec: docs/registry.md#databases.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from tests.httpapi.conftest import OFFER, Client, NoFormats
from tests.httpapi.postgres import new_database
from wirebook.core.entities.versions import instant_key
from wirebook.httpapi.setup import make_service
from wirebook.problems import WirebookError
from wirebook.storage.database import HEAD, MIGRATIONS, VERSIONS, migrate, open_database
from wirebook.storage.outages import Unavailable
from wirebook.storage.session import Session
from wirebook.storage.statements import driver_of

DURABLE = {
    "sqlite": {"PRAGMA journal_mode": "wal", "PRAGMA synchronous": 2},  # 2 is FULL
    "postgresql": {"SHOW synchronous_commit": "on"},
}


def test_commit_is_durable(registry: Client) -> None:
    """What the connection that writes says of it."""
    expected = DURABLE[registry.database.engine.dialect.name]

    def settings(session: Session) -> dict[str, object]:
        driver = driver_of(session.connection)
        return {asked: driver.execute(asked).fetchone()[0] for asked in expected}

    assert registry.service.write(settings) == expected


def test_migration_versions_are_listed_by_their_files() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    assert {walk_revision.revision for walk_revision in script.walk_revisions()} == set(VERSIONS)
    assert script.get_current_head() == HEAD


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_database_that_is_not_utf8_is_rejected(postgresql: str, encoding: str) -> None:
    address = new_database(postgresql, "small", f"TEMPLATE template0 LOCALE 'C' ENCODING '{encoding}'")
    with pytest.raises(WirebookError, match=f"its encoding is {encoding}; it must be UTF8") as caught:
        open_database(address)
    assert caught.value.problems[0].code == "bad-database"


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_closed_idle_connections_are_replaced(registry: Client) -> None:
    """As by a restart of PostgreSQL: all of them at once, while nothing was asked of them. The next request notices."""
    for send in (lambda: registry.get("/"), lambda: registry.put("/dirs/d", {}), lambda: registry.get("/dirs")):
        with ExitStack() as stack:  # several are kept
            for _ in range(3):
                stack.enter_context(registry.database.reading())
        _cut(registry)
        assert send().status in (200, 201)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.parametrize("ask", [Session.group_counts, lambda session: session.group("dirs", "d")])
def test_connection_closed_in_a_transaction_is_unavailable(registry: Client, ask: Callable[[Session], Any]) -> None:
    """What was asked then fails, whoever runs the statement; what is asked next does not."""
    with pytest.raises(Unavailable):
        _ask_while_cut(registry, ask)
    assert registry.get("/").status == 200


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_postgresql_transactions_have_isolation_levels_and_timeouts(registry: Client) -> None:
    """A read has one snapshot and writes nothing; a write sees what others committed before."""
    levels = []
    for begin in (registry.database.reading, registry.database.writing):
        with begin() as session:
            driver = driver_of(session.connection)
            asked = ("transaction_isolation", "transaction_read_only", "statement_timeout", "lock_timeout")
            levels.append([driver.execute(f"SHOW {setting}").fetchone()[0] for setting in asked])
    assert levels == [["repeatable read", "on", "30s", "30s"], ["read committed", "off", "0", "30s"]]


CUT = """SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database()"""


def _ask_while_cut(registry: Client, ask: Callable[[Session], Any]) -> None:
    with registry.database.reading() as session:
        _cut(registry)
        ask(session)


def _cut(registry: Client) -> None:
    address = registry.database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(CUT)


def test_migration_moves_settings_to_their_table(registry: Client) -> None:
    paths = ("/", "/model", "/modelsource", "/capabilities")
    before = [registry.get(path).body for path in paths]
    with registry.database.transaction() as connection:
        for column in ("modelsource", "model", "capabilities"):
            connection.exec_driver_sql(f"ALTER TABLE registry ADD COLUMN {column} TEXT NOT NULL DEFAULT ''")
            connection.exec_driver_sql(f"UPDATE registry SET {column} = (SELECT {column} FROM settings)")
        connection.exec_driver_sql("DROP TABLE settings")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    migrate(registry.database)
    again = Client(make_service(registry.database, NoFormats(), OFFER), registry.database)
    assert [again.get(path).body for path in paths] == before
    assert again.patch("/capabilities", {"shortself": True}).status == 200
    with registry.database.transaction() as connection:
        assert "model" not in {column["name"] for column in inspect(connection).get_columns("registry")}
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one() == HEAD


@pytest.mark.parametrize("xref", [None, "/dirs/d/datas/target"])
def test_migration_stores_cross_references(registry: Client, xref: str | None) -> None:
    assert registry.put("/dirs/d/datas/source", {"meta": {"xref": xref}}).status == 201
    with registry.database.transaction() as connection:
        connection.exec_driver_sql("ALTER TABLE registry DROP COLUMN xrefs")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0004'")
    migrate(registry.database)
    with registry.database.transaction() as connection:
        assert bool(connection.exec_driver_sql("SELECT xrefs FROM registry").scalar_one()) is (xref is not None)


def test_migration_stores_counts_in_groups(registry: Client) -> None:
    files = {f"f{number}": {} for number in range(3)}
    registry.post("/dirs", {"d": {"datas": {"a": {}, "b": {}}, "files": files}, "e": {}, "f": {"datas": {"c": {}}}})
    before = registry.get("/dirs").body
    with registry.database.transaction() as connection:
        connection.exec_driver_sql("CREATE TABLE counts (parent BIGINT, type TEXT, count BIGINT)")
        groups = connection.exec_driver_sql("SELECT key, counts FROM groups").all()
        for key, counts in groups:
            for plural, count in json.loads(f"{{{counts}}}").items():
                connection.exec_driver_sql(f"INSERT INTO counts VALUES ({key}, '{plural}', {count})")
        connection.exec_driver_sql("ALTER TABLE groups DROP COLUMN counts")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0005'")
    migrate(registry.database)
    assert registry.get("/dirs").body == before
    assert registry.put("/dirs/e/datas/new", {}).status == 201
    assert registry.delete("/dirs/d/datas/a").status == 204
    directories = registry.get("/dirs").json
    assert [directories[name]["datascount"] for name in "def"] == [1, 1, 1]
    with registry.database.transaction() as connection:
        assert not inspect(connection).has_table("counts")


def test_migration_stores_meta_timestamps_as_keys(registry: Client) -> None:
    times = ["2024-06-01T10:00:00Z", "2024-06-01T10:00:00.5Z", "2024-06-01T10:00:00.123456789Z"]
    for i, time in enumerate(times):
        assert registry.put(f"/dirs/d/datas/r{i}", {"meta": {"createdat": time}}).status == 201
    with registry.database.transaction() as connection:
        stored = connection.exec_driver_sql("SELECT createdat FROM resources ORDER BY folded").scalars().all()
        for i, time in enumerate(times):
            connection.exec_driver_sql(f"UPDATE resources SET createdat = '{time}' WHERE folded = 'r{i}'")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0006'")
    migrate(registry.database)
    with registry.database.transaction() as connection:
        assert connection.exec_driver_sql("SELECT createdat FROM resources ORDER BY folded").scalars().all() == stored
    assert stored == [instant_key(time) for time in times]
