"""Strict YAML: what JSON can say, written as YAML.

    read_yaml(data, "catalogue.yaml").value

Scalars are read as in YAML 1.2's core schema, so ``on`` and ``2024-01-01`` are texts; keys are always texts. Refused:
duplicate keys with different values, tags other than those of the core schema, several documents, aliases that would
unfold to more than the limits allow. A duplicate key with an equal value is reported. ``<<`` merges, as everyone
expects.

Spec: https://yaml.org/spec/1.2.2/#103-core-schema; docs/semantics.md D47.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NoReturn

import yaml

from wirebook.problems import Problem, WirebookError
from wirebook.text.json import decode, duplicate_member, is_deeper_than
from wirebook.text.jsonvalue import are_equal
from wirebook.text.pointers import child
from wirebook.text.positions import MAX_POINTER
from wirebook.text.source import DEFAULT_LIMITS, DocumentLimits, Source, SourcePosition

LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
TAGS: Final = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}
NULL: Final = re.compile(r"(?:~|null|Null|NULL|)\Z")
BOOLEAN: Final = re.compile(r"(?:(?P<true>true|True|TRUE)|false|False|FALSE)\Z")
INTEGER: Final = re.compile(r"[-+]?[0-9]{1,4000}\Z")
OCTAL: Final = re.compile(r"0o[0-7]{1,4000}\Z")
HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]{1,4000}\Z")
FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
NOT_A_NUMBER: Final = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
MERGE: Final = "<<"


def read_yaml(data: bytes, name: str, limits: DocumentLimits = DEFAULT_LIMITS) -> Source:
    """The document in `data`. JSON is YAML, so it is read too.

    Raises: too-large, not-utf-8, syntax-error, duplicate-member, not-a-number, too-deep.
    """
    text, problems = decode(data, name, limits)
    builder = _YamlBuilder(name, limits)
    try:
        for event in yaml.parse(text, Loader=LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        raise WirebookError(_syntax_error(error, name, builder.here())) from None
    if is_deeper_than(builder.root, limits.depth):
        message = f"aliases unfold to more than {limits.depth} levels"
        raise WirebookError(Problem(code="too-deep", message=message, file=name, line=1, column=1))
    return Source(name, builder.root, (*problems, *builder.problems), partial(dict, builder.places))


def _syntax_error(error: yaml.YAMLError, name: str, pointer: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).split("\n")[0]
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    return Problem(code="syntax-error", message=reason, file=name, line=line, column=column, pointer=pointer)


@dataclass(slots=True)
class _Open:
    """A mapping or sequence being read.

    Shape: `again` is the place of the key in hand when the mapping has it already; `values` counts what is held with
    every alias written out.
    """

    value: Any
    pointer: str
    anchor: str | None
    key: str | None = None
    again: SourcePosition | None = None
    merges: list[Any] = field(default_factory=list)
    values: int = 1


class _YamlBuilder:
    """Builds values from YAML events, one at a time and without recursion."""

    def __init__(self, name: str, limits: DocumentLimits) -> None:
        self.name, self.limits = name, limits
        self.root: Any = None
        self.places: dict[str, SourcePosition] = {"": SourcePosition(1, 1)}
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.documents = 0
        self.problems: list[Problem] = []

    def take(self, event: Any) -> None:
        handler = getattr(self, f"_{type(event).__name__}", None)
        if handler is not None:
            handler(event)

    def here(self) -> str:
        """The pointer of the value in hand."""
        if not self.stack:
            return ""
        top = self.stack[-1]
        token = len(top.value) if isinstance(top.value, list) else top.key
        return top.pointer if token is None or len(top.pointer) > MAX_POINTER else child(top.pointer, token)

    # -- events -------------------------------------------------------------------------------------------------

    def _DocumentStartEvent(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            self.refuse(event, "syntax-error", "a second document begins here; one is read")

    def _ScalarEvent(self, event: Any) -> None:
        if self._is_key():
            self._take_key(event)
        else:
            self._take_value(event, self._scalar(event), event.anchor, 1)

    def _MappingStartEvent(self, event: Any) -> None:
        self._open(event, {}, "map")

    def _SequenceStartEvent(self, event: Any) -> None:
        self._open(event, [], "seq")

    def _MappingEndEvent(self, event: Any) -> None:
        top = self.stack.pop()
        for merged in top.merges:
            self._merge(event, top, merged)
        self._take_value(event, top.value, top.anchor, top.values)

    def _SequenceEndEvent(self, event: Any) -> None:
        top = self.stack.pop()
        self._take_value(event, top.value, top.anchor, top.values)

    def _AliasEvent(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            self.refuse(event, "syntax-error", f"the alias '*{event.anchor}' has no anchor that is complete")
        if self._is_key():
            self.refuse(event, "syntax-error", "an alias is no key")
        value, values = self.anchors[event.anchor]
        self._take_value(event, value, None, values)

    # -- keys and values ----------------------------------------------------------------------------------------

    def _is_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def _take_key(self, event: Any) -> None:
        top = self.stack[-1]
        top.key = event.value
        pointer = self.here()
        top.again = _place(event) if event.value in top.value else None
        self.places.setdefault(pointer, _place(event))

    def _take_value(self, event: Any, value: Any, anchor: str | None, values: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, values)
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        top.values += values
        if top.values > self.limits.values:
            self.refuse(event, "too-large", f"aliases unfold to more than {self.limits.values} values")
        if isinstance(top.value, list):
            self.places.setdefault(self.here(), _place(event))
            top.value.append(value)
        elif top.key == MERGE:
            top.merges += value if isinstance(value, list) else [value]
            top.key = None
        else:
            if top.again is not None:
                self._take_again(top, value)
            else:
                top.value[top.key] = value
            top.key = None

    def _take_again(self, top: _Open, value: Any) -> None:
        """A key that the mapping has already: an equal value is reported, another one refused."""
        assert top.again is not None
        pointer = self.here()
        same = are_equal(top.value[top.key], value)
        problem = duplicate_member(self.name, pointer, self.places[pointer], top.again, are_equal=same)
        if not same:
            raise WirebookError(problem)
        self.problems.append(problem)

    def _open(self, event: Any, value: Any, kind: str) -> None:
        if self._is_key():
            self.refuse(event, "syntax-error", "a key is a text, not a mapping or a sequence")
        if event.tag is not None and TAGS.get(event.tag) != kind:
            self.refuse(event, "syntax-error", f"the tag '{event.tag}' is not supported")
        if len(self.stack) >= self.limits.depth:
            self.refuse(event, "too-deep", f"nested deeper than {self.limits.depth} levels")
        pointer = self.here()
        if self.stack and isinstance(self.stack[-1].value, list):
            self.places.setdefault(pointer, _place(event))
        self.stack.append(_Open(value, pointer, event.anchor))

    def _merge(self, event: Any, top: _Open, merged: Any) -> None:
        if not isinstance(merged, dict):
            self.refuse(event, "syntax-error", "'<<' merges mappings only")
        for key, value in merged.items():
            top.value.setdefault(key, value)

    def _scalar(self, event: Any) -> Any:
        if event.tag is not None and (event.tag not in TAGS or TAGS[event.tag] in ("map", "seq")):
            self.refuse(event, "syntax-error", f"the tag '{event.tag}' is not supported")
        if event.tag == "tag:yaml.org,2002:str" or (event.tag is None and not event.implicit[0]):
            return event.value
        value = _core_schema(event.value)
        if isinstance(value, float) and not math.isfinite(value):
            self.refuse(event, "not-a-number", f"'{event.value}' is no number that JSON can carry")
        return value

    def refuse(self, event: Any, code: str, message: str) -> NoReturn:
        line, column = _place(event)
        pointer = self.here()
        shown = pointer if len(pointer) < 200 else pointer[:200] + "..."
        raise WirebookError(
            Problem(code=code, message=message, file=self.name, line=line, column=column, pointer=shown)
        )


def _place(event: Any) -> SourcePosition:
    return SourcePosition(event.start_mark.line + 1, event.start_mark.column + 1)


def _core_schema(text: str) -> Any:
    """A plain scalar as null, boolean, number or text."""
    if NULL.match(text):
        return None
    if found := BOOLEAN.match(text):
        return found["true"] is not None
    if INTEGER.match(text):
        return int(text)
    if OCTAL.match(text):
        return int(text[2:], 8)
    if HEXADECIMAL.match(text):
        return int(text[2:], 16)
    if NOT_A_NUMBER.match(text):
        return math.nan
    return float(text) if FLOAT.match(text) else text
