"""Create the tables."""

from alembic import op

from wirebook.storage.tables import METADATA

revision, down_revision = "0001", None


def upgrade() -> None:
    METADATA.create_all(op.get_bind())
