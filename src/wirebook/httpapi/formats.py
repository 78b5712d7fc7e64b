"""Document validation of a server, which is imported when it is first needed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebook.schema.validator import SchemaValidator


class LazySchemaValidator:
    """A `DocumentValidator` (core/entities/validation.py) that imports the schema libraries when they are first needed.

    Their import takes longer than that of the rest of the server, and most requests do not need them.

    `strict_json_schema` compares all values that a JSON Schema accepts (docs/decisions/0091).
    """

    def __init__(self, *, strict_json_schema: bool = False) -> None:
        self._is_strict = strict_json_schema

    @cached_property
    def _validator(self) -> SchemaValidator:
        from wirebook.schema.validator import SchemaValidator  # noqa: PLC0415

        return SchemaValidator(as_declared=not self._is_strict)

    def family(self, format_: str) -> str | None:
        return self._validator.family(format_)

    def faults(self, format_: str, document: bytes) -> str | None:
        return self._validator.faults(format_, document)

    def rules(self, format_: str) -> frozenset[str]:
        return self._validator.rules(format_)

    def incompatible(self, rule: str, format_: str, old: bytes, new: bytes) -> str | None:
        return self._validator.incompatible(rule, format_, old, new)
