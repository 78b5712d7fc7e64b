"""Compile definitions into constraints on slots, which matching, building, lint and the column engine read."""
