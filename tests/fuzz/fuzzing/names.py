"""Fuzz table names: each definition has a unique folder name that is valid on every file system."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from synthesis import texts
from synthesis.dice import Dice

from fuzzing import junk
from fuzzing.case import Input, check
from wirebook.landing.tables.layout import NO_DEFINITION
from wirebook.landing.tables.names import assign_names, readable_name

TABLE = re.compile(r"[a-z0-9][a-z0-9_]{0,120}\Z", re.ASCII)
PARTS = (
    "a",
    "b",
    "A",
    "_",
    "__",
    "-",
    ".",
    "..",
    "a_b",
    "a__b",
    "é",
    "E",
    "con",
    "nul",
    "aux",
    "dead_letters",
    "x" * 130,
    "%2F",
    "日本",
    "ß",
    "SS",
    "İ",
    "1",
    "",
)


def _id(dice: Dice) -> str:
    name = "".join(dice.choice(PARTS) for _ in range(dice.randint(1, 3)))
    return (junk.text(name, dice) if dice.random() < 0.1 else name + dice.choice(("", texts.word(dice)))).replace(
        "/", ""
    ) or "x"


def make(dice: Dice) -> Input:
    return {
        "xids": [f"/{dice.choice(('messagegroups', 'endpoints'))}/{_id(dice)}/messages/{_id(dice)}" for _ in range(30)]
    }


def run(case: Input) -> Iterator[Any]:
    named: dict[str, str] = {}
    xids = [*dict.fromkeys(case["xids"])]
    existing = {xid: assign_names(xids[:9], {}).get(xid, readable_name(xid)) for xid in xids[:9]}
    assigned = existing | assign_names(xids, existing)
    for xid in xids:
        name = assigned.get(xid, readable_name(xid))
        yield name
        check(TABLE.match(name) is not None, f"{xid!r} makes the table name {name!r}")
        check(name not in NO_DEFINITION, f"{xid!r} makes the name of a table without a definition")
        check(named.setdefault(name.lower(), xid) == xid, f"{xid!r} and {named[name.lower()]!r} are both {name!r}")
