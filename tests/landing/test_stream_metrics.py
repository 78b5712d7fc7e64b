"""Metrics of a stream: read over HTTP as Prometheus reads them, and compared with the batches."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from wirebook.capture.metrics import MetricsApp, metrics_listener, serving
from wirebook.landing.job import land
from wirebook.landing.runs.report import Report
from wirebook.landing.watch.figures import BatchFigures, figures_of
from wirebook.landing.watch.metrics import MAX_SERIES, OTHER, UNKNOWN, StreamMetrics
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


def registry_of(metrics: StreamMetrics) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(metrics)
    return registry


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
    assert len(counts) == MAX_SERIES + 1
    assert sum(counts.values()) == 10_600
    assert counts[OTHER] == 10_000 - MAX_SERIES
    assert counts["/d/0"] == 2


CAPTURED = {"e": {"d": 3, "shared": 1}, "f": {"f": 2, "shared": 1}}
"""Events in captures, by the name of the endpoint that captured them and the name of the definition."""


def captures(*, wrong: int) -> str:
    """Captured events of both endpoints; some of `e` match nothing, and one has an endpoint that is not in the
    catalogue. A line is no JSON."""
    types = [(e, type_) for e, counts in CAPTURED.items() for type_, count in counts.items() for _ in range(count)]
    types += [("e", "other")] * wrong + [("gone", "d")]
    lines = []
    for number, (endpoint, type_) in enumerate(types):
        body = {"specversion": "1.0", "id": str(number), "source": "/s", "type": type_}
        record = {"protocol": "HTTP", "endpoint": f"/endpoints/{endpoint}", "method": "POST"}
        record |= {"headers": [["content-type", "application/cloudevents+json"]], "body": json.dumps(body)}
        lines.append(json.dumps(record) + "\n")
    return "".join([*lines, "no JSON\n"])


def landed_metrics(folder: Path, text: str, endpoint: str | None = None) -> tuple[Samples, Counter[str]]:
    """Land captures; return the metrics of the run, and the dead letters by endpoint of its report."""
    names = ("d", "f", "shared")
    messages = {n: {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": n}}} for n in names}
    groups = {name: {"messages": {name: message}} for name, message in messages.items()}
    members = {"e": ["d", "shared"], "f": ["f", "shared"]}
    endpoints = {
        name: {"usage": ["producer"], "protocol": "HTTP", "messagegroups": [f"/messagegroups/{g}" for g in of]}
        for name, of in members.items()
    }
    (folder / "source").mkdir()
    (folder / "source" / "a.jsonl").write_text(text)
    catalogue = {"specversion": "1.0-rc4", "messagegroups": groups, "endpoints": endpoints}
    metrics = StreamMetrics(XID)
    report = land(
        folder / "source",
        catalogue,
        folder / "tables",
        endpoint=endpoint,
        on_batch=lambda committed: metrics.add(figures_of(committed)),
    )
    return samples(generate_latest(registry_of(metrics)).decode()), report.dead_letter_endpoints


def by_endpoint(found: Samples, name: str) -> dict[str, float]:
    return {
        dict(labels)["message_endpoint"]: count
        for (metric, labels), count in found.items()
        if metric == f"wirebook_stream_{name}_total"
    }


def test_messages_are_counted_by_endpoint(tmp_path: Path) -> None:
    found, dead = landed_metrics(tmp_path, captures(wrong=4))
    assert by_endpoint(found, "endpoint_landed") == {"/endpoints/e": 3, "/endpoints/f": 2, UNKNOWN: 2}
    assert by_endpoint(found, "endpoint_dead_letters") == {"/endpoints/e": 4, UNKNOWN: 2}
    assert dead == {"/endpoints/e": 4}
    assert value(found, "landed_total", definition="/messagegroups/shared/messages/shared") == 2


def test_all_messages_are_of_the_endpoint_of_the_run(tmp_path: Path) -> None:
    found, dead = landed_metrics(tmp_path, captures(wrong=4), "/endpoints/e")
    assert by_endpoint(found, "endpoint_landed") == {"/endpoints/e": 6}
    assert by_endpoint(found, "endpoint_dead_letters") == dead == {"/endpoints/e": 7}


def test_number_of_endpoints_with_time_series_is_bounded() -> None:
    metrics = StreamMetrics(XID)
    figures = batch({"/d": 5000})
    figures.report.endpoints = Counter({f"/endpoints/{number}": 1 for number in range(4000)})
    metrics.add(figures)
    metrics.add(figures)
    counts = by_endpoint(samples(generate_latest(registry_of(metrics)).decode()), "endpoint_landed")
    assert len(counts) == MAX_SERIES + 1
    assert (counts["/endpoints/0"], counts[OTHER], sum(counts.values())) == (2, 2 * (5000 - MAX_SERIES), 10_000)


def test_address_in_use_is_rejected_with_the_option() -> None:
    with metrics_listener(("127.0.0.1", 0)) as listener, pytest.raises(WirebookError) as error:
        metrics_listener(listener.getsockname())
    assert (error.value.problems[0].code, error.value.problems[0].hint) == (
        "address-in-use",
        "choose another --metrics-address",
    )
