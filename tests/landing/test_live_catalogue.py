"""Catalogues that change while `land --follow` runs: in a registry, and in a folder that Git manages."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.httpapi.servers import serving
from wirebook import Catalog
from wirebook.catalog import live as live_module
from wirebook.catalog.live import LiveCatalog
from wirebook.landing import replay
from wirebook.landing.follow import FollowJob, follow
from wirebook.landing.runs.local_runner import LocalRunner
from wirebook.landing.runs.target import Target
from wirebook.landing.watch.figures import BatchFigures, figures_of
from wirebook.landing.watch.status import target_status

SECONDS = 60


def message(type_: str, *fields: str, **members: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in ("n", *fields)}}
    return {
        "envelope": "CloudEvents/1.0",
        "envelopemetadata": {"type": {"value": type_}},
        "dataschemaformat": "JsonSchema/draft-07",
        "dataschema": schema,
    } | members


class Following:
    """A follower in a thread, what it has landed, and its notes."""

    def __init__(self, folder: Path, catalogue: str) -> None:
        self.source, self.target = folder / "captured", folder / "tables"
        self.source.mkdir()
        self.batches, self.notes, self._files = list[BatchFigures](), list[str](), 0
        self._stop = threading.Event()
        self._catalogue = catalogue
        self._live = live = LiveCatalog(Catalog.load(catalogue), [catalogue], note=self.notes.append)
        job = FollowJob(source=self.source, to=self.target, interval=0.05)
        arguments: Any = {"on_batch": lambda batch: self.batches.append(figures_of(batch)), "note": self.notes.append}
        self._thread = threading.Thread(target=follow, args=(job, live, self._stop, LocalRunner(1)), kwargs=arguments)
        self._thread.start()

    def land(self, type_: str) -> BatchFigures:
        """Land three events, and return the figures of their batch."""
        before = len(self.batches)
        self._files += 1  # in the events too: a file that has landed is known by its content
        common = {"specversion": "1.0", "source": f"/{self._files}", "type": type_}
        events = [common | {"id": str(number), "data": {"n": number}} for number in range(3)]
        partial = self.source.parent / "partial"
        partial.write_text("".join(json.dumps(event) + "\n" for event in events))
        partial.rename(self.source / f"{self._files}.jsonl")
        self.wait_for(lambda: len(self.batches) > before)
        assert self.batches[-1].report.read == 3
        return self.batches[-1]

    def wait_for_catalogue(self) -> None:
        """Wait until the catalogue is used as it is: a pass may have begun before it changed."""
        expected = Catalog.load(self._catalogue).fingerprint
        self.wait_for(lambda: self._live.catalog.fingerprint == expected)

    def wait_for(self, condition: Any) -> None:
        end = time.monotonic() + SECONDS
        while not condition():
            assert self._thread.is_alive()
            assert time.monotonic() < end, self.notes
            time.sleep(0.02)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@contextmanager
def following(folder: Path, catalogue: str) -> Iterator[Following]:
    follower = Following(folder, catalogue)
    try:
        yield follower
    finally:
        follower.stop()


def test_definition_put_into_a_registry_is_used_by_the_next_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "REGISTRY_SECONDS", 0.0)
    with serving(f"sqlite:///{tmp_path}/r.db", tmp_path / "log") as (server,), server.client() as client:
        group = {"messages": {"seen": message("seen")}}
        assert client.put("/messagegroups/g", json=group).status_code == 201
        first_epoch = client.get("/").json()["epoch"]
        with following(tmp_path, server.base) as follower:
            first, unknown = follower.land("seen"), follower.land("picked")
            assert [batch.epoch for batch in (first, unknown)] == [first_epoch] * 2
            assert unknown.report.outcomes == {"unexpected": 3}
            answer = client.put("/messagegroups/g/messages/picked", json=message("picked"))
            assert answer.status_code == 201
            follower.wait_for_catalogue()
            known = follower.land("picked")
            assert client.patch("/", json={"description": "a change of the registry itself"}).status_code == 200
            epoch = client.get("/").json()["epoch"]
            follower.wait_for_catalogue()
            described = follower.land("picked")
    assert known.to_dict()["definitions"] == {"/messagegroups/g/messages/picked": 3}
    assert known.catalogue != first.catalogue
    assert described.epoch == epoch > first_epoch
    recorded = [manifest.run.epoch for manifest in Target(follower.target).manifests() if manifest.run]
    assert recorded == [first_epoch, first_epoch, known.epoch, epoch]
    last = target_status(follower.target).to_dict()["last_batch"]
    assert (last["catalogue_epoch"], last["catalogue"]) == (epoch, described.catalogue)
    assert all(note.startswith("the catalogue changed") for note in follower.notes), follower.notes


class Repository:
    """A Git repository with two documents; `commits` has one commit for each of their states."""

    def __init__(self, folder: Path, *states: dict[str, Any]) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet")
        self.commits = [self._commit(state) for state in states]
        self.checkout(0)

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "advice.detachedHead=false")
        done = subprocess.run(
            ["git", "-C", str(self.folder), *identity, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def _commit(self, state: dict[str, Any]) -> str:
        for group, messages in state.items():
            document = {"specversion": "1.0-rc4", "messagegroups": {group: {"messages": messages}}}
            (self.folder / f"{group}.json").write_text(json.dumps(document))
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "change")
        return self.git("rev-parse", "HEAD")

    def checkout(self, number: int, *files: str) -> None:
        self.git("checkout", "--quiet", self.commits[number], *(("--", *files) if files else ()))


def test_checkout_of_another_commit_is_used(tmp_path: Path) -> None:
    base = {"derived": message("derived", basemessage="/messagegroups/h/messages/picked")}
    repository = Repository(
        tmp_path / "catalogue",
        {"g": {"seen": message("seen")}, "h": {"taken": message("taken")}},
        {"g": {"seen": message("seen", "more")}, "h": {"taken": message("taken"), "picked": message("picked")}},
        {"g": {"seen": message("seen")} | base, "h": {"picked": message("picked")}},
    )
    with following(tmp_path, str(repository.folder)) as follower:
        first = follower.land("seen")
        assert follower.land("picked").report.outcomes == {"unexpected": 3}
        repository.checkout(1)
        follower.wait_for_catalogue()
        assert follower.land("picked").report.outcomes == {"matched": 3}
        second = follower.land("seen")
        repository.checkout(0)
        follower.wait_for_catalogue()
        assert follower.land("seen").catalogue == first.catalogue != second.catalogue

        # A half that does not load: Git is still writing a file.
        whole = (repository.folder / "g.json").read_bytes()
        (repository.folder / "g.json").write_bytes(whole[: len(whole) // 2])
        refused = "the changed catalogue cannot be used"
        follower.wait_for(lambda: any(note.startswith(refused) for note in follower.notes))
        half = follower.land("taken")
        assert (half.catalogue, half.report.outcomes) == (first.catalogue, {"matched": 3})
        # A half that loads: a definition derives from one that the other file does not have yet.
        repository.checkout(2, "g.json")
        follower.wait_for_catalogue()
        assert follower.land("taken").report.outcomes == {"matched": 3}
        assert follower.land("derived").report.outcomes == {"unexpected": 3}
        repository.checkout(2)
        follower.wait_for_catalogue()
        assert follower.land("derived").report.outcomes == {"matched": 3}

        # Git has deleted a file, and not yet written it again.
        (repository.folder / "h.json").unlink()
        follower.wait_for_catalogue()
        assert follower.land("picked").report.outcomes == {"unexpected": 3}
        repository.git("checkout", "--quiet", "--force", "HEAD")
        follower.wait_for_catalogue()
        assert follower.land("picked").report.outcomes == {"matched": 3}
    report = replay(follower.target, str(repository.folder), runner=LocalRunner(1))
    assert report.landed == 9
