"""The traffic of the demonstration: the same always, in the order of time, and each message what it was made to be."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random
from typing import Any

import orjson
import pytest

from wirebook.catalog import Catalog
from wirebook.demo.faults import FAULTS, FAULTS_OF, SHARE, Fault, inject
from wirebook.demo.message_types import CATALOGUE, MESSAGE_TYPES, PER_PAGE, MessageType
from wirebook.demo.records import attribute
from wirebook.demo.traffic import TrafficLine, messages, page, synthesise
from wirebook.demo.world import DAY, instant, order, time_of_day

COUNT = 4_000


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load(CATALOGUE)


@pytest.fixture(scope="module")
def made() -> list[TrafficLine]:
    return list(messages(COUNT, seed=7))


def codes_of(catalog: Catalog, line: bytes) -> tuple[str, str | None, set[str]]:
    outcome = catalog.match(line)
    near = {problem.code for each in outcome.near for problem in each.problems}
    return outcome.outcome, outcome.definition, near | {problem.code for problem in outcome.problems}


def test_day_is_deterministic(made: list[TrafficLine]) -> None:
    assert list(synthesise(COUNT, seed=7)) == [each.line for each in made]
    assert list(synthesise(COUNT, seed=8)) != [each.line for each in made]


def test_page_depends_only_on_its_number(made: list[TrafficLine]) -> None:
    assert [each.line for each in page(3, COUNT, 7)] == [each.line for each in made[3 * PER_PAGE : 4 * PER_PAGE]]


@pytest.mark.parametrize("count", [1, PER_PAGE - 1, PER_PAGE, PER_PAGE + 1])
def test_number_of_messages_is_exact(count: int) -> None:
    assert len(list(synthesise(count))) == count


def test_messages_are_in_time_order(made: list[TrafficLine]) -> None:
    times = [orjson.loads(each.line)["received"] for each in made if not is_cut(each)]
    assert times == sorted(times)
    assert {time[:10] for time in times} == {DAY.date().isoformat()}


def is_cut(each: TrafficLine) -> bool:
    return each.fault is not None and each.fault.name == "cut-line"


def test_each_message_has_its_intended_outcome(catalog: Catalog, made: list[TrafficLine]) -> None:
    for each in made:
        outcome, definition, codes = codes_of(catalog, each.line)
        if each.fault is None:
            assert (outcome, definition) == ("matched", each.message_type.definition), each.line
        else:
            assert outcome == each.fault.outcome, (each.fault.name, each.line)
            assert each.fault.code in codes, (each.fault.name, codes, each.line)


def test_share_of_faults_is_as_configured(made: list[TrafficLine]) -> None:
    broken = sum(each.fault is not None for each in made)
    assert 0.6 * SHARE < broken / COUNT < 1.4 * SHARE


PAIRS = [(fault, message_type) for message_type in MESSAGE_TYPES for fault in FAULTS_OF[message_type.name][0]]


@pytest.mark.parametrize(("fault", "message_type"), PAIRS, ids=[f"{d.name}-{k.name}" for d, k in PAIRS])
def test_each_fault_of_each_type_has_its_outcome(
    catalog: Catalog, made: list[TrafficLine], fault: Fault, message_type: MessageType
) -> None:
    good = (each.line for each in made if each.message_type == message_type and each.fault is None)
    for number, line in enumerate(islice(good, 8)):
        spoilt = inject(fault, line, orjson.loads(line), message_type, Random(number))
        if spoilt is not None:
            text = spoilt if isinstance(spoilt, bytes) else orjson.dumps(spoilt)
            outcome, _, codes = codes_of(catalog, text)
            assert (outcome, fault.code in codes) == (fault.outcome, True), (codes, text)


def test_each_fault_occurs() -> None:
    assert {fault.name for faults, _ in FAULTS_OF.values() for fault in faults} == {fault.name for fault in FAULTS}


def test_later_messages_refer_to_earlier_orders(made: list[TrafficLine]) -> None:
    """An order that is packed or paid for was placed before, or the day before."""
    seen: dict[str, set[Any]] = {name: set() for name in ("placed", "packed", "captured")}
    for each in made:
        if each.fault is None and each.message_type.name in seen:
            seen[each.message_type.name].add(attribute(orjson.loads(each.line), "subject"))
    first = min(int(name[2:]) for name in seen["placed"])
    for name in ("packed", "captured"):
        of_today = {each for each in seen[name] if int(each[2:]) >= first}
        assert len(of_today - seen["placed"]) < 0.1 * len(of_today)


def test_orders_depend_only_on_their_number() -> None:
    assert order(5, 1) == order(5, 1) != order(6, 1)
    assert order(5, 1).name == "K-1000005"
    assert all(order(number, 1).lines for number in range(-20, 200))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "2026-03-14T00:00:00.000Z"),
        (59.9996, "2026-03-14T00:01:00.000Z"),
        (-0.5, "2026-03-13T23:59:59.500Z"),
        (86_400 + 3661.25, "2026-03-15T01:01:01.250Z"),
    ],
)
def test_instants_are_formatted_with_milliseconds(seconds: float, text: str) -> None:
    assert instant(seconds) == text


def test_traffic_follows_hours_of_the_day() -> None:
    hours = Counter(int(time_of_day(share / 1000) // 3600) for share in range(1000))
    assert min(hours) == 0
    assert max(hours) == 23
    assert hours[18] > 3 * hours[3]
