"""Generate texts: plain and unusual words, texts that match a pattern, and texts of the formats of schemas."""

from __future__ import annotations

import re._constants as sre
import re._parser as sre_parser
from typing import Any

from synthesis.dice import Dice

PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
STRANGE = (
    "ü",
    "Ω",
    "語",
    "😀",
    " ",
    "%",
    "%41",
    "%2F",
    '"',
    "\\",
    "'",
    "+",
    "&",
    "=",
    "<",
    ".",
    ",",
    ";",
    "-",
    "_",
    "~",
)
MAX_REPEAT = 4


def word(dice: Dice, least: int = 1, most: int = 8) -> str:
    return "".join(dice.choices(PLAIN, k=dice.randint(least, max(least, most))))


def strange(dice: Dice) -> str:
    """A text with characters that encodings, separators and parsers trip over; no control characters."""
    parts = [dice.choice(STRANGE) if dice.random() < 0.4 else word(dice, 1, 3) for _ in range(4)]
    return "".join(parts).strip() or "x"


def text(dice: Dice) -> str:
    return strange(dice) if dice.odd else word(dice, 0, 12)


# -- texts of formats -----------------------------------------------------------------------------------------------


def date(dice: Dice) -> str:
    year = dice.choice((1970, 1999, 2000, 2024, 2026, 2999))
    return f"{year:04}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"


def clock(dice: Dice) -> str:
    hour, minute, second = dice.randint(0, 23), dice.randint(0, 59), dice.randint(0, 59)
    digits = dice.choice((0, 1, 7, 9) if dice.odd else (0, 3, 6))
    fraction = "." + "".join(dice.choices("0123456789", k=digits)) if digits else ""
    return f"{hour:02}:{minute:02}:{second:02}{fraction}"


def offset(dice: Dice) -> str:
    hours = f"{dice.randint(0, 14):02}:{dice.choice(('00', '30', '45'))}"
    return dice.choice((f"+{hours}", f"-{hours}")) if dice.odd else "Z"


def instant(dice: Dice) -> str:
    """An RFC 3339 time, now and then with small letters."""
    value = f"{date(dice)}T{clock(dice)}{offset(dice)}"
    return value.lower() if dice.odd and dice.random() < 0.2 else value


def uuid(dice: Dice) -> str:
    digits = f"{dice.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def uri(dice: Dice) -> str:
    return f"https://{word(dice).lower()}.example/{word(dice)}?{word(dice)}=%20#{word(dice)}"


def duration(dice: Dice) -> str:
    return dice.choice(("PT0.5S", "P1M", "P1Y2M3DT4H5M6S", "PT36H", "P2W"))


def email(dice: Dice) -> str:
    return f"{word(dice).lower()}@{word(dice).lower()}.example"


FORMATS = {
    "date-time": instant,
    "datetime": instant,
    "date": date,
    "time": lambda dice: clock(dice) + offset(dice),
    "uuid": uuid,
    "uri": uri,
    "uri-reference": lambda dice: dice.choice((uri(dice), f"/{word(dice)}", f"{word(dice)}/x")),
    "duration": duration,
    "email": email,
    "ipv4": lambda dice: ".".join(str(dice.randint(0, 255)) for _ in range(4)),
}


# -- texts of a pattern ---------------------------------------------------------------------------------------------


def matching(dice: Dice, pattern: str) -> str:
    """A text that a regular expression finds something in: of the plain kind that schemas have."""
    return "".join(_piece(dice, op, argument) for op, argument in sre_parser.parse(pattern))


def _piece(dice: Dice, op: Any, argument: Any) -> str:
    if op is sre.LITERAL:
        return chr(argument)
    if op is sre.NOT_LITERAL:
        return dice.choice([piece for piece in PLAIN if piece != chr(argument)])
    if op is sre.ANY:
        return word(dice, 1, 1)
    if op is sre.IN:
        return _one_of(dice, argument)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, inner = argument
        count = dice.randint(least, min(int(most), least + MAX_REPEAT))
        return "".join(_piece(dice, *piece) for _ in range(count) for piece in inner)
    if op is sre.BRANCH:
        return "".join(_piece(dice, *piece) for piece in dice.choice(argument[1]))
    if op is sre.SUBPATTERN:
        return "".join(_piece(dice, *piece) for piece in argument[3])
    return ""  # an anchor


def _one_of(dice: Dice, choices: list[tuple[Any, Any]]) -> str:
    if choices[0][0] is sre.NEGATE:
        taken = {chr(argument) for op, argument in choices[1:] if op is sre.LITERAL}
        return dice.choice([character for character in PLAIN if character not in taken])
    op, argument = dice.choice(choices)
    if op is sre.RANGE:
        return chr(dice.randint(*argument))
    if op is sre.CATEGORY:
        return _CATEGORIES[argument](dice)
    return chr(argument)


_CATEGORIES = {
    sre.CATEGORY_DIGIT: lambda dice: dice.choice("0123456789"),
    sre.CATEGORY_WORD: lambda dice: word(dice, 1, 1),
    sre.CATEGORY_SPACE: lambda _: " ",
    sre.CATEGORY_NOT_SPACE: lambda dice: word(dice, 1, 1),
    sre.CATEGORY_NOT_DIGIT: lambda _: "x",
}
