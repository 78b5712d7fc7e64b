"""Apply random changes to messages; some make them invalid.

What should become of a changed message is not said here: both engines must say the same, and the tests over real
events say what.
"""

from __future__ import annotations

import json
from dataclasses import replace

from synthesis import change_bytes, change_envelope, change_lines, change_payloads, change_slots, prefixes
from synthesis.changes import CHANGES, LINE_CHANGES, Change
from synthesis.dice import Dice
from synthesis.messages import Message, Record
from synthesis.records import EVENT_MEMBER, dumps, raw_of

KINDS = (
    change_envelope,
    change_slots,
    change_payloads,
    change_bytes,
    change_lines,
    prefixes,
)  # importing them adds their changes


def mutate(message: Message, dice: Dice, names: tuple[str, ...] | None = None) -> Message:
    """The message with one to three changes that apply, drawn at random or named."""
    record = {EVENT_MEMBER: message.line.decode()} if message.is_event_file else message.record
    done: list[str] = []
    for name in names or dice.choices(list(CHANGES), k=dice.choice((1, 1, 1, 2, 3))):
        changed = _apply(CHANGES[name], record, dice)
        if changed is not None:
            record = changed
            done.append(name)
    line = raw_of(record[EVENT_MEMBER]) if message.is_event_file else dumps(record)
    if names is None and (not done or dice.random() < 0.15):
        name = dice.choice(list(LINE_CHANGES))
        line = LINE_CHANGES[name](line or b" ", dice)
        done.append(name)
    return replace(message, line=line.replace(b"\n", b" ").replace(b"\r", b" "), mutations=(*message.mutations, *done))


def _apply(change: Change, record: Record, dice: Dice) -> Record | None:
    try:
        return change(json.loads(json.dumps(record)), dice)
    except (TypeError, KeyError, AttributeError, IndexError, ValueError):
        return None  # an earlier change broke what this one would have changed
