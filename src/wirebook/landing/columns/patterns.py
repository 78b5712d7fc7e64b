"""Patterns: definitions that differ only in their literal texts, compiled to be checked together.

Catalogues are repetitive: a thousand definitions may be a dozen patterns with a thousand sets of texts. A pattern is a
definition without its literal texts and placeholder names. The texts become columns with one row per definition, so
that one `take` returns the texts of many candidates. The cost of matching depends on the number of patterns, not of
definitions.

Spec: docs/decisions/0004; docs/semantics.md D15-D20, D48.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from wirebook.definitions.compile.definition import Constraint, Definition, Entries
from wirebook.definitions.compile.mediatype import MediaType
from wirebook.definitions.compile.slots import ENVELOPE, EVENT_FORMAT
from wirebook.definitions.compile.uritemplate import TemplateContext
from wirebook.definitions.match.selection import EndpointScope
from wirebook.landing.columns.slot_columns import Rows

MAX_GROUPS: Final = 4
"""The maximum number of groups that a regular expression captures: with five, RE2 takes four times as long."""


class SlotCheck(NamedTuple):
    """The check of one slot in a pattern.

    Shape: `needed`: an absent value does not match. `ranks_when_present`: the value may be absent, and affects the rank
    if it is present. `of_request`: not checked on HTTP responses. `lists`: the value may be a comma-separated list.
    `literal` is the kind of a constant (empty: none); its text is the next one in the pattern. For a template,
    `segments` are regular expressions (RE2) that split the value in the same way but capture different groups: ``l0``,
    ``l1`` ... are literal segments, whose texts are the next ones in the pattern (`literals` is their number); ``p0``,
    ``p1`` ... are placeholders, whose numbers in the pattern are `placeholders`. `uri`: values with escapes or with
    characters that are not allowed in URIs go to the reference.
    """

    section: str
    name: str
    type: str
    needed: bool
    ranks_when_present: bool = False
    of_request: bool = False
    lists: bool = False
    literal: str = ""
    media_type: MediaType | None = None
    segments: tuple[str, ...] = ()
    literals: int = 0
    placeholders: tuple[int, ...] = ()
    uri: bool = False


PatternKey = tuple[bool, str | None, str | None, tuple[SlotCheck, ...]]
"""Whether protocol slots are checked; the kind (``event`` for CloudEvents, ``hidden`` if no message can match, None for
others); the mode of events; and the checks."""


@dataclass(frozen=True, slots=True)
class PatternParts:
    """A definition, split into the key of its pattern, its texts in the order of the checks, and its placeholder
    names."""

    key: PatternKey
    texts: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(eq=False)
class DefinitionPattern:
    """Definitions with the same key. `texts` has one tuple per definition."""

    key: PatternKey
    texts: list[tuple[str, ...]]

    @property
    def checks(self) -> tuple[SlotCheck, ...]:
        return self.key[3]

    @cached_property
    def columns(self) -> list[pa.StringArray]:
        """The texts by position, each a column with one row per definition."""
        return [pa.array(column, pa.string()) for column in zip(*self.texts, strict=True)]


class Patterns:
    """The patterns of `definitions` for the messages of one endpoint scope.

    Shape: indexed by definition number: `pattern_of` (-1: columns cannot check the definition), `member_of` (its row in
    the pattern), `names` (its placeholders) and `in_scope`. `asks_structured`: at least one definition requires
    structured CloudEvents.
    """

    def __init__(self, definitions: Sequence[Definition], scope: EndpointScope, *, shows_protocol: bool) -> None:
        self.definitions = definitions
        self.patterns: list[DefinitionPattern] = []
        self.names: list[tuple[str, ...]] = []
        self.pattern_of = np.full(len(definitions), -1, np.int64)
        self.member_of = np.zeros(len(definitions), np.int64)
        numbers: dict[PatternKey, int] = {}
        for place, definition in enumerate(definitions):
            compiled = compile_pattern(definition, scope, shows_protocol)
            self.names.append(compiled.names if compiled else ())
            if compiled is None:
                continue
            number = numbers.setdefault(compiled.key, len(self.patterns))
            if number == len(self.patterns):
                self.patterns.append(DefinitionPattern(compiled.key, []))
            self.pattern_of[place] = number
            self.member_of[place] = len(self.patterns[number].texts)
            self.patterns[number].texts.append(compiled.texts)
        self.ranks: dict[bool, Rows] = {}
        ranks = [static_ranks(definition, shows_protocol) for definition in definitions]
        for structured in (False, True):
            order = {rank: position for position, rank in enumerate(sorted({pair[structured] for pair in ranks}))}
            self.ranks[structured] = np.array([order[pair[structured]] for pair in ranks], np.int64)
        members = scope.members
        self.in_scope = np.array([members is None or definition.xid in members for definition in definitions], bool)
        modes = (definition.mode or scope.constraints.mode for definition in definitions if definition.is_cloudevent)
        self.asks_structured = "structured" in modes

    def rank(self, mode: str | None) -> Rows:
        """The rank of each definition for messages of a mode; the highest wins."""
        return self.ranks[mode == "structured"]


StaticRank = tuple[int, int, int, int]


def static_ranks(definition: Definition, shows_protocol: bool) -> tuple[StaticRank, StaticRank]:
    """The parts of a definition's rank that do not depend on the message, under the default options: first for messages
    that are not structured events, then for structured events."""
    observed = [c for c in definition.all_constraints if _is_observed(c, shows_protocol)]
    unstructured = [constraint for constraint in observed if constraint.slot.name != EVENT_FORMAT]
    protocol = 0 if definition.protocol is None else 1 if shows_protocol else -1
    rank = _static_rank(unstructured, protocol)
    return rank, rank if len(unstructured) == len(observed) else _static_rank(observed, protocol)


def _static_rank(observed: Sequence[Constraint], protocol: int) -> StaticRank:
    literals = sum(constraint.valued for constraint in observed)
    characters = sum(constraint.template.literal_length for constraint in observed if constraint.template is not None)
    return literals, characters, protocol, sum(constraint.required for constraint in observed)


def _is_observed(constraint: Constraint, shows_protocol: bool) -> bool:
    in_envelope = constraint.slot.section == ENVELOPE or constraint.slot.name == "datacontenttype"
    return not constraint.kind.transport and (in_envelope or shows_protocol)


# -- compiling ------------------------------------------------------------------------------------------------------


def compile_check(constraint: Constraint) -> tuple[SlotCheck, list[str]] | None:
    """The check of one constraint by itself, and its texts; None if columns cannot check it."""
    builder = _PatternBuilder()
    return (builder.checks[0], builder.texts) if builder.add(constraint, lists=False, optional=False) else None


def compile_pattern(definition: Definition, scope: EndpointScope, shows_protocol: bool) -> PatternParts | None:
    """Split a definition into key, texts and placeholder names. None if columns cannot check it, for example because a
    slot is not a single column, or a template can split a value in two ways."""
    builder = _PatternBuilder()
    for constraint in definition.constraints:
        if _is_observed(constraint, shows_protocol) and not builder.add(constraint, lists=False, optional=False):
            return None
    for group in definition.entries if shows_protocol else ():
        is_transport = all(entry.kind.transport for entry in group.entries)
        if not is_transport and not builder.add_entries(group, of_request=False):
            return None
    own = len(builder.names)
    for group in scope.constraints.entries if shows_protocol else ():
        if not builder.add_entries(group, of_request=True):
            return None
    for constraint in scope.constraints.constraints_for(definition) if shows_protocol else ():
        if not builder.add(constraint, lists=False, optional=True):
            return None
    if len(builder.names) > own:  # a placeholder that only the endpoint has is not in the table
        return None
    hidden = definition.protocol is not None and not definition.is_cloudevent and not shows_protocol
    hidden = hidden or definition.has_unknown_envelope
    mode = definition.mode or scope.constraints.mode if definition.is_cloudevent else None
    kind = "hidden" if hidden else "event" if definition.is_cloudevent else None
    key = (shows_protocol, kind, mode, tuple(builder.checks))
    return PatternParts(key, tuple(builder.texts), tuple(builder.names))


class _PatternBuilder:
    """Collects the checks, texts and placeholder names of a definition, constraint by constraint."""

    def __init__(self) -> None:
        self.checks: list[SlotCheck] = []
        self.texts: list[str] = []
        self.names: dict[str, int] = {}

    def add_entries(self, group: Entries, *, of_request: bool) -> bool:
        """Add the check of a group with one entry; False if the group is not a single column."""
        if len(group.entries) > 1 or group.section == "query":
            return False
        return self.add(group.entries[0], group.lists, optional=of_request, of_request=of_request)

    def add(self, constraint: Constraint, lists: bool, *, optional: bool, of_request: bool = False) -> bool:
        """Add the check of a constraint; False if columns cannot check it."""
        needed = not optional and (constraint.required or constraint.implies_presence)
        # Presence changes the rank, except of the event format, which all structured messages have.
        ranks = constraint.fixed and not constraint.implies_presence and constraint.slot.name != EVENT_FORMAT
        segments, literals, placeholders = tuple[str, ...](), list[str](), tuple[int, ...]()
        if constraint.template is not None:
            pieces, names = constraint.template.pieces, constraint.template.names
            if len(set(names)) != len(names) or any(len(piece.names) > 1 for piece in pieces):
                return False
            around = tuple(piece.literals if piece.names else None for piece in pieces)
            segments = _segments(constraint.template.place, around, spanning=constraint.template.spanning)
            literals = [piece.literals[0] for piece in pieces if not piece.names]
            placeholders = tuple(self.names.setdefault(name, len(self.names)) for name in names)
        self.texts += [str(constraint.declared)] if constraint.literal is not None else literals
        self.checks.append(
            SlotCheck(
                constraint.slot.section,
                constraint.slot.name,
                constraint.type,
                needed,
                ranks_when_present=ranks and not optional,
                of_request=of_request,
                lists=lists,
                literal="" if constraint.literal is None else constraint.literal.kind,
                media_type=constraint.media_type,
                segments=segments,
                literals=len(literals),
                placeholders=placeholders,
                uri=constraint.kind.place.uri,
            )
        )
        return True


@lru_cache(maxsize=1024)
def _segments(place: TemplateContext, around: tuple[tuple[str, ...] | None, ...], *, spanning: bool) -> tuple[str, ...]:
    """The regular expressions that split a value as a template does. Cached, because many templates differ only in
    their literal segments.

    `around` has the texts before and after the placeholder of each segment, or None for a literal segment. Unlike
    literal segments, these texts become part of the regular expressions.
    """
    if spanning:
        return (r"\A(?P<p0>(?s:.+))\z",)
    inside = f"[^{_in_class(place.separator)}]*"
    bound = f"[^{_in_class(place.separator + place.forbidden)}]+"
    parts, count = list[tuple[str, str, str, str]](), Counter[str]()
    for texts in around:
        kind, expression = ("l", inside) if texts is None else ("p", bound)
        prefix, suffix = map(_escaped, texts or ("", ""))
        parts.append((prefix, f"{kind}{count[kind]}", expression, suffix))
        count[kind] += 1

    def capturing(groups: range) -> str:
        texts = (
            f"{prefix}({f'?P<{group}>' if number in groups else '?:'}{expression}){suffix}"
            for number, (prefix, group, expression, suffix) in enumerate(parts)
        )
        return rf"\A{_escaped(place.separator).join(texts)}\z"

    return tuple(capturing(range(start, start + MAX_GROUPS)) for start in range(0, len(parts), MAX_GROUPS))


def _in_class(characters: str) -> str:
    return re.escape(characters).replace("\0", r"\x00")


def _escaped(literal: str) -> str:
    """The literal as an RE2 pattern. ASCII characters other than letters, digits and underscores are escaped, NUL by
    its code."""
    return "".join(
        char if char.isalnum() or char == "_" or ord(char) > 127 else r"\x00" if char == "\0" else "\\" + char
        for char in literal
    )
