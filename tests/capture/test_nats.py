"""Core NATS: messages are captured as they are on the wire, across restarts of the server; a stop loses none."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from brokers import NatsServer, free_port

from tests.brokers.nats_tls import tls_server
from tests.capture.gateway import (
    captured,
    full_disk,
    gateway,
    lines_in,
    make_room,
    pending_bytes,
    wait_for_note,
    wait_until,
    write_catalog,
)

ARGUMENTS = ["--endpoint", "/endpoints/ovens"]


@pytest.fixture
def server() -> Iterator[NatsServer]:
    running = NatsServer()
    yield running
    running.kill()


def catalog_of(server: NatsServer, folder: Path, **options: Any) -> Path:
    options = {"subjectfilter": "ovens.>", "endpoints": [{"uri": f"nats://127.0.0.1:{server.port}"}]} | options
    return write_catalog(folder, {"ovens": {"usage": ["subscriber"], "protocol": "NATS", "protocoloptions": options}})


def publish(server: NatsServer, *messages: tuple[str, bytes], **login: Any) -> None:
    """Publish, and return after the server has processed everything."""

    async def run() -> None:
        client = await nats.connect(f"nats://localhost:{server.port}", allow_reconnect=False, **login)
        for subject, data in messages:
            await client.publish(subject, data)
        await client.flush()  # its PING overtakes what is still queued
        await client.flush()
        await client.close()

    asyncio.run(run())


def test_message_is_captured_as_it_is_on_the_wire(server: NatsServer, tmp_path: Path) -> None:
    """The headers are sent by hand: nats-py cannot send a header twice."""
    folder = tmp_path / "to"
    with gateway(catalog_of(server, tmp_path), folder, *ARGUMENTS) as process:
        wait_for_note(process, "receiving 'ovens.>'")
        headers = b"NATS/1.0\r\nce-id: 1\r\nX-Twice: b\r\nX-Twice:a\r\nEmpty: \r\nRaw: \xff\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port)) as wire:
            wire.sendall(b'CONNECT {"verbose":false,"headers":true}\r\n')
            sizes = f"{len(headers)} {len(headers) + 2}"
            wire.sendall(f"HPUB ovens.7 answers.1 {sizes}\r\n".encode() + headers + b"\xff\x00\r\n")
            wire.sendall(b"PUB ovens.8.a 0\r\n\r\nPUB other 1\r\nx\r\nPING\r\n")
            while b"PONG" not in wire.recv(4096):
                pass
        wait_until(lambda: len(lines_in(folder)) == 2)
        assert process.stop()[0] == 0
    first, second = captured(folder)
    assert first.pop("received") <= second.pop("received")
    assert first == {
        "protocol": "NATS",
        "endpoint": "/endpoints/ovens",
        "subject": "ovens.7",
        "reply-to": "answers.1",
        "headers": [["ce-id", "1"], ["X-Twice", "b"], ["X-Twice", "a"], ["Empty", ""], ["Raw", {"base64": "/w=="}]],
        "data": {"base64": "/wA="},
    }
    assert second == {"protocol": "NATS", "endpoint": "/endpoints/ovens", "subject": "ovens.8.a", "data": ""}


def test_orderly_stop_keeps_everything_that_was_delivered(server: NatsServer, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    with gateway(catalog_of(server, tmp_path), folder, *ARGUMENTS) as process:
        wait_for_note(process, "receiving 'ovens.>'")
        bodies = [str(number) for number in range(20_000)]
        publish(server, *(("ovens.1", body.encode()) for body in bodies))
        assert process.stop()[0] == 0
    assert [record["data"] for record in captured(folder)] == bodies


@pytest.mark.faults
def test_gateway_connects_again_after_the_server_was_killed(server: NatsServer, tmp_path: Path) -> None:
    folder = tmp_path / "to"
    with gateway(catalog_of(server, tmp_path), folder, *ARGUMENTS) as process:
        wait_for_note(process, "receiving 'ovens.>'")
        for number in range(3):
            publish(server, ("ovens.1", str(number).encode()))
            wait_until(lambda number=number: len(lines_in(folder)) == number + 1)  # type: ignore[misc]
            server.kill()
            wait_for_note(process, "not receiving: ")
            server.start()
            wait_for_note(process, "receiving 'ovens.>'")
        process.stop()
    assert [record["data"] for record in captured(folder)] == ["0", "1", "2"]


def test_full_memory_stops_reading(server: NatsServer, tmp_path: Path) -> None:
    """Nothing can be written: the gateway reads as much as fits `--memory`, and the rest waits in the server."""
    metrics, folder = f"127.0.0.1:{free_port()}", tmp_path / "to"
    arguments = [*ARGUMENTS, "--memory", "1", "--metrics-address", metrics]
    with full_disk(catalog_of(server, tmp_path), folder, *arguments) as process:
        wait_for_note(process, "receiving 'ovens.>'")
        publish(server, *(("ovens.1", str(number).encode() + b"x" * 20_000) for number in range(300)))
        wait_until(lambda: pending_bytes(metrics) > 1 << 20)
        time.sleep(0.5)
        assert pending_bytes(metrics) < (1 << 20) + 100_000
        make_room(process)
        wait_until(lambda: len(lines_in(folder)) == 300)
        assert pending_bytes(metrics) == 0
        assert process.stop()[0] == 0
    assert [record["data"].rstrip("x") for record in captured(folder)] == [str(number) for number in range(300)]


def test_queue_group_shares_messages_between_gateways(server: NatsServer, tmp_path: Path) -> None:
    catalog = catalog_of(server, tmp_path, queuegroup="landing")
    with (
        gateway(catalog, tmp_path / "a", *ARGUMENTS) as first,
        gateway(catalog, tmp_path / "b", *ARGUMENTS) as second,
    ):
        wait_for_note(first, "receiving")
        wait_for_note(second, "receiving")
        publish(server, *(("ovens.1", str(number).encode()) for number in range(200)))
        first.stop()
        second.stop()
    shares = [captured(tmp_path / name) for name in "ab"]
    assert all(shares)
    assert sorted(int(record["data"]) for share in shares for record in share) == list(range(200))


def test_wrong_token_is_reported_without_it(tmp_path: Path) -> None:
    server = NatsServer("--auth", "right-secret")
    try:
        catalog = catalog_of(server, tmp_path)
        with gateway(catalog, tmp_path / "to", *ARGUMENTS, env={"WIREBOOK_OVENS_TOKEN": "wrong-secret"}) as process:
            line = wait_for_note(process, "not receiving: ")
            _, rest = process.stop()
            assert "uthorization" in line
            assert "wrong-secret" not in line + rest
        with gateway(catalog, tmp_path / "to", *ARGUMENTS, env={"WIREBOOK_OVENS_TOKEN": "right-secret"}) as process:
            wait_for_note(process, "receiving 'ovens.>'")
            process.stop()
    finally:
        server.kill()


def test_wrong_password_is_reported_without_it(tmp_path: Path) -> None:
    server = NatsServer("--user", "app", "--pass", "right-secret")
    try:
        catalog, folder = catalog_of(server, tmp_path), tmp_path / "to"
        environment = {"WIREBOOK_OVENS_USERNAME": "app", "WIREBOOK_OVENS_PASSWORD": "wrong-secret"}
        with gateway(catalog, folder, *ARGUMENTS, env=environment) as process:
            line = wait_for_note(process, "receiving")
            _, rest = process.stop()
            assert line == "/endpoints/ovens: not receiving: nats: 'Authorization Violation'; connecting again\n"
            assert "secret" not in rest + str(process.notes)
        secrets = tmp_path / "secrets.json"
        secrets.write_text('{"/endpoints/ovens": {"username": "app", "password": "right-secret"}}')
        with gateway(catalog, folder, *ARGUMENTS, "--secrets", str(secrets)) as process:
            wait_for_note(process, "receiving 'ovens.>'")
            publish(server, ("ovens.1", b"x"), user="app", password="right-secret")
            assert process.stop()[0] == 0
    finally:
        server.kill()
    assert [record["data"] for record in captured(folder)] == ["x"]


def test_server_and_gateway_verify_each_other(tmp_path: Path) -> None:
    """The server needs a certificate of the client, and its own is of a private authority."""
    with tls_server(tmp_path, "--tlsverify") as server:
        catalog, folder = catalog_of(server, tmp_path, endpoints=[{"uri": server.tls}]), tmp_path / "to"
        files = {"CAFILE": "ca.pem", "CERTFILE": "cert.pem", "KEYFILE": "key.pem"}
        environment = {f"WIREBOOK_OVENS_{name}": str(server.certificate.parent / file) for name, file in files.items()}
        only_authority = {"WIREBOOK_OVENS_CAFILE": environment["WIREBOOK_OVENS_CAFILE"]}
        for variables, reason in (
            ({}, "certificate verify failed: unable to get local issuer"),
            (only_authority, "certificate required|Connection lost|Connection reset"),  # after the handshake of TLS 1.3
        ):
            with gateway(catalog, folder, *ARGUMENTS, env=variables) as process:
                line = wait_for_note(process, "receiving")
                assert line.startswith("/endpoints/ovens: not receiving: ")
                assert re.search(reason, line), line
                code, rest = process.stop()
                *notes, _ = rest.splitlines()
                assert code == 0, rest
                assert all("not receiving" in note for note in notes), rest
        with gateway(catalog, folder, *ARGUMENTS, env=environment) as process:
            wait_for_note(process, f"receiving 'ovens.>' from localhost:{server.port}")
            bodies = [f"{number}." + "x" * random.choice((1, 40_000)) for number in range(300)]
            publish(server, *(("ovens.1", body.encode()) for body in bodies), tls=server.client_settings())
            assert process.stop()[0] == 0
    assert [record["data"] for record in captured(folder)] == bodies


def test_password_is_not_sent_to_a_server_without_tls(server: NatsServer, tmp_path: Path) -> None:
    catalog = catalog_of(server, tmp_path, endpoints=[{"uri": f"tls://localhost:{server.port}"}])
    environment = {"WIREBOOK_OVENS_USERNAME": "app", "WIREBOOK_OVENS_PASSWORD": "secret"}
    with gateway(catalog, tmp_path / "to", *ARGUMENTS, env=environment) as process:
        line = wait_for_note(process, "receiving")
        assert line == "/endpoints/ovens: not receiving: the server does not use TLS; connecting again\n"
        code, rest = process.stop()
        assert (code, rest) == (
            0,
            "/endpoints/ovens: 0 messages, 0 acknowledged; not receiving: the server does not use TLS\n",
        )


def test_missing_filter_names_its_pointer(server: NatsServer, tmp_path: Path) -> None:
    catalog = catalog_of(server, tmp_path, subjectfilter=None)
    with (
        pytest.raises(AssertionError, match="/endpoints/ovens/protocoloptions/subjectfilter: error: "),
        gateway(catalog, tmp_path / "to", *ARGUMENTS),
    ):
        pass
