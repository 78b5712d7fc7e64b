"""Normalization: documents of every xRegistry vintage and spelling, rewritten to 1.0-rc4."""
