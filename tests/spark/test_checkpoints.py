"""Checkpoints of streams: the URLs that Spark gets. Stores are in `test_frames`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebook.cli.app import run
from wirebook.landing.stores.locations import AnyPath
from wirebook.problems import WirebookError
from wirebook.spark.checkpoints import check_checkpoint, checkpoint_folder, checkpoint_url, clear_unfinished, is_folder
from wirebook.spark.session import SUBMITTED

NO_SPARK: Any = None


@pytest.mark.parametrize(
    ("checkpoint", "expected"),
    [
        pytest.param("/var/lib/wirebook/orders", "/var/lib/wirebook/orders", id="path"),
        pytest.param("progress", "{here}/progress", id="relative-path"),
        pytest.param("run:2026/progress", "{here}/run:2026/progress", id="path-with-colon"),
        pytest.param("./s3:/progress", "{here}/s3:/progress", id="path-like-url"),
        pytest.param("~/progress", "{here}/~/progress", id="home-directory"),
        pytest.param("file:/var/orders", "/var/orders", id="one-slash"),
        pytest.param("file:///var/orders", "/var/orders", id="three-slashes"),
        pytest.param("FILE://localhost/var/orders", "/var/orders", id="localhost"),
        pytest.param("file:///var/two%20words%25", "/var/two words%", id="escaped"),
        pytest.param("/var/two words%20#?é", "/var/two words%20#?é", id="special-characters"),
    ],
)
def test_folder_is_named_by_an_absolute_url(
    checkpoint: AnyPath, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = checkpoint_url(NO_SPARK, checkpoint)
    assert url == f"file://{expected.format(here=tmp_path)}"
    assert is_folder(url)
    assert checkpoint_folder(url) == Path(expected.format(here=tmp_path))


@pytest.mark.parametrize(
    "checkpoint",
    ["file://other/progress", "file:progress", "s3:progress", Path("s3://lake/progress")],
    ids=["another-machine", "relative-file", "relative-store", "path-of-a-url"],
)
def test_place_like_a_url_is_refused(checkpoint: AnyPath) -> None:
    with pytest.raises(WirebookError, match="unsupported-store"):
        checkpoint_url(NO_SPARK, checkpoint)


@pytest.mark.parametrize(
    "checkpoint", ["s3a://AKIA:secret/XUt@lake/progress", "S3N://AKIA:secret@lake", "wasbs://a:secret/x@lake/progress"]
)
def test_checkpoint_with_credentials_is_refused_without_them(checkpoint: str) -> None:
    with pytest.raises(WirebookError, match="has credentials") as error:
        checkpoint_url(NO_SPARK, checkpoint)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("checkpoint", ["foo://x/y", "foo:/x", "s3:progress", "s3a://AKIA:secret/XUt@lake/progress"])
def test_unusable_checkpoint_is_refused_before_spark_starts(
    checkpoint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wirebook.cli.progress.ProgressBar.start_spark", lambda *_: pytest.fail("Spark is started"))
    options = {"topic": "t", "endpoints": [{"bootstrap.servers": ["localhost:1"]}]}
    endpoint = {"usage": ["consumer"], "protocol": "KAFKA", "protocoloptions": options}
    (tmp_path / "c.json").write_text(json.dumps({"specversion": "1.0-rc4", "endpoints": {"e": endpoint}}))
    command = ["stream", "--endpoint", "/endpoints/e", "--catalog", str(tmp_path / "c.json"), "--jars", str(tmp_path)]
    assert run([*command, "--to", str(tmp_path / "t"), "--checkpoint", checkpoint]) == 2
    error = capsys.readouterr().err
    assert "[unsupported-store]" in error
    assert "secret" not in error
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("checkpoint", ["progress", "/progress", "file:/progress", "hdfs:/progress", "S3A://lake/x"])
def test_checkpoint_of_a_known_scheme_is_left_to_spark(checkpoint: str) -> None:
    check_checkpoint(checkpoint)


def test_submitted_session_may_have_file_systems_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SUBMITTED[0], "x")
    check_checkpoint("foo://x/y")


def test_folder_is_not_looked_for_below_a_url_that_only_spark_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    offsets = tmp_path / "hdfs:" / "progress" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.tmp").write_text("v1\n")
    clear_unfinished("hdfs:/progress")
    assert (offsets / ".0.tmp").exists()


def test_unfinished_files_are_deleted_unless_a_batch_has_begun(tmp_path: Path) -> None:
    url, offsets = checkpoint_url(NO_SPARK, tmp_path / "a b"), tmp_path / "a b" / "offsets"
    clear_unfinished(url)
    offsets.mkdir(parents=True)
    (offsets / ".0.tmp").write_text("v1\n")
    clear_unfinished(url)
    assert not list(offsets.iterdir())
    for name in ("0", ".1.tmp"):
        (offsets / name).write_text("v1\n")
    clear_unfinished(url)
    assert len(list(offsets.iterdir())) == 2
