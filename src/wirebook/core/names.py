"""Identifiers and the names of the built-in types.

Spec: core/spec.md#singularid-id-attribute, core/spec.md#attributes-and-extensions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~:@-]{0,127}\Z")
IDENTIFIER_IN_WORDS: Final = "1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, the first a letter, a digit or _"

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


def collection_of(members: Mapping[str, Any]) -> str | None:
    """Return the Group collection to which all members belong, or None.

    A member belongs to a collection if the id attribute of that Group type equals the member's key.
    """
    for collection in GROUP_TYPES:
        name = f"{SINGULARS[collection]}id"
        if members and all(isinstance(group, dict) and group.get(name) == key for key, group in members.items()):
            return collection
    return None
