"""Find the payload schema of a message in the catalogue, and compile each schema once.

Spec: message/spec.md (`dataschemaformat`, `dataschema`, `dataschemauri`, `dataschemaxid`); docs/semantics.md D43, D45,
D46.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from wirebook.problems import Problem
from wirebook.schema.avro.names import definitions
from wirebook.schema.compile import ANONYMOUS, COMPILERS, DEFAULT, compile_schema
from wirebook.schema.documents import Documents, SchemaDocument, json_of
from wirebook.schema.formats import AVRO, parse_format
from wirebook.schema.reader import CompiledSchema, CompileOptions, Unsupported
from wirebook.schema.source import SchemaText

Compiled = CompiledSchema | Unsupported


class SchemaIndex:
    """The compiled schemas of a catalogue.

    Shape: `registry` is a canonical document. A schema is compiled when it is first requested. If two threads compile
    the same schema, the first result is kept.
    """

    def __init__(self, registry: Mapping[str, Any], options: CompileOptions = DEFAULT) -> None:
        self.documents = Documents(registry)
        self.options = options
        self._compiled: dict[tuple[Any, ...], Compiled] = {}

    def find(
        self,
        format: str | None,
        *,
        dataschema: Any = None,
        dataschemauri: str | None = None,
        dataschemaxid: str | None = None,
    ) -> Compiled:
        """Return the compiled schema of a message: its inline schema, else the schema that it refers to.

        `format` is the `dataschemaformat` of the message. The format of a referenced document takes precedence.
        Problems: schema-not-found (every payload is then `unsupported`)
        """
        if dataschema is not None:
            return self._compile(format, dataschema, (repr(dataschema),))
        references = [reference for reference in (dataschemaxid, dataschemauri) if isinstance(reference, str)]
        for reference in references:
            target = self.documents.follow(reference)
            if target is not None and target[0].content is not None:
                return self._compile_document(format, *target)
        return _not_found(format, references)

    def problems(self) -> Iterator[Problem]:
        """Yield the problems of catalogue schemas that cannot be compiled, each with the XID of its schema."""
        seen: set[int] = set()  # a Resource has the same document as its default Version
        for document in self.documents.by_xid.values():
            if document.content is not None and id(document.content) not in seen:
                seen.add(id(document.content))
                compiled = self._compile_document(None, document, None)
                problems = compiled.problems if isinstance(compiled, Unsupported) else ()
                # a document with several types is valid: a message that refers to it names one of them
                if any(problem.code != "unnamed-type" for problem in problems):
                    yield from (problem.at(xid=document.xid, slot=None) for problem in problems)

    def _compile_document(self, format: str | None, document: SchemaDocument, part: str | None) -> Compiled:
        identity = (document.xid, part)
        return self._compile(document.format or format, document.content, identity, part, document.base_uri)

    def _compile(
        self,
        format: str | None,
        schema: Any,
        identity: tuple[str | None, ...],
        part: str | None = None,
        base_uri: str = ANONYMOUS,
    ) -> Compiled:
        """Return a schema, compiled once for each format and `identity`."""
        key = ((format or "").lower(), *identity)
        if key not in self._compiled:
            compiled = compile_schema(
                format or "",
                schema,
                part,
                base_uri=base_uri,
                resolve=self.resolve,
                include=self.include,
                options=self.options,
            )
            self._compiled.setdefault(key, compiled)
        return self._compiled[key]

    # -- references between schemas -----------------------------------------------------------------------------------

    def resolve(self, reference: str) -> Any | None:
        """Return the document at a URI, or the definition of an Avro type by its full name; None if unknown."""
        target = self.documents.follow(reference)
        return self._avro_types.get(reference) if target is None else json_of(target[0].content)

    def include(self, name: str, base_uri: str) -> SchemaText | None:
        """Return the text that the document at `base_uri` imports as `name`; None if unknown."""
        document = self.documents.imported(name, base_uri)
        if document is None or not isinstance(document.content, str):
            return None
        return SchemaText(document.content, document.base_uri, parse_format(document.format or "").version)

    @cached_property
    def _avro_types(self) -> dict[str, Any]:
        """The definitions of all named types in the Avro schemas of the catalogue, by full name."""
        documents = self.documents.by_xid.values()
        avro = (document for document in documents if parse_format(document.format or "").family == AVRO)
        return {name: definition for document in avro for name, definition in definitions(json_of(document.content))}


def _not_found(format: str | None, references: list[str]) -> Compiled:
    if parse_format(format or "").family not in COMPILERS:
        return compile_schema(format or "", None)
    reference = references[-1] if references else None
    message = "the message names no schema"
    if reference:
        message = f"the schema '{reference}' is not in the catalogue; schemas are not fetched from elsewhere"
    return Unsupported(format or "", (Problem("schema-not-found", message, slot="payload", actual=reference),))
