"""Storage of registries: SQLite and PostgreSQL, by one implementation."""
