"""Names of an xRegistry: identifiers and attribute names.

Spec: core/spec.md#singularid-id-attribute, core/spec.md#attributes-and-extensions.
"""

from __future__ import annotations

import re
from typing import Final

# 1 to 128 characters: unreserved, ":" or "@"; the first a letter, a digit or "_".
IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~:@-]{0,127}\Z")

# Group collection -> (singular, resource collection, resource singular). Messages of an endpoint are the same type.
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
    return isinstance(text, str) and IDENTIFIER.match(text) is not None
