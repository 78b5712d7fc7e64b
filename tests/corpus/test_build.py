"""A definition is a template and a filter of the same messages: what is built, matched again, gives the context back.

Over every definition of every real catalogue, every protocol and mode that it allows, with texts that surprise.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from synthesis.dice import Dice, dice_of
from synthesis.messages import EVENTS, Message, Way, message_of, ways_of

from wirebook.bindings import as_structured, read_record
from wirebook.catalog import Catalog
from wirebook.message.definition import Definition
from wirebook.message.matcher import Match, match_metadata
from wirebook.message.view import View

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "corpus"
CATALOGUES = sorted((*SHARED.glob("production/*.json"), *SHARED.glob("spec-scenarios/*.json")))
BUILDS = 400  # a catalogue


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.name.partition(".")[0])
def test_a_built_message_gives_its_context_back(path: Path) -> None:
    catalog, dice = Catalog.load(str(path)), dice_of(f"build {path.name}")
    counts: Counter[str] = Counter()
    every = [(each, way) for each in catalog.definitions.values() if not each.incomplete for way in ways_of(each)]
    for definition, way in dice.sample(every, min(BUILDS, len(every))):
        if way.protocol != EVENTS:
            counts[check(catalog, definition, way, dice)] += 1
    assert counts["same"] > 0.9 * counts.total() > 0, counts


def check(catalog: Catalog, definition: Definition, way: Way, dice: Dice) -> str:
    """What became of one message: the same context, or ``ambiguous`` where the placeholders can be split otherwise."""
    message = message_of(catalog, definition, way, dice)
    (outcome,) = catalog.match_each(message.line)
    found = own_match(catalog, definition, message)
    assert found is not None, (definition.xid, way, message.line)
    if found.ambiguous_bindings:
        return "ambiguous"
    assert found.bindings == observable(definition, message), (definition.xid, way, message.line)
    if outcome.matched and outcome.definition == definition.xid:
        assert dict(outcome.bindings) == dict(found.bindings) or outcome.ambiguous_bindings
    else:
        assert outcome.outcome in ("matched", "ambiguous", "unsupported", "invalid-payload"), outcome
    return "same"


def own_match(catalog: Catalog, definition: Definition, message: Message) -> Match | None:
    (received,) = read_record(message.line)
    structured = as_structured(received) if definition.is_cloudevent else None
    view = View(structured or received, is_reinterpreted=structured is not None)
    return match_metadata(definition, view, catalog.options)


def observable(definition: Definition, message: Message) -> dict[str, str]:
    return {name: message.context[name] for name in definition.placeholders}


def test_all_catalogues_are_there(shared: Path) -> None:
    assert len(CATALOGUES) == 48 + 9
