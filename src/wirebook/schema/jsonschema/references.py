"""Resolves the references in a JSON Schema against the base URI that the identifiers around them set.

Rule: the draft decides which keyword is an identifier: `id` in draft-04, `$id` since draft-06, neither beside `$ref` up
to draft-07. As in the validator, the `$schema` of a subschema only decides about the identifier of that subschema.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class References:
    """The resolver of references at one place in a schema and the draft there, both of the library `referencing`."""

    resolver: Any
    specification: Any

    def inside(self, schema: dict[str, Any]) -> References:
        """Return the references inside a subschema: its identifier may set the base URI."""
        if not any(isinstance(schema.get(keyword), str) for keyword in ("$id", "id")):
            return self
        resource = self._specification_of(schema).create_resource(schema)
        return References(self.resolver.in_subresource(resource), self.specification)

    def lookup(self, reference: str) -> tuple[Any, References]:
        """Return the target of a reference, and the references around it. Raises: Unresolvable"""
        resolved = self.resolver.lookup(reference)
        document = resolved.resolver.lookup("#").contents
        return resolved.contents, References(resolved.resolver, self._specification_of(document))

    def _specification_of(self, schema: Any) -> Any:
        identifier = schema.get("$schema") if isinstance(schema, dict) else None
        return self.specification.detect(schema) if isinstance(identifier, str) else self.specification
