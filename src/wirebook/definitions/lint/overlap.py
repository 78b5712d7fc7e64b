"""Which messages two definitions share: all of one, some, or none, as far as their metadata say.

Decided by the constraints alone, without trying messages. What cannot be decided counts as *not all* and as *none*, so
that nothing is claimed that does not hold.

Spec: docs/semantics.md D1, D17-D18, D24, D48; docs/decisions/0065-overlapping-definitions.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from wirebook.definitions.compile.definition import Constraint, Definition, Entries
from wirebook.definitions.compile.slots import BARE, ENVELOPE, EVENT_FORMAT, REQUIRED_ATTRIBUTES, attribute_kind
from wirebook.definitions.compile.uritemplate import PLACEHOLDER, Piece, Template, scan

FIRST_STAND_IN = 0xE000  # of the private use area: characters that no value of a catalogue has
Place = tuple[str, str]


def place_of(constraint: Constraint) -> Place:
    """Section and name; the content type of the data is one place wherever it is declared."""
    slot = constraint.slot
    return (ENVELOPE if slot.name == "datacontenttype" and slot.section == BARE else slot.section), slot.name


def constraints_by_place(definition: Definition) -> dict[Place, Constraint]:
    """The constraints that matching looks at, by place."""
    return {place_of(constraint): constraint for constraint in definition.constraints if not constraint.kind.transport}


# -- all of one -------------------------------------------------------------------------------------------------------


def takes_all_of(wide: Definition, narrow: Definition) -> bool:
    """Does every message that fits `narrow` fit `wide`?"""
    if not _selectors_take(wide, narrow):
        return False
    given, names = constraints_by_place(narrow), PlaceholderTexts(narrow)
    return all(
        _is_implied(asked, given.get(place), names, narrow.is_cloudevent)
        for place, asked in constraints_by_place(wide).items()
        if asked.slot.name != EVENT_FORMAT or narrow.mode != "binary"
    ) and all(_entries_implied(group, narrow, names) for group in wide.entries)


class PlaceholderTexts:
    """The texts that stand for the placeholders of one definition, and what another one's placeholders take of them."""

    def __init__(self, definition: Definition) -> None:
        self.stand_ins = {name: chr(FIRST_STAND_IN + n) for n, name in enumerate(definition.placeholders)}
        self.taken: dict[str, str] = {}

    def sample(self, text: str) -> str:
        """`text` with its placeholders replaced: what it says of every message is said of this one."""
        return PLACEHOLDER.sub(lambda found: self.stand_ins[found[1]], text)

    def take(self, template: Template, text: str) -> bool:
        """Does `template` fit `text`, with the same text for a name wherever it stands?"""
        split = template.match(text)
        if split is None:
            return False
        pairs = zip(template.names, split.captures, strict=True)
        return all(self.taken.setdefault(name, taken) == taken for name, taken in pairs)


def _selectors_take(wide: Definition, narrow: Definition) -> bool:
    return (
        wide.protocol in (None, narrow.protocol)
        and wide.envelope in (None, narrow.envelope)
        and wide.mode in (None, narrow.mode)
    )


def _is_implied(asked: Constraint, given: Constraint | None, names: PlaceholderTexts, is_event: bool) -> bool:
    slot = asked.slot
    always = is_event and slot.section == ENVELOPE and slot.name in (*REQUIRED_ATTRIBUTES, "specversion")
    if given is None:
        return _is_implied_by_nothing(asked, always)
    needed = asked.required or (asked.fixed and asked.implies_presence)
    if needed and not (always or given.required or (given.fixed and given.implies_presence)):
        return False
    if asked.media_type is not None:
        return given.media_type is not None and given.media_type.satisfies(asked.media_type)
    if asked.literal is not None:
        return given.literal == asked.literal
    if asked.typed and asked.type != given.type:
        return False
    return asked.template is None or _template_implied(asked.template, given, names)


def _is_implied_by_nothing(asked: Constraint, always: bool) -> bool:
    """Does CloudEvents itself see to it?"""
    slot = asked.slot
    if asked.fixed:
        return always and slot.name == "specversion" and asked.declared == "1.0"
    if asked.required and not always:
        return False
    return not asked.typed or (slot.section == ENVELOPE and attribute_kind(slot.name).type == asked.type)


def _template_implied(asked: Template, given: Constraint, names: PlaceholderTexts) -> bool:
    if not isinstance(given.declared, str) or not given.fixed:
        return False
    if given.template is not None and given.template.spanning and not asked.spanning:
        return False
    text = given.declared if given.template is None else names.sample(given.declared)
    return names.take(asked, text)


def _entries_implied(asked: Entries, narrow: Definition, names: PlaceholderTexts) -> bool:
    """Each entry needs one of the other's own (D30, D32)."""
    given = [each for group in narrow.entries if _same_name(group, asked) for each in group.entries]
    for entry in asked.entries:
        if entry.kind.transport:
            continue
        found = next((each for each in given if _is_implied(entry, each, names, is_event=False)), None)
        if found is None:
            return False
        if asked.each:
            given.remove(found)
    return True


def _same_name(one: Entries, other: Entries) -> bool:
    return (one.section, one.name) == (other.section, other.name)


# -- some -------------------------------------------------------------------------------------------------------------


class Meeting(NamedTuple):
    """A slot at which two definitions differ and still share values: its label, and one such value."""

    slot: str
    text: str


def meeting_of(one: Definition, other: Definition) -> Meeting | None:
    """Where two definitions meet, of which at least one has a template there; None when no message fits both.

    None as well where a name stands in several places of one of them: then no place says it alone.
    """
    if not _selectors_meet(one, other) or _repeats_a_name(one) or _repeats_a_name(other):
        return None
    here, there = constraints_by_place(one), constraints_by_place(other)
    meetings: list[Meeting] = []
    # Binary messages have no event format: it only keeps definitions apart that take structured messages alone.
    formats_apart = "structured" in (one.mode, other.mode)
    common = (place for place in here if place in there and (formats_apart or place[1] != EVENT_FORMAT))
    bare = [(here[place], there[place]) for place in common]
    for first, second in (*bare, *_same_entries(one, other)):
        if not (first.fixed and second.fixed):
            continue
        text = shared_value(first, second)
        if text is None:
            return None
        if first.declared != second.declared and (first.template or second.template):
            meetings.append(Meeting(first.label, text))
    return meetings[0] if meetings else None


def _selectors_meet(one: Definition, other: Definition) -> bool:
    pairs = ((one.protocol, other.protocol), (one.envelope, other.envelope), (one.mode, other.mode))
    return all(first is None or second is None or first == second for first, second in pairs)


def _repeats_a_name(definition: Definition) -> bool:
    uses = Counter(
        name for constraint in definition.all_constraints if constraint.template for name in constraint.template.names
    )
    return any(count > 1 for count in uses.values())


def _same_entries(one: Definition, other: Definition) -> Iterator[tuple[Constraint, Constraint]]:
    # A message could have the header twice, once for each; nobody sends such a message.
    theirs = {(group.section, group.name): group.entries for group in other.entries}
    for group in one.entries:
        yield from zip(group.entries, theirs.get((group.section, group.name), ()), strict=False)


def shared_value(one: Constraint, other: Constraint) -> str | None:
    """A value, as text, that fits both; None where there is none."""
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
    """A text that fits both templates, or None when there is none."""
    if one.spanning or other.spanning:
        return PLACEHOLDER.sub("x", other.text if one.spanning else one.text)
    if len(one.pieces) != len(other.pieces) or one.place.separator != other.place.separator:
        return None
    segments = [_shared_segment(*pair) for pair in zip(one.pieces, other.pieces, strict=True)]
    found = [segment for segment in segments if segment is not None]
    return one.place.separator.join(found) if len(found) == len(segments) else None


def _shared_segment(one: Piece, other: Piece) -> str | None:
    """Both with placeholders: the ends must agree, between them there is room for what either wants."""
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
    """What of the rank (D48) is the same for every message that fits."""

    literals: int
    template_characters: int
    protocol: int
    required: int


def weight_of(definition: Definition) -> Weight:
    counted = [
        constraint
        for constraint in definition.all_constraints
        if not constraint.kind.transport
        and (constraint.implies_presence or not constraint.fixed or _is_always_there(constraint, definition))
    ]
    return Weight(
        sum(each.valued for each in counted),
        sum(each.template.literal_length for each in counted if each.template),
        int(definition.protocol is not None),
        sum(each.required for each in counted),
    )


def _is_always_there(constraint: Constraint, definition: Definition) -> bool:
    """Has every message that fits the definition an event format?"""
    return constraint.slot.name == EVENT_FORMAT and definition.mode == "structured"
