"""XML Schema."""
