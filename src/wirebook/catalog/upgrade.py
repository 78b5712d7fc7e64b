"""Upgrade a catalogue to 1.0-rc4: the normalised document, with changes that only a written document needs.

Loading accepts types that 1.0-rc4 does not have, and Versions without an ancestor. An upgrade replaces these types and
adds the ancestors. Every change is reported, and a second upgrade changes nothing.

Spec: docs/catalogues.md#upgrade.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from wirebook.core.names import GROUP_TYPES, version_order
from wirebook.definitions.normalize.documents import SPECVERSION
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.resolve.registry import LoadedRegistry
from wirebook.problems import Problem
from wirebook.text.pointers import child

ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
TYPED: Final = ("envelopemetadata", "protocoloptions")


def upgrade(registry: LoadedRegistry) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """Return the registry as a document of 1.0-rc4, and a problem for each change."""
    log = Log()
    document = dict(registry.document)
    if "specversion" not in document:
        message = f"'specversion' was added with the value '{SPECVERSION}'"
        log.report("added-specversion", "", message, expected=SPECVERSION)
        document = {"specversion": SPECVERSION} | document
    for collection, (_, resources, _) in GROUP_TYPES.items():
        if collection in document:
            document[collection] = _map_members(
                document[collection],
                f"/{collection}",
                lambda group, pointer, resources=resources: _upgrade_group(group, pointer, resources, log),
            )
    changes = (registry.place(registry.trace(problem)) for problem in log.problems)
    return document, (*registry.diagnostics, *changes)


def render_document(document: dict[str, Any]) -> str:
    """Serialise a document as indented JSON, members in their order, with a newline at the end."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _map_members(members: Any, pointer: str, change: Any) -> Any:
    return {key: change(member, child(pointer, key)) for key, member in members.items()}


def _upgrade_group(group: dict[str, Any], pointer: str, resources: str, log: Log) -> dict[str, Any]:
    if resources not in group:
        return group
    upgraded = _map_members(
        group[resources],
        f"{pointer}/{resources}",
        lambda resource, at: _upgrade_resource(resource, at, resources, log),
    )
    return group | {resources: upgraded}


def _upgrade_resource(resource: dict[str, Any], pointer: str, resources: str, log: Log) -> dict[str, Any]:
    changed = _upgrade_types(resource, pointer, log) if resources == "messages" else dict(resource)
    versions = changed.get("versions")
    if versions:
        place = f"{pointer}/versions"
        if resources == "messages":
            versions = _map_members(versions, place, lambda version, at: _upgrade_types(version, at, log))
        changed["versions"] = _with_ancestors(versions, place, log)
    return changed


# -- types ----------------------------------------------------------------------------------------------------------


def _upgrade_types(message: dict[str, Any], pointer: str, log: Log) -> dict[str, Any]:
    changed = dict(message)
    for name in TYPED:
        if isinstance(message.get(name), dict):
            changed[name] = _retyped(message[name], child(pointer, name), log)
    return changed


def _retyped(value: Any, pointer: str, log: Log) -> Any:
    """Replace the type `urireference` in property definitions, which 1.0-rc4 does not have."""
    if isinstance(value, list):
        return [_retyped(item, child(pointer, index), log) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    changed = {name: _retyped(item, child(pointer, name), log) for name, item in value.items()}
    if changed.get("type") == "urireference":
        absolute = isinstance(changed.get("value"), str) and ABSOLUTE.match(changed["value"]) is not None
        changed["type"] = "uri" if absolute else "string"
        message = f"'urireference' is not a type of {SPECVERSION}; it was replaced by '{changed['type']}'"
        log.report("mapped-type", child(pointer, "type"), message, expected=changed["type"], actual="urireference")
    return changed


# -- Versions -------------------------------------------------------------------------------------------------------


def _with_ancestors(versions: dict[str, Any], pointer: str, log: Log) -> dict[str, Any]:
    """Add the missing `ancestorid`: the Version created before; the first Version is its own ancestor."""
    upgraded = dict(versions)
    for (key, version), ancestor in zip(versions.items(), _ancestors(versions), strict=True):
        if "ancestorid" not in version:
            message = f"the Version '{key}' has no 'ancestorid'; '{ancestor}' was added"
            log.report("guessed-ancestor", child(pointer, key), message, expected=ancestor)
            upgraded[key] = version | {"ancestorid": ancestor}
    return upgraded


def _ancestors(versions: dict[str, Any]) -> Iterator[str]:
    """Yield the predecessor of each Version by `createdat`, or by id without it, in the order of the document."""
    order = sorted(versions, key=lambda key: (str(versions[key].get("createdat") or ""), version_order(key)))
    predecessors = dict(zip(order, [order[0], *order], strict=False))
    return (predecessors[key] for key in versions)
