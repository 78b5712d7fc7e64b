"""The kinds of input, and the share of each in a run."""

from __future__ import annotations

from fuzzing import building, commandline, documents, messages, names, payloads, schemas, templates
from fuzzing.case import Kind

KINDS = (
    Kind("documents", 45, documents.make, documents.run),
    Kind("yaml", 25, documents.make_yaml, documents.run),
    Kind("records", 240, messages.make_record, messages.run_record),
    Kind("events", 90, messages.make_events, messages.run_events),
    Kind("parquet", 40, messages.make_rows, messages.run_rows),
    Kind("captures", 30, messages.make_file, messages.run_file),
    *(
        Kind(f"{name} payloads", 35, payloads.maker(name), payloads.run)
        for name in ("json-schema", "json-structure", "avro", "protobuf", "xsd")
    ),
    *(Kind(f"{name} schemas", 8, schemas.maker(name), schemas.run) for name in schemas.FAMILIES),
    Kind("templates", 180, templates.make, templates.run),
    Kind("long templates", 4, templates.make_long, templates.run),
    Kind("build", 80, building.make, building.run),
    Kind("transform", 40, building.make_transform, building.run_transform),
    Kind("command line", 6, commandline.make, commandline.run),
    Kind("table names", 20, names.make, names.run),
)
