"""Decisions about files: file types by content, ledger decisions, splits and tasks."""

from __future__ import annotations

import gzip
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from wirebook.landing.runs.ledger import FileState, LedgerEntry, decide
from wirebook.landing.runs.plan import make_tasks
from wirebook.landing.sources import files as sources
from wirebook.landing.sources.file_formats import (
    FileFormat,
    detect_file_type,
    detect_format,
    detect_framing,
    first_value,
    is_whole,
)
from wirebook.landing.sources.files import list_files, scan_files
from wirebook.landing.sources.splits import FileSplit

VECTORS = Path(__file__).parents[1] / "vectors" / "land"


def vectors(name: str) -> list[Any]:
    cases = json.loads((VECTORS / f"{name}.json").read_bytes())
    return [pytest.param(case, id=case["description"]) for case in cases]


@pytest.mark.parametrize("case", vectors("decide"))
def test_decide_follows_vectors(case: dict[str, Any]) -> None:
    known = case["known"] and LedgerEntry(file="a", digest="", **case["known"])
    assert decide(known, FileState(**case["seen"])) == case["expected"]


@pytest.mark.parametrize("case", vectors("kinds"))
def test_file_type_and_framing_follow_vectors(case: dict[str, Any]) -> None:
    text = case["text"].encode()
    assert detect_file_type(text) == case["kind"]
    assert (detect_framing(text) if case["kind"] == "events" else case["form"]) == case["form"]


def test_format_is_detected_from_content(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    text = b'{"specversion":"1.0"}\n'
    packed = {"plain": text, "gzip": gzip.compress(text), "zstd": zstandard.compress(text)}
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    for codec, data in [*packed.items(), ("zstd", skippable + packed["zstd"])]:
        path.write_bytes(data)
        assert detect_format(os.fsencode(path)) == FileFormat(codec, "events", "lines")
    pq.write_table(pa.table({"a": [1]}), path)
    assert detect_format(os.fsencode(path)) == FileFormat("parquet", "parquet", "rows")


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":"' + b'\\"' * 500_000,
        b'{"a":"' + b'\\"' * 500_000 + b"\\",
        b'{"' * 300_000,
        b"[" * 1_000_000,
        b'"' * 1_000_000,
    ],
)
def test_hostile_content_is_detected_in_linear_time(text: bytes) -> None:
    first_value(text)
    detect_file_type(text)
    detect_framing(text + b"\n" + text)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (b"{}", True), (b" [1, 2] \r", True), (b"12", True), (b"{", False), (b'{"a":1', False), (b"{}{}", False),
        (b"", False), (b"[" * 100_000 + b"]" * 100_000, True), (b"[" * 100_000, False),
        (b"[1e999]", True), (b"\xff", False),
    ],
)  # fmt: skip
def test_last_line_is_whole_if_it_is_one_json_value(text: bytes, whole: bool) -> None:
    assert is_whole(text) is whole


def test_files_are_listed_in_name_order(tmp_path: Path) -> None:
    for name in ("b/c", "b.d", "a", "_no", ".no", "b/_no/x", "b/.no/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / os.fsdecode(b"\xff")).touch()
    (tmp_path / "b" / "round").symlink_to(tmp_path)
    (tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    assert [file.name for file in list_files(tmp_path).files] == ["\\xff", "a", "b.d", "b/c"]
    assert [file.name for file in list_files(tmp_path / "b" / "c").files] == ["c"]


def test_file_that_several_paths_lead_to_is_listed_once(tmp_path: Path) -> None:
    source = tmp_path / "in"
    for name in ("in/zz/x", "out/deep/y", "out/z", "in/_no/n"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for link, to in {
        "aa/latest": "../zz", "aa/last.jsonl": "../zz/x", "zz/again": "x", "ext1": "../out", "ext2": "../out/deep",
        "file2": "../out/z", "hidden": "_no/n", "hidden2": "_no/n", "zz/up": "..",
    }.items():  # fmt: skip
        (source / link).parent.mkdir(parents=True, exist_ok=True)
        (source / link).symlink_to(to)
    assert [file.name for file in list_files(source).files] == ["ext1/deep/y", "ext1/z", "hidden", "zz/x"]
    (tmp_path / "to-deep").symlink_to("out/deep")
    assert [file.name for file in list_files(tmp_path / "to-deep" / "..").files] == ["deep/y", "z"]


@given(data=st.binary(max_size=100).map(lambda data: data.replace(b"\x01", b"\n")), at=st.integers(0, 100))
def test_scan_returns_digest_and_lines_of_every_prefix(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, at: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "BLOCK", 7)
        path = tmp_path_factory.getbasetemp() / "scanned"
        path.write_bytes(data)
        (scan,) = scan_files(list_files(path).files)
        at = min(at, len(data))
        assert scan.newlines_before(at) == data[:at].count(b"\n")
        assert scan.end_of_lines == data.rfind(b"\n") + 1
        path.write_bytes(data[:at])
        (short,) = scan_files(list_files(path).files)
        path.write_bytes(data)
        assert scan.prefix_digest(at) == short.digest


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1 << 24)), min_size=1, max_size=40), st.integers(1, 8))
def test_tasks_contain_each_split_once_and_in_order(sizes: list[tuple[int, int]], parallelism: int) -> None:
    splits, ends = [], [0, 0, 0, 0]
    for file, weight in sorted(sizes):
        start, ends[file] = ends[file], ends[file] + weight
        splits.append(FileSplit(file=f"{file}", path=b"", start=start, end=ends[file], weight=weight))
    tasks = make_tasks(splits, parallelism)
    assert len(tasks) <= parallelism
    assert all(tasks)
    merged = [split for task in tasks for split in task]
    assert sum(split.weight for split in merged) == sum(split.weight for split in splits)
    for before, split in pairwise(merged):
        assert split.start == (before.end if split.file == before.file else 0)
    target = sum(split.weight for split in splits) / len(tasks)
    assert max(sum(split.weight for split in task) for task in tasks) <= target + max(
        split.weight for split in splits
    ) + (1 << 21)
