"""Rename attributes for responses in a former specversion.

Spec: docs/registry.md#older-texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wirebook.core.entities.rows import format_members, parse_members
from wirebook.core.model.compiled import ResourceType

VERSIONS: Final[Mapping[str, Mapping[str, str]]] = {"1.0-rc2": {"ancestorid": "ancestor"}}
"""Former names of Version attributes, by specversion."""

MESSAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "1.0-rc2": {"basemessage": "basemessageurl", "basemessageuri": "basemessageurl"}
}
"""Further former names of message attributes, by specversion."""


def older_names(specversion: str, type_: ResourceType) -> Mapping[str, str]:
    """Return the names of Version attributes in a specversion, by their current names."""
    names = VERSIONS.get(specversion, {})
    return {**names, **MESSAGES[specversion]} if names and type_.plural == "messages" else names


def rename_attributes(specversion: str, text: str, type_: ResourceType) -> str:
    """Rename the members of a Version, as JSON without braces, to their names in a specversion.

    An extension that has the former name of an attribute is omitted, since the two would be indistinguishable.
    """
    if specversion not in VERSIONS:
        return text
    names = older_names(specversion, type_)
    taken = set(names.values())
    if not any(f'"{name}":' in text for name in (*names, *taken)):
        return text
    members = parse_members(text).items()
    return format_members({names.get(name, name): value for name, value in members if name not in taken})
