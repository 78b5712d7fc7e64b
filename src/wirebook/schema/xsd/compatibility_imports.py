"""XML Schemas whose includes and imports are not all there.

Rule: an include or import that leads nowhere is no fault of a schema (XML Schema 1.0 part 1, 4.2: it is not an error
for a location not to resolve); that a component is missing then says nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from wirebook.schema.source import MissingImportsError, SchemaSource, SchemaText
from wirebook.schema.xsd.source import XS, XsdError, documents_of
from wirebook.schema.xsd.validate import CompiledSchemas

NOTHING = f'<xs:schema xmlns:xs="{XS[1:-1]}"/>'
_MISSING = re.compile(
    r"unknown (?:type|element|attribute|group)|not found|not loaded|cannot resolve|unmapped|no .* found", re.I
)


def lenient_model(source: SchemaSource) -> Any:
    """The compiled schema, empty documents in place of what it includes and is not there.

    Raises: XsdError, MissingImportsError
    """
    absent: list[str] = []

    def include(name: str, base_uri: str) -> SchemaText | None:
        found = source.include(name, base_uri)
        if found is not None:
            return found
        absent.append(name)
        return None if name in namespaces else SchemaText(NOTHING, f"{base_uri}#{len(absent)}")

    namespaces = set(_IMPORTED.findall(source.document))
    documents = documents_of(replace(source, include=include))
    try:
        return CompiledSchemas(documents, source.format.version).model
    except XsdError as error:
        if absent and _MISSING.search(str(error)):
            raise MissingImportsError(str(error)) from None
        raise


_IMPORTED = re.compile(r"""\bnamespace\s*=\s*["']([^"'<>]{1,2000})["']""")
