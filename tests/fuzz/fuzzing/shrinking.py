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


def shrink(kind: Kind, case: Input, limits: Limits, report: TextIO) -> None:
    """Reports the smallest failing input so far, again and again, until nothing more can go."""
    fault = attempt(kind, case, limits)
    say(report, fault=fault, input=to_json(case))
    if fault is None:
        return
    for smaller in shrunk(case, lambda smaller_case: attempt(kind, smaller_case, limits) == fault):
        say(report, fault=fault, input=to_json(smaller))


def attempt(kind: Kind, case: Input, limits: Limits) -> str | None:
    """The rule that an input breaks, found in a child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        limit_space(limits)
        try:
            result = run_case(kind, case, limits)
        except BaseException as error:
            result = {"fault": repr(error)}
        os.write(write, json.dumps(result.get("fault")).encode())
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], limits.wall)
    output = os.read(read, 1 << 16) if ready else b""
    os.close(read)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if output:
        fault: str | None = json.loads(output)
        return fault
    return "died" if ready else "hang"


def shrunk(value: Any, fails: Fails) -> Iterator[Any]:
    """Ever smaller values that fail, the last one the smallest."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(value):
            if fails(smaller):
                value, is_smaller = smaller, True
                yield value
                break


def _smaller(value: Any) -> Iterator[Any]:
    """Values with something left out, the boldest first."""
    if isinstance(value, bytes | str | list):
        yield from _cuts(value)
    if isinstance(value, dict):
        yield from ({name: item for name, item in value.items() if name != gone} for gone in value)
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from (_with(value, key, smaller) for smaller in _smaller(item))


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
