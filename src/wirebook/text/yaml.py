"""Read catalogue documents in YAML: a value that JSON can represent, and the position of every part.

    read_yaml(data, "catalogue.yaml").value

Scalars are read by the core schema of YAML 1.2, so ``on`` and ``2024-01-01`` are strings. Keys are always strings.
These are errors: duplicate keys with different values, tags outside the core schema, a second document, and aliases
that expand beyond the limits. A duplicate key with an equal value is reported. ``<<`` merges mappings as in YAML 1.1.

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
from wirebook.text.json import are_equal
from wirebook.text.json_documents import is_deeper_than
from wirebook.text.pointers import child
from wirebook.text.positions import MAX_POINTER
from wirebook.text.source import (
    DEFAULT_LIMITS,
    DocumentLimits,
    Source,
    SourcePosition,
    decode_document,
    duplicate_member,
    shortened_pointer,
)

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
ALLOWED_TAGS: Final = ", ".join(f"'!!{name}'" for name in TAGS.values())


def read_yaml(data: bytes, name: str, limits: DocumentLimits = DEFAULT_LIMITS) -> Source:
    """Read the document in `data`. JSON documents are YAML documents, too.

    Raises: WirebookError (too-large, not-utf-8, syntax-error, duplicate-member, not-a-number, too-deep)
    """
    text, problems = decode_document(data, name, limits)
    builder = _YamlBuilder(name, limits)
    try:
        for event in yaml.parse(text, Loader=LOADER):
            builder.add(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).split("\n")[0]
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        pointer = builder.current_pointer()
        problem = Problem("syntax-error", reason, file=name, line=line, column=column, pointer=pointer)
        raise WirebookError(problem) from None
    if is_deeper_than(builder.root, limits.depth):
        message = f"aliases expand to more than {limits.depth} levels"
        raise WirebookError(Problem("too-deep", message, file=name, line=1, column=1))
    return Source(name, builder.root, (*problems, *builder.problems), partial(dict, builder.places))


@dataclass(slots=True)
class _OpenNode:
    """A mapping or sequence whose end has not been read yet.

    Shape: `key` is the current key, and `duplicate` its position if the mapping already has the key. `merges` are the
    values of ``<<``. `values` counts the values inside, with all aliases expanded.
    """

    value: Any
    pointer: str
    anchor: str | None
    key: str | None = None
    duplicate: SourcePosition | None = None
    merges: list[Any] = field(default_factory=list)
    values: int = 1


class _YamlBuilder:
    """Builds values from YAML events, one at a time and without recursion."""

    def __init__(self, name: str, limits: DocumentLimits) -> None:
        self.name, self.limits = name, limits
        self.root: Any = None
        self.places: dict[str, SourcePosition] = {"": SourcePosition(1, 1)}
        self.stack: list[_OpenNode] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.documents = 0
        self.problems: list[Problem] = []

    def add(self, event: Any) -> None:
        handler = getattr(self, f"_{type(event).__name__}", None)
        if handler is not None:
            handler(event)

    def current_pointer(self) -> str:
        """Return the pointer of the value that comes next."""
        if not self.stack:
            return ""
        top = self.stack[-1]
        token = len(top.value) if isinstance(top.value, list) else top.key
        return top.pointer if token is None or len(top.pointer) > MAX_POINTER else child(top.pointer, token)

    # -- events -------------------------------------------------------------------------------------------------

    def _DocumentStartEvent(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            self._raise(
                event, "syntax-error", "a second document begins here; write each document to a file of its own"
            )

    def _ScalarEvent(self, event: Any) -> None:
        if self._is_key():
            self._add_key(event)
        else:
            self._add_value(event, self._scalar(event), event.anchor, 1)

    def _MappingStartEvent(self, event: Any) -> None:
        self._open(event, {}, "map")

    def _SequenceStartEvent(self, event: Any) -> None:
        self._open(event, [], "seq")

    def _MappingEndEvent(self, event: Any) -> None:
        top = self.stack.pop()
        for merged in top.merges:
            if not isinstance(merged, dict):
                self._raise(event, "syntax-error", "the value of '<<' must be a mapping or a sequence of mappings")
            for key, value in merged.items():
                top.value.setdefault(key, value)
        self._add_value(event, top.value, top.anchor, top.values)

    def _SequenceEndEvent(self, event: Any) -> None:
        top = self.stack.pop()
        self._add_value(event, top.value, top.anchor, top.values)

    def _AliasEvent(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            message = f"the alias '*{event.anchor}' has no anchor; add '&{event.anchor}' to an earlier value"
            self._raise(event, "syntax-error", message)
        if self._is_key():
            self._raise(event, "syntax-error", "an alias cannot be a key; write the key as a string")
        value, values = self.anchors[event.anchor]
        self._add_value(event, value, None, values)

    # -- keys and values ----------------------------------------------------------------------------------------

    def _is_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def _add_key(self, event: Any) -> None:
        top = self.stack[-1]
        top.key = event.value
        pointer = self.current_pointer()
        top.duplicate = _place(event) if event.value in top.value else None
        self.places.setdefault(pointer, _place(event))

    def _add_value(self, event: Any, value: Any, anchor: str | None, values: int) -> None:
        if anchor is not None:
            self.anchors[anchor] = (value, values)
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        top.values += values
        if top.values > self.limits.values:
            self._raise(event, "too-large", f"aliases expand to more than {self.limits.values} values")
        if isinstance(top.value, list):
            self.places.setdefault(self.current_pointer(), _place(event))
            top.value.append(value)
        elif top.key == MERGE:
            top.merges += value if isinstance(value, list) else [value]
            top.key = None
        else:
            if top.duplicate is None:
                top.value[top.key] = value
            else:
                pointer, same = self.current_pointer(), are_equal(top.value[top.key], value)
                problem = duplicate_member(self.name, pointer, self.places[pointer], top.duplicate, are_equal=same)
                if not same:
                    raise WirebookError(problem)
                self.problems.append(problem)
            top.key = None

    def _open(self, event: Any, value: Any, kind: str) -> None:
        if self._is_key():
            self._raise(event, "syntax-error", "a key must be a string, not a mapping or a sequence")
        if event.tag is not None and TAGS.get(event.tag) != kind:
            self._raise(event, "syntax-error", f"the tag '{event.tag}' is not one of {ALLOWED_TAGS}")
        if len(self.stack) >= self.limits.depth:
            self._raise(event, "too-deep", f"nested deeper than {self.limits.depth} levels")
        pointer = self.current_pointer()
        if self.stack and isinstance(self.stack[-1].value, list):
            self.places.setdefault(pointer, _place(event))
        self.stack.append(_OpenNode(value, pointer, event.anchor))

    def _scalar(self, event: Any) -> Any:
        if event.tag is not None and (event.tag not in TAGS or TAGS[event.tag] in ("map", "seq")):
            self._raise(event, "syntax-error", f"the tag '{event.tag}' is not one of {ALLOWED_TAGS}")
        if event.tag == "tag:yaml.org,2002:str" or (event.tag is None and not event.implicit[0]):
            return event.value
        value = _core_schema(event.value)
        if isinstance(value, float) and not math.isfinite(value):
            self._raise(event, "not-a-number", f"'{event.value}' is not a JSON number; quote it to make it a string")
        return value

    def _raise(self, event: Any, code: str, message: str) -> NoReturn:
        line, column = _place(event)
        pointer = shortened_pointer(self.current_pointer())
        raise WirebookError(Problem(code, message, file=self.name, line=line, column=column, pointer=pointer))


def _place(event: Any) -> SourcePosition:
    return SourcePosition(event.start_mark.line + 1, event.start_mark.column + 1)


def _core_schema(text: str) -> Any:
    """Return the value of a plain scalar: null, a boolean, a number or a string."""
    if NULL.match(text):
        return None
    if boolean := BOOLEAN.match(text):
        return boolean["true"] is not None
    if INTEGER.match(text):
        return int(text)
    if OCTAL.match(text):
        return int(text[2:], 8)
    if HEXADECIMAL.match(text):
        return int(text[2:], 16)
    if NOT_A_NUMBER.match(text):
        return math.nan
    return float(text) if FLOAT.match(text) else text
