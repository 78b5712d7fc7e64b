"""The formats of schemas, as a server checks them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebook.schema.validator import SchemaValidator


class Formats:
    """A `Validator` (core/entities/validation.py) that is loaded when it is first needed: its libraries take longer to
    load than the rest of a server, and most requests do without.

    `strict_json_schema` counts every value that a JSON Schema accepts (docs/decisions/0091).
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
