"""A day of the made-up company's traffic, message by message: the same for the same count and seed, always.

A page is 200 messages, as many of each kind as its table says, in an order of its own. Pages depend on nothing but
their number, so that several processes can make them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import NamedTuple

import orjson

from wirebook.demo.defects import Defect, choose, spoil
from wirebook.demo.kinds import KINDS, PER_PAGE, Forms, Kind
from wirebook.demo.payloads import Moment
from wirebook.demo.world import instant, time_of_day

SEED = 1


class TrafficLine(NamedTuple):
    """A line of a capture: its kind, and the defect it was given, if any."""

    kind: Kind
    line: bytes
    defect: Defect | None


def synthesise(count: int, seed: int = SEED) -> Iterator[bytes]:
    """`count` lines of the capture format, in the order of time."""
    return (made.line for made in messages(count, seed))


def messages(count: int, seed: int = SEED) -> Iterator[TrafficLine]:
    """`count` messages with what is known of them."""
    for number in range(-(-count // PER_PAGE)):
        yield from page(number, count, seed)


def page(number: int, count: int, seed: int) -> Iterator[TrafficLine]:
    """The messages of one page of a day that has `count`."""
    random = Random(f"{seed}/{number}")  # noqa: S311 (made-up data)
    order = [kind for kind in KINDS for _ in range(kind.per_page)]
    random.shuffle(order)
    seen: Counter[str] = Counter()
    first = number * PER_PAGE
    for place, kind in enumerate(order[: count - first]):
        second = time_of_day((first + place + random.random()) / count)
        moment = Moment(number * kind.per_page + seen[kind.name], second, seed, random)
        seen[kind.name] += 1
        yield _message(kind, moment, first + place)


@cache
def _forms() -> Forms:
    return Forms()


def _message(kind: Kind, moment: Moment, offset: int) -> TrafficLine:
    line = _line(kind, moment, offset)
    defect = choose(kind, moment.random)
    if defect is None:
        return TrafficLine(kind, line, None)
    spoilt = spoil(defect, line, orjson.loads(line), kind, moment.random)
    if spoilt is None:
        return TrafficLine(kind, line, None)
    return TrafficLine(kind, spoilt if isinstance(spoilt, bytes) else orjson.dumps(spoilt), defect)


def _line(kind: Kind, moment: Moment, offset: int) -> bytes:
    forms, random = _forms(), moment.random
    draft = kind.make(moment)
    values = {
        "id": f"{random.getrandbits(64):016x}",
        "time": instant(moment.second - random.uniform(0.02, 1.5)),
        "received": instant(moment.second),
        "offset": str(offset),
        **draft.values,
    }
    return forms.moulds[kind.name].fill(values, forms.encode(kind, draft.data))
