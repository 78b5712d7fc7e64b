"""Metrics of a server, for Prometheus.

Routes are path patterns, so that no label contains an id.

Spec: docs/registry.md#watching-a-server.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
OTHER: Final = "other"
"""Label value for unknown methods and routes, so that clients cannot create new ones."""

BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Upper bounds of the histograms, in seconds."""


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self._requests = Counter(
            "wirebook_http_requests_total", "Requests that were answered.", labels, registry=self._registry
        )
        self._request_seconds = Histogram(
            "wirebook_http_request_seconds",
            "Seconds from a request to the end of its response.",
            labels[:2],
            registry=self._registry,
            buckets=BUCKETS,
        )
        transactions = Histogram(
            "wirebook_db_seconds",
            "Seconds of a transaction, including its commit.",
            ("kind",),
            registry=self._registry,
            buckets=BUCKETS,
        )
        deliveries = Counter(
            "wirebook_events_sink_total", "Events sent to the sink, by outcome.", ("outcome",), registry=self._registry
        )
        self._transactions = {kind: transactions.labels(kind) for kind in ("read", "write")}
        self._deliveries = {outcome: deliveries.labels(outcome) for outcome in ("accepted", "refused")}
        self._labelled = lru_cache(maxsize=4096)(self._label)
        ProcessCollector(registry=self._registry)

    def _label(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(method, route, status), self._request_seconds.labels(method, route)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record a request that was answered, and its duration."""
        count, histogram = self._labelled(method if method in METHODS else OTHER, route, status)
        count.inc()
        histogram.observe(seconds)

    def transaction(self, kind: str, seconds: float) -> None:
        """Record the duration of a transaction of kind ``read`` or ``write``."""
        self._transactions[kind].observe(seconds)

    def delivery(self, outcome: str) -> None:
        """Count an event that the sink ``accepted`` or ``refused``."""
        self._deliveries[outcome].inc()

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)
