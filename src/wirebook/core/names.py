"""Identifiers and the names of the built-in types.

Spec: core/spec.md#singularid-id-attribute, core/spec.md#attributes-and-extensions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~:@-]{0,127}\Z")
IDENTIFIER_IN_WORDS: Final = "1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, the first a letter, a digit or _"

# Group collection -> (singular, resource collection, resource singular). Messages in endpoints have the same type.
GROUP_TYPES: Final[dict[str, tuple[str, str, str]]] = {
    "messagegroups": ("messagegroup", "messages", "message"),
    "endpoints": ("endpoint", "messages", "message"),
    "schemagroups": ("schemagroup", "schemas", "schema"),
}
# Collection -> singular, at any level.
SINGULARS: Final[dict[str, str]] = {
    "messagegroups": "messagegroup",
    "endpoints": "endpoint",
    "schemagroups": "schemagroup",
    "messages": "message",
    "schemas": "schema",
    "versions": "version",
}


def is_identifier(text: object) -> bool:
    """Return whether a value is a valid id of an entity."""
    return isinstance(text, str) and IDENTIFIER.match(text) is not None


def collection_of(members: Mapping[str, Any]) -> str | None:
    """Return the collection of groups to which all members belong: each contains the id attribute of that
    group type.
    """
    for collection in GROUP_TYPES:
        name = f"{SINGULARS[collection]}id"
        if members and all(isinstance(group, dict) and group.get(name) == key for key, group in members.items()):
            return collection
    return None
