"""What a normalisation notes down: the problems it found, and where each value it moved came from.

A finding names the place in the document as it was written, so each canonical place is traced back to its source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wirebook.definitions.normalize.names import brief, shown
from wirebook.problems import Problem
from wirebook.text.pointers import escape, prefixes


@dataclass(slots=True)
class Log:
    """The notes on one document.

    Shape: `origins` maps the canonical pointer of something that moved or was renamed to its pointer in the source;
    what is not in it, and lies in nothing that is, stands where it stood.
    """

    problems: list[Problem] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)

    def source_of(self, pointer: str) -> str:
        """Where what now stands at `pointer` stood in the document."""
        for held in prefixes(pointer):
            if held in self.origins:
                return self.origins[held] + pointer[len(held) :]
        return pointer

    def report(self, code: str, pointer: str, message: str, xid: str | None = None, **more: Any) -> None:
        """Note a problem at a canonical pointer."""
        self.report_source(code, self.source_of(pointer), message, xid, **more)

    def report_source(self, code: str, source: str, message: str, xid: str | None = None, **more: Any) -> None:
        """Note a problem at a pointer of the source."""
        if "actual" in more:
            more["actual"] = brief(more["actual"])
        self.problems.append(Problem(code=code, message=message, pointer=source, xid=xid or None, **more))


@dataclass(slots=True)
class RewrittenEntity:
    """One group, resource or Version being rewritten.

    Shape: `values` are its attributes, a copy that may be changed at its top level; `pointer` is canonical.
    """

    xid: str
    pointer: str
    values: dict[str, Any]
    log: Log
    old: bool = False  # is it known to be of a text before 1.0?

    def at(self, *tokens: object) -> str:
        """The canonical pointer of something in the entity."""
        return "/".join((self.pointer, *map(escape, tokens)))

    def report(self, code: str, pointer: str, message: str, **more: Any) -> None:
        self.log.report(code, pointer, message, self.xid, **more)

    # -- moving things ------------------------------------------------------------------------------------------

    def rename(self, old: str, new: str, code: str = "old-attribute-name") -> None:
        """Give the attribute `old` the name `new`, in its place; with two values for one name, `new`'s stays."""
        if old not in self.values:
            return
        source = self.log.source_of(self.at(old))
        if new in self.values:
            self._settle(old, new)
            return
        self.values = {new if name == old else name: value for name, value in self.values.items()}
        self.log.origins[self.at(new)] = source
        self.report(code, self.at(new), f"'{old}' is '{new}'", expected=new, actual=old)

    def _settle(self, old: str, new: str) -> None:
        if self.values[old] == self.values[new]:
            self.report("repeated-attribute-name", self.at(old), f"'{old}' repeats '{new}'", expected=new, actual=old)
        else:
            message = f"'{old}' and '{new}' are one attribute and have two values; '{new}' counts"
            self.report("conflicting-names", self.at(old), message, expected=self.values[new], actual=self.values[old])
        del self.values[old]

    def drop(self, name: str, reason: str, code: str = "dropped-attribute") -> None:
        """Take an attribute away and say why."""
        if name in self.values:
            self.report(code, self.at(name), f"'{name}' was dropped: {reason}", actual=name)
            del self.values[name]

    def inner(self, name: str) -> dict[str, Any] | None:
        """A copy of the object `name`, put in its place so that it may be changed; None when it is no object."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            message = f"'{name}' must be an object; found '{shown(value)}'"
            self.report("wrong-shape", self.at(name), message, expected="an object", actual=value)
            del self.values[name]
            return None
        copy = self.values[name] = dict(value)
        return copy

    def rewrite_each(self, collection: str, rewrite: Callable[[RewrittenEntity, str], None]) -> None:
        """Rewrite every member of a collection; one that is no object is reported and taken out."""
        if self.values.get(collection, self) is None:  # null is as good as not there
            del self.values[collection]
        self._check_included(collection)
        members = self.inner(collection) or {}
        for key, value in list(members.items()):
            pointer, xid = self.at(collection, key), f"{self.xid}/{collection}/{key}"
            if not isinstance(value, dict):
                message = f"'{key}' in '{collection}' must be an object; found '{shown(value)}'"
                self.log.report("wrong-shape", pointer, message, xid, expected="an object", actual=value)
                del members[key]
                continue
            member = RewrittenEntity(xid, pointer, dict(value), self.log, self.old)
            rewrite(member, key)
            members[key] = member.values

    def _check_included(self, collection: str) -> None:
        """A collection that only its address stands for is missing; Versions are not, the default one is enough."""
        address = f"{collection}url"
        left_out = collection not in self.values and address in self.values
        if left_out and collection != "versions" and self.values.get(f"{collection}count") != 0:
            message = f"'{collection}' is not in the document, only its address is; it is not fetched"
            self.report("collection-elsewhere", self.at(address), message, actual=self.values[address])
