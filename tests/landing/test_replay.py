"""Replaying dead letters: those that match a corrected catalogue land once, are marked as resolved, and keep their
place."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wirebook.definitions.match.options import MatchOptions
from wirebook.landing.report.show import tables_in
from wirebook.landing.runs.dead_letters import LandedMessages
from wirebook.landing.runs.report import Report
from wirebook.landing.runs.target import Target
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
