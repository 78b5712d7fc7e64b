"""Feeds random input of every kind to Wirebook and checks rules that must always hold.

The inputs are documents, records, events, Parquet, payloads and schemas of each format, templates, builds and command
lines. A case ends with a result or with a `WirebookError` whose problems have codes, never with a traceback. It stays
within limits of wall-clock time, CPU time and memory, and its result is the same when repeated, also in a process
with another hash seed. Violations are printed with their seed and a minimised input, and the exit code is 1.

    ./run fuzz [--cases 100100] [--seed 1] [--kind NAME] [--short]
    ./run fuzz --kind NAME --seed 1 --case 4711     # repeat and minimise one case, with its traceback
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "fuzz"), str(ROOT / "tests" / "corpus")]

from fuzzing.case import Limits  # noqa: E402
from fuzzing.kinds import KINDS  # noqa: E402
from fuzzing.stock import SHARED  # noqa: E402
from fuzzing.supervisor import Finding, Tally, campaign, smallest  # noqa: E402

CASES, SHORT = 100_100, 2_500
SHRUNK = 10  # findings that are minimised
ROW = "{:24} {:>8} {:>6} {:>9} {:>18} {:>9} {:>9}"


def main() -> int:
    options = arguments()
    limits = Limits()
    if not SHARED.is_dir():
        say("the folder of real catalogues is missing; only examples and vectors are used")
    if options.case is not None:
        return again(options, limits)
    chosen = [kind for kind in KINDS if options.kind in kind.name]
    if not chosen:
        say(f"no kind has '{options.kind}' in its name; kinds: {', '.join(kind.name for kind in KINDS)}")
        return 2
    shares, started = sum(kind.share for kind in chosen), time.monotonic()
    numbers = {kind.name: range(max(10, round(options.cases * kind.share / shares))) for kind in chosen}
    tallies = campaign(numbers, options.seed, limits, say)
    print_table(tallies, limits, options.seed, time.monotonic() - started)
    return print_findings([finding for tally in tallies.values() for finding in tally.findings], limits)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", default="", help="use only kinds with this text in their names")
    parser.add_argument("--case", type=int, help="repeat only the case with this number, of one kind")
    parser.add_argument("--short", action="store_true", help=f"{SHORT} cases with a fixed seed")
    options = parser.parse_args()
    if options.short:
        options.cases, options.seed = SHORT, 1
    return options


def again(options: argparse.Namespace, limits: Limits) -> int:
    """Repeat one case: print its input, the violated rule, and the smallest input that violates it."""
    findings = campaign({options.kind: [options.case]}, options.seed, limits, say)[options.kind].findings
    return (
        print_findings(findings, limits)
        if findings
        else say(f"{options.kind} {options.case}: no rule is violated") or 0
    )


def print_table(tallies: dict[str, Tally], limits: Limits, seed: int, seconds: float) -> None:
    print(ROW.format("kind", "cases", "codes", "ms/case", "slowest (case)", "peak MiB", "findings"))
    for name, tally in tallies.items():
        milliseconds, slowest = (
            1000 * tally.seconds / max(tally.cases, 1),
            f"{tally.slowest[0]:.2f} s ({tally.slowest[1]})",
        )
        counts = (
            tally.cases,
            len(tally.codes),
            f"{milliseconds:.1f}",
            slowest,
            tally.memory >> 20,
            len(tally.findings),
        )
        print(ROW.format(name, *counts))
    codes = sum((tally.codes for tally in tallies.values()), Counter[str]())
    cases = sum(tally.cases for tally in tallies.values())
    print(f"\n{cases} cases in {seconds:.0f} s, seed {seed}; {len(codes)} different codes of problems")
    bounds = f"{limits.wall:.0f} s, {limits.cpu:.0f} s of CPU time, {limits.memory >> 20} MiB held by the process"
    print(f"limits per case: {bounds}")


def print_findings(findings: list[Finding], limits: Limits) -> int:
    """Print each violated rule once, with its first case minimised."""
    firsts: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        firsts.setdefault((finding.kind, finding.fault), []).append(finding)
    for number, same in enumerate(firsts.values()):
        print(f"\n{len(same)} x {same[0]}")
        if number < SHRUNK:
            print(f"  smallest: {json.dumps(smallest(same[0], limits))[:3000]}")
    return 1 if findings else 0


def say(text: str) -> None:
    print(f"fuzz: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
