"""Store the numbers of Resources in the row of their Group, which changes with them anyway."""

from itertools import groupby

from alembic import op
from sqlalchemy import inspect, text

from wirebook.core.entities.rows import format_members

revision, down_revision = "0006", "0005"


def upgrade() -> None:
    connection = op.get_bind()
    if not inspect(connection).has_table("counts"):  # the first migration creates the current tables
        return
    kind = "TEXT" if connection.dialect.name == "sqlite" else 'TEXT COLLATE "C"'
    op.execute(f"ALTER TABLE groups ADD COLUMN counts {kind} DEFAULT '' NOT NULL")
    found = connection.execute(text("SELECT parent, type, count FROM counts ORDER BY parent, type")).all()
    rows = [
        {"group": parent, "counts": format_members({row.type: row.count for row in counts})}
        for parent, counts in groupby(found, lambda row: row.parent)
    ]
    if rows:
        connection.execute(text("UPDATE groups SET counts = :counts WHERE key = :group"), rows)
    op.execute("DROP TABLE counts")
