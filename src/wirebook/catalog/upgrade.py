"""Upgrading: the normalised document, and what only a document that is written needs.

Loading accepts a type that 1.0-rc4 has dropped and a Version without an ancestor; a written document of 1.0-rc4 has
neither. Every such change is reported, and a second upgrade finds nothing to change.

Spec: docs/catalogues.md#upgrade.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from wirebook.core.names import GROUP_TYPES
from wirebook.definitions.normalize.document_messages import version_order
from wirebook.definitions.normalize.documents import SPECVERSION
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.resolve.registry import LoadedRegistry
from wirebook.problems import Problem
from wirebook.text.pointers import child

ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
TYPED: Final = ("envelopemetadata", "protocoloptions")


def upgrade(registry: LoadedRegistry) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """The registry as a document of 1.0-rc4, and everything that changed on the way to it, with its place."""
    log = Log()
    document = _with_specversion(registry.document, log)
    for collection, (_, resources, _) in GROUP_TYPES.items():
        if collection in document:
            document[collection] = _each(
                document[collection],
                f"/{collection}",
                lambda group, pointer, resources=resources: _upgrade_group(group, pointer, resources, log),
            )
    late = (registry.place(registry.trace(problem)) for problem in log.problems)
    return document, (*registry.diagnostics, *late)


def render_document(document: dict[str, Any]) -> str:
    """A document as it is written: indented JSON, members in their order, one newline at the end."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _with_specversion(document: dict[str, Any], log: Log) -> dict[str, Any]:
    if "specversion" in document:
        return dict(document)
    log.report("added-specversion", "", f"'specversion' is '{SPECVERSION}'", expected=SPECVERSION)
    return {"specversion": SPECVERSION} | document


def _each(members: Any, pointer: str, change: Any) -> Any:
    return {key: change(member, child(pointer, key)) for key, member in members.items()}


def _upgrade_group(group: dict[str, Any], pointer: str, resources: str, log: Log) -> dict[str, Any]:
    if resources not in group:
        return group
    held = f"{pointer}/{resources}"
    return group | {
        resources: _each(group[resources], held, lambda resource, at: _upgrade_resource(resource, at, resources, log))
    }


def _upgrade_resource(resource: dict[str, Any], pointer: str, resources: str, log: Log) -> dict[str, Any]:
    changed = _upgrade_types(resource, pointer, log) if resources == "messages" else dict(resource)
    versions = changed.get("versions")
    if versions:
        held = f"{pointer}/versions"
        if resources == "messages":
            versions = _each(versions, held, lambda version, at: _upgrade_types(version, at, log))
        changed["versions"] = _with_ancestors(versions, held, log)
    return changed


# -- types ----------------------------------------------------------------------------------------------------------


def _upgrade_types(message: dict[str, Any], pointer: str, log: Log) -> dict[str, Any]:
    changed = dict(message)
    for name in TYPED:
        if isinstance(message.get(name), dict):
            changed[name] = _retyped(message[name], child(pointer, name), log)
    return changed


def _retyped(value: Any, pointer: str, log: Log) -> Any:
    """`value` with every property definition of the type urireference given a type that 1.0-rc4 has."""
    if isinstance(value, list):
        return [_retyped(item, child(pointer, index), log) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    changed = {name: _retyped(item, child(pointer, name), log) for name, item in value.items()}
    if changed.get("type") == "urireference":
        absolute = isinstance(changed.get("value"), str) and ABSOLUTE.match(changed["value"]) is not None
        changed["type"] = "uri" if absolute else "string"
        message = f"'urireference' is no type of {SPECVERSION}; '{changed['type']}' was written"
        log.report("mapped-type", child(pointer, "type"), message, expected=changed["type"], actual="urireference")
    return changed


# -- Versions -------------------------------------------------------------------------------------------------------


def _with_ancestors(versions: dict[str, Any], pointer: str, log: Log) -> dict[str, Any]:
    """Versions with their `ancestorid`: the one created before, the first being its own."""
    return {
        key: version if "ancestorid" in version else _with_ancestor(version, key, ancestor, child(pointer, key), log)
        for (key, version), ancestor in zip(versions.items(), _ancestors(versions), strict=True)
    }


def _ancestors(versions: dict[str, Any]) -> Iterator[str]:
    """For each Version, in the document's order, the one before it by time, or by id where no time is given."""
    order = sorted(versions, key=lambda key: (str(versions[key].get("createdat") or ""), version_order(key)))
    before = dict(zip(order, [order[0], *order], strict=False))
    return (before[key] for key in versions)


def _with_ancestor(version: dict[str, Any], key: str, ancestor: str, pointer: str, log: Log) -> dict[str, Any]:
    message = f"the ancestor of the Version '{key}' is taken to be '{ancestor}'"
    log.report("guessed-ancestor", pointer, message, expected=ancestor)
    return version | {"ancestorid": ancestor}
