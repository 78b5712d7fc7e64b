"""Unusual values, texts and bytes, and ways to damage valid ones."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from synthesis import texts
from synthesis.dice import Dice

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.0, 1.5, -0.0, 1e308, 5e-324, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400, "", " ", "x",
    "None", "null", "\0", "\ud800", "é", "😀", "{a}", "{a}{b}", "{a}-{b}/{a}", "{", "}", "{}", "{+x}", "%", "%41", "%zz", "%C0%A0",
    "a b", "a/b", "/", "//", "#", "#/", "?", "../..", "1.0", "05", "1e2", "9" * 50, "true", "2026-02-30", "0000-01-01T00:00:00Z",
    "2026-01-01T00:00:00Z", "2026-12-31T23:59:60.123456789012+23:59", "P1M", "AA==", "====", "application/json", ";", "a/b;c",
    "application/cloudevents+json", "application/cloudevents-batch+json", "/messagegroups/g/messages/m", "#/messagegroups/g",
    "https://h/", "http://[", "urn:x", "\r\n", "\t", "\u2028", "\ufeff", "​", [], {}, [None], [[]], [{}], {"": ""}, {"a": {}},
    {"value": None}, {"value": {"value": 1}}, {"type": []}, {"name": []}, [{"name": 1}], {"base64": "AA=="}, {"base64": 5},
    {"timestamp": "x"}, {"ulong": -1}, {"uuid": ""}, {"$ref": "#"}, {"$ref": 5}, {"type": "object"}, ["null", "string"],
)  # fmt: skip
PIECES = (
    b"", b"\0", b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xff\xfe", b"\\", b'"', b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\r", b"\t", b"%",
    b"\\u0000", b"\\ud800", b"-", b"1e999", b"NaN", b"null", b"9" * 400, b"*a", b"&a ", b"!!python/object:os.system ", b"<<: ",
    b"? ", b"| ", b"#", b"<", b">", b"&", b"]]>", b"<!--", b"<!DOCTYPE x>", b"&lol;", b"\x80", b"\x7f", b"  ",
)  # fmt: skip


def json_of(value: Any) -> bytes:
    """A value as JSON text, lone surrogates escaped."""
    return json.dumps(value, ensure_ascii=True).encode()


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, member in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield (*path, key)
        yield from places(member, (*path, key))


def spoiled(value: Any, dice: Dice, times: int = 1, names: tuple[str, ...] = ()) -> Any:
    """A copy with values exchanged, members added, taken away, renamed, moved or doubled."""
    value = copy.deepcopy(value)
    for _ in range(times):
        paths = list(places(value))
        if not paths:
            return copy.deepcopy(dice.choice(VALUES))
        _spoil(value, dice.choice(paths), paths, dice, names)
    return value


def _spoil(value: Any, path: tuple[Any, ...], paths: list[tuple[Any, ...]], dice: Dice, names: tuple[str, ...]) -> None:
    holder = _at(value, path[:-1])
    kind = dice.randrange(8)
    if kind <= 2:
        holder[path[-1]] = copy.deepcopy(dice.choice(VALUES))
    elif kind == 3:
        del holder[path[-1]]
    elif kind == 4:
        holder[path[-1]] = copy.deepcopy(_at(value, dice.choice(paths)))
    elif kind == 5 and isinstance(holder[path[-1]], str):
        holder[path[-1]] = text(holder[path[-1]], dice)
    elif isinstance(holder, list):
        holder.insert(dice.randint(0, len(holder)), copy.deepcopy(dice.choice([*holder, *VALUES])))
    elif kind == 6:
        holder[_name(paths, dice, names)] = copy.deepcopy(dice.choice([*holder.values(), *VALUES]))
    else:
        holder[_name(paths, dice, names)] = holder.pop(path[-1])


def _name(paths: list[tuple[Any, ...]], dice: Dice, names: tuple[str, ...]) -> str:
    used = [path[-1] for path in paths if isinstance(path[-1], str)]
    return dice.choice([*used, *names, "", "x", "é", "$ref", "a/b~", texts.word(dice)])


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def text(old: str, dice: Dice) -> str:
    """A text with something more, less or else in it."""
    place = dice.randint(0, len(old))
    more = dice.choice([value for value in VALUES if isinstance(value, str)])
    return dice.choice((
        old[:place] + more + old[place:], old[:place], old[place:], old + old, old.upper(), old.lower(), more, f" {old} ",
        old[::-1], old.replace("/", "//"), old * dice.choice((1, 50)),
    ))  # fmt: skip


def octets(old: bytes, dice: Dice, times: int | None = None) -> bytes:
    """Bytes with some of them changed, cut, doubled or added."""
    for _ in range(dice.choice((1, 1, 2, 5)) if times is None else times):
        start, stop = sorted((dice.randint(0, len(old)), min(len(old), dice.randint(0, len(old)))))
        stop = min(stop, start + dice.choice((0, 1, 1, 4, 40)))
        kind = dice.randrange(7)
        more = dice.choice(PIECES) if kind < 3 else dice.randbytes(dice.choice((1, 1, 2, 8)))
        if kind < 4:
            old = old[:start] + more + old[stop:]
        elif kind == 4:
            old = old[:start]
        elif kind == 5:
            old = old[:stop] + old[start:stop] * dice.choice((1, 2, 30)) + old[stop:]
        else:
            old = old[:start] + old[stop:]
    return old


def noise(dice: Dice) -> bytes:
    """Bytes of no format, or a long run of one thing."""
    kind = dice.randrange(4)
    if kind == 0:
        return dice.randbytes(dice.choice((0, 1, 3, 20, 300)))
    if kind == 1:
        return b"".join(dice.choices(PIECES, k=dice.choice((1, 5, 40))))
    if kind == 2:
        return "".join(dice.choices('[]{}",:0123456789eE+-.truefalsn\\ud8ab<>/=&; ', k=dice.randint(1, 60))).encode()
    return dice.choice((*PIECES, b"[", b'{"a":', b"<a>", b"\x0a", b"\x80", b"(", b"\x02", b"\x0b")) * dice.choice(
        (10, 1000, 20_000)
    )
