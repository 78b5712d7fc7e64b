"""Explanations: slot by slot, why a message matches a definition or does not."""
