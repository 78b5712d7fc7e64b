"""The index of definitions: finds the candidates for a message. It never decides whether a definition matches (D49).

Definitions are grouped by mask: the slots, and the segments of templates, that are literal. Each mask has a hash table
from the literals to the definitions. A message is looked up once in each mask of its protocol, so the cost depends on
the number of naming patterns, not of definitions. Definitions without a literal are candidates for every message.

For a message that matches no definition, the index finds near misses with a bounded number of lookups: definitions that
share a literal with the message, or have a value next to its own in sorted order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.slots import BARE, ENVELOPE, Slot
from wirebook.definitions.compile.uritemplate import uri_text
from wirebook.definitions.compile.view import MessageView

INDEXED = {  # slot (section, name) -> separator of its segments
    (ENVELOPE, "type"): ".",
    (ENVELOPE, "subject"): "/",
    (ENVELOPE, "source"): "/",
    (BARE, "topic_name"): "/",
    (BARE, "topic"): "/",
    (BARE, "subject"): ".",
    (BARE, "path"): "/",
    (BARE, "key"): "/",
    ("properties", "subject"): "/",
}
URI_SLOTS = frozenset({(ENVELOPE, "source"), (BARE, "path")})
SLOTS_BY_PLACE = {place: Slot(*place, label="") for place in INDEXED}
MAX_MASKS = 48
"""Maximum number of masks that are indexed in full. A rarer mask is indexed by its first literal only."""
SMALL_BUCKET = 4
"""Number of definitions in a hash bucket that is small enough: their mask needs no further features."""
MAX_SHARING = 8
"""Segments that more definitions share are too common to find near misses."""
MAX_VOTING_SEGMENTS = 16
NEIGHBOURS = 2
"""Number of definitions before, and after, the value of a message in sorted order that count as neighbours."""
WHOLE_VALUE_VOTES, SEGMENT_VOTES, NEIGHBOUR_VOTES = 4, 1, 0.5


class MaskPart(NamedTuple):
    """One slot of a mask, in which the whole value is literal, or the segments at `positions` of a template.

    `segments` is the number of segments that the value must have; 0 for any number.
    """

    section: str
    name: str
    separator: str = ""
    segments: int = 0
    positions: tuple[int, ...] = ()


class Feature(NamedTuple):
    """The literal part of a definition in one slot, and the key that a matching message has there."""

    part: MaskPart
    key: str | tuple[str, ...]


Mask = tuple[MaskPart, ...]


@dataclass(slots=True)
class IndexedTexts:
    """The texts of a message in the indexed slots. Each is read and split once."""

    view: MessageView
    texts: dict[tuple[str, str], str | None] = field(default_factory=dict)
    segments: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)

    def text(self, section: str, name: str) -> str | None:
        slot = (section, name)
        if slot not in self.texts:
            value = self.view.value(SLOTS_BY_PLACE[slot])
            text = value if isinstance(value, str) else None
            self.texts[slot] = uri_text(text) if text is not None and slot in URI_SLOTS else text
        return self.texts[slot]

    def split(self, section: str, name: str, separator: str) -> list[str]:
        place = (section, name, separator)
        if place not in self.segments:
            text = self.text(section, name)
            self.segments[place] = text.split(separator) if text else []
        return self.segments[place]

    def key(self, part: MaskPart) -> str | tuple[str, ...] | None:
        """The key of the message for a part of a mask; None if its value has the wrong number of segments."""
        if not part.separator:
            return self.text(part.section, part.name)
        segments = self.split(part.section, part.name, part.separator)
        if (part.segments and len(segments) != part.segments) or len(segments) <= max(part.positions):
            return None
        return tuple(segments[position] for position in part.positions)


class Index:
    """Finds the candidates for a message among `definitions`.

    Without `protocol_slots`, only the envelope is indexed, because events from plain files have no protocol options.
    """

    def __init__(self, definitions: Sequence[Definition], *, protocol_slots: bool = True) -> None:
        self.definitions = definitions
        self.tables: dict[str | None, dict[Mask, dict[tuple[object, ...], list[int]]]] = {}
        self.near_miss_index = NearMissIndex()
        self.first_by_protocol: dict[str | None, list[int]] = {}
        features = [tuple(features_of(definition, protocol_slots)) for definition in definitions]
        selective = _selective_features(definitions, features)
        masks = Counter((d.protocol, _mask(f)) for d, f in zip(definitions, selective, strict=True))
        common = {mask for mask, _ in masks.most_common(MAX_MASKS)}
        for number, definition in enumerate(definitions):
            self.near_miss_index.add(number, definition, features[number])
            first = self.first_by_protocol.setdefault(definition.protocol, [])
            if len(first) < MAX_SHARING:
                first.append(number)
            indexed: Sequence[Feature] = selective[number]
            if (definition.protocol, _mask(indexed)) not in common:
                indexed = _first_literal(indexed)
            table = self.tables.setdefault(definition.protocol, {}).setdefault(_mask(indexed), {})
            table.setdefault(tuple(feature.key for feature in indexed), []).append(number)

    @cached_property
    def slots(self) -> frozenset[tuple[str, str]]:
        """The slots (section, name) that any mask uses."""
        masks = (mask for table in self.tables.values() for mask in table)
        return frozenset((part.section, part.name) for mask in masks for part in mask)

    def candidates(self, view: MessageView) -> list[Definition]:
        """All definitions that match `view`, and some others, in catalogue order. Cost: one lookup for each mask."""
        texts = IndexedTexts(view)
        numbers: list[int] = []
        for protocol in self._protocols(view.protocol if view.shows_protocol else None):
            for mask, table in self.tables.get(protocol, {}).items():
                keys = tuple(texts.key(part) for part in mask)
                numbers += table.get(keys, ())
        return [self.definitions[number] for number in sorted(numbers)]

    def near(self, view: MessageView, scope: frozenset[str] | None) -> Iterator[Definition]:
        """A few definitions that have the most in common with `view`, the closest first.

        Definitions for other protocols come later, and those that have only the protocol in common come last. `scope`
        limits the result to these XIDs. Cost: bounded, whatever the size of the catalogue.
        """
        return self.closest(self.near_miss_index.votes(view), view.protocol if view.shows_protocol else None, scope)

    def closest(
        self, votes: Mapping[int, float], protocol: str | None, scope: frozenset[str] | None
    ) -> Iterator[Definition]:
        """The definitions that `near` returns, ordered by votes. `protocol` is None if the message does not show it."""
        protocols = self._protocols(protocol)
        ranked = sorted(votes, key=votes.__getitem__, reverse=True)
        same_protocol = (number for number in ranked if self.definitions[number].protocol in protocols)
        other_protocol = (number for number in ranked if self.definitions[number].protocol not in protocols)
        rest = (number for key in protocols for number in self.first_by_protocol.get(key, ()) if number not in votes)
        definitions = (self.definitions[number] for number in chain(same_protocol, other_protocol, rest))
        return definitions if scope is None else (definition for definition in definitions if definition.xid in scope)

    def _protocols(self, protocol: str | None) -> tuple[str | None, ...]:
        return tuple(self.tables) if protocol is None else (protocol, None)


@dataclass(slots=True)
class SlotValues:
    """The values and literals that definitions declare for one slot, each with the numbers of the definitions.

    The keys of `by_literal` are whole literals and (position, segment). `declared` has the declared values. `prepare`
    sorts them and must be called before `position` and `vote`.
    """

    slot: Slot
    separator: str
    by_literal: defaultdict[str | tuple[int, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    declared: list[tuple[str, int]] = field(default_factory=list)

    def add_literals(self, feature: Feature, number: int) -> None:
        part, key = feature
        literals: list[str | tuple[int, str]]
        if isinstance(key, str):
            literals = [key, *enumerate(key.split(self.separator))]
        else:
            literals = list(zip(part.positions, key, strict=True))
        for literal in literals:
            numbers = self.by_literal[literal]
            if len(numbers) <= MAX_SHARING:
                numbers.append(number)

    def prepare(self) -> None:
        """Sort the values. Drop segments that many definitions share, and limit the definitions of whole literals."""
        self.declared.sort()
        for literal, numbers in list(self.by_literal.items()):
            if len(numbers) > MAX_SHARING:
                self.by_literal[literal] = numbers[:MAX_SHARING] if isinstance(literal, str) else []

    def position(self, text: str) -> int:
        """The number of declared values that precede the text in sorted order."""
        return bisect_left(self.declared, (text, -1))

    def vote(self, text: str, position: int, votes: dict[int, float]) -> None:
        """Add votes for definitions with the same value, with the same segment, and with a neighbouring value.

        `position` is the result of the method `position` for the text.
        """
        for number in self.by_literal.get(text, ()):
            votes[number] += WHOLE_VALUE_VOTES
        for segment in islice(enumerate(text.split(self.separator)), MAX_VOTING_SEGMENTS if text else 0):
            for number in self.by_literal.get(segment, ()):
                votes[number] += SEGMENT_VOTES
        for _, number in self.declared[max(0, position - NEIGHBOURS) : position + NEIGHBOURS]:
            votes[number] += NEIGHBOUR_VOTES


class NearMissIndex:
    """Finds definitions that have a literal in common with a message, or a value next to its own in sorted order."""

    def __init__(self) -> None:
        self.slots = {place: SlotValues(SLOTS_BY_PLACE[place], separator) for place, separator in INDEXED.items()}

    def add(self, number: int, definition: Definition, features: Iterable[Feature]) -> None:
        for feature in features:
            self.slots[feature.part.section, feature.part.name].add_literals(feature, number)
        for constraint in definition.constraints:
            place = (constraint.slot.section, constraint.slot.name)
            if isinstance(constraint.declared, str) and place in INDEXED:
                self.slots[place].declared.append((constraint.declared, number))

    def votes(self, view: MessageView) -> dict[int, float]:
        """Return the votes by definition number. The definition with the most votes is the closest."""
        votes: defaultdict[int, float] = defaultdict(float)
        for values in self.prepared:
            text = view.value(values.slot)
            if isinstance(text, str):
                values.vote(text, values.position(text), votes)
        return votes

    @cached_property
    def prepared(self) -> list[SlotValues]:
        """The slots with declared values. They are prepared when the first message needs them."""
        used = [values for values in self.slots.values() if values.declared]
        for values in used:
            values.prepare()
        return used


def _selective_features(
    definitions: Sequence[Definition], features: Sequence[tuple[Feature, ...]]
) -> list[tuple[Feature, ...]]:
    """The shortest prefix of the features of each definition that at most `SMALL_BUCKET` definitions share.

    Fewer features make fewer masks, and every message needs a lookup for each mask.
    """
    sizes: Counter[tuple[str | None, tuple[Feature, ...]]] = Counter()
    for definition, all_features in zip(definitions, features, strict=True):
        sizes.update((definition.protocol, all_features[:length]) for length in range(1, len(all_features) + 1))
    selective = []
    for definition, all_features in zip(definitions, features, strict=True):
        lengths = range(1, len(all_features) + 1)
        small = (length for length in lengths if sizes[definition.protocol, all_features[:length]] <= SMALL_BUCKET)
        selective.append(all_features[: next(small, len(all_features))])
    return selective


def features_of(definition: Definition, protocol_slots: bool = True) -> Iterator[Feature]:
    """The literal parts of a definition's constraints on the indexed slots, in slot order."""
    for constraint in definition.constraints:
        place = (constraint.slot.section, constraint.slot.name)
        if place not in INDEXED or (place[0] != ENVELOPE and not protocol_slots):
            continue
        literal, template = constraint.literal, constraint.template
        if literal is not None and literal.kind == "text":
            yield Feature(MaskPart(*place), literal.value)
        elif template is not None and not template.spanning and template.fixed:
            positions, segments = zip(*template.fixed, strict=True)
            part = MaskPart(*place, template.place.separator, len(template.pieces), positions)
            yield Feature(part, segments)


def _mask(features: Iterable[Feature]) -> Mask:
    return tuple(feature.part for feature in features)


def _first_literal(features: Sequence[Feature]) -> list[Feature]:
    """Only the first literal of a rare mask, so that the number of masks stays small."""
    for part, key in features[:1]:
        if not part.separator:
            return [Feature(part, key)]
        return [Feature(part._replace(segments=0, positions=part.positions[:1]), (key[0],))]
    return []
