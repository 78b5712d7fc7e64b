"""Text formats: the JSON reader, YAML, JSON Pointers, source positions, media types, and values in problems."""
