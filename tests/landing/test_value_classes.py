"""Values of a class have the same meaning to the definitions of a catalogue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from wirebook.catalog import Catalog
from wirebook.definitions.compile.definition import Constraint
from wirebook.definitions.compile.fit import ValueMismatch, fit
from wirebook.definitions.match.index import Index, SlotValues
from wirebook.landing.columns.value_classes import ValueClasses

LITERALS = ("plants", "Lines", "", "~", "p1", "%41", "ü", "x y", "\x01", "+", "a,b")
PLACEHOLDERS = ("{plant}", "{line}", "l{line}", "{a}-{b}")
OTHERS = ("p1", "p2", "l1", "x-y", "1:b", "A", "%2F", "%4", "é", "p\n", "#", ".", "")
TYPES = ("string", "any", "uritemplate", "urireference", "symbol", "integer")

Segments = tuple[str, ...]
DECLARED = st.lists(st.sampled_from(LITERALS + PLACEHOLDERS), min_size=1, max_size=3).map(tuple)


@st.composite
def received(draw: st.DrawFn, declared: Sequence[Segments]) -> str:
    """A value that differs from a declared one in few segments, so that it matches often."""
    segments = [
        draw(st.sampled_from(OTHERS)) if "{" in segment or draw(st.integers(0, 4)) == 0 else segment
        for segment in draw(st.sampled_from(declared))
    ]
    return "/".join(segments + draw(st.sampled_from(([], [], [], ["p1"]))))


@settings(max_examples=100, deadline=None)
@given(st.data(), st.lists(st.tuples(DECLARED, st.sampled_from(TYPES)), min_size=1, max_size=12))
def test_values_of_a_class_match_and_vote_alike(data: st.DataObject, declared: list[tuple[Segments, str]]) -> None:
    values = data.draw(st.lists(received([path for path, _ in declared]), max_size=20))
    members = {
        f"m{number}": {"protocol": "MQTT/5.0", "protocoloptions": {"topic_name": {"type": type_, "value": text}}}
        | {"envelope": "CloudEvents/1.0", "envelopemetadata": {"source": {"type": type_, "value": text}}}
        for number, (text, type_) in enumerate(("/".join(path), type_) for path, type_ in declared)
    }
    document = {"specversion": "1.0-rc4", "registryid": "r", "messagegroups": {"g": {"messages": members}}}
    definitions = [
        definition for definition in Catalog.load(document).definitions.values() if not definition.incomplete
    ]
    constraints = list(chain.from_iterable(definition.constraints for definition in definitions))
    for slot_values in Index(definitions).near_miss_index.prepared:
        classes = ValueClasses(slot_values)
        texts = pa.array(values, pa.string())
        representatives, positions = classes.reduce(texts).to_pylist(), classes.positions(texts).tolist()
        place = (slot_values.slot.section, slot_values.slot.name)
        covered = [
            constraint
            for constraint in constraints
            if (constraint.slot.section, constraint.slot.name) == place and classes.covers(constraint)
        ]
        for value, representative, position in zip(values, representatives, positions, strict=True):
            assert position == slot_values.position(value)
            assert votes(slot_values, value, position) == votes(slot_values, representative, position)
            for constraint in covered:
                assert problem(constraint, value) == problem(constraint, representative), constraint.declared


def votes(slot_values: SlotValues, text: str, position: int) -> dict[int, float]:
    votes: defaultdict[int, float] = defaultdict(float)
    slot_values.vote(text, position, votes)
    return votes


def problem(constraint: Constraint, text: str) -> ValueMismatch | None:
    result = fit(constraint, text)
    return result if isinstance(result, ValueMismatch) else None


def test_values_that_differ_in_placeholders_are_one_class() -> None:
    options = {"topic_name": "plants/{plant}/lines/{line}/temperature"}
    message = {"protocol": "MQTT/5.0", "protocoloptions": options}
    catalog = Catalog.load({"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": {"m": message}}}})
    (slot_values,) = Index(list(catalog.definitions.values())).near_miss_index.prepared
    topics = [
        "plants/p1/lines/l1/temperature",
        "plants/p2/lines/l2/temperature",
        "plants/p2/rows/l2/temperature",
        "plants/p2/rows/l3/temperature",
        "plants/p2/rows/l 3/temperature",
    ]
    assert ValueClasses(slot_values).reduce(pa.array(topics)).to_pylist() == [
        "plants/~/lines/~/temperature",
        "plants/~/lines/~/temperature",
        "plants/~/~/~/temperature",
        "plants/~/~/~/temperature",
        "plants/p2/rows/l 3/temperature",
    ]
