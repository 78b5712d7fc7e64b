"""Drop the index on default Versions, which are looked up by id."""

from alembic import op

revision, down_revision = "0004", "0003"


def upgrade() -> None:
    op.execute("DROP INDEX IF EXISTS versions_default")
