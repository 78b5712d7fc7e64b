"""Benchmarks without Spark: loading catalogues, and matching single messages in Python."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson
import traffic
from tables import Results, verdict
from traffic import Day

from wirebook.bindings import parse_record
from wirebook.catalog import Catalog
from wirebook.cli.output import print_table

LOAD_GOAL = 1.0  # seconds
MATCH_GOAL, GROWTH_GOAL = 50.0, 2.0  # microseconds at 100 definitions; factor at 10,000
UNEXPECTED_GOAL = 3.0  # factor over a match among as many definitions, as in the pipeline
PASSES = 3
SIZES = (10, 100, 1_500, 10_000)


def loading(results: Results, folder: Path, repeats: int) -> None:
    """Measure loading all catalogues of a folder."""
    files = sorted(folder.glob("*.xreg.json"))
    if not files:
        print(f"loading: skipped; no catalogues in {folder}\n")
        return

    def load() -> list[Catalog]:
        return [Catalog.load(file) for file in files]

    def compile_all() -> None:
        for catalog in load():
            for definition in catalog.definitions.values():
                catalog.schema_of(definition)

    rows = []
    for what, work, goal in (
        (f"load {len(files)} catalogues", load, LOAD_GOAL),
        ("load, compile every definition and schema", compile_all, None),
    ):
        first, times = _seconds(work), [_seconds(work) for _ in range(repeats)]
        met = None if goal is None else min(times) < goal
        formatted = (f"{seconds:.3f}" for seconds in (first, min(times), median(times)))
        rows.append((what, *formatted, f"< {goal:g} s" if goal else "", verdict(met)))
        results.add("loading", what=what, best=min(times), median=median(times), met=met)
    print_table(("what", "CPU s first", "best", "median", "goal", ""), rows, title="loading")
    print()


def _seconds(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def matching(results: Results, count: int, sizes: Sequence[int] = SIZES) -> None:
    """Measure `Catalog.match` on single messages, with increasing numbers of definitions."""
    rows = []
    medians: dict[tuple[int, str], float] = {}
    for size in sizes:
        catalog = Catalog.load(traffic.catalogue(size))
        _ = catalog.selector
        for what, parsed in (("parsed", True), ("raw line", False), ("unexpected", True)):
            day = Day(size, count, "unexpected" if what == "unexpected" else "fits")
            times = _match_times(catalog, day, parsed)
            middle, tail = float(np.median(times)), float(np.percentile(times, 99))
            medians[size, what] = middle
            goal, most = _goal(size, what, medians)
            met = None if most is None else middle < most
            rows.append((f"{size:,}", what, f"{middle:.1f}", f"{tail:.1f}", goal, verdict(met)))
            results.add("matching in Python", what=f"{size} {what}", median=middle, p99=tail, met=met)
    heads = ("definitions", "message", "median CPU µs", "p99", "goal", "")
    print_table(heads, rows, title=f"matching in Python ({count:,} messages each, payload validated and decoded)")
    print()


def _goal(size: int, what: str, medians: dict[tuple[int, str], float]) -> tuple[str, float | None]:
    """The goal of a row as text and in microseconds. It may depend on the medians of earlier rows."""
    if what == "unexpected" and size >= 100:
        return f"< {UNEXPECTED_GOAL:g} of a match", UNEXPECTED_GOAL * medians[size, "parsed"]
    if (size, what) == (100, "parsed"):
        return f"< {MATCH_GOAL:g}", MATCH_GOAL
    if (size, what) == (10_000, "parsed") and (100, "parsed") in medians:
        return f"< {GROWTH_GOAL:g} of 100 definitions", GROWTH_GOAL * medians[100, "parsed"]
    return "", None


def _match_times(catalog: Catalog, day: Day, parsed: bool) -> np.ndarray[Any, Any]:
    """CPU microseconds of each message in the fastest pass. The garbage collector is off."""
    lines = [orjson.dumps(traffic.record(message)) for message in day.messages()]
    inputs: list[Any] = [parse_record(line).wire for line in lines] if parsed else lines
    gc.collect()
    gc.disable()
    try:
        passes = [_pass(catalog, inputs) for _ in range(PASSES + 1)]
    finally:
        gc.enable()
    return min(passes[1:], key=np.median)


def _pass(catalog: Catalog, inputs: list[Any]) -> np.ndarray[Any, Any]:
    times = np.zeros(len(inputs))
    for place, message in enumerate(inputs):
        started = time.thread_time_ns()
        catalog.match(message)
        times[place] = time.thread_time_ns() - started
    return times / 1000
