"""Segments of captured messages in an object store: each group of messages is one object, which is durable at once."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime

from wirebook.capture.segments import IDENTITY_FILE, SUFFIX
from wirebook.landing.stores.objects import ObjectPath
from wirebook.landing.stores.records import ObjectRecords
from wirebook.problems import WirebookError

__all__ = ["ObjectSegments"]


class ObjectSegments:
    """A `wirebook.capture.segments.Sink` that writes objects, one gateway at a time. Nothing has to be recovered after
    a crash, but a gateway on another machine can start only when the lease has expired.

    Units: messages of `linger_seconds` share an object. They are acknowledged after it is uploaded.
    """

    recovered = 0

    def __init__(self, folder: ObjectPath, linger_seconds: float) -> None:
        """Take the lease of the folder. Raises: WirebookError (``target-locked``, ``store-failed``)"""
        self._folder, self.linger_seconds = folder, linger_seconds
        self._failed: tuple[str, list[bytes]] | None = None
        self._records = ObjectRecords(folder)
        with ExitStack() as lease:
            lease.enter_context(self._records.locked())
            self.identity = _identity_of(folder)
            self._lease = lease.pop_all()

    def write(self, lines: Sequence[bytes]) -> None:
        """Upload lines as one object. After a failure, the same lines have the same name again: the object may be
        there, if only the answer was lost.

        Raises: OSError, WirebookError (``target-locked``, if another gateway has taken over)
        """
        self._records.check_lock()
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(4)}{SUFFIX}"
        if self._failed is not None and self._failed[1] == [*lines]:
            name = self._failed[0]
        try:
            (self._folder / name).write_bytes(b"\n".join(lines) + b"\n")
        except WirebookError as error:  # the gateway tries again
            self._failed = name, [*lines]
            raise OSError(error.problems[0].message) from error
        self._failed = None

    def roll(self) -> None:
        """Every object is complete; only the lease is checked. Raises: WirebookError (``target-locked``)"""
        self._records.check_lock()

    def close(self) -> None:
        """Every object is complete; release the lease."""
        self._lease.close()


def _identity_of(folder: ObjectPath) -> str:
    """The identity of the folder, which is created once. Raises: WirebookError (``store-failed``)"""
    path, identity = folder / IDENTITY_FILE, secrets.token_hex(8)
    try:
        path.create(identity.encode())
    except FileExistsError:
        return path.read_bytes().decode()
    return identity
