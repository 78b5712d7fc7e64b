"""Matching and decoding by columns: many records at once, without running Python for single messages."""
