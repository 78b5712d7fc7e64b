"""Parquet: folders of Parquet files as tables, and the writer of Parquet files that all formats share."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wirebook.landing.stores.locations import Location, is_file_system, open_output, parquet_source
from wirebook.landing.tables.evolution import widens
from wirebook.landing.tables.file_placement import place_files
from wirebook.landing.tables.formats import (
    NO_TRAITS,
    PLAIN,
    FileLayout,
    StagedFile,
    TableTraits,
    TableWriter,
    Upkeep,
    UpkeepOptions,
)
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.partitions import NO_DAY, Partition, day_in_name
from wirebook.problems import Problem, WirebookError

__all__ = ["HIVE_NULL", "ParquetFormat", "ParquetWriter", "SummarisedParquetWriter"]

MIN_DICTIONARY_ROWS = 1000
"""Files with fewer rows have no dictionaries, which would save at most 4 % of their size and take a quarter of the
time to write them."""

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


class ParquetFormat:
    """A folder of Parquet files. Renaming a staged file into the folder adds it to the table."""

    name = "parquet"
    suffix = ".parquet"
    partition: Partition = "none"  # readers find `TABLE/*.parquet`
    tables_at_once = 8

    def own_name(self, root: Location, name: str) -> str:  # noqa: ARG002
        return name

    def namespace(self, root: Location) -> str:  # noqa: ARG002
        return ""

    def check(self, root: Location) -> None:
        if not is_file_system(root):
            message = f"tables of Parquet files need a file system that renames files, which '{root}' is not"
            hint = "choose another format, as in --format delta"
            raise WirebookError(Problem("unsupported-store", message, expected="delta", actual=self.name, hint=hint))

    def check_properties(self, properties: Mapping[str, str]) -> str | None:
        return "folders of Parquet files have no properties" if properties else None

    def column(self, name: str) -> str:
        return name

    def fit(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def can_widen(self, old: pa.DataType, new: pa.DataType, *, may_rewrite: bool = False) -> bool:  # noqa: ARG002
        return widens(old, new)

    def open(self, path: Location, schema: pa.Schema, layout: FileLayout = PLAIN) -> TableWriter:
        return ParquetWriter(path, schema, layout)

    def count(self, path: Location) -> int:
        return int(pq.read_metadata(parquet_source(path)).num_rows)

    def commit(
        self,
        place: TablePlace,
        batch: int,  # noqa: ARG002
        files: Mapping[Location, StagedFile],
        schema: pa.Schema,  # noqa: ARG002
        traits: TableTraits = NO_TRAITS,
    ) -> None:
        """Move the files, whose names are unique, to the folder of the table. Files of a partition are in a folder of
        their own, which is named as in Hive."""
        folder, by_folder = place.folder, dict[Location, list[Location]]()
        for file in files:
            day = day_in_name(file.name)
            column = traits.day and day and traits.day.column
            value = HIVE_NULL if day == NO_DAY else day
            by_folder.setdefault(folder / f"{column}={value}" if column else folder, []).append(file)
        for subfolder, placed in by_folder.items():
            place_files(subfolder, placed)

    def wait(self) -> None:
        pass

    def files(self, place: TablePlace) -> list[Location]:
        folder = place.folder
        if isinstance(folder, Path):
            files: list[Location] = [*folder.glob("*.parquet"), *folder.glob("*=*/*.parquet")]
        else:
            below = (path for path, _ in folder.below() if path.name.endswith(".parquet"))
            files = [path for path in below if folder in (path.parent, path.parent.parent)]
        return sorted(files, key=lambda path: (path.name, str(path)))

    def deleted_rows(self, place: TablePlace) -> dict[str, pa.Int64Array]:  # noqa: ARG002
        """Always empty: a folder has no files that mark rows as deleted."""
        return {}

    def how_to_mend(self, table: str, reason: str) -> str | None:  # noqa: ARG002
        return None

    def maintain(self, place: TablePlace, options: UpkeepOptions) -> Upkeep:  # noqa: ARG002
        """Does nothing: a folder has no transactions in which files could be replaced."""
        return Upkeep(place.name, len(self.files(place)))


class ParquetWriter:
    """A Parquet file that is being written."""

    def __init__(self, path: Location, schema: pa.Schema, layout: FileLayout) -> None:
        self._file, self._schema, self._layout = open_output(path), schema, layout
        self._writer: pq.ParquetWriter | None = None
        self._footers: list[pq.FileMetaData] = []
        self.size, self.statistics = 0, ""

    def write(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._writer = self._started(rows.num_rows)
        self._writer.write_table(rows, self._layout.row_group_rows)

    def complete(self) -> None:
        if not self._footers:
            (self._writer or self._started(0)).close()
            self.size, self.statistics = self._file.tell(), self._summary(self._footers[0])

    def close(self) -> None:
        self.complete()
        self._file.close()

    def abandon(self) -> None:
        if isinstance(self._file, BufferedWriter):
            with suppress(OSError, ValueError):  # the disk may be full, or the file closed
                if self._writer is not None:
                    self._writer.close()
            with suppress(OSError):
                self._file.close()

    def _summary(self, footer: pq.FileMetaData) -> str:  # noqa: ARG002
        """The statistics of the file for the log of its table."""
        return ""

    def _started(self, rows: int) -> pq.ParquetWriter:
        """Begin the file. `rows` is the number of rows of the first write, which is usually the only one."""
        is_long = self._layout.dictionaries and rows >= MIN_DICTIONARY_ROWS
        paths = [path for field in self._schema for path in _text_paths(field)] if is_long else []
        return pq.ParquetWriter(
            self._file,
            self._schema,
            compression="snappy",
            use_dictionary=paths,
            metadata_collector=self._footers,
        )


class SummarisedParquetWriter(ParquetWriter):
    """A Parquet file with statistics, which `summarise` computes from its footer and the paths of floats without
    NaN."""

    def __init__(
        self,
        path: Location,
        schema: pa.Schema,
        layout: FileLayout,
        summarise: Callable[[pq.FileMetaData, Collection[tuple[str, ...]]], str],
    ) -> None:
        super().__init__(path, schema, layout)
        self._summarise = summarise
        self._without_nan = {path for field in schema for path in _float_paths(field)}

    def write(self, rows: pa.Table) -> None:
        super().write(rows)
        self._without_nan -= {path for path in self._without_nan if _may_have_nan(rows, path)}

    def _summary(self, footer: pq.FileMetaData) -> str:
        return self._summarise(footer, self._without_nan)


def _may_have_nan(rows: pa.Table, path: tuple[str, ...]) -> bool:
    """Whether floats may include NaN: their sum is NaN then, but also if they include both infinities."""
    column = rows.column(path[0])
    total = pc.sum(pc.struct_field(column, path[1:]) if len(path) > 1 else column).as_py()
    return total is not None and math.isnan(total)


def _float_paths(field: pa.Field) -> Iterator[tuple[str, ...]]:
    """The path of names to each float in a column, including those in structs."""
    if pa.types.is_struct(field.type):
        for member in field.type:
            yield from ((field.name, *path) for path in _float_paths(member))
    elif pa.types.is_float32(field.type) or pa.types.is_float64(field.type):
        yield (field.name,)


def _text_paths(field: pa.Field, path: str = "") -> Iterator[str]:
    """The Parquet paths of the strings in a column. Only strings have dictionaries: numbers and timestamps seldom
    repeat, and looking up each of them takes a fifth of the time to write a file."""
    kinds, type_, path = pa.types, field.type, f"{path}{field.name}"
    if kinds.is_string(type_):
        yield path
    elif kinds.is_struct(type_):
        for member in type_:
            yield from _text_paths(member, f"{path}.")
    elif kinds.is_list(type_):
        yield from _text_paths(type_.value_field.with_name("element"), f"{path}.list.")
    elif kinds.is_map(type_):
        yield from _text_paths(type_.key_field.with_name("key"), f"{path}.key_value.")
        yield from _text_paths(type_.item_field.with_name("value"), f"{path}.key_value.")
