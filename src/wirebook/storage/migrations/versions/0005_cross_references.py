"""Store in the Registry's row whether there may be cross-references, so that most registries need not look for any."""

from alembic import op
from sqlalchemy import inspect

from wirebook.storage.tables import REGISTRY

revision, down_revision = "0005", "0004"


def upgrade() -> None:
    connection = op.get_bind()
    columns = {column["name"] for column in inspect(connection).get_columns(REGISTRY.name)}
    if "xrefs" in columns:  # the first migration creates the current tables
        return
    op.execute("ALTER TABLE registry ADD COLUMN xrefs BOOLEAN DEFAULT false NOT NULL")
    op.execute("UPDATE registry SET xrefs = EXISTS (SELECT 1 FROM resources WHERE xref IS NOT NULL)")
