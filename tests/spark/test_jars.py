"""Jars are fetched once, and used only with the checksum of the lock file."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from wirebook.problems import WirebookError
from wirebook.spark.jars import KAFKA, Jar, cache_folder, class_path, fetch, locked_jars

GOOD = Jar(hashlib.sha256(b"good").hexdigest(), "g", "org/a/1/a-1.jar")


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A Maven repository with one jar."""
    folder = tmp_path / "maven"
    (folder / "org/a/1").mkdir(parents=True)
    (folder / GOOD.path).write_bytes(b"good")

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def failure(jars: list[Jar], folder: Path, mirror: str) -> str:
    with pytest.raises(WirebookError) as caught:
        fetch(jars, folder, {"WIREBOOK_MAVEN": mirror})
    return str(caught.value)


def test_missing_jars_are_fetched_and_kept(tmp_path: Path, mirror: str) -> None:
    folder = tmp_path / "cache"
    fetch([GOOD], folder, {"WIREBOOK_MAVEN": mirror})
    assert [path.name for path in folder.iterdir()] == ["a-1.jar"]
    fetch([GOOD], folder, {"WIREBOOK_MAVEN": "http://127.0.0.1:1"})
    (folder / "a-1.jar").write_bytes(b"damaged")
    fetch([GOOD], folder, {"WIREBOOK_MAVEN": mirror})
    assert class_path([GOOD], folder) == str(folder / "a-1.jar")


def test_jar_with_another_checksum_is_refused(tmp_path: Path, mirror: str) -> None:
    folder = tmp_path / "cache"
    assert "checksum of a-1.jar" in failure([Jar("0" * 64, "g", GOOD.path)], folder, mirror)
    assert "404" in failure([Jar("0" * 64, "g", "org/b/1/b-1.jar")], folder, mirror)
    assert not [*folder.iterdir()]


def test_error_without_network_says_how_to_go_on(tmp_path: Path) -> None:
    error = failure([GOOD], tmp_path, "http://user:secret@127.0.0.1:1/maven2")
    assert "missing-jars" in error
    assert "a-1.jar" in error
    assert "http://127.0.0.1:1/maven2: " in error
    assert "secret" not in error
    assert "bad-setting" in failure([GOOD], tmp_path, "file:///etc")


def test_chosen_folder_must_have_every_jar(tmp_path: Path) -> None:
    with pytest.raises(WirebookError, match=r"lacks these jars, or has other versions of them: a-1\.jar") as caught:
        class_path([GOOD], tmp_path)
    assert "python -m wirebook.spark.jars" in str(caught.value.problems[0].hint)


def test_lock_file_has_the_kafka_connector() -> None:
    names = [jar.name.rpartition("-")[0] for jar in locked_jars(KAFKA)]
    assert names == [
        "commons-pool2",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    ]
    assert cache_folder({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/wirebook/jars")
    assert cache_folder({"HOME": "/h"}) == Path("/h/.cache/wirebook/jars")
