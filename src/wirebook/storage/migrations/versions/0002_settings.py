"""Move model and capabilities to their own table, because SQLite rewrites a whole row for every change."""

from alembic import op
from sqlalchemy import inspect

from wirebook.storage.tables import SETTINGS

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    connection = op.get_bind()
    if inspect(connection).has_table(SETTINGS.name):  # the first migration creates the current tables
        return
    SETTINGS.create(connection)
    op.execute(
        "INSERT INTO settings (key, modelsource, model, capabilities)"
        " SELECT key, modelsource, model, capabilities FROM registry"
    )
    for column in ("modelsource", "model", "capabilities"):
        op.execute(f"ALTER TABLE registry DROP COLUMN {column}")
