"""Segments of captured messages in an object store. Each group of messages becomes one object, which is durable."""

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
    """A `wirebook.capture.segments.Sink` that writes objects.

    One gateway at a time writes to a folder. Nothing needs recovery after a crash, but a gateway on another machine can
    start only when the lease has expired.

    Units: messages that arrive within `linger_seconds` share an object. They are acknowledged after it is uploaded.
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
        """Upload lines as one object. If the upload fails and the same lines are written again, the object has the same
        name again, because it may exist: perhaps only the answer of the store was lost.

        Raises: OSError, WirebookError (``target-locked``, if another gateway has taken over)
        """
        self._records.check_lock()
        name = f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}-{secrets.token_hex(4)}{SUFFIX}"
        if self._failed is not None and self._failed[1] == [*lines]:
            name = self._failed[0]
        try:
            (self._folder / name).write_bytes(b"\n".join(lines) + b"\n")
        except WirebookError as error:  # the gateway retries
            self._failed = name, [*lines]
            raise OSError(error.problems[0].message) from error
        self._failed = None

    def roll(self) -> None:
        """Check the lease; there is no open segment to end. Raises: WirebookError (``target-locked``)"""
        self._records.check_lock()

    def close(self) -> None:
        """Release the lease; all objects are complete."""
        self._lease.close()


def _identity_of(folder: ObjectPath) -> str:
    """The identity of the folder, which is created once. Raises: WirebookError (``store-failed``)"""
    path, identity = folder / IDENTITY_FILE, secrets.token_hex(8)
    try:
        path.create(identity.encode())
    except FileExistsError:
        return path.read_bytes().decode()
    return identity
