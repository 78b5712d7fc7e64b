"""Resolve references: follow aliases, merge base messages and find the definitions of each endpoint."""
