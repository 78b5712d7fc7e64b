"""A store that refuses requests, loses answers and goes away while messages land and are captured: on a real S3 server
behind a proxy that makes requests fail. Every message lands once after, or the run ends with one error and the next
one completes."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from brokers import free_port
from deltalake import write_deltalake
from killing.rows import landed_rows
from killing.stores import ICEBERG_CATALOG, ICEBERG_URI

from tests.brokers.faulty_store import Fault, FaultyStore, faulty_store
from tests.capture.broker_endpoints import BROKER_ENDPOINTS
from tests.capture.gateway import Clients, gateway, pending_bytes, wait_for_note, wait_until, write_catalog
from tests.landing.workspace import Workspace
from wirebook.landing.follow import is_transient
from wirebook.landing.maintenance import UpkeepOptions, maintain
from wirebook.landing.stores.locations import location_of
from wirebook.landing.stores.objects import RETRIES, RETRY_OPTIONS, ObjectPath, _store
from wirebook.landing.stores.records import ObjectRecords
from wirebook.landing.stores.segments import ObjectSegments
from wirebook.landing.tables import iceberg_catalog
from wirebook.landing.tables.delta import _failure
from wirebook.problems import Problem, WirebookError

pytestmark = pytest.mark.xdist_group("servers")


@pytest.fixture
def store(s3: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyStore]:
    with faulty_store(s3) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        yield proxy


def complete(workspace: Workspace, expected: int) -> None:
    """The next run completes, and nothing is missing or there twice."""
    assert not workspace.land().problems
    workspace.check_conserved(expected)
    report = workspace.land()
    assert (report.read, report.skipped, report.problems) == (0, expected, [])
    assert not (workspace.to / "_wirebook" / "aside").is_dir()


def check(error: WirebookError) -> None:
    """It is one line about the store."""
    (problem,) = error.problems
    assert problem.code == "store-failed"
    assert "\n" not in problem.message
    assert "\x1b" not in problem.message
    assert "never-shown" not in problem.message


# -- landing ---------------------------------------------------------------------------------------------------------


def test_lost_answers_change_nothing(store: FaultyStore, tmp_path: Path, bucket: str) -> None:
    """Each write takes effect and is answered with an error, so the client repeats it."""
    workspace = Workspace(tmp_path, f"{bucket}/tables")
    expected = workspace.write_two_files()
    store.fail(Fault(500, is_done=True, once=True))
    report = workspace.land()
    assert store.recover() > 10
    assert (report.read, report.problems) == (expected, [])
    complete(workspace, expected)


@pytest.mark.parametrize("number", [0, 1])
def test_lease_whose_answer_was_lost_is_free_for_this_process(store: FaultyStore, bucket: str, number: int) -> None:
    """The creation of a lease, or a write after it, takes effect, but seems to have failed. The next attempt does not
    wait until the lease expires."""
    root = location_of(f"{bucket}/tables")
    assert isinstance(root, ObjectPath)
    with ObjectRecords(root).locked():
        pass
    first = store.writes + number
    store.fail(Fault(400, is_done=True, first=first, last=first))
    with pytest.raises(WirebookError, match="store-failed"), ObjectRecords(root).locked():
        pass
    assert store.recover() == 1
    with ObjectRecords(root).locked():
        pass


@pytest.mark.faults
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault(403), id="all-refused"),
        pytest.param(Fault(0, is_done=True), id="connection-lost"),
    ],
)
def test_fault_at_any_write(store: FaultyStore, tmp_path: Path, bucket: str, fault: Fault) -> None:
    """The n-th write fails, for every n: with all that follow it, or alone and after it took effect."""
    ended = 0
    for number in itertools.count():
        (folder := tmp_path / str(number)).mkdir()
        workspace = Workspace(folder, f"{bucket}/{number}/tables")
        expected, first = workspace.write_two_files(), store.writes + number
        store.fail(replace(fault, first=first, last=fault.last if fault.status == 403 else first))
        try:
            workspace.land()
        except WirebookError as error:
            ended += 1
            check(error)
        if not store.recover():
            break
        complete(workspace, expected)
    assert number > 10
    assert ended > 1 or fault.status != 403  # a request whose connection was lost may be repeated


@pytest.mark.faults
@pytest.mark.parametrize("outage", ["503", "500", "refused connections"])
def test_outage_of_some_seconds_delays_a_run(store: FaultyStore, tmp_path: Path, bucket: str, outage: str) -> None:
    dice = random.Random(time.time_ns())
    for number in range(2):
        (folder := tmp_path / str(number)).mkdir()
        workspace = Workspace(folder, f"{bucket}/{number}/tables")
        expected, is_over = workspace.write_two_files(), threading.Event()

        def run(workspace: Workspace = workspace, is_over: threading.Event = is_over) -> None:
            time.sleep(dice.uniform(0, 0.5))
            if outage == "refused connections":
                store.refuse()
            else:
                store.fail(Fault(int(outage), reads=True))
            time.sleep(1.5)
            store.recover()
            if outage == "refused connections":
                store.listen()
            is_over.set()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            report = workspace.land()
        except WirebookError as error:  # a conditional write whose connection was closed is not repeated
            check(error)
        else:
            assert (report.read, report.problems) == (expected, [])
        thread.join()
        complete(workspace, expected)


# -- capture ---------------------------------------------------------------------------------------------------------


def test_segment_whose_answer_was_lost_is_written_once(store: FaultyStore, bucket: str) -> None:
    """The gateway writes messages again under the name that they may have."""
    segments = ObjectSegments(location_of(f"{bucket}/captured"), 0.0)  # type: ignore[arg-type]
    store.fail(Fault(400, is_done=True, first=(number := store.writes), last=number))
    with pytest.raises(OSError, match="refused a request"):
        segments.write([b"1", b"2"])
    segments.write([b"1", b"2"])
    segments.write([b"1", b"2"])
    segments.close()
    contents = [path.read_bytes() for path, _ in location_of(f"{bucket}/captured").below() if "jsonl" in path.name]
    assert contents == [b"1\n2\n"] * 2


@pytest.mark.faults
def test_gateway_acknowledges_nothing_while_its_store_refuses_writes(
    store: FaultyStore, tmp_path: Path, bucket: str
) -> None:
    port, folder = free_port(), f"{bucket}/captured"
    options = {"endpoints": [{"uri": f"http://127.0.0.1:{port}/hooks"}]}
    catalog = write_catalog(tmp_path, {"e": {"usage": ["producer"], "protocol": "HTTP", "protocoloptions": options}})
    with gateway(catalog, folder, "--endpoint", "/endpoints/e", "--linger", "0.05") as process:
        clients = Clients(port)
        time.sleep(1)
        store.fail(Fault(403))
        wait_for_note(process, "nothing is acknowledged until it can be written")
        before = clients.check_none_acknowledged()
        store.fail(Fault(400, is_done=True, nth=2))
        wait_for_note(process, "writing again")
        time.sleep(2)
        store.recover()
        clients.stop()
        assert process.stop()[0] == 0
    objects = [path.read_bytes() for path, _ in location_of(folder).below() if path.name.endswith(".jsonl")]
    bodies = [json.loads(line)["body"] for content in objects for line in content.splitlines()]
    clients.check_captured(bodies)
    assert len(clients.acknowledged) > len(before) > 0


def bodies_in(folder: str, member: str) -> Counter[str]:
    """The messages in the segments of a store."""
    files = [path for path, _ in location_of(folder).below() if path.name.endswith(".jsonl")]
    return Counter(json.loads(line)[member] for file in files for line in file.read_bytes().splitlines())


@pytest.mark.parametrize("broker", BROKER_ENDPOINTS)
def test_message_of_a_broker_is_acknowledged_after_its_upload(
    store: FaultyStore, tmp_path: Path, bucket: str, broker: str
) -> None:
    """A gateway that cannot upload acknowledges nothing, and the broker delivers everything to the next gateway, which
    does. The one after that gets nothing."""
    bodies, arguments = [f"number {number}" for number in range(20)], ["--endpoint", "/endpoints/e", "--linger", "0.05"]
    folder = f"{bucket}/captured"
    with BROKER_ENDPOINTS[broker](tmp_path) as source:
        catalog, member = write_catalog(tmp_path, {"e": source.endpoint}), source.member
        with gateway(catalog, folder, *arguments) as process:
            wait_for_note(process, "receiving '")
            store.fail(Fault(403))
            source.send(bodies)
            wait_for_note(process, "nothing is acknowledged until it can be written")
            time.sleep(0.5)  # longer than an acknowledgement takes
            process.process.kill()
            process.process.wait()
        assert store.recover()
        assert not bodies_in(folder, member)
        with gateway(catalog, folder, *arguments) as process:
            wait_until(lambda: len(bodies_in(folder, member)) == len(bodies))
            assert process.stop()[0] == 0
        with gateway(catalog, folder, *arguments) as process:
            wait_for_note(process, "receiving '")
            source.send(["last"])
            wait_until(lambda: bodies_in(folder, member)["last"] == 1)
            assert process.stop()[0] == 0
    assert bodies_in(folder, member) == Counter([*bodies, "last"])


def test_requests_beyond_the_memory_get_503_while_the_store_hangs(
    store: FaultyStore, tmp_path: Path, bucket: str
) -> None:
    """No write has failed: it is memory that is full. Requests that were read wait, and are acknowledged later."""
    url, folder = f"http://127.0.0.1:{free_port()}/hooks", f"{bucket}/captured"
    metrics, options = f"127.0.0.1:{free_port()}", {"endpoints": [{"uri": url}]}
    catalog = write_catalog(tmp_path, {"e": {"usage": ["producer"], "protocol": "HTTP", "protocoloptions": options}})
    arguments = ["--endpoint", "/endpoints/e", "--memory", "1", "--linger", "0.05", "--metrics-address", metrics]

    def post(number: int) -> int:
        content = f"{number}.".ljust(100_000, "x")
        answer = httpx.post(url, content=content, trust_env=False, timeout=60)
        assert answer.status_code == 202 or answer.headers["retry-after"] == "2"
        return answer.status_code

    with gateway(catalog, folder, *arguments) as process, ThreadPoolExecutor(20) as pool:
        assert post(0) == 202
        with store.hanging():
            waiting = [pool.submit(post, number) for number in range(1, 21)]
            wait_until(lambda: pending_bytes(metrics) > 950_000)  # ten bodies
            assert post(21) == 503
            assert pending_bytes(metrics) < 11 * 110_000
            assert not any(answer.done() and answer.result() == 202 for answer in waiting)
        statuses = [202, *(answer.result() for answer in waiting), 503]
        assert post(22) == 202
        assert process.stop()[0] == 0
    statuses.append(202)
    assert statuses.count(202) > 10
    expected = [str(number) for number, status in enumerate(statuses) if status == 202]
    assert Counter(body.rstrip("x.") for body in bodies_in(folder, "body").elements()) == Counter(expected)


# -- what may pass ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "passes"), [(401, False), (403, False), (400, False), (404, False), (429, True), (503, True), (0, True)]
)
def test_failures_that_may_pass_are_known_by_what_the_store_answers(
    store: FaultyStore, bucket: str, monkeypatch: pytest.MonkeyPatch, fault: int, passes: bool
) -> None:
    monkeypatch.setitem(RETRIES, "max_retries", 1)
    folder = location_of(f"{bucket}/{'long name ' * 30}/tables")
    assert isinstance(folder, ObjectPath)
    _store.cache_clear()
    store.fail(Fault(fault, reads=True))
    options = RETRY_OPTIONS | {"max_retries": "1", "allow_http": "true"}
    try:
        for request in (
            lambda: (folder / "a").write_bytes(b"1"),
            lambda: [*folder.below()],
            lambda: write_deltalake(str(folder), pa.table({"a": [1]}), storage_options=options),
        ):
            with pytest.raises((WirebookError, OSError)) as raised:
                request()
            error = raised.value if isinstance(raised.value, WirebookError) else _failure(folder, raised.value)
            assert isinstance(error, WirebookError)
            assert is_transient(error) == passes, error
    finally:
        _store.cache_clear()


@pytest.mark.faults
@pytest.mark.parametrize(
    ("fault", "passes"),
    [
        (Fault(400, reads=True), False),
        (Fault(403), False),
        (Fault(404), False),
        (Fault(500), True),
        (Fault(503), True),
        (Fault(0), True),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Fault) else "",
)
def test_commit_of_an_iceberg_table_that_the_store_refuses(
    store: FaultyStore, tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch, fault: Fault, passes: bool
) -> None:
    """The store accepts the data files, and not the metadata that PyIceberg writes."""
    monkeypatch.setenv(ICEBERG_URI, f"sqlite:///{tmp_path}/iceberg.db")
    workspace = Workspace(tmp_path, f"{bucket}/tables")
    workspace.settings.iceberg_catalog, workspace.settings.table_format = ICEBERG_CATALOG, "iceberg"
    expected = workspace.write_two_files()
    iceberg_catalog._connected.cache_clear()
    try:
        store.fail(replace(fault, path="/metadata/"))
        with pytest.raises(WirebookError) as raised:
            workspace.land()
        check(raised.value)
        assert is_transient(raised.value) == passes, raised.value
        assert store.recover() > 0
        assert not workspace.land().problems
        rows = landed_rows("iceberg", workspace.to)
        assert len(rows) == rows.total() == expected
        if passes:  # an object that is missing, or may not be read, is the problem of its table
            store.fail(replace(fault, path="/metadata/", reads=True))
            with pytest.raises(WirebookError) as raised:
                next(maintain(workspace.to, UpkeepOptions()))
            check(raised.value)
    finally:
        iceberg_catalog._connected(ICEBERG_CATALOG).close()
        iceberg_catalog._connected.cache_clear()


def test_failures_of_hdfs_and_of_locks_that_may_pass() -> None:
    """The texts are those of a NameNode."""
    folder = location_of("hdfs://namenode:8020/tables")
    assert isinstance(folder, ObjectPath)
    for reason, passes in (
        ("AccessControlException: Permission denied: user=a, access=WRITE", False),
        ("DSQuotaExceededException: The DiskSpace quota of /tables is exceeded", False),
        ("SafeModeException: Cannot create file. Name node is in safe mode.", True),
        ("Connection refused (os error 111)", True),
    ):
        assert is_transient(folder.failed(reason)) == passes
    locked, full = Problem("target-locked"), Problem("unwritable-target")
    assert is_transient(WirebookError(locked))
    assert not is_transient(WirebookError(locked, full))
