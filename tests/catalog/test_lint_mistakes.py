"""Common mistakes: lint reports each at its place, and has no findings for the corrected document."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from wirebook.catalog.load import load_registry
from wirebook.cli.app import run
from wirebook.definitions.lint.registry import lint
from wirebook.problems import Problem, Severity, WirebookError
from wirebook.text.pointers import parse_pointer, resolve
from wirebook.text.source import Source

FILE = Path(__file__).resolve().parent.parent / "vectors" / "lint" / "mistakes.json"
VECTORS: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["vectors"]
JSON = "JsonSchema/draft-07"
EACH = pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["name"]) for vector in VECTORS])


def findings(source: Any) -> list[Problem]:
    """Return the warnings and errors of a document (a file or a value)."""
    try:
        problems = lint(load_registry(source if isinstance(source, Path) else Source("<value>", source)))
    except WirebookError as error:
        problems = error.problems
    return [problem for problem in problems if problem.severity is not Severity.INFO]


@EACH
def test_mistake_is_reported(vector: dict[str, Any]) -> None:
    reported = [[problem.code, problem.pointer] for problem in findings(copy.deepcopy(vector["wrong"]))]
    assert sorted(reported, key=str) == sorted(vector["findings"], key=str)


@EACH
def test_corrected_document_has_no_finding(vector: dict[str, Any]) -> None:
    assert findings(copy.deepcopy(vector["right"])) == []


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_finding_names_the_line_of_its_member(suffix: str, tmp_path: Path) -> None:
    """The place of a member is its name, that of an array item its value."""
    file = tmp_path / f"catalogue.{suffix}"
    for vector in VECTORS:
        document = vector["wrong"]
        text = json.dumps(document, indent=1) if suffix == "json" else yaml.safe_dump(document, sort_keys=False)
        file.write_text(text, "utf-8")
        lines = text.splitlines()
        for problem in findings(file):
            assert problem.line is not None, vector["name"]
            if not problem.pointer:
                continue
            pointer = problem.pointer
            while resolve(document, pointer, None) is None:  # what was read as an object, and is a plain value
                pointer = pointer.rpartition("/")[0]
            name, holder = parse_pointer(pointer)[-1], resolve(document, pointer.rpartition("/")[0])
            rest = lines[problem.line - 1][(problem.column or 1) - 1 :]
            if isinstance(holder, dict):
                assert rest.lstrip("\"'? ").startswith(name), (vector["name"], problem)


FOREIGN = {
    "document that is AsyncAPI": "this is an AsyncAPI 3.0.0 document, not an xRegistry catalogue",
    "document that is OpenAPI": "this is an OpenAPI 3.1.0 document, not an xRegistry catalogue",
    "document that is JSON Schema": "this is a JSON Schema, not an xRegistry catalogue",
    "document that is Avro": "this is an Avro schema, not an xRegistry catalogue",
    "document that is CloudEvents event": "this is a CloudEvents 1.0 event, not an xRegistry catalogue",
    "document that is CloudEvents batch": "this is an array of CloudEvents 1.0 events, not an xRegistry catalogue",
    "document that is capture": "this is a captured KAFKA message, not an xRegistry catalogue",
    "no messagegroups but messagegroup": "write 'messagegroups' instead of 'messagegroup'",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_document_type_is_named_and_exits_with_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.json"
    file.write_text(json.dumps(next(vector["wrong"] for vector in VECTORS if vector["name"] == name)), "utf-8")
    assert run(["lint", str(file)]) == 2
    assert FOREIGN[name] in capsys.readouterr().err


def test_other_document_type_beside_catalogue_is_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text(json.dumps(VECTORS[0]["right"]), "utf-8")
    (tmp_path / "b.yaml").write_text("asyncapi: 3.0.0\nchannels: {}\n", "utf-8")
    assert run(["lint", str(tmp_path / "a.json"), str(tmp_path / "b.yaml")]) == 1
    assert "b.yaml:1:1: error not-a-registry: this is an AsyncAPI 3.0.0 document" in capsys.readouterr().out
    assert run(["lint", str(tmp_path)]) == 0  # in a folder it is left out
    assert "info skipped-file: this is an AsyncAPI 3.0.0 document" in capsys.readouterr().out


def test_capture_with_several_lines_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "capture.jsonl"
    file.write_text('{"protocol": "NATS", "subject": "a"}\n{"protocol": "NATS", "subject": "b"}\n', "utf-8")
    assert run(["lint", str(file)]) == 2
    assert "this is a capture (one message per line), not an xRegistry catalogue" in capsys.readouterr().err


def message_of(document: dict[str, Any], code: str) -> str:
    """Return the message of the only finding with a code."""
    (problem,) = [problem for problem in findings(copy.deepcopy(document)) if problem.code == code]
    return problem.message


def group(**messages: dict[str, Any]) -> dict[str, Any]:
    return {"messagegroups": {"g": {"messages": messages}}}


def test_inherited_fault_is_reported_once_at_its_place() -> None:
    base = {"protocol": "HTTP", "protocoloptions": {"path": "bikes"}}
    derived = {"basemessage": "/messagegroups/g/messages/b", "datacontenttype": "text/plain"}
    names = {name: derived | {"datacontenttype": f"text/{name}"} for name in ("c", "d", "e", "f", "h")}
    document = group(b=base, **names)
    (problem,) = findings(document)
    assert problem.pointer == "/messagegroups/g/messages/b/protocoloptions/path"
    others = ", ".join(f"'/messagegroups/g/messages/{name}'" for name in "cde")
    assert problem.message.endswith(f"(also: {others} and 2 more)")


def test_contradiction_in_a_base_is_reported_once() -> None:
    base = {"protocol": "HTTP", "protocoloptions": {"method": "GET", "status": "200"}}
    document = group(b=base, c={"basemessage": "/messagegroups/g/messages/b"})
    (problem,) = findings(document)
    assert (problem.code, problem.pointer) == (
        "method-and-status",
        "/messagegroups/g/messages/b/protocoloptions/status",
    )
    assert problem.message.endswith("(also: '/messagegroups/g/messages/c')")


def test_fault_seen_through_several_endpoints_is_reported_once() -> None:
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "a"}}}
    document = group(a=event, b=event)
    document["endpoints"] = {
        name: {"usage": ["producer"], "channel": name, "messagegroups": ["/messagegroups/g"]} for name in "ef"
    }
    assert [problem.code for problem in findings(document)] == ["alike"]


def test_alike_definitions_without_schemas_are_ambiguous() -> None:
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "x"}}}
    message = message_of(group(a=event, b=event), "alike")
    assert "they do not have different schemas, so these messages are ambiguous" in message
    assert "different values for envelopemetadata.type" in message
    assert "(both have 'x' in envelopemetadata.type)" in message


def test_alike_definitions_with_different_schemas_are_distinguished_by_payload() -> None:
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "x"}}, "dataschemaformat": JSON}
    message = message_of(
        group(a=event | {"dataschema": {"type": "string"}}, b=event | {"dataschema": {"type": "integer"}}), "alike"
    )
    assert "only a payload that is valid for just one of their schemas distinguishes them" in message


def test_alike_definitions_with_different_content_types_are_distinguished_by_them() -> None:
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "x"}}}
    avro = {"dataschemaformat": "Avro/1.11", "dataschema": "string"}
    message = message_of(
        group(a=event | {"dataschemaformat": JSON, "dataschema": {"type": "string"}}, b=event | avro), "alike"
    )
    suggested = "('application/json' or 'application/vnd.apache.avro')"
    assert f"only the datacontenttype of the message {suggested} or a payload that is valid for just one" in message


def test_definitions_that_differ_only_in_format_are_alike_for_binary_messages() -> None:
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "x"}}}
    formats = [{"format": f"application/cloudevents+{name}"} for name in ("json", "avro")]
    either = [event | {"envelopeoptions": options} for options in formats]
    structured = [event | {"envelopeoptions": options | {"mode": "structured"}} for options in formats]
    assert "the same metadata of binary messages" in message_of(group(a=either[0], b=either[1]), "alike")
    assert "alike" not in {problem.code for problem in lint(load_registry(group(a=structured[0], b=structured[1])))}


def test_alike_definitions_name_the_slots_of_their_protocol() -> None:
    options = {"topic_name": "a/{x}", "qos": 0}
    document = group(
        a={"protocol": "MQTT/5.0", "protocoloptions": options},
        b={"protocol": "MQTT/5.0", "protocoloptions": options | {"qos": 1}},
    )
    message = message_of(document, "alike")
    assert "'protocoloptions.qos' may change in transit, so matching ignores them" in message
    assert "protocoloptions.topic_name or protocoloptions.user_properties" in message


def test_alias_beside_its_target_is_not_alike() -> None:
    event = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "x"}}}
    document = group(a=event, b={"meta": {"xref": "/messagegroups/g/messages/a"}})
    assert "alike" not in {problem.code for problem in lint(load_registry(document))}
