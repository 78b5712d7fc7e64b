"""Fuzz templates: parse, match, expand and solve them together, including hostile ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from synthesis import texts
from synthesis.dice import Dice

from fuzzing import junk
from fuzzing.case import Input, check
from wirebook.definitions.compile.uritemplate import (
    MQTT_TOPIC,
    NATS_SUBJECT,
    PATH,
    PLACEHOLDER,
    QUERY,
    TEXT,
    URI,
    parse_template,
    solve,
    units_of,
)

PLACES = {place.name: place for place in (TEXT, URI, PATH, QUERY, MQTT_TOPIC, NATS_SUBJECT)}
NAMES = ("a", "b", "c", "tenant_id", "1", "A")
LITERALS = (
    "",
    "",
    "/",
    "-",
    ".",
    "a",
    "ab",
    "x",
    "https://h/",
    "/s/",
    "%41",
    "ü",
    "{",
    "}",
    "{+q}",
    "{}",
    "{a-b}",
    "*",
    "\\",
    "(",
    "\n",
    "?x=",
)
LONG = 30_000


def _template(dice: Dice) -> str:
    return "".join(
        dice.choice(LITERALS) + f"{{{dice.choice(NAMES)}}}" for _ in range(dice.randint(0, 6))
    ) + dice.choice(LITERALS)


def _whole(text: str) -> str:
    """The text without halves of surrogate pairs, which no template is ever expanded with."""
    return text.encode("utf-8", "replace").decode()


def make(dice: Dice) -> Input:
    drawn = [
        {"template": _template(dice), "place": dice.choice(list(PLACES))} for _ in range(dice.choice((1, 1, 2, 4)))
    ]
    values = {
        name: _whole(junk.text(texts.strange(dice), dice)) if dice.random() < 0.3 else texts.text(dice) or "x"
        for name in NAMES
    }
    for slot in drawn:
        text = (
            parse_template(slot["template"], PLACES[slot["place"]]).expand(
                values | {}, encoding=dice.choice(("place", "raw", "rfc6570"))
            )
            if dice.random() < 0.8
            else texts.strange(dice)
        )
        slot["text"] = junk.text(text, dice) if dice.random() < 0.3 else text
    return {"slots": drawn, "values": values}


def make_long(dice: Dice) -> Input:
    """Twenty placeholders and a text that is nearly, and nearly again, what they ask for."""
    glue = dice.choice(("-", "a", "ab", "/", ".", "%41", ""))
    count = dice.choice((1, 2, 20, 200))
    names = [f"p{number % dice.choice((1, 3, 500))}" for number in range(count)]
    template = glue.join(f"{{{name}}}" for name in names) + dice.choice(("", "!", "{z}", glue + "b"))
    piece = dice.choice((glue or "a", "a", "ab", "a-", "%", "%41", "/", "😀", "-"))
    text = piece * (LONG // len(piece)) + dice.choice(("", "!", "b"))
    slots = [{"template": template, "place": dice.choice(list(PLACES)), "text": text}]
    slots += [{"template": "{p0}-{p1}", "place": "text", "text": text}] * dice.choice((0, 1, 5))
    return {"slots": slots, "values": dict.fromkeys([*names, "z"], "x" * 50)}


def run(case: Input) -> Iterator[Any]:
    units = []
    for number, slot in enumerate(case["slots"]):
        template = parse_template(slot["template"], PLACES[slot["place"]])
        split, strict = template.match(slot["text"]), template.match(slot["text"], rfc6570=True)
        check(strict is None or strict == split, "the strict reading is another one")
        if split is not None:
            check(len(split.captures) == len(template.names) and all(split.captures), "a placeholder without a text")
            check(_filled(slot["template"], split.captures) == slot["text"], "the pieces do not make the text")
            yield (
                split,
                list(template.keys(split)),
                [template.bind(*pair) for pair in zip(template.names, split.captures, strict=True)],
            )
            units += list(units_of(str(number), template, slot["text"]))
        yield _expanded(template, case["values"])
    solution = solve(units)
    yield (
        solution.ambiguous,
        solution.conflict,
        solution.bindings([str(number) for number in range(len(case["slots"]))]),
    )


def _filled(template: str, captures: tuple[str, ...]) -> str:
    parts = iter(captures)
    return PLACEHOLDER.sub(lambda _: next(parts), template)


def _expanded(template: Any, values: dict[str, str]) -> Any:
    try:
        return [template.expand(values, encoding=encoding) for encoding in ("place", "raw", "rfc6570")]
    except KeyError as error:  # as its docstring says
        return str(error)
    except UnicodeEncodeError:
        check(any("\ud800" in value for value in values.values()), "no surrogate, and no UTF-8")
        return None
