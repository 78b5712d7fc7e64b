"""Messages built from real catalogues match their own definition and yield the context that they were built from.

Over every definition of every real catalogue, every protocol and mode that it allows, with texts that surprise.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from synthesis.dice import Dice, dice_of
from synthesis.messages import EVENTS, Message, Way, message_of, ways_of

from wirebook.bindings import AnyMessage, as_structured, read_record, to_line
from wirebook.catalog import Catalog
from wirebook.definitions.build.builder import build
from wirebook.definitions.build.request import BuildRequest
from wirebook.definitions.compile.definition import Definition
from wirebook.definitions.compile.slots import ENVELOPE
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.match.matcher import Match, match_metadata

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "corpus"
CATALOGUES = sorted((*SHARED.glob("production/*.json"), *SHARED.glob("spec-scenarios/*.json")))
BUILDS = 400  # a catalogue


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.name.partition(".")[0])
def test_built_message_yields_its_context(path: Path) -> None:
    catalog, dice = Catalog.load(str(path)), dice_of(f"build {path.name}")
    counts: Counter[str] = Counter()
    every = [
        (definition, way)
        for definition in catalog.definitions.values()
        if not definition.incomplete
        for way in ways_of(definition)
    ]
    for definition, way in dice.sample(every, min(BUILDS, len(every))):
        if way.protocol != EVENTS:
            counts[check(catalog, definition, way, dice)] += 1
    assert counts["same"] > 0.9 * counts.total() > 0, counts


def check(catalog: Catalog, definition: Definition, way: Way, dice: Dice) -> str:
    """What became of one message: the same context, or ``ambiguous`` where the placeholders can be split otherwise."""
    message = message_of(catalog, definition, way, dice)
    (outcome,) = catalog.match_each(message.line)
    match = own_match(catalog, definition, message.line)
    assert match is not None, (definition.xid, way, message.line)
    if match.ambiguous_bindings:
        return "ambiguous"
    assert match.bindings == observable(definition, message), (definition.xid, way, message.line)
    if outcome.matched and outcome.definition == definition.xid:
        assert dict(outcome.bindings) == dict(match.bindings) or outcome.ambiguous_bindings
    else:
        assert outcome.outcome in ("matched", "ambiguous", "unsupported", "invalid-payload"), outcome
    return "same"


def own_match(catalog: Catalog, definition: Definition, line: bytes) -> Match | None:
    (received,) = read_record(line)
    structured = as_structured(received) if definition.is_cloudevent else None
    view = MessageView(structured or received, is_reinterpreted=structured is not None)
    return match_metadata(definition, view, catalog.options)


def observable(definition: Definition, message: Message) -> dict[str, str]:
    return {name: message.context[name] for name in definition.placeholders}


# -- any context ------------------------------------------------------------------------------------------------------

REFUSALS = {
    "illegal-character",
    "wrong-type",
    "missing-context",
    "too-large",
    "placeholder-conflict",
    "context-changed",
}
TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.text("/%+#.*> {}~-:?&=@\"'\\$é😀\r\n\0\u202e\u0301", max_size=6),
    st.sampled_from(["%41", "%2F", "%ff", "..", "//", "a" * 70_000, "é" * 33_000, "null", "-0", "\ud800"]),
    st.text("abcXYZ019", min_size=1, max_size=8),
    st.datetimes().map(lambda time: f"{time.isoformat()}Z"),
)


@cache
def loaded(path: Path) -> tuple[Catalog, list[tuple[Definition, Way]]]:
    catalog = Catalog.load(str(path))
    complete = [definition for definition in catalog.definitions.values() if not definition.incomplete]
    ways = [
        (definition, way)
        for definition in complete
        for way in ways_of(definition)
        if way.protocol != EVENTS and way.mode != "batch"
    ]
    return catalog, ways


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_context_is_read_back_or_rejected(shared: Path, data: st.DataObject) -> None:
    """Whatever the texts are: what is built says them, and nothing else stops it than what they are."""
    catalog, ways = loaded(data.draw(st.sampled_from(CATALOGUES)))
    definition, way = data.draw(st.sampled_from(ways))
    context = {name: data.draw(TEXTS) for name in definition.placeholders}
    wire, codes = built(catalog, definition, way, context)
    event("built" if wire else "refused")
    if wire is None:
        assert codes <= REFUSALS, codes
        return
    match = own_match(catalog, definition, to_line(wire))
    assert match is not None
    assert match.ambiguous_bindings == ("ambiguous-bindings" in codes)
    assert match.ambiguous_bindings or match.bindings == context


def built(
    catalog: Catalog, definition: Definition, way: Way, context: dict[str, str]
) -> tuple[AnyMessage | None, set[str]]:
    """The message without data, which is not asked about here, and the codes of what is said of it."""
    open_: dict[str, Any] = {} if definition.protocol else {"protocol": way.protocol}
    declared = {
        constraint.slot.name: constraint for constraint in definition.constraints if constraint.slot.section == ENVELOPE
    }
    attributes = {"source": "/s"} if definition.is_cloudevent and "source" not in declared else {}
    request = BuildRequest(context, attributes=attributes, mode=way.mode, **open_)  # type: ignore[arg-type]
    result = build(definition, request, catalog.options)
    return result.wire, {problem.code for problem in result.problems if problem.code != "inferred-type"}


def test_all_catalogues_are_tested(shared: Path) -> None:
    assert len(CATALOGUES) == 48 + 9
