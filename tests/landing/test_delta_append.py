"""Appending to a Delta table without reading its log: what readers see, and when `deltalake` has to do it."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from wirebook.landing.tables.delta import DeltaFormat
from wirebook.landing.tables.formats import NO_TRAITS, CommitFailed, StagedFile, TableTraits
from wirebook.landing.tables.names import TablePlace
from wirebook.landing.tables.partitions import DayPartition

SCHEMA = pa.schema({"n": pa.int64(), "t": pa.string()})


class Table:
    """A Delta table to which batches of one row are committed; `loads` counts how often `deltalake` has read it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.staging = folder / "table", folder / "staging"
        self.staging.mkdir(parents=True)
        self.format, self.loads = DeltaFormat(), 0

    def commit(
        self, batch: int, schema: pa.Schema = SCHEMA, traits: TableTraits = NO_TRAITS, *, suffix: str = ""
    ) -> None:
        file = self.staging / f"{batch:06d}-0{suffix}.parquet"
        pq.write_table(pa.Table.from_pylist([{"n": batch, "t": f"é{batch}"}], schema), file)

        class Counted(DeltaTable):
            def __init__(inner, *arguments: object, **options: object) -> None:
                self.loads += 1
                super().__init__(*arguments, **options)

        with mock.patch("deltalake.DeltaTable", Counted):
            self.format.commit(
                TablePlace(self.folder.parent, self.folder.name),
                batch,
                {file: StagedFile("table", file.name, 1)},
                schema,
                traits,
            )
            self.format.wait()

    def numbers(self) -> list[int]:
        return sorted(DeltaTable(self.folder).to_pyarrow_table()["n"].to_pylist())

    def engine(self) -> str:
        return str(DeltaTable(self.folder).history(1)[0].get("engineInfo"))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with the batches 1 and 2, which `deltalake` has committed."""
    table = Table(tmp_path)
    table.commit(1)
    table.commit(2)
    assert table.loads == 2
    return table


def test_appended_files_are_read_like_others(table: Table) -> None:
    table.commit(3)
    table.commit(4)
    assert table.loads == 2
    assert table.engine().startswith("wirebook/")
    current = DeltaTable(table.folder)
    assert (current.version(), current.transaction_version("wirebook")) == (3, 4)
    assert table.numbers() == [1, 2, 3, 4]
    rows = current.to_pyarrow_table(filters=[("n", ">", 2)])  # by the statistics in the log
    assert sorted(rows["t"].to_pylist()) == ["é3", "é4"]
    assert not [path.name for path in (table.folder / "_delta_log").iterdir() if path.name.endswith(".tmp")]


def test_batch_is_added_once(table: Table) -> None:
    for batch in (3, 3, 2, 4, 4):
        table.commit(batch)
    assert (table.loads, table.numbers()) == (2, [1, 2, 3, 4])
    table.format = DeltaFormat()  # as of another run
    table.commit(4)
    assert (table.loads, table.numbers()) == (3, [1, 2, 3, 4])


def test_versions_of_other_writers_are_kept(table: Table) -> None:
    table.commit(3)
    write_deltalake(table.folder, pa.Table.from_pylist([{"n": 100, "t": "x"}], SCHEMA), mode="append")
    table.commit(4)
    assert (table.loads, table.numbers()) == (3, [1, 2, 3, 4, 100])
    table.commit(5)
    DeltaTable(table.folder).optimize.compact()
    table.commit(6)
    table.commit(7)
    assert (table.loads, table.numbers()) == (4, [1, 2, 3, 4, 5, 6, 7, 100])


def test_table_that_was_made_again_has_a_log_of_its_own(table: Table) -> None:
    table.commit(3)
    shutil.rmtree(table.folder)
    table.commit(4)
    table.commit(5)
    assert (DeltaTable(table.folder).version(), table.numbers()) == (1, [4, 5])


def test_changes_of_columns_and_traits_are_made_by_deltalake(table: Table) -> None:
    wider = SCHEMA.append(pa.field("more", pa.string()))
    table.commit(3, wider)
    table.commit(4, wider)
    assert table.loads == 3
    table.commit(5, wider, TableTraits(description="what happens"))
    table.commit(6, wider, TableTraits(description="what happens"))
    assert table.loads == 4
    assert DeltaTable(table.folder).metadata().description == "what happens"
    assert [field.name for field in DeltaTable(table.folder).schema().fields] == ["n", "t", "more"]
    assert table.numbers() == [1, 2, 3, 4, 5, 6]


def test_table_with_features_of_later_protocols_is_left_to_deltalake(table: Table) -> None:
    DeltaTable(table.folder).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    for batch in (3, 4, 5):
        table.commit(batch)
    assert (table.loads, table.numbers()) == (5, [1, 2, 3, 4, 5])
    assert table.engine().startswith("delta-rs")


def test_feature_added_by_another_writer_is_noticed(table: Table) -> None:
    table.commit(3)
    DeltaTable(table.folder).alter.add_columns([Field("other", PrimitiveType("string"))])
    DeltaTable(table.folder).alter.add_constraint({"few": "n < 6"})
    table.commit(4)
    table.commit(5)
    assert table.loads == 4
    assert table.engine().startswith("delta-rs")
    with pytest.raises(CommitFailed, match="1 rows failed validation check"):
        table.commit(6)


def test_checkpoints_are_written(table: Table) -> None:
    for batch in range(3, 204):
        table.commit(batch)
    first, second = checkpoints(table.folder)
    assert second == first + 100
    assert table.loads == 3  # one more than at the start, for the first
    assert table.numbers() == [*range(1, 204)]


def test_tables_have_their_checkpoints_in_different_batches(tmp_path: Path) -> None:
    found = []
    for name in ("orders_created", "orders_paid", "orders_shipped"):
        table = Table(tmp_path / name)
        table.folder = tmp_path / name / name
        for batch in range(1, 103):
            table.commit(batch)
        found += checkpoints(table.folder)
    assert len(set(found)) == 3


def test_interval_of_checkpoints_is_a_property_of_the_table(table: Table) -> None:
    DeltaTable(table.folder).alter.set_table_properties({"delta.checkpointInterval": "5"})
    for batch in range(3, 15):
        table.commit(batch)
    first, *others = checkpoints(table.folder)
    assert others
    assert {version % 5 for version in others} == {first % 5}


def test_failed_checkpoint_stops_nothing(table: Table) -> None:
    with mock.patch.object(DeltaTable, "create_checkpoint", side_effect=OSError("disk full")) as failing:
        for batch in range(3, 104):
            table.commit(batch)
    assert failing.called
    assert checkpoints(table.folder) == []
    assert table.numbers() == [*range(1, 104)]


def checkpoints(folder: Path) -> list[int]:
    """The versions of a table that have a checkpoint."""
    return sorted(int(path.name.partition(".")[0]) for path in folder.glob("_delta_log/*.checkpoint.parquet"))


def test_days_are_values_of_the_partition(tmp_path: Path) -> None:
    table, traits = Table(tmp_path), TableTraits(day=DayPartition("at", "day"))
    for batch in (1, 2, 3):
        table.commit(batch, traits=traits, suffix="-day-2026-05-01")
    table.commit(4, traits=traits, suffix="-day-none")
    assert table.loads == 2
    days = DeltaTable(table.folder).to_pyarrow_table()["day"].to_pylist()
    assert sorted(map(str, days)) == ["2026-05-01"] * 3 + ["None"]


def test_file_system_without_links_is_left_to_deltalake(table: Table) -> None:
    with mock.patch("os.link", side_effect=PermissionError):
        table.commit(3)
    assert (table.loads, table.numbers()) == (3, [1, 2, 3])
    assert len([*(table.folder / "_delta_log").iterdir()]) == 3
