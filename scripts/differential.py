"""Holds Spark's column engine and the plain-Python reference to the same answers, over every catalogue there is.

Messages are synthesised for each definition over every protocol and in every mode that it allows, and changed in
every way that is known to trip programs; both engines land them, from JSON Lines, plain files of events and Parquet.
Valid messages must land in their definition's table, with the context they were built with. Whatever differs is printed
with the message, and the exit code is 1.

    ./run differential [--messages 200000] [--seed 1] [--catalogue NAME] [--short]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "corpus"))

from synthesis.campaign import Report, run  # noqa: E402
from synthesis.cdevents import catalogue as cdevents_catalogue  # noqa: E402

from wirebook.catalog import Catalog  # noqa: E402

SHARED = ROOT.parent / "shared" / "corpus"
FOLDERS = (SHARED / "production", SHARED / "spec-scenarios", ROOT / "src" / "wirebook" / "demo" / "catalogue")
CDEVENTS = SHARED / "cdevents"
SHORT = 12_000
CALM = 0.05
WILD = 0.3


def main() -> int:
    options = arguments()
    paths = catalogues(options.catalogue)
    if not paths:
        say(f"no catalogue is called '{options.catalogue}'")
        return 2
    each = max(1, options.messages // len(paths))
    jobs = [(path, options.seed, each, WILD if number % 2 else CALM) for number, path in enumerate(paths)]
    say(f"{len(paths)} catalogues, {each} messages each, seed {options.seed}")
    started, total = time.monotonic(), Report()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for path, report in pool.imap_unordered(campaign, jobs):
            say(f"{path.name:45} {report.messages:7} messages  {verdict(report)}")
            total.add(report)
    print_summary(total, time.monotonic() - started)
    return 0 if total.is_clean else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--catalogue", default="", help="only catalogues with this in their names")
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 4))
    parser.add_argument("--short", action="store_true", help=f"{SHORT} messages, the same each time")
    options = parser.parse_args()
    if options.short:
        options.messages, options.seed = SHORT, 1
    return options


def catalogues(name: str) -> list[Path]:
    """Every catalogue that is there; those that are missing are said aloud."""
    for folder in FOLDERS:
        if not folder.is_dir():
            say(f"skipped: the catalogues of '{folder.relative_to(ROOT.parent)}' are not there")
    found = [path for folder in FOLDERS for path in sorted(folder.glob("*.json"))]
    found += [CDEVENTS] if CDEVENTS.is_dir() else []
    return [path for path in found if name in path.name]


def campaign(job: tuple[Path, int, int, float]) -> tuple[Path, Report]:
    path, seed, count, strangeness = job
    catalog = Catalog.load(cdevents_catalogue(SHARED) if path == CDEVENTS else str(path))
    return path, run(catalog, f"{seed} {path.name}", count, strangeness)


def verdict(report: Report) -> str:
    return "agree" if report.is_clean else f"DISAGREE\n{report}"


def print_summary(total: Report, seconds: float) -> None:
    print(f"\n{total.messages} messages in {seconds:.0f} s, {total.valid} of them valid")
    print(
        f"engines differ: {len(total.differences)}; misplaced: {len(total.misplaced)}; not built: {len(total.unbuilt)}"
    )
    for title, lines in (
        ("outcomes", [f"{name:16} {count:8}" for name, count in total.outcomes.most_common()]),
        ("valid messages", [f"{name:16} {count:8}" for name, count in total.placed.most_common()]),
        ("settled by columns, of the valid ones", list(shares(total))),
    ):
        print(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines))


def shares(total: Report) -> Iterator[str]:
    for way, count in sorted(total.by_way.items()):
        yield f"{way:24} {total.settled[way] / count:6.1%} of {count}"


def say(text: str) -> None:
    print(f"differential: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
