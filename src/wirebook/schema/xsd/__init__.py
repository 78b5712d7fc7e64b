"""XML Schema, 1.0 and 1.1."""
