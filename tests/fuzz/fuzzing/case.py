"""A case: an input of one kind, its result, and how both are stored."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from synthesis.dice import Dice, dice_of

from wirebook.problems import Problem, WirebookError

DEEP = 20_000
Input = dict[str, Any]
"""JSON values, and bytes among them."""


@dataclass(frozen=True)
class Kind:
    """One kind of input: `make` draws it, `run` gives it to Wirebook and yields whatever that answers.

    Units: `share` of a thousand cases.
    """

    name: str
    share: int
    make: Callable[[Dice], Input]
    run: Callable[[Input], Iterable[Any]]

    def input(self, seed: int, number: int) -> Input:
        """The input of a case; it may be nested deeper than Wirebook is ready to go."""
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(DEEP)
        try:
            return self.make(dice_of(f"{seed} {self.name} {number}", strangeness=0.3))
        finally:
            sys.setrecursionlimit(usual)


@dataclass(frozen=True)
class Limits:
    """What one case may take.

    Units: `wall` and `cpu` seconds; `memory` bytes, the most that the process may ever hold; `space` bytes of addresses
    beyond those that it has before the first case.
    """

    wall: float = 60.0
    cpu: float = 5.0
    memory: int = 1024 * 1024**2
    space: int = 3 * 1024**3


@dataclass
class Answer:
    """What Wirebook said: the codes of all problems, and a digest of every word."""

    codes: list[str] = field(default_factory=list)
    digest: str = ""


class BrokenRule(AssertionError):
    """A rule that the answer itself breaks."""


def answer_of(kind: Kind, value: Input) -> Answer:
    """Raises: whatever the case does that it must not."""
    answer, words = Answer(), hashlib.sha256()
    try:
        for part in kind.run(value):
            answer.codes += [problem.code for problem in problems_in(part)]
            words.update(repr(part).encode("utf-8", "surrogatepass"))
    except WirebookError as error:
        answer.codes += [problem.code for problem in error.problems]
        words.update(repr(error.problems).encode("utf-8", "surrogatepass"))
        if not error.problems:
            raise BrokenRule("a WirebookError without a problem") from error
    if "internal-error" in answer.codes:
        raise BrokenRule("the answer is 'internal-error'")
    answer.digest = words.hexdigest()[:16]
    return answer


def problems_in(answer: Any) -> Iterator[Problem]:
    if isinstance(answer, Problem):
        yield answer
    elif isinstance(answer, list | tuple):
        for part in answer:
            yield from problems_in(part)


def check(holds: bool, rule: str) -> None:
    """Raises: BrokenRule"""
    if not holds:
        raise BrokenRule(rule)


# -- written down -----------------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """An input as plain JSON: bytes as text where they are UTF-8."""
    if isinstance(value, bytes):
        try:
            return {"$utf8": value.decode()}
        except UnicodeDecodeError:
            return {"$base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, list | tuple) else value


def from_json(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"$utf8"}:
        return value["$utf8"].encode()
    if isinstance(value, dict) and value.keys() == {"$base64"}:
        return base64.b64decode(value["$base64"])
    if isinstance(value, dict):
        return {name: from_json(item) for name, item in value.items()}
    return [from_json(item) for item in value] if isinstance(value, list) else value
