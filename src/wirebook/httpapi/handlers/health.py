"""Handlers that need no transaction: the health and the metrics of the server.

Spec: docs/registry.md#watching-a-server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.concurrency import run_in_threadpool

from wirebook.httpapi.handlers.metrics import CONTENT_TYPE, Metrics
from wirebook.httpapi.http.messages import RETRY_AFTER, ApiRequest, ApiResponse, text_response
from wirebook.storage.database import Database

READY_SECONDS: Final = 3
"""Seconds within which the database of a ready server answers."""


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of the running server.

    `is_ready` returns whether the database can be read and written. `stopping` is set when the server stops.
    """

    database: Database
    is_ready: Callable[[], bool]
    metrics: Metrics
    stopping: asyncio.Event


async def get_liveness(_: ServerState, __: ApiRequest) -> ApiResponse:
    """Return 200: the process accepts requests."""
    return text_response(200, "ok\n")


async def get_readiness(server: ServerState, _: ApiRequest) -> ApiResponse:
    """Return 200 if the database can be read and written, else 503; while the server stops, always return 503."""
    is_ready = False
    if not server.stopping.is_set():
        try:
            is_ready = await asyncio.wait_for(run_in_threadpool(server.is_ready), READY_SECONDS)
        except TimeoutError:
            is_ready = False
    if is_ready:
        return text_response(200, "ok\n")
    response = text_response(503, "not ready\n")
    response.headers["Retry-After"] = RETRY_AFTER
    return response


async def get_metrics(server: ServerState, _: ApiRequest) -> ApiResponse:
    """Return the metrics in the text format of Prometheus."""
    return ApiResponse(200, server.metrics.text(), {"Content-Type": CONTENT_TYPE})
