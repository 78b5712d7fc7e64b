"""What is compiled: a schema document and everything that its meaning depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wirebook.schema.formats import SchemaFormat
from wirebook.schema.reading import Options

Resolve = Callable[[str], Any | None]


@dataclass(frozen=True, slots=True)
class Source:
    """Shape: `fragment` names a part of `document`; `base_uri` is where it stands; `resolve` gives the document behind
    a URI, or the definition of an Avro type, or None."""

    format: SchemaFormat
    document: Any
    fragment: str | None
    base_uri: str
    resolve: Resolve
    options: Options
