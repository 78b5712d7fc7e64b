"""MQTT with Mosquitto: messages are captured unchanged; kills of the gateway and restarts of the broker lose none that
the broker accepted."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import paho.mqtt.client as mqtt
import pytest
from brokers import MosquittoBroker, free_port
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.capture.gateway import (
    KILLS,
    GatewayProcess,
    captured,
    command,
    gateway,
    kill_often,
    wait_for_all,
    wait_until,
    write_catalog,
)
from tests.capture.mosquitto import connected, mosquitto

pytestmark = pytest.mark.xdist_group("mosquitto")
VERSIONS = ["MQTT/3.1.1", "MQTT/5.0"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MosquittoBroker]:
    with mosquitto(tmp_path / "broker") as running:
        yield running


def catalog_of(broker: MosquittoBroker, folder: Path, protocol: str, **options: Any) -> Path:
    options = {"topicfilter": "{plant}/#", "qos": 2} | options
    options = {"endpoints": [{"uri": f"mqtt://127.0.0.1:{broker.port}"}]} | options
    endpoint = {"usage": ["subscriber"], "protocol": protocol, "protocoloptions": options}
    return write_catalog(folder, {"ovens": endpoint})


ARGUMENTS = ["--endpoint", "/endpoints/ovens", "--set", "plant=lund"]


@contextlib.contextmanager
def publisher(port: int, protocol: str = "MQTT/5.0") -> Iterator[mqtt.Client]:
    """A client with a session: without one, messages of QoS 2 can be lost on their way to the broker."""
    is_v5 = protocol == "MQTT/5.0"
    client = mqtt.Client(
        CallbackAPIVersion.VERSION2,
        "publisher",
        clean_session=None if is_v5 else False,
        protocol=mqtt.MQTTv5 if is_v5 else mqtt.MQTTv311,
    )
    client.reconnect_delay_set(1, 1)
    properties = None
    if is_v5:
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 3600
    client.connect(
        "127.0.0.1", port, clean_start=False if is_v5 else mqtt.MQTT_CLEAN_START_FIRST_ONLY, properties=properties
    )
    with connected(client):
        yield client


def lines_in(folder: Path) -> bytes:
    """Everything in segments, also in the one under way."""
    return b"".join(path.read_bytes() for path in folder.glob("*.jsonl")) + b"".join(
        path.read_bytes() for path in folder.glob(".*.partial")
    )


@pytest.mark.parametrize("protocol", VERSIONS)
def test_every_quality_of_service_is_captured_unchanged(broker: MosquittoBroker, tmp_path: Path, protocol: str) -> None:
    catalog, folder = catalog_of(broker, tmp_path, protocol), tmp_path / "to"
    properties = None
    if protocol == "MQTT/5.0":
        properties = Properties(PacketTypes.PUBLISH)
        properties.ContentType, properties.ResponseTopic = "text/plain", "answers/1"
        properties.CorrelationData, properties.PayloadFormatIndicator = b"\xff\x01", 0
        properties.UserProperty = [("zone", "b"), ("zone", "a")]
    with gateway(catalog, folder, *ARGUMENTS) as process:
        wait_for_receiving(process)
        with publisher(broker.port, protocol) as client:
            for qos in (0, 1, 2):
                sent = client.publish(f"lund/{qos}", b"\x00\xff", qos, retain=qos == 1, properties=properties)
                sent.wait_for_publish(60)
            client.publish("malmo/1", b"not ours", 1).wait_for_publish(60)
        wait_until(lambda: lines_in(folder).count(b"\n") == 3)
        assert process.stop()[0] == 0
    records = captured(folder)
    assert [record.pop("topic") for record in records] == ["lund/0", "lund/1", "lund/2"]
    assert [record.pop("qos") for record in records] == [0, 1, 2]
    assert [record.pop("retain") for record in records] == [False, protocol == "MQTT/5.0", False]
    expected: dict[str, Any] = {"protocol": protocol, "endpoint": "/endpoints/ovens", "payload": {"base64": "AP8="}}
    if properties is not None:
        values: dict[str, Any] = {"payload_format": 0, "response_topic": "answers/1", "content_type": "text/plain"}
        expected["properties"] = values | {"correlation_data": {"base64": "/wE="}}
        expected["user_properties"] = [["zone", "b"], ["zone", "a"]]
    for record in records:
        assert record.pop("received").endswith("Z")
        assert record == expected


def wait_for_receiving(process: GatewayProcess) -> None:
    """Read what the gateway prints until it has subscribed."""
    assert process.process.stderr
    while "receiving '" not in (line := process.process.stderr.readline()):
        assert line, "the gateway ended"


@pytest.mark.parametrize("protocol", VERSIONS)
@pytest.mark.parametrize("qos", [1, 2])
def test_message_that_is_not_durable_is_not_acknowledged(
    broker: MosquittoBroker, tmp_path: Path, protocol: str, qos: int
) -> None:
    """A gateway whose writes fail is killed; the next one receives what the first could not store."""
    catalog, folder = catalog_of(broker, tmp_path, protocol), tmp_path / "to"
    arguments = command(catalog, folder, *ARGUMENTS)
    arguments[2] = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n" + arguments[2]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    try:
        running = GatewayProcess(process)
        wait_for_receiving(running)
        bodies = [f"{number}".rjust(100) for number in range(20)]
        with publisher(broker.port, protocol) as client:
            for body in bodies:
                client.publish("lund/1", body, qos).wait_for_publish(60)
        assert process.stderr
        while "cannot write a segment" not in (line := process.stderr.readline()):
            assert line, "the gateway ended"
        time.sleep(0.5)  # longer than an acknowledgement takes
    finally:
        process.kill()
        process.communicate()
    with gateway(catalog, folder, *ARGUMENTS) as again:
        wait_until(lambda: all(body.encode() in lines_in(folder) for body in bodies))
        again.stop()
    assert {record["payload"] for record in captured(folder)} == set(bodies)


@pytest.mark.parametrize("qos", [0, 1])
def test_full_memory_stops_reading(broker: MosquittoBroker, tmp_path: Path, qos: int) -> None:
    """Nothing can be written: the gateway reads as much as fits `--memory`, and the broker keeps the rest."""
    metrics = f"127.0.0.1:{free_port()}"
    arguments = [*ARGUMENTS, "--memory", "1", "--metrics-address", metrics]
    arguments = command(catalog_of(broker, tmp_path, "MQTT/5.0", qos=qos), tmp_path / "to", *arguments)
    arguments[2] = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))\n" + arguments[2]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)
    try:
        wait_for_receiving(GatewayProcess(process))
        with publisher(broker.port) as client:
            for _ in range(500):
                sent = client.publish("lund/1", b"x" * 20_000, qos)
            sent.wait_for_publish(60)

        def pending() -> int:
            status: dict[str, Any] = httpx.get(f"http://{metrics}/readyz", trust_env=False).json()
            return int(status["pending_bytes"])

        wait_until(lambda: pending() > 1 << 20)
        time.sleep(0.5)
        assert pending() < (1 << 20) + 100_000
    finally:
        process.kill()
        process.communicate()


MAX_UNCONFIRMED = 10
"""Maximum number of messages that a publisher sends before the broker confirms them.

Mosquitto refuses messages of QoS 2 beyond its `max_inflight_messages`, 20, with the reason of a PUBREC. paho ignores it
and completes the exchange, so it would report a refused message as published.
"""


class Publisher:
    """Publishes numbered messages until it is stopped, and remembers which the broker accepted."""

    def __init__(self, port: int, protocol: str) -> None:
        self.accepted, self.sent = set[str](), 0
        self._publisher, self._stop = contextlib.ExitStack(), threading.Event()
        self._client = self._publisher.enter_context(publisher(port, protocol))
        self._open: list[tuple[mqtt.MQTTMessageInfo, str]] = []
        self._thread = threading.Thread(target=self._publish)
        self._thread.start()

    def _publish(self) -> None:
        latest = float("inf")  # what is not confirmed soon after the end does not count as accepted
        while time.monotonic() < latest and (self._open or not self._stop.is_set()):
            if self._stop.is_set():
                latest = min(latest, time.monotonic() + 10)
            has_room = len(self._open) < MAX_UNCONFIRMED and self._client.is_connected()
            if has_room and not self._stop.is_set():
                self.sent += 1
                time.sleep(0.01 * (self.sent % 20 == 0))
                body = f"{self.sent}.{'x' * random.randrange(500)}"
                info = self._client.publish(f"lund/{self.sent % 7}", body, random.choice((1, 2)))
                if info.rc == mqtt.MQTT_ERR_SUCCESS:  # else the connection has ended: sent later, and never reported
                    self._open.append((info, body))
            else:
                time.sleep(0.01)
            published = [info.is_published() for info, _ in self._open]
            pairs = list(zip(self._open, published, strict=True))
            self.accepted |= {body for (_, body), is_published in pairs if is_published}
            self._open = [pair for pair, is_published in pairs if not is_published]

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._publisher.close()


@pytest.mark.faults
@pytest.mark.parametrize("protocol", VERSIONS)
def test_kills_and_restarts_lose_no_accepted_message(broker: MosquittoBroker, tmp_path: Path, protocol: str) -> None:
    catalog, folder = catalog_of(broker, tmp_path, protocol), tmp_path / "to"
    arguments = [*ARGUMENTS, "--segment-age", "1s"]
    with gateway(catalog, folder, *arguments) as first:  # the session exists from now on
        wait_for_receiving(first)
        source = Publisher(broker.port, protocol)
        time.sleep(random.uniform(0.1, 0.5))
    try:
        kill_often(lambda: gateway(catalog, folder, *arguments), broker.stop, broker.start)
    finally:
        source.stop()
    with gateway(catalog, folder, *arguments) as last:
        wait_for_all(lambda: source.accepted, folder, "payload")
        assert last.stop()[0] == 0
    bodies = Counter(record["payload"] for record in captured(folder))
    assert len(source.accepted) > 100
    assert source.accepted <= set(bodies)
    twice = bodies.total() - len(bodies)
    print(f"{KILLS} kills: {source.sent} sent, {len(source.accepted)} accepted, {twice} captured twice")


def bodies_in(folder: Path) -> set[str]:
    lines = lines_in(folder).splitlines(keepends=True)
    return {json.loads(line)["payload"] for line in lines if line.endswith(b"}\n")}


def test_wrong_password_is_reported_without_it(tmp_path: Path) -> None:
    with mosquitto(tmp_path / "broker", password="right-secret") as broker:
        catalog, folder = catalog_of(broker, tmp_path, "MQTT/5.0"), tmp_path / "to"
        environment = {"WIREBOOK_OVENS_USERNAME": "gateway", "WIREBOOK_OVENS_PASSWORD": "wrong-secret"}
        with gateway(catalog, folder, *ARGUMENTS, env=environment) as process:
            assert process.process.stderr
            line = process.process.stderr.readline()
            assert "the broker refused the connection: Not authorized" in line
            _, rest = process.stop()
            assert "wrong-secret" not in line + rest + str(process.notes)
        secrets = tmp_path / "secrets.json"
        secrets.write_text('{"/endpoints/ovens": {"username": "gateway", "password": "right-secret"}}')
        with gateway(catalog, folder, *ARGUMENTS, "--secrets", str(secrets)) as process:
            wait_for_receiving(process)
            process.stop()


def test_broker_is_verified_and_large_messages_pass_tls(tmp_path: Path) -> None:
    """Several packets are decrypted at once; all of them are read although the socket has no more bytes."""
    with mosquitto(tmp_path / "broker", tls=True) as broker:
        address = [{"uri": f"mqtts://localhost:{broker.port}"}]
        catalog, folder = catalog_of(broker, tmp_path, "MQTT/5.0", endpoints=address), tmp_path / "to"
        with gateway(catalog, folder, *ARGUMENTS) as process:
            assert process.process.stderr
            assert "certificate verify failed" in process.process.stderr.readline()
            process.stop()
        with gateway(catalog, folder, *ARGUMENTS, env={"WIREBOOK_OVENS_CAFILE": str(broker.certificate)}) as process:
            wait_for_receiving(process)
            client = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
            client.tls_set(str(broker.certificate))
            client.connect("localhost", broker.port)
            with connected(client):
                bodies = [f"{number}." + "x" * random.choice((1, 40_000)) for number in range(300)]
                for info in [client.publish("lund/1", body, 1) for body in bodies]:
                    info.wait_for_publish(60)
            wait_until(lambda: lines_in(folder).count(b"\n") == 300)
            process.stop()
    assert {int(record["payload"].split(".")[0]) for record in captured(folder)} == set(range(300))


def test_quality_of_service_0_is_noted(broker: MosquittoBroker, tmp_path: Path) -> None:
    catalog = catalog_of(broker, tmp_path, "MQTT/5.0", qos=0)
    with gateway(catalog, tmp_path / "to", *ARGUMENTS) as process:
        _, err = process.stop()
        assert "'qos' is 0" in "\n".join([*process.notes, err])  # before or after it is ready
