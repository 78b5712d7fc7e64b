"""Where the time of the engine goes: `python benchmarks/engine_profile.py CAPTURES CATALOGUE [--calls]`.

No Spark: the chunks of every file are read and given to the engine here, once to warm up and once more under the
profiler. Per file: CPU a message, and how many messages the reference had to read. Per step: its share of the time.
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
from wirebook.landing.chunks import Chunk
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.landing.sources.files import list_files, scan_files
from wirebook.landing.sources.reading import Progress, read_split
from wirebook.landing.sources.splits import merge_adjacent, split_file

OURS = "/wirebook/"


class Watched(CatalogueEngine):
    """The engine, counting what the reference reads."""

    read_by_reference: Counter[str]

    def outcomes(self, chunk: Chunk) -> Iterator[Any]:
        for outcome in super().outcomes(chunk):
            self.read_by_reference[chunk.file] += 1
            yield outcome


def land(engine: Watched, source: Path) -> dict[str, tuple[float, int]]:
    """CPU seconds and messages of every file."""
    engine.read_by_reference = Counter()
    found = {}
    for scan in scan_files(list_files(source).files):
        started, messages = time.process_time(), 0
        for split in merge_adjacent(list(split_file(scan, None).splits)):
            for chunk in read_split(split, Progress(lines=0)):
                messages += engine.land(chunk).read
        found[scan.file.name] = (time.process_time() - started, messages)
    return found


def steps(stats: pstats.Stats, least: float) -> Iterator[tuple[str, int, float, float]]:
    """Functions of the package by the time in them and below: name, calls, seconds in all, seconds of their own."""
    entries = stats.stats.items()  # type: ignore[attr-defined]
    for (file, _, name), (_, calls, own, whole, _) in sorted(entries, key=lambda item: -item[1][3]):
        if OURS in file and whole >= least:
            yield f"{Path(file).parent.name}.{Path(file).stem}.{name}", calls, whole, own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("catalogue")
    parser.add_argument("--calls", action="store_true", help="the functions that cost most themselves, C ones too")
    given = parser.parse_args()
    engine = Watched(Catalog.load(given.catalogue))
    land(engine, given.source)
    files = land(engine, given.source)
    rows = [(name, n, engine.read_by_reference[name], f"{s * 1e6 / max(n, 1):.1f}") for name, (s, n) in files.items()]
    print_table(("file", "messages", "by the reference", "CPU µs each"), rows)
    profiler = cProfile.Profile()
    profiler.runcall(land, engine, given.source)
    stats = pstats.Stats(profiler)
    if given.calls:
        stats.sort_stats("tottime").print_stats(50)
        return
    total = stats.total_tt  # type: ignore[attr-defined]
    table = [
        (name, calls, f"{whole:.2f}", f"{100 * whole / total:.1f}", f"{100 * own / total:.1f}")
        for name, calls, whole, own in steps(stats, total / 100)
    ]
    print_table(("function", "calls", "s with all below", "%", "own %"), table)


if __name__ == "__main__":
    main()
