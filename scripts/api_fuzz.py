"""Sends a registry that runs requests of every kind, made at random from a seed, and holds its answers to rules.

No answer has a status of 5xx, none takes long, every error is a problem with the type, status and arguments that the
text gives it. Schemathesis makes a tenth of the requests from the OpenAPI document of the registry, and the answers are
compared with it; the others are our own: nested bodies with something wrong in them, paths, flags, headers and bytes
that nobody should send. Each round of these begins with an empty registry, ends with an export that is read back, and
can be run again alone. What is found is shown as a command of curl.

    ./run api-fuzz [--requests 100000] [--seed 1] [--postgresql] [--short]
    ./run api-fuzz --seed 1 --round 4711      # one round again
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
        wanted = round(options.requests * BY_SCHEMA)
        from_schema(options, wanted, by_schema)
        our_own(options, options.requests - wanted, tally)
    for name, each in (("our own", tally), ("by schemathesis", by_schema)):
        print_tally(name, each)
    print(f"{tally.requests + by_schema.requests} requests in {time.monotonic() - started:.0f} s, seed {options.seed}")
    return print_findings([*tally.findings, *by_schema.findings])


def from_schema(options: argparse.Namespace, wanted: int, tally: Tally) -> None:
    with a_server(options, tally) as base:
        for model in range(len(MODELS)):
            Rounds(base, MODELS, tally).begin(model)
            byschema.run(base, options.seed, wanted // len(MODELS), tally, say)


def our_own(options: argparse.Namespace, wanted: int, tally: Tally) -> None:
    """Rounds, on another registry where one was made immutable."""
    numbers = count()
    while tally.requests < wanted:
        with a_server(options, tally) as base:
            Rounds(base, MODELS, tally).run(options.seed, numbers, wanted, say)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="the one round with this number")
    parser.add_argument("--postgresql", action="store_true", help="on a PostgreSQL of its own, not on SQLite")
    parser.add_argument("--short", action="store_true", help=f"{SHORT} requests, the same each time")
    options = parser.parse_args()
    if options.short:
        options.requests, options.seed = SHORT, 1
    return options


@contextmanager
def a_server(options: argparse.Namespace, tally: Tally) -> Iterator[str]:
    """The URL of a registry on a database that is thrown away. It must end well."""
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
    """The tracebacks in the log of the server, each once."""
    text = log.read_text(errors="replace")
    found = {part.partition("\n20")[0] for part in text.split("Traceback (most recent call last):")[1:]}
    for each in sorted(found)[:20]:
        print(f"\nin the log: {each[-2000:]}")


def print_tally(name: str, tally: Tally) -> None:
    statuses = ", ".join(f"{status}: {number}" for status, number in sorted(tally.statuses.items()))
    print(f"{name}: {tally.requests} requests, slowest {tally.slowest:.2f} s; {statuses}")


def print_findings(findings: list[Finding]) -> int:
    """Each fault once, with how often there was one like it."""
    firsts: dict[str, list[Finding]] = {}
    for finding in findings:
        firsts.setdefault(finding.fault, []).append(finding)
    for same in firsts.values():
        print(f"\n{len(same)} x {min(same, key=lambda each: len(each.request))}")
    return 1 if findings else 0


def say(text: str) -> None:
    print(f"api-fuzz: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
