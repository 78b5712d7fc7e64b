"""The index over definitions: prunes, never decides (D49).

Definitions are grouped by mask: which slots, and which segments of a template, are literal. A mask has one hash
table from the literal parts to its definitions. A message probes each mask of its protocol once, so the cost grows
with the number of naming patterns, not of definitions. Definitions without any literal are candidates of every message.

The same literals, one by one, and the neighbours of a value in sorted order find the nearest definitions of a message
that fits none, with a bounded number of look-ups.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from wirebook.definitions.compile.definition import Constraint, Definition
from wirebook.definitions.compile.slots import BARE, ENVELOPE, Slot
from wirebook.definitions.compile.uritemplate import Template, uri_text
from wirebook.definitions.compile.view import MessageView

INDEXED = {
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
SLOTS = {place: Slot(*place, label="") for place in INDEXED}
MAX_MASKS = 48
SMALL_BUCKET = 4
MAX_VOTERS = 8
MAX_VOTING_SEGMENTS = 16
NEIGHBOURS = 2


class MaskPart(NamedTuple):
    """One slot's share of a mask: the whole value, or the literal ones among the `segments` of a template."""

    section: str
    name: str
    separator: str = ""
    segments: int = 0
    positions: tuple[int, ...] = ()


class Feature(NamedTuple):
    """What a definition says literally about a slot: the key that a message must have there."""

    part: MaskPart
    key: str | tuple[str, ...]


Mask = tuple[MaskPart, ...]


@dataclass(slots=True)
class IndexedTexts:
    """A message's texts at the indexed slots, each read and cut once."""

    view: MessageView
    texts: dict[tuple[str, str], str | None] = field(default_factory=dict)
    cuts: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)

    def text(self, section: str, name: str) -> str | None:
        slot = (section, name)
        if slot not in self.texts:
            value = self.view.value(SLOTS[slot])
            text = value if isinstance(value, str) else None
            self.texts[slot] = uri_text(text) if text is not None and slot in URI_SLOTS else text
        return self.texts[slot]

    def cut(self, section: str, name: str, separator: str) -> list[str]:
        place = (section, name, separator)
        if place not in self.cuts:
            text = self.text(section, name)
            self.cuts[place] = text.split(separator) if text else []
        return self.cuts[place]

    def key(self, part: MaskPart) -> str | tuple[str, ...] | None:
        """The message's key for a part, or None when it cannot have one."""
        if not part.separator:
            return self.text(part.section, part.name)
        segments = self.cut(part.section, part.name, part.separator)
        if (part.segments and len(segments) != part.segments) or len(segments) <= max(part.positions):
            return None
        return tuple(segments[position] for position in part.positions)


class Index:
    """Candidates of a message among `definitions`, in their order.

    `protocol_slots`: may protocol constraints prune? Not for plain event files, where they cannot be observed.
    """

    def __init__(self, definitions: Sequence[Definition], *, protocol_slots: bool = True) -> None:
        self.definitions = definitions
        self.tables: dict[str | None, dict[Mask, dict[tuple[object, ...], list[int]]]] = {}
        self.nearby = Nearby()
        self.some: dict[str | None, list[int]] = {}
        features = [tuple(features_of(definition, protocol_slots)) for definition in definitions]
        chosen = _sufficient(definitions, features)
        masks = Counter((d.protocol, _mask(f)) for d, f in zip(definitions, chosen, strict=True))
        kept = {mask for mask, _ in masks.most_common(MAX_MASKS)}
        for number, (definition, found) in enumerate(zip(definitions, chosen, strict=True)):
            self.nearby.add(number, definition, features[number])
            if len(some := self.some.setdefault(definition.protocol, [])) < MAX_VOTERS:
                some.append(number)
            used = found if (definition.protocol, _mask(found)) in kept else _coarse(found)
            table = self.tables.setdefault(definition.protocol, {}).setdefault(_mask(used), {})
            table.setdefault(tuple(feature.key for feature in used), []).append(number)

    @cached_property
    def slots(self) -> frozenset[tuple[str, str]]:
        """The slots that prune."""
        masks = (mask for table in self.tables.values() for mask in table)
        return frozenset((part.section, part.name) for mask in masks for part in mask)

    def candidates(self, view: MessageView) -> list[Definition]:
        """Every definition that could fit `view` (and some that do not). Cost: one probe for each mask."""
        values = IndexedTexts(view)
        found: list[int] = []
        for protocol in self._protocols(view):
            for mask, table in self.tables.get(protocol, {}).items():
                keys = tuple(values.key(part) for part in mask)
                found += table.get(keys, ())
        return [self.definitions[number] for number in sorted(found)]

    def near(self, view: MessageView, scope: frozenset[str] | None) -> Iterator[Definition]:
        """The few definitions that share most with `view`, best first, then some that share its protocol alone.

        Cost: bounded whatever the catalogue's size.
        """
        protocols = self._protocols(view)
        votes = self.nearby.votes(view)
        ranked = sorted(votes, key=votes.__getitem__, reverse=True)
        own = (number for number in ranked if self.definitions[number].protocol in protocols)
        others = (number for number in ranked if self.definitions[number].protocol not in protocols)
        some = (number for protocol in protocols for number in self.some.get(protocol, ()) if number not in votes)
        chosen = (self.definitions[number] for number in chain(own, others, some))
        return chosen if scope is None else (each for each in chosen if each.xid in scope)

    def _protocols(self, view: MessageView) -> tuple[str | None, ...]:
        return (view.protocol, None) if view.shows_protocol else tuple(self.tables)


@dataclass(slots=True)
class Sayings:
    """What definitions say at one slot, with their numbers.

    Shape: `sharing` by whole literal, and by (position, segment); `declared` are the values. `settle`, then `vote`.
    """

    slot: Slot
    separator: str
    sharing: defaultdict[str | tuple[int, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    declared: list[tuple[str, int]] = field(default_factory=list)

    def add_literals(self, feature: Feature, number: int) -> None:
        """The literals of a definition here, for whoever shares one of them."""
        part, key = feature
        if isinstance(key, str):
            self._add(key, number)
        segments = (
            enumerate(key.split(self.separator)) if isinstance(key, str) else zip(part.positions, key, strict=True)
        )
        for segment in segments:
            self._add(segment, number)

    def _add(self, literal: str | tuple[int, str], number: int) -> None:
        sharers = self.sharing[literal]
        if len(sharers) <= MAX_VOTERS:
            sharers.append(number)

    def settle(self) -> None:
        """Sort the values, and leave out segments that many share: they say nothing."""
        self.declared.sort()
        for literal, sharers in list(self.sharing.items()):
            if len(sharers) > MAX_VOTERS:
                self.sharing[literal] = sharers[:MAX_VOTERS] if isinstance(literal, str) else []

    def vote(self, text: str, votes: dict[int, float]) -> None:
        """Four for a shared whole value, one for a segment, half for a neighbour."""
        for number in self.sharing.get(text, ()):
            votes[number] += 4
        for segment in islice(enumerate(text.split(self.separator)), MAX_VOTING_SEGMENTS if text else 0):
            for number in self.sharing.get(segment, ()):
                votes[number] += 1
        middle = bisect_left(self.declared, (text, -1))
        for _, number in self.declared[max(0, middle - NEIGHBOURS) : middle + NEIGHBOURS]:
            votes[number] += 0.5


class Nearby:
    """Single literals and sorted values: who shares anything with a message."""

    def __init__(self) -> None:
        self.sayings = {place: Sayings(SLOTS[place], separator) for place, separator in INDEXED.items()}

    def add(self, number: int, definition: Definition, features: Iterable[Feature]) -> None:
        for feature in features:
            self.sayings[feature.part.section, feature.part.name].add_literals(feature, number)
        for constraint in definition.constraints:
            place = (constraint.slot.section, constraint.slot.name)
            if isinstance(constraint.declared, str) and place in INDEXED:
                self.sayings[place].declared.append((constraint.declared, number))

    def votes(self, view: MessageView) -> dict[int, float]:
        """Definition number to votes: the more, the nearer."""
        votes: defaultdict[int, float] = defaultdict(float)
        for sayings in self._settled:
            text = view.value(sayings.slot)
            if isinstance(text, str):
                sayings.vote(text, votes)
        return votes

    @cached_property
    def _settled(self) -> list[Sayings]:
        """The slots of which anything is said, settled when the first message asks who is near."""
        used = [sayings for sayings in self.sayings.values() if sayings.declared]
        for sayings in used:
            sayings.settle()
        return used


def _sufficient(
    definitions: Sequence[Definition], features: Sequence[tuple[Feature, ...]]
) -> list[tuple[Feature, ...]]:
    """Of each definition's features the first few that leave at most `SMALL_BUCKET` definitions together.

    Fewer features make fewer masks, and every mask costs every message a look-up.
    """
    sizes: Counter[tuple[str | None, tuple[Feature, ...]]] = Counter()
    for definition, found in zip(definitions, features, strict=True):
        sizes.update((definition.protocol, found[:length]) for length in range(1, len(found) + 1))
    chosen = []
    for definition, found in zip(definitions, features, strict=True):
        lengths = range(1, len(found) + 1)
        small = (length for length in lengths if sizes[definition.protocol, found[:length]] <= SMALL_BUCKET)
        chosen.append(found[: next(small, len(found))])
    return chosen


def features_of(definition: Definition, protocol_slots: bool = True) -> Iterator[Feature]:
    """The literal parts of a definition's constraints on the indexed slots, in slot order."""
    for constraint in definition.constraints:
        place = (constraint.slot.section, constraint.slot.name)
        if place in INDEXED and (protocol_slots or place[0] == ENVELOPE):
            feature = _feature(constraint)
            if feature:
                yield feature


def _feature(constraint: Constraint) -> Feature | None:
    section, name = constraint.slot.section, constraint.slot.name
    if constraint.literal is not None and constraint.literal.kind == "text":
        return Feature(MaskPart(section, name), constraint.literal.value)
    if constraint.template is None or constraint.template.spanning:
        return None
    return _template_feature(section, name, constraint.template)


def _template_feature(section: str, name: str, template: Template) -> Feature | None:
    if not template.fixed:
        return None
    positions, segments = zip(*template.fixed, strict=True)
    return Feature(MaskPart(section, name, template.place.separator, len(template.pieces), positions), segments)


def _mask(features: Iterable[Feature]) -> Mask:
    return tuple(feature.part for feature in features)


def _coarse(features: Sequence[Feature]) -> list[Feature]:
    """The first literal alone, for a definition whose mask is rare: few such masks exist."""
    for part, key in features[:1]:
        if not part.separator:
            return [Feature(part, key)]
        return [Feature(part._replace(segments=0, positions=part.positions[:1]), (key[0],))]
    return []
