"""Explain, slot by slot, why a message matches a definition or why it does not."""
