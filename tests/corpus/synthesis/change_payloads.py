"""Changes of payloads: of single members, and of the bytes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from synthesis import texts
from synthesis.changes import CHANGES, Change, change
from synthesis.dice import Dice
from synthesis.messages import Record
from synthesis.records import (
    GONE,
    changed_at,
    data_in,
    dumps,
    json_in,
    payload_member,
    places_in,
    put_payload,
    raw_of,
    value_at,
    with_data,
)


def in_data(make: Callable[[Any, Dice], Any], applies: Callable[[Any], bool] = lambda _: True) -> Change:
    """A change of one member of the data."""

    def changed(record: Record, dice: Dice) -> Record | None:
        data = data_in(record)
        places = [place for place in places_in(data) if applies(value_at(data, place))]
        if not places:
            return None
        return with_data(record, changed_at(data, dice.choice(places), lambda old: make(old, dice)))

    return changed


NUMBERS = (
    1.0,
    1e2,
    -0.0,
    2**31,
    2**63,
    2**64,
    -(2**63) - 1,
    10**30,
    0.1,
    1e-7,
    1e300,
    9007199254740993,
    -1,
    128,
    5e-324,
)
change_in_payload: dict[str, Change] = {
    "payload-drop": in_data(lambda _, __: GONE),
    "payload-null": in_data(lambda _, __: None),
    "payload-retype": in_data(lambda old, dice: dice.choice((str(old), [old], {"value": old}, True, 5, "x", 1.5))),
    "payload-number": in_data(
        lambda _, dice: dice.choice(NUMBERS), lambda old: isinstance(old, int | float) and not isinstance(old, bool)
    ),
    "payload-number-anywhere": in_data(lambda _, dice: dice.choice(NUMBERS)),
    "payload-text": in_data(
        lambda old, dice: dice.choice((
            old + "é", "", f" {old}", old.upper(), old + "\u0000", "2026-02-30", "-0", "007", "99999999999999999999", "1.0",
            "2026-01-01T00:00:00.1234567Z", "2026-01-01T23:59:60Z", "2026-01-01T00:00:00", "null", "AA", "\ud7ff",
        )),
        lambda old: isinstance(old, str),
    ),
    "payload-deep": in_data(lambda old, dice: _nested(old, dice.choice((3, 60, 198, 199, 200, 250)))),
}  # fmt: skip
CHANGES.update(change_in_payload)


def _nested(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value


@change
def payload_extra(record: Record, dice: Dice) -> Record | None:
    data = data_in(record)
    if not isinstance(data, dict):
        return None
    name = dice.choice(("extra", "_rest", "value", "", "ü", "$schema", texts.word(dice)))
    return with_data(record, data | {name: dice.choice((1, None, "x", {"a": [1, None]}, [], 10**30))})


@change
def payload_bytes(record: Record, dice: Dice) -> Record | None:
    """Bytes that are no JSON, or not only, or not quite."""
    raw = raw_of(record.get(payload_member(record)))
    cut = dice.randint(0, max(0, len(raw) - 1))
    return put_payload(record, dice.choice((
        b"", b"null", b"[]", b"{}", b"5", b'"text"', b"\xff\xfe", raw[:cut], raw[:-1], raw + b"}", raw + b" \t", b" " + raw,
        raw + b"\x00", b"\xef\xbb\xbf" + raw, b"\xef\xbb\xbf\xef\xbb\xbf" + raw, raw + raw, raw.replace(b"{", b"{ ", 1),
        raw.replace(b'"', b'"\xff', 1), b"[" + raw + b"]", raw.replace(b":", b" : "), raw.replace(b",", b",,", 1),
        b"NaN", b'{"a":NaN}', b'{"a":1e999}', raw.replace(b"e", b"\\u0065", 3), b"\\ud800".join((b'{"a":"', b'"}')),
        b'{"a":' + b"9" * 5000 + b"}", raw + b"\x0b", b"//c\n" + raw, raw.replace(b"}", b",}", 1),
    )))  # fmt: skip


@change
def payload_duplicates(record: Record, dice: Dice) -> Record | None:
    """A member twice: in data the last counts, in a structured event it is malformed."""
    raw = raw_of(record.get(payload_member(record)))
    names = [name for name, *rest in map(tuple, places_in(json_in(record))) if not rest and isinstance(name, str)]
    if not raw.lstrip().startswith(b"{") or not names:
        return None
    name = dumps(dice.choice(names))
    again = dice.choice((b"null", b"1", b'"x"', b"{}"))
    where = dice.choice(("first", "last", "inside"))
    if where == "first":
        return put_payload(record, raw.replace(b"{", b"{" + name + b":" + again + b",", 1))
    if where == "inside" and raw.count(b"{") > 1:
        head, _, rest = raw.rpartition(b"{")
        return put_payload(record, head + b'{"a":1,"a":2' + (b"" if rest.lstrip()[:1] == b"}" else b",") + rest)
    return put_payload(record, raw.rstrip().removesuffix(b"}") + b"," + name + b":" + again + b"}")


@change
def payload_coded(record: Record, dice: Dice) -> Record | None:
    """Base64 where a text would do."""
    raw = raw_of(record.get(payload_member(record)))
    record[payload_member(record)] = {"base64": base64.b64encode(raw).decode()}
    return record


@change
def no_payload(record: Record, dice: Dice) -> Record | None:
    record[payload_member(record)] = dice.choice((None, ""))
    return record
