"""Lint: what loading found, and every rule of the message, endpoint and schema texts, for a whole registry.

    for problem in lint(load_registry("catalogue.json")): ...

Spec: message/spec.md, endpoint/spec.md, schema/spec.md; docs/catalogues.md#lint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from wirebook.core.names import GROUP_TYPES
from wirebook.definitions.compile.definition import Definition as Compiled
from wirebook.definitions.compile.definition import compile_definition
from wirebook.definitions.compile.uritemplate import PLACEHOLDER
from wirebook.definitions.lint.endpoints import check_endpoint, foreign_selector
from wirebook.definitions.lint.entities import check_entities, check_letter_case
from wirebook.definitions.lint.examples import check_examples
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.lint.messages import NAME, NAME_AND_VERSION, check_message
from wirebook.definitions.lint.properties import check_identifier
from wirebook.definitions.lint.reachability import check_pairs, check_reach, telling_apart
from wirebook.definitions.lint.schemas import (
    WatchedIndex,
    check_aliases,
    check_compiling,
    check_references,
    check_schema_group,
    check_use,
    unused_schemas,
)
from wirebook.definitions.match.selection import messages_once
from wirebook.definitions.normalize.document_messages import document_messages
from wirebook.definitions.normalize.documents import OLD_SPECVERSION
from wirebook.definitions.normalize.log import Log
from wirebook.definitions.normalize.preview import preview, short_value
from wirebook.definitions.resolve.registry import LoadedRegistry
from wirebook.problems import Problem, Severity
from wirebook.schema import CompiledSchema, SchemaIndex, Unsupported
from wirebook.text.pointers import parent, resolve

RANK: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def lint(registry: LoadedRegistry) -> tuple[Problem, ...]:
    """Every finding once, in the order of files, lines and columns, the grave ones first."""
    found = [
        _problem(finding._replace(pointer=_place(finding.pointer, registry.document)), xid)
        for xid, findings in _findings(registry)
        for finding in findings
    ]
    traced = (registry.trace(problem) for problem in found)
    late = map(registry.place, (*traced, *_of_documents(registry)))
    each = {(p.code, p.file, p.pointer, p.message, p.xid): p for p in (*registry.diagnostics, *late)}
    return tuple(sorted(_merged(_without_consequences(each.values())), key=_order))


def _place(pointer: str, document: dict[str, Any]) -> str:
    """An attribute of the default Version may be written beside the Versions, at the Resource (D46)."""
    found = VERSION.match(pointer)
    missing = object()
    if found is None or resolve(document, pointer, missing) is not missing:
        return pointer
    beside = f"{found[1]}{found[2]}"
    return pointer if resolve(document, beside, missing) is missing else beside


VERSION: Final = re.compile(r"((?:/[^/]+){4})/versions/[^/]+(/.+)\Z")


def _merged(problems: Iterable[Problem]) -> Iterator[Problem]:
    """One problem for each code and place; it counts the others, such as those of messages that inherit the fault."""
    places: dict[tuple[str, str | None, str | None, int | None], list[Problem]] = {}
    for problem in problems:  # a member that occurs more than twice has one pointer and several lines
        places.setdefault((problem.code, problem.file, problem.pointer, problem.line), []).append(problem)
    for first, *others in places.values():
        yield first.at(message=f"{first.message}{_others(first, others)}") if others else first


def _others(first: Problem, others: Sequence[Problem]) -> str:
    """`` (also: 'X', 'Y' and 3 more)``: other definitions with the fault, or other things that are wrong here."""
    names = [other.actual if other.code in PAIRS else other.xid for other in others]
    distinct = list(dict.fromkeys(str(name) for name in names if name not in (None, first.xid)))
    if not distinct:
        return "".join(f"; {other.message}" for other in others)
    listed = ", ".join(f"'{preview(name)}'" for name in distinct[:MAX_NAMED])
    rest = f" and {len(distinct) - MAX_NAMED} more" if len(distinct) > MAX_NAMED else ""
    return f" (also: {listed}{rest})"


MAX_NAMED: Final = 3
PAIRS: Final = ("alike", "shadowed", "always-ambiguous", "overlapping-templates")


# What is not there because it could not be read: code -> the attribute, beside (or in) which it is reported.
CONSEQUENCES: Final = {
    "missing-envelope": "envelope",
    "missing-protocol": "protocol",
    "missing-envelopemetadata": "envelopemetadata",
    "missing-protocoloptions": "protocoloptions",
    "schema-without-format": "dataschemaformat",
    "matches-everything": "protocoloptions",
}


def _without_consequences(problems: Collection[Problem]) -> Iterator[Problem]:
    """Without what says again that an attribute of another shape was not read."""
    unread = {(p.file, p.pointer) for p in problems if p.code in ("wrong-shape", "bad-attribute")}
    for problem in problems:
        name, pointer = CONSEQUENCES.get(problem.code), problem.pointer or ""
        if name is None or unread.isdisjoint({(problem.file, f"{each}/{name}") for each in (pointer, parent(pointer))}):
            yield problem


def _problem(finding: Finding, xid: str) -> Problem:
    return Problem(
        code=finding.code,
        message=_with_allowed(finding),
        pointer=finding.pointer,
        xid=xid,
        expected=finding.expected,
        actual=short_value(finding.actual),
    )


# The rules whose message says what is wrong and not yet what is allowed.
TOLD_ALLOWED: Final = frozenset({
    "bad-address", "bad-envelope", "bad-event-format", "bad-header-name", "bad-identifier", "bad-label",
    "bad-media-type", "bad-member-name", "bad-mode", "bad-option", "bad-protocol", "bad-schema-format",
    "bad-schema-reference", "bad-willmessage", "bad-xref", "contenttype-without-type", "dangling-ancestor",
    "format-without-version", "type-not-of-property", "unknown-authorization", "unknown-compatibility",
    "unknown-default-version", "unknown-option", "unknown-type",
})  # fmt: skip


def _with_allowed(finding: Finding) -> str:
    expected = finding.expected
    allowed = ", ".join(map(str, expected)) if isinstance(expected, list | tuple) else str(expected or "")
    if finding.code not in TOLD_ALLOWED or not allowed or allowed in finding.message:
        return finding.message
    return f"{finding.message}; allowed: {allowed}"


def _of_documents(registry: LoadedRegistry) -> Iterator[Problem]:
    """What is wrong with the entities of each document, whatever stands in the others."""
    for origin, document in zip(registry.origins, registry.documents, strict=True):
        for xid, finding in check_entities(document):
            yield origin.trace(_problem(finding, xid))


def _order(problem: Problem) -> tuple[str, int, int, int, str]:
    return problem.file or "", problem.line or 0, problem.column or 0, RANK[problem.severity], problem.code


def _findings(registry: LoadedRegistry) -> Iterator[tuple[str, Iterable[Finding]]]:
    """(XID, what is wrong there) of every group, schema, message and endpoint."""
    document = registry.document
    definitions = {definition.xid: definition for definition in document_messages(document, Log())}
    index = WatchedIndex(document)
    yield from _each((*check_letter_case(document), *_check_emptiness(registry)))
    for key, group in document.get("messagegroups", {}).items():
        yield f"/messagegroups/{key}", check_group(key, group)
    schemas = [
        found for key, group in document.get("schemagroups", {}).items() for found in check_schema_group(key, group)
    ]
    yield from _each((*schemas, *check_aliases(document)))
    for xid, resolved in registry.messages.items():
        yield xid, check_message(definitions[xid], resolved)
        dangling = list(check_references(definitions[xid], document))
        yield xid, dangling or check_use(definitions[xid], resolved, index)
    for xid, endpoint in registry.endpoints.items():
        yield xid, check_endpoint(endpoint, registry.messages, is_older=_is_older(registry, xid))
    compiled = _compiled(registry)
    reachable = dict(compiled)
    for xid, definition in compiled.items():
        if unreached := list(check_reach(definition, definitions[xid], definitions)):
            del reachable[xid]
            yield xid, unreached
        yield xid, check_examples(definitions[xid], definition, _schema_of(definition, index))
    for place, candidates in _candidate_sets(registry):
        members = messages_once(reachable[xid] for xid in candidates if xid in reachable)
        yield from _check_alike(members)
        yield from _each(check_pairs(_distinct(members), place))
    unused = list(unused_schemas(index.documents)) if registry.messages else []
    told = {finding.pointer for _, finding in schemas if finding.code == "bad-schema"}
    yield from _each((*unused, *check_compiling(index, document, told)))


def _check_emptiness(registry: LoadedRegistry) -> Iterator[tuple[str, Finding]]:
    """Is there anything to check or to match with? What is only linked or misspelt is reported where it stands."""
    groups = registry.document.get("schemagroups", {}).values()
    reported = {"collection-elsewhere", "wrong-shape"} & {problem.code for problem in registry.problems}
    if not (registry.messages or registry.endpoints or reported or any(group.get("schemas") for group in groups)):
        message = "the catalogue defines no message, endpoint or schema, so nothing is checked and nothing matches"
        yield "/", Finding("no-definitions", "", message, list(GROUP_TYPES))


def _is_older(registry: LoadedRegistry, xid: str) -> bool:
    """Does the document that something is from say that it follows a text before 1.0-rc4?"""
    owner = registry.owner(xid.replace("~", "~0"))
    version = owner.source.value.get("specversion") if owner is not None else None
    return isinstance(version, str) and OLD_SPECVERSION.match(version) is not None


def _each(found: Iterable[tuple[str, Finding]]) -> Iterator[tuple[str, Iterable[Finding]]]:
    return ((xid, (finding,)) for xid, finding in found)


def _compiled(registry: LoadedRegistry) -> dict[str, Compiled]:
    """What can be a candidate at all; an alias is its target, which is looked at where it stands."""
    return {
        xid: compile_definition(xid, message.container, message.attributes, source=message.source)
        for xid, message in registry.messages.items()
        if message.incomplete is None and not message.invalid
    }


def _schema_of(definition: Compiled, index: SchemaIndex) -> CompiledSchema | None:
    names = ("dataschema", "dataschemauri", "dataschemaxid")
    references = {name: definition.attributes[name] for name in names if definition.attributes.get(name) is not None}
    found = index.find(definition.schema_format, **references) if references else None
    return None if isinstance(found, Unsupported) else found


# -- groups ---------------------------------------------------------------------------------------------------------


def check_group(key: str, group: dict[str, Any]) -> Iterator[Finding]:
    """The identifier of a message group, and the form of its selectors."""
    pointer = f"/messagegroups/{key.replace('~', '~0').replace('/', '~1')}"
    yield from check_identifier(key, pointer)
    for name, form, allowed in (
        ("envelope", NAME_AND_VERSION, "<NAME>/<VERSION>"),
        ("protocol", NAME, "<NAME> or <NAME>/<VERSION>"),
    ):
        value = group.get(name)
        if isinstance(value, str) and not form.match(value):
            message = f"'{preview(value)}' is not a valid {name}"
            yield Finding(f"bad-{name}", f"{pointer}/{name}", message, allowed, value)


# -- candidates -----------------------------------------------------------------------------------------------------


def _candidate_sets(registry: LoadedRegistry) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(where, XIDs) of messages that are told apart: of each endpoint, and of each group that no endpoint names."""
    seen: set[tuple[str, ...]] = set()
    for xid, endpoint in registry.endpoints.items():
        members = tuple(m for m in endpoint.messages if not foreign_selector(endpoint, registry.messages[m]))
        if members not in seen:
            seen.add(members)
            yield xid, members
    named = {group for endpoint in registry.endpoints.values() for group in endpoint.groups}
    for key, group in registry.document.get("messagegroups", {}).items():
        if f"/messagegroups/{key}" not in named:
            xid = f"/messagegroups/{key}"
            yield xid, tuple(f"{xid}/messages/{name}" for name in group.get("messages") or ())


def _distinct(members: list[Compiled]) -> list[Compiled]:
    """One of each that ask the same; `alike` is reported for the others."""
    return list({constraints_text(dict(member.attributes)): member for member in reversed(members)}.values())[::-1]


def _check_alike(members: list[Compiled]) -> Iterator[tuple[str, list[Finding]]]:
    """Definitions of one set that ask the same metadata of a message, or of a binary message at least."""
    first: dict[str, Compiled] = {}
    for member in members:
        other = first.setdefault(constraints_text(_without_format(member)), member)
        if other is not member:
            asked, others = (constraints_text(dict(each.attributes)) for each in (member, other))
            what = "the same metadata" if asked == others else "the same metadata of binary messages"
            text = f"'{preview(member.xid)}' and '{preview(other.xid)}' ask for {what}; {telling_apart(other, member)}"
            yield member.xid, [Finding("alike", member.xid.replace("~", "~0"), text, None, other.xid)]


def _without_format(member: Compiled) -> dict[str, Any]:
    """The attributes of a definition; without the event format if it takes binary messages, which have none."""
    attributes = dict(member.attributes)
    options = attributes.get("envelopeoptions")
    if isinstance(options, dict) and member.mode != "structured":
        attributes["envelopeoptions"] = {name: value for name, value in options.items() if name != "format"}
    return attributes


CONSTRAINING: Final = (
    "envelope",
    "protocol",
    "datacontenttype",
    "envelopemetadata",
    "envelopeoptions",
    "protocoloptions",
)


def constraints_text(attributes: dict[str, Any]) -> str:
    """What a definition asks of a message's metadata, as one text: placeholders by number."""
    asked = {name: _constraints(attributes[name]) for name in CONSTRAINING if name in attributes}
    numbers: dict[str, int] = {}
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False)
    return PLACEHOLDER.sub(lambda found: f"{{{numbers.setdefault(found[1], len(numbers))}}}", text)


def _constraints(value: Any) -> Any:
    if isinstance(value, list):
        return [_constraints(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _constraints(item)
        for name, item in value.items()
        if not (name in ("description", "specurl") and isinstance(item, str))
    }
