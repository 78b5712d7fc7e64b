"""Planted faults: each violates one rule, and the harness must report it. Only the tests of the harness run them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from synthesis.dice import Dice

from fuzzing.case import Input, Kind
from wirebook.problems import Problem


def make(dice: Dice) -> Input:
    return {"text": "x" * dice.randint(20, 60) + "!" + "y" * 20}


def numbered(break_rule: Callable[[str], Any]) -> Callable[[Input], Iterator[Any]]:
    """Breaks the rule when there is a mark in the text: so it can be made small."""

    def run(case: Input) -> Iterator[Any]:
        yield Problem("malformed-record")
        if "!" in case.get("text", ""):
            yield break_rule(case["text"])

    return run


def _raises(text: str) -> None:
    raise ZeroDivisionError(text)


def _hangs(text: str) -> None:
    while text:
        time.sleep(0.05)


def _burns(text: str) -> int:
    ends = time.process_time() + 3.5
    return sum(1 for _ in iter(lambda: time.process_time() < ends, False)) * 0


def _eats(text: str) -> int:
    return len(bytearray(len(text) and 550 * 1024**2)) * 0


def _bursts(text: str) -> int:
    return len(bytearray(len(text) and 100 * 1024**3))


def _wavers(text: str) -> float:
    return time.perf_counter()


def _hashes(text: str) -> int:
    return hash(text)


def _dies(text: str) -> None:
    os.abort()


def _admits(text: str) -> Problem:
    return Problem("internal-error", text)


FAULTS = {
    "raises": _raises, "hangs": _hangs, "burns": _burns, "eats": _eats, "bursts": _bursts,
    "wavers": _wavers, "hashes": _hashes, "dies": _dies, "admits": _admits,
}  # fmt: skip
KINDS = tuple(Kind(f"planted {name}", 0, make, numbered(fault)) for name, fault in FAULTS.items())


def kind_named(name: str) -> Kind:
    """A planted kind, or a real one. Raises: KeyError"""
    if name.startswith("planted "):
        return {kind.name: kind for kind in KINDS}[name]
    from fuzzing import kinds  # two seconds, of which the planted ones need nothing

    return {kind.name: kind for kind in kinds.KINDS}[name]
