"""Answers as an older text has them: names of attributes that have another one since.

Spec: docs/registry.md#older-texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wirebook.core.entities.rows import format_members, parse_members
from wirebook.core.model.compiled import ResourceType

VERSIONS: Final[Mapping[str, Mapping[str, str]]] = {"1.0-rc2": {"ancestorid": "ancestor"}}
"""Attributes of every Version, by the text that had them under another name."""

MESSAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "1.0-rc2": {"basemessage": "basemessageurl", "basemessageuri": "basemessageurl"}
}
"""Those of messages besides."""


def older_names(specversion: str, type_: ResourceType) -> Mapping[str, str]:
    """The names that a text gives to attributes of Versions, by those that they have now."""
    names = VERSIONS.get(specversion, {})
    return {**names, **MESSAGES[specversion]} if names and type_.plural == "messages" else names


def rename_attributes(specversion: str, text: str, type_: ResourceType) -> str:
    """Members of a Version, as JSON without braces, with the names that a text gives them.

    An extension that is called like one of them is left out: nobody could tell which of the two was meant.
    """
    if specversion not in VERSIONS:
        return text
    names = older_names(specversion, type_)
    taken = set(names.values())
    if not any(f'"{name}":' in text for name in (*names, *taken)):
        return text
    members = parse_members(text).items()
    return format_members({names.get(name, name): value for name, value in members if name not in taken})
