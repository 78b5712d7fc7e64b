"""Match captured records in a DataFrame, for notebooks and other sinks.

Columns in: ``value`` alone (lines of the capture format, as from `spark.read.text`), or the members of the capture
format as columns (as from `spark.read.parquet`).
Columns out: the same, and ``index``, ``outcome``, ``definition``, ``bindings``, ``problems``, ``near``.
Rows: one per message. A batch of events gives several, an empty batch none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import orjson
import pyarrow as pa

from wirebook.catalog import Catalog
from wirebook.core.collector import without_collector
from wirebook.landing.chunks import Chunk
from wirebook.landing.runs.engine import CatalogueEngine, engine_for
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA, TableLayout
from wirebook.landing.tables.reference_rows import dead_letter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LINE: Final = "value"
REASONS: Final = "array<struct<code: string, slot: string, expected: string, actual: string>>"
OUTCOME_DDL: Final = (
    "index int, outcome string, definition string, bindings map<string, string>, "
    f"problems {REASONS}, near array<struct<definition: string, problems: {REASONS}>>"
)
OUTCOME_SCHEMA: Final = pa.schema([
    ("index", pa.int32()),
    ("outcome", pa.string()),
    ("definition", pa.string()),
    ("bindings", pa.map_(pa.string(), pa.string())),
    ("problems", DEAD_LETTER_SCHEMA.field("problems").type),
    ("near", DEAD_LETTER_SCHEMA.field("near").type),
])  # fmt: skip

PROBLEMS, NEAR = OUTCOME_SCHEMA.field("problems"), OUTCOME_SCHEMA.field("near")


def match(df: DataFrame, catalog: Catalog, *, endpoint: str | None = None) -> DataFrame:
    """The outcome of each message in `df`. `endpoint` (an XID) overrides the endpoints in the records.

    Raises: WirebookError (``unknown-endpoint``).
    """
    from pyspark.sql.types import StructType  # noqa: PLC0415

    if endpoint is not None:
        catalog.check_endpoint(endpoint)
    document = orjson.dumps(catalog.registry.document)
    options = {"endpoint": endpoint, "match": catalog.options}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engine = engine_for(document, options)
        for batch in batches:
            with without_collector():
                outcomes = outcomes_of(batch, engine)
            yield from outcomes.to_batches()

    added = StructType.fromDDL(OUTCOME_DDL)
    assert isinstance(added, StructType)
    return df.mapInArrow(run, StructType([*df.schema.fields, *added.fields]))


def outcomes_of(batch: pa.RecordBatch, engine: CatalogueEngine) -> pa.Table:
    """The records of a batch with their outcomes: first those of the column path, then the others."""
    chunk = _chunk(batch)
    rest = np.ones(len(batch), bool)
    places, parts = [], []
    for layout, block in engine.settled(chunk):
        rest[block.places] = False
        places.append(block.places)
        parts.append(_settled(layout, block.rows, engine.xids_of(block)))
    lines, rows = [], []
    for origin, outcome in engine.outcomes(chunk.only(rest)):
        if outcome:
            row = dead_letter(outcome, origin)
            lines.append(origin.line)
            rows.append(row | {"index": row["_index"], "bindings": list(outcome.bindings.items())})
    places.append(np.array(lines, np.int64))
    parts.append(pa.Table.from_pylist(rows, schema=OUTCOME_SCHEMA))
    outcomes = pa.concat_tables(parts)
    records = pa.Table.from_batches([batch]).take(pa.array(np.concatenate(places), pa.int64()))
    for field, column in zip(OUTCOME_SCHEMA, outcomes.columns, strict=True):
        records = records.append_column(field, column)
    return records


def _settled(layout: TableLayout, table: pa.Table, definitions: pa.StringArray) -> pa.Table:
    """The outcomes of rows with the columns of a layout; all are matched."""
    count = len(table)
    columns = [
        table["_index"].combine_chunks(),
        pa.repeat(pa.scalar("matched", pa.string()), count),
        definitions,
        _bindings(layout, table),
        *(pa.array([[]], field.type).take(pa.array(np.zeros(count, np.int64))) for field in (PROBLEMS, NEAR)),
    ]
    return pa.Table.from_arrays(columns, schema=OUTCOME_SCHEMA)


def _bindings(layout: TableLayout, table: pa.Table) -> pa.MapArray:
    """The ``ctx_`` columns of each row as a map, without placeholders that have no value."""
    bound = [column for column in layout.columns if column.source[0] == "binding"]
    count = len(table)
    texts = [table[column.name].combine_chunks() for column in bound]
    by_row = np.arange(count * len(bound)).reshape(len(bound), count).T.ravel()
    values = pa.concat_arrays([pa.array([], pa.string()), *texts]).take(pa.array(by_row))
    there = np.asarray(values.is_valid())
    names = pa.array([column.source[1] for column in bound], pa.string())
    keys = names.take(pa.array(np.tile(np.arange(len(bound)), count)[there], pa.int64()))
    counts = there.reshape(count, len(bound)).sum(axis=1)
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, values.filter(pa.array(there)))


def _chunk(batch: pa.RecordBatch) -> Chunk:
    """The batch as a chunk whose line numbers are row numbers, from 0."""
    numbers = np.arange(len(batch), dtype=np.int64)
    if batch.schema.names == [LINE]:
        lines = batch.column(0).cast(pa.large_binary()).fill_null(b"")
        return Chunk("", "capture", lines, numbers)
    return Chunk("", "parquet", None, numbers, batch)
