"""What a message definition says in the end: aliases followed, bases merged, selectors of the group taken over.

First `meta.xref` (one step, never further), then `basemessage` (to the end of the chain, then merged back), then the
container's `envelope` and `protocol` where nothing else gives one.

Spec: message/spec.md#basemessage, core/spec.md#cross-referencing-resources; docs/semantics.md R27, R28, D36-D43, D46.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

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
from wirebook.definitions.resolve.merge import OWN_ONLY, Site, merge
from wirebook.problems import Problem, Severity
from wirebook.text.pointers import parse_pointer

ABSOLUTE_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+\Z")


@dataclass(frozen=True)
class ResolvedMessage:
    """One definition as the matcher and the builder see it.

    Shape: `attributes` are effective and canonical; `container` is the XID of its group or endpoint; `incomplete` is
    the reference that leads nowhere, if one does (D40, D41); `problems` are what makes it no candidate; `taken` are
    the selectors it has from its container alone (D42); `source` is the message that an alias shows.
    """

    xid: str
    container: str
    attributes: dict[str, Any]
    incomplete: str | None = None
    problems: tuple[Problem, ...] = ()
    taken: frozenset[str] = frozenset()
    source: str | None = None

    @property
    def identity(self) -> str:
        """The XID of the message itself: an alias is its source."""
        return self.source or self.xid

    @property
    def invalid(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    @property
    def messageid(self) -> str:
        return self.xid.rpartition("/")[2]


@dataclass(slots=True)
class Effective:
    """What a chain of bases comes to: `explicit` are the selectors that some definition in it gives itself."""

    attributes: dict[str, Any]
    explicit: frozenset[str] = frozenset()
    incomplete: str | None = None
    problems: tuple[Problem, ...] = ()


def resolve_messages(document: dict[str, Any], log: Log) -> dict[str, ResolvedMessage]:
    """Every message of a normalised registry document, by XID, in the document's order."""
    resolver = _Resolver(document, log)
    for definition in resolver.definitions.values():
        for code, pointer, message in alias_problems(definition, resolver.definitions):
            log.report(code, pointer, message, definition.xid, actual=definition.xref)
    return {xid: resolver.resolve(xid) for xid in resolver.definitions}


# -- resolving ------------------------------------------------------------------------------------------------------


class _Resolver:
    """One pass over a document; each definition is worked out once, without recursion along the chain."""

    def __init__(self, document: dict[str, Any], log: Log) -> None:
        self.log = log
        self.definitions = {definition.xid: definition for definition in document_messages(document, log)}
        self.done: dict[str, Effective] = {}

    def resolve(self, xid: str) -> ResolvedMessage:
        definition = self.definitions[xid]
        effective = self._effective(xid)
        attributes = _own_bookkeeping(definition) | effective.attributes
        found = tuple(
            replace(problem, pointer=self._place(problem, definition))
            for problem in contradictions(attributes, definition)
        )
        self.log.problems += found
        problems = (*effective.problems, *found)
        taken = frozenset(name for name in SELECTORS if name in attributes) - effective.explicit
        source = None if effective.incomplete else definition.xref
        return ResolvedMessage(xid, definition.container, attributes, effective.incomplete, problems, taken, source)

    def _place(self, problem: Problem, definition: DocumentMessage) -> str:
        """Where a fault of the protocol options is written: in the definition itself, or in one of its bases."""
        pointer = problem.pointer or ""
        tokens = parse_pointer(pointer[len(definition.pointer) :])
        if tokens[0] != "protocoloptions":
            return pointer
        return place_of_attribute(definition, self.definitions, *tokens)

    def _effective(self, xid: str) -> Effective:
        chain: dict[str, DocumentMessage] = {}
        current: str | None = xid
        while current is not None and current not in self.done:
            if current in chain:
                self._refuse_cycle(list(chain.values()), current)
                return self.done[xid]
            definition = self._find(current)
            if definition is None:  # a chain holds references that were found
                break
            chain[current] = definition
            current = self._base_of(definition)
        base = self.done.get(current or "", Effective({}))
        for link, definition in reversed(chain.items()):
            base = self.done[link] = self._join(definition, base)
        return base

    def _find(self, reference: str) -> DocumentMessage | None:
        """The definition an XID names, of a message or of one of its Versions."""
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

    def _shown(self, definition: DocumentMessage) -> dict[str, Any] | str:
        """The attributes a definition has itself, or through its alias; the reference itself when it leads nowhere."""
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
        shown_attributes = self._shown(definition)
        if isinstance(shown_attributes, str):
            return None
        base = shown_attributes.get("basemessage")
        return base if isinstance(base, str) and self._find(base) is not None else None

    def _join(self, definition: DocumentMessage, base: Effective) -> Effective:
        """A definition over its base. `base` is empty when it has none, or when that is not to be found."""
        own = self._shown(definition)
        if isinstance(own, str):
            return Effective({}, incomplete=own)
        missing = self._missing_base(definition, own)
        own, explicit = self._with_selectors(definition, own, base)
        merged = merge(base.attributes, own, Site(definition.xid, definition.pointer, self.log))
        return Effective(_finish(merged, definition), explicit, base.incomplete or missing, base.problems)

    def _missing_base(self, definition: DocumentMessage, own: dict[str, Any]) -> str | None:
        """The reference to a base that is not to be found, with the remark it deserves (D40, D43)."""
        reference = own.get("basemessage")
        if reference is None or self._base_of(definition) is not None:
            return None
        code = base_code(reference)
        message = f"the base '{preview(reference)}' {BASE_MESSAGES[code]}"
        self.log.report(code, f"{definition.pointer}/basemessage", message, definition.xid, actual=reference)
        return preview(reference)

    def _with_selectors(
        self, definition: DocumentMessage, own: dict[str, Any], base: Effective
    ) -> tuple[dict[str, Any], frozenset[str]]:
        """`own` with the container's selectors where neither it nor its base gives one; not for aliases (D42)."""
        # Reading: what a base has from its own group alone gives way to the group of what derives from it.
        explicit = base.explicit | {name for name in SELECTORS if own.get(name) is not None}
        if definition.xref is not None:
            return own, explicit
        taken = {
            name: canonical_envelope(definition.group[name]) if name == "envelope" else definition.group[name]
            for name in SELECTORS
            if name not in explicit and definition.group.get(name) is not None and name not in own
        }
        return own | taken, explicit

    def _refuse_cycle(self, chain: list[DocumentMessage], current: str) -> None:
        """Every member of a cycle is invalid (D40)."""
        # Reading: so is what derives from a member, as its chain has no end either.
        members = [link.xid for link in chain]
        path = " -> ".join([*members[members.index(current) :], current])
        for link in chain:
            problem = Problem(
                code="base-cycle",
                message=f"the chain of bases is circular: {path_preview(path)}",
                pointer=f"{link.pointer}/basemessage",
                xid=link.xid,
                actual=path_preview(path),
            )
            self.log.problems.append(problem)
            attributes = {name: value for name, value in link.attributes.items() if name not in OWN_ONLY}
            self.done[link.xid] = Effective(attributes, problems=(problem,))


BASE_MESSAGES: Final = {
    "bad-base": "is neither the XID of a message nor an absolute URI",
    "external-base": "is in another registry, which is not fetched",
    "dangling-base": "does not exist in the catalogue",
}


def base_code(reference: object) -> str:
    """What is wrong with a base that was not found."""
    if isinstance(reference, str) and is_message(parse_xid(reference)):
        return "dangling-base"
    return "external-base" if isinstance(reference, str) and ABSOLUTE_URI.match(reference) else "bad-base"


def path_preview(path: str) -> str:
    return path if len(path) <= 500 else f"{path[:250]} ... {path[-250:]}"


def _own_bookkeeping(definition: DocumentMessage) -> dict[str, Any]:
    return {
        name: value
        for name, value in definition.attributes.items()
        if name in OWN_ONLY and name not in RESOURCE_ONLY and value is not None
    }


def _finish(attributes: dict[str, Any], definition: DocumentMessage) -> dict[str, Any]:
    """Options in the shape of the protocol that counts in the end; what 3.1.1 cannot carry is left out (D32)."""
    protocol, options = attributes.get("protocol"), attributes.get("protocoloptions")
    if not isinstance(options, dict) or not isinstance(protocol, str):
        return attributes
    if definition.attributes.get("protocol") is None:  # else they are in that shape already
        options = normalise_options(RewrittenEntity(definition.xid, definition.pointer, {}, Log()), protocol, options)
    if protocol == "MQTT/3.1.1":
        options = {name: value for name, value in options.items() if name not in MQTT_5_ONLY}
    if isinstance(header := options.get("header"), dict) and protocol == "AMQP/1.0":
        options["header"] = {
            name: value if isinstance(value, dict) else {"value": value} for name, value in header.items()
        }
    return attributes | {"protocoloptions": options}
