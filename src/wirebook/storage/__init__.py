"""Layer `storage`: one implementation of registries in SQLite and PostgreSQL."""
