"""Reads: request flags, filters, sort order, `inline`, and entities rendered as JSON."""
