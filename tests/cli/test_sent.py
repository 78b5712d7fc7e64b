"""The commands that `wirebook build --as` prints, run: what arrives is the message that was built, to the byte.

curl sends to an HTTP server of Python's, mosquitto_pub to a mosquitto, kcat to the broker within librdkafka.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest
from confluent_kafka import Consumer, Producer
from paho.mqtt.enums import CallbackAPIVersion

from tests.capture.mosquitto import connected
from wirebook.bindings import AnyMessage, HttpMessage, from_bytes
from wirebook.catalog import Catalog
from wirebook.cli.app import run
from wirebook.convert import confluent, paho

SECONDS = 20
EVENT = {
    "envelope": "CloudEvents/1.0",
    "envelopemetadata": {"type": {"value": "t"}, "source": {"value": "/s/{a}"}, "ext": {"value": "{b}"}},
}
MESSAGES: dict[str, dict[str, Any]] = {
    "curl": EVENT
    | {
        "protocol": "HTTP",
        "protocoloptions": {
            "method": "PUT",
            "path": "/x/{a}",
            "query": {"q": "{b}"},
            "headers": [{"name": "X-A", "value": "{b}"}, {"name": "X-A", "value": "2"}],
        },
    },
    "kcat": EVENT
    | {"protocol": "KAFKA", "protocoloptions": {"topic": "t1", "key": "{a}", "headers": {"h": "{b}", "e": "="}}},
    "mosquitto_pub": EVENT
    | {
        "protocol": "MQTT/5.0",
        "protocoloptions": {
            "topic_name": "x/{b}",
            "qos": 1,
            "response_topic": "r/{b}",
            "message_expiry_interval": 60,
            "user_properties": [{"name": "U", "value": "{a}"}, {"name": "U", "value": "2"}],
        },
    },
}
HOSTILE = {
    "quotes": 'it\'s "$HOME" `id` $(id) \\ %s %% * ~ ; & | > !',
    "unicode": "é 😀 e\u0301 \u202e ﬁ",
    "like an option": "-n --data=@/etc/passwd",
    "like a file": "@/etc/passwd",
    "braces": "{}[1-3],{{Count}}",
}
PAYLOADS = (b"", b"plain", b"-n", b"@x\n", b"\x00\xff\x01\\%'\n", bytes(range(254)) * 3, "it's é\n\n".encode())


def needs(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program) and not Path("/usr/sbin", program).exists():
            pytest.skip(f"needs the program '{program}'")


def sent(tmp_path: Path, capsys: Any, program: str, server: str, text: str, payload: bytes) -> Catalog:
    """Have the command built, and run by a shell."""
    catalogue, data = tmp_path / "c.json", tmp_path / "data"
    catalogue.write_text(json.dumps({"messagegroups": {"g": {"messages": {"m": MESSAGES[program]}}}}))
    data.write_bytes(payload)
    first = text.replace("/", "-")
    b = first.replace("+", "-").replace("#", "-") if program == "mosquitto_pub" else text
    arguments = ["--catalog", str(catalogue), "--set", f"a={first}", "--set", f"b={b}", "--data", str(data)]
    arguments += ["--attribute", "datacontenttype=application/x", "--as", program, "--server", server]
    assert run(["build", "/messagegroups/g/messages/m", *arguments]) == 0, capsys.readouterr().err
    command = capsys.readouterr().out
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=SECONDS, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b""), command
    return Catalog.load(str(catalogue))


def check(catalog: Catalog, wire: AnyMessage, text: str, payload: bytes) -> None:
    outcome = catalog.match(wire)
    assert outcome.matched, outcome
    assert not outcome.problems
    assert outcome.bindings["a"] == text.replace("/", "-")
    read = outcome.received.payload
    assert (read.raw if read else b"") == payload


CASES = [(text, PAYLOADS[n]) for n, text in enumerate(HOSTILE.values())] + [("a", payload) for payload in PAYLOADS[5:]]


# -- HTTP -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def http() -> Iterator[tuple[str, queue.Queue[HttpMessage]]]:
    got: queue.Queue[HttpMessage] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers: list[Any] = [(n, v.encode("latin-1").decode()) for n, v in self.headers.items()]
            got.put(HttpMessage(method="PUT", target=self.path, headers=headers, body=from_bytes(body)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("text", "payload"), CASES)
def test_server_receives_the_message_of_curl(tmp_path: Path, capsys: Any, http: Any, text: str, payload: bytes) -> None:
    needs("curl")
    server, got = http
    catalog = sent(tmp_path, capsys, "curl", server, text, payload)
    check(catalog, got.get(timeout=SECONDS), text, payload)


# -- Kafka ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kafka() -> Iterator[tuple[str, Consumer]]:
    producer = Producer({"test.mock.num.brokers": 1})
    (broker,) = producer.list_topics(timeout=SECONDS).brokers.values()
    server = f"{broker.host}:{broker.port}"
    consumer = Consumer({"bootstrap.servers": server, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t1"])
    yield server, consumer
    consumer.close()


@pytest.mark.parametrize(("text", "payload"), CASES)
def test_broker_receives_the_message_of_kcat(
    tmp_path: Path, capsys: Any, kafka: Any, text: str, payload: bytes
) -> None:
    needs("kcat")
    server, consumer = kafka
    catalog = sent(tmp_path, capsys, "kcat", server, text, payload)
    message = polled(consumer)
    check(catalog, confluent.record_of(message), text, payload)


def polled(consumer: Consumer) -> Any:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            return message
    raise AssertionError("nothing arrived")


# -- MQTT -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, queue.Queue[Any]]]:
    needs("mosquitto", "mosquitto_pub")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = tmp_path_factory.mktemp("mosquitto") / "settings"
    settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    path = f"{os.environ['PATH']}:/usr/sbin"
    program = shutil.which("mosquitto", path=path)
    assert program
    with subprocess.Popen([program, "-c", settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as broker:
        try:
            with subscribed(port) as got:
                yield f"127.0.0.1:{port}", got
        finally:
            broker.kill()


@contextlib.contextmanager
def subscribed(port: int) -> Iterator[queue.Queue[Any]]:
    got: queue.Queue[Any] = queue.Queue()
    ready = threading.Event()
    client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.on_message = lambda _client, _data, message: got.put(message)
    client.on_subscribe = lambda *_: ready.set()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            client.connect("127.0.0.1", port)
            break
        time.sleep(0.1)
    client.subscribe("#", qos=1)
    with connected(client):
        assert ready.wait(SECONDS)
        yield got


@pytest.mark.parametrize(("text", "payload"), CASES)
def test_broker_receives_the_message_of_mosquitto_pub(
    tmp_path: Path, capsys: Any, mosquitto: Any, text: str, payload: bytes
) -> None:
    server, got = mosquitto
    catalog = sent(tmp_path, capsys, "mosquitto_pub", server, text, payload)
    check(catalog, paho.record_of(got.get(timeout=SECONDS)), text, payload)
