"""Prometheus metrics and health checks of the gateway and of streams, on a separate address.

Spec: docs/how-to/capture.md#watch-it; docs/how-to/watch.md#prometheus
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from wirebook.capture.http import listening_socket, reply, serve_until, url_of
from wirebook.capture.status import GatewayStatus


class Health(Protocol):
    """Whether a program is ready, and its figures as JSON."""

    @property
    def is_ready(self) -> bool: ...
    def to_dict(self) -> dict[str, Any]: ...


class StatusCollector(Collector):
    """The figures of a gateway as metrics."""

    def __init__(self, status: GatewayStatus) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield every metric (called by prometheus_client)."""
        endpoints = self._status.endpoints
        for name, attribute, text in (
            ("messages", "received", "Messages received."),
            ("message_bytes", "received_bytes", "Bytes of the capture lines of the messages received."),
            ("acknowledged", "acknowledged", "Messages acknowledged after they were durable."),
            ("connections", "connections", "Connections made to the broker."),
        ):
            counter = CounterMetricFamily(f"wirebook_capture_{name}", text, labels=("endpoint",))
            for endpoint in endpoints:
                counter.add_metric((endpoint.xid,), getattr(endpoint, attribute))
            yield counter
        text = "Messages that were not captured, by reason."
        rejected = CounterMetricFamily("wirebook_capture_rejected", text, labels=("endpoint", "reason"))
        receiving = GaugeMetricFamily("wirebook_capture_receiving", "1 while receiving.", labels=("endpoint",))
        for endpoint in endpoints:
            receiving.add_metric((endpoint.xid,), int(endpoint.is_receiving))
            for reason, count in endpoint.rejected.items():
                rejected.add_metric((endpoint.xid, reason), count)
        yield from (rejected, receiving)
        status = self._status
        yield CounterMetricFamily("wirebook_capture_durable", "Messages in segments.", value=status.messages)
        text = "Writes of segments that failed."
        yield CounterMetricFamily("wirebook_capture_write_failures", text, value=status.write_failures)
        text = "Bytes in memory that are not durable yet, or reserved for HTTP bodies."
        yield GaugeMetricFamily("wirebook_capture_pending_bytes", text, value=status.pending_bytes)
        text = "Seconds to make a group of messages durable."
        name = "wirebook_capture_write_seconds"
        yield SummaryMetricFamily(name, text, count_value=status.groups, sum_value=status.write_seconds)


class MetricsApp:
    """The ASGI application of ``/metrics``, ``/healthz`` and ``/readyz``."""

    def __init__(self, status: Health, *collectors: Collector) -> None:
        self._status = status
        self._registry = CollectorRegistry()
        for collector in collectors:
            self._registry.register(collector)
        ProcessCollector(registry=self._registry)

    async def __call__(self, scope: dict[str, Any], _: Any, send: Any) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await reply(send, 405, "use GET", {"Allow": "GET, HEAD"})
        elif scope["path"] == "/metrics":
            await reply(send, 200, generate_latest(self._registry).decode())
        elif scope["path"] == "/healthz":
            await reply(send, 200, "ok")
        elif scope["path"] == "/readyz":
            status = self._status
            text = json.dumps({"ready": status.is_ready} | status.to_dict(), indent=2)
            await reply(send, 200 if status.is_ready else 503, text, {"Content-Type": "application/json"})
        else:
            await reply(send, 404, "see /metrics, /healthz and /readyz")


@contextmanager
def serving(app: MetricsApp, listener: socket.socket) -> Iterator[str]:
    """Serve metrics in a thread while the block runs; yields the URL."""
    ready, stop = threading.Event(), list[Any]()

    async def serve() -> None:
        stopping = asyncio.Event()
        stop.extend((asyncio.get_running_loop(), stopping))
        ready.set()
        await serve_until(stopping, app, listener)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="metrics", daemon=True)
    url = url_of(listener)
    thread.start()
    ready.wait()
    try:
        yield url
    finally:
        loop, stopping = stop
        loop.call_soon_threadsafe(stopping.set)
        thread.join()


def metrics_listener(address: tuple[str, int]) -> socket.socket:
    """Listen on the address of `--metrics-address`. Raises: WirebookError (``address-in-use``)"""
    return listening_socket(*address, hint="choose another --metrics-address")
