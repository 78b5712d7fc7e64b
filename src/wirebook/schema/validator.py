"""The formats that a registry checks: is a document a schema of its format, and can one be read with another?

Rule: nothing is fetched. What a document refers to outside itself is left unchecked where the document is well-formed
without it (JSON Schema `$ref`, imports of Protobuf and XSD); an Avro name without a definition makes no schema.

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
from wirebook.schema.compatibility import AS_DECLARED, BACKWARD, MissingImportsError, backward, forward
from wirebook.schema.compile import ANONYMOUS, is_deep
from wirebook.schema.formats import AVRO, JSON_SCHEMA, JSON_STRUCTURE, PROTOBUF, TEXTS, XSD, parse_format
from wirebook.schema.incompatibilities import HINTS
from wirebook.schema.json_reader import shown
from wirebook.schema.jsonschema.compile import LATEST, META_SCHEMAS, draft_of
from wirebook.schema.jsonstructure.compile import root_pointer
from wirebook.schema.jsonstructure.to_jsonschema import StructureError, Translation
from wirebook.schema.protobuf.compatibility_imports import lenient_files
from wirebook.schema.protobuf.protoc import ProtocError
from wirebook.schema.reader import CompileOptions
from wirebook.schema.source import SchemaSource
from wirebook.schema.xsd.compatibility_imports import lenient_model
from wirebook.schema.xsd.source import XsdError
from wirebook.text.json import MAX_DEPTH, JsonError, parse_json

ROOTS = ("type", "$root", "$ref", "allOf", "anyOf", "oneOf")  # one of them makes a root type
TYPE_WORDS = ("type", "$ref", "allOf", "anyOf", "oneOf", "not", "if")
SYNTAXES = {"2": "proto2", "2.0": "proto2", "3": "proto3", "3.0": "proto3"}  # by the version of the format
SHOWN = 3  # refusals in a text
EMPTY = "the document is empty"


@dataclass(frozen=True)
class SchemaValidator:
    """A `Validator` (core/entities/validation.py) of schema documents. Used from any thread.

    Shape: `as_declared` compares JSON Schemas for documents that have no properties but those that the schema names or
    constrains; without it every value that the schema accepts counts (docs/decisions/0091).
    """

    as_declared: bool = True

    def family(self, format_: str) -> str | None:
        """``JsonSchema`` of ``jsonschema/Draft-07``: names compare without case, and have aliases (formats.py)."""
        family = parse_format(format_).family
        return family if family in BACKWARD else None

    def rules(self, format_: str) -> frozenset[str]:
        return frozenset(COMPATIBILITIES) if self.family(format_) else frozenset()

    def faults(self, format_: str, document: bytes) -> str | None:
        """Why a document is not a schema of its format; None if it is one."""
        if not document.strip():
            return EMPTY
        try:
            CHECKS[parse_format(format_).family](_source(format_, document))
        except (_Fault, AvroError, StructureError, ProtocError, XsdError) as error:
            return None if isinstance(error, MissingImportsError) else str(shown(str(error)))
        except js.ValidationError as error:
            return str(shown(f"#{_pointer(error)}: {error.message}"))
        except RecursionError:
            return "the schema is nested too deeply"
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            return str(shown(f"a keyword has a value that it cannot have: {error}"))
        return None

    def incompatible(self, rule: str, format_: str, old: bytes, new: bytes) -> str | None:
        """Why `new` breaks ``backward`` or ``forward`` with `old`, and what to change; None if it does not. Both are
        valid schemas.
        """
        if old == new:
            return None
        is_forward = rule.startswith("forward")
        compare = forward if is_forward else backward
        found = compare(_source(format_, old), _source(format_, new), AS_DECLARED if self.as_declared else BACKWARD)
        if not found:
            return None
        reader, writer = ("old", "new") if is_forward else ("new", "old")
        shown = [str(refusal) for refusal in found[:SHOWN]]
        more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        wanted = dict.fromkeys(HINTS[refusal.rule] for refusal in found[:SHOWN] if refusal.rule in HINTS)
        hints = [hint.format(reader=reader, writer=writer) for hint in wanted]
        return "; ".join([*shown, *more]) + (f". To fix: {'; '.join(hints)}" if hints else "")


class _Fault(ValueError):
    """Why a document is not a schema."""


def _source(format_: str, document: bytes) -> SchemaSource:
    """Raises: _Fault"""
    name = parse_format(format_)
    content: Any = _text(document) if name.family in TEXTS else _json(document)
    return SchemaSource(name, content, None, ANONYMOUS, _nowhere, _nothing, CompileOptions())


def _text(document: bytes) -> str:
    """The text of a schema; of a JSON string, its characters: that is how a registry stores a text sent as JSON."""
    try:
        text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Fault(f"the schema is not UTF-8 (byte {error.start})") from None
    if not text.lstrip().startswith('"'):  # as no schema in these formats does
        return text
    try:
        return str(parse_json(text.encode()))
    except JsonError:
        return text


def _json(document: bytes) -> Any:
    try:
        parsed = parse_json(document)
        if isinstance(parsed, str) and parsed.lstrip().startswith(("{", "[")):  # JSON that was sent as a text
            parsed = parse_json(parsed.encode())
    except JsonError as error:
        raise _Fault(f"the schema is not JSON: {error}") from None
    if is_deep(parsed):
        raise _Fault(f"the schema is nested deeper than {MAX_DEPTH}")
    return parsed


def _nowhere(uri: str) -> None:  # noqa: ARG001
    return None


def _nothing(name: str, base_uri: str) -> None:  # noqa: ARG001
    return None


def _pointer(error: js.ValidationError) -> str:
    return "".join(f"/{each}" for each in error.instance_path)


# -- one check for each format ----------------------------------------------------------------------------------------


def _check_json_schema(source: SchemaSource) -> None:
    """By the meta-schema of the draft. Raises: ValidationError, _Fault"""
    document = source.document
    if not isinstance(document, dict | bool):
        raise _Fault("a JSON Schema is an object or a boolean")
    draft = draft_of(document, source.format.version)
    if draft == "draft-04" and isinstance(document, bool):
        raise _Fault(f"a schema of {draft} is an object")
    if isinstance(document, dict) and not isinstance(document.get("$schema", ""), str):
        raise _Fault("'$schema' is the address of a meta-schema")
    if isinstance(document, dict):  # with the draft's own `$schema`: another would be looked for elsewhere
        js.meta.validate({**document, "$schema": META_SCHEMAS[draft]})


def _check_avro(source: SchemaSource) -> None:
    parse_types(source.document, source.resolve)
    check_declarations(source.document)


def _check_protobuf(source: SchemaSource) -> None:
    """By protoc, and of the syntax that the format names. Raises: ProtocError, _Fault"""
    files, root = lenient_files(source)
    syntax = next(each.syntax for each in files.file if each.name == root) or "proto2"
    named = SYNTAXES.get(source.format.version or "", syntax)
    if syntax.startswith("proto") and syntax != named:
        raise _Fault(f"its syntax is {syntax}, and that of {source.format} is {named}")


def _check_xsd(source: SchemaSource) -> None:
    lenient_model(source)


def _check_json_structure(source: SchemaSource) -> None:
    """The root type; every definition where there is none. Raises: StructureError, _Fault"""
    document = source.document
    if not isinstance(document, dict):
        raise _Fault("a JSON Structure document is an object")
    has_root = any(word in document for word in ROOTS)
    if not has_root and not isinstance(document.get("definitions"), dict):
        raise _Fault("a JSON Structure document has a 'type', a '$root' or 'definitions'")
    translation = Translation(document)
    translated = [translation.document(root_pointer(document, None))] if has_root else []
    translated += [
        translation.schema(type_)
        for type_ in _types(document.get("definitions", {}))
        if type_.get("abstract") is not True
    ]
    for each in translated:
        js.meta.validate({**each, "$schema": META_SCHEMAS[LATEST]})


def _types(namespace: Any) -> Iterator[dict[str, Any]]:
    """The types of a namespace and of those in it."""
    if not isinstance(namespace, dict):
        raise _Fault("'definitions' has a member that is neither a type nor a namespace")
    for each in namespace.values():
        if isinstance(each, dict) and any(word in each for word in TYPE_WORDS):
            yield each
        else:
            yield from _types(each)


CHECKS: Final[dict[str, Callable[[SchemaSource], None]]] = {
    JSON_SCHEMA: _check_json_schema,
    JSON_STRUCTURE: _check_json_structure,
    AVRO: _check_avro,
    PROTOBUF: _check_protobuf,
    XSD: _check_xsd,
}
