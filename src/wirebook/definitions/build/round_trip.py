"""The round-trip check: a built message must match its own definition and yield the same placeholder values.

Spec: docs/semantics.md D18, D21; docs/decisions/0054-round-trip-check.md
"""

from __future__ import annotations

from collections.abc import Iterator

from wirebook.bindings import AnyMessage, as_structured, read_message
from wirebook.definitions.build.request import BuildRequest
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.match.matcher import match_metadata, mismatches_of
from wirebook.definitions.match.options import MatchOptions
from wirebook.problems import Problem, Severity


def check_round_trip(
    definition: Definition, wire: AnyMessage, request: BuildRequest, options: MatchOptions
) -> Iterator[Problem]:
    """Yield why a receiver with the same definition would not match the message, or would read other values (D21)."""
    received = read_message(wire)[0]
    errors = [problem for problem in received.problems if problem.severity is Severity.ERROR]
    if errors:
        yield from errors
        return
    structured = as_structured(received) if definition.is_cloudevent else None
    view = MessageView(structured or received, is_reinterpreted=structured is not None)
    match = match_metadata(definition, view, options)
    if match is None:
        yield from (mismatch.problem() for mismatch in mismatches_of(definition, view, options))
    elif match.ambiguous_bindings:
        message = "a receiver could split the placeholders in another way"
        yield Problem("ambiguous-bindings", message, slot="bindings", actual=match.bindings)
    elif request.encoding == "place":
        for name in definition.placeholders:
            sent, read = request.context[name], match.bindings.get(name)
            if read is not None and read != sent:  # None: the receiver does not see the slot (D28)
                message = f"a receiver would read '{read}' for '{name}', not '{sent}'"
                slots = (c.label for c in definition.all_constraints if c.template and name in c.template.names)
                yield Problem("context-changed", message, slot=next(slots), expected=sent, actual=read)
