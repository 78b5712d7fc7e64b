"""Store the creation times of Resources as keys that sort chronologically, like all other times."""

from alembic import op

revision, down_revision = "0007", "0006"


def upgrade() -> None:
    op.execute(
        "UPDATE resources SET createdat = substr(replace(createdat, 'Z', '') || "
        "CASE WHEN createdat LIKE '%.%' THEN '' ELSE '.' END || '000000000', 1, 29)"
    )
