"""Lists of definitions in another process: what is read, and when."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from wirebook.catalog import Catalog
from wirebook.definitions.match.definition_list import GROUP, DefinitionList, DefinitionMap

COUNT = 2 * GROUP + 3


def document(count: int = COUNT) -> dict[str, Any]:
    messages = {f"m{n:02}": {"messageid": f"m{n:02}", "protocol": "KAFKA"} for n in range(count)}
    return {"messagegroups": {"g": {"messagegroupid": "g", "messages": messages}}}


@pytest.fixture
def definitions() -> DefinitionList:
    return DefinitionList(Catalog.load(document()).definitions.values())


def copied(definitions: DefinitionList) -> DefinitionList:
    copy: DefinitionList = pickle.loads(pickle.dumps(definitions))
    return copy


@pytest.mark.parametrize("number", [0, GROUP - 1, GROUP, COUNT - 1, -1, -COUNT])
def test_a_copy_reads_the_group_of_a_definition(definitions: DefinitionList, number: int) -> None:
    copy = copied(definitions)
    assert copy[number].xid == definitions[number].xid
    assert copy[number] is copy[number]
    read = [place for place, definition in enumerate(copy._definitions) if definition is not None]
    first = number % COUNT // GROUP * GROUP
    assert read == [*range(first, min(first + GROUP, COUNT))]


def test_a_copy_has_all_definitions_in_order(definitions: DefinitionList) -> None:
    copy = copied(copied(definitions))
    assert len(copy) == COUNT
    assert [definition.xid for definition in copy[3:20:2]] == [definition.xid for definition in definitions[3:20:2]]
    assert [definition.attributes for definition in copy] == [definition.attributes for definition in definitions]
    with pytest.raises(IndexError):
        copied(definitions)[COUNT]
    with pytest.raises(IndexError):
        copied(definitions)[-COUNT - 1]


def test_definitions_by_xid_are_those_of_the_list(definitions: DefinitionList) -> None:
    by_xid, copy = pickle.loads(pickle.dumps((DefinitionMap(definitions), definitions)))
    assert list(by_xid) == [definition.xid for definition in definitions]
    assert "/messagegroups/g/messages/m20" in by_xid
    assert not any(copy._definitions)
    assert by_xid["/messagegroups/g/messages/m20"] is copy[20]
    assert by_xid.get("/messagegroups/g/messages/other") is None
    assert len(by_xid) == COUNT
