"""A day of traffic of the fictional company, message by message. Count and seed determine it completely.

A page is 200 messages in random order, with a fixed number of each type. Pages do not depend on each other, so several
processes can generate them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import NamedTuple

import orjson

from wirebook.demo.faults import Fault, choose_fault, inject
from wirebook.demo.message_types import MESSAGE_TYPES, PER_PAGE, MessageTemplates, MessageType
from wirebook.demo.payloads import Moment
from wirebook.demo.world import instant, time_of_day

SEED = 1


class TrafficLine(NamedTuple):
    """A line of a capture: its message type, and its injected fault, if any."""

    message_type: MessageType
    line: bytes
    fault: Fault | None


def synthesise(count: int, seed: int = SEED) -> Iterator[bytes]:
    """Yield `count` lines of the capture format in time order."""
    return (line.line for line in messages(count, seed))


def messages(count: int, seed: int = SEED) -> Iterator[TrafficLine]:
    """Yield `count` lines with their message types and faults."""
    for number in range(-(-count // PER_PAGE)):
        yield from page(number, count, seed)


def page(number: int, count: int, seed: int) -> Iterator[TrafficLine]:
    """Yield the messages of one page of a day with `count` messages."""
    random = Random(f"{seed}/{number}")  # noqa: S311 (made-up data)
    order = [message_type for message_type in MESSAGE_TYPES for _ in range(message_type.per_page)]
    random.shuffle(order)
    seen: Counter[str] = Counter()
    first = number * PER_PAGE
    for place, message_type in enumerate(order[: count - first]):
        second = time_of_day((first + place + random.random()) / count)
        moment = Moment(number * message_type.per_page + seen[message_type.name], second, seed, random)
        seen[message_type.name] += 1
        yield _message(message_type, moment, first + place)


@cache
def _templates() -> MessageTemplates:
    return MessageTemplates()


def _message(message_type: MessageType, moment: Moment, offset: int) -> TrafficLine:
    line = _line(message_type, moment, offset)
    fault = choose_fault(message_type, moment.random)
    if fault is None:
        return TrafficLine(message_type, line, None)
    spoilt = inject(fault, line, orjson.loads(line), message_type, moment.random)
    if spoilt is None:
        return TrafficLine(message_type, line, None)
    return TrafficLine(message_type, spoilt if isinstance(spoilt, bytes) else orjson.dumps(spoilt), fault)


def _line(message_type: MessageType, moment: Moment, offset: int) -> bytes:
    templates, random = _templates(), moment.random
    draft = message_type.make(moment)
    values = {
        "id": f"{random.getrandbits(64):016x}",
        "time": instant(moment.second - random.uniform(0.02, 1.5)),
        "received": instant(moment.second),
        "offset": str(offset),
        **draft.values,
    }
    return templates.templates[message_type.name].fill(values, templates.encode(message_type, draft.data))
