"""Events are found by their numbers alone."""

from alembic import op

revision, down_revision = "0003", "0002"


def upgrade() -> None:
    op.execute("DROP INDEX IF EXISTS events_time")
