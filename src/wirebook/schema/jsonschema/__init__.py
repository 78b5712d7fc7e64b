"""JSON Schema, draft-04 to 2020-12. Payloads are read and written by schema/json_reader.py."""
