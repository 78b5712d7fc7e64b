"""Places that callers name: paths and URLs."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from wirebook.cli.app import run
from wirebook.landing.stores.locations import is_file_system, local_path, location_of, open_output, source_location
from wirebook.landing.stores.objects import ObjectPath
from wirebook.problems import WirebookError

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("tables", "tables"),
        ("run:2026", Path("run:2026").absolute()),
        ("a/b://c", Path("a/b:/c").absolute()),
        ("file:///srv/my%20tables", "/srv/my tables"),
        ("FILE:/srv/tables", "/srv/tables"),
        ("file://localhost/srv", "/srv"),
        ("./s3:/x", Path("s3:/x").absolute()),
        (Path("s3:/x").absolute(), Path("s3:/x").absolute()),
        ("run:2026/x", Path("run:2026/x").absolute()),
        (Path("run:/x"), Path("run:/x").absolute()),
        (r"C:\x", Path(r"C:\x").absolute()),
        ("C:/x", Path("C:/x").absolute()),
        ("~/x", Path("~/x").absolute()),
        ("~", Path("~").absolute()),
    ],
)
def test_place_is_a_path_or_a_file_url(place: str | Path, path: str | Path) -> None:
    assert local_path(place) == Path(path)


@pytest.mark.parametrize(
    ("place", "bucket", "key"),
    [
        ("s3://lake/tables", "s3://lake", "tables"),
        ("S3A://lake//a/b/", "s3://lake", "a/b"),
        ("gs://lake", "gs://lake", ""),
        ("abfss://box@account.dfs.core.windows.net/a", "abfss://box@account.dfs.core.windows.net", "a"),
        ("hdfs://name:8020//user/me/", "hdfs://name:8020", "user/me"),
        ("HDFS://nameservice", "hdfs://nameservice", ""),
        ("s3://lake/a@b", "s3://lake", "a@b"),
        ("hdfs://name:8020/user/me@corp", "hdfs://name:8020", "user/me@corp"),
    ],
)
def test_url_of_an_object_store(place: str, bucket: str, key: str) -> None:
    location = location_of(place)
    assert isinstance(location, ObjectPath)
    assert (location.bucket, location.key) == (bucket, key)
    assert is_file_system(location) == bucket.startswith("hdfs:")
    assert source_location(str(location).encode()) == location
    with pytest.raises(WirebookError, match="unsupported-store"):
        local_path(place)


@pytest.mark.parametrize(
    "place",
    ["hdfs:///x", "viewfs://name/x", "file://host/x", "file://[x", "x9+.-://y", "s3://", "s3://b/a?v=1"],
)
def test_other_url_is_an_error(place: str) -> None:
    with pytest.raises(WirebookError, match="unsupported-store"):
        location_of(place)


@pytest.mark.parametrize(
    "place",
    [
        "s3://me:secret@lake/tables",
        "s3://AKIA:secret/XUt@lake/tables",
        "s3://AKIA:1234/secret@lake/tables",
        "s3://AKIA:12/se@cret/secret@lake/tables",
        "s3://AKIA%3Asecret%40lake/tables",
        "s3:/AKIA:secret/XUt@lake/tables",
        Path("s3://AKIA:secret/XUt@lake/tables"),
        "s3://lake:secret/tables",
        "s3://lake/tables?sig=secret",
        "hdfs://me:secret@lake",
        "hdfs://me:secret/x@lake",
        "abfss://a:secret@lake/c",
        "abfss://a:secret/x@lake/c",
        "abfss://c@lake:secret/x",
        "abfss://c@lake.dfs.core.windows.net/x?sv=1&sig=secret",
        "abfss://c@lake.dfs.core.windows.net/x#secret",
        "https://lake/x?sig=secret",
        "https://me:secret/x@lake/x",
    ],
)
def test_secret_is_not_in_the_error(place: str | Path) -> None:
    with pytest.raises(WirebookError, match="unsupported-store") as error:
        location_of(place)
    assert "secret" not in str(error.value)
    assert "secret" not in str(error.value.problems[0].hint)
    assert "lake" in str(error.value) or "://AKIA" in str(error.value)


def test_container_of_azure_is_in_the_error() -> None:
    with pytest.raises(WirebookError, match=r"'abfss://c@lake\.dfs\.core\.windows\.net/x' names no folder"):
        location_of("abfss://c@lake.dfs.core.windows.net/x?sig=secret")


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        ("s3:/lake/t", "write it as s3://BUCKET/FOLDER; for a folder of that name, write './s3:/lake/t'"),
        ("S3:lake", "write it as s3://BUCKET/FOLDER; for a folder of that name, write './S3:lake'"),
        ("hdfs:/lake/t", "write it as hdfs://HOST:PORT/FOLDER; for a folder of that name, write './hdfs:/lake/t'"),
        ("abfss:/x", "write it as abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER; for a folder"),
        ("dbfs:/tmp/t", "S3, GCS or Azure; for a folder of that name, write './dbfs:/tmp/t'"),
        ("run:/x", "S3, GCS or Azure; for a folder of that name, write './run:/x'"),
        ("file:relative", "write it as file:///FOLDER; for a folder of that name, write './file:relative'"),
        (Path("s3://lake/x"), "write it as a string, s3://BUCKET/FOLDER; for a folder of that name, write an absolute"),
        (Path("dbfs:/x"), "S3, GCS or Azure; for a folder of that name, write an absolute path"),
    ],
)
def test_place_like_a_url_is_refused_with_a_hint(place: str | Path, hint: str) -> None:
    with pytest.raises(WirebookError, match="unsupported-store") as error:
        location_of(place)
    assert hint in str(error.value.problems[0].hint)


@pytest.mark.parametrize(
    "arguments",
    [
        ["land", "{captures}", "--to", "viewfs://lake/tables"],
        ["land", "{captures}", "--to", "dbfs:/tmp/t"],
        ["land", "x9://x", "--to", "t"],
        ["land", "x9:/x", "--to", "t"],
    ],
)
def test_unsupported_store_creates_nothing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [argument.format(captures=EXAMPLES / "captures") for argument in arguments]
    assert run([*command, "--catalog", str(EXAMPLES / "bikes.xreg.json")]) == 2
    assert "[unsupported-store]; use a folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_folder_of_tables_may_have_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    captures, catalogue = EXAMPLES / "captures", EXAMPLES / "bikes.xreg.json"
    assert run(["land", captures.as_uri(), "--catalog", str(catalogue), "--to", "run:2026", "--local", "--json"]) == 0
    assert (tmp_path / "run:2026" / "rides__started").is_dir()


def test_file_that_cannot_be_flushed_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    file = open_output(tmp_path / "a")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        file.close()
    assert file.closed
    with pytest.raises(ValueError, match="closed"):
        file.fileno()


def test_home_directory_is_not_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    captures, catalogue = EXAMPLES / "captures", EXAMPLES / "bikes.xreg.json"
    assert run(["land", str(captures), "--catalog", str(catalogue), "--to", "~/x", "--local", "--json"]) == 0
    assert (tmp_path / "~" / "x" / "rides__started").is_dir()
