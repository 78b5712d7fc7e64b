"""Replaying dead letters: those that match a corrected catalogue land once, are marked as resolved, and keep their
place."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.landing.deleted_rows import delete_from_delta, delete_from_iceberg
from tests.landing.test_table_formats import iceberg_table
from wirebook.definitions.match.options import MatchOptions
from wirebook.landing.report.show import tables_in
from wirebook.landing.runs.dead_letters import LandedMessages
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Target
from wirebook.landing.sources.lines import Sizes
from wirebook.problems import WirebookError

BAD = {"unknown": ["a", "b"]}
RECORDS = b"".join(b'{"protocol":"X","t":"%s","x":%d}\n' % (b"abc"[i % 3 : i % 3 + 1], i % 4) for i in range(24))
TOTAL = 3 + 9 * 4  # x is 0, 1, 2 or 3 messages
POINTS = ["locked", "pinned", "begun", "staged", "committed", "moved", "tabled", "finished"]


def counts(report: Report) -> tuple[int, int, int, int]:
    return report.read, report.landed, report.dead_lettered, report.skipped


def places(workspace: Any, table: str) -> list[tuple[str, int, int]]:
    return [(row["_file"], row["_line"], row["_index"]) for row in workspace.rows(table)]


@pytest.fixture
def dead(workspace: Any) -> Any:
    """Two files with the same places, a batch each: messages for `a` and `b` with an even index are dead letters."""
    workspace.write("one", RECORDS + b"rubbish\n")
    workspace.write("two", RECORDS + b"rubbish\n\n")
    report = workspace.land(engine=BAD, batch_bytes=1)
    assert (report.read, report.dead_lettered, report.reasons["no-definition"]) == (74, 34, 32)
    return workspace


def test_matching_dead_letters_land_and_keep_their_place(dead: Any) -> None:
    letters = {place for place in places(dead, "dead_letters") if place[1] != 25}
    before = {place for table in "abc" for place in places(dead, table)}
    report = dead.replay()
    assert counts(report) == (34, 32, 2, 0)
    assert report.outcomes == {"matched": 32, "malformed": 2}
    assert report.reasons == {"malformed-record": 2}
    assert {place for table in "abc" for place in places(dead, table)} == before | letters
    assert Counter(row["table"] for row in dead.rows("resolved")) == {"a": 16, "b": 16}
    assert set(places(dead, "resolved")) == letters
    assert {row["_catalogue"] for row in dead.rows("resolved")} == {"c2"}
    assert places(dead, "dead_letters") == sorted([*letters, ("one", 25, 0), ("two", 25, 0)])


def test_replayed_rows_equal_landed_rows(dead: Any, tmp_path: Path) -> None:
    dead.replay()
    replayed = {table: dead.rows(table) for table in "abc"}
    dead.to = tmp_path / "other"
    dead.land()
    assert replayed == {table: dead.rows(table) for table in "abc"}


def test_second_replay_adds_nothing(dead: Any) -> None:
    dead.replay()
    before = sorted(dead.to.rglob("*.parquet"))
    assert counts(dead.replay()) == (2, 0, 2, 32)
    assert sorted(dead.to.rglob("*.parquet")) == before
    assert not list((dead.to / "_wirebook" / "batches").glob("*.begin.json"))
    assert counts(dead.land())[0] == 0


def test_fully_resolved_dead_letters_are_not_read(workspace: Any) -> None:
    workspace.write("one", RECORDS)
    workspace.land(engine=BAD)
    assert counts(workspace.replay()) == (16, 16, 0, 0)
    runs = len(workspace.runner.tasks)
    assert counts(workspace.replay()) == (0, 0, 0, 16)
    assert len(workspace.runner.tasks) == runs


def test_replay_resolves_step_by_step(dead: Any) -> None:
    assert counts(dead.replay(engine={"unknown": ["b"]})) == (34, 16, 18, 0)
    assert counts(dead.replay(name="c3")) == (18, 16, 2, 16)
    assert Counter(row["_catalogue"] for row in dead.rows("resolved")) == {"c2": 16, "c3": 16}
    assert Counter(places(dead, "resolved")).most_common(1)[0][1] == 1


def test_codes_and_definitions_select_dead_letters(dead: Any) -> None:
    assert counts(dead.replay(codes=("malformed-record",))) == (2, 0, 2, 32)
    assert counts(dead.replay(codes=("payload-invalid",))) == (0, 0, 0, 34)
    a = "/messagegroups/g/messages/a"
    assert counts(dead.replay(codes=("malformed-record",), definitions=(a,))) == (0, 0, 0, 34)
    assert counts(dead.replay(codes=("malformed-record", "no-definition"), definitions=(a,))) == (16, 16, 0, 18)
    assert {row["table"] for row in dead.rows("resolved")} == {"a"}


def test_unknown_code_is_rejected(dead: Any) -> None:
    with pytest.raises(WirebookError, match=r"unknown-code.*unknown problem code 'no-definitoin'"):
        dead.replay(codes=("no-definitoin",))


def test_missing_target_is_reported(workspace: Any) -> None:
    with pytest.raises(WirebookError, match="no-target"):
        workspace.replay()


def test_dry_run_counts_and_writes_nothing(dead: Any) -> None:
    before = sorted(dead.to.rglob("*"))
    assert counts(dead.replay(dry_run=True)) == (34, 32, 2, 0)
    assert sorted(dead.to.rglob("*")) == before


def test_truncated_records_are_not_tried(workspace: Any) -> None:
    import gzip

    workspace.write("cut.gz", gzip.compress(RECORDS * 99)[:-300])
    workspace.land(engine=BAD)
    notices = [row for row in workspace.rows("dead_letters") if row["reason"] == "truncated-file"]
    assert len(notices) == 1
    report = workspace.replay()
    assert (report.dead_lettered, report.skipped) == (0, 1)


def test_replay_uses_settings_of_the_landing(workspace: Any) -> None:
    workspace.write("one", RECORDS)
    workspace.land(engine=BAD, endpoint="/endpoints/e", options=MatchOptions(confluent_prefix=True))
    workspace.write("two", RECORDS[:-3] + b"4}\n")
    workspace.land(engine=BAD)
    with pytest.raises(WirebookError, match="unknown-endpoint"):
        workspace.replay(check_endpoint=refuse)
    workspace.replay()
    settings = {(m.endpoint, m.options.confluent_prefix) for m in Target(workspace.to).manifests() if m.batch > 2}
    assert settings == {("/endpoints/e", True), (None, False)}


def refuse(xid: str) -> None:
    from wirebook.problems import Problem

    raise WirebookError(Problem(code="unknown-endpoint", message=xid))


def test_show_lists_resolved_last(dead: Any) -> None:
    dead.replay()
    assert [(table.name, table.rows) for table in tables_in(dead.to)][-2:] == [("dead_letters", 34), ("resolved", 32)]


def test_damaged_dead_letters_are_reported_as_such(dead: Any) -> None:
    file = min((dead.to / "dead_letters").glob("*.parquet"))
    content = bytearray(file.read_bytes())
    content[4:400] = b"\xff" * 396
    file.write_bytes(content)
    for settings in ({}, {"dry_run": True}):
        with pytest.raises(WirebookError, match=f"broken-target: cannot read the dead letters in '.*{file.name}'"):
            dead.replay(**settings)


def test_landed_messages_are_found_by_line_and_index() -> None:
    rng = random.Random(5)
    pairs = [(rng.choice((rng.randrange(9), 1 << 60)), rng.randrange(4)) for _ in range(300)]
    for count in (1, 3, 20):
        landed = set(pairs[:count])
        lines, indexes = (np.array(column, np.int64) for column in zip(*landed, strict=True))
        asked = [np.array(column, np.int64) for column in zip(*pairs, strict=True)]
        found = LandedMessages.of(lines, indexes).contain(*asked).tolist()
        assert found == [pair in landed for pair in pairs]
        assert set(found) == {True, False}


def test_missing_dead_letter_file_is_reported(dead: Any) -> None:
    next((dead.to / "dead_letters").glob("*.parquet")).unlink()
    with pytest.raises(WirebookError, match="broken-target"):
        dead.replay()


# -- killed -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("then", ["replay", "land"])
@pytest.mark.parametrize("point", [*POINTS, "task"])
def test_kill_at_each_point_loses_and_duplicates_nothing(dead: Any, point: str, then: str) -> None:
    dead.die(point, run="replay", record='"a"' if point == "task" else "", codes=["no-definition"])
    begun = point not in ("locked", "pinned")
    if then == "land":
        dead.land(engine=BAD, name="new")
        assert len(dead.rows("resolved")) == (16 if begun else 0)
    dead.replay(name="new")
    assert counts(dead.replay(name="new")) == (2, 0, 2, 32)
    rows = [place for table in "abc" for place in places(dead, table)]
    assert len(rows) == len(set(rows)) == 72
    resolved = Counter(row["_catalogue"] for row in dead.rows("resolved"))
    assert resolved == ({"old": 16, "new": 16} if begun else {"new": 32})
    assert len(set(places(dead, "resolved"))) == 32


# -- deleted ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, workspace: Any) -> Any:
    """20 messages for `a` and 10 dead letters for `b` in a file each."""
    workspace.settings.table_format = request.param
    for name in ("one", "two"):
        line = b'{"protocol":"X","t":"%%s","from":"%s"}\n' % name.encode()
        workspace.write(name, b"".join(line % b"aab"[i % 3 : i % 3 + 1] for i in range(15)))
    workspace.land(engine={"unknown": ["b"]}, batch_bytes=1)
    return workspace


def landed_lines(workspace: Any) -> list[tuple[str, int]]:
    rows = workspace.rows("b") if (workspace.to / "b").is_dir() else []
    return sorted((row.get("_file") or row["_source_file"], row["_line"]) for row in rows)


def delete_rows(lake: Any, *lines: int) -> None:
    """Delete dead letters of the file `one` as `deltalake` and PyIceberg do: the rest is written to a new file."""
    if lake.settings.table_format == "delta":
        from deltalake import DeltaTable

        condition = f"_file = 'one' AND _line IN ({', '.join(map(str, lines))})"
        DeltaTable(str(lake.to / "dead_letters")).delete(condition)
    else:
        from pyiceberg.expressions import And, EqualTo, In

        iceberg_table(lake.to, "dead_letters").delete(And(EqualTo("_source_file", "one"), In("_line", set(lines))))


def test_deletion_vectors_of_delta_tables_are_applied(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
    workspace.write("one", b'{"protocol":"X","t":"b"}\n' * 12)
    workspace.land(engine={"unknown": ["b"]})
    delete_from_delta(workspace.to / "dead_letters", 0, 5, 11)
    assert counts(workspace.replay(dry_run=True)) == (9, 9, 0, 0)
    assert counts(workspace.replay()) == (9, 9, 0, 0)
    assert [line for _, line in landed_lines(workspace)] == [2, 3, 4, 5, 7, 8, 9, 10, 11]
    assert counts(workspace.replay()) == (0, 0, 0, 9)


def test_deletion_vectors_apply_to_all_row_groups(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
    workspace.write("one", b'{"protocol":"X","t":"b"}\n' * 12)
    workspace.land(engine={"unknown": ["b"]})
    [file] = (workspace.to / "dead_letters").glob("*.parquet")
    pq.write_table(pq.read_table(file), file, row_group_size=5)
    delete_from_delta(workspace.to / "dead_letters", 4, 5, 10)
    assert counts(workspace.replay(sizes=Sizes(chunk=1))) == (9, 9, 0, 0)
    assert [line for _, line in landed_lines(workspace)] == [1, 2, 3, 4, 7, 8, 9, 10, 12]


def test_unreadable_deletion_vector_is_refused(workspace: Any) -> None:
    workspace.settings.table_format = "delta"
    workspace.write("one", b'{"protocol":"X","t":"b"}\n' * 12)
    workspace.land(engine={"unknown": ["b"]})
    delete_from_delta(workspace.to / "dead_letters", 1)
    last = max((workspace.to / "dead_letters" / "_delta_log").glob("*.json"))
    last.write_text(last.read_text().replace('"pathOrInlineDv": "', '"pathOrInlineDv": "00000'))
    check_refused(workspace, "REORG TABLE dead_letters APPLY (PURGE)")


@pytest.mark.parametrize("equality", [False, True])
def test_delete_files_of_iceberg_tables_are_refused(workspace: Any, equality: bool) -> None:
    workspace.settings.table_format = "iceberg"
    workspace.write("one", b'{"protocol":"X","t":"b"}\n' * 12)
    workspace.land(engine={"unknown": ["b"]})
    delete_from_iceberg(iceberg_table(workspace.to, "dead_letters"), 3, equality=equality)
    check_refused(
        workspace,
        "CALL wirebook.system.rewrite_data_files(table => 'wirebook.wirebook.dead_letters', options => "
        "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true'))",
    )


def files_of(workspace: Any) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in workspace.to.rglob("*") if path.is_file() and path.name != "lock"}


def check_refused(workspace: Any, statement: str) -> None:
    before = files_of(workspace)
    for dry_run in (True, False):
        with pytest.raises(WirebookError) as caught:
            workspace.replay(dry_run=dry_run)
        [problem] = caught.value.problems
        assert (problem.code, problem.file) == ("unreadable-deletions", str(workspace.to / "dead_letters"))
        assert statement in (problem.hint or "")
        assert files_of(workspace) == before
    workspace.write("two", b'{"protocol":"X","t":"a"}\n')
    assert workspace.land().landed == 1


def test_deleted_dead_letters_of_a_killed_replay_do_not_land(lake: Any) -> None:
    lake.die("begun", run="replay")
    delete_rows(lake, 3, 6)
    lake.land(engine={"unknown": ["b"]})
    assert landed_lines(lake) == []
    assert counts(lake.replay()) == (8, 8, 0, 0)
    assert landed_lines(lake) == [("one", 9), ("one", 12), ("one", 15), *(("two", line) for line in (3, 6, 9, 12, 15))]


def test_deleting_resolved_dead_letters_keeps_no_others_from_landing(lake: Any) -> None:
    lake.write("three", b'{"protocol":"X","t":"c"}\n' * 4)
    lake.land(engine={"unknown": ["b", "c"]})
    assert lake.replay(engine={"unknown": ["c"]}).landed == 10
    delete_rows(lake, 3, 6, 9, 12, 15)
    assert counts(lake.replay()) == (4, 4, 0, 5)
