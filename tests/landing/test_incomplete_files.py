"""Files that cannot be read to their end: each run that leaves a part of one unread reports it, and exits with 2."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import wirebook.landing.sources.files as sources
from tests.landing.test_land import codes, counts, lines, parquet
from tests.landing.workspace import Workspace
from wirebook.cli.options import ProgressFormat
from wirebook.cli.run_output import BatchOutput, print_problems_as
from wirebook.landing.runs.ledger import LedgerEntry
from wirebook.landing.runs.plan import incomplete_file
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.settings import CommittedBatch
from wirebook.landing.sources.byte_streams import CODECS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
OVERRIDE = "-dac_override,-dac_read_search"
"""The capabilities by which root reads files without having the permission."""


def random_lines(count: int) -> bytes:
    """Lines that hardly compress, so that half of a compressed file holds about half of them."""
    rng = random.Random(1)
    return b"".join(b'{"protocol":"X","t":"a","n":"%x"}\n' % rng.getrandbits(4000) for _ in range(count))


def parquet_bytes(tmp_path: Path) -> bytes:
    parquet(tmp_path / "whole.parquet", 1000, 300)
    return (tmp_path / "whole.parquet").read_bytes()


def with_damaged_group(whole: bytes) -> bytes:
    """The same with damage in the second of its row groups."""
    start = pq.read_metadata(pa.BufferReader(whole)).row_group(1).column(0).dictionary_page_offset
    return whole[:start] + b"\xff" * 40 + whole[start + 40 :]


def half(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


VALUE = json.dumps({"specversion": "1.0", "t": "a"}, indent=2).encode()
Damage = tuple[Callable[[Path], bytes], Callable[[bytes], bytes], int, str]
DAMAGES: dict[str, Damage] = {
    "gzip": (lambda _: gzip.compress(random_lines(500)), half, 500, "the compressed data is truncated at byte"),
    "gzip-head": (lambda _: gzip.compress(lines(3)), lambda whole: whole[:10], 3, "the compressed data is truncated"),
    "zstd": (lambda _: zstandard.compress(random_lines(500)), half, 500, "the compressed data is truncated at byte"),
    "footer": (parquet_bytes, lambda whole: whole[:-100], 1000, "cannot read the Parquet footer"),
    "row-group": (parquet_bytes, with_damaged_group, 1000, "row 301 cannot be read"),
    "value": (lambda _: VALUE, lambda whole: whole[:-2], 1, "the file ends inside its only JSON value"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_incomplete_file_is_reported_by_every_run_until_it_is_complete(workspace: Workspace, name: str) -> None:
    make, damage, messages, reason = DAMAGES[name]
    whole = make(workspace.root)
    workspace.write("good", lines(3, 7000))
    path = workspace.write("x", damage(whole))
    planned = workspace.land(dry_run=True)
    assert (codes(planned), planned.has_errors) == (["truncated-file"], True)

    report = workspace.land()
    assert (codes(report), report.has_errors) == (["truncated-file"], True)
    assert report.dead_lettered == 1
    landed = report.landed - 3
    [problem] = report.problems
    assert problem == planned.problems[0]
    assert (problem.file, problem.line) == ("x", landed + 1)
    assert reason in problem.message
    assert ("was not read: " in problem.message) == (landed == 0)
    assert (f"only up to {'row' if name == 'row-group' else 'line'} {landed}: " in problem.message) == (landed > 0)
    assert problem.hint == "complete or replace the file and run again to land the rest"
    [letter] = workspace.rows("dead_letters")
    assert letter["_line"] == problem.line

    runs = len(workspace.runner.tasks)
    for _ in range(2):
        again = workspace.land()
        assert (counts(again), again.problems) == ((0, 0, 0, report.landed), [problem])
    assert workspace.land(dry_run=True).problems == [problem]
    assert len(workspace.runner.tasks) == runs  # nothing is read again

    path.write_bytes(whole)
    rest = messages - landed
    mended = workspace.land()
    assert (counts(mended), mended.problems) == ((rest, rest, 0, report.landed), [])
    assert (counts(workspace.land()), workspace.land().problems) == ((0, 0, 0, messages + 3), [])
    assert Counter(workspace.places("a")).most_common(1)[0][1] == 1


@pytest.mark.parametrize("zeros", [1, 100, 20_000])
def test_zeros_between_gzip_members_are_skipped(workspace: Workspace, zeros: int) -> None:
    workspace.write("x", gzip.compress(lines(3)) + bytes(zeros) + gzip.compress(lines(2, 10)) + bytes(zeros))
    report = workspace.land()
    assert (counts(report), report.problems) == ((5, 5, 0, 0), [])


@pytest.mark.parametrize("before", range(-5, 2))
def test_skippable_zstd_frame_at_the_end_of_a_piece(workspace: Workspace, before: int) -> None:
    """zstd files are read in pieces; the magic number of a frame may be divided between two of them."""
    first = skippable_frame(CODECS["zstd"].piece + before)
    workspace.write("x", first + skippable_frame(20) + zstandard.compress(lines(3)))
    report = workspace.land()
    assert (counts(report), report.problems) == ((3, 3, 0, 0), [])


def skippable_frame(size: int) -> bytes:
    """A frame of zstd without content. Units: `size` is in bytes, with the header."""
    return b"\x50\x2a\x4d\x18" + (size - 8).to_bytes(4, "little") + bytes(size - 8)


def test_unreadable_file_is_reported_by_every_run_until_it_is_readable(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.write("a", lines(3))
    workspace.write("b", lines(2, 10))
    identity_of = sources.identity_of

    def refuse(path: bytes) -> tuple[int, ...]:
        if path.endswith(b"a"):
            raise PermissionError(13, "Permission denied", path)
        return identity_of(path)

    expected = "'a' was not read: Permission denied"
    with monkeypatch.context() as patch:
        patch.setattr(sources, "identity_of", refuse)
        for expected_counts in ((3, 2, 1, 0), (0, 0, 0, 2)):
            report = workspace.land()
            assert (counts(report), codes(report)) == (expected_counts, ["unreadable-file"])
            assert (report.problems[0].message, report.problems[0].line) == (expected, 1)
            assert report.problems[0].hint == "make the file readable and run again to land the rest"
    report = workspace.land()
    assert (counts(report), report.problems) == ((3, 3, 0, 2), [])
    with monkeypatch.context() as patch:
        patch.setattr(sources, "identity_of", refuse)
        report = workspace.land()
        assert report.problems[0].message == "'a' was read only up to line 3: Permission denied"
        assert codes(workspace.land()) == ["unreadable-file"]
    assert workspace.land().problems == []  # nothing of it is missing, though a dead letter says that it was


def test_disk_error_within_a_file_is_reported_until_it_is_gone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "BLOCK", 64)
    workspace.write("a", lines(20))
    read_at = sources.read_at

    def refuse(path: bytes, start: int, size: int) -> bytes:
        if start >= 256:
            raise OSError(5, "Input/output error")
        return read_at(path, start, size)

    with monkeypatch.context() as patch:
        patch.setattr(sources, "read_at", refuse)
        first, second = workspace.land(), workspace.land()
    assert first.problems == second.problems
    assert first.problems[0].message == f"'a' was read only up to line {first.landed}: Input/output error"
    assert (0 < first.landed < 20, first.dead_lettered, second.read) == (True, 1, 0)
    mended = workspace.land()
    assert (mended.landed, mended.problems) == (20 - first.landed, [])
    assert workspace.places("a") == [("a", line) for line in range(1, 21)]


def test_rows_before_the_first_of_several_damages_land(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several tasks read the file. What follows the first damage lands once the file is repaired."""
    monkeypatch.setattr("wirebook.landing.runs.plan.MIN_TASK", 1)
    monkeypatch.setattr(workspace.runner, "parallelism", 4)
    parquet(workspace.root / "whole", 1600, 400)
    whole = (workspace.root / "whole").read_bytes()
    damaged = bytearray(whole)
    groups = pq.read_metadata(pa.BufferReader(whole))
    for number in (1, 2):
        start = groups.row_group(number).column(0).dictionary_page_offset
        damaged[start : start + 40] = b"\xff" * 40
    path = workspace.write("x", bytes(damaged))
    report = workspace.land()
    assert len(workspace.runner.tasks[0]) == 4
    assert (counts(report), codes(report)) == ((401, 400, 1, 0), ["truncated-file"])
    path.write_bytes(whole)
    assert counts(workspace.land())[:3] == (1200, 1200, 0)
    assert workspace.places("a") == [("x", number) for number in range(1, 1601)]


def test_copies_of_incomplete_files_are_reported(workspace: Workspace) -> None:
    cut = half(gzip.compress(random_lines(200)))
    workspace.write("a", cut)
    workspace.write("b", cut)
    for _ in range(2):
        report = workspace.land()
        assert [problem.file for problem in report.problems] == ["a", "b"]
    workspace.write("c", cut)
    assert [problem.file for problem in workspace.land().problems] == ["a", "b", "c"]
    assert len(workspace.rows("dead_letters")) == 1


def test_stopped_run_reports_the_files_that_it_has_reached(workspace: Workspace) -> None:
    for number in range(4):
        workspace.write(f"{number}", lines(3, 10 * number))
    workspace.write("0.gz", half(gzip.compress(random_lines(200))))
    batches: list[CommittedBatch] = []
    stopped = workspace.land(batch_bytes=1, on_batch=batches.append, is_stopping=lambda: len(batches) == 2)
    assert [problem.file for problem in stopped.problems] == ["0.gz"]
    assert (stopped.files, stopped.batches, len(batches)) == (2, 2, 2)
    rest = workspace.land()
    assert (rest.files, rest.landed, rest.skipped_files) == (3, 9, 2)
    assert rest.problems == stopped.problems


def test_incomplete_file_that_changes_is_one_error(workspace: Workspace) -> None:
    path = workspace.write("a", half(gzip.compress(random_lines(200))))
    workspace.land()
    path.write_bytes(gzip.compress(lines(200)))
    assert codes(workspace.land()) == ["source-changed"]


def test_incomplete_file_that_changes_during_the_run_is_one_error(workspace: Workspace) -> None:
    whole = gzip.compress(random_lines(200))
    path = workspace.write("a", half(whole))
    workspace.land()
    path.write_bytes(whole)
    workspace.runner.before = lambda: workspace.write("a", whole[::-1])
    assert codes(workspace.land()) == ["source-changed"]


def test_incomplete_file_that_is_deleted_is_not_reported(workspace: Workspace) -> None:
    workspace.write("a", half(gzip.compress(random_lines(200)))).unlink()
    workspace.land()
    assert workspace.land().problems == []


@pytest.mark.parametrize("point", ["begun", "staged", "committed"])
def test_incomplete_file_of_a_killed_run_is_reported_by_the_next(workspace: Workspace, point: str) -> None:
    workspace.write("a", half(gzip.compress(random_lines(200))))
    workspace.write("b", lines(3))
    workspace.die(point)
    report = workspace.land()
    assert (codes(report), report.dead_lettered) == (["truncated-file"], 0 if point == "committed" else 1)
    assert len(workspace.rows("dead_letters")) == 1


def test_content_that_was_read_is_no_error(workspace: Workspace) -> None:
    """A dead letter of a message is not a file that was not read; nor is a line that is still being written."""
    workspace.write("lines", lines(2) + b"not json\n" + b'{"protocol":"X","t"')
    workspace.write("rubbish", b"\x89PNG\r\n\x1a\n\0\0\0\n" * 10)
    report = workspace.land()
    assert (codes(report), report.has_errors) == (["unfinished-line"] * len(report.problems), False)
    assert report.dead_lettered > 1


def test_entry_of_an_earlier_version_is_reported_without_its_reason() -> None:
    entry = LedgerEntry(file="a", size=10, digest="", lines=2, complete=False, problem="truncated-file")
    message = "'a' was read only up to line 2: the file ends in the middle of its content"
    assert incomplete_file(entry).message == message


def many(count: int, line: int = 1) -> list[Any]:
    entries = (
        LedgerEntry(file=f"{number:06}", size=1, digest="", lines=line, complete=False, problem="truncated-file")
        for number in range(count)
    )
    return [incomplete_file(entry) for entry in entries]


def test_ten_problems_of_a_code_are_printed_and_the_others_counted(capsys: pytest.CaptureFixture[str]) -> None:
    print_problems_as(ProgressFormat.TEXT, many(10_000))
    *printed, last = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in printed] == [f"{number:06}" for number in range(10)]
    assert (
        last == "error: 9,990 more problems with this code are not listed [truncated-file]; --progress json lists all"
    )
    print_problems_as(ProgressFormat.TEXT, many(10))
    assert len(capsys.readouterr().err.splitlines()) == 10
    print_problems_as(ProgressFormat.JSON, many(10_000))
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert len(events) == 10_000
    assert events[-1]["message"].startswith("009999:2: error: '009999' was read only up to line 1")


def test_follower_prints_a_problem_once_while_it_lasts(capsys: pytest.CaptureFixture[str]) -> None:
    output = BatchOutput(ProgressFormat.NONE, as_json=False)

    def printed(*problems: Any) -> list[str]:
        output.show_pass(Report(problems=list(problems)))
        return [line.split(":")[0] for line in capsys.readouterr().err.splitlines()]

    [a, b] = many(2)
    assert printed(a) == ["000000"]
    assert printed(a, b) == ["000001"]
    assert printed(*many(2, line=5)) == []  # both have grown and are still incomplete
    assert printed(b) == []
    assert printed(a, b) == ["000000"]


class Command:
    """`wirebook land` of a folder of examples, in a process that cannot read what it has no permission for."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target = folder / "source", folder / "tables"
        shutil.copytree(EXAMPLES / "captures", self.source)

    def run(self, *more: str, code: int) -> tuple[dict[str, Any], list[str]]:
        """The closing line, and the problems on standard error."""
        prefix = []
        if os.geteuid() == 0:
            if shutil.which("setpriv") is None:
                pytest.skip("needs setpriv to run without the privileges of root")
            prefix = ["setpriv", f"--inh-caps={OVERRIDE}", f"--bounding-set={OVERRIDE}"]
        program = [*prefix, sys.executable, "-c", "from wirebook.cli import main; main()"]
        catalogue = str(EXAMPLES / "bikes.xreg.json")
        arguments = ["land", str(self.source), "--catalog", catalogue, "--to", str(self.target), "--local", "--json"]
        done = subprocess.run([*program, *arguments, "--no-report", *more], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout), [line for line in done.stderr.splitlines() if ": error: " in line]


def test_exit_code_is_2_until_every_file_is_read(tmp_path: Path) -> None:
    command = Command(tmp_path)
    capture = (EXAMPLES / "captures" / "kafka.jsonl").read_bytes()
    numbered = b"".join(capture.replace(b"r1", b"r%d" % number) for number in range(2000))
    rows = pa.BufferOutputStream()
    pq.write_table(pa.table({"protocol": ["KAFKA"] * 9, "topic": ["t"] * 9, "value": [b"{}"] * 9}), rows)
    whole = {"cut.gz": gzip.compress(numbered), "cut.parquet": bytes(rows.getvalue())}
    whole["closed.jsonl"] = capture + b"\n"
    for name, data in whole.items():
        (command.source / name).write_bytes(data if name == "closed.jsonl" else data[:-50])
    (command.source / "closed.jsonl").chmod(0)

    places = ["closed.jsonl:1: ", "cut.gz:", "cut.parquet:1: "]
    expected_codes = ["[unreadable-file]", "[truncated-file]", "[truncated-file]"]
    planned, problems = command.run("--dry-run", code=2)
    first, first_problems = command.run(code=2)
    assert problems == first_problems
    assert planned == first
    assert [line.startswith(place) for line, place in zip(problems, places, strict=True)] == [True] * 3
    assert [code in line for line, code in zip(problems, expected_codes, strict=True)] == [True] * 3
    assert first["outcomes"]["malformed"] == 3
    assert first["landed"] > 3  # the good files, and what could be read

    second, again = command.run(code=2)
    assert (second["read"], again) == (0, first_problems)

    (command.source / "closed.jsonl").chmod(0o644)
    for name, data in whole.items():
        (command.source / name).write_bytes(data)
    mended, problems = command.run(code=0)
    assert (problems, mended["outcomes"].get("malformed")) == ([], None)
    last, problems = command.run(code=0)
    assert (last["read"], problems) == (0, [])
    assert first["read"] + mended["read"] - 3 == last["skipped"]
    tables = [path for path in command.target.glob("*/*.parquet") if path.parent.name != "dead_letters"]
    columns = ["_file", "_line", "_index"]
    landed = [tuple(row.values()) for path in tables for row in pq.read_table(path, columns=columns).to_pylist()]
    assert len(landed) == len(set(landed)) == first["landed"] + mended["landed"]

    (command.source / "closed.jsonl").write_bytes(b"{}\n" + capture)
    (command.source / "cut.gz").write_bytes(b"")
    _, problems = command.run(code=2)
    assert [line.rpartition("[")[2].partition("]")[0] for line in problems] == ["source-changed"] * 2
