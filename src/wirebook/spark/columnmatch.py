"""Matching by columns: which definition each message of a frame fits, and its placeholder values.

The column engine says `settled` only where it is certain to say what `message.matcher` says; every other row is read
again by the reference. Candidates come from the same index, then each candidate is held against all its rows at once.

Spec: message/spec.md#message-definition-matching; message-semantics D17-D20, D48.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirebook.message.definition import Constraint, Definition
from wirebook.message.index import Index, Part
from wirebook.message.index import Mask as IndexMask
from wirebook.message.matcher import Found, fit
from wirebook.message.selection import Scope
from wirebook.message.slots import ENVELOPE
from wirebook.message.uritemplate import Template
from wirebook.spark.frames import UNPRINTABLE, Column, Frame, Mask, Rows, is_plain, mask_of

# Types whose canonical form is the text itself, once it has no control characters.
TEXT_TYPES: Final = frozenset({"string", "ascii", "uritemplate", "any"})
# A pattern that only values of the type fit (not all of them: the rest is left to the reference).
TYPE_PATTERNS: Final = {
    "symbol": r"^[A-Za-z0-9_]+$",
    "boolean": r"^(true|false)$",
    "integer": r"^(0|-?[1-9][0-9]{0,8})$",
    "uint32": r"^(0|[1-9][0-9]{0,8})$",
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]*:([A-Za-z0-9._~:/?#@!$&'()*+,;=-])+$",
    "urireference": r"^[A-Za-z0-9._~:/?#@!$&'()*+,;=-]*$",
    "timestamp": r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
    r"(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
}


@dataclass(slots=True)
class Verdict:
    """One candidate on some rows: where it fits, where that is certain, and what its placeholders are there."""

    fits: Mask
    certain: Mask
    bindings: dict[str, pa.StringArray] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Matched:
    """Rows of a frame that certainly have this definition.

    Shape: `rows` are places in the frame, neighbours as far as they can be (`is_run`); `bindings` has a text for each.
    """

    frame: Frame
    definition: Definition
    rows: Rows
    bindings: dict[str, pa.StringArray]

    def __len__(self) -> int:
        return len(self.rows)

    def pick(self, whole: pa.Array) -> pa.Array:
        """These rows of a column of the frame. Cost: nothing when they are neighbours."""
        first, count = int(self.rows[0]), len(self.rows)
        if int(self.rows[-1]) - first == count - 1:
            return whole.slice(first, count)
        return whole.take(pa.array(self.rows))

    def only(self, chosen: Mask) -> Matched:
        """These of the rows alone."""
        if chosen.all():
            return self
        kept = pa.array(np.flatnonzero(chosen))
        bindings = {name: text.take(kept) for name, text in self.bindings.items()}
        return Matched(self.frame, self.definition, self.rows[chosen], bindings)


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbours in a frame that have the same candidates: the rows from `start` to `stop`."""

    frame: Frame
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def column(self, section: str, name: str) -> Column | None:
        column = self.frame.column(section, name)
        return None if column is None else column.slice(self.start, self.stop)


# -- candidates -----------------------------------------------------------------------------------------------------


def match_frame(frame: Frame, index: Index, scope: Scope) -> Iterator[Matched]:
    """The certain matches of a frame, whose rows are put in another order for it.

    Cost: one look-up for each mask and row, then column checks for each definition that has rows.
    """
    elsewhere = scope.protocol and frame.shows_protocol and scope.protocol != frame.protocol
    if scope.empty or elsewhere or not len(frame):
        return
    for candidates, group in _candidate_groups(frame, index):
        chosen = [each for each in candidates if scope.members is None or each.xid in scope.members]
        if chosen:
            yield from _match_group(group, chosen, scope)


def _candidate_groups(frame: Frame, index: Index) -> Iterator[tuple[list[Definition], Group]]:
    """Rows with the same candidates, as neighbours of one frame."""
    code = np.zeros(len(frame), np.int64)
    sets: list[tuple[int, ...]] = [()]
    for protocol in (frame.protocol, None) if frame.shows_protocol else tuple(index.tables):
        for mask, table in index.tables.get(protocol, {}).items():
            found, numbers = _probe(frame, mask, table)
            pairs, code = np.unique(code * (len(numbers) + 1) + found, return_inverse=True)
            sets = [_joined(sets, numbers, int(pair), len(numbers) + 1) for pair in pairs]
    order = np.argsort(code, kind="stable")
    starts = np.searchsorted(code[order], np.arange(len(sets) + 1)).tolist()
    ordered = frame.take(order)
    for number, candidates in enumerate(sets):
        if candidates and starts[number] < starts[number + 1]:
            group = Group(ordered, starts[number], starts[number + 1])
            yield [index.definitions[each] for each in sorted(candidates)], group


def _joined(sets: list[tuple[int, ...]], numbers: list[tuple[int, ...]], pair: int, base: int) -> tuple[int, ...]:
    before, found = divmod(pair, base)
    return sets[before] + (numbers[found - 1] if found else ())


def _probe(
    frame: Frame, mask: IndexMask, table: Mapping[tuple[object, ...], list[int]]
) -> tuple[Rows, list[tuple[int, ...]]]:
    """For each row the number (from 1) of the candidates that a mask gives it, 0 for none; and the candidates."""
    if not mask:
        everyone = table.get((), [])
        return np.ones(len(frame), np.int64), [tuple(everyone)]
    numbers = {key: place for place, key in enumerate(table, 1)}
    parts = [_part_keys(frame, part) for part in mask]
    found = map(numbers.get, zip(*parts, strict=True), repeat(0))
    return np.fromiter(found, np.int64, len(frame)), [tuple(each) for each in table.values()]


def _part_keys(frame: Frame, part: Part) -> Sequence[Any]:
    """Each row's key for one part of a mask; None where it has none."""
    column = frame.column(part.section, part.name)
    if column is None:
        return [None] * len(frame)
    if not part.separator:
        return list(column.text.to_pylist())
    cut = pc.split_pattern(column.text, part.separator)
    counts = pc.fill_null(pc.list_value_length(cut), 0).to_numpy(zero_copy_only=False)
    fits = counts == part.segments if part.segments else counts > max(part.positions)
    keys = np.full(len(frame), None, dtype=object)
    rows = np.flatnonzero(fits)
    if len(rows):
        kept = cut.take(pa.array(rows))
        segments = [pc.list_element(kept, position).to_pylist() for position in part.positions]
        keys[rows] = _tuples(segments, len(rows))
    return keys.tolist()


def _tuples(segments: list[list[str]], count: int) -> Any:
    made = np.empty(count, dtype=object)
    made[:] = list(zip(*segments, strict=True))
    return made


# -- candidates of a group against its rows -------------------------------------------------------------------------


def _match_group(group: Group, candidates: list[Definition], scope: Scope) -> Iterator[Matched]:
    """The strictly best fitting candidate of each row, where all verdicts are certain (D48)."""
    verdicts = [_verdict(group, definition, scope) for definition in candidates]
    certain = np.logical_and.reduce([verdict.certain for verdict in verdicts])
    ranks = [static_rank(definition, group.frame.shows_protocol) for definition in candidates]
    for place, (definition, verdict) in enumerate(zip(candidates, verdicts, strict=True)):
        rivals = [v.fits for other, v in enumerate(verdicts) if other != place and ranks[other] >= ranks[place]]
        best = np.logical_and.reduce([verdict.fits, certain, *(~each for each in rivals)])
        if best.any():
            rows = np.arange(group.start, group.stop)
            yield Matched(group.frame, definition, rows, verdict.bindings).only(best)


def static_rank(definition: Definition, shows_protocol: bool) -> tuple[int, int, int, int]:
    """The members of the rank that do not depend on the message, under the default options; a tie is left to it."""
    observed = [each for each in definition.all_constraints if _is_observed(each, shows_protocol)]
    literals = sum(each.valued for each in observed)
    characters = sum(each.template.literal_length for each in observed if each.template is not None)
    protocol = 0 if definition.protocol is None else 1 if shows_protocol else -1
    return literals, characters, protocol, sum(each.required for each in observed)


def _is_observed(constraint: Constraint, shows_protocol: bool) -> bool:
    in_envelope = constraint.slot.section == ENVELOPE or constraint.slot.name == "datacontenttype"
    return not constraint.kind.transport and (in_envelope or shows_protocol)


def _verdict(group: Group, definition: Definition, scope: Scope) -> Verdict:
    frame = group.frame
    verdict = Verdict(np.ones(len(group), bool), ~frame.doubtful[group.start : group.stop])
    hidden = definition.protocol and not definition.is_cloudevent and not frame.shows_protocol
    wanted = definition.mode or scope.mode
    other_mode = definition.is_cloudevent and wanted not in (None, frame.mode)
    if hidden or other_mode or (definition.is_cloudevent and not frame.is_cloudevent):
        verdict.fits[:] = False
        return verdict
    for constraint, column in _columns(group, definition, scope):
        if column is None:
            verdict.certain[:] = False
            return verdict
        _hold(verdict, constraint, column)
        if not verdict.fits.any():
            break
    return verdict


def _columns(group: Group, definition: Definition, scope: Scope) -> Iterator[tuple[Constraint, Column | None]]:
    """Each constraint with its column; None where the slot is not one column."""
    shows_protocol = group.frame.shows_protocol
    for constraint in definition.constraints:
        if _is_observed(constraint, shows_protocol):
            yield constraint, group.column(constraint.slot.section, constraint.slot.name)
    if not shows_protocol:
        return
    for entries in definition.entries:
        if not all(each.kind.transport for each in entries.entries):
            alone = len(entries.entries) == 1
            yield entries.entries[0], group.column(entries.section, entries.name) if alone else None
    for constraint in scope.templates:
        yield constraint, group.column(constraint.slot.section, constraint.slot.name)


def _hold(verdict: Verdict, constraint: Constraint, column: Column) -> None:
    """Hold a column against a constraint; what it says of rows that are out already does not matter."""
    present = column.present
    fits, certain = _fit(constraint, column, verdict)
    from_endpoint = constraint.label.startswith("endpoint.")
    needed = not from_endpoint and (constraint.required or constraint.implies_presence)
    ok = np.where(present, fits, not needed)
    sure = np.where(present, certain & ~column.doubtful, ~column.doubtful)
    if constraint.fixed and not constraint.implies_presence:  # it ranks only when it is there
        sure &= present
    if constraint.slot.section == "headers" and constraint.valued:
        sure |= fits & present & ~column.doubtful
        sure &= fits | ~mask_of(pc.match_substring(column.text, ","))
    verdict.certain &= sure | (~verdict.fits & verdict.certain)
    verdict.fits &= ok


def _fit(constraint: Constraint, column: Column, verdict: Verdict) -> tuple[Mask, Mask]:
    """Where present values fit, and where that is certain."""
    text, everywhere = column.text, np.ones(len(column.doubtful), bool)
    if constraint.media_type is not None:
        return _fit_media_type(constraint, text), everywhere
    typed = _of_type(constraint.type, text)
    if constraint.literal is not None:
        same = mask_of(pc.equal(text, str(constraint.declared)))
        if constraint.literal.kind == "text":
            return same, everywhere
        return same & typed, same & typed
    if constraint.template is not None:
        fits, certain = _fit_template(constraint, text, verdict)
        return fits & typed, certain & (typed | ~fits)
    return typed, typed


def _of_type(type_: str, text: pa.StringArray) -> Mask:
    """Where a text is certainly of a type."""
    if type_ == "any":
        return np.ones(len(text), bool)
    if type_ in TEXT_TYPES:
        if is_plain(text):
            return np.ones(len(text), bool)
        plain = ~mask_of(pc.match_substring_regex(text, UNPRINTABLE))
        return plain if type_ != "ascii" else plain & mask_of(pc.string_is_ascii(text))
    pattern = TYPE_PATTERNS.get(type_)
    return mask_of(pc.match_substring_regex(text, pattern)) if pattern else np.zeros(len(text), bool)


def _fit_media_type(constraint: Constraint, text: pa.StringArray) -> Mask:
    """Each distinct content type is compared once."""
    encoded = text.dictionary_encode()
    fits = np.array([False, *(isinstance(fit(constraint, text), Found) for text in encoded.dictionary.to_pylist())])
    return np.asarray(fits[pc.fill_null(pc.add(encoded.indices, 1), 0).to_numpy(zero_copy_only=False)])


# -- templates ------------------------------------------------------------------------------------------------------


def _fit_template(constraint: Constraint, text: pa.StringArray, verdict: Verdict) -> tuple[Mask, Mask]:
    """Where a template fits; its captures join the verdict's bindings, and must agree with what is there."""
    template = constraint.template
    assert template is not None
    program = _program(template)
    if program is None:
        return np.zeros(len(text), bool), np.zeros(len(text), bool)
    captures = _capture(program, template, text)
    fits = mask_of(captures.is_valid())
    certain = np.ones(len(text), bool)
    for name in template.names:
        captured = captures.field(program.groups[name])
        if template.place.uri:  # an escape is decoded before it is compared: the reference does that
            certain &= ~mask_of(pc.match_substring(captured, "%"))
        known = verdict.bindings.get(name)
        if known is None:
            verdict.bindings[name] = captured
        else:
            certain &= mask_of(pc.equal(known, captured)) | ~fits
    return fits, certain


@dataclass(frozen=True, slots=True)
class Program:
    """A template as one regular expression of RE2; group names are safe ones."""

    pattern: str
    groups: dict[str, str]


@lru_cache(maxsize=65536)
def _program(template: Template) -> Program | None:
    """None when a text could be read in more than one way: two placeholders in one segment, or one name twice."""
    if len(set(template.names)) != len(template.names) or any(len(piece.names) > 1 for piece in template.pieces):
        return None
    groups = {name: f"g{number}" for number, name in enumerate(template.names)}
    if template.spanning:
        return Program("^(?s:(?P<g0>.+))$", groups)
    forbidden = re.escape(template.place.separator + template.place.forbidden).replace("\0", r"\x00")
    segments = []
    for piece in template.pieces:
        parts = [re2_escape(piece.literals[0])]
        for name, literal in zip(piece.names, piece.literals[1:], strict=True):
            parts += [f"(?P<{groups[name]}>[^{forbidden}]+)", re2_escape(literal)]
        segments.append("".join(parts))
    return Program("^" + re2_escape(template.place.separator).join(segments) + r"\z", groups)


def _capture(program: Program, template: Template, text: pa.StringArray) -> pa.StructArray:
    if template.spanning:
        (name,) = template.names
        filled = pc.if_else(pc.greater(pc.binary_length(text), 0), text, pa.scalar(None, pa.string()))
        return pa.StructArray.from_arrays([filled], [program.groups[name]], mask=filled.is_null())
    return pc.extract_regex(text, program.pattern)


def re2_escape(literal: str) -> str:
    """`literal` as a pattern of RE2: what is no letter, digit or underscore is escaped, NUL by its code."""
    return "".join(
        char if char.isalnum() or char == "_" or ord(char) > 127 else r"\x00" if char == "\0" else "\\" + char
        for char in literal
    )


def needs(definitions: Iterable[Definition]) -> frozenset[str]:
    """The extension attributes that some definition names."""
    return frozenset(
        constraint.slot.name
        for definition in definitions
        for constraint in definition.constraints
        if constraint.slot.section == "envelope"
    )
