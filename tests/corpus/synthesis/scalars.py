"""Generate numbers and texts within the bounds of a schema, and values without a schema."""

from __future__ import annotations

import math
from typing import Any

from synthesis import texts
from synthesis.dice import Dice


def integer(dice: Dice, low: int, high: int) -> int:
    return dice.choice((low, high, dice.randint(low, high), max(low, min(high, dice.randint(-9, 99)))))


def number(dice: Dice, low: float, high: float) -> float | int:
    """Between the bounds: whole or broken, as integer or float."""
    low, high = max(low, -1e9), min(high, 1e9)
    value = dice.choice((low, high, dice.uniform(low, high), round(dice.uniform(low, high), 3)))
    whole = math.floor(value)
    return whole if dice.random() < 0.3 and low <= whole <= high else value


def bounds(node: dict[str, Any], low: float, high: float) -> tuple[Any, Any]:
    """The bounds that a schema sets, as numbers."""
    declared = [node.get("minimum", low), node.get("maximum", high)]
    if "exclusiveMinimum" in node:
        declared[0] = float(node["exclusiveMinimum"]) + 1
    return tuple(type(low)(bound) if isinstance(bound, str) else bound for bound in declared)


def text(node: dict[str, Any], dice: Dice) -> str:
    if "pattern" in node:
        return texts.matching(dice, node["pattern"])
    if node.get("format") in texts.FORMATS:
        return texts.FORMATS[node["format"]](dice)
    least, most = node.get("minLength", 0), node.get("maxLength", 64)
    value = texts.text(dice)[:most]
    return value + texts.word(dice, least, least)[: max(0, least - len(value))]


def anything(dice: Dice, level: int = 0) -> Any:
    """A value of no schema."""
    kinds = [lambda: None, lambda: True, lambda: dice.randint(-(2**40), 2**40), dice.random, lambda: texts.text(dice)]
    if level < 2:
        kinds += [lambda: [anything(dice, level + 1)], lambda: {texts.word(dice): anything(dice, level + 1)}]
    return dice.choice(kinds)()
