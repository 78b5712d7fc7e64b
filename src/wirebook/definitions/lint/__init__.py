"""Lint rules for catalogs: messages, endpoints, schemas, entities."""
