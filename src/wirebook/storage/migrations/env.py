"""Runs migrations on the open connection of the program, in its transaction."""

from alembic import context

from wirebook.storage.tables import METADATA

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=METADATA, transactional_ddl=True)
context.run_migrations()
