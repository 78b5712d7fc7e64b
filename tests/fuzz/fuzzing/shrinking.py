"""Minimise a failing input: remove pieces as long as it violates the same rule.

Each attempt runs in a child of its own, so that hangs, deaths and floods of memory can be made small too.
"""

from __future__ import annotations

import json
import os
import select
import signal
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from fuzzing.case import Input, Kind, Limits, to_json
from fuzzing.worker import limit_space, run_case, say

Fails = Callable[[Any], bool]


def shrink(kind: Kind, given: Input, limits: Limits, report: TextIO) -> None:
    """Reports the smallest failing input so far, again and again, until nothing more can go."""
    fault = attempt(kind, given, limits)
    say(report, fault=fault, input=to_json(given))
    if fault is None:
        return
    for smaller in shrunk(given, lambda each: attempt(kind, each, limits) == fault):
        say(report, fault=fault, input=to_json(smaller))


def attempt(kind: Kind, given: Input, limits: Limits) -> str | None:
    """The rule that an input breaks, found in a child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        limit_space(limits)
        try:
            found = run_case(kind, given, limits)
        except BaseException as error:
            found = {"fault": repr(error)}
        os.write(write, json.dumps(found.get("fault")).encode())
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], limits.wall)
    said = os.read(read, 1 << 16) if ready else b""
    os.close(read)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if said:
        fault: str | None = json.loads(said)
        return fault
    return "died" if ready else "hang"


def shrunk(value: Any, fails: Fails) -> Iterator[Any]:
    """Ever smaller values that fail, the last one the smallest."""
    found = True
    while found:
        found = False
        for smaller in _smaller(value):
            if fails(smaller):
                value, found = smaller, True
                yield value
                break


def _smaller(value: Any) -> Iterator[Any]:
    """Values with something left out, the boldest first."""
    if isinstance(value, bytes | str | list):
        yield from _cuts(value)
    if isinstance(value, dict):
        yield from ({name: each for name, each in value.items() if name != gone} for gone in value)
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from (_with(value, key, smaller) for smaller in _smaller(each))


def _cuts(value: Any) -> Iterator[Any]:
    size = len(value)
    while size > 0:
        for start in range(0, len(value), size):
            yield value[:start] + value[start + size :]
        size //= 2


def _with(value: Any, key: Any, smaller: Any) -> Any:
    copy = value.copy()
    copy[key] = smaller
    return copy
