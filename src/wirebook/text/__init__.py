"""Text formats: JSON, YAML, JSON Pointers, source positions, media types, and previews of values in problems."""
