"""Text formats: strict JSON and YAML, JSON Pointers, source positions, media types."""
