"""Layer `storage`: registries in SQLite and PostgreSQL, by one implementation."""
