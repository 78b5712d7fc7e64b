"""Normalise documents: rewrite every known dialect and spelling of xRegistry to 1.0-rc4."""
