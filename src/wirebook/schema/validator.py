"""Schema validation for the registry: is a document a schema of its format, and is it compatible with another one?

Rule: nothing is fetched. References to other documents (JSON Schema `$ref`, imports of Protobuf and XSD) are not
checked: a document is valid if it is well-formed without them. An Avro schema that uses an undefined name is invalid.

Spec: core/spec.md#formatvalidated-attribute, #compatibility-attribute; schema/spec.md#43-schema-formats;
docs/decisions/0090.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import jsonschema_rs as js

from wirebook.core.model.attributes import COMPATIBILITIES
from wirebook.schema.avro.declarations import check_declarations
from wirebook.schema.avro.types import AvroError, parse_types
from wirebook.schema.compatibility import AS_DECLARED, BACKWARD, backward, forward
from wirebook.schema.compile import ANONYMOUS, is_deep
from wirebook.schema.formats import AVRO, JSON_SCHEMA, JSON_STRUCTURE, PROTOBUF, TEXTS, XSD, parse_format
from wirebook.schema.incompatibilities import HINTS
from wirebook.schema.jsonschema.compile import LATEST, META_SCHEMAS, draft_of
from wirebook.schema.jsonstructure.compile import root_pointer
from wirebook.schema.jsonstructure.to_jsonschema import StructureError, Translation
from wirebook.schema.payload_problems import preview
from wirebook.schema.protobuf.compatibility_imports import lenient_files
from wirebook.schema.protobuf.protoc import ProtocError
from wirebook.schema.reader import CompileOptions
from wirebook.schema.source import MissingImportsError, SchemaSource
from wirebook.schema.xsd.compatibility_imports import lenient_model
from wirebook.schema.xsd.source import XsdError
from wirebook.text.json import MAX_DEPTH, JsonError, parse_json

ROOT_KEYWORDS: Final = ("type", "$root", "$ref", "allOf", "anyOf", "oneOf")
"""A JSON Structure document with one of these has a root type."""
TYPE_KEYWORDS: Final = ("type", "$ref", "allOf", "anyOf", "oneOf", "not", "if")
"""A member of a JSON Structure namespace with one of these is a type; any other is a namespace."""
SYNTAXES: Final = {"2": "proto2", "2.0": "proto2", "3": "proto3", "3.0": "proto3"}
"""The Protobuf syntax that each version of the format requires."""
MAX_LISTED: Final = 3
"""Maximum incompatibilities that an error message lists."""


@dataclass(frozen=True)
class SchemaValidator:
    """Implements `DocumentValidator` of core/entities/validation.py for schema documents. Thread-safe.

    Shape: with `as_declared`, JSON Schemas are compared only for documents whose properties are all named or
    constrained by their schema; otherwise, for all values that the schema accepts (docs/decisions/0091).
    """

    as_declared: bool = True

    def family(self, format_: str) -> str | None:
        """Return the family of a format, such as ``JsonSchema`` for ``jsonschema/Draft-07``; None if not supported."""
        family = parse_format(format_).family
        return family if family in BACKWARD else None

    def rules(self, format_: str) -> frozenset[str]:
        """Return the values of `compatibility` that are supported for a format; none if it is unknown."""
        return frozenset(COMPATIBILITIES) if self.family(format_) else frozenset()

    def faults(self, format_: str, document: bytes) -> str | None:
        """Return why a document is not a valid schema of its format; None if it is."""
        if not document.strip():
            return "the document is empty"
        try:
            CHECKS[parse_format(format_).family](_source(format_, document))
        except MissingImportsError:
            return None
        except (_InvalidSchemaError, AvroError, StructureError, ProtocError, XsdError) as error:
            return str(preview(str(error)))
        except js.ValidationError as error:
            pointer = "".join(f"/{step}" for step in error.instance_path)
            return str(preview(f"#{pointer}: {error.message}"))
        except RecursionError:
            return "the schema is nested too deeply"
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            return str(preview(f"a keyword has an invalid value: {error}"))
        return None

    def incompatible(self, rule: str, format_: str, old: bytes, new: bytes) -> str | None:
        """Return why `new` breaks ``backward`` or ``forward`` compatibility with `old`, and how to fix it.

        The result is None if they are compatible. Both must be valid schemas.
        """
        if old == new:
            return None
        is_forward = rule.startswith("forward")
        compare = forward if is_forward else backward
        comparisons = AS_DECLARED if self.as_declared else BACKWARD
        incompatibilities = compare(_source(format_, old), _source(format_, new), comparisons)
        if not incompatibilities:
            return None
        listed, more = incompatibilities[:MAX_LISTED], len(incompatibilities) - MAX_LISTED
        reasons = "; ".join([*map(str, listed), *([f"and {more} more"] if more > 0 else [])])
        reader, writer = ("old", "new") if is_forward else ("new", "old")
        hints = dict.fromkeys(HINTS[reason.rule] for reason in listed if reason.rule in HINTS)
        fix = "; ".join(hint.format(reader=reader, writer=writer) for hint in hints)
        return f"{reasons}. To fix: {fix}" if fix else reasons


class _InvalidSchemaError(ValueError):
    """Why a document is not a schema of its format."""


def _source(format_: str, document: bytes) -> SchemaSource:
    """Return the document as the source of a check, which resolves no references. Raises: _InvalidSchemaError"""
    name = parse_format(format_)
    content: Any = _text(document) if name.family in TEXTS else _json(document)
    return SchemaSource(name, content, None, ANONYMOUS, lambda _: None, lambda _, __: None, CompileOptions())


def _text(document: bytes) -> str:
    """Return the text of a document, which may also be a JSON string, as registries store text in JSON."""
    try:
        text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _InvalidSchemaError(f"the schema is not valid UTF-8 (byte {error.start})") from None
    if not text.lstrip().startswith('"'):  # no schema in these formats begins with a quote
        return text
    try:
        return str(parse_json(text.encode()))
    except JsonError:
        return text


def _json(document: bytes) -> Any:
    try:
        value = parse_json(document)
        if isinstance(value, str) and value.lstrip().startswith(("{", "[")):  # JSON stored as a JSON string
            value = parse_json(value.encode())
    except JsonError as error:
        raise _InvalidSchemaError(f"the schema is not valid JSON: {error}") from None
    if is_deep(value):
        raise _InvalidSchemaError(f"the schema is nested more than {MAX_DEPTH} levels deep")
    return value


# -- one check for each format ----------------------------------------------------------------------------------------


def _check_json_schema(source: SchemaSource) -> None:
    """Validate against the meta-schema of the draft. Raises: ValidationError, _InvalidSchemaError"""
    document = source.document
    if not isinstance(document, dict | bool):
        raise _InvalidSchemaError("a JSON Schema must be an object or a boolean")
    draft = draft_of(document, source.format.version)
    if draft == "draft-04" and isinstance(document, bool):
        raise _InvalidSchemaError(f"a {draft} schema must be an object")
    if isinstance(document, dict) and not isinstance(document.get("$schema", ""), str):
        raise _InvalidSchemaError("'$schema' must be a string, the URI of a meta-schema")
    if isinstance(document, dict):  # with the `$schema` of the draft, because any other would be resolved
        js.meta.validate({**document, "$schema": META_SCHEMAS[draft]})


def _check_avro(source: SchemaSource) -> None:
    """Parse the types, then check their declarations. Raises: AvroError"""
    check_declarations(parse_types(source.document, source.resolve)[1].values())


def _check_protobuf(source: SchemaSource) -> None:
    """Compile with protoc and compare the syntax with the format. Raises: ProtocError, _InvalidSchemaError"""
    files, root = lenient_files(source)
    syntax = next(file.syntax for file in files.file if file.name == root) or "proto2"
    expected = SYNTAXES.get(source.format.version or "", syntax)
    if syntax.startswith("proto") and syntax != expected:
        raise _InvalidSchemaError(f"the syntax is '{syntax}', but the format {source.format} requires '{expected}'")


def _check_xsd(source: SchemaSource) -> None:
    """Compile with xmlschema. Raises: XsdError, MissingImportsError"""
    lenient_model(source)


def _check_json_structure(source: SchemaSource) -> None:
    """Translate the root type and all definitions to JSON Schema. Raises: StructureError, _InvalidSchemaError"""
    document = source.document
    if not isinstance(document, dict):
        raise _InvalidSchemaError("a JSON Structure document must be an object")
    has_root = any(keyword in document for keyword in ROOT_KEYWORDS)
    if not has_root and not isinstance(document.get("definitions"), dict):
        raise _InvalidSchemaError("a JSON Structure document must have 'type', '$root' or 'definitions'")
    translation = Translation(document)
    schemas = [translation.document(root_pointer(document, None))] if has_root else []
    types = _types(document.get("definitions", {}))
    schemas += [translation.schema(type_) for type_ in types if type_.get("abstract") is not True]
    for schema in schemas:
        js.meta.validate({**schema, "$schema": META_SCHEMAS[LATEST]})


def _types(namespace: Any) -> Iterator[dict[str, Any]]:
    """Yield the types of a namespace and of its nested namespaces. Raises: _InvalidSchemaError"""
    if not isinstance(namespace, dict):
        raise _InvalidSchemaError("every member of 'definitions' must be a type or a namespace")
    for member in namespace.values():
        if isinstance(member, dict) and any(keyword in member for keyword in TYPE_KEYWORDS):
            yield member
        else:
            yield from _types(member)


CHECKS: Final[dict[str, Callable[[SchemaSource], None]]] = {
    JSON_SCHEMA: _check_json_schema,
    JSON_STRUCTURE: _check_json_structure,
    AVRO: _check_avro,
    PROTOBUF: _check_protobuf,
    XSD: _check_xsd,
}
