"""Match the messages of a DataFrame, batch or streaming, for notebooks and other sinks.

Columns in: those of `wirebook.landing.sources.dataframes` (capture lines or CloudEvents, members of the capture format,
or Spark's Kafka source), and any others.
Columns out: all of them, and ``index``, ``outcome``, ``definition``, ``bindings``, ``problems``, ``near``.
Rows: one per message. A batch of events yields several, an empty batch none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import orjson
import pyarrow as pa

from wirebook.core.collector import without_collector
from wirebook.landing.chunks import Chunk, Numbers
from wirebook.landing.columns.rows import DeadLetterBlock
from wirebook.landing.job import AnyCatalog, load_catalog
from wirebook.landing.runs.engine import CatalogueEngine, engine_for
from wirebook.landing.sources.dataframes import InputColumns, chunks_of, input_columns
from wirebook.landing.tables.layout import DEAD_LETTER_SCHEMA, TableLayout
from wirebook.landing.tables.reference_rows import dead_letter
from wirebook.problems import Problem, WirebookError
from wirebook.spark.frames import frame_columns, missing_columns, warn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def match(
    frame: DataFrame,
    catalog: AnyCatalog,
    *,
    endpoint: str | None = None,
    columns: Mapping[str, str] | None = None,
    prefix: str = "",
) -> DataFrame:
    """Match the messages of a DataFrame, batch or streaming. Nothing is written.

        match(spark.read.text("captures/"), "orders.xreg.json").groupBy("outcome").count().show()

    The DataFrame has one of the column layouts that `land` reads. The result has all of its columns plus ``index``
    (the position in a batch of events), ``outcome``, ``definition``, ``bindings``, ``problems`` and ``near``, which
    docs/outcomes.md describes. It has one row per message: several for a batch of events, none for an empty one.

    `catalog` is a `Catalog`, or sources as for `Catalog.load`. `endpoint` (an XID) overrides the endpoints in the
    records. `columns` maps the columns that Wirebook expects to those of the DataFrame, as in ``{"value":
    "payload"}``. The names of the added columns begin with `prefix`. Kafka rows without the headers that definitions
    need, or without the topic, cause a Python warning (missing-headers, missing-topic).

    Raises: WirebookError (frame-columns, unknown-endpoint, and the codes of `Catalog.load`).
    """
    from pyspark.sql.types import StructType  # noqa: PLC0415

    loaded = load_catalog(catalog)
    if endpoint is not None:
        loaded.check_endpoint(endpoint)
    inputs = frame_columns(frame, columns)
    _check_carried(frame)
    warn(missing_columns(frame, inputs, columns, loaded), stacklevel=2)
    _check_added(frame.columns, prefix)
    document = orjson.dumps(loaded.registry.document)
    options = {"endpoint": endpoint, "match": loaded.options}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engine = engine_for(document, options)
        for batch in batches:
            with without_collector():
                outcomes = outcomes_of(batch, engine, inputs, prefix)
            yield from outcomes.to_batches()

    added = StructType.fromDDL(OUTCOME_DDL)
    assert isinstance(added, StructType)
    for field in added.fields:
        field.name = prefix + field.name
    return frame.mapInArrow(run, StructType([*frame.schema.fields, *added.fields]))


def _check_carried(frame: DataFrame) -> None:
    """Check that Spark can pass all columns to Python and back. Raises: frame-columns"""
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    is_exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    folded = [name if is_exact else name.casefold() for name in frame.columns]
    problems = []
    if repeated := [name for name, key in zip(frame.columns, folded, strict=True) if folded.count(key) > 1]:
        message = f"the DataFrame has several columns of one name, which Spark cannot pass to Python: {repeated}"
        hint = "drop all but one of them, or rename them before, as in frame.toDF(...)"
        problems.append(Problem("frame-columns", message, actual=repeated, hint=hint))
    for field in frame.schema.fields:
        try:
            to_arrow_type(field.dataType)
        except PySparkException:
            name, type_ = field.name, field.dataType.simpleString()
            message = f"column '{name}' has the type {type_}, which Spark cannot pass to Python"
            hint = f"cast it, as in frame.withColumn('{name}', frame['{name}'].cast('string')), or drop it"
            problems.append(Problem("frame-columns", message, actual=type_, hint=hint))
    if problems:
        raise WirebookError(*problems)


def _check_added(names: Iterable[str], prefix: str) -> None:
    """Raises: frame-columns"""
    added = {(prefix + name).casefold() for name in OUTCOME_SCHEMA.names}
    if taken := [name for name in names if name.casefold() in added]:
        message = f"the DataFrame has columns with the names of columns that `match` adds: {', '.join(taken)}"
        hint = "rename them, or choose a prefix for the added columns, as in prefix='wirebook_'"
        raise WirebookError(Problem("frame-columns", message, actual=taken, hint=hint))


def outcomes_of(
    batch: pa.RecordBatch, engine: CatalogueEngine, inputs: InputColumns | None = None, prefix: str = ""
) -> pa.Table:
    """Return the rows of a batch with their outcomes, in no particular order."""
    inputs = inputs or input_columns(batch.schema.names)
    places, parts = [np.zeros(0, np.int64)], [OUTCOME_SCHEMA.empty_table()]
    for chunk in chunks_of("", np.arange(len(batch), dtype=np.int64), batch, inputs):
        matched, outcomes = _chunk_outcomes(chunk, engine)
        places.append(matched)
        parts.append(outcomes)
    added = pa.concat_tables(parts)
    records = pa.Table.from_batches([batch]).take(pa.array(np.concatenate(places), pa.int64()))
    for field, column in zip(OUTCOME_SCHEMA, added.columns, strict=True):
        records = records.append_column(field.with_name(prefix + field.name), column)
    return records


def _chunk_outcomes(chunk: Chunk, engine: CatalogueEngine) -> tuple[Numbers, pa.Table]:
    """Return the row number and the outcome of each message of a chunk. Messages that the column path decides come
    first, then the others, which are matched one by one."""
    assert chunk.numbers is not None
    rest = np.ones(len(chunk), bool)
    places, parts = [], []
    for block in engine.settled(chunk):
        rest[block.places] = False
        places.append(chunk.numbers[block.places])
        if isinstance(block, DeadLetterBlock):
            parts.append(_dead_letters(block))
        else:
            parts.append(_settled(block.layout, block.rows, engine.xids_of(block)))
    numbers, rows = [], []
    for origin, outcome in engine.outcomes(chunk.only(rest)):
        if outcome:
            row = dead_letter(outcome, origin)
            numbers.append(origin.line)
            rows.append(row | {"index": row["_index"], "bindings": list(outcome.bindings.items())})
    places.append(np.array(numbers, np.int64))
    parts.append(pa.Table.from_pylist(rows, schema=OUTCOME_SCHEMA))
    return np.concatenate(places), pa.concat_tables(parts)


def _dead_letters(block: DeadLetterBlock) -> pa.Table:
    """Return the outcomes of dead letters, with the bindings of those that match a definition."""
    bound = [message.bindings for message in block.invalid] or [[]] * len(block.rows)
    bindings = pa.array(bound, OUTCOME_SCHEMA.field("bindings").type)
    table = block.rows.rename_columns({"_index": "index"}).append_column("bindings", bindings)
    return table.select(OUTCOME_SCHEMA.names).combine_chunks()


def _settled(layout: TableLayout, table: pa.Table, definitions: pa.StringArray) -> pa.Table:
    """Return the outcomes of rows in a table layout, all of which are matched."""
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
    """Return the ``ctx_`` columns of each row as a map, without placeholders that have no value."""
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
