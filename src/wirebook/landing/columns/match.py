"""Matching by columns: the definition of each message, and its placeholder values.

A match is returned only if the reference (`definitions.match.matcher`) would certainly return the same; the reference
reads all other rows. Candidates come from the same index. All (row, candidate) pairs of a pattern are checked at once.

Spec: message/spec.md#message-definition-matching; docs/semantics.md D17-D20, D48.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.bindings.attributes import URI_PATTERN, URI_REFERENCE_PATTERN
from wirebook.definitions.compile.mediatype import MediaType, parse_media_type
from wirebook.definitions.compile.slots import BARE
from wirebook.definitions.compile.values import CHECKS, NotOfType
from wirebook.landing.columns.candidates import CandidateFinder, CandidatePairs
from wirebook.landing.columns.message_columns import MessageColumns
from wirebook.landing.columns.patterns import DefinitionPattern, Patterns, SlotCheck
from wirebook.landing.columns.slot_columns import (
    OFFSET,
    SECOND,
    UNPRINTABLE,
    Mask,
    Rows,
    SlotColumn,
    codes_of,
    is_plain,
    mask_of,
    not_in_uri,
)

# Types whose canonical form is the text itself if it has no control characters.
TEXT_TYPES: Final = frozenset({"string", "ascii", "uritemplate", "any"})
# Patterns that match only values of the type, but not all of them.
TYPE_PATTERNS: Final = {
    "symbol": r"^[A-Za-z0-9_]+$",
    "boolean": r"^(true|false)$",
    "integer": r"^(0|-?[1-9][0-9]{0,8})$",
    "uint32": r"^(0|[1-9][0-9]{0,8})$",
    "uri": rf"^({URI_PATTERN})$",
    "urireference": rf"^({URI_REFERENCE_PATTERN})$",
    "timestamp": SECOND + r"(\.[0-9]{1,9})?" + OFFSET,
}


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """Rows `start` to `stop` of `messages`, which certainly match definitions of one group.

    Shape: `numbers` has the definition number of each row, ascending. `bindings` maps each placeholder to a column with
    one value per row; null where its slot is absent.
    """

    messages: MessageColumns
    start: int
    stop: int
    numbers: Rows
    bindings: dict[str, pa.StringArray]

    def __len__(self) -> int:
        return self.stop - self.start

    def pick(self, whole: pa.Array) -> pa.Array:
        """The values of these rows in a column of the messages."""
        return whole.slice(self.start, len(self))


@dataclass(slots=True)
class CandidateFit:
    """Results for the pairs of one pattern: whether they match, whether this is certain, and the placeholder values, by
    number of the placeholder in the pattern."""

    fits: Mask
    certain: Mask
    captures: dict[int, pa.StringArray]


class MessageMatches(NamedTuple):
    """The certain results of matching messages. `matched` has the matches, with the rows in a new order; `unmatched`
    has the rows that certainly match no definition."""

    matched: Iterator[MatchedRows]
    unmatched: Rows


def match_messages(
    messages: MessageColumns, candidates: CandidateFinder, patterns: Patterns, groups: Rows
) -> MessageMatches:
    """Match messages with the definitions in `patterns`.

    `groups` has the group number of each definition. Definitions of a group must share a pattern and placeholder names.
    The matches of a group are returned as adjacent rows.
    Cost: that of finding the candidates, then column checks for each pattern.
    """
    pairs = candidates.find(messages)
    doubtful = messages.doubtful | candidates.unindexed(messages)
    fits, certain = np.zeros(len(pairs.rows), bool), np.zeros(len(pairs.rows), bool)
    captures: dict[int, tuple[Rows, dict[int, pa.StringArray]]] = {}
    for number, places in _by_pattern(pairs, patterns):
        members = patterns.member_of[pairs.definitions[places]]
        verdict = _check_pattern(messages, patterns.patterns[number], pairs.rows[places], members)
        fits[places], certain[places] = verdict.fits, verdict.certain
        captures[number] = places, verdict.captures
    if patterns.asks_structured and (hiding := messages.may_hide_structured) is not None:
        doubtful |= hiding
    certain &= ~doubtful[pairs.rows]
    chosen = _best(pairs, fits, certain, patterns.rank(messages.mode), len(messages))
    matched = _matched(messages, pairs, _Winners(chosen, patterns, captures, groups)) if len(chosen) else iter(())
    unmatched = ~doubtful
    unmatched[pairs.rows[fits | ~certain]] = False
    return MessageMatches(matched, np.flatnonzero(unmatched))


# -- comparing values and pairs with patterns -----------------------------------------------------------------------


def fit_column(check: SlotCheck, text: pa.StringArray, expected: list[Any]) -> CandidateFit:
    """Compare the values of a slot with a check. No value may be absent. `expected` has the texts of the check, each as
    a scalar or as a column with one text per value."""
    verdict = CandidateFit(np.ones(len(text), bool), np.ones(len(text), bool), {})
    verdict.fits, verdict.certain = _fit(verdict, check, text, expected)
    return verdict


def _by_pattern(pairs: CandidatePairs, patterns: Patterns) -> Iterator[tuple[int, Rows]]:
    """Each pattern number with the positions of its pairs. Pairs without a pattern are left out: they stay
    uncertain."""
    if not len(pairs.rows):
        return
    numbers = patterns.pattern_of[pairs.definitions]
    order = np.argsort(numbers, kind="stable")
    distinct, starts = np.unique(numbers[order], return_index=True)
    for number, places in zip(distinct.tolist(), np.split(order, starts[1:]), strict=True):
        if number >= 0:
            yield number, places


def _check_pattern(messages: MessageColumns, pattern: DefinitionPattern, rows: Rows, members: Rows) -> CandidateFit:
    """Check rows against their candidates in one pattern. `members` are the positions of the candidates in it."""
    verdict = CandidateFit(np.ones(len(rows), bool), np.ones(len(rows), bool), {})
    _, kind, mode, checks = pattern.key
    if kind == "hidden" or (kind == "event" and (not messages.is_cloudevent or mode not in (None, messages.mode))):
        verdict.fits[:] = False
        return verdict
    texts = iter(pattern.columns)
    for check in checks:
        column = messages.column(check.section, check.name)
        own_texts = [next(texts) for _ in range(check.literals + bool(check.literal))]
        if column is None:
            verdict.certain[:] = False
            return verdict
        expected = [text.take(pa.array(members)) if len(pattern.texts) > 1 else text[0] for text in own_texts]
        _apply_check(verdict, check, column.take(rows), expected)
        if check.of_request and messages.protocol == "HTTP":
            method = messages.column(BARE, "method")
            verdict.certain &= np.zeros(len(rows), bool) if method is None else method.take(rows).present
    if kind is None and messages.is_reinterpreted:  # the message may also match as it was received
        verdict.certain &= ~verdict.fits
    return verdict


def _apply_check(verdict: CandidateFit, check: SlotCheck, column: SlotColumn, expected: list[Any]) -> None:
    """Apply one check of a pattern to a column. Results for pairs that are already excluded do not matter."""
    present = column.present
    fits, certain = _fit(verdict, check, column.text, expected)
    sure = np.where(present, certain, True) & ~column.doubtful
    if check.ranks_when_present:
        sure &= present
    if check.uri and not fits.all():  # it may match after the reference has percent-encoded it
        sure &= fits | ~not_in_uri(column.text)
    if check.lists:  # one member may match; which one a template binds depends on other slots
        sure &= ~mask_of(pc.match_substring(column.text, ",")) | (fits & (not check.segments))
    verdict.certain &= sure | ~verdict.fits
    verdict.fits &= np.where(present, fits, not check.needed)


def _fit(verdict: CandidateFit, check: SlotCheck, text: pa.StringArray, expected: list[Any]) -> tuple[Mask, Mask]:
    """A mask of the values that match, and a mask of the values for which this is certain."""
    everywhere = np.ones(len(text), bool)
    if check.media_type is not None:
        return _fits_media_type(check.media_type, text), everywhere
    typed = _of_type(check.type, text)
    if check.literal:
        if check.type == "any" and check.literal != "text":  # a string is not equal to a number with the same text
            return np.zeros(len(text), bool), np.zeros(len(text), bool)
        same = mask_of(pc.equal(text, expected[0]))
        return (same, everywhere) if check.literal == "text" else (same & typed, same & typed)
    if check.segments:
        fits, certain = _fit_template(verdict, check, text, expected)
        return fits & typed, certain & (typed | ~fits)
    if check.type in TYPE_PATTERNS and not typed.all():
        return typed | _of_other_form(check.type, text, ~typed), everywhere
    return typed, typed


def _of_type(type_: str, text: pa.StringArray) -> Mask:
    """A mask of the values that are certainly of a type."""
    if type_ == "any":
        return np.ones(len(text), bool)
    if type_ in TEXT_TYPES:
        if is_plain(text):
            return np.ones(len(text), bool)
        plain = ~mask_of(pc.match_substring_regex(text, UNPRINTABLE))
        return plain if type_ != "ascii" else plain & mask_of(pc.string_is_ascii(text))
    pattern = TYPE_PATTERNS.get(type_)
    return mask_of(pc.match_substring_regex(text, pattern)) if pattern else np.zeros(len(text), bool)


def _of_other_form(type_: str, text: pa.StringArray, rows: Mask) -> Mask:
    """A mask of the values in `rows` that are of a type although they do not match its pattern. Each distinct value is
    checked once."""
    encoded = pc.if_else(pa.array(rows), text, pa.scalar(None, pa.string())).dictionary_encode()
    fits = np.array([False, *(_is_of_type(type_, value) for value in encoded.dictionary.to_pylist())])
    return np.asarray(fits[codes_of(encoded)])


def _is_of_type(type_: str, value: str) -> bool:
    try:
        CHECKS[type_](value)
    except NotOfType:
        return False
    return True


def _fits_media_type(declared: MediaType, text: pa.StringArray) -> Mask:
    """A mask of the content types that satisfy the declared one. Each distinct content type is compared once."""
    encoded = text.dictionary_encode()
    parsed = map(parse_media_type, encoded.dictionary.to_pylist())
    fits = np.array([False, *(actual is not None and actual.satisfies(declared) for actual in parsed)])
    return np.asarray(fits[codes_of(encoded)])


def _fit_template(
    verdict: CandidateFit, check: SlotCheck, text: pa.StringArray, literals: list[Any]
) -> tuple[Mask, Mask]:
    """A mask of the values that match a template, and a mask of those for which this is certain. Adds the captured
    placeholder values to `verdict`; they must agree with earlier ones."""
    cuts = [pc.extract_regex(text, expression) for expression in check.segments]
    groups = {field.name: cut.field(field.name) for cut in cuts for field in cut.type}
    fits, certain = mask_of(cuts[0].is_valid()), np.ones(len(text), bool)
    for number, literal in enumerate(literals):
        fits &= mask_of(pc.equal(groups[f"l{number}"], literal))
    for place, number in enumerate(check.placeholders):
        captured = groups[f"p{place}"]
        if check.uri:  # the reference decodes escapes before it compares
            certain &= ~mask_of(pc.match_substring(captured, "%"))
        known = verdict.captures.setdefault(number, captured)
        if known is not captured:
            fits &= ~mask_of(pc.not_equal(known, captured))
            certain &= mask_of(known.is_valid()) | ~fits
    return fits, certain


# -- best match of a row --------------------------------------------------------------------------------------------


def _best(pairs: CandidatePairs, fits: Mask, certain: Mask, rank: Rows, count: int) -> Rows:
    """The positions of the winning pairs: the best candidate of each row whose pairs are all certain (D48). A row with
    a tie has no winner."""
    uncertain = np.zeros(count, bool)
    uncertain[pairs.rows[~certain]] = True
    places = np.flatnonzero(fits & ~uncertain[pairs.rows])
    rows, ranks = pairs.rows[places], rank[pairs.definitions[places]]
    order = np.lexsort((-ranks, rows))
    places, rows, ranks = places[order], rows[order], ranks[order]
    follows = rows[1:] == rows[:-1]
    first = np.concatenate(([True], ~follows))[: len(rows)]
    tied = np.concatenate((follows & (ranks[1:] == ranks[:-1]), [False]))[: len(rows)]
    return places[first & ~tied]


@dataclass(frozen=True, slots=True)
class _Winners:
    """The positions of the winning pairs, the patterns and groups of all definitions, and the captures by pattern."""

    places: Rows
    patterns: Patterns
    captures: dict[int, tuple[Rows, dict[int, pa.StringArray]]]
    groups: Rows


def _matched(messages: MessageColumns, pairs: CandidatePairs, winners: _Winners) -> Iterator[MatchedRows]:
    """The matches of each group, as adjacent rows of messages that are sorted by group and definition."""
    patterns, definitions = winners.patterns, pairs.definitions[winners.places]
    groups = winners.groups[definitions]
    order = np.lexsort((definitions, groups))
    chosen, definitions, groups = winners.places[order], definitions[order], groups[order]
    ordered = messages.take(pairs.rows[chosen])
    where = np.zeros(len(pairs.rows), np.int64)  # the position of a pair among those of its pattern
    for places, _ in winners.captures.values():
        where[places] = np.arange(len(places))
    starts = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1]))).tolist()
    for start, stop in zip(starts, [*starts[1:], len(groups)], strict=True):
        number = int(definitions[start])
        matching = pa.array(where[chosen[start:stop]])
        _, probed = winners.captures[int(patterns.pattern_of[number])]
        names = patterns.names[number]
        bindings = {names[place]: text.take(matching) for place, text in probed.items()}
        yield MatchedRows(ordered, start, stop, definitions[start:stop], bindings)
