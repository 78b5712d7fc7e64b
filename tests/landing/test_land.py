"""Landing files of all types repeatedly: new messages land once, known ones are skipped, problems are reported."""

from __future__ import annotations

import errno
import gc
import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from tests.landing.workspace import LocalRunner
from wirebook.cli.run_output import print_report
from wirebook.landing.report.show import find_table, first_rows, tables_in
from wirebook.landing.runs.report import Report
from wirebook.landing.sources.lines import Sizes
from wirebook.landing.stores.locations import DurableFile
from wirebook.problems import WirebookError

HEAD = b'{"protocol":"X","t":"a"}\n'


def lines(count: int, first: int = 1, table: str = "a", pad: int = 0) -> bytes:
    return b"".join(
        b'{"protocol":"X","t":"%s","n":%d,"p":"%s"}\n' % (table.encode(), first + i, b"x" * pad) for i in range(count)
    )


def counts(report: Report) -> tuple[int, int, int, int]:
    return report.read, report.landed, report.dead_lettered, report.skipped


def codes(report: Report) -> list[str]:
    return [problem.code for problem in report.problems]


def test_messages_land_in_their_tables(workspace: Any) -> None:
    workspace.write("one.jsonl", lines(3) + b"\n  \nnot json\r\n" + lines(2, 4, "b"))
    workspace.write("more/two", lines(1))
    workspace.write("_hidden", lines(1))
    workspace.write(".git/config", lines(1))
    report = workspace.land()
    assert counts(report) == (7, 6, 1, 0)
    assert workspace.places("a") == [("more/two", 1), ("one.jsonl", 1), ("one.jsonl", 2), ("one.jsonl", 3)]
    assert workspace.places("b") == [("one.jsonl", 7), ("one.jsonl", 8)]
    assert [(row["_line"], row["raw"]) for row in workspace.rows("dead_letters")] == [(6, b"not json")]
    assert report.closing_line() == {
        "read": 7,
        "landed": 6,
        "dead_lettered": 1,
        "skipped": 0,
        "empty": 0,
        "tables": {
            "a": {"definition": "/messagegroups/g/messages/a", "rows": 4},
            "b": {"definition": "/messagegroups/g/messages/b", "rows": 2},
        },
        "outcomes": {"malformed": 1, "matched": 6},
    }


def test_second_run_lands_nothing(workspace: Any) -> None:
    workspace.write("a", lines(3) + b'{"protocol":"X","t":"b","x":0}\n{"protocol":"X","t":"b","x":3}\n')
    assert workspace.land().empty == 1
    report = workspace.land()
    assert counts(report) == (0, 0, 0, 6)
    assert len(workspace.runner.tasks) == 1
    workspace.check_conserved(6)


def test_only_new_messages_land(workspace: Any) -> None:
    path = workspace.write("a", lines(3))
    workspace.land()
    path.write_bytes(path.read_bytes() + lines(2, 4))
    workspace.write("b", lines(1, 100))
    assert counts(workspace.land()) == (3, 3, 0, 3)
    assert workspace.places() == [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("a", 5), ("b", 1)]
    assert counts(workspace.land()) == (0, 0, 0, 6)


def test_changed_file_is_reported_and_other_files_land(workspace: Any) -> None:
    path = workspace.write("a", lines(3))
    workspace.land()
    path.write_bytes(lines(5, 50))
    workspace.write("b", lines(2))
    report = workspace.land()
    assert codes(report) == ["source-changed"]
    assert report.problems[0].file == "a"
    assert report.has_errors
    assert counts(report) == (2, 2, 0, 0)
    workspace.check_conserved(5)


def test_truncated_file_is_reported_as_changed(workspace: Any) -> None:
    path = workspace.write("a", lines(3))
    workspace.land()
    path.write_bytes(lines(2))
    assert codes(workspace.land()) == ["source-changed"]


def test_copy_is_skipped_until_it_grows(workspace: Any) -> None:
    workspace.write("a", lines(3))
    workspace.write("b", lines(3))
    report = workspace.land()
    assert (*counts(report), report.skipped_files) == (3, 3, 0, 3, 1)
    copy = workspace.write("0", lines(3))
    assert counts(workspace.land()) == (0, 0, 0, 9)
    copy.write_bytes(lines(3) + lines(1, 9))
    assert counts(workspace.land()) == (1, 1, 0, 9)
    assert ("0", 4) in workspace.places()


def test_unfinished_last_line_lands_once_finished(workspace: Any) -> None:
    whole = lines(3)
    path = workspace.write("a", whole[:-20])
    report = workspace.land()
    assert (codes(report), report.problems[0].line, report.has_errors) == (["unfinished-line"], 3, False)
    assert counts(report) == (2, 2, 0, 0)
    path.write_bytes(whole[:-10])
    assert counts(workspace.land()) == (0, 0, 0, 2)
    path.write_bytes(whole[:-1])
    assert counts(workspace.land()) == (1, 1, 0, 2)
    path.write_bytes(whole)
    assert counts(workspace.land()) == (0, 0, 0, 3)
    path.write_bytes(whole + b"\n" + lines(1, 9))
    assert counts(workspace.land()) == (1, 1, 0, 3)
    assert workspace.places() == [("a", 1), ("a", 2), ("a", 3), ("a", 5)]


def test_continued_last_line_is_reported_as_changed(workspace: Any) -> None:
    path = workspace.write("a", lines(3)[:-1])
    workspace.land()
    path.write_bytes(lines(3)[:-1] + b"{}\n")
    assert codes(workspace.land()) == ["source-changed"]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_truncated_compressed_file_lands_rest_once_complete(workspace: Any, pack: Any) -> None:
    import random

    rng = random.Random(1)
    text = b"".join(b'{"protocol":"X","t":"a","n":"%x"}\n' % rng.getrandbits(4000) for _ in range(2000))
    whole = pack(text)
    path = workspace.write("a", whole[: len(whole) // 2])
    report = workspace.land()
    (notice,) = workspace.rows("dead_letters")
    assert (notice["outcome"], notice["reason"]) == ("malformed", "truncated-file")
    assert notice["_line"] == report.landed + 1
    assert 0 < report.landed < 2000
    assert text.split(b"\n")[report.landed].startswith(notice["raw"])
    assert counts(workspace.land()) == (0, 0, 0, report.landed)
    path.write_bytes(whole)
    assert counts(workspace.land()) == (2000 - report.landed, 2000 - report.landed, 0, report.landed)
    assert workspace.places("a") == [("a", n) for n in range(1, 2001)]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_truncated_file_may_be_recompressed_but_not_changed(workspace: Any, pack: Any) -> None:
    import random

    rng = random.Random(1)
    text = b"".join(b'{"protocol":"X","t":"a","n":"%x"}\n' % rng.getrandbits(4000) for _ in range(2000))
    whole = pack(text)
    path = workspace.write("a", whole[: len(whole) // 2])
    landed = workspace.land().landed
    path.write_bytes(pack(b"x" + text))
    assert codes(workspace.land()) == ["source-changed"]
    path.write_bytes(pack(text, 1))
    assert counts(workspace.land()) == (2000 - landed, 2000 - landed, 0, landed)


def test_file_that_is_damaged_from_its_first_byte_is_a_dead_letter_until_it_is_repaired(workspace: Any) -> None:
    whole = gzip.compress(lines(3))
    path = workspace.write("cut.gz", whole[:10])
    workspace.write("empty.gz", gzip.compress(b" \n"))
    assert counts(workspace.land()) == (1, 0, 1, 0)
    assert [(row["_file"], row["reason"]) for row in workspace.rows()] == [("cut.gz", "truncated-file")]
    assert counts(workspace.land()) == (0, 0, 0, 0)
    path.write_bytes(whole)
    assert counts(workspace.land()) == (3, 3, 0, 0)
    assert counts(workspace.land()) == (0, 0, 0, 3)


def test_damaged_compressed_file_lands_up_to_the_damage(workspace: Any) -> None:
    workspace.write("a.gz", gzip.compress(lines(3)) + b"rubbish")
    workspace.write("b.gz", gzip.compress(lines(3, 7)) + gzip.compress(lines(2, 20)) + b"\0" * 100)
    report = workspace.land()
    assert counts(report) == (9, 8, 1, 0)
    assert [(row["_file"], row["_line"]) for row in workspace.rows("dead_letters")] == [("a.gz", 4)]


def test_compressed_file_grows_by_members(workspace: Any) -> None:
    path = workspace.write("a.gz", gzip.compress(lines(3)) + gzip.compress(lines(1, 4)[:-1]))
    assert counts(workspace.land()) == (4, 4, 0, 0)
    path.write_bytes(path.read_bytes() + gzip.compress(b"\n" + lines(2, 5)))
    assert counts(workspace.land()) == (2, 2, 0, 4)
    assert workspace.places() == [("a.gz", n) for n in range(1, 7)]
    path.write_bytes(path.read_bytes() + gzip.compress(lines(1, 7)[:-1]))
    workspace.land()
    path.write_bytes(path.read_bytes() + gzip.compress(b"x\n"))
    assert codes(workspace.land()) == ["source-changed"]


def parquet(path: Path, rows: int, group: int) -> None:
    table = pa.table({"protocol": ["X"] * rows, "t": ["a"] * rows, "n": range(rows), "body": [b"\xff"] * rows})
    pq.write_table(table, path, row_group_size=group)


def test_parquet_is_split_at_row_groups(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirebook.landing.runs.plan.MIN_TASK", 1)
    parquet(workspace.source / "p", 1000, 300)
    assert counts(workspace.land()) == (1000, 1000, 0, 0)
    assert [[(split.start, split.end) for split in task] for task in workspace.runner.tasks[0]] == [
        [(0, 1)],
        [(1, 3)],
        [(3, 4)],
    ]
    assert workspace.places() == [("p", n) for n in range(1, 1001)]


def test_parquet_without_footer_lands_once_complete(workspace: Any) -> None:
    parquet(workspace.source / "p", 1000, 300)
    whole = (workspace.source / "p").read_bytes()
    workspace.write("p", whole[:-100])
    assert counts(workspace.land()) == (1, 0, 1, 0)
    assert [(row["_line"], row["reason"]) for row in workspace.rows()] == [(1, "truncated-file")]
    assert counts(workspace.land()) == (0, 0, 0, 0)
    workspace.write("p", whole)
    assert counts(workspace.land()) == (1000, 1000, 0, 0)


@pytest.mark.parametrize("batch_bytes", [1, 1 << 30])
def test_damaged_row_group_is_one_dead_letter(
    workspace: Any, monkeypatch: pytest.MonkeyPatch, batch_bytes: int
) -> None:
    monkeypatch.setattr("wirebook.landing.runs.plan.MIN_TASK", 1)
    workspace.settings.batch_bytes = batch_bytes
    parquet(workspace.source / "p", 1000, 300)
    whole = (workspace.source / "p").read_bytes()
    group = pq.read_metadata(workspace.source / "p").row_group(1).column(0)
    start = group.dictionary_page_offset
    workspace.write("p", whole[:start] + b"\xff" * 40 + whole[start + 40 :])
    assert counts(workspace.land()) == (301, 300, 1, 0)
    assert len(workspace.runner.tasks) == 2  # one of them for the row groups without those behind the damage
    assert counts(workspace.land()) == (0, 0, 0, 300)
    workspace.write("p", whole)
    assert counts(workspace.land()) == (700, 700, 0, 300)
    assert workspace.places("a") == [("p", n) for n in range(1, 1001)]


def test_large_file_is_split_at_line_starts(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wirebook.landing.sources.files.BLOCK", 1 << 12)
    monkeypatch.setattr("wirebook.landing.runs.plan.MIN_TASK", 1)
    workspace.write("a", b"\xef\xbb\xbf\r\n\n" + lines(1000, pad=9) + lines(1, 1001)[:-1])
    report = workspace.land(batch_bytes=1 << 14, sizes=Sizes(chunk=1 << 10))
    assert counts(report) == (1001, 1001, 0, 0)
    assert report.batches > 2
    assert max(len(tasks) for tasks in workspace.runner.tasks) == 3
    assert workspace.places() == [("a", n) for n in range(3, 1004)]
    assert counts(workspace.land()) == (0, 0, 0, 1001)


def test_events_land_in_every_framing(workspace: Any) -> None:
    event = {"specversion": "1.0", "t": "a"}
    workspace.write("one", b"\n\n " + json.dumps(event, indent=2).encode())
    workspace.write("array", json.dumps([event], indent=2).encode())
    workspace.write("lines", (json.dumps(event) + "\n").encode() * 3)
    workspace.write("broken", b'{"specversion":"1.0","t":\n' + (json.dumps(event) + "\n").encode())
    workspace.write("cut", json.dumps(event | {"n": 1}, indent=2).encode()[:-2])
    workspace.land()
    assert workspace.places("a") == [("broken", 2), ("lines", 1), ("lines", 2), ("lines", 3), ("one", 3)]
    dead = [(row["_file"], row["_line"], row["reason"]) for row in workspace.rows("dead_letters")]
    assert dead == [("array", 1, "malformed-record"), ("broken", 1, "malformed-record"), ("cut", 1, "truncated-file")]
    workspace.write("cut", json.dumps(event | {"n": 1}, indent=2).encode())
    assert counts(workspace.land())[:3] == (1, 1, 0)


def test_line_over_the_limit_is_one_dead_letter(workspace: Any) -> None:
    workspace.write("a", lines(2) + b"x" * 100_000 + b"\n" + lines(2, 3))
    report = workspace.land(sizes=Sizes(chunk=1 << 10, line=1 << 14, head=10))
    assert counts(report) == (5, 4, 1, 0)
    assert [(row["_line"], row["raw"], row["outcome"]) for row in workspace.rows("dead_letters")] == [
        (3, b"x" * 10, "oversized")
    ]


def test_line_over_the_limit_is_one_dead_letter_after_a_compressed_file_has_grown(workspace: Any) -> None:
    sizes = Sizes(chunk=1 << 10, line=1 << 14, head=10)
    path = workspace.write("a.gz", gzip.compress(lines(1) + b"x" * 100_000 + b"\n" + lines(1, 3)))
    assert counts(workspace.land(sizes=sizes)) == (3, 2, 1, 0)
    path.write_bytes(path.read_bytes() + gzip.compress(lines(2, 10)))
    assert counts(workspace.land(sizes=sizes)) == (2, 2, 0, 3)


def test_unreadable_file_is_reported_once_and_lands_once_readable(
    workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wirebook.landing.sources.files as sources

    workspace.write("a", lines(3))
    with monkeypatch.context() as patch:
        patch.setattr(sources, "identity_of", _refuse)
        assert counts(workspace.land()) == (1, 0, 1, 0)
        assert counts(workspace.land()) == (0, 0, 0, 0)
    assert [(row["_line"], row["reason"]) for row in workspace.rows()] == [(1, "unreadable-file")]
    assert counts(workspace.land()) == (3, 3, 0, 0)


def _refuse(path: bytes) -> tuple[int, ...]:
    raise PermissionError(13, "Permission denied", path)


def test_file_changed_during_the_run_is_skipped(workspace: Any) -> None:
    workspace.write("a", lines(3))
    workspace.write("b", lines(3, 10))
    workspace.runner.before = lambda: workspace.write("a", lines(4, 90))
    report = workspace.land()
    assert codes(report) == ["source-changed"]
    assert counts(report) == (3, 3, 0, 0)
    assert workspace.places() == [("b", 1), ("b", 2), ("b", 3)]


def test_files_that_only_reading_shows_to_have_changed_are_dropped_in_one_pass(workspace: Any) -> None:
    paths = [workspace.write(f"{number}", lines(3, number * 10)) for number in range(9)]

    def change() -> None:
        """Remove a line end of eight files, but not their size and time of modification."""
        for path in paths[:8]:
            status = path.stat()
            path.write_bytes(path.read_bytes().replace(b"\n", b" ", 1))
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    workspace.runner.before = change
    report = workspace.land()
    assert codes(report) == ["source-changed"] * 8
    assert len(workspace.runner.tasks) == 2
    assert workspace.places() == [("8", 1), ("8", 2), ("8", 3)]


class WithoutSource(LocalRunner):
    """Workers that do not see the source."""

    def __call__(self, job: Any, tasks: Any) -> Any:
        moved = [[msgspec.structs.replace(split, path=b"/nowhere" + split.path) for split in task] for task in tasks]
        results = super().__call__(job, moved)
        for result in results:
            for split in result.splits:
                split.split = msgspec.structs.replace(split.split, path=split.split.path.removeprefix(b"/nowhere"))
        return results


class WithoutTarget(LocalRunner):
    """Workers that see none of the `unseen` places of the target."""

    def __init__(self, *unseen: str) -> None:
        super().__init__()
        self.unseen = unseen

    def __call__(self, job: Any, tasks: Any) -> Any:
        moved = {name: type(place)(f"/nowhere{place}") for name in self.unseen if (place := getattr(job, name))}
        return super().__call__(replace(job, **moved), tasks)


def test_source_that_workers_do_not_see_is_one_error(workspace: Any, tmp_path: Path) -> None:
    for number in range(4):
        workspace.write(f"{number}", lines(3, number * 10))
    rows = pa.table({"protocol": ["X"] * 3, "topic": ["t"] * 3})
    pq.write_table(rows, workspace.source / "4.parquet")
    with pytest.raises(
        WirebookError, match=r"not-shared: workers do not see 5 of the source files .* such as '0'"
    ) as e:
        workspace.land(runner=WithoutSource())
    assert len(e.value.problems) == 1
    assert "object store" in str(e.value.problems[0].hint)
    assert not workspace.rows()
    elsewhere = tmp_path / "elsewhere"
    (workspace.source).rename(elsewhere)
    assert workspace.land(source=elsewhere).read == 15


@pytest.mark.parametrize("unseen", [["staging"], ["progress_folder"], ["tables"], ["staging", "tables"]])
@pytest.mark.parametrize("dry_run", [False, True])
def test_target_that_workers_do_not_see_is_one_error(workspace: Any, unseen: list[str], dry_run: bool) -> None:
    workspace.write("a", lines(3))
    workspace.land()
    workspace.write("b", lines(3, 10))
    runner = WithoutTarget(*unseen)
    if dry_run and "tables" not in unseen:  # nothing is written to the target
        assert workspace.land(runner=runner, dry_run=True).read == 3
        return
    with pytest.raises(WirebookError, match=r"not-shared: a worker cannot access '.*', which the driver") as error:
        workspace.land(runner=runner, dry_run=dry_run)
    assert len(error.value.problems) == 1
    assert "object store" in str(error.value.problems[0].hint)
    assert not Path("/nowhere").exists()
    assert not [*workspace.to.glob("_wirebook/batches/*.begin.json"), *workspace.to.glob("_wirebook/staging/*")]
    assert counts(workspace.land()) == (3, 3, 0, 3)


def test_file_grown_during_the_run_lands_as_planned(workspace: Any) -> None:
    path = workspace.write("a", lines(3))
    workspace.runner.before = lambda: path.write_bytes(lines(5))
    assert counts(workspace.land()) == (3, 3, 0, 0)
    assert counts(workspace.land()) == (2, 2, 0, 3)


def test_dry_run_counts_and_writes_nothing(workspace: Any) -> None:
    workspace.write("a", lines(3) + b"bad\n")
    report = workspace.land(dry_run=True)
    assert (*counts(report), report.tables()["a"]["rows"]) == (4, 3, 1, 0, 3)
    assert not workspace.to.exists()
    workspace.land()
    before = sorted(workspace.to.rglob("*"))
    assert counts(workspace.land(dry_run=True)) == (0, 0, 0, 4)
    assert sorted(workspace.to.rglob("*")) == before


def test_target_inside_its_source_is_not_read(workspace: Any) -> None:
    workspace.write("a", lines(3))
    workspace.to = workspace.source / "tables"
    workspace.land()
    assert counts(workspace.land()) == (0, 0, 0, 3)


def test_target_equal_to_source_is_rejected(workspace: Any) -> None:
    with pytest.raises(WirebookError, match="target-is-source"):
        workspace.land(workspace.to)


def test_second_concurrent_run_is_rejected(workspace: Any) -> None:
    workspace.write("a", lines(3))
    refused: list[str] = []

    def second(point: str) -> None:
        if point == "begun":
            with pytest.raises(WirebookError) as raised:
                workspace.land()
            refused.extend(problem.code for problem in raised.value.problems)

    workspace.land(at=second)
    assert refused == ["target-locked"]
    workspace.check_conserved(3)


def test_file_system_without_locks_is_rejected(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As NFS answers without a lock service; no file system of a test machine does."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    workspace.write("a", lines(3))
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(WirebookError, match=r"unwritable-target: .*/_wirebook/lock': No locks available"):
        workspace.land()


def test_engine_fault_names_the_place(workspace: Any) -> None:
    workspace.write("a", lines(3) + b'{"t":1}\n')
    with pytest.raises(WirebookError, match=r"internal-error: TypeError: .*'a' from line 1"):
        workspace.land()
    assert not workspace.rows()
    workspace.write("a", lines(3))
    assert counts(workspace.land()) == (3, 3, 0, 0)


def test_missing_source_is_reported(workspace: Any) -> None:
    with pytest.raises(WirebookError) as raised:
        workspace.land(workspace.source / "nothing")
    assert [problem.code for problem in raised.value.problems] == ["unreadable-file"]


def test_single_file_source_is_named_by_its_file_name(workspace: Any) -> None:
    workspace.land(workspace.write("deep/_a.jsonl", lines(1)))
    assert workspace.places() == [("_a.jsonl", 1)]


def test_unwritable_target_is_reported(workspace: Any) -> None:
    workspace.write("a", lines(1))
    workspace.to.write_bytes(b"")
    with pytest.raises(WirebookError) as raised:
        workspace.land()
    assert [problem.code for problem in raised.value.problems] == ["unwritable-target"]


def test_show_counts_rows_and_reads_first_rows(workspace: Any) -> None:
    workspace.write("a", lines(5) + lines(2, 1, "b") + b"bad\n")
    workspace.land()
    workspace.write("c", lines(3))
    workspace.land()
    tables = tables_in(workspace.to)
    assert [(table.name, table.rows, len(table.files)) for table in tables] == [
        ("a", 8, 2),
        ("b", 2, 1),
        ("dead_letters", 1, 1),
    ]
    assert first_rows(tables[0], 6)["_line"].to_pylist() == [1, 2, 3, 4, 5, 1]
    assert first_rows(tables[1], 100).num_rows == 2
    assert first_rows(tables[1], 0).num_rows == 0
    assert find_table(tables, "b").definition == "/messagegroups/g/messages/b"


def test_tables_json_lists_the_tables(workspace: Any) -> None:
    workspace.write("a", lines(1) + lines(1, 1, "b") + b"bad\n")
    workspace.land()
    tables = json.loads((workspace.to / "_wirebook" / "tables.json").read_bytes())
    assert [(table["table"], table["xid"]) for table in tables] == [
        ("a", "/messagegroups/g/messages/a"),
        ("b", "/messagegroups/g/messages/b"),
        ("dead_letters", None),
    ]
    assert tables[0]["columns"] == {"_file": "string", "_line": "int64", "_index": "int32", "text": "large_binary"}
    assert sorted(path.name for path in workspace.to.iterdir()) == ["_wirebook", "a", "b", "dead_letters"]


def test_report_of_many_tables_lists_the_largest(workspace: Any, capsys: pytest.CaptureFixture[str]) -> None:
    workspace.write("1", b"".join(lines(1 + number % 2, table=f"t{number:03d}") for number in range(102)))
    report = workspace.land()
    print_report(report, workspace.to)
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in printed if line.startswith("t") and "/" in line] == ["2"] * 51 + ["1"] * 49
    assert f"not listed: 2 smaller tables; `wirebook show {workspace.to}` lists all" in printed


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_files_of_a_task_that_fails_are_closed(
    workspace: Any, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    closed: list[str] = []

    class FullDisk(DurableFile):
        def write(self, _: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def close(self) -> None:
            closed.append(str(self.name))
            super().close()

    monkeypatch.setattr("wirebook.landing.stores.locations.DurableFile", FullDisk)
    workspace.write_two_files()
    with pytest.raises(WirebookError, match="No space left on device"):
        workspace.land(table_format=table_format)
    gc.collect()  # warns of files that are open
    assert closed
