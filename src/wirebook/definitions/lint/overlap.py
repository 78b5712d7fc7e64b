"""Decide whether two definitions match the same messages, by metadata: all messages of one of them, some, or none.

Only constraints are compared; no messages are generated. Undecidable cases count as "not all" and as "none", so that
lint reports no false overlaps.

Spec: docs/semantics.md D1, D17-D18, D24, D48; docs/decisions/0065-overlapping-definitions.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from wirebook.definitions.compile.definition import Constraint, Definition, Entries
from wirebook.definitions.compile.slots import BARE, ENVELOPE, EVENT_FORMAT, REQUIRED_ATTRIBUTES, attribute_kind
from wirebook.definitions.compile.uritemplate import PLACEHOLDER, Piece, Template, scan

FIRST_STAND_IN = 0xE000  # of the private use area, whose characters do not occur in catalogues
Place = tuple[str, str]


def place_of(constraint: Constraint) -> Place:
    """Return (section, name). The content type of the data has the same place, wherever it is declared."""
    slot = constraint.slot
    return (ENVELOPE if slot.name == "datacontenttype" and slot.section == BARE else slot.section), slot.name


def constraints_by_place(definition: Definition) -> dict[Place, Constraint]:
    """Return the constraints that matching compares by default, by place."""
    return {place_of(constraint): constraint for constraint in definition.constraints if not constraint.kind.transport}


# -- all messages of one ----------------------------------------------------------------------------------------------


def covers(wide: Definition, narrow: Definition) -> bool:
    """Return whether every message that matches `narrow` also matches `wide`."""
    if not _selectors_cover(wide, narrow):
        return False
    narrow_constraints, names = constraints_by_place(narrow), PlaceholderTexts(narrow)
    return all(
        _is_implied(constraint, narrow_constraints.get(place), names, narrow.is_cloudevent)
        for place, constraint in constraints_by_place(wide).items()
        if constraint.slot.name != EVENT_FORMAT or narrow.mode != "binary"
    ) and all(_entries_implied(group, narrow, names) for group in wide.entries)


class PlaceholderTexts:
    """Texts that stand for the placeholders of one definition, and the texts that placeholders of another match."""

    def __init__(self, definition: Definition) -> None:
        self.stand_ins = {name: chr(FIRST_STAND_IN + n) for n, name in enumerate(definition.placeholders)}
        self.captured: dict[str, str] = {}

    def sample(self, text: str) -> str:
        """Return `text` with its placeholders replaced. The result represents every value of the template."""
        return PLACEHOLDER.sub(lambda placeholder: self.stand_ins[placeholder[1]], text)

    def captures(self, template: Template, text: str) -> bool:
        """Return whether `template` matches `text`, with the same text for each occurrence of a placeholder."""
        split = template.match(text)
        if split is None:
            return False
        pairs = zip(template.names, split.captures, strict=True)
        return all(self.captured.setdefault(name, capture) == capture for name, capture in pairs)


def _selectors_cover(wide: Definition, narrow: Definition) -> bool:
    return (
        wide.protocol in (None, narrow.protocol)
        and wide.envelope in (None, narrow.envelope)
        and wide.mode in (None, narrow.mode)
    )


def _is_implied(wide: Constraint, narrow: Constraint | None, names: PlaceholderTexts, is_event: bool) -> bool:
    """Return whether every message that satisfies `narrow` (None: no constraint) also satisfies `wide`."""
    slot = wide.slot
    always = is_event and slot.section == ENVELOPE and slot.name in (*REQUIRED_ATTRIBUTES, "specversion")
    if narrow is None:
        return _is_implied_by_cloudevents(wide, always)
    needs_presence = wide.required or (wide.fixed and wide.implies_presence)
    if needs_presence and not (always or narrow.required or (narrow.fixed and narrow.implies_presence)):
        return False
    if wide.media_type is not None:
        return narrow.media_type is not None and narrow.media_type.satisfies(wide.media_type)
    if wide.literal is not None:
        return narrow.literal == wide.literal
    if wide.typed and wide.type != narrow.type:
        return False
    return wide.template is None or _template_implied(wide.template, narrow, names)


def _is_implied_by_cloudevents(constraint: Constraint, always: bool) -> bool:
    """Return whether every CloudEvent satisfies the constraint. `always`: every event has the attribute."""
    slot = constraint.slot
    if constraint.fixed:
        return always and slot.name == "specversion" and constraint.declared == "1.0"
    if constraint.required and not always:
        return False
    return not constraint.typed or (slot.section == ENVELOPE and attribute_kind(slot.name).type == constraint.type)


def _template_implied(wide: Template, narrow: Constraint, names: PlaceholderTexts) -> bool:
    if not isinstance(narrow.declared, str) or not narrow.fixed:
        return False
    if narrow.template is not None and narrow.template.spanning and not wide.spanning:
        return False
    text = narrow.declared if narrow.template is None else names.sample(narrow.declared)
    return names.captures(wide, text)


def _entries_implied(wide: Entries, narrow: Definition, names: PlaceholderTexts) -> bool:
    """Return whether an entry of `narrow` implies each entry of `wide`, one to one if exclusive (D30, D32)."""
    name = (wide.section, wide.name)
    available = [entry for group in narrow.entries if (group.section, group.name) == name for entry in group.entries]
    for constraint in wide.entries:
        if constraint.kind.transport:
            continue
        implying = next((e for e in available if _is_implied(constraint, e, names, is_event=False)), None)
        if implying is None:
            return False
        if wide.exclusive:
            available.remove(implying)
    return True


# -- some messages ----------------------------------------------------------------------------------------------------


class Overlap(NamedTuple):
    """A slot in which two definitions differ but share a value: its label, and such a value."""

    slot: str
    text: str


def overlap_of(one: Definition, other: Definition) -> Overlap | None:
    """Return a slot in which two definitions overlap, at least one by a template; None if no message matches both.

    The result is also None if a definition uses a placeholder twice, because its slots cannot be compared one by one.
    """
    if not _selectors_overlap(one, other) or _repeats_a_name(one) or _repeats_a_name(other):
        return None
    here, there = constraints_by_place(one), constraints_by_place(other)
    overlaps: list[Overlap] = []
    # Binary messages have no event format, so it only distinguishes definitions of structured messages.
    formats_apart = "structured" in (one.mode, other.mode)
    common = (place for place in here if place in there and (formats_apart or place[1] != EVENT_FORMAT))
    pairs = [(here[place], there[place]) for place in common]
    for first, second in (*pairs, *_same_entries(one, other)):
        if not (first.fixed and second.fixed):
            continue
        text = shared_value(first, second)
        if text is None:
            return None
        if first.declared != second.declared and (first.template or second.template):
            overlaps.append(Overlap(first.label, text))
    return overlaps[0] if overlaps else None


def _selectors_overlap(one: Definition, other: Definition) -> bool:
    pairs = ((one.protocol, other.protocol), (one.envelope, other.envelope), (one.mode, other.mode))
    return all(first is None or second is None or first == second for first, second in pairs)


def _repeats_a_name(definition: Definition) -> bool:
    uses = Counter(
        name for constraint in definition.all_constraints if constraint.template for name in constraint.template.names
    )
    return any(count > 1 for count in uses.values())


def _same_entries(one: Definition, other: Definition) -> Iterator[tuple[Constraint, Constraint]]:
    # A message could have a header twice, once for each definition, but this does not occur in practice.
    theirs = {(group.section, group.name): group.entries for group in other.entries}
    for group in one.entries:
        yield from zip(group.entries, theirs.get((group.section, group.name), ()), strict=False)


def shared_value(one: Constraint, other: Constraint) -> str | None:
    """Return a value, as text, that satisfies both constraints, or None."""
    if one.media_type is not None and other.media_type is not None:
        fits = one.media_type.satisfies(other.media_type) or other.media_type.satisfies(one.media_type)
        return str(one.declared) if fits else None
    if one.template is None and other.template is None:
        return str(one.declared) if one.literal == other.literal else None
    if one.template is not None and other.template is not None:
        return shared_text(one.template, other.template)
    template, text = (one.template, other.declared) if one.template is not None else (other.template, one.declared)
    return text if template is not None and isinstance(text, str) and template.match(text) else None


def shared_text(one: Template, other: Template) -> str | None:
    """Return a text that matches both templates, or None."""
    if one.spanning or other.spanning:
        return PLACEHOLDER.sub("x", other.text if one.spanning else one.text)
    if len(one.pieces) != len(other.pieces) or one.place.separator != other.place.separator:
        return None
    segments = [_shared_segment(*pair) for pair in zip(one.pieces, other.pieces, strict=True)]
    shared = [segment for segment in segments if segment is not None]
    return one.place.separator.join(shared) if len(shared) == len(segments) else None


def _shared_segment(one: Piece, other: Piece) -> str | None:
    """Return a text that matches both segments, or None. If both have placeholders, only their ends must agree."""
    if not one.names:
        return one.literals[0] if scan(other, one.literals[0]) is not None else None
    if not other.names:
        return _shared_segment(other, one)
    start = _longer(one.literals[0], other.literals[0])
    end = _longer(one.literals[-1][::-1], other.literals[-1][::-1])
    if start is None or end is None:
        return None
    middle = "x".join(["", *one.literals[1:-1], *other.literals[1:-1], ""])
    return f"{start}{middle}{end[::-1]}"


def _longer(one: str, other: str) -> str | None:
    if one.startswith(other):
        return one
    return other if other.startswith(one) else None


# -- rank -------------------------------------------------------------------------------------------------------------


class Weight(NamedTuple):
    """The part of the rank (D48) that is the same for every message that matches a definition."""

    literals: int
    template_characters: int
    protocol: int
    required: int


def weight_of(definition: Definition) -> Weight:
    """Return the fixed part of a definition's rank."""
    has_event_format = definition.mode == "structured"
    counted = [
        constraint
        for constraint in definition.all_constraints
        if not constraint.kind.transport
        and (
            constraint.implies_presence
            or not constraint.fixed
            or (has_event_format and constraint.slot.name == EVENT_FORMAT)
        )
    ]
    return Weight(
        sum(constraint.valued for constraint in counted),
        sum(constraint.template.literal_length for constraint in counted if constraint.template),
        int(definition.protocol is not None),
        sum(constraint.required for constraint in counted),
    )
