"""Rules for schemas: the documents themselves, and how messages refer to them.

Spec: schema/spec.md, message/spec.md#dataschemauri, #dataschemaxid; docs/semantics.md D43, D45, D46.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
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


# -- the documents ----------------------------------------------------------------------------------------------------


def check_schema_group(key: str, group: dict[str, Any]) -> Iterator[tuple[str, Finding]]:
    """(XID, finding) of a schema group, its schemas and their Versions."""
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
        message = f"'meta.defaultversionid' names '{preview(default)}', which is not there"
        yield Finding(
            "unknown-default-version", f"{pointer}/meta/defaultversionid", message, list(versions)[:10], default
        )
    if meta.get("xref") is not None:
        return
    if not versions and all(schema.get(content) is None for content in CONTENTS):
        yield Finding("empty-schema", pointer, "the schema has neither a document nor a Version")
    yield from _check_document(schema, {}, group, pointer)
    formats = {str(version["format"]).casefold() for version in versions.values() if version.get("format")}
    if len(formats) > 1:
        message = f"the Versions have the formats {', '.join(repr(preview(format_)) for format_ in sorted(formats))}"
        yield Finding("version-formats-differ", f"{pointer}/versions", message)
    for key, version in versions.items():
        at = child(f"{pointer}/versions", key)
        yield from _check_document(version, schema, group, at)


def _check_document(
    version: dict[str, Any], schema: dict[str, Any], group: dict[str, Any], pointer: str
) -> Iterator[Finding]:
    """One Version's format and content, with what it has from its schema and its group."""
    yield from _check_format(version, pointer)
    own, wanted = version.get("format"), group.get("format")
    if isinstance(own, str) and isinstance(wanted, str) and own.casefold() != wanted.casefold():
        message = f"the format is '{preview(own)}' and the group's '{preview(wanted)}'"
        yield Finding("group-format-differs", f"{pointer}/format", message, wanted, own)
    given = [name for name in CONTENTS if version.get(name) is not None]
    if len(given) > 1:
        message = f"'{given[0]}' and '{given[1]}' exclude each other"
        yield Finding("two-documents", f"{pointer}/{given[1]}", message)
    format_ = own or schema.get("format") or wanted
    content = version.get("schema")
    if isinstance(format_, str) and content is not None:
        yield from _check_content(format_, content, f"{pointer}/schema")


def _check_format(entity: dict[str, Any], pointer: str) -> Iterator[Finding]:
    format_ = entity.get("format")
    if isinstance(format_, str) and not NAME_AND_VERSION.match(format_):
        message = f"'{preview(format_)}' is not the name of a schema format"
        yield Finding("format-without-version", f"{pointer}/format", message, "<NAME>/<VERSION>", format_)


def _check_content(format_: str, content: Any, pointer: str) -> Iterator[Finding]:
    """The kind of value that a schema of a format is, and the version that it says itself."""
    found = parse_format(format_)
    if found.family not in FAMILIES.values():
        return
    if (wanted := _unmet(found.family, content)) is not None:
        yield Finding("bad-schema", pointer, f"a schema of the format {found.family} is {wanted}", wanted, content)
        return
    said, version = _stated_version(found.family, content), found.version
    if said is None or version is None:
        return
    if said != version.replace("/", "-") and not version.startswith(f"{said}."):
        message = f"the format is '{preview(format_)}', and the schema itself says '{said}'"
        yield Finding("schema-version-differs", pointer, message, format_, said)


def _unmet(family: str, content: Any) -> str | None:
    """What a schema of the format has to be and `content` is not; a JSON schema may stand there as its text."""
    if family in TEXTS:
        return None if isinstance(content, str) else "a string"
    if family == AVRO:
        return None if isinstance(content, (dict, list, str)) else "an object, an array or a text"
    return None if isinstance(content, (dict, bool, str)) else "an object"


def _stated_version(family: str, content: Any) -> str | None:
    """``draft-2020-12`` by `$schema`, ``3`` by `syntax`."""
    if family == JSON_SCHEMA and isinstance(content, dict):
        found = DRAFT.match(str(content.get("$schema")))
        return found[1].replace("/", "-") if found else None
    if family == PROTOBUF and isinstance(content, str):
        syntax = SYNTAX.search(content)
        return syntax[1] if syntax else None
    return None


def check_aliases(document: dict[str, Any]) -> Iterator[tuple[str, Finding]]:
    """(XID, finding) of schemas that stand for others: the target is a schema of this registry, and no alias."""
    for group, members in (document.get("schemagroups") or {}).items():
        for name, schema in (members.get("schemas") or {}).items():
            reference = (schema.get("meta") or {}).get("xref")
            if reference is None:
                continue
            pointer = child(f"{child('/schemagroups', group)}/schemas", name)
            xid = f"/schemagroups/{group}/schemas/{name}"
            if (finding := _alias_fault(reference, f"{pointer}/meta/xref", document)) is not None:
                yield xid, finding
            target = resolve(document, str(reference).replace("~", "~0"))
            for tokens in alias_siblings(schema, target if isinstance(target, dict) else None, "schemaid"):
                yield xid, Finding("xref-sibling", f"{pointer}/{'/'.join(tokens)}", sibling_message(tokens))


def _alias_fault(reference: Any, pointer: str, document: dict[str, Any]) -> Finding | None:
    if not is_schema_xid(reference) or "/versions/" in reference:
        allowed = "/schemagroups/<ID>/schemas/<ID>"
        return Finding("bad-xref", pointer, f"'{preview(reference)}' is not the XID of a schema", allowed, reference)
    target = resolve(document, reference.replace("~", "~0"))
    if not isinstance(target, dict):
        return Finding(
            "dangling-xref", pointer, f"'{preview(reference)}' does not exist in the catalogue", None, reference
        )
    if (target.get("meta") or {}).get("xref") is not None:
        message = f"'{preview(reference)}' is an alias itself; aliases are not followed twice"
        return Finding("xref-to-alias", pointer, message, None, reference)
    return None


# -- references of messages -------------------------------------------------------------------------------------------


def check_references(definition: DocumentMessage, document: dict[str, Any]) -> Iterator[Finding]:
    """A reference to a schema of this registry leads to one."""
    if definition.xref is not None:
        return
    for name in ("dataschemauri", "dataschemaxid"):
        reference = definition.attributes.get(name)
        if name == "dataschemaxid" and not is_schema_xid(reference):
            continue  # said elsewhere
        if isinstance(reference, str) and reference.startswith("/") and not _is_schema(reference, document):
            message = f"'{preview(reference)}' does not exist in the catalogue"
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


def check_use(definition: DocumentMessage, resolved: ResolvedMessage, index: WatchedIndex) -> Iterator[Finding]:
    """What a message says of its schema, and whether payloads can be read with it."""
    for name in SCHEMA_NAMES[1:]:  # a reference makes a schema used, whatever else is wrong with the message
        if isinstance(reference := definition.attributes.get(name), str):
            index.documents.follow(reference)
    given = next((name for name in SCHEMA_NAMES if definition.attributes.get(name) is not None), None)
    format_ = resolved.attributes.get("dataschemaformat")
    if given is None or definition.xref is not None or not isinstance(format_, str):
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
    if isinstance(compiled, Unsupported) and not broken and not _is_told_elsewhere(references, index):
        for problem in compiled.problems:
            if problem.code != "schema-not-found":
                yield _of_use(problem, given, definition, wrong=index.is_wrong(compiled))


def _of_use(problem: Problem, given: str, definition: DocumentMessage, *, wrong: bool) -> Finding:
    """The schema that a message holds is at fault, or the part that it names of another one is not there."""
    pointer = f"{definition.pointer}/{given}"
    if given == "dataschema" or not wrong:
        return _unusable(problem, pointer, wrong=wrong)
    reference = definition.attributes[given]
    message = f"'{preview(reference)}' does not lead to a schema: {problem.message}"
    return Finding("dangling-schema", pointer, message, "a schema", reference)


def _is_told_elsewhere(references: dict[str, Any], index: WatchedIndex) -> bool:
    """Is the schema itself at fault, which is said where it stands?"""
    if "dataschema" in references:
        return False
    found = (index.documents.follow(reference) for reference in references.values() if isinstance(reference, str))
    return any(index.fault_of(each[0]) is not None for each in found if each is not None)


def _unusable(problem: Problem, pointer: str, *, wrong: bool) -> Finding:
    message = f"no payload can be read with this schema: {problem.message}"
    return Finding("bad-schema" if wrong else "unusable-schema", pointer, message, problem.expected, problem.actual)


# -- schemas that do not compile --------------------------------------------------------------------------------------


class WatchedIndex(SchemaIndex):
    """An index that knows of each schema that does not compile whether the schema is wrong, or leads elsewhere."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document)
        self.documents: UsedDocuments = UsedDocuments(document)
        self._elsewhere: set[int] = set()  # of what was compiled

    def _compile(self, format: str | None, document: SchemaDocument, part: str | None) -> Any:
        return self._watch(lambda: super(WatchedIndex, self)._compile(format, document, part))

    def _compile_inline(self, format: str | None, schema: Any) -> Any:
        return self._watch(lambda: super(WatchedIndex, self)._compile_inline(format, schema))

    def _watch(self, compile_: Callable[[], Any]) -> Any:
        before = self.documents.missed
        compiled = compile_()
        if self.documents.missed > before:
            self._elsewhere.add(id(compiled))
        return compiled

    def fault_of(self, document: SchemaDocument) -> Unsupported | None:
        """Why the whole document does not compile, if it does not."""
        if document.content is None:
            return None
        compiled = self._compile(None, document, None)
        if not isinstance(compiled, Unsupported):
            return None
        return None if all(_is_of_a_part(problem) for problem in compiled.problems) else compiled

    def is_wrong(self, compiled: Unsupported) -> bool:
        # Reading: a name of an Avro type is no address; a type that the catalogue does not have is nowhere.
        leads_elsewhere = id(compiled) in self._elsewhere and parse_format(compiled.format).family != AVRO
        codes = {problem.code for problem in compiled.problems}
        engine = any(NOT_COMPILED_HERE in problem.message for problem in compiled.problems)
        return codes == {"schema-not-compilable"} and not leads_elsewhere and not engine


NOT_COMPILED_HERE: Final = 'is not a "regex"'  # an expression that ECMA-262 may well have


def _is_of_a_part(problem: Problem) -> bool:
    """Is nothing wrong with the document but that its users name a part, or its format, or that others import it?"""
    return problem.code in ("unnamed-type", "unsupported-format") or "defines no " in problem.message


def check_compiling(index: WatchedIndex, document: dict[str, Any], told: set[str]) -> Iterator[tuple[str, Finding]]:
    """(XID, finding) of each schema Version that no payload can be read with; `told` are pointers of worse faults."""
    found = index.documents.by_xid
    # A Resource shows its default Version's document again, which messages had compiled under the Resource's name.
    names = {id(found[xid].content): xid for xid in sorted(found, key=lambda xid: -xid.count("/"))}
    for xid, each in found.items():
        name = names.pop(id(each.content), None)
        if name is None or (fault := index.fault_of(found[name])) is None:
            continue
        entity = resolve(document, xid.replace("~", "~0"), {})
        pointer = child(xid.replace("~", "~0"), next((name for name in CONTENTS if name in entity), "schema"))
        if pointer not in told:
            yield xid, _unusable(fault.problems[0], pointer, wrong=index.is_wrong(fault))


def _check_targets(
    definition: DocumentMessage, format_: str, references: dict[str, Any], documents: Documents
) -> Iterator[Finding]:
    """The two ways to refer agree, and the formats too."""
    targets: dict[str, SchemaDocument] = {}
    for name in ("dataschemauri", "dataschemaxid"):
        reference = references.get(name)
        found = documents.follow(reference) if isinstance(reference, str) else None
        if found is None:
            continue
        targets[name] = found[0]
        pointer = f"{definition.pointer}/{name}"
        wanted = parse_format(targets[name].format or "")
        if targets[name].format and wanted.family != parse_format(format_).family:
            message = f"'dataschemaformat' is '{preview(format_)}' and the schema's format '{wanted}'"
            yield Finding("schema-format-differs", pointer, message, targets[name].format, format_)
    yield from _check_agreement(definition, references, targets)


def _unnamed_message(
    definition: DocumentMessage,
    format_: str,
    references: dict[str, Any],
    compiled: CompiledSchema | Unsupported,
    documents: Documents,
) -> Finding | None:
    """A reference to a Protobuf schema names one of its messages (schema/spec.md#434-protobuf-schema).

    A `dataschemaxid` cannot; it does where the schema has one message only.
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
        found = documents.follow(reference)
        if found[1] if found is not None else ":" in reference.rpartition("/")[2] or "#" in reference:
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
    elsewhere = uri is None and bool(xid.addresses)  # what has no address may be anywhere
    if elsewhere or (uri is not None and uri.content is not xid.content and uri.content != xid.content):
        message = f"'dataschemaxid' is '{xid.xid}' and 'dataschemauri' leads elsewhere"
        pointer = f"{definition.pointer}/dataschemauri"
        yield Finding("schema-references-differ", pointer, message, xid.xid, references["dataschemauri"])


# -- schemas that nobody uses -----------------------------------------------------------------------------------------


class UsedDocuments(Documents):
    """Documents that remember which of them were asked for, by messages and by other schemas."""

    def __init__(self, registry: dict[str, Any]) -> None:
        super().__init__(registry)
        self.used: set[str] = set()
        self.missed = 0  # how often nothing was found

    def follow(self, reference: str) -> tuple[SchemaDocument, str | None] | None:
        found = super().follow(reference)
        if found is None:
            self.missed += 1
        else:
            self._use(found[0])
        return found

    def imported(self, name: str, base_uri: str) -> SchemaDocument | None:
        found = super().imported(name, base_uri)
        if found is None:
            self.missed += 1
        else:
            self._use(found)
        return found

    def _use(self, document: SchemaDocument) -> None:
        self.used.add("/".join(document.xid.split("/")[:5]))


def unused_schemas(documents: UsedDocuments) -> Iterator[tuple[str, Finding]]:
    """(XID, finding) of each schema that no message and no schema in use refers to."""
    names = _avro_names(documents)
    for xid in documents.by_xid:
        if len(xid.split("/")) == 5 and xid not in documents.used and xid not in names:
            message = "no message uses the schema, directly or through another schema"
            yield xid, Finding("unused-schema", xid.replace("~", "~0"), message)


def _avro_names(documents: UsedDocuments) -> set[str]:
    """Avro schemas whose type another schema names: such names lead to no document, only to the type."""
    texts: dict[str, set[str]] = {}
    own: dict[str, str] = {}
    for xid, document in documents.by_xid.items():
        content = document.content
        is_avro = parse_format(document.format or "").family == AVRO
        if not is_avro or not isinstance(content, dict) or len(xid.split("/")) != 5:
            continue
        name, space = str(content.get("name", "")), content.get("namespace")
        own[xid] = f"{space}.{name}" if space and "." not in name else name
        for text in set(_texts(content)):
            texts.setdefault(text, set()).add(xid)
    users = {xid: texts.get(name, set()) | texts.get(name.rpartition(".")[2], set()) for xid, name in own.items()}
    return {xid for xid, found in users.items() if found - {xid}}


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            yield current
        elif isinstance(current, dict | list):
            waiting += current.values() if isinstance(current, dict) else current
