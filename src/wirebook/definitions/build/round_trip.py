"""What is built is read again: would a receiver with the same definition take it, and learn what went in?

Spec: docs/semantics.md D18, D21
"""

from __future__ import annotations

from collections.abc import Iterator

from wirebook.bindings import AnyMessage, as_structured, read_message
from wirebook.definitions.build.request import BuildRequest
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.match.matcher import Match, match_metadata, mismatches_of
from wirebook.definitions.match.options import MatchOptions
from wirebook.problems import Problem, Severity


def check_built(
    definition: Definition, wire: AnyMessage, request: BuildRequest, options: MatchOptions
) -> Iterator[Problem]:
    """Why a receiver would not take the message, or not learn the context from it (D21)."""
    received = read_message(wire)[0]
    errors = [problem for problem in received.problems if problem.severity is Severity.ERROR]
    if errors:
        yield from errors
        return
    structured = as_structured(received) if definition.is_cloudevent else None
    view = MessageView(structured or received, is_reinterpreted=structured is not None)
    found = match_metadata(definition, view, options)
    if found is None:
        yield from (finding.problem() for finding in mismatches_of(definition, view, options))
    elif found.ambiguous_bindings:
        text = "a receiver may split the placeholders in another way"
        yield Problem("ambiguous-bindings", text, slot="bindings", actual=found.bindings)
    elif request.encoding == "place":
        yield from _changed(definition, found, request)


def _changed(definition: Definition, found: Match, request: BuildRequest) -> Iterator[Problem]:
    """What a receiver reads instead of what was given; placeholders that it cannot see say nothing (D28)."""
    for name in definition.placeholders:
        read, given = found.bindings.get(name), request.context[name]
        if read is not None and read != given:
            text = f"a receiver reads '{read}' for '{name}', not '{given}'"
            yield Problem("context-changed", text, slot=_slot_of(definition, name), expected=given, actual=read)


def _slot_of(definition: Definition, name: str) -> str:
    uses = (
        constraint.label
        for constraint in definition.all_constraints
        if constraint.template and name in constraint.template.names
    )
    return next(uses)
