"""xs:pattern in linear time: the expressions of XML Schema on the engine that JSON Schema's patterns run on.

libxml2 tries patterns by backtracking, Python by more of it; a value of a few dozen characters can keep both busy.
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
from wirebook.schema.xsd.source import XsdError

MAX_LENGTH = 2000  # characters of a pattern


class XsdPattern:
    """What matches a whole text; with the interface of `re` as far as xmlschema uses it."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.is_match = _matcher(pattern)

    def match(self, text: str) -> bool | None:
        return self.is_match(text) or None


@lru_cache(maxsize=4096)
def _matcher(pattern: str) -> Any:
    if len(pattern) > MAX_LENGTH:
        raise XsdError(f"a pattern of {len(pattern)} characters; at most {MAX_LENGTH}")
    try:
        text = translate_pattern(pattern, back_references=False, lazy_quantifiers=False, anchors=False)
        inner = re.sub(r"\(\?!\\n\\Z\)\Z", "", text).removeprefix("^").removesuffix("$")
        schema = {"pattern": rf"\A(?:{inner})\z"}
        return jsonschema_rs.Draft202012Validator(schema, pattern_options=LINEAR).is_valid
    except (RegexError, jsonschema_rs.ValidationError, ValueError, OverflowError) as error:
        reason = getattr(error, "message", None) or str(error)
        raise XsdError(f"the pattern '{pattern[:100]}' cannot be used: {reason[:100]}") from None


def make_linear(schema: Any) -> None:
    """Puts these patterns in place of xmlschema's own. Raises: XsdError"""
    for component in components(schema):
        facet = getattr(component, "patterns", None)
        if facet is not None and hasattr(facet, "regexps"):
            facet.patterns[:] = [XsdPattern(regexp) for regexp in facet.regexps]


def components(schema: Any) -> Iterator[Any]:
    """What the documents define, without what XML Schema does itself."""
    own = (each for each in schema.maps.schemas if each.meta_schema is not None)
    return chain.from_iterable(each.iter_components() for each in own)


def patterns_of(type_: Any) -> Iterator[tuple[str, list[XsdPattern]]]:
    """Of each step of a type's derivation: what a problem calls it, and patterns of which one must match."""
    while type_ is not None:
        facet = type_.facets.get("{http://www.w3.org/2001/XMLSchema}pattern") if hasattr(type_, "facets") else None
        if facet is not None and not _is_builtin(type_):
            yield " or ".join(facet.regexps), [XsdPattern(regexp) for regexp in facet.regexps]
        type_ = type_.base_type


def _is_builtin(type_: Any) -> bool:
    return bool(type_.name) and str(type_.name).startswith("{http://www.w3.org/2001/XMLSchema}")
