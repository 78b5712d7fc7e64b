"""Small reads of SQLite, answered by one thread, the event loop's: they share transactions, and answers are kept until
something is written. No other server has the file, so nothing is written but by this one.

Spec: docs/decisions/0104-request-threads.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from wirebook.httpapi.http.messages import ApiResponse, Incoming
from wirebook.storage.shared_transaction import Opening, ScheduleEnd, SharedTransaction

KEPT: Final = 16 * 1024 * 1024
"""Bytes of answers that are kept."""

EACH: Final = 1024
"""Bytes that an answer takes besides its body, about."""

LONGEST: Final = 64 * 1024
"""Bytes of an answer, and of the tags that a client sent, beyond which it is not kept."""


class Glances:
    """Answers reads of single entities, by `answer` or from those that are kept. `written` counts the transactions
    that wrote, each before anyone knows of it."""

    def __init__(
        self, opening: Opening, answer: Callable[[Incoming, Opening], ApiResponse], written: Callable[[], int]
    ) -> None:
        self._shared, self._answer, self._written = SharedTransaction(opening), answer, written
        self._kept: dict[tuple[str, str, str | None], ApiResponse] = {}
        self._size = self._seen = 0

    def answer(self, incoming: Incoming, later: ScheduleEnd) -> ApiResponse:
        """`later` takes what is to be done when all that had come before is answered."""
        self._forget()
        key = incoming.base, incoming.path, incoming.joined("if-none-match")
        answer = self._kept.get(key)
        if answer is None:
            answer = self._answer(incoming, partial(self._shared.until, later))
            self._keep(key, answer)
        return ApiResponse(answer.status, answer.body, {**answer.headers}, answer.tag)

    def _forget(self) -> None:
        """What was kept before something was written, and the transaction that was begun before that."""
        written = self._written()
        if written != self._seen:
            self._seen = written
            self._kept.clear()
            self._size = 0
            self._shared.end()

    def _keep(self, key: tuple[str, str, str | None], answer: ApiResponse) -> None:
        if answer.tag is None or not isinstance(answer.body, bytes):
            return
        size = len(answer.body) + len(key[1]) + len(key[2] or "")
        if size > LONGEST:
            return
        self._size += size + EACH
        if self._size > KEPT:
            self._kept.clear()
            self._size = size + EACH
        self._kept[key] = answer
