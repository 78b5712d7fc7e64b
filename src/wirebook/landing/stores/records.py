"""The records of a target: small files below ``_wirebook``, which only one run at a time writes.

In a folder, a lock of the operating system excludes other runs. In an object store and in HDFS, a *lease* does: a
numbered object that its holder creates, renews and marks as released. A lease that has not been renewed for a minute
has expired, and the next run takes over. If the earlier run was only slow, it does no harm: manifests are created,
never replaced, so it can commit its batch only as long as no other run has committed a batch of this number.

Spec: docs/land.md#the-target-folder; docs/decisions/0195
"""

from __future__ import annotations

import fcntl
import io
import os
import socket
import threading
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

import msgspec

from wirebook.landing.stores.locations import DurableFile, Location
from wirebook.landing.stores.objects import OBJECTS_AT_ONCE, ObjectChanged, ObjectPath, ObjectStatus
from wirebook.problems import Problem, WirebookError

__all__ = [
    "LEASE_SECONDS",
    "FolderRecords",
    "Holder",
    "ObjectRecords",
    "Records",
    "open_atomically",
    "records_of",
    "sync_folder",
    "write_atomically",
    "write_durably",
]

LEASE_SECONDS: Final = 60
"""A lease that has not been renewed for this time has expired."""
UNRELEASED: Final = set[str]()
"""IDs of leases that this process no longer holds, but could not release because the store did not answer."""
LOCKS: Final = Path("/proc/locks")
"""The file that lists the locks of this machine, on Linux."""


class Holder(NamedTuple):
    """The run that holds a target, or held it last. `is_running` is None if this machine cannot know."""

    owner: str
    is_running: bool | None


class Records(Protocol):
    """The small files of a target, by name, such as ``batches/1.json``."""

    def exists(self) -> bool:
        """Whether the target has any records."""

    def location(self, name: str) -> Location: ...

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, in no order. Raises: OSError, store-failed"""

    def read(self, names: Iterable[str]) -> Iterator[bytes]:
        """The contents of files that `names` has listed. They are never replaced, and may be cached.

        Raises: OSError, store-failed
        """

    def write(self, name: str, data: bytes) -> None:
        """Write a file completely or not at all. Raises: unwritable-target, store-failed"""

    def create(self, name: str, data: bytes) -> None:
        """Write a file that does not exist yet. Raises: FileExistsError, unwritable-target, store-failed"""

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""

    def check_lock(self) -> None:
        """Check that this run still holds the target. Raises: target-locked"""

    def holder(self) -> Holder | None:
        """The holder of the target, found without taking a lock; None if no run has ever held it.

        Raises: OSError, store-failed
        """

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the target. If the process is killed, a lock ends at once, and a lease expires.

        Raises: target-locked, unwritable-target, store-failed
        """


def records_of(root: Location) -> Records:
    """The records of the target at `root`."""
    return ObjectRecords(root) if isinstance(root, ObjectPath) else FolderRecords(root)


# -- folders -------------------------------------------------------------------------------------------------------


class FolderRecords:
    """Records in a folder."""

    def __init__(self, root: Path) -> None:
        self._root, self._home = root, root / "_wirebook"

    def exists(self) -> bool:
        return self._home.is_dir()

    def location(self, name: str) -> Path:
        return self._home / name

    def names(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError):
            return [name for name in os.listdir(self._home / folder) if not name.startswith(".")]
        return []

    def read(self, names: Iterable[str]) -> Iterator[bytes]:
        return ((self._home / name).read_bytes() for name in names)

    def write(self, name: str, data: bytes) -> None:
        path = self._home / name
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
        write_atomically(path, data)

    def create(self, name: str, data: bytes) -> None:
        if (self._home / name).exists():  # no race: only the run that holds the lock writes
            raise FileExistsError(self._home / name)
        self.write(name, data)

    def delete(self, name: str) -> None:
        (self._home / name).unlink(missing_ok=True)

    def check_lock(self) -> None:
        pass

    def holder(self) -> Holder | None:
        path = self._home / "lock"
        try:
            process, _, host = path.read_text(errors="replace").strip().partition(" on ")
        except FileNotFoundError:
            return None
        if not process:  # a run has just created the file and is about to write to it
            return Holder("another run", None)
        owner = f"process {process} on {host}"
        if host != os.uname().nodename or not LOCKS.exists():
            return Holder(owner, None)
        held = (line.split() for line in LOCKS.read_text().splitlines())
        inode = str(path.stat().st_ino)
        return Holder(
            owner, any(lock[4] == process and lock[5].endswith(f":{inode}") for lock in held if len(lock) > 5)
        )

    @contextmanager
    def locked(self) -> Iterator[None]:
        try:
            self._home.mkdir(parents=True, exist_ok=True)
            fd = os.open(self._home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise WirebookError(_unwritable(self._root, error)) from error
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                owner = os.pread(fd, 100, 0).decode(errors="replace").strip() or "unknown"
                message = f"another run (process {owner}) is writing to '{self._root}'"
                raise WirebookError(Problem("target-locked", message, hint="wait until it has ended")) from error
            except OSError as error:  # for example, a network file system without locks
                raise WirebookError(_unwritable(self._root / "_wirebook/lock", error)) from error
            try:
                os.ftruncate(fd, 0)
                os.pwrite(fd, f"{os.getpid()} on {os.uname().nodename}\n".encode(), 0)
            except OSError as error:
                raise WirebookError(_unwritable(self._root, error)) from error
            yield
        finally:
            os.close(fd)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file to disk completely or not at all.

    Raises: unwritable-target
    """
    with open_atomically(path) as file:
        file.write(data)


@contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a new file, which replaces `path` once it is complete and on disk.

    Raises: unwritable-target
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with io.BufferedWriter(DurableFile(partial, "w")) as file:
            yield file
        os.rename(partial, path)
        sync_folder(path.parent)
    except OSError as error:
        raise WirebookError(_unwritable(path, error)) from error
    finally:
        with suppress(OSError):
            partial.unlink()


def write_durably(path: Path, data: bytes) -> None:
    """Write a file and flush it to disk. After a failure, a part of it may exist.

    Raises: OSError
    """
    with io.BufferedWriter(DurableFile(path, "w")) as file:
        file.write(data)


def sync_folder(folder: Path) -> None:
    """Flush a folder, so that renames in it survive a power failure."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _unwritable(path: Path, error: OSError) -> Problem:
    return Problem(code="unwritable-target", message=f"cannot write to '{path}': {error.strerror or error}")


# -- object stores -------------------------------------------------------------------------------------------------


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a lease: its holder. `place` identifies the machine since its start, and the PID namespace."""

    id: str
    process: int
    host: str
    place: str
    released: bool = False

    @property
    def is_dead(self) -> bool:
        """Whether its process was on this machine and has ended, or is this process, which no longer holds it."""
        if self.id in UNRELEASED:
            return True
        if self.place != _place():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class ObjectRecords:
    """Records in an object store or HDFS, which can create an object on the condition that it does not exist."""

    def __init__(self, root: ObjectPath) -> None:
        self._root, self._home = root, root / "_wirebook"
        self._listed: dict[str, dict[str, str]] = {}
        self._lease: tuple[int, Lease] | None = None
        self._lost = False

    def exists(self) -> bool:
        return self._home.is_dir()

    def location(self, name: str) -> ObjectPath:
        return self._home / name

    def names(self, folder: str) -> list[str]:
        self._listed[folder] = {path.name: status.version for path, status in (self._home / folder).below()}
        return [*self._listed[folder]]

    def read(self, names: Iterable[str]) -> Iterator[bytes]:
        paths = [self._home / name for name in names]
        versions = [self._listed.get(path.parent.name, {}).get(path.name) for path in paths]
        with ThreadPoolExecutor(OBJECTS_AT_ONCE) as pool:
            yield from pool.map(_read_version, paths, versions)

    def write(self, name: str, data: bytes) -> None:
        (self._home / name).write_bytes(data)

    def create(self, name: str, data: bytes) -> None:
        (self._home / name).create(data)

    def delete(self, name: str) -> None:
        (self._home / name).unlink()

    def holder(self) -> Holder | None:
        leases = self._leases()
        if not leases:
            return None
        newest = max(leases)
        lease = self._read_lease(newest)
        if lease is None:
            return Holder("another run", None)
        owner = f"process {lease.process} on {lease.host}"
        if lease.released or lease.is_dead:
            return Holder(owner, False)
        age = (datetime.now(UTC) - leases[newest].modified).total_seconds()
        return Holder(owner, True if age < LEASE_SECONDS else None)  # None: the clocks may differ

    # -- the lease -----------------------------------------------------------------------------------------------

    def check_lock(self) -> None:
        if self._lost:
            message = f"another run has taken over '{self._root}', because this one did not answer for a minute"
            raise WirebookError(
                Problem("target-locked", message, hint="run the command again once the other has ended")
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        number = self._take()
        done = threading.Event()
        renewal = threading.Thread(target=self._renew, args=(number, done), daemon=True)
        renewal.start()
        try:
            yield
        finally:
            done.set()
            renewal.join()
            if not self._lost and self._lease:
                released = msgspec.structs.replace(self._lease[1], released=True)
                try:
                    self._lease_path(number).write_bytes(msgspec.json.encode(released))
                except (WirebookError, OSError):  # other processes wait until it expires
                    UNRELEASED.add(self._lease[1].id)
            self._lease = None

    def _lease_path(self, number: int) -> ObjectPath:
        return self._home / "leases" / f"{number}.json"

    def _leases(self) -> dict[int, ObjectStatus]:
        """The leases by number."""
        below = (self._home / "leases").below()
        return {int(path.name.partition(".")[0]): status for path, status in below if path.name[:1].isdigit()}

    def _read_lease(self, number: int) -> Lease | None:
        """A lease that was listed; None if another run has since taken the next one and deleted this one, or if its
        holder has just replaced it.

        Raises: store-failed
        """
        try:
            return msgspec.json.decode(self._lease_path(number).read_bytes(), type=Lease)
        except (FileNotFoundError, ObjectChanged):
            return None

    def _take(self) -> int:
        """Take the next lease, unless the newest is held; returns its number.

        Raises: target-locked, store-failed
        """
        leases = self._leases()
        newest = max(leases, default=0)
        if newest:
            holder = self._read_lease(newest)
            if holder is None:
                raise self._held_by(None, LEASE_SECONDS)
            if not (holder.released or holder.is_dead):
                now = self._now()
                try:  # it may have been renewed since it was listed
                    age = (now - self._lease_path(newest).status().modified).total_seconds()
                except FileNotFoundError as error:  # as in `_read_lease`
                    raise self._held_by(None, LEASE_SECONDS) from error
                if age < LEASE_SECONDS:
                    raise self._held_by(holder, LEASE_SECONDS - age)
        own = Lease(id=uuid.uuid4().hex, process=os.getpid(), host=socket.gethostname(), place=_place())
        number = newest + 1
        try:
            self._create_lease(number, own)
        except WirebookError:  # the store may have it nevertheless; other processes wait until it expires
            UNRELEASED.add(own.id)
            raise
        self._lease, self._lost = (number, own), False
        return number

    def _create_lease(self, number: int, lease: Lease) -> None:
        """Create a lease, and delete those before it.

        Raises: target-locked, store-failed
        """
        try:
            self._lease_path(number).create(msgspec.json.encode(lease))
        except (FileExistsError, FileNotFoundError) as error:  # another run has created it, and may have deleted it
            raise self._held_by(None, LEASE_SECONDS) from error
        leases = self._leases()
        if max(leases, default=number) > number:  # others have taken this number and the next one, and deleted this one
            self._lease_path(number).unlink()
            raise self._held_by(None, LEASE_SECONDS)
        for older in leases.keys() - {number}:
            self._lease_path(older).unlink()

    def _held_by(self, holder: Lease | None, left: float) -> WirebookError:
        owner = f" (process {holder.process} on {holder.host})" if holder else ""
        message = f"another run{owner} is writing to '{self._root}'"
        hint = f"wait until it has ended; if it has crashed, the target is free in {max(left, 1):.0f} s"
        return WirebookError(Problem("target-locked", message, hint=hint))

    def _now(self) -> datetime:
        """The current time by the clock of the store."""
        probe = self._home / "leases" / f"clock-{uuid.uuid4().hex}"
        probe.write_bytes(b"")
        try:
            return probe.status().modified
        finally:
            probe.unlink()

    def _renew(self, number: int, done: threading.Event) -> None:
        """Renew the lease until `done`, or until another run has taken the next one, which sets `_lost`. After any
        failure, try again; if no attempt succeeds for a minute, the lease expires."""
        while not done.wait(LEASE_SECONDS / 4):
            with suppress(Exception):
                if max(self._leases(), default=0) > number:
                    self._lost = True
                    return
                if self._lease:
                    self._lease_path(number).write_bytes(msgspec.json.encode(self._lease[1]))


@lru_cache(maxsize=512)
def _read_version(path: ObjectPath, version: str | None) -> bytes:
    """The content of one version of an object. Cached for callers that open the target again for each batch."""
    return path.read_bytes(version=version)


@lru_cache(maxsize=1)
def _place() -> str:
    """Identifies the machine since its last start, and the PID namespace."""
    parts = [socket.gethostname()]
    with suppress(OSError):
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text().strip(), os.readlink("/proc/self/ns/pid")]
    return "/".join(parts)
