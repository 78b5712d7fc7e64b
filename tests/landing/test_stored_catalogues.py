"""Catalogues that are compiled once for all runs, in the user's cache."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from wirebook.catalog import Catalog
from wirebook.catalog.load import Document
from wirebook.definitions.match.options import DEFAULT_OPTIONS, MatchOptions
from wirebook.landing import land, stored_catalogues
from wirebook.landing.job import load_catalogue
from wirebook.landing.report.show import tables_in
from wirebook.problems import WirebookError

DESCRIBED = "/messagegroups/shop/messages/ordered"
ENDPOINT = "/endpoints/orders"


def document(*ids: str) -> dict[str, Any]:
    """A catalogue with these definitions, all of which an endpoint carries."""
    messages = {
        name: {
            "messageid": name,
            "description": f"The order was {name}.",
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": name}, "source": {"value": "/shops/{shop}"}},
            "dataschemaformat": "JsonSchema/draft-07",
            "dataschema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        }
        for name in ids
    }
    return {
        "name": "shop",
        "epoch": 7,
        "messagegroups": {"shop": {"messagegroupid": "shop", "messages": messages}},
        "endpoints": {
            "orders": {"endpointid": "orders", "usage": ["producer"], "messagegroups": ["/messagegroups/shop"]}
        },
    }


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the entries; catalogues of any size are stored."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("WIREBOOK_CATALOGUE_CACHE", str(folder))
    monkeypatch.setattr(stored_catalogues, "SMALLEST", 0)
    return folder


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    path = tmp_path / "shop.xreg.json"
    path.write_text(json.dumps(document("ordered", "paid")))
    return path


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    event = {"specversion": "1.0", "source": "/shops/lund", "data": {"n": 1}}
    events = [event | {"id": str(number), "type": name} for number, name in enumerate(["ordered", "paid", "lost"])]
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in events))
    return path


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The sources of each catalogue that is loaded from now on."""
    loaded: list[object] = []
    load = Catalog.load.__func__  # type: ignore[attr-defined]

    def counted(cls: type[Catalog], *sources: Any, **options: Any) -> Catalog:
        loaded.append(sources)
        return load(cls, *sources, **options)  # type: ignore[no-any-return]

    monkeypatch.setattr(Catalog, "load", classmethod(counted))
    return loaded


def test_the_second_run_reads_what_the_first_one_stored(cache: Path, catalogue: Path, loads: list[object]) -> None:
    fresh, again = (load_catalogue([str(catalogue)], DEFAULT_OPTIONS, None) for _ in range(2))
    assert len(loads) == len(list(cache.iterdir())) == 1
    assert fresh.xids
    assert again.xids
    assert sorted(fresh.xids()) == sorted(again.xids()) == [DESCRIBED, "/messagegroups/shop/messages/paid"]
    names = ("fingerprint", "document", "name", "epoch", "options", "errors", "unread")
    assert [getattr(fresh, name) or None for name in names] == [getattr(again, name) or None for name in names]
    assert again.describe(DESCRIBED) == fresh.describe(DESCRIBED) == "The order was ordered."
    assert again.endpoint_of(DESCRIBED) == fresh.endpoint_of(DESCRIBED) == ENDPOINT
    assert list(again.endpoints()) == list(fresh.endpoints()) == [ENDPOINT]
    assert again.prepare(None) == fresh.prepare(None)
    assert again.prepare(ENDPOINT) is None
    again.check_endpoint(ENDPOINT)
    with pytest.raises(WirebookError) as failure:
        again.check_endpoint("/endpoints/other")
    assert failure.value.problems[0].code == "unknown-endpoint"


@pytest.mark.parametrize("endpoint", [None, ENDPOINT])
def test_landing_is_the_same_from_the_cache(
    cache: Path, catalogue: Path, captures: Path, tmp_path: Path, loads: list[object], endpoint: str | None
) -> None:
    """The stored catalogue reaches the tasks, whose processes load none."""
    reports = [land(captures, catalogue, tmp_path / name, endpoint=endpoint) for name in ("first", "second")]
    assert len(loads) == 1
    assert list(cache.iterdir())
    first, second = ({table.name: table.rows for table in tables_in(tmp_path / name)} for name in ("first", "second"))
    assert first == second
    assert sum(first.values()) == 3
    assert reports[0].closing_line() == reports[1].closing_line()
    pinned = [*(tmp_path / "second" / "_wirebook" / "catalogues").iterdir()]
    assert [json.loads(path.read_bytes())["epoch"] for path in pinned] == [7]


def test_an_entry_is_for_the_same_content_options_and_program(
    cache: Path, catalogue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(options: MatchOptions = DEFAULT_OPTIONS, endpoint: str | None = None) -> str | None:
        return stored_catalogues.key_of([str(catalogue)], options, endpoint)

    keys = [key(), key(MatchOptions(confluent_prefix=True)), key(endpoint=ENDPOINT)]
    monkeypatch.setattr(stored_catalogues, "_program", lambda: "another version")
    keys.append(key())
    catalogue.write_text(json.dumps(document("ordered")))
    keys.append(key())
    assert None not in keys
    assert len(set(keys)) == len(keys)
    copy = catalogue.rename(catalogue.with_name("other.json"))
    assert stored_catalogues.key_of([copy], DEFAULT_OPTIONS, None) == keys[-1]


def test_a_changed_file_is_loaded_again(cache: Path, catalogue: Path) -> None:
    before = load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    catalogue.write_text(json.dumps(document("ordered", "paid", "sent")))
    after = load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    assert before.fingerprint != after.fingerprint
    assert after.xids
    assert len(set(after.xids())) == 3


def test_what_is_not_in_whole_files_is_not_stored(cache: Path, catalogue: Path, tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps(document("ordered")))
    (folder / "two.json").write_text("{")
    sources: list[list[Any]] = [
        [document("ordered")],
        [Document("-", catalogue.read_bytes())],
        [catalogue, document("sent")],
        [folder],
    ]
    for source in sources:
        load_catalogue(source, DEFAULT_OPTIONS, None)
    with pytest.raises(WirebookError):
        load_catalogue([tmp_path / "none.json"], DEFAULT_OPTIONS, None)
    load_catalogue([catalogue], DEFAULT_OPTIONS, "/endpoints/other")
    assert not cache.exists()
    (folder / "two.json").write_text(json.dumps(document("paid")))
    load_catalogue([folder], DEFAULT_OPTIONS, None)
    assert len(list(cache.iterdir())) == 1


def test_only_regular_files_are_read(cache: Path, tmp_path: Path) -> None:
    """A named pipe that no program writes to would block."""
    os.mkfifo(tmp_path / "pipe")
    for source in (os.devnull, tmp_path / "pipe"):
        assert stored_catalogues.key_of([source], DEFAULT_OPTIONS, None) is None
        with pytest.raises(WirebookError, match="unreadable-file"):
            load_catalogue([source], DEFAULT_OPTIONS, None)


def test_small_catalogues_are_not_stored(cache: Path, catalogue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_catalogues, "SMALLEST", 1 + catalogue.stat().st_size)
    load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    assert not cache.exists()


def test_the_cache_can_be_off(catalogue: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREBOOK_CATALOGUE_CACHE", "off")
    monkeypatch.setattr(stored_catalogues, "SMALLEST", 0)
    assert stored_catalogues.key_of([catalogue], DEFAULT_OPTIONS, None) is None


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_can_write_to_is_not_used(
    cache: Path, catalogue: Path, loads: list[object], mode: int
) -> None:
    load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    assert cache.stat().st_mode & 0o777 == 0o700
    cache.chmod(mode)
    load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    assert len(loads) == 2
    cache.chmod(0o700)
    entry = next(cache.iterdir())
    entry.chmod(0o666)
    load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    assert len(loads) == 3
    assert entry.stat().st_mode & 0o777 == 0o600  # it was replaced


@pytest.mark.parametrize("damage", [b"", b"\x81", b"{}"])
def test_a_damaged_entry_is_replaced(cache: Path, catalogue: Path, loads: list[object], damage: bytes) -> None:
    load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    entry = next(cache.iterdir())
    whole = entry.read_bytes()
    entry.write_bytes(damage)
    load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    assert len(loads) == 2
    assert entry.read_bytes() == whole


def test_a_cache_that_cannot_be_written_to_changes_nothing(
    tmp_path: Path, catalogue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WIREBOOK_CATALOGUE_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(stored_catalogues, "SMALLEST", 0)
    assert load_catalogue([catalogue], DEFAULT_OPTIONS, None).name == "shop"


def test_an_entry_in_a_read_only_file_system_is_used(
    cache: Path, catalogue: Path, monkeypatch: pytest.MonkeyPatch, loads: list[object]
) -> None:
    def fail(path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    monkeypatch.setattr(os, "utime", fail)
    assert load_catalogue([catalogue], DEFAULT_OPTIONS, None).name == "shop"
    assert len(loads) == 1


def test_the_entries_that_were_used_last_are_kept(
    cache: Path, catalogue: Path, monkeypatch: pytest.MonkeyPatch, loads: list[object]
) -> None:
    monkeypatch.setattr(stored_catalogues, "MAX_ENTRIES", 2)
    contents = [json.dumps(document(f"m{number}")) for number in range(3)]
    for content in (contents[0], contents[1], contents[0], contents[2], contents[0]):
        catalogue.write_text(content)
        load_catalogue([catalogue], DEFAULT_OPTIONS, None)
    assert len(list(cache.iterdir())) == 2
    assert len(loads) == 3
