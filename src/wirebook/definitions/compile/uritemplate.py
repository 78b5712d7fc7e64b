"""Templates: values with placeholders, RFC 6570 level 1 (``/vehicles/{vin}/{sensor}``).

As a filter a template splits a text into literals and bound placeholders; as a template it is filled in. Matching is
linear in the text whatever the text is: a regular expression that never goes back where every placeholder ends with its
segment, else a scan with `str.find`.

    template    = *( literal / placeholder )
    placeholder = "{" 1*( ALPHA / DIGIT / "_" ) "}"        ; any other brace group is literal (D15)

Spec: message/spec.md#value; docs/semantics.md D15-D21.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple
from urllib.parse import quote, unquote

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_]+)\}")
UNRESERVED_OR_ESCAPED = re.compile(r"(?:[A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+\Z")
NOT_IN_URI = re.compile(r"[^A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]|%(?![0-9A-Fa-f]{2})")
# Reading: the grammar excludes the apostrophe, which URIs allow (RFC 3986 sub-delims) and expansion copies: accepted.
ILLEGAL_LITERAL = re.compile(r"[\x00-\x20\x7f-\x9f\"<>\\^`|]|%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class TemplateContext:
    """Where a template stands decides what a placeholder may match there (D17).

    `separator` cuts text and template into segments; a placeholder never crosses one. `forbidden` characters are not
    bound at all. `spans`: a placeholder that is the whole value matches any non-empty text, separators included.
    `uri`: bound text is compared, and reported when embedded, after percent-decoding (D20), and literals are those of
    a URI (`uri_text`); where the slot is `encoded` through and through, as a query is, the text is decoded as a whole.
    """

    name: str
    separator: str = "/"
    forbidden: str = ""
    spans: bool = True
    uri: bool = False
    encoded: bool = False

    @property
    def has_uri_text(self) -> bool:
        """Is the text here a URI as it is sent?"""
        return self.uri and not self.encoded


TEXT = TemplateContext("text")
URI = TemplateContext("uri", uri=True)
PATH = TemplateContext("path", spans=False, uri=True, forbidden="?#")
QUERY = TemplateContext("query", uri=True, encoded=True)
MQTT_TOPIC = TemplateContext("mqtt-topic", forbidden="+#\0", spans=False)
NATS_SUBJECT = TemplateContext("nats-subject", separator=".", forbidden="*> \t\r\n", spans=False)


class Piece(NamedTuple):
    """One segment: literals around placeholder names; ``len(literals) == len(names) + 1``."""

    literals: tuple[str, ...]
    names: tuple[str, ...]


class Bound(NamedTuple):
    """A placeholder's text. `raw` as it stands in the slot, `value` as it is reported, `key` as it is compared."""

    name: str
    raw: str
    value: str
    key: str


class Split(NamedTuple):
    """One reading of a text: the text of each placeholder, in their order, and whether it is the only reading."""

    captures: tuple[str, ...]
    unique: bool


@dataclass(frozen=True)
class Template:
    """A parsed template at a place.

    Shape: `pieces` one for each segment, `fixed` and `varying` the same by position: those without a placeholder, as
    texts, and those with one; `whole` is set when the template is one placeholder and nothing else; `literal_length`
    counts the characters outside of placeholders, separators apart.
    """

    text: str
    place: TemplateContext
    pieces: tuple[Piece, ...]
    fixed: tuple[tuple[int, str], ...]
    varying: tuple[tuple[int, Piece], ...]
    names: tuple[str, ...]
    whole: bool
    literal_length: int

    @property
    def spanning(self) -> bool:
        """Does the only placeholder match across separators?"""
        return self.whole and self.place.spans

    def segments(self, text: str) -> list[str] | None:
        """`text` cut as the template is, or None when the number of segments differs."""
        if self.spanning:
            return [text]
        cut = text.split(self.place.separator, len(self.pieces))
        return cut if len(cut) == len(self.pieces) else None

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """The template as an expression with a group for each placeholder; None unless each ends with its segment.

        Cost: linear in the text, as a group takes all it can and gives nothing back.
        """
        if any(piece.literals[1:] != ("",) for _, piece in self.varying):
            return None
        outside = self.place.forbidden if self.spanning else self.place.forbidden + self.place.separator
        group = f"([^{re.escape(outside)}]++)" if outside else "(.++)"
        parts = (re.escape(piece.literals[0]) + (group if piece.names else "") for piece in self.pieces)
        return re.compile(re.escape(self.place.separator).join(parts), re.DOTALL)

    def match(self, text: str, *, rfc6570: bool = False) -> Split | None:
        """The leftmost-shortest reading of `text`, or None. Cost: linear in `text`."""
        if self.pattern is None:
            split = self._scan(text)
        else:
            found = self.pattern.fullmatch(text)
            split = Split(found.groups(), unique=True) if found else None
        if split and rfc6570 and not all(map(UNRESERVED_OR_ESCAPED.match, split.captures)):
            return None
        return split

    def _scan(self, text: str) -> Split | None:
        segments = self.segments(text)
        if segments is None or any(segments[position] != literal for position, literal in self.fixed):
            return None
        captures: list[str] = []
        unique = True
        for position, piece in self.varying:
            found = scan(piece, segments[position])
            if found is None:
                return None
            unique = unique and (len(found) < 2 or found == scan_from_right(piece, segments[position]))
            captures += found
        allowed = set(self.place.forbidden).isdisjoint("".join(captures))
        return Split(tuple(captures), unique) if allowed else None

    def keys(self, split: Split) -> Sequence[str]:
        """The captures as they compare: decoded where the slot is a URI."""
        return [percent_decode(raw) for raw in split.captures] if self.place.uri else split.captures

    def keeps_escapes(self, text: str) -> bool:
        """Is a placeholder's text here reported otherwise than it compares?"""
        return self.whole and "%" in text and self.place.uri and not self.place.encoded

    def bind(self, name: str, raw: str) -> Bound:
        if not self.place.uri:
            return Bound(name, raw, raw, raw)
        decoded = percent_decode(raw)
        return Bound(name, raw, raw if self.keeps_escapes(raw) else decoded, decoded)

    def expand(self, context: Mapping[str, str], *, encoding: str = "place") -> str:
        """The template filled in (D21).

        `encoding`: ``place`` percent-encodes placeholders embedded in a URI, ``raw`` never, ``rfc6570`` always.
        Raises: KeyError for a name that `context` does not have.
        """
        by_place = encoding == "place" and self.place.uri and (self.place.encoded or not self.whole)
        encode = encoding == "rfc6570" or by_place
        return PLACEHOLDER.sub(lambda m: percent_encode(context[m[1]]) if encode else context[m[1]], self.text)


def percent_encode(text: str) -> str:
    """RFC 6570 level 1 expansion: everything but unreserved characters, as UTF-8, upper-case.

    Half a surrogate pair, which a message may have and none is built with, is encoded as if it were a character.
    """
    return quote(text, safe="", errors="surrogatepass")


def percent_decode(text: str) -> str:
    """One round of decoding; escapes that are no UTF-8 leave the text as it is."""
    if "%" not in text:
        return text
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text


def uri_text(text: str) -> str:
    """`text` with every character that no URI has percent-encoded, as RFC 6570 expands literals (section 3.1).

    Reserved and unreserved characters and existing escapes stay as they are.
    """
    return NOT_IN_URI.sub(lambda found: percent_encode(found[0]), text)


def uri_literals(template: str) -> str:
    """A template whose literals are those of a URI (`uri_text`)."""
    pieces = _AROUND_PLACEHOLDERS.split(template)
    return "".join(piece if place % 2 else uri_text(piece) for place, piece in enumerate(pieces))


_AROUND_PLACEHOLDERS = re.compile(rf"({PLACEHOLDER.pattern.replace('(', '(?:')})")


def has_placeholder(text: str) -> bool:
    return PLACEHOLDER.search(text) is not None


def placeholders(text: str) -> list[str]:
    """The names in `text`, in order, repeats kept."""
    return PLACEHOLDER.findall(text)


@lru_cache(maxsize=4096)
def parse_template(text: str, place: TemplateContext = TEXT) -> Template:
    """`text` as a template at `place`; without placeholders it is one literal."""
    names = tuple(placeholders(text))
    whole = PLACEHOLDER.fullmatch(text) is not None
    cut = [text] if whole and place.spans else _cut(text, place.separator)
    pieces = tuple(map(_piece, cut))
    fixed = tuple((position, piece.literals[0]) for position, piece in enumerate(pieces) if not piece.names)
    varying = tuple((position, piece) for position, piece in enumerate(pieces) if piece.names)
    literal_length = sum(len(literal) for piece in pieces for literal in piece.literals)
    return Template(text, place, pieces, fixed, varying, names, whole, literal_length)


def _cut(text: str, separator: str) -> list[str]:
    """Segments of a template. A placeholder has no separator in it, so the text may be cut as it stands."""
    return text.split(separator)


def _piece(segment: str) -> Piece:
    parts = PLACEHOLDER.split(segment)
    return Piece(tuple(parts[0::2]), tuple(parts[1::2]))


def scan(piece: Piece, text: str) -> list[str] | None:
    """The leftmost-shortest split of `text`, each placeholder at least one character; None when there is none."""
    literals = piece.literals
    if not piece.names:
        return [] if text == literals[0] else None
    if not _ends_fit(literals, text):
        return None
    start, stop = len(literals[0]), len(text) - len(literals[-1])
    captures: list[str] = []
    for literal in literals[1:-1]:
        found = text.find(literal, start + 1, stop)
        if found < 0:
            return None
        captures.append(text[start:found])
        start = found + len(literal)
    if start >= stop:
        return None
    captures.append(text[start:stop])
    return captures


def scan_from_right(piece: Piece, text: str) -> list[str] | None:
    """The rightmost-shortest split: where it equals `scan`, no other split exists."""
    literals = piece.literals
    start, stop = len(literals[0]), len(text) - len(literals[-1])
    captures: list[str] = []
    for literal in reversed(literals[1:-1]):
        found = text.rfind(literal, start, stop - 1)
        if found < 0:
            return None
        captures.append(text[found + len(literal) : stop])
        stop = found
    captures.append(text[start:stop])
    return captures[::-1]


def _ends_fit(literals: Sequence[str], text: str) -> bool:
    first, last = literals[0], literals[-1]
    return len(text) > len(first) + len(last) and text.startswith(first) and text.endswith(last)


# -- several templates that share names -----------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class UnsolvedSegment:
    """One segment to be solved: the slot it belongs to, its piece and its text."""

    slot: str
    template: Template
    piece: Piece
    text: str

    def read(self) -> list[Bound]:
        """The placeholders of the segment by itself, split leftmost-shortest."""
        captures = scan(self.piece, self.text) or ()
        return [self.template.bind(name, raw) for name, raw in zip(self.piece.names, captures, strict=False)]


@dataclass(frozen=True, slots=True)
class PlaceholderConflict:
    """One name, two texts, each with the slot it came from."""

    name: str
    first_slot: str
    first: str
    second_slot: str
    second: str


@dataclass(slots=True)
class Solution:
    """What the placeholders are: `found` has (unit, bound) for every occurrence that gave a value."""

    found: list[tuple[UnsolvedSegment, Bound]]
    ambiguous: bool = False
    conflict: PlaceholderConflict | None = None

    def bindings(self, slot_order: Sequence[str]) -> dict[str, str]:
        """Name to reported text: the first slot that is no URI gives it, else the first slot (D20)."""
        order = {slot: index for index, slot in enumerate(slot_order)}
        ranked = sorted(self.found, key=lambda f: (f[0].template.place.uri, order.get(f[0].slot, len(order))))
        return {bound.name: bound.value for _, bound in reversed(ranked)}


def units_of(slot: str, template: Template, text: str) -> Iterator[UnsolvedSegment]:
    """The segments of `text` that have something to bind; nothing when the template does not fit."""
    segments = template.segments(text) or []
    for position, piece in template.varying if segments else ():
        yield UnsolvedSegment(slot, template, piece, segments[position])


class Known(dict[str, tuple[UnsolvedSegment, Bound]]):
    """Placeholder name to its first occurrence."""


class Solver:
    """Solves segments together (D18): those with one reading first, their values into the rest, until nothing changes.

    `finish` splits what is still free leftmost-shortest, without backtracking; the solution is then `ambiguous`.
    Cost: at most one pass over the waiting units for each placeholder name.
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
            settled = [unit for unit, is_settled in zip(self.waiting, determined, strict=True) if is_settled]
            if not settled:
                return
            self.waiting = [unit for unit, is_settled in zip(self.waiting, determined, strict=True) if not is_settled]
            for unit in settled:
                _settle(unit, self.known, self.solution)

    def finish(self) -> None:
        """Split the segments that are still ambiguous."""
        while self.waiting and self.solution.conflict is None:
            self.solution.ambiguous = True
            _settle(self.waiting.pop(0), self.known, self.solution)
            self.add(())

    def admits(self, units: Sequence[UnsolvedSegment]) -> bool:
        """Could these segments be added without an immediate contradiction?

        Looks at what is known and at the waiting segments that share a placeholder with `units`.
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
    """The solution of segments that are all known at once."""
    solver = Solver()
    solver.add(units)
    solver.finish()
    return solver.solution


def _is_determined(unit: UnsolvedSegment, known: Known) -> bool:
    piece = _substitute(unit, known)
    captures = scan(piece, unit.text)
    return captures is None or len(captures) < 2 or captures == scan_from_right(piece, unit.text)


def _settle(unit: UnsolvedSegment, known: Known, solution: Solution) -> None:
    """Bind the unit's names; a name that contradicts what is known is the solution's conflict."""
    for bound in _read(unit, known):
        first_unit, first = known.setdefault(bound.name, (unit, bound))
        if first.key != bound.key and solution.conflict is None:
            solution.conflict = PlaceholderConflict(bound.name, first_unit.slot, first.value, unit.slot, bound.value)
        solution.found.append((unit, bound))


def _read(unit: UnsolvedSegment, known: Known) -> list[Bound]:
    """The placeholders that the unit binds beyond `known`; all of them when it does not fit what is known."""
    captures = scan(_substitute(unit, known), unit.text)
    if captures is None:
        return unit.read()
    names = (name for name in unit.piece.names if name not in known)
    return [unit.template.bind(name, raw) for name, raw in zip(names, captures, strict=True)]


def _contradicts(bounds: Iterable[Bound], known: Known) -> bool:
    seen = {name: bound.key for name, (_, bound) in known.items()}
    return any(seen.setdefault(bound.name, bound.key) != bound.key for bound in bounds)


def _substitute(unit: UnsolvedSegment, known: Known) -> Piece:
    """The unit's piece with known names turned into literals, spelled as the slot would spell them."""
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
