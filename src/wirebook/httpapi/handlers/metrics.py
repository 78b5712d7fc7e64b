"""What a server counts and measures, for Prometheus. A route is a pattern: no id of anybody's is in a metric.

Spec: docs/registry.md#watching-a-server.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

METRICS_PATH: Final = "/.wirebook/metrics"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
PLACES: Final = (
    "/",
    "/{groups}",
    "/{groups}/{group}",
    "/{groups}/{group}/{resources}",
    "/{groups}/{group}/{resources}/{resource}",
    "/{groups}/{group}/{resources}/{resource}/versions",
    "/{groups}/{group}/{resources}/{resource}/versions/{version}",
)
META: Final = "/{groups}/{group}/{resources}/{resource}/meta"
OTHER: Final = "other"
SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        self._all = CollectorRegistry()
        requests, seconds = "wirebook_http_requests_total", "wirebook_http_request_seconds"
        names = ("method", "route", "status")
        self._requests = Counter(requests, "Requests that were answered.", names, registry=self._all)
        self._seconds = Histogram(
            seconds, "Seconds from a request to the end of its answer.", names[:2], registry=self._all, buckets=SECONDS
        )
        self._database = Histogram(
            "wirebook_db_seconds",
            "Seconds of a transaction, its commit included.",
            ("kind",),
            registry=self._all,
            buckets=SECONDS,
        )
        self._deliveries = Counter(
            "wirebook_events_sink_total", "Events sent to the sink, by outcome.", ("outcome",), registry=self._all
        )
        self._kinds = {kind: self._database.labels(kind) for kind in ("read", "write")}
        self._outcomes = {outcome: self._deliveries.labels(outcome) for outcome in ("accepted", "refused")}
        self._children = lru_cache(maxsize=4096)(self._labelled)
        ProcessCollector(registry=self._all)

    def _labelled(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(method, route, status), self._seconds.labels(method, route)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request that was answered."""
        count, took = self._children(method if method in METHODS else OTHER, route, status)
        count.inc()
        took.observe(seconds)

    def transaction(self, kind: str, seconds: float) -> None:
        """One transaction, of kind ``read`` or ``write``."""
        self._kinds[kind].observe(seconds)

    def delivery(self, outcome: str) -> None:
        """One event that the sink ``accepted`` or ``refused``."""
        self._outcomes[outcome].inc()

    def text(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._all)


@lru_cache(maxsize=1024)
def route_of(path: str, special: frozenset[str]) -> str:
    """The pattern of a path below the base path; `special` are the names of paths that are routes themselves."""
    name = path.strip("/")
    if name in special:
        return f"/{name}"
    parts = [part for part in name.removesuffix("$details").split("/") if part]
    if len(parts) == 5:
        return {"meta": META, "versions": PLACES[5]}.get(parts[4], OTHER)
    if (
        len(parts) >= len(PLACES)
        or (parts and parts[0].startswith("."))
        or (len(parts) == 6 and parts[4] != "versions")
    ):
        return OTHER
    return PLACES[len(parts)]
