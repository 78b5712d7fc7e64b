"""Drop the index on the times of events, which are looked up by number only."""

from alembic import op

revision, down_revision = "0003", "0002"


def upgrade() -> None:
    op.execute("DROP INDEX IF EXISTS events_time")
