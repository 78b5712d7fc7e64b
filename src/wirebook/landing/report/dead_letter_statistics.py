"""Statistics of the dead letters of a run: outcomes by definition, and reasons with a few examples each.

Columns are read in batches and counted in Arrow. Raw records are read for examples only.

Spec: docs/land.md#the-report; docs/outcomes.md#dead-letters
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.report.timeline import GroupTimes, group_times
from wirebook.landing.stores.locations import Location, parquet_source

__all__ = ["DeadLetterStatistics", "Example", "Reason", "dead_letter_statistics"]

MAX_REASONS = 20
MAX_KINDS = 10_000
MAX_EXAMPLES = 3
PIECE = 1 << 14
KEY = ("code", "slot")
COLUMNS = ["_file", "_line", "_index", "outcome", "definition", "problems", "near"]
RAW_BYTES = 600

Reason = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a dead letter with a certain reason. `raw` has the first bytes of its record."""

    file: str
    line: int
    index: int
    definition: str | None
    expected: str | None
    actual: str | None
    raw: bytes | None = None

    @property
    def place(self) -> str:
        """The file, line and index of the message."""
        return f"{self.file}:{self.line}" + (f"[{self.index}]" if self.index else "")


@dataclass(slots=True)
class DeadLetterStatistics:
    """The dead letters of a run.

    Shape: `gone` counts files that are missing or unreadable. `outcomes` counts by (definition, outcome); a dead letter
    without a definition counts for the closest one, or for "" if there is none. `reasons` counts dead letters by (code,
    slot), for the first ten thousand reasons; `others` counts further reasons. `codes` counts dead letters by code.
    `times` has the receive times of the row groups.
    """

    rows: int = 0
    gone: int = 0
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: Counter[Reason] = field(default_factory=Counter)
    others: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    times: list[GroupTimes] = field(default_factory=list, compare=False)
    examples: dict[Reason, list[Example]] = field(default_factory=dict)

    def top(self) -> list[tuple[Reason, int]]:
        return self.reasons.most_common(MAX_REASONS)


def dead_letter_statistics(files: Sequence[Location]) -> DeadLetterStatistics:
    """The statistics of files of dead letters. Files that are missing or unreadable are skipped and counted."""
    statistics = DeadLetterStatistics()
    candidates: dict[Reason, list[tuple[Location, int, Example]]] = {}
    unreadable: set[Location] = set()
    for file in files:
        try:
            with pq.ParquetFile(parquet_source(file)) as parquet:
                statistics.times += group_times(parquet.metadata, file, "received")
                start, name = 0, parquet.schema_arrow.names[0]  # the column of the source file; Iceberg renames it
                for piece in parquet.iter_batches(PIECE, columns=[name, *COLUMNS[1:]]):
                    batch = piece.rename_columns({name: "_file"})
                    _count(statistics, batch)
                    _note_examples(candidates, batch, file, start)
                    start += batch.num_rows
        except (OSError, pa.ArrowException):
            unreadable.add(file)
    for reason, _ in statistics.top():
        examples = statistics.examples[reason] = []
        for file, row, example in candidates.get(reason, ()):
            try:
                examples.append(_with_raw(file, row, example))
            except (OSError, pa.ArrowException):
                unreadable.add(file)
                examples.append(example)
    statistics.gone = len(unreadable)
    return statistics


def _count(statistics: DeadLetterStatistics, batch: pa.RecordBatch) -> None:
    statistics.rows += batch.num_rows
    grouped = pa.table({"definition": _definitions(batch), "outcome": batch.column("outcome")})
    for row in grouped.group_by(["definition", "outcome"]).aggregate([([], "count_all")]).to_pylist():
        statistics.outcomes[row["definition"], row["outcome"]] += row["count_all"]
    problems = _problems(batch)
    for row in (
        problems.group_by(["row", "code"]).aggregate([]).group_by("code").aggregate([([], "count_all")]).to_pylist()
    ):
        statistics.codes[row["code"] or ""] += row["count_all"]
    once = problems.group_by(["row", *KEY]).aggregate([])
    for row in once.group_by([*KEY]).aggregate([([], "count_all")]).to_pylist():
        reason = (row["code"] or "", row["slot"] or "")
        if reason in statistics.reasons or len(statistics.reasons) < MAX_KINDS:
            statistics.reasons[reason] += row["count_all"]
        else:
            statistics.others += row["count_all"]


def _definitions(batch: pa.RecordBatch) -> pa.Array:
    """The definition of each dead letter: the one that it matched, else the closest one."""
    near = batch.column("near")
    counts = pc.fill_null(pc.list_value_length(near), 0)
    first = pa.nulls(batch.num_rows, pa.string())
    has_near = pc.greater(counts, 0)
    if pc.any(has_near).as_py():
        nearest = pc.struct_field(pc.list_element(near.filter(has_near), 0), "definition")
        first = pc.replace_with_mask(first, has_near, nearest)
    return pc.fill_null(pc.coalesce(batch.column("definition"), first), "")


def _problems(batch: pa.RecordBatch) -> pa.Table:
    """One row per problem, with the row of its dead letter."""
    problems = batch.column("problems")
    flat = pc.list_flatten(problems)
    columns = {name: pc.struct_field(flat, name) for name in (*KEY, "expected", "actual")}
    return pa.table({"row": pc.list_parent_indices(problems), **columns})


def _note_examples(
    candidates: dict[Reason, list[tuple[Location, int, Example]]], batch: pa.RecordBatch, file: Location, start: int
) -> None:
    """Note the first dead letters of each reason that has too few examples yet."""
    problems = _problems(batch)
    firsts = problems.append_column("at", pa.array(range(len(problems)), pa.int64()))
    firsts = firsts.group_by([*KEY]).aggregate([("at", "list")])
    for row in firsts.to_pylist() if len(firsts) <= MAX_KINDS else ():
        reason = (row["code"] or "", row["slot"] or "")
        noted = candidates.setdefault(reason, []) if reason in candidates or len(candidates) < MAX_KINDS else []
        for at in row["at_list"][: MAX_EXAMPLES * MAX_EXAMPLES] if len(noted) < MAX_EXAMPLES else ():
            problem = problems.slice(at, 1).to_pylist()[0]
            dead_letter = problem["row"]
            known = {(path, position) for path, position, _ in noted}  # a dead letter may have a reason more than once
            if len(noted) < MAX_EXAMPLES and (file, start + dead_letter) not in known:
                noted.append((file, start + dead_letter, _example(batch.slice(dead_letter, 1), problem)))


def _example(dead_letter: pa.RecordBatch, problem: dict[str, Any]) -> Example:
    row = dead_letter.select(["_file", "_line", "_index"]).to_pylist()[0]
    definition = _definitions(dead_letter)[0].as_py() or None
    return Example(row["_file"], row["_line"], row["_index"], definition, problem["expected"], problem["actual"])


def _with_raw(file: Location, row: int, example: Example) -> Example:
    """The example with the first bytes of its record."""
    seen = 0
    with pq.ParquetFile(parquet_source(file)) as parquet:
        for group in range(parquet.metadata.num_row_groups):
            rows = parquet.metadata.row_group(group).num_rows
            if row >= seen + rows:
                seen += rows
                continue
            for batch in parquet.iter_batches(1024, row_groups=[group], columns=["raw"]):
                if row < seen + batch.num_rows:
                    raw = batch.column("raw")[row - seen].as_py()
                    return replace(example, raw=raw and raw[:RAW_BYTES])
                seen += batch.num_rows
    return example
