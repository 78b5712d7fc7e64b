"""Find definitions by the CloudEvents `type` of a message, even if their protocol or other attributes differ.

This is for near misses and explanations. It has no effect on which definition matches.

Spec: docs/explain.md#which-definitions-are-shown
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cached_property
from heapq import nlargest, nsmallest
from typing import Any, Final

from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.slots import ENVELOPE, Slot
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.explain.similar_names import common_prefix_length
from wirebook.text.json import JsonError, parse_json

TYPE: Final = Slot(ENVELOPE, "type", "envelopemetadata.type")
MAX_PAYLOAD_BYTES: Final = 1 << 20
MAX_TYPE_LENGTH: Final = 200
MAX_SAME: Final = 3
MAX_SIMILAR_TYPES: Final = 3
MAX_COMPARED_TYPES: Final = 100
MIN_SIMILARITY: Final = 0.6


class EventTypes:
    """The definitions that require a constant `type`, indexed by it. The index ignores case."""

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self.definitions = definitions

    @cached_property
    def by_type(self) -> dict[str, list[int]]:
        """Maps each type, in lower case, to the numbers of the CloudEvents definitions that require it."""
        by_type: dict[str, list[int]] = {}
        for number, definition in enumerate(self.definitions):
            if definition.is_cloudevent and (type_ := self.constants.get(definition.xid)):
                by_type.setdefault(_folded(type_), []).append(number)
        return by_type

    @cached_property
    def constants(self) -> dict[str, str]:
        """Maps the XID of each definition that requires a type to that type."""
        types = ((definition.xid, constant_type(definition)) for definition in self.definitions)
        return {xid: type_ for xid, type_ in types if type_}

    def of(self, views: Iterable[MessageView]) -> frozenset[str]:
        """The types of a message in its views; an empty set if no definition requires a type."""
        return frozenset(filter(None, map(type_of, views))) if self.by_type else frozenset()

    def same(self, types: Iterable[str], protocol: str, members: frozenset[str] | None) -> list[Definition]:
        """At most three definitions with one of these types and any protocol. Those for `protocol` come first."""
        definitions = [
            definition
            for type_ in types
            for definition in self._of_type(_folded(type_))
            if self.constants[definition.xid] == type_ and (members is None or definition.xid in members)
        ]
        return nsmallest(MAX_SAME, definitions, key=lambda definition: definition.protocol not in (None, protocol))

    def similar(self, view: MessageView, members: frozenset[str] | None) -> Iterator[Definition]:
        """Definitions for the protocol of the message with a similar type, the most similar first.

        Cost: linear in the number of types, with little work for each. Only the 100 types with the longest common
        prefix and suffix are compared in detail.
        """
        type_ = type_of(view)
        if type_ is None:
            return
        text = _folded(type_)
        compared = nlargest(MAX_COMPARED_TYPES, self.by_type, key=lambda known: _common_affix_length(text, known))
        for similar_type in get_close_matches(text, compared, n=MAX_SIMILAR_TYPES, cutoff=MIN_SIMILARITY):
            for definition in self._of_type(similar_type):
                if definition.protocol in (None, view.protocol) and (members is None or definition.xid in members):
                    yield definition

    def _of_type(self, folded: str) -> Iterator[Definition]:
        return (self.definitions[number] for number in self.by_type.get(folded, ()))


def type_of(view: MessageView) -> str | None:
    """The `type` of a CloudEvent, or of the (first) event in the payload of a message that is not marked as one."""
    if view.is_cloudevent:
        type_ = view.value(TYPE)
    else:
        event = unmarked_event(view)
        type_ = (event[0] if isinstance(event, list) else event or {}).get("type")
    return type_ if isinstance(type_, str) and type_ else None


def constant_type(definition: Definition) -> str | None:
    """The `type` that a definition requires, or None if it is not a constant."""
    declared = (
        constraint.declared
        for constraint in definition.constraints
        if constraint.slot == TYPE and constraint.template is None
    )
    type_ = next(declared, None)
    return type_ if isinstance(type_, str) and type_ else None


def unmarked_event(view: MessageView) -> dict[str, Any] | list[Any] | None:
    """The CloudEvent or batch in the JSON payload of a message that is not marked as a CloudEvent; else None."""
    payload = view.received.payload
    if view.is_cloudevent or payload is None or payload.raw is None or len(payload.raw) > MAX_PAYLOAD_BYTES:
        return None
    try:
        value = parse_json(payload.raw)
    except JsonError:
        return None
    events = value if isinstance(value, list) else [value]
    is_event = bool(events) and all(
        isinstance(event, dict) and {"specversion", "type"} <= event.keys() for event in events
    )
    return value if is_event else None


def _folded(type_: object) -> str:
    return str(type_)[:MAX_TYPE_LENGTH].lower()


def _common_affix_length(left: str, right: str) -> int:
    """The length of the common prefix plus that of the common suffix. One typo reduces it only a little."""
    start = common_prefix_length(left, right)
    return start + common_prefix_length(left[start:][::-1], right[start:][::-1])
