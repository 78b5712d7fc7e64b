"""The input of a compiler: a schema document, its references to other documents, and options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wirebook.schema.formats import SchemaFormat
from wirebook.schema.reader import CompileOptions

Resolve = Callable[[str], Any | None]
"""A function that returns the document at an absolute URI, or an Avro type's definition by full name; None: unknown."""


@dataclass(frozen=True, slots=True)
class SchemaText:
    """The text of a schema document (Protobuf, XSD), its URI and the version of its format."""

    content: str
    base_uri: str
    version: str | None = None


Include = Callable[[str, str], SchemaText | None]
"""A function (name, base URI) that returns the text that the document at the URI imports as `name`; None: unknown."""


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """A schema document to compile.

    Shape: `fragment` names a part of `document`; relative references in the document resolve against `base_uri`.
    """

    format: SchemaFormat
    document: Any
    fragment: str | None
    base_uri: str
    resolve: Resolve
    include: Include
    options: CompileOptions


class UnnamedTypeError(ValueError):
    """The document defines several types for payloads, and the reference names none of them."""


class MissingImportsError(ValueError):
    """The document is valid as far as it can be checked without the documents that it imports."""
