"""A message's payload schema: found in the catalogue, compiled once.

Spec: message/spec.md (`dataschemaformat`, `dataschema`, `dataschemauri`, `dataschemaxid`);
docs/semantics.md D43, D45, D46.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from wirebook.problems import Problem
from wirebook.schema.avro.names import named_types
from wirebook.schema.compile import COMPILERS, DEFAULT, compile_schema
from wirebook.schema.documents import Documents, SchemaDocument
from wirebook.schema.formats import AVRO, parse_format
from wirebook.schema.reader import CompiledSchema, CompileOptions, Unsupported
from wirebook.schema.source import Text
from wirebook.text.json import JsonError, parse_json

Compiled = CompiledSchema | Unsupported


class SchemaIndex:
    """The schemas of a catalogue.

    Shape: `registry` is the canonical document. Each schema is compiled when it is first asked for; two threads may
    compile the same one, the first to finish stays.
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
        """The compiled schema of a message: the inline one, else the one that is referred to.

        `format` is the message's `dataschemaformat`; the format that a referred document states itself goes first.
        Nothing there is ``schema-not-found``: every payload is then `unsupported`.
        """
        if dataschema is not None:
            return self._compile_inline(format, dataschema)
        references = [each for each in (dataschemaxid, dataschemauri) if isinstance(each, str)]
        for reference in references:
            found = self.documents.follow(reference)
            if found is not None and found[0].content is not None:
                return self._compile(format, *found)
        return _not_found(format, references)

    def problems(self) -> Iterator[Problem]:
        """What is wrong with the schemas themselves, one problem per schema that cannot be used."""
        seen: set[int] = set()  # a Resource shows its default Version's document again
        for document in self.documents.by_xid.values():
            if document.content is not None and id(document.content) not in seen:
                seen.add(id(document.content))
                compiled = self._compile(None, document, None)
                if isinstance(compiled, Unsupported) and not _is_library(compiled):
                    yield from (problem.at(xid=document.xid, slot=None) for problem in compiled.problems)

    def _compile(self, format: str | None, document: SchemaDocument, part: str | None) -> Compiled:
        chosen = document.format or format or ""
        key = (chosen.lower(), document.xid, part)
        if key not in self._compiled:
            compiled = compile_schema(
                chosen,
                document.content,
                part,
                base_uri=document.base_uri,
                resolve=self.resolve,
                include=self.include,
                options=self.options,
            )
            self._compiled.setdefault(key, compiled)
        return self._compiled[key]

    def _compile_inline(self, format: str | None, schema: Any) -> Compiled:
        key = ((format or "").lower(), repr(schema))
        if key not in self._compiled:
            compiled = compile_schema(
                format or "", schema, resolve=self.resolve, include=self.include, options=self.options
            )
            self._compiled.setdefault(key, compiled)
        return self._compiled[key]

    # -- references between schemas -----------------------------------------------------------------------------------

    def resolve(self, reference: str) -> Any | None:
        """The document behind the URI, or the definition of the Avro type, that a schema refers to."""
        found = self.documents.follow(reference)
        if found is None:
            return self._avro_types.get(reference)
        return _as_json(found[0].content)

    def include(self, name: str, base_uri: str) -> Text | None:
        """The text that a text standing at `base_uri` imports under `name`."""
        found = self.documents.imported(name, base_uri)
        if found is None or not isinstance(found.content, str):
            return None
        return Text(found.content, found.base_uri, parse_format(found.format or "").version)

    @cached_property
    def _avro_types(self) -> dict[str, Any]:
        """The named types that the catalogue's Avro schemas define."""
        documents = self.documents.by_xid.values()
        schemas = (
            _as_json(document.content) for document in documents if parse_format(document.format or "").family == AVRO
        )
        return {name: definition for schema in schemas for name, definition in named_types(schema)}


def _is_library(compiled: Unsupported) -> bool:
    """Is nothing wrong but that the document has several types, of which its users name one?"""
    return all(problem.code == "unnamed-type" for problem in compiled.problems)


def _as_json(content: Any) -> Any:
    """The content of a JSON document that may be kept as text; None when it is none."""
    if not isinstance(content, str):
        return content
    try:
        return parse_json(content.encode())
    except JsonError:
        return None


def _not_found(format: str | None, references: list[str]) -> Compiled:
    if parse_format(format or "").family not in COMPILERS:
        return compile_schema(format or "", None)
    shown = references[-1] if references else None
    message = f"no schema in the catalogue is '{shown}'; nothing is fetched" if shown else "the message names no schema"
    return Unsupported(format or "", (Problem("schema-not-found", message, slot="payload", actual=shown),))
