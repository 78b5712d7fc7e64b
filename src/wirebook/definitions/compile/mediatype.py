"""Parse and compare media types such as ``Application/JSON; CharSet=UTF-8`` (D14).

media-type = type "/" subtype *( OWS ";" OWS parameter )      ; RFC 9110 section 8.3.1
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from wirebook.text.mediatypes import WORD, is_json

ESSENCE = re.compile(rf"[ \t]*({WORD})/({WORD})[ \t]*")
PARAMETER = re.compile(rf";[ \t]*(?:({WORD})=(?:({WORD})|\"((?:[^\"\\]|\\.)*)\"))?[ \t]*", re.DOTALL)
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
MAX_LENGTH = 1000


@dataclass(frozen=True, slots=True)
class MediaType:
    """A parsed media type: `essence`, the names of `parameters`, and the value of ``charset`` are lower case."""

    essence: str
    parameters: frozenset[tuple[str, str]]

    @property
    def is_json(self) -> bool:
        return is_json(self.essence)

    @property
    def is_cloudevents(self) -> bool:
        return self.essence.startswith("application/cloudevents")

    def satisfies(self, declared: MediaType) -> bool:
        """Whether a message of this type matches `declared`. It may have more parameters."""
        return self.essence == declared.essence and declared.parameters <= self.parameters


@lru_cache(maxsize=4096)
def parse_media_type(text: str) -> MediaType | None:
    """Parse a media type; None if `text` is not valid or has more than 1,000 characters. Cost: linear."""
    essence = ESSENCE.match(text) if len(text) <= MAX_LENGTH else None
    if not essence:
        return None
    parameters: set[tuple[str, str]] = set()
    position = essence.end()
    while position < len(text):
        parameter = PARAMETER.match(text, position)
        if not parameter:
            return None
        position = parameter.end()
        if name := (parameter[1] or "").lower():
            value = parameter[2] if parameter[2] is not None else ESCAPE.sub(r"\1", parameter[3])
            parameters.add((name, value.lower() if name == "charset" else value))
    return MediaType(f"{essence[1]}/{essence[2]}".lower(), frozenset(parameters))


INFERRED: dict[str, str] = {
    "jsonschema": "application/json",
    "jsonstructure": "application/json",
    "xsd": "application/xml",
    "xmlschema": "application/xml",
    "avro": "application/vnd.apache.avro",
    "protobuf": "application/protobuf",
}


def inferred_content_type(schema_format: str | None) -> str | None:
    """The content type for a `dataschemaformat` (R15, D12): the default in building, a soft constraint in matching."""
    return INFERRED.get((schema_format or "").split("/")[0].lower())
