"""Several documents as one registry.

The same XID in two documents: equal after normalisation is one; different is an error that names both, and the first
counts. A group may be spread over documents: its messages come together, its attributes must not contradict.

Spec: docs/catalogues.md#loading.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.core.names import GROUP_TYPES
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.preview import preview
from wirebook.text.pointers import child

# What a server keeps count of, and where a copy happens to be: no difference in meaning.
BOOKKEEPING: Final = frozenset({
    "self", "shortself", "xid", "epoch", "createdat", "modifiedat", "metaurl", "versionsurl", "versionscount",
    "messagesurl", "messagescount", "schemasurl", "schemascount", "defaultversionurl", "isdefault",
})  # fmt: skip


@dataclass(slots=True)
class DocumentStack:
    """Documents put together so far.

    Shape: `owners` maps the canonical pointer of each group and resource to the number of the document it is from.
    """

    names: list[str]
    document: dict[str, Any] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    log: Log = field(default_factory=Log)

    def add(self, index: int, document: dict[str, Any], log: Log) -> None:
        """Put a normalised document on the stack; differences go to its log."""
        for name, value in document.items():
            if name not in GROUP_TYPES or not isinstance(value, dict):
                self.document.setdefault(name, value)
        for collection in GROUP_TYPES:
            for key, group in (document.get(collection) or {}).items():
                self._add_group(index, collection, key, group, log)

    def _add_group(self, index: int, collection: str, key: str, group: dict[str, Any], log: Log) -> None:
        pointer, members = child(f"/{collection}", key), GROUP_TYPES[collection][1]
        groups = self.document.setdefault(collection, {})
        if key not in groups:
            groups[key] = group
            self.owners[pointer] = index
            return
        first = groups[key] = dict(groups[key])
        for name, value in group.items():
            if name == members:
                first[members] = dict(first.get(members) or {})
                self._add_members(index, f"{pointer}/{members}", first[members], value or {}, log)
            # Reading: a group that is spread need not repeat its attributes; only two values of one contradict.
            elif name not in BOOKKEEPING and name in first and first[name] != value:
                self._differs(pointer, child(pointer, name), log, first[name], value)
            else:
                first.setdefault(name, value)

    def _add_members(
        self, index: int, collection: str, first: dict[str, Any], second: dict[str, Any], log: Log
    ) -> None:
        for key, member in second.items():
            pointer = child(collection, key)
            if key not in first:
                first[key] = member
                self.owners[pointer] = index
            elif meaning(first[key]) != meaning(member):
                self._differs(pointer, pointer, log, first[key], member)

    def _differs(self, owned: str, pointer: str, log: Log, first: Any, second: Any) -> None:
        parts = owned.split("/")
        holder = self.owners.get(owned, self.owners.get("/".join(parts[:3]), 0))
        message = f"differs from the one in '{self.names[holder]}', which counts"
        xid = owned.replace("~1", "/").replace("~0", "~")
        log.report("conflicting-documents", pointer, message, xid, expected=preview(first), actual=preview(second))


def meaning(entity: Any) -> Any:
    """An entity without what says where and when, to be compared."""
    if not isinstance(entity, dict):
        return entity
    kept = {name: value for name, value in entity.items() if name not in BOOKKEEPING}
    for name in ("meta", "versions"):
        inner = kept.get(name)
        if isinstance(inner, dict):
            kept[name] = meaning(inner) if name == "meta" else {key: meaning(value) for key, value in inner.items()}
    return kept
