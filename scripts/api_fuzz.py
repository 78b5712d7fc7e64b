"""Sends random requests to a running registry and checks its responses against general rules.

No response has a 5xx status or is slow, and every error has the type, status and arguments of the specification.
Schemathesis generates a tenth of the requests from the OpenAPI document of the registry and checks the responses
against it. The others are generated here: invalid nested bodies, paths, flags, headers and bytes. Each round starts
with an empty registry, ends with an export that is imported again, and can be repeated alone. Findings are printed as
curl commands.

    ./run api-fuzz [--requests 100000] [--seed 1] [--postgresql] [--short]
    ./run api-fuzz --seed 1 --round 4711      # repeat one round
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "fuzz"), str(ROOT / "tests" / "corpus")]

from apifuzz import byschema  # noqa: E402
from apifuzz.rounds import Finding, Rounds, Tally  # noqa: E402

from tests.httpapi.conftest import FIXTURE  # noqa: E402
from tests.httpapi.postgres import running_postgresql  # noqa: E402
from tests.httpapi.servers import serving  # noqa: E402
from wirebook.core.model.builtin import builtin_model  # noqa: E402

REQUESTS, SHORT = 100_000, 5_000
BY_SCHEMA = 0.1
"""The share of requests that schemathesis makes."""

MODELS = (FIXTURE, builtin_model())


def main() -> int:
    options = arguments()
    started = time.monotonic()
    tally, by_schema = Tally(), Tally()
    if options.round is not None:
        with a_server(options, tally) as base:
            Rounds(base, MODELS, tally).round(options.seed, options.round)
    else:
        by_schema_count = round(options.requests * BY_SCHEMA)
        from_schema(options, by_schema_count, by_schema)
        our_own(options, options.requests - by_schema_count, tally)
    for name, counts in (("our own", tally), ("by schemathesis", by_schema)):
        print_tally(name, counts)
    print(f"{tally.requests + by_schema.requests} requests in {time.monotonic() - started:.0f} s, seed {options.seed}")
    return print_findings([*tally.findings, *by_schema.findings])


def from_schema(options: argparse.Namespace, count: int, tally: Tally) -> None:
    with a_server(options, tally) as base:
        for model in range(len(MODELS)):
            Rounds(base, MODELS, tally).begin(model)
            byschema.run(base, options.seed, count // len(MODELS), tally, say)


def our_own(options: argparse.Namespace, requests: int, tally: Tally) -> None:
    """Run rounds, on a new registry after one became immutable."""
    numbers = count()
    while tally.requests < requests:
        with a_server(options, tally) as base:
            Rounds(base, MODELS, tally).run(options.seed, numbers, requests, say)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="repeat only the round with this number")
    parser.add_argument("--postgresql", action="store_true", help="use a temporary PostgreSQL instead of SQLite")
    parser.add_argument("--short", action="store_true", help=f"{SHORT} requests with a fixed seed")
    options = parser.parse_args()
    if options.short:
        options.requests, options.seed = SHORT, 1
    return options


@contextmanager
def a_server(options: argparse.Namespace, tally: Tally) -> Iterator[str]:
    """Run a registry on a temporary database and yield its URL. It must stop without errors."""
    with tempfile.TemporaryDirectory(prefix="wirebook-api-fuzz-") as name, ExitStack() as stack:
        log, address = Path(name) / "log", f"sqlite:///{name}/registry.db"
        if options.postgresql:
            address = stack.enter_context(running_postgresql())
        server = stack.enter_context(serving(address, log))[0]
        yield server.base
        code = server.stop()
        if code != 0:
            tally.findings.append(Finding(f"the server ends with {code}", "SIGTERM", "", f"--seed {options.seed}"))
        say_failures(log)


def say_failures(log: Path) -> None:
    """Print each traceback in the log of the server once."""
    text = log.read_text(errors="replace")
    tracebacks = {part.partition("\n20")[0] for part in text.split("Traceback (most recent call last):")[1:]}
    for traceback in sorted(tracebacks)[:20]:
        print(f"\nin the log: {traceback[-2000:]}")


def print_tally(name: str, tally: Tally) -> None:
    statuses = ", ".join(f"{status}: {number}" for status, number in sorted(tally.statuses.items()))
    print(f"{name}: {tally.requests} requests, slowest {tally.slowest:.2f} s; {statuses}")


def print_findings(findings: list[Finding]) -> int:
    """Print each kind of finding once, with its number of occurrences."""
    firsts: dict[str, list[Finding]] = {}
    for finding in findings:
        firsts.setdefault(finding.fault, []).append(finding)
    for same in firsts.values():
        print(f"\n{len(same)} x {min(same, key=lambda finding: len(finding.request))}")
    return 1 if findings else 0


def say(text: str) -> None:
    print(f"api-fuzz: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
