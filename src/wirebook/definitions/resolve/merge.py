"""Merging a definition over its base: what is inherited, and how two values of one attribute become one.

Spec: message/spec.md#basemessage; docs/semantics.md R27, D36-D39.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.names import protocol_family
from wirebook.text.pointers import child

# Identity and bookkeeping: never inherited from a base, never shown through an alias (D36).
OWN_ONLY: Final = frozenset({
    "messageid", "versionid", "self", "shortself", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestor",
    "ancestorid", "meta", "metaurl", "versions", "versionsurl", "versionscount", "deprecated", "basemessage",
})  # fmt: skip
MERGED: Final = frozenset({"envelopemetadata", "envelopeoptions", "protocoloptions", "labels"})
SCHEMA_TRIO: Final = ("dataschema", "dataschemauri", "dataschemaxid")
MERGED_BY_SELECTOR: Final = {"envelope": ("envelopemetadata", "envelopeoptions"), "protocol": ("protocoloptions",)}


@dataclass(frozen=True, slots=True)
class Site:
    """Where a merge is: the definition that overlays, and the way to the attribute in hand."""

    xid: str
    pointer: str
    log: Log
    tokens: tuple[str, ...] = ()

    def inside(self, name: str) -> Site:
        return Site(self.xid, self.pointer, self.log, (*self.tokens, name))

    def report(self, code: str, message: str, actual: Any) -> None:
        pointer = self.pointer
        for token in self.tokens:
            pointer = child(pointer, token)
        self.log.report(code, pointer, message, self.xid, actual=actual)


def merge(base: dict[str, Any], own: dict[str, Any], site: Site) -> dict[str, Any]:
    """`own` over `base`: objects member by member, everything else whole; null takes the inherited away (R27, D37)."""
    merged = _inherited(base, own) if base else {}
    for name, value in own.items():
        if name not in OWN_ONLY:
            _overlay(merged, name, value, site, deep=name in MERGED)
    return merged


def _overlay(merged: dict[str, Any], name: str, value: Any, site: Site, *, deep: bool) -> None:
    if value is None:
        merged.pop(name, None)
    elif deep and isinstance(value, dict):
        inherited = merged.get(name)
        inner = dict(inherited) if isinstance(inherited, dict) else {}
        within = site.inside(name)
        for key, item in value.items():
            _overlay(inner, key, item, within, deep=True)
        merged[name] = inner
    else:
        inherited = merged.get(name)
        if deep and isinstance(inherited, list) and inherited and inherited != value:
            message = f"'{name}' replaces the {len(inherited)} entries of the base; arrays are not merged"
            site.inside(name).report("replaced-array", message, len(inherited))
        merged[name] = value


def _inherited(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """What of the base can be inherited beside `own`: selectors carry what hangs on them (D38, D39)."""
    kept = {name: value for name, value in base.items() if name not in OWN_ONLY}
    for selector, dependants in MERGED_BY_SELECTOR.items():
        if selector in own and protocol_family(own[selector]) != protocol_family(base.get(selector)):
            for name in dependants:
                kept.pop(name, None)
    if any(own.get(name) is not None for name in SCHEMA_TRIO):
        for name in SCHEMA_TRIO:
            kept.pop(name, None)
    return kept
