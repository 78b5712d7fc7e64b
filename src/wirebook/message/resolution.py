"""What a message definition says in the end: aliases followed, bases merged, selectors of the group taken over.

First `meta.xref` (one step, never further), then `basemessage` (to the end of the chain, then merged back), then the
container's `envelope` and `protocol` where nothing else gives one.

Spec: message/spec.md#basemessage, core/spec.md#cross-referencing-resources; message-semantics R27, R28, D36-D43, D46.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from wirebook.core.pointers import child
from wirebook.core.xid import is_message, parse_xid
from wirebook.message.dialects_log import Entity, Log
from wirebook.message.dialects_names import canonical_envelope, protocol_family, shown
from wirebook.message.dialects_options import MQTT_5_ONLY, normalise_options
from wirebook.problems import Problem, Severity

SELECTORS: Final = ("envelope", "protocol")
# Identity and bookkeeping: never inherited from a base, never shown through an alias (D36).
OWN_ONLY: Final = frozenset({
    "messageid", "versionid", "self", "shortself", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestor",
    "ancestorid", "meta", "metaurl", "versions", "versionsurl", "versionscount", "deprecated", "basemessage",
})  # fmt: skip
# What a resource itself has, whichever Version is its default.
RESOURCE_ONLY: Final = ("meta", "metaurl", "versions", "versionsurl", "versionscount")
MERGED: Final = ("envelopemetadata", "envelopeoptions", "protocoloptions", "labels")
SCHEMA_TRIO: Final = ("dataschema", "dataschemauri", "dataschemaxid")
ABSOLUTE_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]+\Z")
MERGED_BY_SELECTOR: Final = {"envelope": ("envelopemetadata", "envelopeoptions"), "protocol": ("protocoloptions",)}


@dataclass(frozen=True)
class ResolvedMessage:
    """One definition as the matcher and the builder see it.

    Shape: `attributes` are effective and canonical; `container` is the XID of its group or endpoint; `incomplete` is
    the reference that leads nowhere, if one does (D40, D41); `problems` are what makes it no candidate; `taken` are
    the selectors it has from its container alone (D42).
    """

    xid: str
    container: str
    attributes: dict[str, Any]
    incomplete: str | None = None
    problems: tuple[Problem, ...] = ()
    taken: frozenset[str] = frozenset()

    @property
    def invalid(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    @property
    def messageid(self) -> str:
        return self.xid.rpartition("/")[2]


@dataclass(slots=True)
class Definition:
    """A message as its document has it: the attributes of its default Version.

    Shape: `pointer` is where those attributes stand, `resource` the message with its `meta` and Versions.
    """

    xid: str
    pointer: str
    container: str
    group: dict[str, Any]
    attributes: dict[str, Any]
    xref: str | None = None
    resource: dict[str, Any] = field(default_factory=dict)


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


# -- definitions ----------------------------------------------------------------------------------------------------


def definitions_in(document: dict[str, Any], log: Log) -> Iterator[Definition]:
    """The messages of all groups and endpoints."""
    for collection in ("messagegroups", "endpoints"):
        for group_id, group in document.get(collection, {}).items():
            for message_id, resource in (group.get("messages") or {}).items():
                container = f"/{collection}/{group_id}"
                yield _definition(f"{container}/messages/{message_id}", container, group, resource, log)


def _definition(xid: str, container: str, group: dict[str, Any], resource: dict[str, Any], log: Log) -> Definition:
    """A resource's attributes are its default Version's (D46)."""
    pointer, attributes, versions = xid.replace("~", "~0"), resource, resource.get("versions")
    xref = (resource.get("meta") or {}).get("xref")
    if versions and xref is None:
        default = default_version(resource, versions, pointer, xid, log)
        own = {name: value for name, value in resource.items() if name not in RESOURCE_ONLY}
        pointer, attributes = child(f"{pointer}/versions", default), own | dict(versions[default])
    return Definition(xid, pointer, container, group, attributes, None if xref is None else str(xref), resource)


def default_version(resource: dict[str, Any], versions: dict[str, Any], pointer: str, xid: str, log: Log) -> str:
    """The one `meta` names, the one that says so itself, the only one; else the newest, with a remark."""
    named = (resource.get("meta") or {}).get("defaultversionid")
    if named in versions:
        return str(named)
    if named is not None:
        message = f"'meta.defaultversionid' names '{shown(named)}', which is not there"
        log.report("unknown-default-version", pointer, message, xid, expected=list(versions)[:10], actual=named)
    marked = [key for key, version in versions.items() if version.get("isdefault") is True]
    if len(marked) == 1:
        return marked[0]
    if resource.get("versionid") in versions:
        return str(resource["versionid"])
    newest = max(versions, key=by_age)
    if len(versions) > 1:
        message = f"no Version is named as the default; '{shown(newest)}', the newest by its id, is used"
        log.report("guessed-default-version", pointer, message, xid, actual=list(versions)[:10])
    return newest


def by_age(version_id: str) -> tuple[tuple[int, str], ...]:
    """Version ids in the order of their numbers: ``v9`` before ``v10``."""
    return tuple((len(part), part) if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", version_id))


# -- resolving ------------------------------------------------------------------------------------------------------


class _Resolver:
    """One pass over a document; each definition is worked out once, without recursion along the chain."""

    def __init__(self, document: dict[str, Any], log: Log) -> None:
        self.log = log
        self.definitions = {definition.xid: definition for definition in definitions_in(document, log)}
        self.done: dict[str, Effective] = {}

    def resolve(self, xid: str) -> ResolvedMessage:
        definition = self.definitions[xid]
        effective = self._effective(xid)
        attributes = _own_bookkeeping(definition) | effective.attributes
        found = tuple(contradictions(attributes, definition))
        self.log.problems += found
        problems = (*effective.problems, *found)
        taken = frozenset(name for name in SELECTORS if name in attributes) - effective.explicit
        return ResolvedMessage(xid, definition.container, attributes, effective.incomplete, problems, taken)

    def _effective(self, xid: str) -> Effective:
        chain: dict[str, Definition] = {}
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

    def _find(self, reference: str) -> Definition | None:
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
        return Definition(reference, resource.pointer, resource.container, resource.group, version)

    # -- aliases ------------------------------------------------------------------------------------------------

    def _shown(self, definition: Definition) -> dict[str, Any] | str:
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

    def _base_of(self, definition: Definition) -> str | None:
        shown_attributes = self._shown(definition)
        if isinstance(shown_attributes, str):
            return None
        base = shown_attributes.get("basemessage")
        return base if isinstance(base, str) and self._find(base) is not None else None

    def _join(self, definition: Definition, base: Effective) -> Effective:
        """A definition over its base. `base` is empty when it has none, or when that is not to be found."""
        own = self._shown(definition)
        if isinstance(own, str):
            return Effective({}, incomplete=own)
        missing = self._missing_base(definition, own)
        own, explicit = self._with_selectors(definition, own, base)
        merged = merge(base.attributes, own, definition, self.log)
        return Effective(_finish(merged, definition), explicit, base.incomplete or missing, base.problems)

    def _missing_base(self, definition: Definition, own: dict[str, Any]) -> str | None:
        """The reference to a base that is not to be found, with the remark it deserves (D40, D43)."""
        reference = own.get("basemessage")
        if reference is None or self._base_of(definition) is not None:
            return None
        code = base_code(reference)
        message = f"the base '{shown(reference)}' {BASE_MESSAGES[code]}"
        self.log.report(code, f"{definition.pointer}/basemessage", message, definition.xid, actual=reference)
        return shown(reference)

    def _with_selectors(
        self, definition: Definition, own: dict[str, Any], base: Effective
    ) -> tuple[dict[str, Any], frozenset[str]]:
        """`own` with the container's selectors where neither it nor its base gives one; not for aliases (D42)."""
        explicit = base.explicit | {name for name in SELECTORS if own.get(name) is not None}
        if definition.xref is not None:
            return own, explicit
        taken = {
            name: canonical_envelope(definition.group[name]) if name == "envelope" else definition.group[name]
            for name in SELECTORS
            if name not in explicit and definition.group.get(name) is not None and name not in own
        }
        return own | taken, explicit

    def _refuse_cycle(self, chain: list[Definition], current: str) -> None:
        """Every member of a cycle, and what leads into it, is invalid (D40)."""
        members = [link.xid for link in chain]
        path = " -> ".join([*members[members.index(current) :], current])
        for link in chain:
            problem = Problem(
                code="base-cycle",
                message=f"the chain of bases is circular: {shown_path(path)}",
                pointer=f"{link.pointer}/basemessage",
                xid=link.xid,
                actual=shown_path(path),
            )
            self.log.problems.append(problem)
            attributes = {name: value for name, value in link.attributes.items() if name not in OWN_ONLY}
            self.done[link.xid] = Effective(attributes, problems=(problem,))


BASE_MESSAGES: Final = {
    "bad-base": "is neither the XID of a message nor an absolute URI",
    "external-base": "is in another registry, which is not fetched",
    "dangling-base": "is not there",
}


def base_code(reference: object) -> str:
    """What is wrong with a base that was not found."""
    if isinstance(reference, str) and is_message(parse_xid(reference)):
        return "dangling-base"
    return "external-base" if isinstance(reference, str) and ABSOLUTE_URI.match(reference) else "bad-base"


def shown_path(path: str) -> str:
    return path if len(path) <= 500 else f"{path[:250]} ... {path[-250:]}"


def _own_bookkeeping(definition: Definition) -> dict[str, Any]:
    return {
        name: value
        for name, value in definition.attributes.items()
        if name in OWN_ONLY and name not in RESOURCE_ONLY and value is not None
    }


def _finish(attributes: dict[str, Any], definition: Definition) -> dict[str, Any]:
    """Options in the shape of the protocol that counts in the end; what 3.1.1 cannot carry is left out (D32)."""
    protocol, options = attributes.get("protocol"), attributes.get("protocoloptions")
    if not isinstance(options, dict) or not isinstance(protocol, str):
        return attributes
    if definition.attributes.get("protocol") is None:  # else they are in that shape already
        options = normalise_options(Entity(definition.xid, definition.pointer, {}, Log()), protocol, options)
    if protocol == "MQTT/3.1.1":
        options = {name: value for name, value in options.items() if name not in MQTT_5_ONLY}
    if isinstance(header := options.get("header"), dict) and protocol == "AMQP/1.0":
        options["header"] = {
            name: value if isinstance(value, dict) else {"value": value} for name, value in header.items()
        }
    return attributes | {"protocoloptions": options}


# -- merging --------------------------------------------------------------------------------------------------------


def merge(base: dict[str, Any], own: dict[str, Any], definition: Definition, log: Log) -> dict[str, Any]:
    """`own` over `base`: objects member by member, everything else whole; null takes the inherited away (R27, D37)."""
    merged = {name: value for name, value in _inherited(base, own).items() if name not in OWN_ONLY}
    for name, value in own.items():
        if name in OWN_ONLY:
            continue
        _overlay(merged, name, value, Site(definition, log, f"{definition.pointer}/{name}"), deep=name in MERGED)
    return merged


@dataclass(frozen=True, slots=True)
class Site:
    """Where a merge is: the definition that overlays, and the canonical pointer of the attribute in hand."""

    definition: Definition
    log: Log
    pointer: str

    def inside(self, name: str) -> Site:
        return Site(self.definition, self.log, child(self.pointer, name))


def _overlay(merged: dict[str, Any], name: str, value: Any, site: Site, *, deep: bool) -> None:
    inherited = merged.get(name)
    if value is None:
        merged.pop(name, None)
    elif deep and isinstance(value, dict):
        inner = dict(inherited) if isinstance(inherited, dict) else {}
        for key, item in value.items():
            _overlay(inner, key, item, site.inside(key), deep=True)
        merged[name] = inner
    else:
        if isinstance(inherited, list) and inherited and deep and inherited != value:
            message = f"'{name}' replaces the {len(inherited)} entries of the base; arrays are not merged"
            site.log.report("replaced-array", site.pointer, message, site.definition.xid, actual=len(inherited))
        merged[name] = value


def _inherited(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """What of the base can be inherited beside `own`: selectors carry what hangs on them (D38, D39)."""
    kept = dict(base)
    for selector, dependants in MERGED_BY_SELECTOR.items():
        if selector in own and protocol_family(own[selector]) != protocol_family(base.get(selector)):
            for name in dependants:
                kept.pop(name, None)
    if any(own.get(name) is not None for name in SCHEMA_TRIO):
        for name in SCHEMA_TRIO:
            kept.pop(name, None)
    return kept


# -- contradictions -------------------------------------------------------------------------------------------------

# Two options of which a definition has at most one: protocol, option, option, code.
EXCLUSIVE: Final = (
    ("HTTP", "method", "status", "method-and-status"),
    ("KAFKA", "key", "key_base64", "key-and-key-base64"),
)


def contradictions(attributes: dict[str, Any], definition: Definition) -> Iterator[Problem]:
    """What makes a definition no candidate: options that exclude each other (D30, D33), another group's selectors."""
    options = attributes.get("protocoloptions")
    for protocol, first, second, code in EXCLUSIVE:
        if attributes.get("protocol") == protocol and isinstance(options, dict) and {first, second} <= options.keys():
            message = f"'{first}' and '{second}' exclude each other"
            yield Problem(
                code=code, message=message, pointer=f"{definition.pointer}/protocoloptions/{second}", xid=definition.xid
            )
    for name in SELECTORS:
        group, own = definition.group.get(name), attributes.get(name)
        if isinstance(group, str) and isinstance(own, str) and not fits_selector(group, own):
            yield _foreign_selector(definition, name, group, own)


def _foreign_selector(definition: Definition, name: str, group: str, own: str) -> Problem:
    """A group's messages all have its envelope and its protocol, those it borrows too (R4, D27, D41)."""
    code, at = (f"{name}-mismatch", name) if definition.xref is None else ("xref-selector", "meta/xref")
    holder = "endpoint" if definition.container.startswith("/endpoints/") else "group"
    return Problem(
        code=code,
        message=f"the message has the {name} '{shown(own)}' and its {holder} '{shown(group)}'",
        pointer=f"{definition.pointer}/{at}",
        xid=definition.xid,
        expected=group,
        actual=own,
    )


def alias_problems(definition: Definition, definitions: dict[str, Definition]) -> Iterator[tuple[str, str, str]]:
    """(code, pointer, message) of everything wrong with an alias (D41)."""
    if definition.xref is None:
        return
    pointer = f"{definition.pointer}/meta/xref"
    target = definitions.get(definition.xref)
    if target is None:
        reference = parse_xid(definition.xref)
        if not is_message(reference) or (reference and reference.version):
            yield "bad-xref", pointer, f"'{shown(definition.xref)}' is not the XID of a message"
        else:
            yield "dangling-xref", pointer, f"'{shown(definition.xref)}' is not there"
        return
    if target.xref is not None:
        yield "xref-to-alias", pointer, f"'{shown(definition.xref)}' is an alias itself; aliases are not followed twice"
    yield from _alias_siblings(definition, target)


def _alias_siblings(definition: Definition, target: Definition) -> Iterator[tuple[str, str, str]]:
    for name, value in definition.resource.items():
        if name not in OWN_ONLY and target.attributes.get(name) != value:
            message = f"'{name}' stands beside 'xref' and does not count"
            yield "xref-sibling", f"{definition.pointer}/{name}", message


def fits_selector(group: str, message: str) -> bool:
    """Is the message's selector the group's, or more precise (R4)?"""
    here, there = group.casefold(), message.casefold()
    return here == there or there.startswith(f"{here}/")
