"""Run cases one after the other within limits, and announce each case before it runs.

Lines on `report`: ``{"begin": n}``, then ``{"end": n, ...}`` with what came of it. When a case hangs or takes the process
down the last line names it.
"""

from __future__ import annotations

import faulthandler
import json
import resource
import time
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

from fuzzing.case import Answer, BrokenRule, Input, Kind, Limits, answer_of

SOURCE = "/src/wirebook/"
TWICE = 0.05  # seconds: what takes less is asked a second time


def run_cases(numbers: Mapping[Kind, Iterable[int]], seed: int, limits: Limits, report: TextIO) -> None:
    limit_space(limits)
    for kind, chosen in numbers.items():
        say(report, kind=kind.name)
        for number in chosen:
            case = kind.input(seed, number)
            say(report, begin=number)
            say(report, end=number, **run_case(kind, case, limits))


def say(report: TextIO, **line: Any) -> None:
    report.write(json.dumps(line) + "\n")
    report.flush()


def limit_space(limits: Limits) -> None:
    """Whatever asks for more addresses than that gets a MemoryError."""
    held = _status("VmSize") + limits.space
    resource.setrlimit(resource.RLIMIT_AS, (held, held))


def run_case(kind: Kind, case: Input, limits: Limits) -> dict[str, Any]:
    """What came of it: `codes`, `digest`, `cpu` in seconds, `memory` in bytes, and the `fault` with its signature."""
    forget_peak()
    faulthandler.dump_traceback_later(max(limits.wall * 0.9, 0.1))
    began = cpu_seconds()
    result: dict[str, Any] = {}
    answer = None
    try:
        answer = answer_of(kind, case)
    except Exception as error:  # the whole point
        result = fault_of(error)
    result["cpu"] = cpu_seconds() - began
    faulthandler.cancel_dump_traceback_later()
    result["memory"] = _status("VmHWM")
    if answer is not None:
        result |= {"codes": answer.codes, "digest": answer.digest}
        result |= over_limits(result, limits) or differs_when_repeated(kind, case, answer, result["cpu"])
    return result


def fault_of(error: Exception) -> dict[str, Any]:
    """What was raised, and where: the last place in Wirebook's own code is what tells faults apart."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if SOURCE in frame.filename]
    where = f"{own[-1].filename.partition(SOURCE)[2]}:{own[-1].name}" if own else "outside"
    what = str(error) if isinstance(error, BrokenRule) else ""
    text = "".join(traceback.format_exception(error))
    return {"fault": f"{type(error).__name__} {where} {what}".strip()[:300], "detail": text[-4000:]}


def over_limits(result: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """What a case took too much of: memory first, because much of it takes long."""
    if result["memory"] > limits.memory:
        return {
            "fault": "memory",
            "detail": f"{result['memory'] >> 20} MiB held, the bound is {limits.memory >> 20} MiB",
        }
    if result["cpu"] > limits.cpu:
        return {"fault": "slow", "detail": f"{result['cpu']:.1f} s of CPU time, the bound is {limits.cpu} s"}
    return {}


def differs_when_repeated(kind: Kind, case: Input, answer: Answer, cpu: float) -> dict[str, Any]:
    if cpu > TWICE or answer_of(kind, case).digest == answer.digest:
        return {}
    return {"fault": "not deterministic", "detail": "asked twice, the same process gave two answers"}


# -- what the process takes -------------------------------------------------------------------------------------------


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def forget_peak() -> None:
    """Lets the kernel count the peak of resident memory from here on."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)
