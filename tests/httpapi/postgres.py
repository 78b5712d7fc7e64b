"""A PostgreSQL of its own for tests and long runs: started from the system's packages, thrown away afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import make_url


def is_installed() -> bool:
    return bool(_binaries())


def _binaries() -> list[Path]:
    return sorted(Path("/usr/lib/postgresql").glob("*/bin"))


@contextmanager
def running_postgresql() -> Iterator[str]:
    """The address of a server that is reachable by its socket alone."""
    folder = Path(tempfile.mkdtemp(prefix="wirebook-postgresql-"))  # not in pytest's own, which others may not enter
    try:
        yield from _started(_binaries()[-1], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _started(binaries: Path, folder: Path) -> Iterator[str]:
    data, user = folder / "data", []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    run = {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL}
    subprocess.run([*user, binaries / "initdb", "-D", data, "-U", "tests", "-A", "trust", "--no-sync"], **run)
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
    log = folder / "log"
    subprocess.run([*user, binaries / "pg_ctl", "-D", data, "-w", "-l", log, "-o", options, "start"], **run)
    try:
        yield f"postgresql://tests@/postgres?host={folder}"
    finally:
        subprocess.run([*user, binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop"], **run)


def new_database(address: str, name: str, options: str = "") -> str:
    """The address of a database `name` beside that of `address`, which is made anew, with `options` of SQL."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        connection.execute(f'CREATE DATABASE "{name}" {options}'.encode())
    return make_url(address).set(database=name).render_as_string(hide_password=False)
