"""Templates: values with placeholders, RFC 6570 level 1 (``/vehicles/{vin}/{sensor}``).

Matching splits a text into literals and placeholders; expansion replaces the placeholders by values. Matching is linear
in the length of the text: it uses a regular expression without backtracking if every placeholder ends its segment, else
`str.find`.

    template    = *( literal / placeholder )
    placeholder = "{" 1*( ALPHA / DIGIT / "_" ) "}"        ; any other brace group is literal (D15)

Spec: message/spec.md#value; docs/semantics.md D15-D21.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_]+)\}")
UNRESERVED_OR_ESCAPED = re.compile(r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+\Z")
NOT_IN_URI = re.compile(r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]|%(?![0-9A-Fa-f]{2})")
# Reading: the apostrophe is accepted. The grammar of RFC 6570 excludes it, but URIs allow it (RFC 3986 sub-delims), and
# expansion copies it.
ILLEGAL_LITERAL = re.compile(r"[\x00-\x20\x7f-\x9f\"<>\\^`|]|%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class TemplateContext:
    """The rules for placeholders in a kind of slot (D17).

    `separator` divides text and template into segments; a placeholder does not match across segments. A placeholder
    does not match `forbidden` characters. `spans`: a placeholder that is the whole value matches any non-empty text,
    separators included. `uri`: values are percent-decoded before they are compared (D20), and literals are
    percent-encoded (`uri_text`). `encoded`: the text is already percent-decoded, as query values are.
    """

    name: str
    separator: str = "/"
    forbidden: str = ""
    spans: bool = True
    uri: bool = False
    encoded: bool = False

    @property
    def has_uri_text(self) -> bool:
        """Whether the text is a URI as it is sent, not decoded."""
        return self.uri and not self.encoded


TEXT = TemplateContext("text")
URI = TemplateContext("uri", uri=True)
PATH = TemplateContext("path", spans=False, uri=True, forbidden="?#")
QUERY = TemplateContext("query", uri=True, encoded=True)
MQTT_TOPIC = TemplateContext("mqtt-topic", forbidden="+#\0", spans=False)
NATS_SUBJECT = TemplateContext("nats-subject", separator=".", forbidden="*> \t\r\n", spans=False)


COMPILED_AFTER: Final = 20
"""Number of uses after which the pattern of a template is compiled."""


class Piece(NamedTuple):
    """One segment of a template: literals around placeholder names; ``len(literals) == len(names) + 1``."""

    literals: tuple[str, ...]
    names: tuple[str, ...]


class Bound(NamedTuple):
    """A bound placeholder: its text in the slot (`raw`), in reports (`value`) and in comparisons (`key`)."""

    name: str
    raw: str
    value: str
    key: str


class Split(NamedTuple):
    """The text of each placeholder, in template order. `unique`: there is no other way to split the text."""

    captures: tuple[str, ...]
    unique: bool


@dataclass(frozen=True)
class Template:
    """A parsed template.

    `pieces` has one item for each segment. `fixed` has the positions and texts of the segments without placeholders,
    `varying` the positions and pieces of the others. `whole`: the template is a single placeholder. `literal_length`
    is the number of characters outside placeholders, without separators.
    """

    text: str
    place: TemplateContext
    pieces: tuple[Piece, ...]
    fixed: tuple[tuple[int, str], ...]
    varying: tuple[tuple[int, Piece], ...]
    names: tuple[str, ...]
    whole: bool
    literal_length: int
    _uses: int = field(default=0, init=False, repr=False, compare=False)

    @property
    def spanning(self) -> bool:
        """Whether the template is a placeholder that matches across separators."""
        return self.whole and self.place.spans

    def segments(self, text: str) -> list[str] | None:
        """The segments of `text`, or None if the template has another number of segments."""
        if self.spanning:
            return [text]
        cut = text.split(self.place.separator, len(self.pieces))
        return cut if len(cut) == len(self.pieces) else None

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """A regular expression with a group for each placeholder; None unless each placeholder ends its segment.

        Cost: linear in the text, because the groups are possessive.
        """
        if any(piece.literals[1:] != ("",) for _, piece in self.varying):
            return None
        outside = self.place.forbidden if self.spanning else self.place.forbidden + self.place.separator
        group = f"([^{re.escape(outside)}]++)" if outside else "(.++)"
        parts = (re.escape(piece.literals[0]) + (group if piece.names else "") for piece in self.pieces)
        return re.compile(re.escape(self.place.separator).join(parts), re.DOTALL)

    def match(self, text: str, *, rfc6570: bool = False) -> Split | None:
        """Split `text`, with the shortest value for each placeholder from the left; None if it does not match.

        Cost: linear.
        """
        if self._is_rarely_used() or self.pattern is None:
            split = self.match_by_segments(text)
        else:
            match = self.pattern.fullmatch(text)
            split = Split(match.groups(), unique=True) if match else None
        if split and rfc6570 and not all(map(UNRESERVED_OR_ESCAPED.match, split.captures)):
            return None
        return split

    def _is_rarely_used(self) -> bool:
        """Whether the template has few uses so far: compiling its pattern takes as long as twenty matches."""
        if self._uses < COMPILED_AFTER:
            object.__setattr__(self, "_uses", self._uses + 1)
            return True
        return False

    def match_by_segments(self, text: str) -> Split | None:
        """Split `text` as `match` does, without the compiled pattern. Cost: linear."""
        segments = self.segments(text)
        if segments is None or any(segments[position] != literal for position, literal in self.fixed):
            return None
        captures: list[str] = []
        unique = True
        for position, piece in self.varying:
            values = scan(piece, segments[position])
            if values is None:
                return None
            unique = unique and (len(values) < 2 or values == scan_from_right(piece, segments[position]))
            captures += values
        allowed = set(self.place.forbidden).isdisjoint("".join(captures))
        return Split(tuple(captures), unique) if allowed else None

    def keys(self, split: Split) -> Sequence[str]:
        """The captures in the form that is compared: percent-decoded if the slot is a URI."""
        return [percent_decode(raw) for raw in split.captures] if self.place.uri else split.captures

    def keeps_escapes(self, text: str) -> bool:
        """Whether the value of a placeholder is reported without percent-decoding it."""
        return self.whole and "%" in text and self.place.uri and not self.place.encoded

    def bind(self, name: str, raw: str) -> Bound:
        if not self.place.uri:
            return Bound(name, raw, raw, raw)
        decoded = percent_decode(raw)
        return Bound(name, raw, raw if self.keeps_escapes(raw) else decoded, decoded)

    def expand(self, context: Mapping[str, str], *, encoding: str = "place") -> str:
        """Expand the template (D21).

        `encoding`: ``place`` percent-encodes placeholders inside a URI, ``rfc6570`` always, ``raw`` never.
        Raises: KeyError for a name that is not in `context`.
        """
        by_place = encoding == "place" and self.place.uri and (self.place.encoded or not self.whole)
        encode = encoding == "rfc6570" or by_place
        return PLACEHOLDER.sub(lambda m: percent_encode(context[m[1]]) if encode else context[m[1]], self.text)


def percent_encode(text: str) -> str:
    """Percent-encode everything but unreserved characters, as RFC 6570 level 1 does.

    Unpaired surrogates, which received messages may contain, are encoded like other characters.
    """
    return quote(text, safe="", errors="surrogatepass")


def percent_decode(text: str) -> str:
    """Percent-decode once. Text whose escapes are not valid UTF-8 is returned unchanged."""
    if "%" not in text:
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def uri_text(text: str) -> str:
    """Percent-encode the characters that URIs do not allow, as RFC 6570 expands literals (section 3.1).

    Reserved and unreserved characters and existing escapes are not changed.
    """
    return NOT_IN_URI.sub(lambda match: percent_encode(match[0]), text)


def uri_literals(template: str) -> str:
    """Percent-encode the literals of a template (`uri_text`)."""
    pieces = _AROUND_PLACEHOLDERS.split(template)
    return "".join(piece if place % 2 else uri_text(piece) for place, piece in enumerate(pieces))


_AROUND_PLACEHOLDERS = re.compile(rf"({PLACEHOLDER.pattern.replace('(', '(?:')})")


def has_placeholder(text: str) -> bool:
    return PLACEHOLDER.search(text) is not None


def placeholders(text: str) -> list[str]:
    """The placeholder names in `text`, in order, with duplicates."""
    return PLACEHOLDER.findall(text)


@lru_cache(maxsize=4096)
def parse_template(text: str, place: TemplateContext = TEXT) -> Template:
    """Parse a template. A text without placeholders is a single literal."""
    names = tuple(placeholders(text))
    whole = PLACEHOLDER.fullmatch(text) is not None
    segments = [text] if whole and place.spans else text.split(place.separator)  # placeholders contain no separators
    split = (PLACEHOLDER.split(segment) for segment in segments)
    pieces = tuple(Piece(tuple(parts[0::2]), tuple(parts[1::2])) for parts in split)
    fixed = tuple((position, piece.literals[0]) for position, piece in enumerate(pieces) if not piece.names)
    varying = tuple((position, piece) for position, piece in enumerate(pieces) if piece.names)
    literal_length = sum(len(literal) for piece in pieces for literal in piece.literals)
    return Template(text, place, pieces, fixed, varying, names, whole, literal_length)


def scan(piece: Piece, text: str) -> list[str] | None:
    """Split `text`, with the shortest value for each placeholder from the left; None if it does not match.

    Values have at least one character.
    """
    literals = piece.literals
    if not piece.names:
        return [] if text == literals[0] else None
    start, stop = len(literals[0]), len(text) - len(literals[-1])
    if start >= stop or not (text.startswith(literals[0]) and text.endswith(literals[-1])):
        return None
    captures: list[str] = []
    for literal in literals[1:-1]:
        index = text.find(literal, start + 1, stop)
        if index < 0:
            return None
        captures.append(text[start:index])
        start = index + len(literal)
    if start >= stop:
        return None
    captures.append(text[start:stop])
    return captures


def scan_from_right(piece: Piece, text: str) -> list[str] | None:
    """Split `text` with the shortest values from the right. If `scan` returns the same, there is only one way."""
    literals = piece.literals
    start, stop = len(literals[0]), len(text) - len(literals[-1])
    captures: list[str] = []
    for literal in reversed(literals[1:-1]):
        index = text.rfind(literal, start, stop - 1)
        if index < 0:
            return None
        captures.append(text[index + len(literal) : stop])
        stop = index
    captures.append(text[start:stop])
    return captures[::-1]


# -- several templates that share names -----------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class UnsolvedSegment:
    """A segment with placeholders that are not bound yet."""

    slot: str
    template: Template
    piece: Piece
    text: str

    def read(self) -> list[Bound]:
        """Bind the placeholders of the segment without regard to other segments."""
        captures = scan(self.piece, self.text) or ()
        return [self.template.bind(name, raw) for name, raw in zip(self.piece.names, captures, strict=False)]


@dataclass(frozen=True, slots=True)
class PlaceholderConflict:
    """A placeholder with two different values, each with its slot."""

    name: str
    first_slot: str
    first: str
    second_slot: str
    second: str


@dataclass(slots=True)
class Solution:
    """The bound placeholders; `occurrences` has (segment, value) for each occurrence of a placeholder."""

    occurrences: list[tuple[UnsolvedSegment, Bound]]
    ambiguous: bool = False
    conflict: PlaceholderConflict | None = None

    def bindings(self, slot_order: Sequence[str]) -> dict[str, str]:
        """The value of each placeholder in its first slot that is not a URI, else in its first slot (D20)."""
        order = {slot: index for index, slot in enumerate(slot_order)}
        ranked = sorted(
            self.occurrences,
            key=lambda occurrence: (occurrence[0].template.place.uri, order.get(occurrence[0].slot, len(order))),
        )
        return {bound.name: bound.value for _, bound in reversed(ranked)}


def units_of(slot: str, template: Template, text: str) -> Iterator[UnsolvedSegment]:
    """Yield the segments of `text` that have placeholders; none if the template has another number of segments."""
    segments = template.segments(text) or []
    for position, piece in template.varying if segments else ():
        yield UnsolvedSegment(slot, template, piece, segments[position])


class Known(dict[str, tuple[UnsolvedSegment, Bound]]):
    """Maps the name of each bound placeholder to its first occurrence."""


class Solver:
    """Binds the placeholders of several segments (D18).

    Segments that can be split in only one way are bound first. Their values are substituted in the others, until
    nothing changes. `finish` splits the rest with the shortest values from the left, without backtracking; the solution
    is then `ambiguous`. Cost: at most one pass over the waiting segments for each placeholder name.
    """

    def __init__(self) -> None:
        self.solution = Solution([])
        self.known = Known()
        self.waiting: list[UnsolvedSegment] = []

    def add(self, units: Iterable[UnsolvedSegment]) -> None:
        """Add segments and bind every placeholder that they determine."""
        self.waiting += units
        while self.solution.conflict is None:
            determined = [_is_determined(unit, self.known) for unit in self.waiting]
            ready = [unit for unit, is_ready in zip(self.waiting, determined, strict=True) if is_ready]
            if not ready:
                return
            self.waiting = [unit for unit, is_ready in zip(self.waiting, determined, strict=True) if not is_ready]
            for unit in ready:
                _bind_segment(unit, self.known, self.solution)

    def finish(self) -> None:
        """Split the segments that are still ambiguous."""
        while self.waiting and self.solution.conflict is None:
            self.solution.ambiguous = True
            _bind_segment(self.waiting.pop(0), self.known, self.solution)
            self.add(())

    def admits(self, units: Sequence[UnsolvedSegment]) -> bool:
        """Whether these segments agree with the bound placeholders.

        Waiting segments that share a placeholder with `units` are checked, too.
        """
        known = Known(self.known)
        for unit in units:
            bounds = _read(unit, known)
            if _contradicts(bounds, known):
                return False
            if _is_determined(unit, known):
                for bound in bounds:
                    known.setdefault(bound.name, (unit, bound))
        new = known.keys() - self.known.keys()
        related = (unit for unit in self.waiting if not new.isdisjoint(unit.piece.names))
        return not any(_contradicts(_read(unit, known), known) for unit in related)


def solve(units: Iterable[UnsolvedSegment]) -> Solution:
    """Bind the placeholders of all segments."""
    solver = Solver()
    solver.add(units)
    solver.finish()
    return solver.solution


def _is_determined(unit: UnsolvedSegment, known: Known) -> bool:
    piece = _substitute(unit, known)
    captures = scan(piece, unit.text)
    return captures is None or len(captures) < 2 or captures == scan_from_right(piece, unit.text)


def _bind_segment(unit: UnsolvedSegment, known: Known, solution: Solution) -> None:
    """Bind the placeholders of a segment. If a value contradicts a known one, record the conflict in the solution."""
    for bound in _read(unit, known):
        first_unit, first = known.setdefault(bound.name, (unit, bound))
        if first.key != bound.key and solution.conflict is None:
            solution.conflict = PlaceholderConflict(bound.name, first_unit.slot, first.value, unit.slot, bound.value)
        solution.occurrences.append((unit, bound))


def _read(unit: UnsolvedSegment, known: Known) -> list[Bound]:
    """The unknown placeholders of a segment; all of its placeholders if the segment contradicts the known ones."""
    captures = scan(_substitute(unit, known), unit.text)
    if captures is None:
        return unit.read()
    names = (name for name in unit.piece.names if name not in known)
    return [unit.template.bind(name, raw) for name, raw in zip(names, captures, strict=True)]


def _contradicts(bounds: Iterable[Bound], known: Known) -> bool:
    seen = {name: bound.key for name, (_, bound) in known.items()}
    return any(seen.setdefault(bound.name, bound.key) != bound.key for bound in bounds)


def _substitute(unit: UnsolvedSegment, known: Known) -> Piece:
    """The piece of a segment, with known placeholders replaced by literals that are encoded as in the slot."""
    if not any(name in known for name in unit.piece.names):
        return unit.piece
    literals, names = [unit.piece.literals[0]], []
    for name, literal in zip(unit.piece.names, unit.piece.literals[1:], strict=True):
        if name in known:
            literals[-1] += _spelled(unit, known[name][1]) + literal
        else:
            names.append(name)
            literals.append(literal)
    return Piece(tuple(literals), tuple(names))


def _spelled(unit: UnsolvedSegment, bound: Bound) -> str:
    if not unit.template.place.uri:
        return bound.key
    encoded = percent_encode(bound.key)
    return encoded if encoded in unit.text else bound.raw if bound.raw in unit.text else bound.key
