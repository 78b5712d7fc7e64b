"""How long five messages take to land in a fresh process, over the start of Spark alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import traffic
from oracle import Void
from tables import Results, verdict
from traffic import Day

from wirebook.cli.output import print_table
from wirebook.spark.class_archive import SETTING
from wirebook.spark.java import find_java

MESSAGES = 5
OVER_SPARK = 1.15  # at most
SPARK_ALONE = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", False).getOrCreate()
assert spark.range(1).count() == 1
spark.stop()
"""


def starting(results: Results, folder: Path, repeats: int) -> None:
    """Measure wall seconds, in turn. Landing is measured with the archive of Spark's classes and without it."""
    definitions = 10
    source = traffic.write_day(Day(definitions, MESSAGES), folder / "five", "jsonl")
    catalogue, to = folder / "five.xreg.json", folder / "out" / "five"
    catalogue.write_text(json.dumps(traffic.catalogue(definitions)))
    subprocess.run([sys.executable, "-m", "wirebook.spark.class_archive"], check=True, capture_output=True)
    wirebook = str(Path(sys.executable).parent / "wirebook")
    land = [wirebook, "land", str(source), "--catalog", str(catalogue), "--to", str(to), "--json", "--no-report"]
    java = find_java().environment
    works: dict[str, tuple[Sequence[str], dict[str, str]]] = {
        "Spark alone: range(1).count()": ([sys.executable, "-c", SPARK_ALONE], java),
        "wirebook land, five messages": (land, {}),
        "the same without the archive of classes": (land, {SETTING: "off"}),
        "the same with --local": ([*land, "--local"], {}),
    }
    times: dict[str, list[float]] = {what: [] for what in works}
    for _ in range(repeats + 1):
        for what, (command, environment) in works.items():
            shutil.rmtree(to, ignore_errors=True)
            times[what].append(_seconds(command, environment))
    rows = []
    spark, land_all, *_ = times
    for what, seconds in times.items():
        ratio = min(seconds) / min(times[spark])
        met = ratio <= OVER_SPARK if what == land_all else None
        goal = f"≤ {OVER_SPARK:g}" if what == land_all else ""
        rows.append((what, f"{min(seconds):.1f}", f"{median(seconds):.1f}", f"{ratio:.2f}", goal, verdict(met)))
        results.add("start", what=what, best=min(seconds), median=median(seconds), ratio=ratio, met=met)
    print_table(("what", "wall s best", "median", "ratio", "goal", ""), rows, title=f"start, {find_java()}")
    print()


def _seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """Raises: Void, if not all messages land"""
    started = time.monotonic()
    result = subprocess.run(  # noqa: S603
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - started
    if result.returncode:
        raise Void(f"{command[1]}: {result.stderr}")
    if "land" in command and json.loads(result.stdout)["read"] != MESSAGES:
        raise Void(f"not all messages were read: {result.stdout}")
    return seconds
