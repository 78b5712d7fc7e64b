"""Merge several documents into one registry.

If two documents define the same XID, the definitions must be equal after normalisation; otherwise an error is reported,
and the first definition is used. A group may be spread over several documents: its members are combined, and its
attributes must not differ.

Spec: docs/catalogues.md#loading.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.core.names import GROUP_TYPES
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.preview import preview
from wirebook.text.pointers import child

# Attributes that servers maintain. They are ignored when entities are compared.
BOOKKEEPING: Final = frozenset({
    "self", "shortself", "xid", "epoch", "createdat", "modifiedat", "metaurl", "versionsurl", "versionscount",
    "messagesurl", "messagescount", "schemasurl", "schemascount", "defaultversionurl", "isdefault",
})  # fmt: skip


@dataclass(slots=True)
class DocumentStack:
    """The documents merged so far.

    Shape: `names` are the names of all documents; `owners` maps the canonical pointer of each group and Resource to the
    index of its document, and that of a group's attribute if it is in another document than the group.
    """

    names: list[str]
    document: dict[str, Any] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    log: Log = field(default_factory=Log)

    def add(self, index: int, document: dict[str, Any], log: Log) -> None:
        """Merge a normalised document. Differences from earlier documents are recorded in its log."""
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
            # Reading: documents that contain parts of a group need not repeat its attributes; only different values are
            # an error.
            elif name not in BOOKKEEPING and name in first and first[name] != value:
                self._report_difference(pointer, child(pointer, name), log, first[name], value)
            elif name not in first:
                first[name] = value
                self.owners[child(pointer, name)] = index

    def _add_members(
        self, index: int, collection: str, first: dict[str, Any], second: dict[str, Any], log: Log
    ) -> None:
        for key, member in second.items():
            pointer = child(collection, key)
            if key not in first:
                first[key] = member
                self.owners[pointer] = index
            elif comparable(first[key]) != comparable(member):
                self._report_difference(pointer, pointer, log, first[key], member)

    def _report_difference(self, owned: str, pointer: str, log: Log, first: Any, second: Any) -> None:
        parts = owned.split("/")
        holder = self.owners.get(pointer, self.owners.get("/".join(parts[:3]), 0))
        message = f"differs from the value in '{self.names[holder]}', which is used; remove one of them"
        xid = owned.replace("~1", "/").replace("~0", "~")
        log.report("conflicting-documents", pointer, message, xid, expected=preview(first), actual=preview(second))


def comparable(entity: Any) -> Any:
    """Return an entity without the attributes that servers maintain, for comparison."""
    if not isinstance(entity, dict):
        return entity
    content = {name: value for name, value in entity.items() if name not in BOOKKEEPING}
    if isinstance(content.get("meta"), dict):
        content["meta"] = comparable(content["meta"])
    if isinstance(content.get("versions"), dict):
        content["versions"] = {key: comparable(version) for key, version in content["versions"].items()}
    return content
