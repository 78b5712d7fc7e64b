"""When a Resource was made is kept as a key that sorts as the instant does, as other times are."""

from alembic import op

revision, down_revision = "0007", "0006"


def upgrade() -> None:
    op.execute(
        "UPDATE resources SET createdat = substr(replace(createdat, 'Z', '') || "
        "CASE WHEN createdat LIKE '%.%' THEN '' ELSE '.' END || '000000000', 1, 29)"
    )
