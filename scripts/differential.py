"""Compares Spark's column engine with the plain Python engine, over all catalogues.

Messages are generated for each definition, protocol and content mode, and modified in every way that is known to
cause errors. Messages of another catalogue, most of which match nothing, join them. Both engines land them from JSON
Lines, files of events and Parquet. Additional catalogues have every type of each payload format, with and without
Confluent's prefix of Kafka values. The script compares all values of all tables, the bytes of dead letters, and the
outcomes, bindings, problems and near misses of `match` on a DataFrame. Valid messages must land in the table of their
definition, with the context they were built from. Differences are printed with their message, and the exit code is 1.

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
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "corpus"))

from synthesis.campaign import Report, run, some_messages  # noqa: E402
from synthesis.cdevents import catalogue as cdevents_catalogue  # noqa: E402
from synthesis.onspark import differences_on_spark  # noqa: E402
from synthesis.rich import PARTS, rich_catalogue  # noqa: E402

from wirebook.bindings import PROTOCOLS  # noqa: E402
from wirebook.catalog import Catalog  # noqa: E402
from wirebook.definitions.match.options import MatchOptions  # noqa: E402

SHARED = ROOT.parent / "shared" / "corpus"
FOLDERS = (SHARED / "production", SHARED / "spec-scenarios", ROOT / "src" / "wirebook" / "demo" / "catalogue")
CDEVENTS = SHARED / "cdevents"
PREFIXED = " with prefixes"
RICH = (*PARTS, *(f"{name}{PREFIXED}" for name in PARTS if "xsd" not in name))
WEIGHT = 5  # of a rich catalogue, which has all types of its format; a corpus catalogue has 1
SHARE_ON_SPARK = 400  # one of this many messages of each rich catalogue
SHORT, SHORT_STEP = 3_000, 4
STRANGERS = 4  # a message of another catalogue for each four of its own
CALM = 0.05
WILD = 0.3


def main() -> int:
    options = arguments()
    paths = catalogues(options.catalogue)
    rich = [name for name in RICH if options.catalogue in name]
    if not paths and not rich:
        say(f"no catalogue has '{options.catalogue}' in its name")
        return 2
    messages = max(1, options.messages // (len(paths) + WEIGHT * len(rich)))
    sizes = {**{str(path): messages for path in paths}, **dict.fromkeys(rich, WEIGHT * messages)}
    names = list(sizes)
    jobs = [
        Job(name, names[number - 1], options.seed, sizes[name], WILD if number % 2 else CALM)
        for number, name in enumerate(names)
    ]
    say(f"{len(jobs)} catalogues, {messages} messages each, {WEIGHT} times as many for rich ones, seed {options.seed}")
    started, total = time.monotonic(), Report()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for name, report in pool.imap_unordered(campaign, jobs):
            say(f"{Path(name).name:45} {report.messages:7} messages  {verdict(report)}")
            total.add(report)
    for name in rich[:: SHORT_STEP if options.short else 1]:
        on_spark(name, f"{options.seed} on Spark {name}", max(20, options.messages // SHARE_ON_SPARK), total)
    print_summary(total, time.monotonic() - started)
    return 0 if total.is_clean else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--catalogue", default="", help="use only catalogues with this text in their names")
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 4))
    parser.add_argument("--short", action="store_true", help=f"{SHORT} messages with a fixed seed")
    options = parser.parse_args()
    if options.short:
        options.messages, options.seed = SHORT, 1
    return options


def catalogues(name: str) -> list[Path]:
    """Return all catalogues that exist, and print the missing folders."""
    for folder in FOLDERS:
        if not folder.is_dir():
            say(f"skipped: the folder '{folder.relative_to(ROOT.parent)}' does not exist")
    paths = [path for folder in FOLDERS for path in sorted(folder.glob("*.json"))]
    paths += [CDEVENTS] if CDEVENTS.is_dir() else []
    return [path for path in paths if name in path.name]


class Job(NamedTuple):
    """A campaign: a catalogue, another one whose messages this one does not describe, and how many messages."""

    name: str
    other: str
    seed: int
    count: int
    strangeness: float


def campaign(job: Job) -> tuple[str, Report]:
    seed = f"{job.seed} {Path(job.name).name}"
    strangers = some_messages(load(job.other), f"{seed} strangers", job.count // STRANGERS + 1)
    return job.name, run(load(job.name), seed, job.count, job.strangeness, strangers)


def on_spark(name: str, seed: str, count: int, total: Report) -> None:
    """Compare further messages that Spark reads into a DataFrame, from lines and Parquet."""
    catalog = load(name)
    messages = some_messages(catalog, seed, count)
    differences = differences_on_spark(catalog, messages)
    say(f"{'on Spark: ' + name:45} {len(messages):7} messages  {'DISAGREE' if differences else 'agree'}")
    total.differences += differences


def load(name: str) -> Catalog:
    if name in RICH:
        options = MatchOptions(confluent_prefix=name.endswith(PREFIXED))
        return Catalog.load(rich_catalogue(name.removesuffix(PREFIXED)), options=options)
    return Catalog.load(cdevents_catalogue(SHARED) if name == str(CDEVENTS) else name)


def verdict(report: Report) -> str:
    return "agree" if report.is_clean else f"DISAGREE\n{report}"


def print_summary(total: Report, seconds: float) -> None:
    print(f"\n{total.messages} messages in {seconds:.0f} s, {total.valid} of them valid")
    print(f"{total.strangers} messages of other catalogues, {total.strangers_settled} of them settled by columns")
    print(
        f"engines differ: {len(total.differences)}; misplaced: {len(total.misplaced)}; not built: {len(total.unbuilt)}"
    )
    for title, lines in (
        ("outcomes", [f"{name:16} {count:8}" for name, count in total.outcomes.most_common()]),
        ("valid messages", [f"{name:16} {count:8}" for name, count in total.placed.most_common()]),
        ("settled by columns, of the valid ones", list(shares(total))),
        ("messages by payload format and protocol", list(formats(total))),
        (f"{len(total.coded)} codes of problems", [", ".join(sorted(total.coded))]),
    ):
        print(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines))


def formats(total: Report) -> Iterator[str]:
    """Print a table with a row per format and a column per protocol."""
    protocols = [*PROTOCOLS, "CLOUDEVENTS"]
    yield " " * 18 + "".join(f"{name:>13}" for name in protocols)
    for format_ in sorted({format_ for format_, _ in total.by_format}):
        yield f"{format_:18}" + "".join(f"{total.by_format[format_, name]:13}" for name in protocols)


def shares(total: Report) -> Iterator[str]:
    for way, count in sorted(total.by_way.items()):
        yield f"{way:24} {total.settled[way] / count:6.1%} of {count}"


def say(text: str) -> None:
    print(f"differential: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
