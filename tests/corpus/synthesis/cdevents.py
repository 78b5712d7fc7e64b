"""Make a catalogue for CDEvents from its public schemas, and load its example events.

One definition for each event type, as the CloudEvents binding of CDEvents says: `type` a constant, `source`, `subject`,
`id` and `time` there, the payload by reference to the event's schema; one schema for each file, which refer to one
another by their `$id`. The schemas (Apache-2.0) are not kept here: they are read from the folder beside the project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GROUP = "dev.cdevents"
FORMAT = "JsonSchema/draft/2020-12"


@dataclass(frozen=True)
class Example:
    """One of the examples: the data of an event, and the attributes that the binding makes of it."""

    name: str
    data: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.data["context"]["type"])

    @property
    def definition(self) -> str:
        return f"/messagegroups/{GROUP}/messages/{self.type}"

    @property
    def attributes(self) -> dict[str, Any]:
        context = self.data["context"]
        return {
            "specversion": "1.0",
            "id": context["id"],
            "source": context["source"],
            "type": context["type"],
            "subject": self.data["subject"]["id"],
            "time": context["timestamp"],
            "datacontenttype": "application/json",
        }


def examples(corpus: Path) -> list[Example]:
    files = sorted((corpus / "cdevents" / "conformance").glob("*.json"))
    return [Example(file.stem, json.loads(file.read_text("utf-8"))) for file in files]


def catalogue(corpus: Path) -> dict[str, Any]:
    """The catalogue as a document."""
    folder = corpus / "cdevents" / "schemas"
    schemas = {str(file.relative_to(folder)): json.loads(file.read_text("utf-8")) for file in folder.rglob("*.json")}
    messages = {type_: _message(type_, name) for name, schema in schemas.items() for type_ in _types(schema)}
    return {
        "specversion": "1.0-rc4",
        "registryid": "cdevents",
        "messagegroups": {
            GROUP: {"messagegroupid": GROUP, "envelope": "CloudEvents/1.0", "messages": dict(sorted(messages.items()))}
        },
        "schemagroups": {
            GROUP: {
                "schemagroupid": GROUP,
                "schemas": {_id(name): _schema(name, schemas[name]) for name in sorted(schemas)},
            }
        },
    }


def _types(schema: dict[str, Any]) -> Iterator[str]:
    context = schema.get("properties", {}).get("context", {})
    yield from context.get("properties", {}).get("type", {}).get("enum", ())


def _id(name: str) -> str:
    return name.removesuffix(".json").replace("/", ".")


def _schema(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    version = {"schemaid": _id(name), "versionid": "1", "format": FORMAT, "schema": schema}
    return {"schemaid": _id(name), "versions": {"1": version}}


def _message(type_: str, schema: str) -> dict[str, Any]:
    return {
        "messageid": type_,
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {
            "id": {"type": "string", "required": True},
            "type": {"type": "string", "value": type_, "required": True},
            "source": {"type": "urireference", "value": "{source}", "required": True},
            "subject": {"type": "string", "value": "{subjectid}", "required": True},
            "time": {"type": "timestamp", "required": True},
        },
        "dataschemaformat": FORMAT,
        "dataschemauri": f"/schemagroups/{GROUP}/schemas/{_id(schema)}",
    }
