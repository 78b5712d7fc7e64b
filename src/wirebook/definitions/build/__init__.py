"""Building: from a definition and context values to a message."""
