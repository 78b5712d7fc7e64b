"""Java libraries that Spark needs and PySpark does not include, pinned by checksum and downloaded once.

`python -m wirebook.spark.jars FOLDER` downloads them into a folder, for machines without network access.

Spec: docs/decisions/0196
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from wirebook.landing.user_cache import user_cache
from wirebook.problems import Problem, WirebookError

__all__ = ["KAFKA", "cache_folder", "class_path", "locked_jars"]

LOCK: Final = Path(__file__).parent / "jars.lock"
KAFKA: Final = "kafka"
"""The group of Spark's Kafka connector."""
MAVEN_CENTRAL: Final = "https://repo1.maven.org/maven2"
MIRROR: Final = "WIREBOOK_MAVEN"
"""The environment variable with the URL of a mirror of Maven Central."""
TIMEOUT_SECONDS: Final = 60
MAX_JAR: Final = 64 << 20
"""The maximum size of a jar in bytes. A longer response is not read to the end."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A line of a lock file. `path` is the path in a Maven repository."""

    sha256: str
    group: str
    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def is_in(self, folder: Path) -> bool:
        """Whether the folder has the jar with this checksum."""
        try:
            return hashlib.sha256((folder / self.name).read_bytes()).hexdigest() == self.sha256
        except OSError:
            return False


def locked_jars(group: str, lock: Path = LOCK) -> list[Jar]:
    """Return the jars of one group in a lock file."""
    jars = (Jar(*line.split()) for line in lock.read_text().splitlines())
    return [jar for jar in jars if jar.group == group]


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder for downloaded jars."""
    return user_cache(environment) / "jars"


def class_path(jars: list[Jar], folder: Path | None = None) -> str:
    """Return the class path of jars in `folder`. By default this is the cache, and missing jars are downloaded.

    Raises: missing-jars
    """
    if folder is None:
        folder = cache_folder()
        fetch(jars, folder)
    elif absent := [jar.name for jar in jars if not jar.is_in(folder)]:
        message = f"'{folder}' lacks these jars, or has other versions of them: {', '.join(absent)}"
        raise WirebookError(Problem("missing-jars", message, expected=absent, hint=_hint(str(folder))))
    return os.pathsep.join(str(folder.absolute() / jar.name) for jar in jars)


def fetch(jars: list[Jar], folder: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Download the jars that a folder lacks from Maven Central, or from the mirror in WIREBOOK_MAVEN.

    Cost: 1-3 seconds for the Kafka connector (10 MB), then some milliseconds for the checksums.
    Raises: missing-jars
    """
    absent = [jar for jar in jars if not jar.is_in(folder)]
    if not absent:
        return
    base = (environment.get(MIRROR) or MAVEN_CENTRAL).rstrip("/")
    url = urlsplit(base)
    server = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
    if url.scheme not in ("http", "https"):
        message = f"{MIRROR} must be an http or https URL; got '{server}'"
        raise WirebookError(Problem("bad-setting", message, expected="an http or https URL", actual=server))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(6) as pool:
            for _ in pool.map(lambda jar: _download(f"{base}/{jar.path}", jar, folder), absent):
                pass
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        names = ", ".join(jar.name for jar in absent)
        message = f"'{folder}' lacks {names}, and they cannot be fetched from {server}: {reason}"
        raise WirebookError(Problem("missing-jars", message, hint=_hint("FOLDER"))) from error


def _download(url: str, jar: Jar, folder: Path) -> None:
    """Raises: OSError, and ValueError if the content is not what the lock file expects."""
    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 (the scheme is checked)
            data = response.read(MAX_JAR + 1)
    except HTTPError as error:
        error.close()
        raise OSError(f"HTTP {error.code} {error.reason}: {jar.path}") from error
    if hashlib.sha256(data).hexdigest() != jar.sha256:
        raise ValueError(f"the checksum of {jar.name} is not that of the lock file")
    with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{jar.name}.", delete=False) as file:
        file.write(data)
    os.chmod(file.name, 0o644)
    os.replace(file.name, folder / jar.name)


def _hint(folder: str) -> str:
    return (
        f"on a machine with network, run: python -m wirebook.spark.jars {folder}; copy the folder, and name it with "
        f"--jars. {MIRROR} names a mirror of Maven Central"
    )


if __name__ == "__main__":
    try:
        fetch(locked_jars(KAFKA), Path(sys.argv[1]) if len(sys.argv) > 1 else cache_folder())
    except WirebookError as error:
        sys.exit(str(error))
