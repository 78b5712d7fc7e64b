"""The response cache: answers small SQLite reads on the event loop, from a shared transaction or from memory.

Responses are cached until the next write. No other server has the file open, so no other process writes to it.

Spec: docs/decisions/0104-request-threads.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from wirebook.httpapi.http.messages import ApiRequest, ApiResponse
from wirebook.httpapi.http.preconditions import IF_NONE_MATCH
from wirebook.storage.shared_transaction import Opening, ScheduleEnd, SharedTransaction

MAX_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of the cache in bytes."""

ENTRY_BYTES: Final = 1024
"""Approximate overhead of a cache entry in bytes."""

MAX_ENTRY_BYTES: Final = 64 * 1024
"""Maximum size of the body, path and If-None-Match of a cached response, in bytes."""

CacheKey = tuple[str, str, str | None]


class ResponseCache:
    """Answers reads of single entities.

    It is not thread-safe: use it on one thread. `begin_read` begins a read transaction, `handle` answers a request in
    it. `writes` returns the number of write transactions, which must increase before a client can see the result of a
    write.
    """

    def __init__(
        self, begin_read: Opening, handle: Callable[[ApiRequest, Opening], ApiResponse], writes: Callable[[], int]
    ) -> None:
        self._snapshot, self._handle, self._writes = SharedTransaction(begin_read), handle, writes
        self._responses: dict[CacheKey, ApiResponse] = {}
        self._size = self._writes_seen = 0

    def __len__(self) -> int:
        """Return the number of cached responses."""
        return len(self._responses)

    def respond(self, request: ApiRequest, call_soon: ScheduleEnd) -> ApiResponse:
        """Return the response, which the caller may modify. `call_soon` schedules the end of the shared transaction."""
        writes = self._writes()
        if writes != self._writes_seen:
            self._writes_seen = writes
            self._responses.clear()
            self._size = 0
            self._snapshot.end()
        key = request.base, request.path, request.joined(IF_NONE_MATCH)
        response = self._responses.get(key)
        if response is None:
            response = self._handle(request, partial(self._snapshot.until, call_soon))
            self._store(key, response)
        return ApiResponse(response.status, response.body, {**response.headers}, response.etag)

    def _store(self, key: CacheKey, response: ApiResponse) -> None:
        if response.etag is None or not isinstance(response.body, bytes):
            return
        size = len(response.body) + len(key[1]) + len(key[2] or "")
        if size > MAX_ENTRY_BYTES:
            return
        self._size += size + ENTRY_BYTES
        if self._size > MAX_BYTES:
            self._responses.clear()
            self._size = size + ENTRY_BYTES
        self._responses[key] = response
