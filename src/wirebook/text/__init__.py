"""Text formats: the JSON reader, YAML, JSON Pointers, source positions and media types."""
