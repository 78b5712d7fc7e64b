"""Runs the benchmarks of streams: `./run bench-streaming`, or `./run bench-streaming --short` for a small version.

A broker, a producer and `wirebook stream` share the cores of this machine. Rates are compared with landing the same
messages from files, in the same run. A run is void if a message is lost or lands twice. A missed goal is printed but
does not fail the command.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import traffic
from gateways import Amqp, Http, Mqtt
from landed import check_landed, latencies
from measure import ROLES, in_turn
from oracle import Void
from query import Query, ended, growth, sustained
from sources import JetStream, Kafka, Source, catalogue, fill, send_for
from tables import Results, verdict
from traffic import Day

from wirebook.catalog import Catalog
from wirebook.cli.output import print_table
from wirebook.landing.watch.figures import percentile

SOURCES: dict[str, Callable[[Path], Source]] = {
    "kafka": Kafka,
    "jetstream": JetStream,
    "http": Http,
    "mqtt": Mqtt,
    "amqp": Amqp,
}
FORMS = {"jsonl": "files of JSON Lines", "parquet": "files of Parquet"}
OVER_FILES = 0.6  # at least, for the source with goals
LATENCY = 2.0  # seconds at most, for it
WITH_GOALS = Kafka.name
GROWTH = 0.1  # of the memory of driver, workers and gateway, at most, from the middle of the run to its end
MIB = 1 << 20
FILES = 4  # files are landed several times, with a quarter of the messages
FEWER = 10  # a gateway, which is slower than a stream, gets a tenth of the messages
SAMPLES = 60  # of memory, in a run


@dataclass
class Bench:
    """Sizes, the folder of the files, and the results. The parts share the rates."""

    messages: int
    batch: int
    repeats: int
    minutes: float
    warm_seconds: float
    tables: int
    definitions: int
    folder: Path
    results: Results = field(default_factory=Results)
    rates: dict[str, float] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    def new_folder(self) -> Path:
        return self.folder / str(next(self.numbers))

    def new_target(self, source: Source, definitions: int) -> tuple[Path, Path]:
        """A catalogue with the endpoint of a source, and a target that does not exist."""
        folder = self.new_folder()
        folder.mkdir()
        (folder / "catalogue.json").write_text(json.dumps(catalogue(source, definitions)))
        return folder / "catalogue.json", folder / "tables"

    def add(self, question: str, what: str, **values: Any) -> None:
        self.results.add(question, what=what, load=os.getloadavg()[0], **values)


def load_average() -> str:
    return f"{os.getloadavg()[0]:.1f}"


# -- rates ----------------------------------------------------------------------------------------------------------


def rates(bench: Bench, sources: list[str]) -> None:
    """The rate of landing from files, and the sustained rate from each source."""
    rows = []
    few = Day(bench.definitions, bench.messages // FILES, events_only=True)
    for form, label in FORMS.items():
        rate, cpu = _landing(bench, few, form)
        bench.rates[form] = rate
        bench.add("rates", label, rate=rate, cpu=cpu)
        rows.append((label, f"{few.count:,}", "", f"{rate:,.0f}", f"{cpu:.1f}", "", "", "", load_average()))
    for name in sources:
        with closing(SOURCES[name](bench.new_folder())) as source:
            day = replace(few, count=bench.messages if source.is_kept else bench.messages // FEWER)
            query, cpu = _catching_up(bench, source, day, bench.batch)
        rate = bench.rates[name] = sustained(query.batches)
        ratio = rate / bench.rates["jsonl"]
        met = ratio >= OVER_FILES if source.name == WITH_GOALS else None
        bench.add("rates", source.name, rate=rate, cpu=cpu, ratio=ratio, met=met)
        row = (source.name, f"{day.count:,}", str(len(query.batches)), f"{rate:,.0f}", f"{cpu:.1f}", f"{ratio:.2f}")
        rows.append((*row, "" if met is None else f"≥ {OVER_FILES:g}", verdict(met), load_average()))
    heads = ("from", "messages", "batches", "messages/s", "CPU µs", "of JSON Lines", "goal", "", "load")
    print_table(heads, rows, title=f"rates into {bench.definitions} Delta tables")
    print()


def _landing(bench: Bench, day: Day, form: str) -> tuple[float, float]:
    """Messages a second, and CPU microseconds per message, of `wirebook land` of files in a session that is warm."""
    import jobs  # noqa: PLC0415

    source = traffic.write_day(day, bench.folder / f"{form}-{day.definitions}-{day.count}-events", form)
    catalog = Catalog.load(traffic.catalogue(day.definitions, events_only=True))
    to = bench.folder / "landed"
    with jobs.spark_session() as spark:
        works = {form: lambda: jobs.product(spark, source, catalog, to, table_format="delta")}
        runs = in_turn(works, day.count, bench.repeats)[form]
    if any(sample.result.read != day.count for sample in runs.samples):
        raise Void("not all messages were read")
    jobs.emptied(to)
    return day.count / median(sample.wall for sample in runs.samples), runs.middle


def _catching_up(bench: Bench, source: Source, day: Day, batch: int, *options: str) -> tuple[Query, float]:
    """Land the messages of a day, which a source has already, or gets as fast as they are acknowledged.

    Returns the stream that has ended, and its CPU microseconds per message in the second half of the messages.
    """
    document, to = bench.new_target(source, day.definitions)
    if source.is_kept:
        fill(source, day)
    with source.reading(document, to, "--max-per-batch", str(batch), *options) as query, ThreadPoolExecutor(1) as pool:
        filled = None if source.is_kept else pool.submit(fill, source, day)
        query.wait(day.count // 2)
        read, cpu = query.read, query.cpu_seconds()
        query.wait(day.count)
        cpu = query.cpu_seconds() - cpu
        if filled:
            filled.result()
        query.end()
    check_landed(to, source.sent)
    return query, cpu * 1e6 / (day.count - read) if read < day.count else math.nan


# -- latency and memory ---------------------------------------------------------------------------------------------


def steady(bench: Bench, sources: list[str]) -> None:
    """Latency and memory while messages arrive at half of the sustained rate."""
    rows, sizes = [], []
    for name in sources:
        rate, seconds = bench.rates[name] / 2, bench.minutes * 60
        with closing(SOURCES[name](bench.new_folder())) as source:
            document, to = bench.new_target(source, bench.definitions)
            day = Day(bench.definitions, bench.messages, events_only=True)
            with source.reading(document, to) as query:
                send_for(source, day, rate, 1)
                query.wait(1)
                since = time.time() + bench.warm_seconds
                with query.sampling_memory(seconds / SAMPLES, bench.warm_seconds):
                    reached = send_for(source, day, rate, bench.warm_seconds + seconds)
                query.wait(source.sent.total())
                query.end()
        check_landed(to, source.sent)
        durations = [batch["seconds"] for batch in query.batches if ended(batch) > since]
        taken = latencies(to, since)
        p50, p95 = np.percentile(taken, (50, 95))
        met = bool(p95 <= LATENCY) if source.name == WITH_GOALS else None
        bench.add("latency", source.name, rate=reached, batches=len(durations), p50=p50, p95=p95, met=met)
        row = (source.name, f"{rate:,.0f}", f"{reached:,.0f}", f"{len(taken):,}", str(len(durations)))
        row = (*row, f"{percentile(durations, 50)}", f"{percentile(durations, 95)}", f"{p50:.2f}", f"{p95:.2f}")
        rows.append((*row, "" if met is None else f"≤ {LATENCY:g} s", verdict(met), load_average()))
        sizes.append(_memory_row(bench, source.name, query))
    heads = ("from", "messages/s", "reached", "landed", "batches", "batch s p50", "p95", "latency s p50", "p95", "goal")
    print_table((*heads, "", "load"), rows, title=f"latency at half of the rate, for {bench.minutes:g} min")
    print()
    print_table(
        ("from", "driver", "Java", "workers", "gateway", "", "load"),
        sizes,
        title="MiB in memory (and more each minute)",
    )
    print()


def _memory_row(bench: Bench, name: str, query: Query) -> tuple[str, ...]:
    """The memory by role; flat if that of driver, workers and gateway has not grown. Java's has a limit."""
    sizes = growth(query.memory)
    half = bench.minutes / 2
    flat = all(slope * half <= GROWTH * size for role, (size, slope) in sizes.items() if role != "java")
    values = {role: size for role, (size, _) in sizes.items()}
    slopes = {f"{role}_slope": slope for role, (_, slope) in sizes.items()}
    bench.add("memory", name, minutes=bench.minutes, met=flat, **values, **slopes)
    shown = [f"{size / MIB:,.0f} ({slope / MIB:+.2f})" for size, slope in sizes.values()]
    shown += [""] * (len(ROLES) + 1 - len(shown))  # no gateway
    return (name, *shown, "flat" if flat else "GROWS", load_average())


# -- many tables ----------------------------------------------------------------------------------------------------


def many(bench: Bench, sources: list[str]) -> None:
    """A stream with many definitions, all of which are in every batch: with a file for each, and staged."""
    rows = []
    day = Day(bench.tables, bench.messages // FILES, events_only=True)
    for label, options in (("a file for each table", ("--stage-below", "0")), ("staged", ("--stage-below", "1000"))):
        with closing(SOURCES[sources[0]](bench.new_folder())) as source:
            query, cpu = _catching_up(bench, source, day, bench.batch, *options)
        rate, durations = sustained(query.batches), [batch["seconds"] for batch in query.batches[1:]]
        p50, p95 = percentile(durations, 50), percentile(durations, 95)
        bench.add("many tables", label, tables=bench.tables, rate=rate, cpu=cpu, p50=p50, p95=p95)
        row = (label, f"{day.count:,}", str(len(query.batches)), f"{rate:,.0f}", f"{cpu:.1f}", str(p50), str(p95))
        rows.append((*row, load_average()))
    heads = ("tables", "messages", "batches", "messages/s", "CPU µs", "batch s p50", "p95", "load")
    print_table(heads, rows, title=f"{bench.tables:,} tables, from {source.name}")
    print()


PARTS = {"rates": rates, "steady": steady, "many": many}


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench-streaming", description=__doc__)
    parser.add_argument("--short", action="store_true", help="use small sizes; takes five minutes")
    parser.add_argument("--only", help=f"comma-separated parts to run: {','.join(PARTS)}")
    parser.add_argument("--sources", default=",".join(SOURCES), help=f"comma-separated sources: {','.join(SOURCES)}")
    parser.add_argument("--minutes", type=float, help="length of the run at half of the rate; 30 shows flat memory")
    parser.add_argument("--warm-seconds", type=float, help="length of the run before it, in which Java compiles code")
    parser.add_argument("--rate", type=float, help="the sustained rate, if `rates` is not run")
    parser.add_argument("--messages", type=int, help="number of messages that a source has when the stream starts")
    parser.add_argument("--batch", type=int, help="maximum number of messages of a batch, except at half of the rate")
    parser.add_argument("--folder", type=Path, help="folder of brokers and tables")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    for name, known in (("only", PARTS), ("sources", SOURCES)):
        if unknown := {*(getattr(options, name) or "").split(",")} - {"", *known}:
            parser.error(f"--{name} has unknown names: {', '.join(sorted(unknown))}; known: {', '.join(known)}")
    with tempfile.TemporaryDirectory(prefix="wirebook-bench-", dir=options.folder) as folder:
        return _run(options, Path(folder))


def _run(options: argparse.Namespace, folder: Path) -> int:
    sizes = (60_000, 10_000, 1, 0.5, 15, 200) if options.short else (2_000_000, 200_000, 3, 2, 120, 1_000)
    given = (options.messages, options.batch, None, options.minutes, options.warm_seconds, None)
    messages, batch, repeats, minutes, warm_seconds, tables = (
        size if other is None else other for size, other in zip(sizes, given, strict=True)
    )
    bench = Bench(messages, batch, repeats, minutes, warm_seconds, tables, 100, folder)
    sources = options.sources.split(",")
    if options.rate:
        bench.rates = dict.fromkeys(sources, options.rate)
    names = options.only.split(",") if options.only else PARTS
    return bench.results.run({name: partial(PARTS[name], bench, sources) for name in names}, options.json)


if __name__ == "__main__":
    sys.exit(main())
