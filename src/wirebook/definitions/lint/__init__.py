"""Lint catalogues: the rules for messages, endpoints, schemas and all other entities."""
