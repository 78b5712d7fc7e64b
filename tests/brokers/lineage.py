"""A server that receives events of OpenLineage, and a JSON Schema of what its specification requires of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import jsonschema_rs

FACETS: Final = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "properties": {
            "_producer": {"type": "string", "format": "uri"},
            "_schemaURL": {"type": "string", "format": "uri", "pattern": "^https://openlineage.io/spec/"},
        },
        "required": ["_producer", "_schemaURL"],
    },
}
NAMED: Final = {"namespace": {"type": "string", "minLength": 1}, "name": {"type": "string", "minLength": 1}}
SCHEMA_FACET: Final = {
    "properties": {
        "fields": {
            "type": "array",
            "minItems": 1,
            "items": {
                "properties": {"name": {"type": "string"}, "type": {"type": "string"}},
                "required": ["name", "type"],
            },
        }
    },
    "required": ["fields"],
}
COUNTS: Final = {"properties": {"rowCount": {"type": "integer", "minimum": 0}}, "required": ["rowCount"]}
EVENT: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "eventType": {"enum": ["START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"]},
        "eventTime": {"type": "string", "format": "date-time"},
        "producer": {"type": "string", "format": "uri"},
        "schemaURL": {"type": "string", "format": "uri", "pattern": "/OpenLineage.json#/"},
        "run": {
            "type": "object",
            "properties": {"runId": {"type": "string", "format": "uuid"}, "facets": FACETS},
            "required": ["runId"],
        },
        "job": {"type": "object", "properties": NAMED | {"facets": FACETS}, "required": [*NAMED]},
        "inputs": {
            "type": "array",
            "items": {"type": "object", "properties": NAMED | {"facets": FACETS}, "required": [*NAMED]},
        },
        "outputs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": NAMED
                | {
                    "facets": FACETS | {"properties": {"schema": SCHEMA_FACET}, "required": ["schema"]},
                    "outputFacets": FACETS
                    | {"properties": {"outputStatistics": COUNTS}, "required": ["outputStatistics"]},
                },
                "required": [*NAMED],
            },
        },
    },
    "required": ["eventType", "eventTime", "producer", "schemaURL", "run", "job"],
}
"""The required members of OpenLineage 2-0-2, and the facets that Wirebook promises."""
_VALIDATOR: Final = jsonschema_rs.Draft202012Validator(EVENT, validate_formats=True)


class LineageServer:
    """Events that have arrived. It answers with `status`, after `delay` seconds."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.status, self.delay, self.url = 201, 0.0, ""

    def kinds(self) -> list[str]:
        return [event["eventType"] for event in self.events]

    def check(self) -> None:
        """Every event conforms to the schema, and all are of one run."""
        assert not [error for event in self.events for error in faults(event)]
        assert len({event["run"]["runId"] for event in self.events}) == 1
        assert [event["eventTime"] for event in self.events] == sorted(event["eventTime"] for event in self.events)


def faults(event: dict[str, Any]) -> list[str]:
    """What is wrong with an event by the schema."""
    return [error.message for error in _VALIDATOR.iter_errors(event)]


def rows(event: dict[str, Any]) -> dict[str, int]:
    """The rows by the last part of the name of each output."""
    statistics = {output["name"]: output["outputFacets"]["outputStatistics"] for output in event["outputs"]}
    return {name.rpartition("/")[2]: facet["rowCount"] for name, facet in statistics.items()}


@contextmanager
def lineage_server() -> Iterator[LineageServer]:
    """Run a server in a thread."""
    received = LineageServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/api/v1/lineage"
            time.sleep(received.delay)
            if received.status < 300:
                received.events.append(json.loads(body))
            self.send_response(received.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        received.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield received
        server.shutdown()
        thread.join()
