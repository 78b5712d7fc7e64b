"""Databases: what a commit is worth, and which tables there are.

Spec: docs/registry.md#databases.
"""

from __future__ import annotations

from alembic.config import Config
from alembic.script import ScriptDirectory

from tests.httpapi.conftest import Client
from wirebook.storage.database import HEAD, MIGRATIONS, VERSIONS
from wirebook.storage.session import Session
from wirebook.storage.statements import driver_of

DURABLE = {
    "sqlite": {"PRAGMA journal_mode": "wal", "PRAGMA synchronous": 2},  # 2 is FULL
    "postgresql": {"SHOW synchronous_commit": "on"},
}


def test_a_commit_is_on_disk(registry: Client) -> None:
    """What the connection that writes says of it."""
    wanted = DURABLE[registry.database.engine.dialect.name]

    def settings(session: Session) -> dict[str, object]:
        driver = driver_of(session._connection)
        return {asked: driver.execute(asked).fetchone()[0] for asked in wanted}

    assert registry.service.write(settings) == wanted


def test_migrations_are_known_by_their_files() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    script = ScriptDirectory.from_config(config)
    assert {each.revision for each in script.walk_revisions()} == set(VERSIONS)
    assert script.get_current_head() == HEAD
