"""Lint a registry: report the problems found while loading it, and check every rule of the specifications.

    for problem in lint(load_registry("catalogue.json")): ...

Spec: message/spec.md, endpoint/spec.md, schema/spec.md; docs/catalogues.md#lint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from wirebook.core.names import GROUP_TYPES
from wirebook.definitions.compile.definition import Definition, compile_definition
from wirebook.definitions.compile.uritemplate import PLACEHOLDER
from wirebook.definitions.lint.endpoints import check_endpoint, foreign_selector
from wirebook.definitions.lint.entities import check_entities, check_letter_case
from wirebook.definitions.lint.examples import check_examples
from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.lint.messages import NAME, NAME_AND_VERSION, check_message
from wirebook.definitions.lint.properties import check_identifier
from wirebook.definitions.lint.reachability import check_matchable, check_pairs, distinction
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
    """Return every problem of a registry, sorted by file, line, column and severity."""
    problems = [
        registry.trace(_problem(finding._replace(pointer=_place(finding.pointer, registry.document)), xid))
        for xid, findings in _findings(registry)
        for finding in findings
    ]
    problems += _entity_problems(registry)
    unique = {
        (problem.code, problem.file, problem.pointer, problem.message, problem.xid): problem
        for problem in (*registry.diagnostics, *map(registry.place, problems))
    }
    return tuple(sorted(_merge_by_place(_without_consequences(unique.values())), key=_sort_key))


def _place(pointer: str, document: dict[str, Any]) -> str:
    """Return the place of an attribute of the default Version, which is in the Version or in the Resource (D46)."""
    version = IN_VERSION.match(pointer)
    missing = object()
    if version is None or resolve(document, pointer, missing) is not missing:
        return pointer
    in_resource = f"{version['resource']}{version['attribute']}"
    return pointer if resolve(document, in_resource, missing) is missing else in_resource


IN_VERSION: Final = re.compile(r"(?P<resource>(?:/[^/]+){4})/versions/[^/]+(?P<attribute>/.+)\Z")


def _merge_by_place(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Merge the problems with the same code and place, which occur by inheritance; name the other definitions."""
    places: dict[tuple[str, str | None, str | None, int | None], list[Problem]] = {}
    for problem in problems:  # a member that occurs several times has one pointer and several lines
        places.setdefault((problem.code, problem.file, problem.pointer, problem.line), []).append(problem)
    for first, *others in places.values():
        yield first.at(message=f"{first.message}{_others(first, others)}") if others else first


def _others(first: Problem, others: Sequence[Problem]) -> str:
    """Return the text to append to a message: `` (also: 'X', 'Y' and 3 more)``, or the other messages for the place."""
    names = [other.actual if other.code in PAIRS else other.xid for other in others]
    distinct = list(dict.fromkeys(str(name) for name in names if name not in (None, first.xid)))
    if not distinct:
        return "".join(f"; {other.message}" for other in others)
    listed = ", ".join(f"'{preview(name)}'" for name in distinct[:MAX_NAMED])
    rest = f" and {len(distinct) - MAX_NAMED} more" if len(distinct) > MAX_NAMED else ""
    return f" (also: {listed}{rest})"


MAX_NAMED: Final = 3
PAIRS: Final = ("alike", "shadowed", "always-ambiguous", "overlapping-templates")


# Maps problems to the attribute of which they are mere consequences if it cannot be read; they are then dropped.
CONSEQUENCES: Final = {
    "missing-envelope": "envelope",
    "missing-protocol": "protocol",
    "missing-envelopemetadata": "envelopemetadata",
    "missing-protocoloptions": "protocoloptions",
    "schema-without-format": "dataschemaformat",
    "matches-everything": "protocoloptions",
}


def _without_consequences(problems: Collection[Problem]) -> Iterator[Problem]:
    """Drop the problems that are consequences of an attribute that cannot be read."""
    unread = {
        (problem.file, problem.pointer) for problem in problems if problem.code in ("wrong-shape", "bad-attribute")
    }
    for problem in problems:
        name, pointer = CONSEQUENCES.get(problem.code), problem.pointer or ""
        places = {(problem.file, f"{holder}/{name}") for holder in (pointer, parent(pointer))}
        if name is None or unread.isdisjoint(places):
            yield problem


def _problem(finding: Finding, xid: str) -> Problem:
    return Problem(
        code=finding.code,
        message=_message_of(finding),
        pointer=finding.pointer,
        xid=xid,
        expected=finding.expected,
        actual=short_value(finding.actual),
    )


# Codes of findings whose messages end with the allowed values.
WITH_ALLOWED_VALUES: Final = frozenset({
    "bad-address", "bad-envelope", "bad-event-format", "bad-header-name", "bad-identifier", "bad-label",
    "bad-media-type", "bad-member-name", "bad-mode", "bad-option", "bad-protocol", "bad-schema-format",
    "bad-schema-reference", "bad-willmessage", "bad-xref", "contenttype-without-type", "dangling-ancestor",
    "format-without-version", "type-not-of-property", "unknown-authorization", "unknown-compatibility",
    "unknown-default-version", "unknown-option", "unknown-type",
})  # fmt: skip


def _message_of(finding: Finding) -> str:
    expected = finding.expected
    allowed = ", ".join(map(str, expected)) if isinstance(expected, list | tuple) else str(expected or "")
    if finding.code not in WITH_ALLOWED_VALUES or not allowed or allowed in finding.message:
        return finding.message
    return f"{finding.message}; allowed: {allowed}"


def _entity_problems(registry: LoadedRegistry) -> Iterator[Problem]:
    """Yield the problems of the entities of each document."""
    for origin, document in zip(registry.origins, registry.documents, strict=True):
        for xid, finding in check_entities(document):
            yield origin.trace(_problem(finding, xid))


def _sort_key(problem: Problem) -> tuple[str, int, int, int, str]:
    return problem.file or "", problem.line or 0, problem.column or 0, RANK[problem.severity], problem.code


def _findings(registry: LoadedRegistry) -> Iterator[tuple[str, Iterable[Finding]]]:
    """Yield (XID, findings) for every group, schema, message and endpoint."""
    document = registry.document
    messages = {message.xid: message for message in document_messages(document, Log())}
    index = WatchedIndex(document)
    yield from _single((*check_letter_case(document), *_check_emptiness(registry)))
    for key, group in document.get("messagegroups", {}).items():
        yield f"/messagegroups/{key}", check_group(key, group)
    schemas = [
        finding for key, group in document.get("schemagroups", {}).items() for finding in check_schema_group(key, group)
    ]
    yield from _single((*schemas, *check_aliases(document)))
    for xid, resolved in registry.messages.items():
        yield xid, check_message(messages[xid], resolved)
        dangling = list(check_references(messages[xid], document))
        yield xid, dangling or check_use(messages[xid], resolved, index)
    for xid, endpoint in registry.endpoints.items():
        yield xid, check_endpoint(endpoint, registry.messages, is_older=_is_older(registry, xid))
    compiled = _compiled(registry)
    reachable = dict(compiled)
    for xid, definition in compiled.items():
        if unmatchable := list(check_matchable(definition, messages[xid], messages)):
            del reachable[xid]
            yield xid, unmatchable
        yield xid, check_examples(messages[xid], definition, _schema_of(definition, index))
    for place, candidates in _candidate_sets(registry):
        members = messages_once(reachable[xid] for xid in candidates if xid in reachable)
        yield from _check_alike(members)
        yield from _single(check_pairs(_distinct(members), place))
    unused = list(unused_schemas(index.documents)) if registry.messages else []
    reported = {finding.pointer for _, finding in schemas if finding.code == "bad-schema"}
    yield from _single((*unused, *check_compiling(index, document, reported)))


def _check_emptiness(registry: LoadedRegistry) -> Iterator[tuple[str, Finding]]:
    """Report a catalogue without definitions, unless a linked collection or a wrong type is already reported."""
    groups = registry.document.get("schemagroups", {}).values()
    reported = {"collection-elsewhere", "wrong-shape"} & {problem.code for problem in registry.problems}
    if not (registry.messages or registry.endpoints or reported or any(group.get("schemas") for group in groups)):
        message = "the catalogue defines no message, endpoint or schema, so nothing can match; add 'messagegroups'"
        yield "/", Finding("no-definitions", "", message, list(GROUP_TYPES))


def _is_older(registry: LoadedRegistry, xid: str) -> bool:
    """Return whether the document of an entity states a version of the specification before 1.0-rc4."""
    owner = registry.owner(xid.replace("~", "~0"))
    version = owner.source.value.get("specversion") if owner is not None else None
    return isinstance(version, str) and OLD_SPECVERSION.match(version) is not None


def _single(findings: Iterable[tuple[str, Finding]]) -> Iterator[tuple[str, Iterable[Finding]]]:
    return ((xid, (finding,)) for xid, finding in findings)


def _compiled(registry: LoadedRegistry) -> dict[str, Definition]:
    """Compile the definitions that can be candidates."""
    return {
        xid: compile_definition(xid, message.container, message.attributes, source=message.source)
        for xid, message in registry.messages.items()
        if message.incomplete is None and not message.invalid
    }


def _schema_of(definition: Definition, index: SchemaIndex) -> CompiledSchema | None:
    names = ("dataschema", "dataschemauri", "dataschemaxid")
    references = {name: definition.attributes[name] for name in names if definition.attributes.get(name) is not None}
    schema = index.find(definition.schema_format, **references) if references else None
    return None if isinstance(schema, Unsupported) else schema


# -- groups ---------------------------------------------------------------------------------------------------------


def check_group(key: str, group: dict[str, Any]) -> Iterator[Finding]:
    """Check the identifier of a message group, and the syntax of its envelope and protocol."""
    pointer = f"/messagegroups/{key.replace('~', '~0').replace('/', '~1')}"
    yield from check_identifier(key, pointer)
    for name, pattern, allowed in (
        ("envelope", NAME_AND_VERSION, "<NAME>/<VERSION>"),
        ("protocol", NAME, "<NAME> or <NAME>/<VERSION>"),
    ):
        value = group.get(name)
        if isinstance(value, str) and not pattern.match(value):
            message = f"'{preview(value)}' is not a valid {name}"
            yield Finding(f"bad-{name}", f"{pointer}/{name}", message, allowed, value)


# -- candidates -----------------------------------------------------------------------------------------------------


def _candidate_sets(registry: LoadedRegistry) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (XID, definitions) of each endpoint, and of each group without one; a message should match only one."""
    seen: set[tuple[str, ...]] = set()
    for xid, endpoint in registry.endpoints.items():
        members = tuple(
            message for message in endpoint.messages if not foreign_selector(endpoint, registry.messages[message])
        )
        if members not in seen:
            seen.add(members)
            yield xid, members
    named = {group for endpoint in registry.endpoints.values() for group in endpoint.groups}
    for key, group in registry.document.get("messagegroups", {}).items():
        if f"/messagegroups/{key}" not in named:
            xid = f"/messagegroups/{key}"
            yield xid, tuple(f"{xid}/messages/{name}" for name in group.get("messages") or ())


def _distinct(members: list[Definition]) -> list[Definition]:
    """Return one definition of each set with equal constraints. The others are reported as `alike`."""
    return list({constraints_text(dict(member.attributes)): member for member in reversed(members)}.values())[::-1]


def _check_alike(members: list[Definition]) -> Iterator[tuple[str, list[Finding]]]:
    """Report definitions with equal constraints on the metadata of all messages, or of binary messages."""
    first: dict[str, Definition] = {}
    for member in members:
        other = first.setdefault(constraints_text(_without_format(member)), member)
        if other is not member:
            own, others = (constraints_text(dict(definition.attributes)) for definition in (member, other))
            subject = "the same metadata" if own == others else "the same metadata of binary messages"
            message = f"'{preview(member.xid)}' and '{preview(other.xid)}' require {subject}; "
            message += distinction(other, member)
            yield member.xid, [Finding("alike", member.xid.replace("~", "~0"), message, None, other.xid)]


def _without_format(member: Definition) -> dict[str, Any]:
    """Return the attributes of a definition; omit the event format if it may match binary messages, which have none."""
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
    """Serialise the metadata constraints of a definition for comparison. Placeholders are replaced by numbers."""
    constraints = {name: _constraints(attributes[name]) for name in CONSTRAINING if name in attributes}
    numbers: dict[str, int] = {}
    text = json.dumps(constraints, sort_keys=True, ensure_ascii=False)
    return PLACEHOLDER.sub(lambda placeholder: f"{{{numbers.setdefault(placeholder[1], len(numbers))}}}", text)


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
