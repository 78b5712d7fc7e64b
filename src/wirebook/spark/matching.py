"""Matching as a DataFrame: every captured record with what it is, for notebooks and other sinks.

Columns in: either ``value`` alone (lines of the capture format, as `spark.read.text` gives them), or the members of
the capture format as columns (as `spark.read.parquet` gives them).
Columns out: those, and ``index``, ``outcome``, ``definition``, ``bindings``, ``problems``, ``near``.
Rows: one for each message; a batch of events gives several, an empty one none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa

from wirebook.catalog import Catalog
from wirebook.spark.chunks import Chunk
from wirebook.spark.engine import CatalogueEngine, engine_for
from wirebook.spark.layout import DEAD_LETTER_SCHEMA
from wirebook.spark.rows import dead_letter

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


def match(df: DataFrame, catalog: Catalog, *, endpoint: str | None = None) -> DataFrame:
    """What each message of `df` is, by `catalog`; `endpoint` wins over the records' own.

    Raises: WirebookError (``unknown-endpoint``).
    """
    from pyspark.sql.types import StructType  # noqa: PLC0415

    if endpoint is not None:
        catalog.check_endpoint(endpoint)
    document = orjson.dumps(catalog.registry.document)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engine = engine_for(document, {"endpoint": endpoint})
        for batch in batches:
            yield from outcomes_of(batch, engine).to_batches()

    added = StructType.fromDDL(OUTCOME_DDL)
    assert isinstance(added, StructType)
    return df.mapInArrow(run, StructType([*df.schema.fields, *added.fields]))


def outcomes_of(batch: pa.RecordBatch, engine: CatalogueEngine) -> pa.Table:
    """The records of a batch with their outcomes."""
    places: list[int] = []
    rows: list[dict[str, Any]] = []
    for origin, outcome in engine.outcomes(_chunk(batch)):
        if outcome is None:
            continue
        row = dead_letter(outcome, origin)
        row |= {"index": row["_index"], "bindings": list(outcome.bindings.items())}
        places.append(origin.line)
        rows.append({name: row[name] for name in OUTCOME_SCHEMA.names})
    found = pa.Table.from_pylist(rows, schema=OUTCOME_SCHEMA)
    kept = pa.Table.from_batches([batch]).take(pa.array(places, pa.int64()))
    for name in OUTCOME_SCHEMA.names:
        kept = kept.append_column(OUTCOME_SCHEMA.field(name), found.column(name))
    return kept


def _chunk(batch: pa.RecordBatch) -> Chunk:
    """The batch as a chunk whose line numbers are its row numbers, from 0."""
    numbers = np.arange(len(batch), dtype=np.int64)
    if batch.schema.names == [LINE]:
        lines = batch.column(0).cast(pa.large_binary()).fill_null(b"")
        return Chunk("", "capture", lines, numbers)
    return Chunk("", "parquet", None, numbers, batch)
