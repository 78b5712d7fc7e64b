"""Compare `match` on Spark, of a DataFrame of lines and of Parquet, with the reference."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from synthesis.agreement import Difference, same
from synthesis.carriers import chunk_of_rows
from synthesis.messages import Message
from wirebook.catalog import Catalog
from wirebook.landing.runs.engine import CatalogueEngine
from wirebook.spark import match
from wirebook.spark.matching import OUTCOME_SCHEMA, outcomes_of
from wirebook.spark.session import session

OutcomesByRecord = dict[str, dict[str, Any]]
"""What was said of each record, by the record and the index of the message in it; equal records are told the same."""


def differences_on_spark(catalog: Catalog, messages: Sequence[Message]) -> list[Difference]:
    records = [message for message in messages if not message.is_event_file]
    lines = pa.RecordBatch.from_pydict({"value": pa.array([record.line for record in records], pa.binary())})
    rows = chunk_of_rows(records)[0].batch
    assert rows is not None
    return [difference for batch in (lines, rows) for difference in _differences(catalog, batch)]


def _differences(catalog: Catalog, batch: pa.RecordBatch) -> list[Difference]:
    reference = _by_record(outcomes_of(batch, CatalogueEngine(catalog, columns=False)))
    with tempfile.TemporaryDirectory(prefix="differential-") as folder:
        path = Path(folder) / "records.parquet"
        pq.write_table(pa.Table.from_batches([batch]), path)
        spark = _by_record(match(session("differential", cores=1).read.parquet(str(path)), catalog).toArrow())
    wrong = [place for place in sorted({*spark, *reference}) if not same(spark.get(place), reference.get(place))]
    return [Difference(None, f"on Spark: {place}", spark.get(place), reference.get(place)) for place in wrong]


def _by_record(table: pa.Table) -> OutcomesByRecord:
    outcomes: OutcomesByRecord = {}
    for row in table.to_pylist():
        outcome = {name: row.pop(name) for name in OUTCOME_SCHEMA.names}
        outcomes[f"{outcome['index']} of {sorted(row.items())}"] = outcome
    return outcomes
