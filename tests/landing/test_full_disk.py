"""A disk that is full: nothing is lost or there twice once it has space again, and nothing is acknowledged before."""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from brokers import free_port
from killing.rows import landed_rows

from tests.capture.broker_endpoints import BROKER_ENDPOINTS
from tests.capture.gateway import (
    Clients,
    GatewayProcess,
    captured,
    gateway,
    lines_in,
    wait_for_note,
    wait_until,
    write_catalog,
)
from tests.disks import fill, mounted_disk
from tests.landing.test_follow import Folder
from tests.landing.workspace import Workspace
from tests.spark.stream_commands import Watched, run, started
from wirebook.problems import WirebookError

pytestmark = pytest.mark.faults

CODES = {"unwritable-target", "broken-target", "iceberg-catalog-failed"}
REASONS = ("No space left on device", "database or disk is full")


@pytest.fixture
def disk() -> Iterator[Path]:
    with mounted_disk("24m") as folder:
        yield folder


@pytest.fixture
def folder(tmp_path: Path, disk: Path) -> Folder:
    """A source on a large disk, and a target on a small one."""
    folder = Folder(tmp_path)
    folder.target = disk / "tables"
    return folder


@pytest.mark.parametrize(("table_format", "step"), [("parquet", 1), ("delta", 1), ("iceberg", 4)])
def test_disk_that_is_full_at_any_moment(tmp_path: Path, disk: Path, table_format: str, step: int) -> None:
    """The disk has room for ever more of a landing, until all of it succeeds."""
    failed, messages = set[str](), list[str]()
    for pages in itertools.count(0, step):
        to = disk / f"{pages}"
        (tmp_path / to.name).mkdir()
        workspace = Workspace(tmp_path / to.name, str(to))
        expected = workspace.write_two_files()
        ballast = fill(disk, pages)
        try:
            problems = workspace.land(table_format=table_format, batch_bytes=1).problems
        except WirebookError as error:
            problems = [*error.problems]
            messages += [problem.message for problem in problems]
        failed |= {problem.code for problem in problems}
        ballast.unlink()
        assert not workspace.land(table_format=table_format).problems
        rows = landed_rows(table_format, to)
        assert (len(rows), rows.total()) == (expected, expected)
        assert (workspace.land().read, workspace.land().skipped) == (0, expected)
        assert not (to / "_wirebook" / "aside").is_dir()
        shutil.rmtree(to)
        if not problems:
            break
    assert pages > 5 * step
    assert failed <= CODES
    assert [message for message in messages if not any(reason in message for reason in REASONS)] == []


def error_of(notes: str) -> str:
    """The only error that a command prints; its progress does not count."""
    assert "Traceback" not in notes
    assert "\tat " not in notes
    (error,) = (line for line in notes.splitlines() if "error: " in line)
    return error


@pytest.mark.spark
def test_land_on_spark(folder: Folder, one_java: dict[str, str], disk: Path) -> None:
    folder.append("a.jsonl", range(5000))
    arguments = ["land", *folder.arguments()[1:6], "--no-report", "--json"]
    ballast = fill(disk, 12)
    _, err = run(one_java, arguments, code=2)
    assert "No space left on device" in error_of(err)
    ballast.unlink()
    run(one_java, arguments)
    folder.check_landed()


@pytest.mark.spark
def test_land_on_spark_without_room_for_temporary_files(tmp_path: Path, one_java: dict[str, str], disk: Path) -> None:
    """A landing shuffles nothing, so Spark needs the names of its folders alone."""
    folder = Folder(tmp_path)
    folder.append("a.jsonl", range(5000))
    fill(disk)
    run(
        one_java | {"TMPDIR": str(disk), "SPARK_LOCAL_DIRS": str(disk)},
        ["land", *folder.arguments()[1:6], "--no-report", "--json"],
    )
    folder.check_landed()


def test_followed_folder(folder: Folder, disk: Path) -> None:
    folder.append("a.jsonl", range(20))
    with started({}, folder.arguments("--local")) as process:
        follower = Watched(process)
        follower.wait_for(lambda: follower.read() == 20)
        ballast = fill(disk)
        folder.append("b.jsonl", range(20, 40))
        assert process.wait(60) == 2
        err = "".join(follower.notes)
    assert "No space left on device" in error_of(err)
    ballast.unlink()
    run({}, ["land", *folder.arguments()[1:6], "--local", "--no-report", "--json"])
    folder.check_landed()


def test_gateway_acknowledges_nothing(disk: Path, tmp_path: Path) -> None:
    port, segments = free_port(), disk / "captured"
    options = {"endpoints": [{"uri": f"http://127.0.0.1:{port}/hooks"}]}
    catalog = write_catalog(tmp_path, {"e": {"usage": ["producer"], "protocol": "HTTP", "protocoloptions": options}})
    with gateway(catalog, segments, "--endpoint", "/endpoints/e", "--segment-age", "1s") as process:
        clients = Clients(port)
        time.sleep(0.5)
        for pages in (3, 0):
            ballast = fill(disk, pages)
            note = wait_for_note(process, "cannot write a segment")
            assert "No space left on device; nothing is acknowledged until it can be written" in note
            before = clients.check_none_acknowledged()
            ballast.unlink()
            wait_for_note(process, "writing again")
            time.sleep(0.5)
        clients.stop()
        assert process.stop(signal.SIGTERM)[0] == 0
    clients.check_captured([record["body"] for record in captured(segments)])
    assert len(clients.acknowledged) > len(before) > 0


@pytest.mark.parametrize("broker", BROKER_ENDPOINTS)
def test_gateway_of_a_broker_acknowledges_nothing(disk: Path, tmp_path: Path, broker: str) -> None:
    """It is killed while the disk is full, and the broker delivers everything to the next one. That one goes on by
    itself once there is space."""
    segments, arguments = disk / "captured", ["--endpoint", "/endpoints/e", "--segment-age", "1s"]
    bodies = [f"{number}.".ljust(6000, "x") for number in range(60)]
    with BROKER_ENDPOINTS[broker](tmp_path) as source:
        catalog = write_catalog(tmp_path, {"e": source.endpoint})

        def wait_for_bodies(count: int) -> None:
            wait_until(lambda: {record[source.member] for record in lines_in(segments)} == {*bodies[:count]})

        def send_to_full_disk(process: GatewayProcess, sent: list[str]) -> Path:
            ballast = fill(disk)
            source.send(sent)
            note = wait_for_note(process, "cannot write a segment")
            assert "No space left on device; nothing is acknowledged until it can be written" in note
            time.sleep(0.5)  # longer than an acknowledgement takes
            return ballast

        with gateway(catalog, segments, *arguments) as process:
            wait_for_note(process, "receiving '")
            source.send(bodies[:20])
            wait_for_bodies(20)
            ballast = send_to_full_disk(process, bodies[20:40])
            process.process.kill()
            process.process.wait()
        ballast.unlink()
        with gateway(catalog, segments, *arguments) as process:
            wait_for_bodies(40)
            ballast = send_to_full_disk(process, bodies[40:])
            ballast.unlink()
            wait_for_note(process, "writing again")
            wait_for_bodies(60)
            assert process.stop(signal.SIGTERM)[0] == 0
        counts = Counter(record[source.member] for record in captured(segments))
    assert counts.keys() == {*bodies}
    assert {counts[body] for body in bodies[40:]} == {1}


def test_gateway_that_starts_on_a_full_disk(disk: Path, tmp_path: Path) -> None:
    """It waits for space, or says why it cannot start; it acknowledges nothing that is not on the disk."""
    port, segments = free_port(), disk / "captured"
    segments.mkdir()
    (segments / ".1.jsonl.partial").write_text(json.dumps({"protocol": "HTTP", "body": "1"}) + "\n")
    options = {"endpoints": [{"uri": f"http://127.0.0.1:{port}/hooks"}]}
    catalog = write_catalog(tmp_path, {"e": {"usage": ["producer"], "protocol": "HTTP", "protocoloptions": options}})
    ballast = fill(disk)
    arguments: list[Any] = ["capture", "--catalog", catalog, "--to", segments, "--endpoint", "/endpoints/e"]
    _, err = run({}, [str(argument) for argument in arguments], code=2)
    assert "No space left on device" in error_of(err)
    assert "[unwritable-target]" in err
    ballast.unlink()
    with gateway(catalog, segments, "--endpoint", "/endpoints/e") as process:
        assert httpx.post(f"http://127.0.0.1:{port}/hooks", content="2", trust_env=False).status_code == 202
        assert process.stop()[0] == 0
    assert [record["body"] for record in captured(segments)] == ["1", "2"]
