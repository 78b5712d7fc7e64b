"""Matching and row building by columns, a record batch at a time."""
