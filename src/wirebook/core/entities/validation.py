"""Validate documents against their format, and check their compatibility with other Versions.

This module does not know the formats: the caller passes a `DocumentValidator`.

Spec: core/spec.md#formatvalidated-attribute, #compatibilityvalidated-attribute, #compatibility-attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from wirebook.core.entities.changeset import ChangeSet
from wirebook.core.entities.state import Resource, UnchangedDocument, Version
from wirebook.core.wildcards import matches_wildcard
from wirebook.problems.xregistry import refused


class DocumentValidator(Protocol):
    """The formats and compatibility rules that a service can check."""

    def family(self, format_: str) -> str | None:
        """Return the family of formats that can be compared with this one; None if the format is not validated."""

    def faults(self, format_: str, document: bytes) -> str | None:
        """Return why a document is not valid in its format; None if it is valid."""

    def rules(self, format_: str) -> frozenset[str]:
        """Return the compatibility rules that are checked for a format."""

    def incompatible(self, rule: str, format_: str, old: bytes, new: bytes) -> str | None:
        """Return why `new` violates ``backward`` (readers of `new` read `old`) or ``forward``; None if it does not."""


@dataclass(frozen=True, slots=True)
class EnabledValidator:
    """A validator restricted to the formats and rules that the capabilities of a registry enable."""

    validator: DocumentValidator
    capabilities: Mapping[str, Any]

    def family(self, format_: str) -> str | None:
        is_on = any(_matches(pattern, format_) for pattern in self.capabilities["formats"])
        return self.validator.family(format_) if is_on else None

    def faults(self, format_: str, document: bytes) -> str | None:
        return self.validator.faults(format_, document)

    def rules(self, format_: str) -> frozenset[str]:
        listed = self.capabilities["compatibilities"].items()
        on = {rule.lower() for pattern, rules in listed if _matches(pattern, format_) for rule in rules}
        return self.validator.rules(format_) & on

    def incompatible(self, rule: str, format_: str, old: bytes, new: bytes) -> str | None:
        return self.validator.incompatible(rule, format_, old, new)


def _matches(pattern: str, format_: str) -> bool:
    return matches_wildcard(format_.lower(), pattern.lower())


UNKNOWN = "Unknown format"
EXTERNAL = "Data stored externally"
NO_RULE = "Unknown compatibility rule for the format"
INVALID = "Format not validated"
NEIGHBOUR = "An ancestor was not validated"


def check_formats(
    change_set: ChangeSet, resource: Resource, validator: DocumentValidator, *, every: bool = False
) -> None:
    """Validate Versions that are new, changed or not validated yet, or `every` Version; set the result attributes.

    Raises: format_violation, format_unknown, format_external
    """
    if resource.type.validateformat or every:
        _ResourceCheck(change_set, resource, validator).formats(every)


def check_compatibility(
    change_set: ChangeSet, resource: Resource, validator: DocumentValidator, *, every: bool = False
) -> None:
    """Compare Versions with their ancestors by the rule in the meta, and set the result attributes.

    Only pairs with a new or changed Version, or a new ancestor, are compared; if the rule is new or `every` is set, all
    are. Raises: compatibility_violation, compatibility_unknown
    """
    if resource.type.validatecompatibility or every:
        _ResourceCheck(change_set, resource, validator).compatibility(every)


def content(version: Version) -> bytes:
    """Return the bytes of a Version's document."""
    document = version.document
    return (document.read() if isinstance(document, UnchangedDocument) else document) or b""


class _ResourceCheck:
    """The checks of one Resource."""

    def __init__(self, change_set: ChangeSet, resource: Resource, validator: DocumentValidator) -> None:
        self._change_set, self._resource, self._validator = change_set, resource, validator
        self._is_strict = resource.type.strictvalidation
        self._changed: set[str] = set()

    # -- formats ------------------------------------------------------------------------------------------------------

    def formats(self, every: bool) -> None:
        for version in self._resource.versions.values():
            if every or version.is_updated or version.is_new or "formatvalidated" not in version.members:
                self._format(version)

    def _format(self, version: Version) -> None:
        format_ = version.members.get("format") if self._resource.type.validateformat else None
        if format_ is None:
            self._set_outcome(version, "format", None, None)
            return
        why = self._cannot_validate(version, format_)
        if not why and (fault := self._validator.faults(format_, content(version))):
            raise refused("format_violation", version.xid, format=format_, detail=fault)
        self._set_outcome(version, "format", not why, why)

    def _cannot_validate(self, version: Version, format_: str) -> str | None:
        """Return why a document cannot be validated, or None. Raises: format_unknown, format_external"""
        if self._validator.family(format_) is None:
            if self._is_strict:
                raise refused("format_unknown", version.xid, format=format_)
            return UNKNOWN
        if self._resource.type.hasdocument and self._resource.type.document_names[1] in version.members:
            if self._is_strict:
                raise refused("format_external", version.xid)
            return EXTERNAL
        return None

    def _set_outcome(self, version: Version, kind: str, valid: bool | None, why: str | None) -> None:
        """Set or remove ``<kind>validated`` and its reason. The epoch does not change, since the server sets these."""
        name, reason = f"{kind}validated", f"{kind}validatedreason"
        if (version.members.get(name), version.members.get(reason)) == (valid, why):
            return
        version.members.pop(name, None)
        version.members.pop(reason, None)
        if valid is not None:
            version.members[name] = valid
        if why:
            version.members[reason] = why
        version.members = self._change_set.version_attributes(self._resource.type).in_order(version.members)

    # -- compatibility ------------------------------------------------------------------------------------------------

    def compatibility(self, every: bool) -> None:
        meta, versions = self._resource.meta, self._resource.versions.values()
        rule = meta.members.get("compatibility") if self._resource.type.validatecompatibility else None
        if every or rule != (meta.before or {}).get("compatibility"):
            self._changed = {version.id for version in versions}
        else:
            self._changed = {version.id for version in versions if _needs_comparison(version)}
        if self._changed or any(map(_has_moved, versions)):
            for version in versions:
                self._check_version(version, rule)

    def _check_version(self, version: Version, rule: str | None) -> None:
        format_ = version.members.get("format")
        if rule is None or format_ is None:
            self._set_outcome(version, "compatibility", None, None)
            return
        why = self._cannot_compare(version, rule, format_)
        older = [] if why else self._older(version, rule)
        if any("format" in old.members and not old.members.get("formatvalidated") for old in older):
            why = NEIGHBOUR
        for old in self._to_compare(version, older):
            self._compare(old, version, rule)
        self._set_outcome(version, "compatibility", not why, why)

    def _cannot_compare(self, version: Version, rule: str, format_: str) -> str | None:
        """Return why a Version cannot be compared, or None. Raises: compatibility_unknown"""
        if not version.members.get("formatvalidated"):
            return version.members.get("formatvalidatedreason") or INVALID
        if rule.lower() in self._validator.rules(format_):
            return None
        if self._is_strict:
            raise refused("compatibility_unknown", self._resource.xid, compat=rule, format=format_)
        return NO_RULE

    def _older(self, version: Version, rule: str) -> list[Version]:
        """Return the Versions that the rule compares with: the direct ancestor or, if transitive, all ancestors."""
        is_transitive, ancestors = rule.lower().endswith("_transitive"), list[Version]()
        while (parent := self._resource.versions.get(version.members["ancestorid"])) and parent is not version:
            ancestors.append(parent)
            if not is_transitive:
                break
            version = parent
        return ancestors

    def _to_compare(self, version: Version, older: Iterable[Version]) -> Iterator[Version]:
        """Yield the valid Versions of `older` that have not been compared with this Version in their current state."""
        is_new = version.id in self._changed
        child = version
        for old in older:
            is_new = is_new or _has_moved(child)
            if (is_new or old.id in self._changed) and old.members.get("formatvalidated"):
                yield old
            child = old

    def _compare(self, old: Version, new: Version, rule: str) -> None:
        name = rule.lower().partition("_")[0]
        for direction in ("backward", "forward") if name == "full" else (name,):
            if fault := self._fault(old, new, direction):
                detail = f"{old.xid} to {new.xid} is not {direction} compatible: {fault}."
                raise refused("compatibility_violation", self._resource.xid, compat=rule, detail=detail)

    def _fault(self, old: Version, new: Version, direction: str) -> str | None:
        first, second = old.members["format"], new.members["format"]
        if self._validator.family(first) != self._validator.family(second):
            return f"the format '{second}' cannot be compared with '{first}'"
        return self._validator.incompatible(direction, second, content(old), content(new))


def _needs_comparison(version: Version) -> bool:
    """Return whether earlier comparisons of a Version may be out of date."""
    is_same = isinstance(version.document, UnchangedDocument) and version.members.get("format") == (
        version.before or {}
    ).get("format")
    return not is_same or version.members.get("compatibilityvalidated") is not True


def _has_moved(version: Version) -> bool:
    """Return whether a Version has a new ancestor."""
    return bool(version.members["ancestorid"] != (version.before or {}).get("ancestorid"))
