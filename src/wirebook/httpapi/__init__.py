"""The HTTP service of a registry."""
