"""Profiles the landing engine without Spark: `python benchmarks/engine_profile.py CAPTURES CATALOGUE [--calls]`.

Lands every file three times in this process: to warm up, to measure, and under the profiler. Prints the CPU time per
message and the number of messages that the reference engine read for each file, and the share of each function.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wirebook.catalog import Catalog
from wirebook.cli.output import print_table
from wirebook.core.collector import without_collector
from wirebook.landing.chunks import Chunk
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.landing.sources.files import list_files, scan_files
from wirebook.landing.sources.reading import Progress, read_split
from wirebook.landing.sources.splits import merge_adjacent, split_file

OURS = "/wirebook/"


class Watched(CatalogueEngine):
    """The engine, with a counter of the messages that the reference engine reads."""

    read_by_reference: Counter[str]

    def outcomes(self, chunk: Chunk) -> Iterator[Any]:
        for outcome in super().outcomes(chunk):
            self.read_by_reference[chunk.file] += 1
            yield outcome


def land(engine: Watched, source: Path) -> dict[str, tuple[float, int]]:
    """The CPU seconds and the number of messages of each file."""
    engine.read_by_reference = Counter()
    files = {}
    for scan in scan_files(list_files(source).files):
        started, messages = time.process_time(), 0
        for split in merge_adjacent(list(split_file(scan, None).splits)):
            for chunk in read_split(split, Progress(lines=0)):
                with without_collector():  # as tasks do
                    messages += engine.land(chunk).read
        files[scan.file.name] = (time.process_time() - started, messages)
    return files


def steps(stats: pstats.Stats, least: float) -> Iterator[tuple[str, int, float, float]]:
    """The functions of the package, slowest first: name, calls, cumulative seconds, own seconds."""
    entries = stats.stats.items()  # type: ignore[attr-defined]
    for (file, _, name), (_, calls, own, whole, _) in sorted(entries, key=lambda item: -item[1][3]):
        if OURS in file and whole >= least:
            yield f"{Path(file).parent.name}.{Path(file).stem}.{name}", calls, whole, own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("catalogue")
    parser.add_argument(
        "--calls", action="store_true", help="print the functions with the highest own time, including those in C"
    )
    options = parser.parse_args()
    engine = Watched(Catalog.load(options.catalogue))
    land(engine, options.source)
    files = land(engine, options.source)
    rows = [(name, n, engine.read_by_reference[name], f"{s * 1e6 / max(n, 1):.1f}") for name, (s, n) in files.items()]
    print_table(("file", "messages", "by the reference", "CPU µs/message"), rows)
    profiler = cProfile.Profile()
    profiler.runcall(land, engine, options.source)
    stats = pstats.Stats(profiler)
    if options.calls:
        stats.sort_stats("tottime").print_stats(50)
        return
    total = stats.total_tt  # type: ignore[attr-defined]
    table = [
        (name, calls, f"{whole:.2f}", f"{100 * whole / total:.1f}", f"{100 * own / total:.1f}")
        for name, calls, whole, own in steps(stats, total / 100)
    ]
    print_table(("function", "calls", "cumulative s", "%", "own %"), table)


if __name__ == "__main__":
    main()
