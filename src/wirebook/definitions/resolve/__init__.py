"""Resolve references: follow aliases, merge base messages, find the definitions of endpoints."""
