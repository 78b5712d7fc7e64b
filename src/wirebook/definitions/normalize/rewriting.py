"""Rewrite an entity to 1.0-rc4: rename, drop and move attributes, and log each change with its origin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.preview import preview
from wirebook.text.pointers import child, escape, parent


@dataclass(slots=True)
class RewrittenEntity:
    """One group, resource or Version that is being rewritten.

    Shape: `values` are its attributes, a shallow copy that may be modified; `pointer` is canonical; `old` is set if the
    document is known to follow a specification before 1.0.
    """

    xid: str
    pointer: str
    values: dict[str, Any]
    log: Log
    old: bool = False

    def at(self, *tokens: object) -> str:
        """Return the canonical pointer of a value in the entity."""
        return "/".join((self.pointer, *map(escape, tokens)))

    def report(self, code: str, pointer: str, message: str, **details: Any) -> None:
        """Record a problem of this entity at a canonical pointer."""
        self.log.report(code, pointer, message, self.xid, **details)

    def rename(
        self, old: str, new: str, code: str = "old-attribute-name", *, canonical: Callable[[str], str] = str
    ) -> None:
        """Rename the attribute `old` to `new` and keep its position. If both exist, `new` takes precedence.

        `canonical` returns the canonical spelling of a value. Two values with the same one are equal.
        """
        if old not in self.values:
            return
        source = self.log.source_of(self.at(old))
        if new in self.values:
            dropped = self.values.pop(old)
            value = self.values[new]
            are_texts = isinstance(dropped, str) and isinstance(value, str)
            if dropped == value or (are_texts and canonical(dropped) == canonical(value)):
                message = f"'{old}' repeats '{new}'; remove '{old}'"
                self.report("repeated-attribute-name", self.at(old), message, expected=new, actual=old)
            else:
                message = f"'{old}' and '{new}' are the same attribute with two values; '{new}' is used; remove '{old}'"
                self.report("conflicting-names", self.at(old), message, expected=value, actual=dropped)
            return
        self.values = {new if name == old else name: value for name, value in self.values.items()}
        self.log.origins[self.at(new)] = source
        self.report(code, self.at(new), f"'{old}' was read as '{new}', its name in 1.0-rc4", expected=new, actual=old)

    def move(
        self, name: str, object_name: str, new: str | None = None, members: dict[str, Any] | None = None, at: str = ""
    ) -> None:
        """Move the attribute `name` into the object `object_name`. If the object already has it, that takes precedence.

        If it is not an attribute of the entity itself, `members` is the object that contains it, and `at` its pointer.
        """
        members, source, new = members or self.values, self.log.source_of(at or self.at(name)), new or name
        value = members.pop(name)
        target = self.inner(object_name)
        if target is None:
            target = self.values[object_name] = {}
            self.log.origins[self.at(object_name)] = parent(source)
        self.put(target, self.at(object_name, new), value, source, old=name, new=f"{object_name}.{new}")

    def put(self, members: dict[str, Any], pointer: str, value: Any, source: str, *, old: str, new: str) -> None:
        """Put a value that was at `source` into an object, and report it. An existing value takes precedence.

        `pointer` is the new place; `old` and `new` are the paths of both places for the message.
        """
        name = new.rpartition(".")[2]
        code, message = "misplaced-attribute", f"'{old}' was read as '{new}', its place in 1.0-rc4"
        details: dict[str, Any] = {"expected": new, "actual": old}
        if name not in members:
            members[name] = value
            self.log.origins[pointer] = source
        elif members[name] == value:
            code, message = "repeated-attribute-name", f"'{old}' repeats '{new}'; remove '{old}'"
        else:
            code, message = "conflicting-names", f"'{old}' differs from '{new}', which is used; remove '{old}'"
            details = {"expected": members[name], "actual": value}
        self.log.report_source(code, source, message, self.xid, **details)

    def drop(self, name: str, reason: str, code: str = "dropped-attribute") -> None:
        """Remove an attribute and report the reason."""
        if name in self.values:
            self.report(code, self.at(name), f"'{name}' is ignored: {reason}; remove it", actual=name)
            del self.values[name]

    def inner(self, name: str) -> dict[str, Any] | None:
        """Replace the object `name` with a copy that may be modified, and return the copy; None if there is no object.

        A value that is not an object is reported (``wrong-shape``) and removed.
        """
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            message = f"'{name}' must be an object; found '{preview(value)}'"
            self.report("wrong-shape", self.at(name), message, expected="an object", actual=value)
            del self.values[name]
            return None
        copy = self.values[name] = dict(value)
        return copy

    def rewrite_each(self, collection: str, rewrite: Callable[[RewrittenEntity, str], None]) -> None:
        """Rewrite every member of a collection. A member that is not an object is reported and removed."""
        if self.values.get(collection, self) is None:  # null means no value
            del self.values[collection]
        self._check_included(collection)
        members = self.inner(collection) or {}
        for key, value in list(members.items()):
            pointer, xid = self.at(collection, key), f"{self.xid}/{collection}/{key}"
            if not isinstance(value, dict):
                message = f"'{key}' in '{collection}' must be an object; found '{preview(value)}'"
                self.log.report("wrong-shape", pointer, message, xid, expected="an object", actual=value)
                del members[key]
                continue
            member = RewrittenEntity(xid, pointer, dict(value), self.log, self.old)
            rewrite(member, key)
            members[key] = member.values

    def _check_included(self, collection: str) -> None:
        """Report a collection that is only linked, except Versions: the default Version is sufficient."""
        link = f"{collection}url"
        is_linked = collection not in self.values and link in self.values
        if is_linked and collection != "versions" and self.values.get(f"{collection}count") != 0:
            message = f"'{collection}' is only linked and is not fetched; export it with '?inline={collection}'"
            self.report("collection-elsewhere", self.at(link), message, actual=self.values[link])


@dataclass(frozen=True, slots=True)
class RewriteCursor:
    """A place in an entity, where functions that rewrite nested values record problems and moves."""

    entity: RewrittenEntity
    pointer: str

    def inside(self, token: object) -> RewriteCursor:
        """Return the cursor of the member `token`."""
        return RewriteCursor(self.entity, child(self.pointer, token))

    @property
    def outside(self) -> RewriteCursor:
        """The cursor of the object or array that contains this place."""
        return RewriteCursor(self.entity, parent(self.pointer))

    @property
    def source(self) -> str:
        """The pointer of this place in the source document."""
        return self.entity.log.source_of(self.pointer)

    def report(self, code: str, message: str, **details: Any) -> None:
        """Record a problem at this place."""
        self.entity.report(code, self.pointer, message, **details)

    def report_source(self, code: str, source: str, message: str, **details: Any) -> None:
        """Record a problem at a pointer of the source document."""
        self.entity.log.report_source(code, source, message, self.entity.xid, **details)

    def record_origin(self, source: str) -> None:
        """Record that the value at this place was at `source` in the source document."""
        self.entity.log.origins[self.pointer] = source

    def rename(self, members: dict[str, Any], old: str, new: str) -> None:
        """Rename a member of the object at this place. If both names exist, `new` takes precedence."""
        source, before = self.inside(old).source, dict(members)
        if new in members:
            dropped = members.pop(old)
            code, message = "repeated-attribute-name", f"'{old}' repeats '{new}'; remove '{old}'"
            if dropped != members[new]:
                code = "conflicting-names"
                message = f"'{old}' and '{new}' are the same option with two values; '{new}' is used; remove '{old}'"
            self.inside(old).report(code, message, expected=members[new], actual=dropped)
            return
        members.clear()
        members.update({new if name == old else name: value for name, value in before.items()})
        self.inside(new).record_origin(source)
        message = f"'{old}' was read as '{new}', its name in 1.0-rc4"
        self.inside(new).report("old-option-name", message, expected=new, actual=old)
