"""Candidates found by columns are those that the index returns for each message."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import orjson
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from wirebook.bindings import read_record
from wirebook.catalog import Catalog
from wirebook.definitions.compile.view import MessageView
from wirebook.definitions.match.index import Index
from wirebook.landing.columns.candidates import CandidateFinder
from wirebook.landing.columns.events import messages_by_mode
from wirebook.landing.columns.json_records import JsonRecords

SEGMENTS = st.sampled_from(("a", "b", "c", "ü", "A b", "%41", ""))
DECLARED = st.lists(st.one_of(SEGMENTS, st.sampled_from(("{p}", "{q}"))), min_size=1, max_size=5).map("/".join)
RECEIVED = st.lists(SEGMENTS, min_size=1, max_size=6).map("/".join).filter(bool)
SOURCE = st.lists(st.sampled_from(("a", "b", "c")), min_size=1, max_size=6).map("/".join)
SLOTS = st.fixed_dictionaries({}, optional={"type": DECLARED, "source": DECLARED, "subject": DECLARED, "key": DECLARED})
MESSAGES = st.fixed_dictionaries(
    {"type": RECEIVED, "source": SOURCE}, optional={"subject": RECEIVED, "key": st.one_of(RECEIVED, st.none())}
)


def definition(slots: dict[str, str]) -> dict[str, object]:
    attributes = {
        name: {"type": "uritemplate", "value": value, "required": True}
        for name, value in slots.items()
        if name != "key"
    }
    options = {"protocoloptions": {"key": slots["key"]}} if "key" in slots else {}
    return {"envelope": "CloudEvents/1.0", "envelopemetadata": attributes, "protocol": "KAFKA"} | options


def record(slots: dict[str, str | None]) -> bytes:
    attributes = {"specversion": "1.0", "id": "1"} | {name: text for name, text in slots.items() if name != "key"}
    headers = [[f"ce_{name}", text] for name, text in attributes.items()]
    return orjson.dumps({"protocol": "KAFKA", "headers": headers, "value": "{}", "key": slots.get("key")})


@settings(max_examples=80, deadline=None)
@given(st.lists(SLOTS, min_size=1, max_size=20), st.lists(MESSAGES, min_size=1, max_size=20), st.data())
def test_candidates_are_those_of_the_index(
    declared: list[dict[str, str]], messages: list[dict[str, str | None]], data: st.DataObject
) -> None:
    members = {f"m{number}": definition(slots) for number, slots in enumerate(declared)}
    document = {"specversion": "1.0-rc4", "registryid": "r", "messagegroups": {"g": {"messages": members}}}
    definitions = list(Catalog.load(document).definitions.values())
    index = Index(definitions)
    in_scope = np.array([data.draw(st.booleans()) for _ in definitions], bool)
    finder = CandidateFinder(index, in_scope)
    lines = [record(slots) for slots in messages]
    compared = 0
    for columns in messages_by_mode(JsonRecords(pa.array(lines, pa.large_binary())), frozenset()):
        found: defaultdict[int, set[int]] = defaultdict(set)
        for row, number in zip(*(column.tolist() for column in finder.find(columns)), strict=True):
            found[row].add(number)
        for row in np.flatnonzero(~finder.unindexed(columns)).tolist():
            [received] = read_record(lines[columns.rows[row]])
            expected = {definitions.index(one) for one in index.candidates(MessageView(received))}
            assert found[row] == {number for number in expected if in_scope[number]}
            compared += 1
    assert compared == len(messages)
