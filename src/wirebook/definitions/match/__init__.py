"""Matching: from a message to its definition, placeholder values and problems."""
