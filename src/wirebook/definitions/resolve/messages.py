"""Resolve message definitions: follow aliases, merge base messages, add the envelope and protocol of the group.

The order is: `meta.xref` (one step only), `basemessage` (the whole chain), then `envelope` and `protocol` of the group
or endpoint, unless the message or one of its bases has its own.

Spec: message/spec.md#basemessage, core/spec.md#cross-referencing-resources; docs/semantics.md R27, R28, D36-D43, D46.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from wirebook.core.xid import is_message, parse_xid
from wirebook.definitions.normalize.document_messages import (
    RESOURCE_ONLY,
    DocumentMessage,
    document_messages,
    place_of_attribute,
)
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.message_options import MQTT_5_ONLY, normalise_options
from wirebook.definitions.normalize.names import canonical_envelope
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.normalize.rewriting import RewrittenEntity
from wirebook.definitions.resolve.checks import SELECTORS, alias_problems, contradictions
from wirebook.definitions.resolve.merge import OWN_ONLY, MergeCursor, merge
from wirebook.problems import Problem, Severity
from wirebook.text.pointers import parse_pointer

ABSOLUTE_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+\Z")


@dataclass(frozen=True)
class ResolvedMessage:
    """A definition with all references resolved, as matching and building use it.

    Shape: `attributes` are effective (inherited ones included) and canonical; `container` is the XID of its group or
    endpoint; `incomplete` is the reference to a missing base or target (D40, D41); `problems` are the errors that make
    it unusable; `group_selectors` are the selectors that only its group has (D42); `source` is the target of an alias.
    """

    xid: str
    container: str
    attributes: dict[str, Any]
    incomplete: str | None = None
    problems: tuple[Problem, ...] = ()
    group_selectors: frozenset[str] = frozenset()
    source: str | None = None

    @property
    def identity(self) -> str:
        """The XID of the message; for an alias, that of its target."""
        return self.source or self.xid

    @property
    def invalid(self) -> bool:
        """Whether an error makes the definition unusable."""
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    @property
    def messageid(self) -> str:
        """The id of the message."""
        return self.xid.rpartition("/")[2]


@dataclass(slots=True)
class MergedMessage:
    """A definition merged with its bases; `explicit` are the selectors that the definition or a base has itself."""

    attributes: dict[str, Any]
    explicit: frozenset[str] = frozenset()
    incomplete: str | None = None
    problems: tuple[Problem, ...] = ()


def resolve_messages(document: dict[str, Any], log: Log) -> dict[str, ResolvedMessage]:
    """Resolve every message of a normalised registry document; return a map by XID, in the order of the document."""
    resolver = _Resolver(document, log)
    for definition in resolver.definitions.values():
        for code, pointer, message in alias_problems(definition, resolver.definitions):
            log.report(code, pointer, message, definition.xid, actual=definition.xref)
    return {xid: resolver.resolve(xid) for xid in resolver.definitions}


# -- resolving ------------------------------------------------------------------------------------------------------


class _Resolver:
    """Resolves the messages of a document, each once. Chains of bases are followed without recursion."""

    def __init__(self, document: dict[str, Any], log: Log) -> None:
        self.log = log
        self.definitions = {definition.xid: definition for definition in document_messages(document, log)}
        self.merged: dict[str, MergedMessage] = {}

    def resolve(self, xid: str) -> ResolvedMessage:
        """Resolve one message and log its contradictions."""
        definition = self.definitions[xid]
        message = self._merge_chain(xid)
        own_only = {
            name: value
            for name, value in definition.attributes.items()
            if name in OWN_ONLY and name not in RESOURCE_ONLY and value is not None
        }
        attributes = own_only | message.attributes
        problems = tuple(
            msgspec.structs.replace(problem, pointer=self._place(problem, definition))
            for problem in contradictions(attributes, definition)
        )
        self.log.problems += problems
        return ResolvedMessage(
            xid,
            definition.container,
            attributes,
            message.incomplete,
            (*message.problems, *problems),
            group_selectors=frozenset(name for name in SELECTORS if name in attributes) - message.explicit,
            source=None if message.incomplete else definition.xref,
        )

    def _place(self, problem: Problem, definition: DocumentMessage) -> str:
        """Return the place of an error; protocol options may be those of an alias target or of a base message."""
        pointer = problem.pointer or ""
        tokens = parse_pointer(pointer[len(definition.pointer) :])
        if tokens[0] != "protocoloptions":
            return pointer
        return place_of_attribute(definition, self.definitions, *tokens)

    def _merge_chain(self, xid: str) -> MergedMessage:
        """Merge a definition with its chain of bases, starting at the end of the chain."""
        chain: dict[str, DocumentMessage] = {}
        current: str | None = xid
        while current is not None and current not in self.merged:
            if current in chain:
                self._refuse_cycle(list(chain.values()), current)
                return self.merged[xid]
            definition = self._find(current)
            if definition is None:  # impossible: `_base_of` returns only references that `_find` resolves
                break
            chain[current] = definition
            current = self._base_of(definition)
        base = self.merged.get(current or "", MergedMessage({}))
        for link, definition in reversed(chain.items()):
            base = self.merged[link] = self._join(definition, base)
        return base

    def _find(self, reference: str) -> DocumentMessage | None:
        """Return the definition with this XID, which may be that of a message or of one of its Versions."""
        if reference in self.definitions:
            return self.definitions[reference]
        xid = parse_xid(reference)
        resource = self.definitions.get(xid.entity) if xid is not None else None
        if xid is None or resource is None or xid.version is None:
            return None
        version = (resource.resource.get("versions") or {}).get(xid.version)
        if version is None and resource.resource.get("versionid") == xid.version:
            version = resource.attributes
        if version is None:
            return None
        return DocumentMessage(reference, resource.pointer, resource.container, resource.group, version)

    # -- aliases ------------------------------------------------------------------------------------------------

    def _written(self, definition: DocumentMessage) -> dict[str, Any] | str:
        """Return the attributes of a definition, or of its target if it is an alias.

        If the target is missing or is itself an alias, return the reference.
        """
        if definition.xref is None:
            return definition.attributes
        target = self.definitions.get(definition.xref)
        if target is None or target.xref is not None:
            return definition.xref
        return {
            name: value for name, value in target.attributes.items() if name not in OWN_ONLY or name == "basemessage"
        }

    # -- bases --------------------------------------------------------------------------------------------------

    def _base_of(self, definition: DocumentMessage) -> str | None:
        attributes = self._written(definition)
        if isinstance(attributes, str):
            return None
        base = attributes.get("basemessage")
        return base if isinstance(base, str) and self._find(base) is not None else None

    def _join(self, definition: DocumentMessage, base: MergedMessage) -> MergedMessage:
        """Merge a definition with its base. Without a base, or if the base is missing, `base` is empty."""
        own = self._written(definition)
        if isinstance(own, str):
            return MergedMessage({}, incomplete=own)
        missing = self._missing_base(definition, own)
        own, explicit = self._with_selectors(definition, own, base)
        merged = merge(base.attributes, own, MergeCursor(definition.xid, definition.pointer, self.log))
        return MergedMessage(_finish(merged, definition), explicit, base.incomplete or missing, base.problems)

    def _missing_base(self, definition: DocumentMessage, own: dict[str, Any]) -> str | None:
        """Report a missing base and return the reference to it; return None if no base is missing (D40, D43)."""
        reference = own.get("basemessage")
        if reference is None or self._base_of(definition) is not None:
            return None
        code = base_code(reference)
        message = f"the base message '{preview(reference)}' {BASE_MESSAGES[code]}"
        self.log.report(code, f"{definition.pointer}/basemessage", message, definition.xid, actual=reference)
        return preview(reference)

    def _with_selectors(
        self, definition: DocumentMessage, own: dict[str, Any], base: MergedMessage
    ) -> tuple[dict[str, Any], frozenset[str]]:
        """Add the selectors of the group that neither `own` nor a base sets; aliases get none (D42).

        Return the attributes, and the selectors that the definition or a base sets.
        """
        # Reading: a selector that a base takes from its group is replaced by the one of the derived message's group.
        explicit = base.explicit | {name for name in SELECTORS if own.get(name) is not None}
        if definition.xref is not None:
            return own, explicit
        from_group = {
            name: canonical_envelope(definition.group[name]) if name == "envelope" else definition.group[name]
            for name in SELECTORS
            if name not in explicit and definition.group.get(name) is not None and name not in own
        }
        return own | from_group, explicit

    def _refuse_cycle(self, chain: list[DocumentMessage], current: str) -> None:
        """Report a cycle of base messages, and mark the definitions of the chain as invalid (D40)."""
        # Reading: definitions that derive from a member of the cycle are invalid, too, because their chain has no end.
        members = [link.xid for link in chain]
        path = " -> ".join([*members[members.index(current) :], current])
        for link in chain:
            problem = Problem(
                code="base-cycle",
                message=f"the base messages form a cycle: {path_preview(path)}",
                pointer=f"{link.pointer}/basemessage",
                xid=link.xid,
                actual=path_preview(path),
            )
            self.log.problems.append(problem)
            attributes = {name: value for name, value in link.attributes.items() if name not in OWN_ONLY}
            self.merged[link.xid] = MergedMessage(attributes, problems=(problem,))


BASE_MESSAGES: Final = {
    "bad-base": "is neither the XID of a message ('/messagegroups/GROUP/messages/ID') nor an absolute URI",
    "external-base": "is in another registry and is not fetched; load that registry too",
    "dangling-base": "does not exist in the catalogue",
}


def base_code(reference: object) -> str:
    """Return the problem code of a reference to a base that is not in the catalogue."""
    if isinstance(reference, str) and is_message(parse_xid(reference)):
        return "dangling-base"
    return "external-base" if isinstance(reference, str) and ABSOLUTE_URI.match(reference) else "bad-base"


def path_preview(path: str) -> str:
    """Shorten a path for a message."""
    return path if len(path) <= 500 else f"{path[:250]} ... {path[-250:]}"


def _finish(attributes: dict[str, Any], definition: DocumentMessage) -> dict[str, Any]:
    """Normalise the options for the effective protocol, and drop those that MQTT 3.1.1 does not have (D32)."""
    protocol, options = attributes.get("protocol"), attributes.get("protocoloptions")
    if not isinstance(options, dict) or not isinstance(protocol, str):
        return attributes
    if definition.attributes.get("protocol") is None:  # otherwise they are normalised already
        options = normalise_options(RewrittenEntity(definition.xid, definition.pointer, {}, Log()), protocol, options)
    if protocol == "MQTT/3.1.1":
        options = {name: value for name, value in options.items() if name not in MQTT_5_ONLY}
    if isinstance(header := options.get("header"), dict) and protocol == "AMQP/1.0":
        options["header"] = {
            name: value if isinstance(value, dict) else {"value": value} for name, value in header.items()
        }
    return attributes | {"protocoloptions": options}
