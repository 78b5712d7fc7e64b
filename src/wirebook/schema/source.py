"""The input of a compiler: a schema document with everything that its meaning depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wirebook.schema.formats import SchemaFormat
from wirebook.schema.reader import CompileOptions

Resolve = Callable[[str], Any | None]
"""Return the document at an absolute URI, or the definition of the Avro type with a full name; None if unknown."""


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema document that is text (Protobuf, XSD), with the URI of the document and the version of its format."""

    content: str
    base_uri: str
    version: str | None = None


Include = Callable[[str, str], SchemaText | None]
"""Return the text that the document at a base URI (second argument) imports as a name (first); None if unknown."""


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
    """The document defines several types that payloads could have, and the reference names none of them."""


class MissingImportsError(ValueError):
    """The document is well-formed as far as can be checked, but checking the rest needs documents that it imports."""
