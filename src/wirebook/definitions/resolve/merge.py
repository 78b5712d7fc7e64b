"""Merge a definition with its base message: inherit attributes, and combine objects member by member.

Spec: message/spec.md#basemessage; docs/semantics.md R27, D36-D39.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.names import protocol_family
from wirebook.text.pointers import child

# Attributes that a definition neither inherits from a base nor takes from an alias target: identifiers, attributes that
# servers maintain, `deprecated`, and `basemessage`, which an alias does take from its target (D36).
OWN_ONLY: Final = frozenset({
    "messageid", "versionid", "self", "shortself", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestor",
    "ancestorid", "meta", "metaurl", "versions", "versionsurl", "versionscount", "deprecated", "basemessage",
})  # fmt: skip
MERGED: Final = frozenset({"envelopemetadata", "envelopeoptions", "protocoloptions", "labels"})
SCHEMA_TRIO: Final = ("dataschema", "dataschemauri", "dataschemaxid")
MERGED_BY_SELECTOR: Final = {"envelope": ("envelopemetadata", "envelopeoptions"), "protocol": ("protocoloptions",)}


@dataclass(frozen=True, slots=True)
class MergeCursor:
    """A place in a merge: the definition that overrides its base, and the path to the current attribute."""

    xid: str
    pointer: str
    log: Log
    tokens: tuple[str, ...] = ()

    def inside(self, name: str) -> MergeCursor:
        """Return the cursor of the member `name`."""
        return MergeCursor(self.xid, self.pointer, self.log, (*self.tokens, name))

    def report(self, code: str, message: str, actual: Any) -> None:
        """Record a problem at this place."""
        pointer = self.pointer
        for token in self.tokens:
            pointer = child(pointer, token)
        self.log.report(code, pointer, message, self.xid, actual=actual)


def merge(base: dict[str, Any], own: dict[str, Any], cursor: MergeCursor) -> dict[str, Any]:
    """Merge `own` over `base` (R27, D37).

    The attributes in `MERGED` are merged member by member; any other value replaces the inherited one. Null removes an
    inherited value.
    """
    merged = _inherited(base, own) if base else {}
    for name, value in own.items():
        if name not in OWN_ONLY:
            _overlay(merged, name, value, cursor, deep=name in MERGED)
    return merged


def _overlay(merged: dict[str, Any], name: str, value: Any, cursor: MergeCursor, *, deep: bool) -> None:
    if value is None:
        merged.pop(name, None)
    elif deep and isinstance(value, dict):
        inherited = merged.get(name)
        inner = dict(inherited) if isinstance(inherited, dict) else {}
        within = cursor.inside(name)
        for key, item in value.items():
            _overlay(inner, key, item, within, deep=True)
        merged[name] = inner
    else:
        inherited = merged.get(name)
        if deep and isinstance(inherited, list) and inherited and inherited != value:
            message = f"'{name}' replaces the {len(inherited)} entries of the base message, as arrays are not merged; "
            message += "repeat those that are still needed"
            cursor.inside(name).report("replaced-array", message, len(inherited))
        merged[name] = value


def _inherited(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes to inherit.

    A definition with another envelope or protocol does not inherit the attributes that depend on it; a definition with
    a schema does not inherit a schema (D38, D39).
    """
    inherited = {name: value for name, value in base.items() if name not in OWN_ONLY}
    for selector, dependants in MERGED_BY_SELECTOR.items():
        if selector in own and protocol_family(own[selector]) != protocol_family(base.get(selector)):
            for name in dependants:
                inherited.pop(name, None)
    if any(own.get(name) is not None for name in SCHEMA_TRIO):
        for name in SCHEMA_TRIO:
            inherited.pop(name, None)
    return inherited
