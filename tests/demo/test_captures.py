"""The captures of the demonstration: the same messages in all forms of file, and the same bytes each time."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import orjson
import pyarrow.parquet as pq
import pytest

from wirebook.bindings import read_parquet_batch
from wirebook.bindings.capture import parse_record
from wirebook.demo.captures import write_captures
from wirebook.demo.folder import DemoFolder
from wirebook.demo.message_types import FILES, MESSAGE_TYPES
from wirebook.demo.traffic import messages
from wirebook.problems import WirebookError

COUNT = 1_000


def lines_of(path: Path) -> list[bytes]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.splitlines()


def test_each_message_is_in_its_file(tmp_path: Path) -> None:
    written = write_captures(tmp_path, COUNT, 3)
    generated = list(messages(COUNT, 3))
    assert written.messages == COUNT
    assert sum(written.faults.values()) == sum(line.fault is not None for line in generated)
    for name in FILES:
        lines = [line.line for line in generated if line.message_type.file == name]
        assert written.files.get(name, 0) == len(lines)
        if not name.endswith(".parquet"):
            assert lines_of(tmp_path / name) == lines


def test_parquet_file_has_the_same_records(tmp_path: Path) -> None:
    write_captures(tmp_path, COUNT, 3)
    (name,) = (name for name in FILES if name.endswith(".parquet"))
    batches = pq.ParquetFile(tmp_path / name).iter_batches()
    read = [parsed.wire for batch in batches for parsed in read_parquet_batch(batch)]
    lines = [message.line for message in messages(COUNT, 3) if message.message_type.file == name]
    assert [as_written(wire) for wire in read] == [as_written(parse_record(line).wire) for line in lines]


def as_written(wire: object) -> dict[str, object]:
    """A record without the zeros that end the fractions of its times."""
    record = orjson.loads(msgspec.json.encode(wire))
    return {name: value.rstrip("0Z.") if name in ("received", "timestamp") else value for name, value in record.items()}


def test_bytes_do_not_depend_on_number_of_processes(tmp_path: Path) -> None:
    one = write_captures(tmp_path / "one", COUNT, 3, processes=1, pages=2)
    two = write_captures(tmp_path / "two", COUNT, 3, processes=2, pages=2)
    assert one == two
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_folder_is_written_once(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path / "demo")
    assert folder.check(COUNT, 1) is None
    manifest = folder.make(COUNT, 1)
    assert folder.check(COUNT, 1) == manifest
    assert manifest.broken > 0
    assert {path.name for path in folder.catalogue.iterdir()} == {
        f"{n}.xreg.json" for n in ("orders", "fleet", "sites")
    }


def test_incomplete_folder_is_written_again(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path)
    folder.make(COUNT, 1)
    (tmp_path / "demo.json").unlink()
    (folder.captures / "kafka-orders.jsonl").write_bytes(b"{")
    assert folder.check(COUNT, 1) is None
    folder.make(COUNT, 1)
    assert (
        len(lines_of(folder.captures / "kafka-orders.jsonl"))
        == COUNT
        * sum(message_type.per_page for message_type in MESSAGE_TYPES if message_type.file == "kafka-orders.jsonl")
        // 200
    )


@pytest.mark.parametrize(("messages", "seed"), [(COUNT + 1, 1), (COUNT, 2)])
def test_other_parameters_need_another_folder(tmp_path: Path, messages: int, seed: int) -> None:
    folder = DemoFolder(tmp_path)
    folder.make(COUNT, 1)
    with pytest.raises(WirebookError) as error:
        folder.check(messages, seed)
    assert error.value.problems[0].code == "foreign-folder"


def test_foreign_folder_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("...")
    with pytest.raises(WirebookError) as error:
        DemoFolder(tmp_path).check(COUNT, 1)
    assert error.value.problems[0].code == "foreign-folder"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
