"""Parquet, Delta Lake and Iceberg: the same rows, each once, after kills and schema changes, read by their own
readers."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from extensions import load
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from wirebook.landing.report.show import find_table, first_rows, tables_in
from wirebook.landing.runs.target import Target
from wirebook.landing.tables.all_formats import FORMATS
from wirebook.landing.tables.formats import CommitFailed
from wirebook.landing.tables.names import TablePlace
from wirebook.problems import WirebookError

ALL = ("parquet", "delta", "iceberg")
BAD = {"unknown": ["b"]}


def lines(count: int, table: str = "ab", **members: Any) -> bytes:
    values = ({"protocol": "X", "t": table[i % len(table)], "n": i, **members} for i in range(count))
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)


@pytest.fixture(params=ALL)
def lake(request: pytest.FixtureRequest, workspace: Any) -> Any:
    workspace.settings.table_format = request.param
    return workspace


def rows(workspace: Any, table: str) -> list[dict[str, Any]]:
    """What the format's own Python reader gives."""
    folder = workspace.to / table
    if workspace.settings.table_format == "delta":
        from deltalake import DeltaTable

        result = DeltaTable(str(folder)).to_pyarrow_table(filesystem=SubTreeFileSystem(str(folder), LocalFileSystem()))
    elif workspace.settings.table_format == "iceberg":
        result = iceberg_table(workspace.to, table).scan().to_arrow().rename_columns({"_source_file": "_file"})
    else:
        schema = Target(workspace.to).tables()[table].schema
        result = ds.dataset(sorted(folder.glob("*.parquet")), schema=schema).to_table()
    return sorted(result.to_pylist(), key=lambda row: (row["_file"], row["_line"], row["_index"]))


def iceberg_table(root: Path, table: str, namespace: str = "wirebook") -> Any:
    """The table by the catalogue in the folder, as any program opens it."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("wirebook", uri=f"sqlite:///{root}/_wirebook/iceberg.db")
    return catalog.load_table(f"{namespace}.{table}")


def check(workspace: Any, expected: int, tables: tuple[str, ...] = ("a", "b", "dead_letters")) -> None:
    """Every message once, for the format's reader."""
    places = Counter(
        (row["_file"], row["_line"], row["_index"])
        for table in tables
        if (workspace.to / table).is_dir()
        for row in rows(workspace, table)
    )
    assert set(places.values()) == {1}
    assert places.total() == expected


def test_second_run_lands_only_new_messages(lake: Any) -> None:
    path = lake.write("one file", lines(20) + b"bad\n")
    assert lake.land().read == 21
    assert lake.land().read == 0
    path.write_bytes(path.read_bytes() + lines(4))
    assert lake.land(table_format=None).read == 4
    check(lake, 25)
    assert {table.name: table.rows for table in tables_in(lake.to)} == {"a": 12, "b": 12, "dead_letters": 1}
    assert first_rows(find_table(tables_in(lake.to), "a"), 20).num_rows == 12


def test_replay_resolves_dead_letters(lake: Any) -> None:
    lake.write("one", lines(20) + b"bad\n")
    lake.land(engine=BAD)
    assert (lake.replay(table_format=None).landed, lake.replay(table_format=None).landed) == (10, 0)
    check(lake, 20, ("a", "b"))
    assert len(rows(lake, "resolved")) == 10


def test_other_format_in_same_folder_is_rejected(lake: Any) -> None:
    lake.write("one", lines(20))
    lake.land()
    other = ALL[ALL.index(lake.settings.table_format) - 1]
    with pytest.raises(WirebookError, match="format-differs"):
        lake.land(table_format=other)


@pytest.mark.parametrize(("table_format", "module"), [("delta", "deltalake"), ("iceberg", "pyiceberg.catalog.sql")])
def test_missing_package_is_reported_before_reading(
    workspace: Any, monkeypatch: pytest.MonkeyPatch, table_format: str, module: str
) -> None:
    workspace.write("one", lines(20))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(WirebookError, match=r"missing-extra.*not installed") as raised:
        workspace.land(table_format=table_format)
    assert raised.value.problems[0].hint == f"pip install 'wirebook[{table_format}]'"
    assert not workspace.runner.tasks


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize(
    ("point", "times"), [("begun", 1), ("staged", 0), ("committed", 1), ("moved", 1), ("tabled", 1)]
)
def test_kill_at_each_point_loses_and_duplicates_nothing(
    workspace: Any, table_format: str, point: str, times: int
) -> None:
    workspace.settings.table_format = table_format
    for name in ("one", "two"):
        workspace.write(name, lines(20, pad=name) + b"bad\n")
    workspace.die(point, times)
    workspace.land(name="new", batch_bytes=1)
    check(workspace, 42)
    assert workspace.land().read == 0


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize("done", ["nothing", "some files moved", "all files moved", "all"])
def test_commit_is_idempotent_from_any_point(workspace: Any, table_format: str, done: str) -> None:
    """Dying inside the commit of a table: between the moves, before the transaction, right behind it."""
    workspace.settings.table_format = table_format
    workspace.write("one", lines(20, "a"))
    workspace.land()
    target, file_column = Target(workspace.to), FORMATS[table_format].column("_file")
    (manifest,) = target.manifests()
    (entry,) = manifest.tables
    staging = target.staging(2) / "x" / "a"
    staging.mkdir(parents=True)
    files = [staging / f"000002-000{i}.parquet" for i in range(3)]
    for i, file in enumerate(files):
        row = dict.fromkeys(entry.schema.names) | {file_column: "two", "_line": i, "_index": 0}
        pq.write_table(pa.Table.from_pylist([row], entry.schema), file)
    moved = {"nothing": 0, "some files moved": 1, "all files moved": 3}.get(done, 0)
    for file in files[:moved]:
        os.rename(file, workspace.to / "a" / file.name)
    if done == "all":
        FORMATS[table_format].commit(
            TablePlace(workspace.to, "a"), 2, {file: staged(file, staging) for file in files}, entry.schema
        )
    again = msgspec.structs.replace(manifest, batch=2, entries=[], files=[staged(file, staging) for file in files])
    target.commit(again)
    for _ in range(2):
        target.finish(again)
    check(workspace, 23, ("a",))
    assert len(rows(workspace, "a")) == 23


def staged(file: Path, folder: Path) -> Any:
    from wirebook.landing.tables.formats import StagedFile

    return StagedFile("a", f"x/a/{file.name}", 1)


def test_commit_is_one_transaction_with_its_batch_number(workspace: Any, tmp_path: Path) -> None:
    for table_format in ("delta", "iceberg"):
        workspace.settings.table_format, workspace.to = table_format, tmp_path / table_format
        workspace.write("one", lines(20, "a"))
        workspace.write("two", b"")
        workspace.land()
        workspace.write("two", lines(20, "a", pad="x"))
        workspace.land()
    from deltalake import DeltaTable

    table = DeltaTable(str(tmp_path / "delta" / "a"))
    assert (table.version(), table.transaction_version("wirebook")) == (1, 2)
    table = iceberg_table(tmp_path / "iceberg", "a")
    summaries = [snapshot.summary for snapshot in table.metadata.snapshots]
    assert [summary["wirebook.batch"] for summary in summaries] == ["1", "2"]
    assert [summary["total-records"] for summary in summaries] == ["20", "40"]


# -- tables that do not take their rows ------------------------------------------------------------------------------


def forbid(folder: Path) -> Path:
    """Give a Delta table a feature that writers of `deltalake` do not know; returns the commit that does so."""
    log = folder / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json")) + 1
    action = {
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering", "domainMetadata"]}
    }
    commit = log / f"{version:020}.json"
    commit.write_bytes(msgspec.json.encode(action) + b"\n")
    return commit


def test_table_that_refuses_rows_does_not_block_the_others(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
    workspace.write("1", lines(20))
    workspace.land()
    commit = forbid(workspace.to / "a")
    for name in ("2", "3"):
        workspace.write(name, lines(20, pad=name))
        report = workspace.land()
        assert (report.read, report.landed) == (20, 20)
        (problem,) = report.problems
        assert (problem.code, problem.file) == ("table-set-aside", str(workspace.to / "a"))
        assert "Unsupported table features required" in problem.message
    assert (len(rows(workspace, "b")), len(rows(workspace, "a"))) == (30, 10)
    assert workspace.land().problems
    commit.unlink()
    workspace.write("4", lines(20, pad="4"))
    report = workspace.land()
    assert (report.read, report.recovered, report.problems) == (20, {"a": 20}, [])
    check(workspace, 80)
    assert workspace.land().recovered == {}
    assert not (workspace.to / "_wirebook" / "aside").exists()
    assert not [path for path in (workspace.to / "_wirebook" / "batches").iterdir() if path.name.count(".") > 1]


def test_only_the_oldest_batch_of_a_table_that_takes_nothing_is_tried(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[tuple[str, int]] = []
    refused = {"a": 1, "b": 3}

    def commit(place: TablePlace, batch: int, *arguments: Any) -> None:
        tried.append((place.name, batch))
        if batch >= refused.get(place.name, 99):
            raise CommitFailed("a reason")
        enter(place, batch, *arguments)

    enter = FORMATS["parquet"].commit
    monkeypatch.setattr(FORMATS["parquet"], "commit", commit)
    for name in "12345":
        workspace.write(name, lines(20, pad=name))
        workspace.land()
    target, home = Target(workspace.to), workspace.to / "_wirebook" / "batches"
    assert target.set_aside() == {
        "a": dict.fromkeys([1, 2, 3, 4, 5], "a reason"),
        "b": dict.fromkeys([3, 4, 5], "a reason"),
    }
    tried.clear()
    before = {path.name: path.stat().st_ino for path in home.iterdir()}
    assert target.recover() == {}
    assert tried == [("a", 1), ("b", 3)]
    assert {path.name: path.stat().st_ino for path in home.iterdir()} == before
    assert [problem.message for problem in target.problems] == [
        f"the table '{table}' cannot take its rows, so they were set aside: a reason" for table in "ab"
    ]

    tried.clear()
    refused["a"] = 3
    del refused["b"]
    assert target.recover() == {"a": 20, "b": 30}
    assert tried == [("a", 1), ("a", 2), ("a", 3), ("b", 3), ("b", 4), ("b", 5)]
    assert {table: [*batches] for table, batches in target.set_aside().items()} == {"a": [3, 4, 5]}
    refused.clear()
    assert target.recover() == {"a": 30}
    assert not [path for path in home.iterdir() if path.name.endswith(".aside.json")]


@pytest.mark.parametrize("transform", ["identity", "bucket[3]"])
def test_partitions_of_an_iceberg_table_are_kept(workspace: Any, transform: str) -> None:
    from pyiceberg.transforms import parse_transform

    workspace.settings.table_format = "iceberg"
    workspace.write("1", lines(20))
    workspace.land()
    with iceberg_table(workspace.to, "a").update_spec() as update:
        update.add_field("_line", parse_transform(transform), "part")
    workspace.write("2", lines(20, pad="2"))
    report = workspace.land()
    assert not report.problems
    check(workspace, 40)
    partitions = {task.file.partition for task in iceberg_table(workspace.to, "a").scan().plan_files()}
    assert len(partitions) > 2
    assert workspace.land().read == 0


@pytest.mark.parametrize("point", ["committed", "moved", "tabled", "finished"])
def test_kill_while_rows_are_set_aside(workspace: Any, point: str) -> None:
    workspace.settings.table_format = "delta"
    workspace.write("1", lines(20))
    workspace.land()
    commit = forbid(workspace.to / "a")
    workspace.write("2", lines(20, pad="2"))
    workspace.die(point, engine={})
    workspace.write("3", lines(20, pad="3"))
    workspace.land()
    assert (len(rows(workspace, "b")), len(rows(workspace, "a"))) == (30, 10)
    commit.unlink()
    workspace.land()
    check(workspace, 60)


# -- evolution ----------------------------------------------------------------------------------------------------

FIRST = {"v": "int32", "f": "float", "d": "decimal(4,2)", "s": "struct<a>", "l": "list<struct<a>>", "gone": "string"}
ADDED = {**FIRST, "new": "string", "s": "struct<a,b>", "l": "list<struct<a,b>>"}
WIDER = {"v": "int64", "f": "double", "d": "decimal(9,2)"}
OTHER = {"v": "string"}


def land(workspace: Any, name: str, columns: dict[str, str], **members: Any) -> Any:
    workspace.write(name, lines(2, "a", **members) + lines(1, "b"))
    return workspace.land(engine={"columns": {"a": columns}}, name=name)


@pytest.mark.parametrize("name", ["parquet", "delta"])
def test_texts_of_many_rows_have_dictionaries(tmp_path: Path, name: str) -> None:
    texts = pa.list_(pa.string())
    columns = {
        "text": (pa.string(), "a"),
        "number": (pa.int64(), 1),
        "at": (pa.timestamp("us", "UTC"), 0),
        "bytes": (pa.binary(), b"a"),
        "object": (pa.struct([("a.b", pa.string()), ("n", pa.float64()), ("list", texts)]), {"list": ["a"]}),
        "list": (pa.list_(pa.struct([("t", texts), ("n", pa.int32())])), [{"t": ["a"], "n": 1}]),
        "map": (pa.map_(pa.string(), pa.struct([("t", pa.string())])), [("a", {"t": "a"})]),
    }
    rows = pa.table({column: pa.array([value] * 1000, type_) for column, (type_, value) in columns.items()})
    assert columns_with_dictionaries(name, tmp_path / "a.parquet", rows) == {
        "text",
        "object.a.b",
        "object.list.list.element",
        "list.list.element.t.list.element",
        "map.key_value.key",
        "map.key_value.value.t",
    }
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == rows.to_pylist()
    few = rows.slice(0, 999)
    assert columns_with_dictionaries(name, tmp_path / "b.parquet", few) == set()
    assert pq.read_table(tmp_path / "b.parquet").to_pylist() == few.to_pylist()


def columns_with_dictionaries(name: str, path: Path, rows: pa.Table) -> set[str]:
    """The columns that have dictionaries in a file of these rows."""
    writer = FORMATS[name].open(path, rows.schema)
    writer.write(rows)
    writer.close()
    group = pq.read_metadata(path).row_group(0)
    leaves = [group.column(place) for place in range(group.num_columns)]
    return {leaf.path_in_schema for leaf in leaves if leaf.has_dictionary_page}


def test_added_field_becomes_a_column(lake: Any) -> None:
    land(lake, "1", FIRST, v=1, s={"a": 1}, l=[{"a": 1}], gone="g")
    land(
        lake,
        "2",
        {name: type_ for name, type_ in ADDED.items() if name != "gone"},
        v=2,
        new="n",
        s={"a": 2, "b": ["b"]},
    )
    land(lake, "3", FIRST, v=3, s={"a": 3}, gone="g")
    values = [(row["v"], row["new"], row["s"], row["gone"]) for row in rows(lake, "a") if row["_line"] == 1]
    assert values == [
        (1, None, {"a": 1, "b": None}, "g"),
        (2, "n", {"a": 2, "b": ["b"]}, None),
        (3, None, {"a": 3, "b": None}, "g"),
    ]
    assert first_rows(find_table(tables_in(lake.to), "a"), 6)["new"].to_pylist() == [None, None, "n", "n", None, None]
    assert Target(lake.to).tables()["a"].columns["new"] == "string"


def test_type_is_widened_if_the_format_supports_it(lake: Any) -> None:
    land(lake, "1", FIRST, v=1, f=1.5)
    report = land(lake, "2", FIRST | WIDER, v=2**40, f=1e300)
    if lake.settings.table_format == "delta":
        assert (report.landed, report.dead_lettered, report.reasons) == (1, 2, {"columns-changed": 2})
        return
    assert report.dead_lettered == 0
    land(lake, "3", FIRST, v=3, f=3.5)
    values = [(row["v"], row["f"]) for row in rows(lake, "a") if row["_line"] == 1]
    assert values == [(1, 1.5), (2**40, 1e300), (3, 3.5)]


def test_incompatible_type_is_a_dead_letter_that_can_be_replayed(lake: Any) -> None:
    land(lake, "1", FIRST, v=1)
    report = land(lake, "2", FIRST | OTHER, v="two")
    assert (report.read, report.landed, report.dead_lettered) == (3, 1, 2)
    assert (report.outcomes, report.reasons) == ({"matched": 1, "unsupported": 2}, {"columns-changed": 2})
    assert "a" not in report.tables()
    letter = rows(lake, "dead_letters")[0]
    assert (letter["_file"], letter["_line"], letter["outcome"]) == ("2", 1, "unsupported")
    assert (letter["definition"], letter["problems"]) == ("/messagegroups/g/messages/a", [{"code": "columns-changed"}])
    assert letter["raw"] == lines(1, "a", v="two").rstrip()
    assert lake.replay(engine={"columns": {"a": FIRST | OTHER}}).landed == 0
    assert lake.replay(engine={"columns": {"a": {name: FIRST[name] for name in FIRST if name != "v"}}}).landed == 2
    check(lake, 6, ("a", "b"))


def test_small_integers_have_types_of_the_format(lake: Any) -> None:
    land(lake, "1", {"v": "int8"}, v=-7)
    expected = "int32" if lake.settings.table_format == "iceberg" else "int8"
    assert Target(lake.to).tables()["a"].columns["v"] == expected
    assert [row["v"] for row in rows(lake, "a")] == [-7, -7]


# -- readers ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def duck() -> Iterator[Any]:
    """DuckDB with the extensions that are installed as packages."""
    import duckdb

    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    yield connection
    connection.close()


def test_duckdb_reads_all_formats(lake: Any, duck: Any) -> None:
    land(lake, "1", FIRST, v=1, s={"a": 1})
    land(lake, "2", ADDED, v=2, new="n", s={"a": 2, "b": ["b"]})
    folder = lake.to / "a"
    if lake.settings.table_format == "delta":
        load(duck, "delta")
        table = f"delta_scan('{folder}')"
    elif lake.settings.table_format == "iceberg":
        load(duck, "avro", "iceberg")
        table = f"iceberg_scan('{iceberg_table(lake.to, 'a').metadata_location}')"
    else:
        table = f"read_parquet('{folder}/*.parquet', union_by_name = true)"
    file_column = FORMATS[lake.settings.table_format].column("_file")
    values = duck.execute(f"SELECT v, new, s.a, s.b FROM {table} ORDER BY {file_column}, _line").fetchall()
    assert values == [(1, None, 1, None), (1, None, 1, None), (2, "n", 2, ["b"]), (2, "n", 2, ["b"])]


# -- with the engine that ships -----------------------------------------------------------------------------------


def registry(**properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    message = {"messageid": "seen", "envelope": "CloudEvents/1.0"}
    message["envelopemetadata"] = {"type": {"value": "seen"}}
    message |= {"dataschemaformat": "JsonSchema/draft-07", "dataschema": schema}
    group = {"messagegroupid": "g", "messages": {"seen": message}}
    return {"specversion": "1.0-rc4", "registryid": "r", "messagegroups": {"g": group}}


def kafka(number: int, **data: Any) -> dict[str, Any]:
    value = {"specversion": "1.0", "id": f"{number}", "source": "/s", "type": "seen", "data": {"n": number, **data}}
    headers = [{"name": "content-type", "value": b"application/cloudevents+json"}]
    return {"protocol": "KAFKA", "topic": "t", "headers": headers, "value": msgspec.json.encode(value)}


PAIRS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
CAPTURE = pa.schema([("protocol", pa.string()), ("topic", pa.string()), ("headers", PAIRS), ("value", pa.binary())])


def test_tables_survive_definition_changes_and_reverts(lake: Any) -> None:
    from wirebook.catalog import Catalog
    from wirebook.landing.runs.engine import engine_for

    def document(name: str, **properties: Any) -> dict[str, Any]:
        catalog = Catalog.load(registry(**properties))
        return {"engine": catalog.registry.document, "name": catalog.fingerprint}

    def write(name: str, **data: Any) -> None:
        pq.write_table(pa.Table.from_pylist([kafka(i, **data) for i in range(3)], CAPTURE), lake.source / name)

    lake.settings.factory = engine_for
    write("1", o={"a": 1})
    lake.land(**document("1", n={"type": "integer"}, o={"properties": {"a": {"type": "integer"}}}))
    write("2", o={"a": 2, "b": "b"}, new=True)
    both = {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    lake.land(**document("2", n={"type": "integer"}, o=both, new={"type": "boolean"}))
    values = [(row["_file"], row["n"], row["o"], row["new"], row["_rest"]) for row in rows(lake, "g__seen")]
    assert values == [
        *(("1", i, {"a": 1, "b": None}, None, None) for i in range(3)),
        *(("2", i, {"a": 2, "b": "b"}, True, None) for i in range(3)),
    ]
    write("3", pad=[])
    report = lake.land(**document("3", n={"type": ["string", "integer"]}))
    assert (report.dead_lettered, report.reasons) == (3, {"columns-changed": 3})
    letter = rows(lake, "dead_letters")[0]
    assert msgspec.json.decode(letter["raw"])["topic"] == "t"
    assert (letter["outcome"], letter["protocol"], letter["definition"]) == (
        "unsupported",
        "KAFKA",
        "/messagegroups/g/messages/seen",
    )
    assert letter["problems"] == [{"code": "columns-changed", "slot": "n", "expected": "int64", "actual": "string"}]
    assert lake.replay(**document("4", n={"type": "integer"})).landed == 3
    assert [row["n"] for row in rows(lake, "g__seen")] == [0, 1, 2] * 3
