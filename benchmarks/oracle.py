"""Checks a landing: every message is there once, and one in a hundred has the expected values.

A run that fails the check is void: its figures are not printed.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import traffic
from traffic import Day, Message

from wirebook.landing.report.show import TableSummary, pieces_of, tables_in
from wirebook.landing.runs.report import Report

EVERY = 100
MANY = 1_000  # tables; of more, about 100 are checked


class Void(Exception):
    """A run whose result is wrong."""


def check(day: Day, form: str, to: Path, report: Report) -> None:
    """Raises: Void"""
    check_counts(day, to, report)
    tables = tables_in(to)
    chosen = [table for place, table in enumerate(tables) if len(tables) <= MANY or place % (len(tables) // 100) == 0]
    with ThreadPoolExecutor(4) as pool:
        seen = sum(pool.map(lambda table: _check_table(day, form, table), chosen))
    if not seen and day.count > 100 * EVERY:
        raise Void("no message was checked")


def check_counts(day: Day, to: Path, report: Report) -> None:
    """Check how many rows each definition has.

    Raises: Void
    """
    truth = Counter(message.definition for message in day.messages()) if day.count <= 200_000 else None
    rows = {table.definition: table.rows for table in tables_in(to)}
    if report.read != day.count or sum(rows.values()) != day.count:
        raise Void(f"{day.count} messages, {report.read} read, {sum(rows.values())} rows")
    if truth is None:
        return
    expected = {None if number is None else traffic.xid(number): count for number, count in truth.items()}
    if expected != {definition: count for definition, count in rows.items() if count}:
        raise Void("the rows of the tables differ from the messages of their definitions")


def _check_table(day: Day, form: str, table: TableSummary) -> int:
    """Check the rows of every hundredth message in a table. Return the number of checked rows."""
    seen = 0
    for rows in pieces_of(table):
        numbers = _numbers(rows, day.count)
        places = np.flatnonzero(numbers % EVERY == 0)
        for number, row in zip(numbers[places].tolist(), rows.take(pa.array(places)).to_pylist(), strict=True):
            _check_row(day.message(number), form, table, row)
        seen += len(places)
    return seen


def _numbers(rows: pa.Table, count: int) -> npt.NDArray[np.int64]:
    """The number of the message in each row, from its file and line."""
    share = -(-count // traffic.FILES)
    file = pc.cast(pc.utf8_slice_codeunits(rows["_file"], 5, 6), pa.int64())
    return np.asarray(file.to_numpy() * share + rows["_line"].to_numpy() - 1, np.int64)


def _check_row(message: Message, form: str, table: TableSummary, row: dict[str, Any]) -> None:
    definition = None if message.definition is None else traffic.xid(message.definition)
    if table.definition != definition:
        raise Void(f"message {message.number} is in {table.name}; expected the table of {definition}")
    if definition is None:
        _check_dead_letter(message, form, row)
        return
    data = orjson.loads(message.payload)
    data["at"] = datetime.fromisoformat(data["at"])
    names = ("plant", "cell", "unit") if traffic.is_event(message.shape) else ("plant", "line")
    expected = data | {f"ctx_{name}": message.values[name] for name in names}
    actual = {name: row.get(name) for name in expected}
    if actual != expected:
        raise Void(f"message {message.number} landed as {actual}; expected {expected}")


def _check_dead_letter(message: Message, form: str, row: dict[str, Any]) -> None:
    is_right = row["outcome"] == "unexpected" and row["near"]
    if message.wrong == "payload":
        is_right = row["outcome"] == "invalid-payload" and row["definition"] == traffic.xid(message.shape)
    if not is_right:
        near = len(row["near"])
        raise Void(f"message {message.number} of {row['definition']} is {row['outcome']}, with {near} near misses")
    if form == "jsonl" and orjson.loads(row["raw"]) != traffic.record(message):
        raise Void(f"the dead letter of message {message.number} differs from the captured record")
