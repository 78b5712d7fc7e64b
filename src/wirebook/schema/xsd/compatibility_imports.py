"""Compiles an XML Schema of which some includes and imports are unknown.

Rule: an include or import that cannot be resolved is not an error (XML Schema 1.0 part 1, 4.2). An error about a
missing component is then inconclusive, and reported as MissingImportsError.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from wirebook.schema.source import MissingImportsError, SchemaSource, SchemaText
from wirebook.schema.xsd.source import XS, XsdError, documents_of
from wirebook.schema.xsd.validate import CompiledSchemas

EMPTY_SCHEMA = f'<xs:schema xmlns:xs="{XS[1:-1]}"/>'
_IMPORTED = re.compile(r"""\bnamespace\s*=\s*["']([^"'<>]{1,2000})["']""")
_MISSING = re.compile(
    r"unknown (?:type|element|attribute|group)|not found|not loaded|cannot resolve|unmapped|no .* found", re.I
)


def lenient_model(source: SchemaSource) -> Any:
    """Return the compiled schema, with unknown includes replaced by empty documents.

    Raises: XsdError, MissingImportsError
    """
    missing: list[str] = []

    def include(name: str, base_uri: str) -> SchemaText | None:
        text = source.include(name, base_uri)
        if text is not None:
            return text
        missing.append(name)
        return None if name in namespaces else SchemaText(EMPTY_SCHEMA, f"{base_uri}#{len(missing)}")

    namespaces = set(_IMPORTED.findall(source.document))
    documents = documents_of(replace(source, include=include))
    try:
        return CompiledSchemas(documents, source.format.version).model
    except XsdError as error:
        if missing and _MISSING.search(str(error)):
            raise MissingImportsError(str(error)) from None
        raise
