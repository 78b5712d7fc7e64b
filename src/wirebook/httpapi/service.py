"""The service: runs each request in a transaction, on a suitable thread, and turns every error into a response.

`respond` is the entry point on the event loop. It answers a small read from the response cache (SQLite) or by the read
batcher (PostgreSQL), runs a write in the commit queue, and everything else in a worker thread. Every request passes
through `handle` and `routes.dispatch`.

Spec: core/http.md#http-api-patterns; core/http.md#error-processing; docs/decisions/0104-request-threads.md.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final, TypeVar
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool

from wirebook.core.model.target import DETAILS
from wirebook.httpapi.concurrency.commit_queue import CommitQueue
from wirebook.httpapi.concurrency.read_batcher import ReadBatcher
from wirebook.httpapi.concurrency.response_cache import ResponseCache
from wirebook.httpapi.handlers.context import RequestContext, ServerContext
from wirebook.httpapi.handlers.imports import IMPORT_PATH, DryRun, parse_catalogue
from wirebook.httpapi.handlers.settings import SettingsCache
from wirebook.httpapi.http.fetching import FetchedIncludes, IncludeNotFetched
from wirebook.httpapi.http.messages import (
    JSON,
    READ_METHODS,
    ApiRequest,
    ApiResponse,
    add_root_link,
    error_response,
)
from wirebook.httpapi.http.preconditions import IF_MATCH, check_read
from wirebook.httpapi.http.spool import BodySpool, BrokenBody
from wirebook.httpapi.logs import describe, format_stack, log_failure
from wirebook.httpapi.routes import complete_read, dispatch
from wirebook.problems.xregistry import Refused, refused
from wirebook.storage.database import Database
from wirebook.storage.outages import OUTAGES, Unavailable, Unwritable
from wirebook.storage.session import ReadFailure, Session, WriteConflict
from wirebook.storage.shared_transaction import Opening, ScheduleEnd
from wirebook.storage.streaming import TooSlow

LOG: Final = logging.getLogger("wirebook.registry")
MAX_CONFLICTS: Final = 5
"""Number of write conflicts after which a write fails."""

MAX_EXPORTS: Final = 2
"""Maximum number of exports that are rendered at the same time; others wait."""

NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)

T = TypeVar("T")


class Service:
    """A registry on a database."""

    def __init__(self, database: Database, context: ServerContext) -> None:
        self.database, self.context, self.settings = database, context, SettingsCache()
        self.commit_queue = CommitQueue(database)
        self.response_cache = ResponseCache(database.short_reading, self.handle, lambda: database.written)
        self._read_batcher = None if database.is_sqlite else ReadBatcher(self._begin_read, self.handle)
        self._exports = ThreadPoolExecutor(MAX_EXPORTS, thread_name_prefix="export")

    def close(self) -> None:
        """Finish the queued requests, then end the threads."""
        self.commit_queue.close()
        if self._read_batcher:
            self._read_batcher.close()
        self._exports.shutdown(cancel_futures=True)

    # -- on the event loop --------------------------------------------------------------------------------------------

    async def respond(self, request: ApiRequest, write_seconds: float) -> ApiResponse:
        """Return the response to a request.

        A write that is not begun within `write_seconds` is rejected with server_busy. Imports and retries of a write
        wait without this limit.
        """
        if response := self.read_cached(request, asyncio.get_running_loop().call_soon):
            return response
        if reading := self.read_batched(request):
            return await asyncio.wrap_future(reading)
        if request.method in READ_METHODS or _is_import(request):
            return await run_in_threadpool(self.handle, request)
        request.includes = FetchedIncludes(self.context.fetch)
        first_attempt = self.commit_queue.submit(lambda session: self._dispatch(request, session))
        if await _succeeds(first_attempt, write_seconds):
            return self.handle(request, first_attempt=first_attempt)
        return await run_in_threadpool(self.handle, request, first_attempt=first_attempt)

    def read_cached(self, request: ApiRequest, call_soon: ScheduleEnd) -> ApiResponse | None:
        """Return the response to a cacheable read of SQLite, else None.

        The read is answered on the calling thread, because handing it to another thread takes longer. Call this on one
        thread only. `call_soon` schedules a call after the reads that are due now.
        """
        if not self.database.is_sqlite or not self._is_cacheable(request):
            return None
        return self.response_cache.respond(request, call_soon)

    def read_batched(self, request: ApiRequest) -> Future[ApiResponse] | None:
        """Return the future response to a cacheable read of PostgreSQL, else None. Such reads share a snapshot."""
        if not self._read_batcher or not self._is_cacheable(request):
            return None
        return self._read_batcher.submit(request, "/".join(request.path.removesuffix(DETAILS).split("/")[:5]))

    def _is_cacheable(self, request: ApiRequest) -> bool:
        """Return whether a request reads one Resource, meta or Version, without document, parameters and If-Match."""
        parts = request.path.split("/")
        if request.method not in ("GET", "HEAD") or request.query or not 5 <= len(parts) <= 7:
            return False
        settings = self.settings.last
        if settings is None or (len(parts) == 6 and parts[5] != "meta") or "\0" in request.path:
            return False
        if request.header(IF_MATCH) is not None:
            return False
        group = settings.model.groups.get(parts[1])
        type_ = group.resources.get(parts[3]) if group else None
        return type_ is not None and (not type_.hasdocument or request.path.endswith(DETAILS))

    # -- in any thread ------------------------------------------------------------------------------------------------

    def handle(
        self,
        request: ApiRequest,
        begin_read: Opening | None = None,
        *,
        first_attempt: Future[ApiResponse] | None = None,
    ) -> ApiResponse:
        """Return the response to a request, also if the request fails.

        `begin_read` begins the transaction of a read; None begins a new one. `first_attempt` is the attempt of a write
        that is already in the commit queue.
        """
        try:
            if request.method == "HEAD":
                request = replace(request, method="GET")
            if request.method == "GET" and request.path == "/export":
                response = self._export(request)
            elif request.method in READ_METHODS:
                with (begin_read or self._begin_read)() as session:
                    response = self._dispatch(request, session)
            else:
                response = self._write(request, first_attempt)
            if request.method != "GET":
                return add_root_link(response, request.base)
            complete_read(response, request.base)
            if response.status in (200, 304):
                check_read(request, response.etag)
            return response
        except Refused as refusal:
            error = refusal
        except Unavailable:
            self.database.unavailable.count()
            error = refused("database_unavailable", request.path)
        except Unwritable as outage:
            self.database.unwritable.count()
            error = refused("insufficient_storage" if outage.is_full else "database_unwritable", request.path)
        except TooSlow:
            LOG.warning("the request exceeded its time limit: %s %s", request.method, quote(request.path))
            error = refused("server_busy", request.path)
        except ReadFailure as failure:
            log_failure(LOG, "the database cannot be read", request.method, request.path, failure)
            error = refused("data_retrieval_error", request.path)
        except Exception as failure:
            is_full = isinstance(failure, OSError) and failure.errno in NO_SPACE  # for the spool of a large response
            log_failure(LOG, "the request failed", request.method, request.path, failure)
            error = refused("insufficient_storage" if is_full else "server_error", request.path)
        return add_root_link(error_response(error), request.base)

    def _begin_read(self) -> AbstractContextManager[Session]:
        return self.database.reading(self.context.limits.read_seconds)

    def _dispatch(self, request: ApiRequest, session: Session) -> ApiResponse:
        """Handle a request in a transaction."""
        return dispatch(RequestContext(request, session, self.settings.load(session), self.context))

    def _write(self, request: ApiRequest, attempt: Future[ApiResponse] | None) -> ApiResponse:
        """Run a write until it is committed, again after a write conflict and after the fetch of an include.

        Raises: Refused (server_busy after too many conflicts, or if the first attempt was not begun in time),
            Unavailable, Unwritable, TooSlow
        """
        if request.includes is None:
            request.includes = FetchedIncludes(self.context.fetch)
        if _is_import(request) and self.context.read_catalogue:
            request.catalogue = parse_catalogue(request, self.context.read_catalogue)
        conflicts = 0
        while conflicts < MAX_CONFLICTS:
            attempt = attempt or self.commit_queue.submit(lambda session: self._dispatch(request, session))
            try:
                return attempt.result()
            except DryRun as dry_run:
                return dry_run.response
            except CancelledError:  # it was not begun in time
                break
            except WriteConflict as error:
                conflicts += 1
                LOG.info("a write conflict occurred, retrying: %s", describe(error.__cause__ or error))
            except IncludeNotFetched as include:  # fetched here, outside of any transaction
                request.includes.fetch(include.address)
            attempt = None
        raise refused("server_busy", request.path)

    def _export(self, request: ApiRequest) -> ApiResponse:
        """Return the export. A large export is sent while it is rendered."""
        spool = BodySpool()
        request = replace(request, spool=spool)

        def render() -> ApiResponse:
            with self.database.reading(self.context.limits.export_seconds) as session:
                return self._dispatch(request, session)

        rendering = self._exports.submit(render)
        rendering.add_done_callback(lambda done: _end_export(spool, done))
        return ApiResponse(200, spool, {"Content-Type": JSON}) if spool.wait_for_start() else rendering.result()

    def write(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a write transaction and return its result.

        Raises: what `work` raises; Unavailable, Unwritable, WriteConflict, TooSlow
        """
        return self.commit_queue.submit(work).result()

    # -- state ------------------------------------------------------------------------------------------------------

    def is_ready(self) -> bool:
        """Return whether the database can be read and written.

        It tests a write only during an outage of writes.
        """
        try:
            with self.database.reading() as session:
                self.settings.load(session)
            if not self.database.has_space():
                return False
            if self.database.unwritable.is_on:
                self.write(Session.write_registry_row)
        except OUTAGES:
            return False
        except Exception as error:
            LOG.warning("the readiness check failed: %s", describe(error))
            return False
        return True

    def has_group_type(self, plural: str) -> bool:
        """Return whether the model has this Group type, according to the cached settings."""
        return self.settings.last is not None and plural in self.settings.last.model.groups


def _is_import(request: ApiRequest) -> bool:
    return (request.method, "/" + request.path.strip("/")) == ("POST", IMPORT_PATH)


def _end_export(spool: BodySpool, rendering: Future[ApiResponse]) -> None:
    """Mark the spool of an export as complete or failed, and log a failure if a part of the export was sent."""
    error = None if rendering.cancelled() else rendering.exception()
    if spool.size and error and not isinstance(error, BrokenBody):
        LOG.error("an export failed after it was partly sent\n%s", format_stack(error))
    spool.end(failed=rendering.cancelled() or error is not None)


async def _succeeds(attempt: Future[ApiResponse], seconds: float) -> bool:
    """Wait for a queued write and return whether it succeeded. Cancel it if it is not begun within `seconds`."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def wake() -> None:
        if not ended.done():
            ended.set_result(None)

    attempt.add_done_callback(lambda _: loop.is_closed() or loop.call_soon_threadsafe(wake))
    timer = loop.call_later(seconds, attempt.cancel)
    try:
        await ended
    finally:
        timer.cancel()
        attempt.cancel()  # no effect unless this task was cancelled while the write was queued
    return not attempt.cancelled() and attempt.exception() is None
