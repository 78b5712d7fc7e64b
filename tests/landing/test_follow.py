"""`wirebook land --follow`: files that arrive, files that grow, a changed catalogue, stops, kills."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.stream_commands import Watched, run, started
from wirebook.landing.runs.target import Target
from wirebook.landing.sources.files import list_files, scan_files

KILLS = int(os.environ.get("WIREBOOK_KILLS", "2"))


class Folder:
    """A folder with lines of CloudEvents, a catalogue, and a target."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target, self.catalogue = folder / "captured", folder / "tables", folder / "catalogue.json"
        self.source.mkdir()
        self.written: set[tuple[str, int]] = set()
        self.write_catalogue("seen")

    def write_catalogue(self, *names: str) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        messages = {
            name: {
                "envelope": "CloudEvents/1.0",
                "envelopemetadata": {"type": {"value": name}},
                "dataschemaformat": "JsonSchema/draft-07",
                "dataschema": schema,
            }
            for name in names
        }
        document = {"specversion": "1.0-rc4", "messagegroups": {"g": {"messages": messages}}}
        partial = self.catalogue.with_suffix(".part")
        partial.write_text(json.dumps(document))
        partial.rename(self.catalogue)

    def append(self, name: str, numbers: Iterable[int], type_: str = "seen") -> None:
        """Append events to a file; every tenth has an invalid payload."""
        file = self.source / name
        before = file.read_bytes().count(b"\n") if file.exists() else 0
        with file.open("ab") as lines:
            for line, number in enumerate(numbers, before + 1):
                data = {"n": number if number % 10 else "x"}
                event = {"specversion": "1.0", "id": str(number), "source": "/s", "type": type_, "data": data}
                lines.write(json.dumps(event).encode() + b"\n")
                self.written.add((name, line))

    def arguments(self, *more: str) -> list[str]:
        arguments = [str(self.source), "--catalog", str(self.catalogue), "--to", str(self.target)]
        return ["land", *arguments, "--follow", "1s", "--json", *more]

    def places(self) -> Counter[tuple[str, int]]:
        files = sorted(self.target.glob("*/*.parquet"))
        columns = ["_file", "_line"]
        rows = [row for file in files for row in pq.read_table(file, columns=columns, partitioning=None).to_pylist()]
        return Counter((row["_file"], row["_line"]) for row in rows)

    def check_landed(self) -> None:
        """Every line is in exactly one table or once in the dead letters."""
        assert self.places() == dict.fromkeys(self.written, 1)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_files_that_arrive_and_grow_land(folder: Folder) -> None:
    folder.append("a.jsonl", range(20))
    with started({}, folder.arguments("--local")) as process:
        follower = Watched(process)
        follower.wait_for(lambda: follower.read() == 20)
        folder.append("a.jsonl", range(20, 30))
        folder.append("b.jsonl", range(100, 110))
        follower.wait_for(lambda: follower.read() == 40)
        folder.append("c.jsonl", range(200, 205), "picked")
        follower.wait_for(lambda: follower.read() == 45)
        assert follower.batches[-1]["outcomes"] == {"unexpected": 5}
        folder.write_catalogue("seen", "picked")
        folder.append("d.jsonl", range(301, 305), "picked")
        follower.wait_for(lambda: follower.read() == 49)
        assert follower.batches[-1]["tables"] == {"g__picked": 4}
        assert follower.end(signal.SIGTERM) == 0
    *_, closing = follower.batches
    assert (closing["read"], closing["landed"], closing["dead_lettered"]) == (49, 40, 9)
    assert any(note.startswith("the catalogue changed") for note in follower.notes)
    folder.check_landed()
    lines, _ = run({}, ["land", *folder.arguments()[1:6], "--local", "--no-report", "--json"])
    assert (lines[-1]["read"], lines[-1]["skipped"]) == (0, 49)


def test_catalogue_changes_under_a_running_follower(folder: Folder) -> None:
    """A field is added, a schema is broken, a definition is broken, and the file is half written for a moment."""
    document = json.loads(folder.catalogue.read_text())
    seen = document["messagegroups"]["g"]["messages"]["seen"]
    properties = seen["dataschema"]["properties"]
    changed, refused = "the catalogue changed", "the changed catalogue cannot be used"

    def land_more(number: int) -> None:
        """Land ten more events, of which one has an invalid payload, and wait for them."""
        folder.append(f"{number}.jsonl", range(10 * number, 10 * number + 10))
        follower.wait_for(lambda: follower.read() == 10 * (number + 1))

    def write(text: str, note: str) -> None:
        """Change the catalogue, and wait until the follower has noted it."""
        before = len(follower.notes)
        folder.catalogue.write_text(text)
        follower.wait_for(lambda: any(line.startswith(note) for line in follower.notes[before:]))

    with started({}, folder.arguments("--local")) as process:
        follower = Watched(process)
        land_more(0)
        properties["more"] = {"type": "string"}
        write(whole := json.dumps(document), changed)
        land_more(1)
        write(whole.replace('"string"', '"no such type"'), changed)
        land_more(2)
        assert follower.batches[-1]["dead_lettered"] == 10
        write(whole.replace('"CloudEvents/1.0"', "5"), refused)
        land_more(3)
        properties["last"] = {"type": "boolean"}
        whole = json.dumps(document)
        write(whole[: len(whole) // 2], refused)
        write(whole, changed)
        land_more(4)
        assert follower.end(signal.SIGTERM) == 0
    folder.check_landed()
    columns = [set(pq.read_schema(file).names) for file in sorted(folder.target.glob("g__seen/*.parquet"))]
    assert [sorted({"more", "last"} & names) for names in columns] == [[], ["more"], ["last", "more"]]
    lines, _ = run({}, ["replay", str(folder.target), "--catalog", str(folder.catalogue), "--local", "--json"])
    assert lines[-1]["landed"] == 18


def test_interrupt_finishes_the_batch(folder: Folder) -> None:
    for number in range(6):
        folder.append(f"{number}.jsonl", range(10 * number, 10 * number + 10))
    with started({}, folder.arguments("--local")) as process:
        follower = Watched(process)
        follower.wait_for(lambda: any(note.startswith("following") for note in follower.notes))
        assert follower.end(signal.SIGINT) == 130
    places = folder.places()
    assert sum(places.values()) == follower.batches[-1]["read"]
    run({}, ["land", *folder.arguments()[1:6], "--local", "--no-report", "--json"])
    folder.check_landed()


def test_waits_while_another_run_holds_the_target(folder: Folder) -> None:
    folder.append("a.jsonl", range(20))
    arguments = folder.arguments("--local", "--metrics-address", "127.0.0.1:0")
    with started({}, arguments) as process:
        follower = Watched(process)
        follower.wait_for(lambda: follower.read() == 20)
        address = next(note.split()[2].rstrip(",") for note in follower.notes if note.startswith("metrics at"))
        with Target(folder.target).locked():
            folder.append("b.jsonl", range(20, 40))
            follower.wait_for(lambda: any(note.startswith("trying again: ") for note in follower.notes))
            assert b"wirebook_stream_connected{endpoint=" in (metrics := urllib.request.urlopen(address).read())
            assert b'"} 0.0' in next(line for line in metrics.splitlines() if line.startswith(b"wirebook_stream_conn"))
        follower.wait_for(lambda: follower.read() == 40)
        assert follower.end(signal.SIGTERM) == 0
    folder.check_landed()


def test_source_that_does_not_exist_and_standard_input_are_refused(folder: Folder) -> None:
    arguments = folder.arguments("--local")
    _, err = run({}, [arguments[0], f"{folder.source}-no", *arguments[2:]], code=2)
    assert "[unreadable-file]" in err
    _, err = run({}, [arguments[0], "-", *arguments[2:]], code=2)
    assert "it cannot be used with --dry-run or standard input" in err
    _, err = run({}, [*folder.arguments()[:6], "--metrics-address", "127.0.0.1:0"], code=2)
    assert "it requires --follow" in err


def test_follower_notes_an_incomplete_file_once_and_lands_the_others(folder: Folder) -> None:
    folder.append("whole.jsonl", range(400))
    whole = gzip.compress((folder.source / "whole.jsonl").read_bytes())
    (folder.source / "whole.jsonl").unlink()
    folder.written.clear()

    def write(size: int) -> None:
        """Replace the file at once: no pass may see a part of it."""
        partial = folder.source / ".partial"
        partial.write_bytes(whole[:size])
        partial.rename(folder.source / "cut.gz")

    write(len(whole) // 2)
    with started({}, folder.arguments("--local")) as process:
        follower = Watched(process)
        follower.wait_for(lambda: any("[truncated-file]" in note for note in follower.notes))
        before = follower.read()
        for number in range(3):  # each in a pass of its own
            folder.append(f"{number}.jsonl", range(10 * number, 10 * number + 10))
            follower.wait_for(lambda n=number: follower.read() == before + 10 * (n + 1))
        write(len(whole) * 3 // 4)
        follower.wait_for(lambda: follower.read() > before + 30)
        assert follower.end(signal.SIGTERM) == 2
    notes = [note for note in follower.notes if "error: " in note]
    assert len(notes) == 1
    assert notes[0].startswith(f"cut.gz:{before}: error: 'cut.gz' was read only up to line {before - 1}: ")

    with started({}, folder.arguments("--local")) as process:
        follower = Watched(process)
        follower.wait_for(lambda: any("[truncated-file]" in note for note in follower.notes))
        write(len(whole))
        follower.wait_for(lambda: follower.read() > 0)
        folder.append("last.jsonl", range(5))
        follower.wait_for(lambda: follower.batches[-1]["read"] == 5)
        assert follower.end(signal.SIGTERM) == 0
    folder.written |= {("cut.gz", line) for line in range(1, 401)}
    places, missing = folder.places(), {}
    letters = pq.read_table(folder.target / "dead_letters", partitioning=None).to_pylist()
    for letter in letters:
        if letter["problems"][0]["code"] == "truncated-file":
            missing[letter["_file"], letter["_line"]] = 1
    assert places == Counter(dict.fromkeys(folder.written, 1)) + Counter(missing)
    assert len(missing) == 2


@pytest.mark.faults
def test_killed_follower_lands_every_message_once(folder: Folder) -> None:
    dice, numbers = random.Random(time.time_ns()), iter(range(1_000_000))
    for kill in range(KILLS):
        folder.append(f"{kill}.jsonl", [next(numbers) for _ in range(500)])
        with started({}, folder.arguments("--local")) as process:
            follower = Watched(process)
            follower.wait_for(lambda f=follower: any(note.startswith("following") for note in f.notes))
            end = time.monotonic() + dice.uniform(0, 3)
            while time.monotonic() < end:
                folder.append(f"{kill}.jsonl", [next(numbers) for _ in range(50)])
                time.sleep(0.1)
            process.kill()
    run({}, ["land", *folder.arguments()[1:6], "--local", "--no-report", "--json"])
    folder.check_landed()


@pytest.mark.spark
def test_follows_on_spark(folder: Folder, one_java: dict[str, str]) -> None:
    folder.append("a.jsonl", range(20))
    with started(one_java, folder.arguments()) as process:
        follower = Watched(process)
        follower.wait_for(lambda: follower.read() == 20)
        folder.append("b.jsonl", range(20, 40))
        follower.wait_for(lambda: follower.read() == 40)
        assert follower.end(signal.SIGINT) == 130
    folder.check_landed()


def test_unchanged_files_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f"{name}\n")
    first = {scan.file.name: scan for scan in scan_files(list_files(tmp_path).files)}
    (tmp_path / "b").write_text("other\n")
    (tmp_path / "c").unlink()
    second: dict[str, Any] = {scan.file.name: scan for scan in scan_files(list_files(tmp_path).files, first)}
    assert second.keys() == {"a", "b"}
    assert second["a"] is first["a"]
    assert second["b"].digest != first["b"].digest
