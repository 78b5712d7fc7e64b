"""Supervise the worker process: end and report a case that hangs, and report a case that crashes the process."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fuzzing.case import Limits

MAIN = Path(__file__).with_name("main.py")
STARTING = 120.0  # seconds until a worker has said its first word
SHRINKING = 30.0  # seconds for each finding
HASH_SEEDS = ("1", "2")
RUNS_AGAIN = 10  # every tenth case is run again, in another process with other hashes


@dataclass(frozen=True)
class Finding:
    """A case that broke a rule."""

    kind: str
    seed: int
    number: int
    fault: str
    detail: str

    def __str__(self) -> str:
        again = f"./run fuzz --kind '{self.kind}' --seed {self.seed} --case {self.number}"
        return f"{self.kind}: {self.fault}\n  again: {again}\n  " + self.detail.strip().replace("\n", "\n  ")


@dataclass
class Tally:
    """What came of the cases of a kind. Units: seconds, bytes; `slowest` is (seconds, number)."""

    cases: int = 0
    seconds: float = 0.0
    codes: Counter[str] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)
    memory: int = 0
    findings: list[Finding] = field(default_factory=list)
    digests: dict[int, str] = field(default_factory=dict)


Numbers = dict[str, Sequence[int]]
"""The numbers of the cases to be run, by their kind."""


def campaign(numbers: Numbers, seed: int, limits: Limits, say: Callable[[str], None]) -> dict[str, Tally]:
    """What came of the cases of each kind; a share of them is run again, in another process with other hashes."""
    tallies = {kind: Tally() for kind in numbers}
    again = {kind: Tally() for kind in numbers}
    _run(numbers, seed, limits, tallies, HASH_SEEDS[0], say)
    say(f"every {RUNS_AGAIN}th again, with other hashes")
    _run(
        {kind: cases[::RUNS_AGAIN] for kind, cases in numbers.items()},
        seed,
        limits,
        again,
        HASH_SEEDS[1],
        lambda _: None,
    )
    for kind, tally in tallies.items():
        for number, digest in again[kind].digests.items():
            if tally.digests.get(number, digest) != digest:
                detail = "another process, with other hashes, gave another answer"
                tally.findings.append(Finding(kind, seed, number, "not deterministic", detail))
    return tallies


def _run(
    numbers: Numbers, seed: int, limits: Limits, tallies: dict[str, Tally], hashes: str, say: Callable[[str], None]
) -> None:
    """All of the numbers, with as many processes one after the other as it takes."""
    left = dict(numbers)
    while left:
        kind, last = next(iter(left)), None
        for line in lines_of_worker(
            {"seed": seed, "numbers": {name: list(cases) for name, cases in left.items()}}, limits, hashes
        ):
            if "kind" in line:
                left = _from(left, line["kind"])
                kind, last = line["kind"], None
                say(f"{kind}: {len(left[kind])} cases")
            last = line.get("begin", last)
            if "end" in line:
                _count(tallies[kind], kind, seed, line)
                if "fault" in line:
                    say(f"{kind} {line['end']}: {line['fault']}")
            elif "stopped" in line:
                if last is None:
                    raise RuntimeError(f"the harness itself is broken: {line}")
                say(f"{kind} {last}: {line['stopped']}")
                tallies[kind].cases += 1
                tallies[kind].findings.append(Finding(kind, seed, last, line["stopped"], line["detail"]))
                left[kind] = [cases for cases in left[kind] if cases > last]
                break
        else:
            return


def _from(numbers: Numbers, kind: str) -> Numbers:
    """Without the kinds that are done."""
    names = list(numbers)
    return {name: numbers[name] for name in names[names.index(kind) :]}


def _count(tally: Tally, kind: str, seed: int, line: dict[str, Any]) -> None:
    tally.cases += 1
    tally.codes.update(line.get("codes", ()))
    tally.seconds += line["cpu"]
    tally.slowest = max(tally.slowest, (line["cpu"], line["end"]))
    tally.memory = max(tally.memory, line["memory"])
    if "fault" in line:
        tally.findings.append(Finding(kind, seed, line["end"], line["fault"], line["detail"]))
    else:
        tally.digests[line["end"]] = line["digest"]


def smallest(finding: Finding, limits: Limits, most: float = SHRINKING) -> Any:
    """The smallest input that breaks the same rule, of those found within `most` seconds, as plain JSON."""
    job = {"kind": finding.kind, "seed": finding.seed, "shrink": finding.number}
    result, ends = None, time.monotonic() + most
    for line in lines_of_worker(job, replace(limits, wall=min(limits.wall, most)), HASH_SEEDS[0]):
        result = line.get("input", result)
        if time.monotonic() > ends:
            break
    return result


def lines_of_worker(job: dict[str, Any], limits: Limits, hashes: str) -> Iterator[dict[str, Any]]:
    """What a worker reports; `stopped` is the last line of one that did not end by itself."""
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryFile("w+") as job_file:
        json.dump(job | {"limits": asdict(limits)}, job_file)
        job_file.seek(0)
        read, write = os.pipe()
        worker = subprocess.Popen(
            [sys.executable, str(MAIN), str(write)],
            stdin=job_file, stdout=subprocess.DEVNULL, stderr=errors, pass_fds=(write,),
            env=os.environ | {"PYTHONHASHSEED": hashes}, start_new_session=True,
        )  # fmt: skip
        os.close(write)
        try:
            is_hanging = yield from _watched(read, limits)
            if is_hanging:
                yield {"stopped": "hang", "detail": f"no answer within {limits.wall} s\n{_error_output(errors)}"}
            elif worker.wait() != 0:
                yield {"stopped": f"died with {worker.returncode}", "detail": _error_output(errors)}
        finally:
            os.close(read)
            _end(worker)


def _watched(read: int, limits: Limits) -> Iterator[dict[str, Any]]:
    """The lines that come; true when the next one does not come in time."""
    rest, bound = b"", STARTING
    while True:
        ready, _, _ = select.select([read], [], [], bound)
        if not ready:
            return True
        data = os.read(read, 1 << 16)
        if not data:
            return False
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)
            bound = limits.wall


def _end(worker: subprocess.Popen[bytes]) -> None:
    """The worker and whatever it started, which is a group of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def _error_output(errors: Any) -> str:
    errors.seek(0)
    return errors.read()[-4000:]
