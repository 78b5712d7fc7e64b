"""Rules for schemas: their documents, and the references of messages to them.

Spec: schema/spec.md, message/spec.md#dataschemauri, #dataschemaxid; docs/semantics.md D43, D45, D46.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from wirebook.definitions.lint.finding import Finding
from wirebook.definitions.lint.messages import NAME_AND_VERSION, SCHEMA_NAMES, is_schema_xid
from wirebook.definitions.lint.properties import check_identifier
from wirebook.definitions.normalize.document_messages import DocumentMessage
from wirebook.definitions.normalize.preview import preview
from wirebook.definitions.resolve.checks import alias_siblings, sibling_message
from wirebook.definitions.resolve.messages import ResolvedMessage
from wirebook.problems import Problem
from wirebook.schema import CompiledSchema, SchemaIndex, Unsupported
from wirebook.schema.documents import Documents, SchemaDocument
from wirebook.schema.formats import AVRO, FAMILIES, JSON_SCHEMA, PROTOBUF, TEXTS, parse_format
from wirebook.text.pointers import child, resolve

CONTENTS: Final = ("schema", "schemabase64", "schemaurl")
DRAFT: Final = re.compile(r"https?://json-schema\.org/(draft[-/][0-9-]+)/")
SYNTAX: Final = re.compile(r"^\s*syntax\s*=\s*[\"']proto([23])[\"']", re.MULTILINE)


# -- schema documents -------------------------------------------------------------------------------------------------


def check_schema_group(key: str, group: dict[str, Any]) -> Iterator[tuple[str, Finding]]:
    """Check a schema group, its schemas and their Versions; yield (XID, finding)."""
    xid, pointer = f"/schemagroups/{key}", child("/schemagroups", key)
    yield from ((xid, finding) for finding in check_identifier(key, pointer))
    yield from ((xid, finding) for finding in _check_format(group, pointer))
    for name, schema in (group.get("schemas") or {}).items():
        at = child(f"{pointer}/schemas", name)
        yield from ((f"{xid}/schemas/{name}", finding) for finding in _check_schema(name, schema, group, at))


def _check_schema(name: str, schema: dict[str, Any], group: dict[str, Any], pointer: str) -> Iterator[Finding]:
    yield from check_identifier(name, pointer)
    versions, meta = schema.get("versions") or {}, schema.get("meta") or {}
    default = meta.get("defaultversionid")
    if versions and isinstance(default, str) and default not in versions:
        message, place = f"'{preview(default)}' is not a Version of the schema", f"{pointer}/meta/defaultversionid"
        yield Finding("unknown-default-version", place, message, list(versions)[:10], default)
    if meta.get("xref") is not None:
        return
    if not versions and all(schema.get(content) is None for content in CONTENTS):
        yield Finding("empty-schema", pointer, "the schema is empty; add 'schema', 'schemaurl' or a Version")
    yield from _check_document(schema, {}, group, pointer)
    formats = {str(version["format"]).casefold() for version in versions.values() if version.get("format")}
    if len(formats) > 1:
        listed = ", ".join(f"'{preview(format_)}'" for format_ in sorted(formats))
        message = f"the Versions have different formats: {listed}"
        yield Finding("version-formats-differ", f"{pointer}/versions", message)
    for key, version in versions.items():
        at = child(f"{pointer}/versions", key)
        yield from _check_document(version, schema, group, at)


def _check_document(
    version: dict[str, Any], schema: dict[str, Any], group: dict[str, Any], pointer: str
) -> Iterator[Finding]:
    """Check the format and content of a Version, which may inherit the format of its schema or group."""
    yield from _check_format(version, pointer)
    own, group_format = version.get("format"), group.get("format")
    if isinstance(own, str) and isinstance(group_format, str) and own.casefold() != group_format.casefold():
        message = f"the format is '{preview(own)}', but that of the group is '{preview(group_format)}'"
        yield Finding("group-format-differs", f"{pointer}/format", message, group_format, own)
    contents = [name for name in CONTENTS if version.get(name) is not None]
    if len(contents) > 1:
        message = f"'{contents[0]}' and '{contents[1]}' are mutually exclusive; remove one"
        yield Finding("two-documents", f"{pointer}/{contents[1]}", message)
    format_ = own or schema.get("format") or group_format
    content = version.get("schema")
    if isinstance(format_, str) and content is not None:
        yield from _check_content(format_, content, f"{pointer}/schema")


def _check_format(entity: dict[str, Any], pointer: str) -> Iterator[Finding]:
    format_ = entity.get("format")
    if isinstance(format_, str) and not NAME_AND_VERSION.match(format_):
        message = f"'{preview(format_)}' is not a valid schema format, such as 'JsonSchema/draft-07'"
        yield Finding("format-without-version", f"{pointer}/format", message, "<NAME>/<VERSION>", format_)


def _check_content(format_: str, content: Any, pointer: str) -> Iterator[Finding]:
    """Check the JSON type of a schema, and that the version stated in it agrees with its format."""
    format_parts = parse_format(format_)
    if format_parts.family not in FAMILIES.values():
        return
    if (expected := _expected_type(format_parts.family, content)) is not None:
        message = f"a schema of the format {format_parts.family} must be {expected}; found {preview(content)}"
        yield Finding("bad-schema", pointer, message, expected, content)
        return
    stated, version = _stated_version(format_parts.family, content), format_parts.version
    if stated is None or version is None:
        return
    if stated != version.replace("/", "-") and not version.startswith(f"{stated}."):
        message = f"the format is '{preview(format_)}', but the schema states '{stated}'; make them agree"
        yield Finding("schema-version-differs", pointer, message, format_, stated)


def _expected_type(family: str, content: Any) -> str | None:
    """Describe the JSON type that a schema must have; None if `content` has it. Any schema may be a string."""
    if family in TEXTS:
        return None if isinstance(content, str) else "a string"
    if family == AVRO:
        return None if isinstance(content, (dict, list, str)) else "an object, an array or a string"
    return None if isinstance(content, (dict, bool, str)) else "an object"


def _stated_version(family: str, content: Any) -> str | None:
    """Return the version that a schema states: ``draft-2020-12`` in `$schema`, or ``3`` in `syntax`."""
    if family == JSON_SCHEMA and isinstance(content, dict):
        draft = DRAFT.match(str(content.get("$schema")))
        return draft[1].replace("/", "-") if draft else None
    if family == PROTOBUF and isinstance(content, str):
        syntax = SYNTAX.search(content)
        return syntax[1] if syntax else None
    return None


def check_aliases(document: dict[str, Any]) -> Iterator[tuple[str, Finding]]:
    """Check that an alias refers to a schema of this registry that is not an alias; yield (XID, finding).

    Members that an alias must not have are reported, too.
    """
    for group, members in (document.get("schemagroups") or {}).items():
        for name, schema in (members.get("schemas") or {}).items():
            reference = (schema.get("meta") or {}).get("xref")
            if reference is None:
                continue
            pointer = child(f"{child('/schemagroups', group)}/schemas", name)
            xid = f"/schemagroups/{group}/schemas/{name}"
            if (finding := _alias_finding(reference, f"{pointer}/meta/xref", document)) is not None:
                yield xid, finding
            target = resolve(document, str(reference).replace("~", "~0"))
            for tokens in alias_siblings(schema, target if isinstance(target, dict) else None, "schemaid"):
                yield xid, Finding("xref-sibling", f"{pointer}/{'/'.join(tokens)}", sibling_message(tokens))


def _alias_finding(reference: Any, pointer: str, document: dict[str, Any]) -> Finding | None:
    if not is_schema_xid(reference) or "/versions/" in reference:
        allowed = "/schemagroups/<ID>/schemas/<ID>"
        message = f"'{preview(reference)}' is not the XID of a schema"
        return Finding("bad-xref", pointer, message, allowed, reference)
    target = resolve(document, reference.replace("~", "~0"))
    if not isinstance(target, dict):
        message = f"the schema '{preview(reference)}' does not exist in the catalogue"
        return Finding("dangling-xref", pointer, message, None, reference)
    if (target.get("meta") or {}).get("xref") is not None:
        message = f"'{preview(reference)}' is itself an alias; refer to its target"
        return Finding("xref-to-alias", pointer, message, None, reference)
    return None


# -- references of messages -------------------------------------------------------------------------------------------


def check_references(definition: DocumentMessage, document: dict[str, Any]) -> Iterator[Finding]:
    """Check that references to schemas of this registry exist."""
    if definition.xref is not None:
        return
    for name in ("dataschemauri", "dataschemaxid"):
        reference = definition.attributes.get(name)
        if name == "dataschemaxid" and not is_schema_xid(reference):
            continue  # reported as bad-schema-reference
        if isinstance(reference, str) and reference.startswith("/") and not _is_schema(reference, document):
            message = f"the schema '{preview(reference)}' does not exist in the catalogue"
            yield Finding("dangling-schema", f"{definition.pointer}/{name}", message, "a schema", reference)


def _is_schema(reference: str, document: dict[str, Any]) -> bool:
    """Return whether a schema or Version with this path exists; ``:Name`` may follow the id (D45)."""
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
    """Return `name`, or its longest prefix before a colon, that is a member; else None."""
    while name not in members:
        name, colon, _ = name.rpartition(":")
        if not colon:
            return None
    return name


def check_use(definition: DocumentMessage, resolved: ResolvedMessage, index: WatchedIndex) -> Iterator[Finding]:
    """Check the format and schema of a message, and that its payloads can be decoded."""
    for name in SCHEMA_NAMES[1:]:  # record the use, even if the message has other problems
        if isinstance(reference := definition.attributes.get(name), str):
            index.documents.follow(reference)
    source = next((name for name in SCHEMA_NAMES if definition.attributes.get(name) is not None), None)
    format_ = resolved.attributes.get("dataschemaformat")
    if source is None or definition.xref is not None or not isinstance(format_, str):
        return
    references = {name: resolved.attributes[name] for name in SCHEMA_NAMES if resolved.attributes.get(name) is not None}
    broken: list[Finding] = []
    if "dataschema" in references:
        broken += _check_content(format_, references["dataschema"], f"{definition.pointer}/dataschema")
    broken += _check_targets(definition, format_, references, index.documents)
    compiled = index.find(format_, **references)
    if not broken and (unnamed := _unnamed_message(definition, format_, references, compiled, index.documents)):
        broken.append(unnamed)
    yield from broken
    if isinstance(compiled, Unsupported) and not broken and not _is_reported_elsewhere(references, index):
        for problem in compiled.problems:
            if problem.code != "schema-not-found":
                yield _use_finding(problem, source, definition, wrong=index.is_wrong(compiled))


def _use_finding(problem: Problem, source: str, definition: DocumentMessage, *, wrong: bool) -> Finding:
    """Return the finding for an invalid inline schema, or for a reference to a part that does not exist."""
    pointer = f"{definition.pointer}/{source}"
    if source == "dataschema" or not wrong:
        return _unusable(problem, pointer, wrong=wrong)
    reference = definition.attributes[source]
    message = f"'{preview(reference)}' does not refer to a schema: {problem.message}"
    return Finding("dangling-schema", pointer, message, "a schema", reference)


def _is_reported_elsewhere(references: dict[str, Any], index: WatchedIndex) -> bool:
    """Return whether a referenced document does not compile, which is reported at the schema."""
    if "dataschema" in references:
        return False
    targets = (index.documents.follow(reference) for reference in references.values() if isinstance(reference, str))
    return any(index.compile_error(target[0]) is not None for target in targets if target is not None)


def _unusable(problem: Problem, pointer: str, *, wrong: bool) -> Finding:
    message = f"no payload can be decoded with this schema: {problem.message}"
    return Finding("bad-schema" if wrong else "unusable-schema", pointer, message, problem.expected, problem.actual)


# -- schemas that do not compile --------------------------------------------------------------------------------------


class WatchedIndex(SchemaIndex):
    """A schema index that distinguishes schemas that are wrong from those that refer to missing documents."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document)
        self.documents: UsedDocuments = UsedDocuments(document)
        self._with_missing: set[int] = set()  # ids of compiled schemas that refer to missing documents

    def _compile(self, *schema: Any) -> Any:
        before = self.documents.missed
        compiled = super()._compile(*schema)
        if self.documents.missed > before:
            self._with_missing.add(id(compiled))
        return compiled

    def compile_error(self, document: SchemaDocument) -> Unsupported | None:
        """Return the error if a document does not compile as a whole, or None."""
        if document.content is None:
            return None
        compiled = self._compile_document(None, document, None)
        if not isinstance(compiled, Unsupported):
            return None
        return None if all(_is_of_a_part(problem) for problem in compiled.problems) else compiled

    def is_wrong(self, compiled: Unsupported) -> bool:
        """Return whether a schema is itself wrong, rather than unsupported or dependent on missing documents."""
        # Reading: the name of an Avro type is not a URL, so a type that is not in the catalogue is an error.
        refers_to_missing = id(compiled) in self._with_missing and parse_format(compiled.format).family != AVRO
        codes = {problem.code for problem in compiled.problems}
        engine = any(NOT_COMPILED_HERE in problem.message for problem in compiled.problems)
        return codes == {"schema-not-compilable"} and not refers_to_missing and not engine


NOT_COMPILED_HERE: Final = 'is not a "regex"'  # ECMA-262 may allow the expression


def _is_of_a_part(problem: Problem) -> bool:
    """Return whether a document only lacks the name of a part or format, or is meant to be imported by others."""
    return problem.code in ("unnamed-type", "unsupported-format") or "defines no " in problem.message


def check_compiling(index: WatchedIndex, document: dict[str, Any], reported: set[str]) -> Iterator[tuple[str, Finding]]:
    """Report schema Versions that do not compile, except at the pointers in `reported`; yield (XID, finding)."""
    documents = index.documents.by_xid
    # A Resource has the document of its default Version; messages compile it with the XID of the Resource.
    names = {id(documents[xid].content): xid for xid in sorted(documents, key=lambda xid: -xid.count("/"))}
    for xid, schema_document in documents.items():
        name = names.pop(id(schema_document.content), None)
        if name is None or (error := index.compile_error(documents[name])) is None:
            continue
        entity = resolve(document, xid.replace("~", "~0"), {})
        pointer = child(xid.replace("~", "~0"), next((name for name in CONTENTS if name in entity), "schema"))
        if pointer not in reported:
            yield xid, _unusable(error.problems[0], pointer, wrong=index.is_wrong(error))


def _check_targets(
    definition: DocumentMessage, format_: str, references: dict[str, Any], documents: Documents
) -> Iterator[Finding]:
    """Check that both references of a message refer to the same schema, and that the formats agree."""
    targets: dict[str, SchemaDocument] = {}
    for name in ("dataschemauri", "dataschemaxid"):
        reference = references.get(name)
        target = documents.follow(reference) if isinstance(reference, str) else None
        if target is None:
            continue
        targets[name] = target[0]
        pointer = f"{definition.pointer}/{name}"
        schema_format = parse_format(targets[name].format or "")
        if targets[name].format and schema_format.family != parse_format(format_).family:
            message = f"'dataschemaformat' is '{preview(format_)}', but the format of the schema is '{schema_format}'"
            yield Finding("schema-format-differs", pointer, message, targets[name].format, format_)
    yield from _check_agreement(definition, references, targets)


def _unnamed_message(
    definition: DocumentMessage,
    format_: str,
    references: dict[str, Any],
    compiled: CompiledSchema | Unsupported,
    documents: Documents,
) -> Finding | None:
    """Check that a reference to a Protobuf schema names one of its messages (schema/spec.md#434-protobuf-schema).

    A `dataschemaxid` cannot name a message, so it is sufficient only if the schema has exactly one.
    """
    if parse_format(format_).family != PROTOBUF or "dataschema" in references:
        return None
    several = isinstance(compiled, Unsupported) and any(problem.code == "unnamed-type" for problem in compiled.problems)
    if not isinstance(reference := references.get("dataschemauri"), str):
        if not several:
            return None
        name, reference, allowed = "dataschemaxid", references["dataschemaxid"], "dataschemauri"
        message = f"'{preview(reference)}' cannot name a message of the Protobuf schema; use 'dataschemauri'"
    else:
        target = documents.follow(reference)
        if target[1] if target is not None else ":" in reference.rpartition("/")[2] or "#" in reference:
            return None
        name, separator = "dataschemauri", ":" if reference.startswith("/") or "#" in reference else "#"
        allowed = f"{reference}{separator}<MESSAGE>"
        message = f"'{preview(reference)}' names no message of the Protobuf schema; write '{preview(allowed)}'"
    if several and isinstance(compiled, Unsupported):
        message += f"; it defines {compiled.problems[0].message.rpartition(': ')[2]}"
    return Finding("unnamed-message", f"{definition.pointer}/{name}", message, allowed, reference)


def _check_agreement(
    definition: DocumentMessage, references: dict[str, Any], targets: dict[str, SchemaDocument]
) -> Iterator[Finding]:
    xid, uri = targets.get("dataschemaxid"), targets.get("dataschemauri")
    if xid is None or "dataschemauri" not in references:
        return
    elsewhere = uri is None and bool(xid.addresses)  # without URLs, a document cannot be compared
    if elsewhere or (uri is not None and uri.content is not xid.content and uri.content != xid.content):
        message = f"'dataschemaxid' is '{xid.xid}', but 'dataschemauri' refers to another schema; remove one"
        pointer = f"{definition.pointer}/dataschemauri"
        yield Finding("schema-references-differ", pointer, message, xid.xid, references["dataschemauri"])


# -- unused schemas ---------------------------------------------------------------------------------------------------


class UsedDocuments(Documents):
    """Documents that record which schemas messages and other schemas use."""

    def __init__(self, registry: dict[str, Any]) -> None:
        super().__init__(registry)
        self.used: set[str] = set()
        self.missed = 0  # number of references without a target

    def follow(self, reference: str) -> tuple[SchemaDocument, str | None] | None:
        """Resolve a reference and record its use."""
        target = super().follow(reference)
        if target is None:
            self.missed += 1
        else:
            self._use(target[0])
        return target

    def imported(self, name: str, base_uri: str) -> SchemaDocument | None:
        """Resolve an import and record its use."""
        document = super().imported(name, base_uri)
        if document is None:
            self.missed += 1
        else:
            self._use(document)
        return document

    def _use(self, document: SchemaDocument) -> None:
        self.used.add("/".join(document.xid.split("/")[:5]))


def unused_schemas(documents: UsedDocuments) -> Iterator[tuple[str, Finding]]:
    """Report schemas that no message refers to, directly or through another schema; yield (XID, finding)."""
    names = _avro_names(documents)
    for xid in documents.by_xid:
        if len(xid.split("/")) == 5 and xid not in documents.used and xid not in names:
            message = "no message uses the schema, directly or through another schema; refer to it or remove it"
            yield xid, Finding("unused-schema", xid.replace("~", "~0"), message)


def _avro_names(documents: UsedDocuments) -> set[str]:
    """Return the Avro schemas whose type another schema uses by name, which is no reference to a document."""
    texts: dict[str, set[str]] = {}
    own: dict[str, str] = {}
    for xid, document in documents.by_xid.items():
        content = document.content
        is_avro = parse_format(document.format or "").family == AVRO
        if not is_avro or not isinstance(content, dict) or len(xid.split("/")) != 5:
            continue
        name, space = str(content.get("name", "")), content.get("namespace")
        own[xid] = f"{space}.{name}" if space and "." not in name else name
        for text in set(_strings(content)):
            texts.setdefault(text, set()).add(xid)
    users = {xid: texts.get(name, set()) | texts.get(name.rpartition(".")[2], set()) for xid, name in own.items()}
    return {xid for xid, others in users.items() if others - {xid}}


def _strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, except the names of members."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, str):
            yield current
        elif isinstance(current, dict | list):
            pending += current.values() if isinstance(current, dict) else current
