"""Matches xs:pattern in linear time, with the engine that also matches the patterns of JSON Schema.

libxml2 and Python match patterns by backtracking: a value of a few dozen characters can block either of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

import jsonschema_rs
from elementpath.regex import RegexError, translate_pattern

from wirebook.schema.json_reader import LINEAR
from wirebook.schema.xsd.source import XS, XsdError

MAX_LENGTH = 2000
"""The longest pattern. Units: characters."""


class XsdPattern:
    """Matches whole texts. It has the part of the interface of `re.Pattern` that xmlschema uses."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.is_match = _matcher(pattern)

    def match(self, text: str) -> bool | None:
        """Return True if the whole text matches, else None."""
        return self.is_match(text) or None


@lru_cache(maxsize=4096)
def _matcher(pattern: str) -> Any:
    if len(pattern) > MAX_LENGTH:
        raise XsdError(f"a pattern has {len(pattern)} characters; the limit is {MAX_LENGTH}")
    try:
        text = translate_pattern(pattern, back_references=False, lazy_quantifiers=False, anchors=False)
        inner = re.sub(r"\(\?!\\n\\Z\)\Z", "", text).removeprefix("^").removesuffix("$")
        schema = {"pattern": rf"\A(?:{inner})\z"}
        return jsonschema_rs.Draft202012Validator(schema, pattern_options=LINEAR).is_valid
    except (RegexError, jsonschema_rs.ValidationError, ValueError, OverflowError) as error:
        reason = getattr(error, "message", None) or str(error)
        raise XsdError(f"the pattern '{pattern[:100]}' is not supported: {reason[:100]}") from None


def make_linear(schema: Any) -> None:
    """Replace the compiled patterns in a schema of xmlschema by `XsdPattern`. Raises: XsdError"""
    for component in components(schema):
        facet = getattr(component, "patterns", None)
        if facet is not None and hasattr(facet, "regexps"):
            facet.patterns[:] = [XsdPattern(regexp) for regexp in facet.regexps]


def components(model: Any) -> Iterator[Any]:
    """Yield the components that the documents define, without those of XML Schema itself."""
    schemas = (document for document in model.maps.schemas if document.meta_schema is not None)
    return chain.from_iterable(document.iter_components() for document in schemas)


def regexps_of(type_: Any) -> Iterator[list[str]]:
    """Yield the patterns of each derivation step, from a type up to a built-in type. One pattern of each must match."""
    while type_ is not None and not str(type_.name or "").startswith(XS):
        facet = getattr(type_, "facets", {}).get(f"{XS}pattern")
        if facet is not None:
            yield list(facet.regexps)
        type_ = type_.base_type


def patterns_of(type_: Any) -> Iterator[tuple[str, list[XsdPattern]]]:
    """Yield the patterns of each derivation step of a type, with the text that describes them in problems."""
    return ((" or ".join(regexps), list(map(XsdPattern, regexps))) for regexps in regexps_of(type_))
