"""Lint: what loading found, and every rule of the message and endpoint texts, for a whole registry.

    for problem in lint(load_registry("catalogue.json")): ...

Spec: message/spec.md, endpoint/spec.md; docs/catalogues.md#lint.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from wirebook.catalog.registry import Registry
from wirebook.core.names import is_identifier
from wirebook.endpoint.lint import check_endpoint
from wirebook.message.dialects_log import Log
from wirebook.message.dialects_names import brief, shown
from wirebook.message.lint import NAME, NAME_AND_VERSION, SCHEMA_NAMES, check_message
from wirebook.message.lint_properties import Finding
from wirebook.message.resolution import ResolvedMessage
from wirebook.message.resolution_definitions import Definition, definitions_in
from wirebook.message.uritemplate import PLACEHOLDER
from wirebook.problems import Problem, Severity
from wirebook.schema import SchemaIndex, Unsupported

RANK: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def lint(registry: Registry) -> tuple[Problem, ...]:
    """Every finding once, in the order of files, lines and columns, the grave ones first."""
    found = [_problem(finding, xid) for xid, findings in _findings(registry) for finding in findings]
    late = (registry.place(registry.trace(problem)) for problem in found)
    each = {(p.code, p.file, p.pointer, p.message): p for p in (*registry.diagnostics, *late)}
    return tuple(sorted(each.values(), key=_order))


def _problem(finding: Finding, xid: str) -> Problem:
    return Problem(
        code=finding.code,
        message=finding.message,
        pointer=finding.pointer,
        xid=xid,
        expected=finding.expected,
        actual=brief(finding.actual),
    )


def _order(problem: Problem) -> tuple[str, int, int, int, str]:
    return problem.file or "", problem.line or 0, problem.column or 0, RANK[problem.severity], problem.code


def _findings(registry: Registry) -> Iterator[tuple[str, Iterable[Finding]]]:
    """(XID, what is wrong there) of every group, message and endpoint."""
    definitions = {definition.xid: definition for definition in definitions_in(registry.document, Log())}
    index = SchemaIndex(registry.document)
    for key, group in registry.document.get("messagegroups", {}).items():
        yield f"/messagegroups/{key}", check_group(key, group)
    for xid, resolved in registry.messages.items():
        yield xid, check_message(definitions[xid], resolved)
        dangling = list(check_schema_references(definitions[xid], registry.document))
        yield xid, dangling or check_schema(definitions[xid], resolved, index)
    for xid, endpoint in registry.endpoints.items():
        yield xid, check_endpoint(endpoint, registry.messages)
    for candidates in _candidate_sets(registry):
        yield from _check_alike([registry.messages[xid] for xid in candidates])


# -- groups ---------------------------------------------------------------------------------------------------------


def check_group(key: str, group: dict[str, Any]) -> Iterator[Finding]:
    """The identifier of a message group, and the form of its selectors."""
    pointer = f"/messagegroups/{key.replace('~', '~0').replace('/', '~1')}"
    if not is_identifier(key):
        message = f"'{shown(key)}' is no identifier"
        yield Finding("bad-identifier", pointer, message, "1 to 128 of A-Z a-z 0-9 . _ ~ : @ -")
    for name, form, allowed in (
        ("envelope", NAME_AND_VERSION, "<NAME>/<VERSION>"),
        ("protocol", NAME, "<NAME> or <NAME>/<VERSION>"),
    ):
        value = group.get(name)
        if isinstance(value, str) and not form.match(value):
            message = f"'{shown(value)}' is no name of a{'n' if name == 'envelope' else ''} {name}"
            yield Finding(f"bad-{name}", f"{pointer}/{name}", message, allowed, value)


# -- schemas --------------------------------------------------------------------------------------------------------


def check_schema_references(definition: Definition, document: dict[str, Any]) -> Iterator[Finding]:
    """A reference to a schema of this registry leads to one, and the two ways to refer agree."""
    if definition.xref is not None:
        return
    for name in ("dataschemauri", "dataschemaxid"):
        reference = definition.attributes.get(name)
        if isinstance(reference, str) and reference.startswith("/") and not _is_schema(reference, document):
            message = f"'{shown(reference)}' is not there"
            yield Finding("dangling-schema", f"{definition.pointer}/{name}", message, "a schema", reference)


def _is_schema(reference: str, document: dict[str, Any]) -> bool:
    """Is there a schema, or a Version of one, at this path? A suffix may follow the id after a colon (D45)."""
    parts = reference.split("#", 1)[0].split("/")
    if len(parts) < 5 or parts[1] != "schemagroups" or parts[3] != "schemas":
        return False
    schemas = ((document.get("schemagroups") or {}).get(parts[2]) or {}).get("schemas") or {}
    schema = schemas.get(_known(parts[4], schemas))
    if not isinstance(schema, dict):
        return False
    if len(parts) < 7 or parts[5] != "versions":
        return True
    versions = schema.get("versions") or {}
    return _known(parts[6], versions) is not None or parts[6].startswith(str(schema.get("versionid", "/")))


def _known(name: str, members: dict[str, Any]) -> str | None:
    """`name`, or what is left of it without what follows a colon, as it is among `members`."""
    while name not in members:
        name, colon, _ = name.rpartition(":")
        if not colon:
            return None
    return name


def check_schema(definition: Definition, resolved: ResolvedMessage, index: SchemaIndex) -> Iterator[Finding]:
    """A schema that the message gives or names, and that does not compile or is of a format nothing here reads."""
    given = next((name for name in SCHEMA_NAMES if definition.attributes.get(name) is not None), None)
    format_ = resolved.attributes.get("dataschemaformat")
    if given is None or definition.xref is not None or not isinstance(format_, str):
        return
    references = {name: resolved.attributes[name] for name in SCHEMA_NAMES if resolved.attributes.get(name) is not None}
    compiled = index.find(format_, **references)
    if isinstance(compiled, Unsupported):
        for problem in compiled.problems:
            if problem.code != "schema-not-found":
                yield _unusable(problem, f"{definition.pointer}/{given}")


def _unusable(problem: Problem, pointer: str) -> Finding:
    message = f"no payload can be read with this schema: {problem.message or problem.code}"
    return Finding("unusable-schema", pointer, message, problem.expected, problem.actual)


# -- candidates -----------------------------------------------------------------------------------------------------


def _candidate_sets(registry: Registry) -> Iterator[tuple[str, ...]]:
    """The messages that are told apart: of each endpoint, and of each group that no endpoint names."""
    for endpoint in registry.endpoints.values():
        yield endpoint.messages
    named = {group for endpoint in registry.endpoints.values() for group in endpoint.groups}
    for key, group in registry.document.get("messagegroups", {}).items():
        if f"/messagegroups/{key}" not in named:
            yield tuple(f"/messagegroups/{key}/messages/{name}" for name in group.get("messages") or ())


def _check_alike(messages: list[ResolvedMessage]) -> Iterator[tuple[str, list[Finding]]]:
    """Definitions of one set whose metadata say the same; only the payload can tell them apart."""
    first: dict[str, ResolvedMessage] = {}
    for message in messages:
        if message.incomplete is not None or message.invalid:
            continue
        other = first.setdefault(constraints_text(message.attributes), message)
        if other.xid != message.xid:
            text = f"'{other.xid}' and '{message.xid}' have the same metadata; only their payloads tell them apart"
            yield message.xid, [Finding("alike", message.xid.replace("~", "~0"), text, other.xid, message.xid)]


CONSTRAINING: Final = (
    "envelope",
    "protocol",
    "datacontenttype",
    "envelopemetadata",
    "envelopeoptions",
    "protocoloptions",
)


def constraints_text(attributes: dict[str, Any]) -> str:
    """What a definition asks of a message's metadata, as one text: no descriptions, no names of placeholders."""
    asked = {name: _constraints(attributes[name]) for name in CONSTRAINING if name in attributes}
    return PLACEHOLDER.sub("{}", json.dumps(asked, sort_keys=True, ensure_ascii=False))


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
