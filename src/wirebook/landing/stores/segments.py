"""Segments of captured messages in an object store: each group of messages is one object, which is durable at once."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from wirebook.capture.segments import IDENTITY_FILE, SUFFIX
from wirebook.landing.stores.objects import ObjectPath
from wirebook.problems import WirebookError

__all__ = ["ObjectSegments"]


class ObjectSegments:
    """A `wirebook.capture.segments.Sink` that writes objects. Nothing has to be recovered after a crash.

    Units: messages of `linger_seconds` share an object. They are acknowledged after it is uploaded.
    """

    recovered = 0

    def __init__(self, folder: ObjectPath, linger_seconds: float) -> None:
        """Raises: WirebookError (``store-failed``)"""
        self._folder, self.linger_seconds = folder, linger_seconds
        self._failed: tuple[str, list[bytes]] | None = None
        identity = folder / IDENTITY_FILE
        try:
            self.identity = secrets.token_hex(8)
            identity.create(self.identity.encode())
        except FileExistsError:
            self.identity = identity.read_bytes().decode()

    def write(self, lines: Sequence[bytes]) -> None:
        """Upload lines as one object. After a failure, the same lines have the same name again: the object may be
        there, if only the answer was lost.

        Raises: OSError
        """
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
        """Nothing: every object is complete."""

    def close(self) -> None:
        """Nothing: every object is complete."""
