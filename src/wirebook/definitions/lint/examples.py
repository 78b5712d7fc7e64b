"""Check that the examples of a definition match it.

Examples are in the extension attribute `examples` of a message, which is an array. A capture record (an object with
`protocol`) or a CloudEvent is a whole message; any other value is a payload. The `examples` of an inline JSON Schema
are payloads.

Spec: docs/decisions/0066-catalogue-examples.md
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from wirebook.bindings import Received, as_structured
from wirebook.bindings.read import read_record
from wirebook.definitions.compile.definition import Definition as Compiled
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.match.matcher import mismatches_of
from wirebook.definitions.normalize.document_messages import DocumentMessage
from wirebook.problems import Problem, Severity
from wirebook.schema import Payload
from wirebook.schema.reader import CompiledSchema
from wirebook.text.pointers import child

MAX_EXAMPLES: Final = 100  # of one definition


def check_examples(definition: DocumentMessage, compiled: Compiled, schema: CompiledSchema | None) -> Iterator[Finding]:
    """Check each example of a message and of its inline schema."""
    inline = definition.attributes.get("dataschema")
    for name, holder in (("examples", definition.attributes), ("dataschema/examples", inline)):
        examples = holder.get("examples") if isinstance(holder, dict) else None
        for index, example in enumerate(examples[:MAX_EXAMPLES] if isinstance(examples, list) else ()):
            whole = name == "examples" and is_message(example)
            problems = _message_problems(example, compiled, schema) if whole else _payload_problems(example, schema)
            for problem in problems[:1]:
                pointer = child(f"{definition.pointer}/{name}", index)
                reason = f"{problem.slot or 'the example'}: {problem.message}"
                message = f"the example does not match its definition: {reason}"
                yield Finding("example-mismatch", pointer, message, problem.expected, problem.actual)


def is_message(example: Any) -> bool:
    """Return whether an example is a whole message (a capture record or a CloudEvent), not just a payload."""
    return isinstance(example, dict) and ("protocol" in example or {"specversion", "type", "source"} <= example.keys())


def _message_problems(example: Any, compiled: Compiled, schema: CompiledSchema | None) -> list[Problem]:
    problems: list[Problem] = []
    for received in read_record(orjson.dumps(example)):
        problems += [problem for problem in received.problems if problem.severity is Severity.ERROR]
        if received.kind == "malformed":
            continue
        structured = as_structured(received) if compiled.is_cloudevent else None
        view = MessageView(structured or received, is_reinterpreted=structured is not None)
        problems += [finding.problem() for finding in mismatches_of(compiled, view)]
        problems += _data_problems(structured or received, schema)
    return problems


def _data_problems(received: Received, schema: CompiledSchema | None) -> list[Problem]:
    if schema is None or received.payload is None:
        return []
    return list(schema.read(received.payload).problems)


def _payload_problems(example: Any, schema: CompiledSchema | None) -> list[Problem]:
    return [] if schema is None else list(schema.read(Payload(None, example, "application/json")).problems)
