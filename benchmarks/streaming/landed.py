"""What a stream has landed: the rows of each definition, and how long messages took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from oracle import Void

from wirebook.landing.report.show import tables_in


def check_landed(to: Path, sent: Counter[str | None]) -> None:
    """Check that each definition has as many rows as messages were sent, and that no message has landed twice.

    Raises: Void
    """
    tables = tables_in(to)
    rows = {table.definition: table.rows for table in tables if table.rows}
    if rows != sent:
        raise Void(f"{sent.total()} messages were sent, and {sum(rows.values())} rows have landed")
    files = sorted({file for table in tables for file in (*table.files, *table.staged_files)})
    places = [_places(str(file)) for file in files]
    if (distinct := pa.concat_tables(places).group_by(["_file", "_line"]).aggregate([]).num_rows) != sent.total():
        raise Void(f"{sent.total()} messages were sent, and {distinct} different ones have landed")


def _places(file: str) -> pa.Table:
    with pq.ParquetFile(file) as parquet:
        return parquet.read(["_file", "_line"])


def latencies(to: Path, since: float) -> npt.NDArray[np.float64]:
    """Seconds from the sending of each message, if that was later than `since`, to the commit of its table."""
    return np.concatenate([*_latencies(to, since), np.zeros(0)])


def _latencies(to: Path, since: float) -> Iterator[npt.NDArray[np.float64]]:
    for commit in to.glob("*/_delta_log/*.json"):
        committed = commit.stat().st_mtime
        actions = map(orjson.loads, commit.read_bytes().splitlines())
        files = [unquote(action["add"]["path"]) for action in actions if "add" in action]
        for file in files if committed > since else ():
            with pq.ParquetFile(commit.parents[1] / file) as parquet:
                if "ce_time" in parquet.schema_arrow.names:
                    sent = parquet.read(["ce_time"])["ce_time"].cast(pa.int64()).to_numpy() / 1e6
                    yield committed - sent[sent > since]
