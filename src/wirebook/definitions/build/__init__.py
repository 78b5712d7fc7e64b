"""Build messages from definitions and context values."""
