"""Runs the benchmarks: `./run bench`, or `./run bench --short` for CI.

Each ratio compares CPU times of the same run on the same files; wall times are printed too. A run with a wrong result
is void. A missed goal is printed but does not fail the command.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import traffic
from measure import Runs, in_turn, measured, peak_memory
from oracle import Void, check, check_counts
from tables import Goal, Results, print_runs, verdict
from traffic import Day

from wirebook.cli.output import print_table

CORPUS = Path(__file__).parents[2] / "shared" / "corpus" / "production"
FORMS = {"jsonl": "JSON Lines", "parquet": "Parquet"}
MIB = 1 << 20


@dataclass(frozen=True)
class Sizes:
    """Sizes of the benchmarks: messages, runs after the first, and the parts that the short form omits."""

    messages: int
    repeats: int
    python_messages: int
    loop_messages: int
    many: int
    memory: tuple[int, ...]
    definitions: int = 100
    scale: tuple[int, ...] = (10, 100, 1_000, 10_000)
    filters: tuple[str, ...] = ("jsonl", "parquet")
    scaled: tuple[str, ...] = ("jsonl", "parquet")
    small_files: int = 20_000


LONG = Sizes(1_000_000, 5, 20_000, 50_000, 1_000_000, (1_000_000, 3_000_000, 10_000_000))
SHORT = Sizes(
    60_000, 1, 1_000, 5_000, 20_000, (), scale=(100, 10_000), filters=(), scaled=("jsonl",), small_files=2_000
)
OVER_BARE, FRAME_OVER_BARE, MANY_OVER_FEW = 0.65, 0.85, 1.15  # at most
DEAD_OVER_LANDED = 4.0  # at most: a source in which nothing lands has a quarter of the usual rate
FILTERS, LOOP = 8.0, 20.0  # at least
SMALL_FILE = 2.0  # milliseconds at most


@dataclass
class Bench:
    """State that the suites share: sizes, the folder of the files, and the results."""

    sizes: Sizes
    folder: Path
    results: Results

    def day(self, day: Day, form: str) -> Path:
        """The captures of a day, written on first use."""
        return traffic.write_day(day, self.folder / f"{form}-{day.definitions}-{day.count}-{day.kind}", form)


# -- suites ---------------------------------------------------------------------------------------------------------


def load(bench: Bench) -> None:
    from small import loading  # noqa: PLC0415

    loading(bench.results, CORPUS, bench.sizes.repeats + 2)


def match(bench: Bench) -> None:
    from small import matching  # noqa: PLC0415

    matching(bench.results, bench.sizes.python_messages)


def pipeline(bench: Bench) -> None:
    """Rows 1, 3 and 4: compare with the bare job, one filter per definition, and a Python loop."""
    from jobs import spark_session  # noqa: PLC0415

    with spark_session() as spark:
        for form in FORMS:
            _pipeline(bench, spark, form)


def _pipeline(bench: Bench, spark: Any, form: str) -> None:
    import jobs  # noqa: PLC0415

    from wirebook.catalog import Catalog  # noqa: PLC0415

    sizes = bench.sizes
    day = Day(sizes.definitions, sizes.messages)
    source, out = bench.day(day, form), bench.folder / "out"
    catalog = Catalog.load(traffic.catalogue(day.definitions))
    works: dict[str, Callable[[], Any]] = {
        "bare job": lambda: jobs.bare(spark, source, out / "bare"),
        "wirebook land": lambda: jobs.product(spark, source, catalog, out / "product"),
        "land of a DataFrame": lambda: jobs.product_frame(spark, source, catalog, out / "frame"),
    }
    runs = in_turn(works, day.count, sizes.repeats)
    bare, product, frame = runs.values()
    check(day, form, out / "product", product.samples[-1].result)
    check_counts(day, out / "frame", frame.samples[-1].result)  # its rows have no line numbers
    rows: list[tuple[Runs, Goal | None]] = [(bare, None), (product, Goal(bare, most=OVER_BARE))]
    rows.append((frame, Goal(bare, most=FRAME_OVER_BARE)))
    again = replace(product, label="wirebook land, again")
    if form in sizes.filters:
        filtered = Runs("foreachBatch, one filter per definition", day.count)
        filtered.samples = [measured(lambda: jobs.filters(spark, source, day.definitions, out / "filters"))]
        rows += [(filtered, None), (again, Goal(filtered, least=FILTERS))]
    if form == "jsonl":
        loop = _loop(bench, source, day)
        rows += [(loop, None), (again, Goal(loop, least=LOOP))]
    print_runs(bench.results, f"{day.definitions} definitions, {FORMS[form]}", rows)


def _loop(bench: Bench, source: Path, day: Day) -> Runs:
    """The plain loop over the first lines, on one core."""
    import loop  # noqa: PLC0415

    count = min(bench.sizes.loop_messages, day.count // traffic.FILES)
    with (source / "part-0.jsonl").open("rb") as file:
        lines = list(islice(file, count))
    runs = Runs("a loop in Python", count)
    runs.samples = [measured(lambda: loop.run(lines, day.definitions, bench.folder / "out" / "loop")) for _ in range(2)]
    rows = runs.samples[-1].result
    if sum(rows.values()) != count:
        raise Void(f"the loop landed {sum(rows.values())} of {count}")
    return runs


def many(bench: Bench) -> None:
    """Row 2: compare landings with increasing numbers of definitions with the bare job and with each other, and a day
    without matching messages with a normal one. Rare definitions are staged."""
    from jobs import spark_session  # noqa: PLC0415

    with spark_session() as spark:
        for form in bench.sizes.scaled:
            _many(bench, spark, form)


def _many(bench: Bench, spark: Any, form: str) -> None:
    import jobs  # noqa: PLC0415

    sizes, bare = bench.sizes, bench.folder / "out" / "bare"
    lands: dict[int, Runs] = {}
    rows: list[tuple[Runs, Goal | None]] = []
    for size in sizes.scale:
        day = Day(size, sizes.many)
        works: dict[str, Callable[[], Any]] = {
            f"bare job, the files of {size:,}": partial(jobs.bare, spark, bench.day(day, form), bare),
            f"{size:,} definitions": _landing(bench, spark, day, form),
        }
        without, lands[size] = in_turn(works, sizes.many, sizes.repeats).values()
        check(day, form, bench.folder / "out" / "many", lands[size].samples[-1].result)
        rows += [(without, None), (lands[size], Goal(without, most=OVER_BARE if size == sizes.definitions else None))]
    print_runs(bench.results, f"over the bare job by definitions, {FORMS[form]}", rows)
    most = max(sizes.scale)
    few, all_ = lands[sizes.definitions], lands[most]
    none = _dead_letters(bench, spark, Day(most, sizes.many, "unexpected"), form)
    invalid = _dead_letters(bench, spark, Day(sizes.definitions, sizes.many, "invalid"), form)
    again = [(few, None), (all_, Goal(few, most=MANY_OVER_FEW)), (none, Goal(all_, most=3.0))]
    print_runs(bench.results, f"{most:,} definitions over {sizes.definitions}, {FORMS[form]}", again)
    dead = [(few, None), (invalid, Goal(few, most=DEAD_OVER_LANDED))]
    print_runs(bench.results, f"invalid payloads, {FORMS[form]}", dead)


def _landing(bench: Bench, spark: Any, day: Day, form: str) -> Callable[[], Any]:
    import jobs  # noqa: PLC0415

    from wirebook.catalog import Catalog  # noqa: PLC0415

    catalog = Catalog.load(traffic.catalogue(day.definitions))
    return partial(jobs.product, spark, bench.day(day, form), catalog, bench.folder / "out" / "many")


def _dead_letters(bench: Bench, spark: Any, day: Day, form: str) -> Runs:
    """A day in which every message is a dead letter."""
    label = f"{day.definitions:,}, all {day.kind}"
    runs = in_turn({label: _landing(bench, spark, day, form)}, day.count, 1)[label]
    check(day, form, bench.folder / "out" / "many", runs.samples[-1].result)
    return runs


def files(bench: Bench) -> None:
    """What a small file costs: the same messages in a few files, and five to a file."""
    import jobs  # noqa: PLC0415

    from wirebook.catalog import Catalog  # noqa: PLC0415

    count, a_file = bench.sizes.small_files, 5
    whole = bench.day(Day(bench.sizes.definitions, count * a_file), "jsonl")
    small = traffic.write_small_files(whole, bench.folder / f"{whole.name}-small", a_file)
    catalog = Catalog.load(traffic.catalogue(bench.sizes.definitions))
    with jobs.spark_session() as spark:
        landing = partial(jobs.product, spark, catalog=catalog, to=bench.folder / "out" / "files")
        works = {"whole": partial(landing, whole), "small": partial(landing, small)}
        runs = in_turn(works, count * a_file, bench.sizes.repeats)
    if any(sample.result.read != count * a_file for each in runs.values() for sample in each.samples):
        raise Void("not all messages were read")
    best = {name: each.best * each.messages / 1e6 for name, each in runs.items()}
    cost = (best["small"] - best["whole"]) / count * 1000
    met = cost <= SMALL_FILE
    row = (
        f"{count:,}",
        f"{best['whole']:.1f}",
        f"{best['small']:.1f}",
        f"{cost:.2f}",
        f"≤ {SMALL_FILE:g}",
        verdict(met),
    )
    heads = ("files", "CPU s in few files", f"CPU s, {a_file} messages a file", "ms a file", "goal", "")
    print_table(heads, [row], title="small files")
    print()
    bench.results.add("small files", what=f"{count} files", milliseconds=cost, met=met)


def start(bench: Bench) -> None:
    """Five messages in a fresh process."""
    from start import starting  # noqa: PLC0415

    starting(bench.results, bench.folder, bench.sizes.repeats)


def memory(bench: Bench) -> None:
    """Row 5: the most memory of driver, Java and workers, over more and more messages, each in a process of its own."""
    rows, peaks = [], []
    for count in bench.sizes.memory:
        source = bench.day(Day(bench.sizes.definitions, count), "jsonl")
        command = [sys.executable, __file__, "--memory-of", str(source), "--folder", str(bench.folder)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
        peak = json.loads(output.splitlines()[-1])
        peaks.append(peak)
        size = sum(file.stat().st_size for file in source.iterdir())
        growth = {role: peak[role] / peaks[0][role] for role in peak}
        rows.append((f"{count:,}", f"{size // MIB:,}", *(f"{peak[r] // MIB:,} ({growth[r]:.2f})" for r in peak)))
        bench.results.add("memory", what=f"{count} messages", **peak)
    if not peaks:
        return
    first, last = peaks[0], peaks[-1]
    flat = all(last[role] <= 1.25 * first[role] + 64 * MIB for role in ("driver", "workers"))
    heads = ("messages", "source MiB", "driver MiB", "Java MiB", "workers MiB")
    print_table(
        heads,
        rows,
        title=f"peak memory (and ratio to the first row); driver and workers flat: {verdict(flat) or ''}",
    )
    print()


def _memory_of(source: Path, folder: Path) -> None:
    import jobs  # noqa: PLC0415

    from wirebook.catalog import Catalog  # noqa: PLC0415

    definitions = int(source.name.split("-")[1])
    catalog = Catalog.load(traffic.catalogue(definitions))
    with jobs.spark_session() as spark, peak_memory() as peak:
        jobs.product(spark, source, catalog, folder / "out" / "memory")
    print(json.dumps(peak))


# Rows stay in memory up to a budget; flat memory shows only beyond it, so the short form skips this suite.
SUITES: dict[str, Callable[[Bench], None]] = {
    "load": load,
    "match": match,
    "pipeline": pipeline,
    "many": many,
    "files": files,
    "start": start,
    "memory": memory,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="use small sizes; takes minutes instead of an hour")
    parser.add_argument("--only", help=f"comma-separated suites to run: {','.join(SUITES)}")
    parser.add_argument("--messages", type=int, help="number of messages in the suite pipeline")
    parser.add_argument("--many", type=int, help="number of messages in the suite many")
    parser.add_argument("--repeats", type=int, help="number of runs after the first")
    parser.add_argument("--folder", type=Path, help="folder of captures and tables; existing captures are reused")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--memory-of", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        _memory_of(options.memory_of, options.folder)
        return 0
    with tempfile.TemporaryDirectory(prefix="wirebook-bench-") as temporary:
        return _run(options, options.folder or Path(temporary))


def _run(options: argparse.Namespace, folder: Path) -> int:
    sizes = SHORT if options.short else LONG
    changes = {
        name: getattr(options, name) for name in ("messages", "many", "repeats") if getattr(options, name) is not None
    }
    bench = Bench(replace(sizes, **changes), folder, Results())
    names = options.only.split(",") if options.only else SUITES
    return bench.results.run({name: partial(SUITES[name], bench) for name in names}, options.json)


if __name__ == "__main__":
    sys.exit(main())
