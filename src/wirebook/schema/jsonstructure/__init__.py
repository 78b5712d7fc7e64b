"""JSON Structure; schema/json_reader.py reads and writes the payloads."""
