"""HTTP: requests are captured unchanged and answered after they are durable; kills lose nothing that was answered."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from brokers import free_port

from tests.capture.gateway import (
    KILLS,
    Clients,
    GatewayProcess,
    captured,
    command,
    gateway,
    pending_bytes,
    wait_until,
    write_catalog,
)
from wirebook.capture.endpoints import Credentials, credentials_of
from wirebook.catalog import Catalog
from wirebook.landing.job import land
from wirebook.landing.runs.local_runner import LocalRunner
from wirebook.landing.stores.locations import location_of

TOKEN = "t0ken-that-must-not-be-stored"
CE_HEADERS = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "a.b", "X-Twice": "1"}
EVENT = {"specversion": "1.0", "id": "2", "source": "/s", "type": "a.b", "data": {"n": 1}}


def endpoint(port: int, path: str = "/hooks", **options: Any) -> dict[str, Any]:
    address = {"uri": f"http://127.0.0.1:{port}{path}"}
    return {"usage": ["producer"], "protocol": "HTTP", "protocoloptions": {"endpoints": [address], **options}}


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def catalog(tmp_path: Path, port: int) -> Path:
    endpoints = {"hooks": endpoint(port), "keyed": endpoint(port, "/keyed/", method="PUT", apikeyname="X-Key")}
    return write_catalog(tmp_path, endpoints)


@pytest.fixture
def running(catalog: Path, tmp_path: Path) -> Iterator[GatewayProcess]:
    arguments = ["--endpoint", "/endpoints/hooks", "--endpoint", "/endpoints/keyed", "--max-body", "1"]
    arguments += ["--rate-limit", "50", "--allow-origin", "good.example", "--progress", "json"]
    with gateway(catalog, tmp_path / "to", *arguments, env={"WIREBOOK_HOOKS_TOKEN": TOKEN}) as process:
        yield process


@pytest.fixture
def client(port: int) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False) as client:
        yield client


def test_every_kind_of_message_is_captured_unchanged(
    running: GatewayProcess, client: httpx.Client, tmp_path: Path
) -> None:
    batch = json.dumps([EVENT, EVENT])
    packed = gzip.compress(b"hello")
    requests: list[dict[str, Any]] = [
        {"url": "/hooks?x=1", "headers": [*CE_HEADERS.items(), ("X-Twice", "2")], "content": b'{"n":1}'},
        {"url": "/hooks", "headers": {"Content-Type": "application/cloudevents+json"}, "content": json.dumps(EVENT)},
        {"url": "/hooks/a%20b", "headers": {"Content-Type": "application/cloudevents-batch+json"}, "content": batch},
        {"url": "/hooks", "headers": {"Content-Encoding": "gzip"}, "content": packed},
        {"url": "/hooks?a=1&access_token=secret&b=2", "content": b"\xff\x00"},
    ]
    assert [client.post(**request).status_code for request in requests] == [202] * 5
    key = {"X-Key": TOKEN, "Cookie": TOKEN, "X-Other": "kept"}
    assert client.put("/keyed/a", headers=key).status_code == 202
    assert running.stop()[0] == 0
    records = captured(tmp_path / "to")
    targets = ["/hooks?x=1", "/hooks", "/hooks/a%20b", "/hooks", "/hooks?a=1&b=2", "/keyed/a"]
    assert [record["target"] for record in records] == targets
    assert {record["endpoint"] for record in records} == {"/endpoints/hooks", "/endpoints/keyed"}
    bodies: list[Any] = ['{"n":1}', json.dumps(EVENT), batch]
    assert [record["body"] for record in records[:3]] == bodies
    assert records[4]["body"] == {"base64": "/wA="}
    assert [pair for pair in records[0]["headers"] if pair[0] == "x-twice"] == [["x-twice", "1"], ["x-twice", "2"]]
    names = [name for name, _ in records[5]["headers"]]
    assert "x-other" in names
    assert not {"x-key", "cookie", "authorization"} & set(names)
    assert not [path for path in (tmp_path / "to").iterdir() if TOKEN.encode() in path.read_bytes()]


def test_request_that_is_not_captured_gets_the_status_of_its_reason(
    running: GatewayProcess, client: httpx.Client, tmp_path: Path
) -> None:
    wrong = {"Authorization": f"Bearer {TOKEN}x"}
    assert client.post("/hooks", headers=wrong, content=b"1").status_code == 401
    assert client.post("/hooks", headers={"Authorization": ""}, content=b"1").status_code == 401
    assert client.get("/hooks").status_code == 405
    assert client.get("/hooks").headers["allow"] == "POST, OPTIONS"
    assert client.post("/hook", content=b"1").status_code == 404
    assert client.post("/hookshot", content=b"1").status_code == 404
    assert client.post("/hooks", content=b"x" * (1 << 20)).status_code == 202
    assert client.post("/hooks", content=b"x" * (1 << 20) + b"x").status_code == 413
    assert client.post("/hooks", content=iter([b"x" * (1 << 20)] * 16)).status_code == 413
    code, err = running.stop(signal.SIGINT)
    assert code == 130
    status = json.loads(err.splitlines()[-2])["endpoints"]["/endpoints/hooks"]
    assert (status["received"], status["acknowledged"]) == (1, 1)
    assert status["rejected"] == {"unauthorized": 2, "too-large": 2}
    assert len(captured(tmp_path / "to")) == 1


def test_requests_beyond_the_rate_are_refused(catalog: Path, tmp_path: Path, client: httpx.Client) -> None:
    """However slow the machine is: one of many requests comes within a second of another."""
    arguments = ["--endpoint", "/endpoints/hooks", "--rate-limit", "1", "--progress", "json"]
    with gateway(catalog, tmp_path / "to", *arguments, env={"WIREBOOK_HOOKS_TOKEN": TOKEN}) as process:
        responses = []
        while not any(response.status_code == 429 for response in responses):
            responses.append(client.post("/hooks", content=b"1"))
        assert int(responses[-1].headers["retry-after"]) >= 1
        _, err = process.stop()
    status = json.loads(err.splitlines()[-1])["endpoints"]["/endpoints/hooks"]
    assert (status["acknowledged"], status["rejected"]) == (len(responses) - 1, {"rate": 1})
    assert len(captured(tmp_path / "to")) == len(responses) - 1


def test_webhook_handshake_names_the_allowed_origin_and_rate(running: GatewayProcess, client: httpx.Client) -> None:
    good = client.options("/hooks", headers={"WebHook-Request-Origin": "good.example", "WebHook-Request-Rate": "120"})
    assert good.status_code == 200
    assert (good.headers["webhook-allowed-origin"], good.headers["webhook-allowed-rate"]) == ("good.example", "3000")
    assert good.headers["allow"] == "POST, OPTIONS"


def test_asterisk_allows_every_origin(catalog: Path, tmp_path: Path, client: httpx.Client) -> None:
    arguments = ["--endpoint", "/endpoints/hooks", "--allow-origin", "good.example", "--allow-origin", "*"]
    with gateway(catalog, tmp_path / "to", *arguments):
        answer = client.options("/hooks", headers={"WebHook-Request-Origin": "other.example"})
        assert answer.headers["webhook-allowed-origin"] == "*"
        assert answer.headers["webhook-allowed-rate"] == "*"
        assert "webhook-allowed-origin" not in client.options("/hooks").headers


def test_other_origins_get_no_permission_and_no_callback(running: GatewayProcess, client: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as callback:
        url = f"https://127.0.0.1:{callback.getsockname()[1]}/confirm"
        headers = {"WebHook-Request-Origin": "bad.example", "WebHook-Request-Callback": url}
        answer = client.options("/hooks", headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (200, "POST, OPTIONS")
        assert not [name for name in answer.headers if name.startswith("webhook-")]
        running.stop()
        callback.setblocking(False)
        with pytest.raises(BlockingIOError):
            callback.accept()


def test_segments_can_be_landed(running: GatewayProcess, catalog: Path, client: httpx.Client, tmp_path: Path) -> None:
    for _ in range(3):
        assert client.post("/hooks", headers=CE_HEADERS, content=b'{"n":1}').status_code == 202
    running.stop()
    report = land(tmp_path / "to", Catalog.load(catalog), tmp_path / "tables", runner=LocalRunner())
    assert (report.read, list(report.problems)) == (3, [])
    assert report.outcomes == {"unconstrained": 3}  # the endpoint has no definitions


def test_metrics_and_health_count_what_happened(catalog: Path, tmp_path: Path, port: int) -> None:
    metrics = f"127.0.0.1:{free_port()}"
    with (
        gateway(catalog, tmp_path / "to", "--endpoint", "/endpoints/hooks", "--metrics-address", metrics) as process,
        httpx.Client(trust_env=False) as client,
    ):
        assert client.post(f"http://127.0.0.1:{port}/hooks", content=b"1").status_code == 202
        text = client.get(f"http://{metrics}/metrics").text
        assert 'wirebook_capture_acknowledged_total{endpoint="/endpoints/hooks"} 1.0' in text
        assert "wirebook_capture_durable_total 1.0" in text
        ready = client.get(f"http://{metrics}/readyz")
        assert (ready.status_code, ready.json()["ready"]) == (200, True)
        process.stop()


def test_full_store_gets_503_and_nothing_is_acknowledged(catalog: Path, tmp_path: Path, port: int) -> None:
    """The limit on the size of files stands for a full disk: writes fail, in part."""
    arguments = command(catalog, tmp_path / "to", "--endpoint", "/endpoints/hooks", "--max-body", "1")
    arguments[2] = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n" + arguments[2]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    try:
        running = GatewayProcess(process)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            assert client.post("/hooks", content=b"1").status_code == 202
            with pytest.raises(httpx.ReadTimeout):
                client.post("/hooks", content=b"x" * 60_000, timeout=1)
            busy = client.post("/hooks", content=b"2")
            assert (busy.status_code, busy.headers["retry-after"]) == (503, "2")
        _, err = running.stop(signal.SIGKILL)
        assert "cannot write a segment: File too large; nothing is acknowledged" in err, running.notes
    finally:
        process.kill()
        process.communicate()
    with gateway(catalog, tmp_path / "to", "--endpoint", "/endpoints/hooks") as again:
        again.stop()
    assert [record["body"] for record in captured(tmp_path / "to")] == ["1"]


MIB = 1 << 20


@pytest.fixture
def small(catalog: Path, tmp_path: Path) -> Iterator[tuple[GatewayProcess, str]]:
    """A gateway with 16 MiB of memory, and its address of metrics."""
    metrics = f"127.0.0.1:{free_port()}"
    arguments = ["--endpoint", "/endpoints/hooks", "--memory", "16", "--metrics-address", metrics]
    with gateway(catalog, tmp_path / "to", *arguments) as process:
        yield process, metrics


def begin_request(port: int, header: str, body: bytes) -> socket.socket:
    """Send the head of a request and the first part of its body."""
    client = socket.create_connection(("127.0.0.1", port), timeout=30)
    client.sendall(f"POST /hooks HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode() + body)
    return client


def status_of(client: socket.socket) -> int:
    """The status of the response."""
    with client, client.makefile("rb") as file:
        return int(file.readline().split()[1])


def test_bodies_that_do_not_fit_the_memory_get_503(
    small: tuple[GatewayProcess, str], port: int, tmp_path: Path
) -> None:
    """Memory is reserved by `Content-Length`, and released when a client goes away or its message is durable."""
    process, metrics = small
    clients = [begin_request(port, f"Content-Length: {8 * MIB}", b"x") for _ in range(2)]
    wait_until(lambda: pending_bytes(metrics) == 16 * MIB)
    others = [begin_request(port, f"Content-Length: {8 * MIB}", b"x" * MIB) for _ in range(20)]
    assert {status_of(client) for client in others} == {503}
    refused = httpx.post(f"http://127.0.0.1:{port}/hooks", content=b"x", trust_env=False)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    clients[0].close()
    wait_until(lambda: pending_bytes(metrics) == 8 * MIB)
    late = begin_request(port, f"Content-Length: {8 * MIB + 1}", b"")
    assert status_of(late) == 413
    clients[1].sendall(b"x" * (8 * MIB - 1))
    assert status_of(clients[1]) == 202
    wait_until(lambda: pending_bytes(metrics) == 0)
    assert process.stop()[0] == 0
    assert [len(record["body"]) for record in captured(tmp_path / "to")] == [8 * MIB]


def test_chunks_that_do_not_fit_the_memory_get_503(small: tuple[GatewayProcess, str], port: int) -> None:
    process, metrics = small
    chunk = b"100000\r\n" + b"x" * MIB + b"\r\n"  # its size is hexadecimal
    clients = [begin_request(port, "Transfer-Encoding: chunked", chunk * 6) for _ in range(2)]
    wait_until(lambda: pending_bytes(metrics) == 12 * MIB)
    with begin_request(port, "Transfer-Encoding: chunked", chunk * 6) as third:
        assert b" 503 " in (answer := third.recv(1000))
        assert b"retry-after: 2\r\n" in answer
        wait_until(lambda: pending_bytes(metrics) == 12 * MIB)
    for client in clients:
        client.sendall(b"0\r\n\r\n")
        assert status_of(client) == 202
    wait_until(lambda: pending_bytes(metrics) == 0)
    process.stop()


@pytest.mark.parametrize("chunked", [False, True])
def test_body_larger_than_the_memory_is_captured_alone(catalog: Path, tmp_path: Path, port: int, chunked: bool) -> None:
    with gateway(catalog, tmp_path / "to", "--endpoint", "/endpoints/hooks", "--memory", "1") as process:
        content: Any = iter([b"x" * MIB] * 3) if chunked else b"x" * 3 * MIB
        assert httpx.post(f"http://127.0.0.1:{port}/hooks", content=content, trust_env=False).status_code == 202
        process.stop()
    assert [len(record["body"]) for record in captured(tmp_path / "to")] == [3 * MIB]


def start_with_secrets(
    catalog: Path, folder: Path, secrets: dict[str, Any], **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a gateway that is expected to fail."""
    file = folder / "secrets.json"
    file.write_text(json.dumps(secrets))
    arguments = command(catalog, folder / "to", "--endpoint", "/endpoints/hooks", "--secrets", str(file))
    return subprocess.run(
        arguments, capture_output=True, text=True, env=os.environ | environment, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("xid", "hint"),
    [
        ("/endpoints/hook", "did you mean '/endpoints/hooks'?"),
        ("hooks", "did you mean '/endpoints/hooks'?"),
        ("/", "the endpoints of the catalogue: '/endpoints/hooks', '/endpoints/keyed'"),
    ],
)
def test_secret_of_an_unknown_endpoint_is_an_error(catalog: Path, tmp_path: Path, xid: str, hint: str) -> None:
    done = start_with_secrets(catalog, tmp_path, {"/endpoints/keyed": {"token": TOKEN}, xid: {"token": TOKEN}})
    assert done.returncode == 2
    assert f"'{xid}' in '{tmp_path / 'secrets.json'}' is not an endpoint of the catalogue" in done.stderr
    assert "[bad-setting]" in done.stderr
    assert hint in done.stderr
    assert TOKEN not in done.stderr
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("token", ["", " \n"])
def test_empty_token_is_an_error(catalog: Path, tmp_path: Path, token: str) -> None:
    stored = start_with_secrets(catalog, tmp_path, {"/endpoints/hooks": {"token": token}})
    assert stored.returncode == 2
    assert f"'/endpoints/hooks' in '{tmp_path / 'secrets.json'}' has an empty token" in stored.stderr
    variable = start_with_secrets(catalog, tmp_path, {}, WIREBOOK_HOOKS_TOKEN=token)
    assert variable.returncode == 2
    assert "the environment variable 'WIREBOOK_HOOKS_TOKEN' has an empty token" in variable.stderr
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("token", ["a\nb", "a\x7fb", "tök€n"])
def test_token_that_no_header_can_carry_is_an_error(catalog: Path, tmp_path: Path, token: str) -> None:
    done = start_with_secrets(catalog, tmp_path, {"/endpoints/hooks": {"token": token}})
    assert done.returncode == 2
    assert (
        "the token of '/endpoints/hooks' has characters that an HTTP header cannot carry [bad-setting]" in done.stderr
    )
    assert token not in done.stderr


@pytest.mark.parametrize("place", ["environment", "file"])
def test_token_is_accepted_in_the_header_and_percent_encoded_in_the_query(
    catalog: Path, tmp_path: Path, port: int, place: str
) -> None:
    """The token is set with whitespace around it."""
    token, file = "a+b/c%&=", tmp_path / "secrets.json"
    file.write_text(json.dumps({"/endpoints/hooks": {"token": f" {token}\n"}} if place == "file" else {}))
    env = {"WIREBOOK_HOOKS_TOKEN": f"{token}\r\n"} if place == "environment" else {}
    arguments = ["--endpoint", "/endpoints/hooks", "--secrets", str(file)]
    url = f"http://127.0.0.1:{port}/hooks"
    with gateway(catalog, tmp_path / "to", *arguments, env=env) as process:
        requests: list[dict[str, Any]] = [
            {"url": url, "headers": {"Authorization": f"Bearer {token}"}},
            {"url": f"{url}?a=1&access_token={quote(token, safe='')}&b=2"},
            {"url": f"{url}?access_token={quote(token, safe='+/')}"},
            {"url": f"{url}?access_token={quote(quote(token, safe=''), safe='')}"},
            {"url": f"{url}?access_token="},
        ]
        statuses = [httpx.post(**request, trust_env=False).status_code for request in requests]
        assert statuses == [202, 202, 202, 401, 401]
        process.stop()
    targets = [record["target"] for record in captured(tmp_path / "to")]
    assert targets == ["/hooks", "/hooks?a=1&b=2", "/hooks"]


def test_other_empty_variables_count_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIREBOOK_HOOKS_PASSWORD", "")
    stored = Credentials(username="ann", password=" of the file ", token=TOKEN)
    credentials = credentials_of("/endpoints/hooks", {"/endpoints/hooks": stored})
    assert credentials == stored


@pytest.mark.faults
def test_killed_gateway_loses_no_acknowledged_message(catalog: Path, tmp_path: Path, port: int) -> None:
    arguments = ["--endpoint", "/endpoints/hooks", "--segment-age", "1s", "--segment-size", "1"]
    clients = Clients(port)
    try:
        for _ in range(KILLS):
            with gateway(catalog, tmp_path / "to", *arguments) as process:
                time.sleep(random.uniform(0.02, 1.5))
                process.process.kill()
    finally:
        clients.stop()
    with gateway(catalog, tmp_path / "to", *arguments) as process:
        process.stop()
    bodies = [record["body"] for record in captured(tmp_path / "to")]
    clients.check_captured(bodies)  # nothing is sent again here, so nothing is there twice
    print(f"{KILLS} kills, {len(clients.acknowledged)} acknowledged, {len(bodies)} captured")


@pytest.mark.faults
@pytest.mark.xdist_group("servers")
def test_killed_gateway_loses_nothing_that_it_wrote_to_a_store(
    catalog: Path, tmp_path: Path, port: int, store: str
) -> None:
    folder = f"{store}/captured"
    clients = Clients(port)
    try:
        for _ in range(KILLS):
            with gateway(catalog, folder, "--endpoint", "/endpoints/hooks", "--linger", "0.2") as process:
                time.sleep(random.uniform(0.5, 2))
                wait_until(lambda: bool(clients.acknowledged))
                process.process.kill()
    finally:
        clients.stop()
    objects = [path.read_bytes() for path, _ in location_of(folder).below() if path.name.endswith(".jsonl")]
    bodies = [json.loads(line)["body"] for content in objects for line in content.splitlines()]
    clients.check_captured(bodies)
    assert len(objects) < len(bodies)
    report = land(folder, Catalog.load(catalog), tmp_path / "tables", runner=LocalRunner())
    assert (report.read, list(report.problems)) == (len(bodies), [])


@pytest.mark.xdist_group("servers")
def test_second_gateway_is_rejected_while_the_first_writes_to_a_store(
    catalog: Path, tmp_path: Path, port: int, store: str
) -> None:
    folder = f"{store}/captured"
    arguments = ["--endpoint", "/endpoints/hooks", "--linger", "0"]

    def post(number: str) -> None:
        assert httpx.post(f"http://127.0.0.1:{port}/hooks", content=number, trust_env=False).status_code == 202

    with gateway(catalog, folder, *arguments) as process:
        other = subprocess.run(
            command(catalog, folder, *arguments, "--listen", "127.0.0.1:0"),
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert other.returncode == 2
        assert f"(process {process.process.pid} on " in other.stderr
        assert f"is writing to '{folder}' [target-locked]" in other.stderr
        post("1")
        process.process.kill()
        process.process.wait()
    with gateway(catalog, folder, *arguments) as process:  # the lease of a process that was killed is not waited for
        post("2")
        assert process.stop()[0] == 0
    with gateway(catalog, folder, *arguments) as process:
        post("3")
        assert process.stop()[0] == 0
    report = land(folder, Catalog.load(catalog), tmp_path / "tables", runner=LocalRunner())
    assert (report.read, list(report.problems)) == (3, [])


@pytest.mark.faults
def test_gateway_that_was_replaced_ends(catalog: Path, port: int, bucket: str) -> None:
    """As after a minute without an answer: the next lease exists when the first one is renewed."""
    folder = f"{bucket}/captured"
    with gateway(catalog, folder, "--endpoint", "/endpoints/hooks", "--linger", "0") as process:
        (location_of(folder) / "_wirebook" / "leases" / "2.json").write_bytes(b"{}")
        assert process.process.stderr
        assert "has taken over" in process.process.stderr.read()
        assert process.process.wait(60) == 2


def test_store_that_cannot_be_written_is_an_error_at_the_start(catalog: Path, port: int, s3: str) -> None:
    arguments = ["--endpoint", "/endpoints/hooks", "--linger", "0"]
    process = subprocess.run(
        command(catalog, "s3://no-such-bucket/captured", *arguments), capture_output=True, text=True, check=False
    )
    assert process.returncode == 2
    assert "[store-failed]" in process.stderr
    assert "never-shown" not in process.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--endpoint", "/endpoints/none"], "unknown-endpoint", "the catalogue has no endpoint '/endpoints/none'"),
        (["--endpoint", "/endpoints/far"], "bad-setting", "does not terminate TLS"),
        (["--endpoint", "/endpoints/far", "--listen", "0.0.0.0:0"], "bad-setting", "anyone who can reach '0.0.0.0'"),
        (["--endpoint", "/endpoints/pull"], "not-receivable", "its 'usage' is not 'producer'"),
        (["--endpoint", "/endpoints/bare"], "incomplete-endpoint", "does not state an address in 'endpoints'"),
        (["--endpoint", "/endpoints/tenant"], "missing-context", "--set tenant=TEXT"),
        (["--endpoint", "/endpoints/secret"], "credential", "set it in the environment or in a secrets file"),
        (["--endpoint", "/endpoints/odd"], "bad-address", "'ftp://h/' is not a URI that begins with http://"),
        (["--endpoint", "/endpoints/mail"], "not-receivable", "messages of the protocol 'SMTP' cannot be captured"),
        (["--endpoint", "/endpoints/hooks", "--endpoint", "/endpoints/same"], "bad-setting", "the same address and"),
    ],
)
def test_endpoint_that_cannot_be_served_is_an_error(
    tmp_path: Path, arguments: list[str], code: str, text: str, port: int
) -> None:
    far = endpoint(port)
    far["protocoloptions"]["endpoints"] = [{"uri": "https://hooks.example.com/a"}]
    tenant, secret, odd = endpoint(port, "/{tenant}"), endpoint(port), endpoint(port)
    secret["protocoloptions"]["endpoints"] = [{"uri": "http://user:hunter2@localhost/"}]
    odd["protocoloptions"]["endpoints"] = [{"uri": "ftp://h/"}]
    endpoints = {"hooks": endpoint(port), "same": endpoint(port, "/hooks/"), "far": far, "tenant": tenant}
    endpoints |= {"secret": secret, "odd": odd, "bare": {"usage": ["producer"], "protocol": "HTTP"}}
    endpoints |= {"pull": endpoint(port) | {"usage": ["consumer"]}}
    endpoints |= {"mail": {"usage": ["consumer"], "protocol": "SMTP"}}
    catalog = write_catalog(tmp_path, endpoints)
    done = subprocess.run(command(catalog, tmp_path / "to", *arguments), capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert f"[{code}]" in done.stderr
    assert text in done.stderr
    assert "hunter2" not in done.stderr
    assert captured(tmp_path / "to") == [] if (tmp_path / "to").exists() else True
