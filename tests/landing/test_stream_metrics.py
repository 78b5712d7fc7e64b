"""Metrics of a stream: read over HTTP as Prometheus reads them, and compared with the batches."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from wirebook.capture.metrics import MetricsApp, metrics_listener, serving
from wirebook.landing.runs.report import Report
from wirebook.landing.watch.figures import BatchFigures
from wirebook.landing.watch.metrics import MAX_DEFINITIONS, OTHER, StreamMetrics
from wirebook.problems import WirebookError

XID = "/endpoints/e"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def batch(rows: dict[str, int], *, dead: int = 0, seconds: float = 1.0, **figures: Any) -> BatchFigures:
    """A batch with these rows by definition."""
    report = Report(read=sum(rows.values()) + dead, seconds=seconds, bytes_read=100, bytes_written=200)
    report.rows = Counter({f"t{number}": count for number, count in enumerate(rows.values())} | {"dead_letters": dead})
    report.definitions = {f"t{number}": definition for number, definition in enumerate(rows)}
    report.outcomes = Counter({"matched": sum(rows.values()), "unexpected": dead})
    report.reasons = Counter({"no-match": dead})
    started = datetime(2026, 11, 23, tzinfo=UTC)
    return BatchFigures(number=0, report=report, started=started, catalogue="c", query="q", endpoint=XID, **figures)


def samples(text: str) -> Samples:
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def value(found: Samples, name: str, **labels: str) -> float:
    return found[f"wirebook_stream_{name}", frozenset({"endpoint": XID, **labels}.items())]


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_metrics_are_the_sum_of_batches() -> None:
    metrics = StreamMetrics(XID)
    with serving(MetricsApp(metrics, metrics), metrics_listener(("127.0.0.1", 0))) as url:
        assert get(f"{url}/healthz") == (200, "ok\n")
        status, text = get(f"{url}/readyz")
        assert (status, json.loads(text)["failure"]) == (503, "the query has not started")
        metrics.set_connection(None)
        assert get(f"{url}/readyz")[0] == 200
        metrics.add(batch({"/a": 3, "/b": 4}, dead=2, seconds=0.2, partitions={"kafka:t/0": 5, "kafka:t/1": 0}))
        metrics.add(batch({"/a": 1}, seconds=700, partitions={"kafka:t/0": 1, "kafka:t/1": 0}))
        metrics.set_connection("down")
        assert get(f"{url}/readyz")[0] == 503
        found = samples(get(f"{url}/metrics")[1])
        assert get(f"{url}/other")[0] == 404
    assert value(found, "messages_total", outcome="matched") == 8
    assert value(found, "messages_total", outcome="unexpected") == 2
    assert (value(found, "landed_total", definition="/a"), value(found, "landed_total", definition="/b")) == (4, 4)
    assert value(found, "dead_letters_total", code="no-match") == 2
    assert (value(found, "read_bytes_total"), value(found, "written_bytes_total")) == (200, 400)
    assert value(found, "lag", partition="kafka:t/0") == 1
    assert (value(found, "batch_seconds_count"), value(found, "batch_seconds_sum")) == (2, 700.2)
    assert [value(found, "batch_seconds_bucket", le=le) for le in ("0.1", "0.25", "600.0", "+Inf")] == [0, 1, 1, 2]
    assert value(found, "last_batch_timestamp_seconds") == datetime(2026, 11, 23, tzinfo=UTC).timestamp() + 700
    assert value(found, "connected") == 0


def test_number_of_time_series_is_bounded() -> None:
    metrics = StreamMetrics(XID)
    metrics.add(batch({f"/d/{number}": 1 for number in range(600)}))
    metrics.add(batch({f"/d/{number}": 1 for number in range(10_000)}))
    (landed,) = (family for family in metrics.collect() if family.name == "wirebook_stream_landed")
    counts = {sample.labels["definition"]: sample.value for sample in landed.samples}
    assert len(counts) == MAX_DEFINITIONS + 1
    assert sum(counts.values()) == 10_600
    assert counts[OTHER] == 10_000 - MAX_DEFINITIONS
    assert counts["/d/0"] == 2


def test_address_in_use_is_rejected_with_the_option() -> None:
    with metrics_listener(("127.0.0.1", 0)) as listener, pytest.raises(WirebookError) as error:
        metrics_listener(listener.getsockname())
    assert (error.value.problems[0].code, error.value.problems[0].hint) == (
        "address-in-use",
        "choose another --metrics-address",
    )
