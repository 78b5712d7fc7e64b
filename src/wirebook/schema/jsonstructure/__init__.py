"""JSON Structure. Payloads are read and written by schema/json_reader.py."""
