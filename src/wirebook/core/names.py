"""Identifiers and the names of the built-in types.

Spec: core/spec.md#singularid-id-attribute, core/spec.md#attributes-and-extensions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~:@-]{0,127}\Z")
IDENTIFIER_IN_WORDS: Final = "1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, the first a letter, a digit or _"
DIGITS: Final = re.compile(r"([0-9]+)")

# Group collection -> (singular, resource collection, resource singular). Endpoints contain the same type of messages
# as message groups.
GROUP_TYPES: Final[dict[str, tuple[str, str, str]]] = {
    "messagegroups": ("messagegroup", "messages", "message"),
    "endpoints": ("endpoint", "messages", "message"),
    "schemagroups": ("schemagroup", "schemas", "schema"),
}
# Collection -> singular, for collections at all levels.
SINGULARS: Final[dict[str, str]] = {
    "messagegroups": "messagegroup",
    "endpoints": "endpoint",
    "schemagroups": "schemagroup",
    "messages": "message",
    "schemas": "schema",
    "versions": "version",
}


def is_identifier(text: object) -> bool:
    """Return whether a value is a valid entity id."""
    return isinstance(text, str) and IDENTIFIER.match(text) is not None


def version_order(version_id: str) -> tuple[list[tuple[int, str]], str]:
    """Return the sort key of a Version id. Numbers are compared by value: ``v9`` precedes ``v010`` and ``v10``."""
    # The parts at odd indexes are numbers. Without leading zeros, a number with more digits is greater.
    parts = enumerate(DIGITS.split(version_id))
    return [(len(part.lstrip("0")), part.lstrip("0")) if index % 2 else (0, part) for index, part in parts], version_id


def collection_of(members: Mapping[str, Any]) -> str | None:
    """Return the Group collection to which all members belong, or None.

    A member belongs to a collection if the id attribute of that Group type equals the member's key.
    """
    for collection in GROUP_TYPES:
        name = f"{SINGULARS[collection]}id"
        if members and all(isinstance(group, dict) and group.get(name) == key for key, group in members.items()):
            return collection
    return None
