"""Generate texts that are valid by a simple type of XML Schema: by its built-in base type, then filtered by its facets."""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from synthesis import texts
from synthesis.dice import Dice
from synthesis.scalars import integer

XS = "{http://www.w3.org/2001/XMLSchema}"
TRIES = 200
WIDE = 10**20

SimpleType = Any  # of xmlschema
Draw = Callable[[Dice], str]


def text_of(type_: SimpleType, dice: Dice) -> str:
    """A text that xmlschema takes for a value of the type. Raises: ValueError when none was found"""
    for _ in range(TRIES):
        value = _drawn(type_, dice)
        if type_.text_is_valid(value):
            return value
    raise ValueError(f"no value of {type_} was found, the last that was tried is {value!r}")


def _drawn(type_: SimpleType, dice: Dice) -> str:
    if type_.enumeration:
        return str(dice.choice(type_.enumeration))
    if type_.is_union():
        return text_of(dice.choice(_nearest(type_, "member_types")), dice)
    if type_.is_list():
        return _list(type_, dice)
    patterns = _patterns(type_)
    return texts.matching(dice, dice.choice(patterns)) if patterns else _built_in(type_, dice)


def _patterns(type_: SimpleType) -> list[str]:
    """The patterns of the nearest step of the type's derivation that has any; not those of XML Schema itself."""
    while not str(type_.name or "").startswith(XS):
        facet = type_.facets.get(f"{XS}pattern")
        if facet is not None:
            return list(facet.regexps)
        type_ = type_.base_type
    return []


def _nearest(type_: SimpleType, name: str) -> Any:
    while not hasattr(type_, name):
        type_ = type_.base_type
    return getattr(type_, name)


def _list(type_: SimpleType, dice: Dice) -> str:
    least = type_.min_length or 0
    most = least + 2 if type_.max_length is None else min(type_.max_length, least + 2)
    item = _nearest(type_, "item_type")
    return " ".join(text_of(item, dice) for _ in range(dice.randint(least, most)))


def _built_in(type_: SimpleType, dice: Dice) -> str:
    name = _builtin_name(type_)
    if name in DRAWN:
        return DRAWN[name](dice)
    if name == "decimal":
        return _decimal(type_, dice)
    if name.endswith(("nteger", "int", "Int", "long", "Long", "short", "Short", "byte", "Byte")):
        return _integer(type_, dice)
    return _sized(type_, dice)


def _builtin_name(type_: SimpleType) -> str:
    while not str(type_.name or "").startswith(XS):
        type_ = type_.base_type
    return str(type_.name).removeprefix(XS)


def _bounds(type_: SimpleType) -> tuple[int, int]:
    low, high = type_.min_value, type_.max_value
    return (-WIDE if low is None else int(low), WIDE if high is None else int(high))


def _integer(type_: SimpleType, dice: Dice) -> str:
    digits_ = str(integer(dice, *_bounds(type_)))
    return digits_.replace("-", "-0") if dice.odd and digits_.startswith("-") else digits_


def _decimal(type_: SimpleType, dice: Dice) -> str:
    digits = getattr(type_.get_facet(f"{XS}fractionDigits"), "value", None)
    places = dice.choice([count for count in (0, 1, 2, 9) if digits is None or count <= digits])
    whole = Decimal(integer(dice, *_bounds(type_)))
    return f"{whole}.{''.join(dice.choices('0123456789', k=places))}" if places else str(whole)


def _sized(type_: SimpleType, dice: Dice) -> str:
    """A text with as many characters as are asked for."""
    least, most = type_.min_length or 0, 64 if type_.max_length is None else type_.max_length
    value = texts.text(dice)[:most]
    return value + texts.word(dice, least, least)[: max(0, least - len(value))]


def _name(dice: Dice) -> str:
    return f"n{texts.word(dice)}"


def _zoned(draw: Draw) -> Draw:
    return lambda dice: draw(dice) + dice.choice(("", "Z", "+05:30", "-14:00"))


def _year(dice: Dice) -> str:
    return texts.date(dice)[:4]


DRAWN: dict[str, Draw] = {
    "boolean": lambda dice: dice.choice(("true", "false", "1", "0")),
    "float": lambda dice: dice.choice(("0", "-2.25", "1024.125", "1e3", "INF", "-INF", "NaN")),
    "double": lambda dice: dice.choice(("0.1", "-1E300", "5e-324", "INF", "-INF", "NaN", str(dice.random()))),
    "dateTime": _zoned(lambda dice: f"{texts.date(dice)}T{texts.clock(dice)}"),
    "dateTimeStamp": lambda dice: f"{texts.date(dice)}T{texts.clock(dice)}Z",
    "date": _zoned(texts.date),
    "time": _zoned(texts.clock),
    "gYear": _zoned(_year),
    "gYearMonth": _zoned(lambda dice: texts.date(dice)[:7]),
    "gMonth": _zoned(lambda dice: f"--{texts.date(dice)[5:7]}"),
    "gMonthDay": _zoned(lambda dice: f"--{texts.date(dice)[5:]}"),
    "gDay": _zoned(lambda dice: f"---{texts.date(dice)[8:]}"),
    "duration": lambda dice: dice.choice(("PT0.5S", "P1M", "-P1Y2M3DT4H5M6S", "PT36H")),
    "yearMonthDuration": lambda dice: dice.choice(("P1M", "-P1Y2M")),
    "dayTimeDuration": lambda dice: dice.choice(("PT0.5S", "P3DT4H", "-PT36H")),
    "base64Binary": lambda dice: base64.b64encode(texts.word(dice, 0).encode()).decode(),
    "hexBinary": lambda dice: texts.word(dice, 0).encode().hex(),
    "anyURI": texts.uri,
    "language": lambda dice: dice.choice(("en", "de-CH", "zh-Hant")),
    "NMTOKEN": texts.word,
    "Name": _name,
    "NCName": _name,
    "ID": lambda dice: f"id{dice.getrandbits(64)}",
    "QName": _name,
}
