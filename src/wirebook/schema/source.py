"""What is compiled: a schema document and everything that its meaning depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wirebook.schema.formats import SchemaFormat
from wirebook.schema.reader import CompileOptions

Resolve = Callable[[str], Any | None]


@dataclass(frozen=True, slots=True)
class Text:
    """A schema document that is text (Protobuf, XSD): the URI where it stands, and the version of its format."""

    content: str
    base_uri: str
    version: str | None = None


Include = Callable[[str, str], Text | None]


@dataclass(frozen=True, slots=True)
class SchemaSource:
    """Shape: `fragment` names a part of `document`; `base_uri` is where it stands; `resolve` gives the document behind
    a URI, or the definition of an Avro type, or None; `include` the text that a text standing at a URI imports under
    a name, or None."""

    format: SchemaFormat
    document: Any
    fragment: str | None
    base_uri: str
    resolve: Resolve
    include: Include
    options: CompileOptions
