"""One gateway with endpoints of several protocols: while the broker of one is away, the others receive."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest
from brokers import MosquittoBroker, NatsServer, free_port

from tests.capture.gateway import GatewayProcess, gateway, wait_for_note, wait_until, write_catalog
from tests.capture.mosquitto import mosquitto
from tests.capture.test_mqtt import publisher
from tests.capture.test_nats import publish
from wirebook.landing.stores.locations import location_of

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("servers")]
ENDPOINTS = ("http", "mqtt", "nats")


class Senders:
    """Sends to each endpoint of a gateway, and remembers what was acknowledged, by endpoint."""

    def __init__(self, folder: Path, to: str, broker: MosquittoBroker, server: NatsServer) -> None:
        self.acknowledged: dict[str, list[str]] = {name: [] for name in ENDPOINTS}
        self._broker, self._server, self._to, self._number = broker, server, location_of(to), 0
        self._url, self.metrics = f"http://127.0.0.1:{free_port()}/hooks", f"127.0.0.1:{free_port()}"
        mqtt = {"topicfilter": "plants/#", "qos": 1, "endpoints": [{"uri": f"mqtt://127.0.0.1:{broker.port}"}]}
        nats = {"subjectfilter": "plants.>", "endpoints": [{"uri": f"nats://127.0.0.1:{server.port}"}]}
        endpoints = {
            "http": ("producer", "HTTP", {"endpoints": [{"uri": self._url}]}),
            "mqtt": ("subscriber", "MQTT/5.0", mqtt),
            "nats": ("subscriber", "NATS", nats),
        }
        self.catalog = write_catalog(
            folder,
            {
                name: {"usage": [usage], "protocol": protocol, "protocoloptions": options}
                for name, (usage, protocol, options) in endpoints.items()
            },
        )

    def send(self, *names: str) -> None:
        """Send five messages to each of these endpoints, and wait until they are durable."""
        for name in names:
            self._number += 5
            bodies = [f"{name} {number}" for number in range(self._number - 5, self._number)]
            getattr(self, f"_{name}")(bodies)
            self.acknowledged[name] += bodies
        wait_until(lambda: sum(self.captured().values()) >= sum(map(len, self.acknowledged.values())))

    def _http(self, bodies: list[str]) -> None:
        for body in bodies:
            assert httpx.post(self._url, content=body, trust_env=False, timeout=60).status_code == 202

    def _mqtt(self, bodies: list[str]) -> None:
        client = publisher(self._broker.port)
        for body in bodies:
            client.publish("plants/1", body, 1).wait_for_publish(60)
        client.disconnect()
        client.loop_stop()

    def _nats(self, bodies: list[str]) -> None:
        publish(self._server, *(("plants.1", body.encode()) for body in bodies))

    def captured(self) -> Counter[tuple[str, str]]:
        """The endpoints and messages in segments, also in the one under way."""
        members = {"/endpoints/http": "body", "/endpoints/mqtt": "payload", "/endpoints/nats": "data"}
        place = self._to
        files = place.iterdir() if isinstance(place, Path) else (path for path, _ in place.below())
        segments = [file for file in files if ".jsonl" in file.name]
        lines = (line for file in segments for line in file.read_bytes().splitlines(keepends=True))
        records = (json.loads(line) for line in lines if line.endswith(b"}\n"))
        return Counter((record["endpoint"], record[members[record["endpoint"]]]) for record in records)

    def receiving(self) -> list[str]:
        """The endpoints that are receiving."""
        status = httpx.get(f"http://{self.metrics}/readyz", trust_env=False).json()["endpoints"]
        return [name for name in ENDPOINTS if status[f"/endpoints/{name}"]["receiving"]]

    def check(self) -> None:
        """Each acknowledged message is in the segments once, as of its endpoint, and nothing else is."""
        expected = [(f"/endpoints/{name}", body) for name, bodies in self.acknowledged.items() for body in bodies]
        assert self.captured() == Counter(dict.fromkeys(expected, 1))


@pytest.mark.parametrize("place", ["tmp_path", "bucket"])
def test_endpoints_receive_while_the_broker_of_another_is_away(
    request: pytest.FixtureRequest, tmp_path: Path, place: str
) -> None:
    folder = f"{request.getfixturevalue(place)}/captured"
    server = NatsServer()
    try:
        with mosquitto(tmp_path / "broker") as broker:
            senders = Senders(tmp_path, folder, broker, server)
            arguments = [argument for name in ENDPOINTS for argument in ("--endpoint", f"/endpoints/{name}")]
            arguments += ["--metrics-address", senders.metrics, "--linger", "0.05", "--segment-age", "1h"]
            with gateway(senders.catalog, folder, *arguments) as process:
                outages(process, senders, broker, server)
                assert process.stop()[0] == 0
    finally:
        server.kill()
    senders.check()


def outages(process: GatewayProcess, senders: Senders, broker: MosquittoBroker, server: NatsServer) -> None:
    """Take away the broker of MQTT, then the server of NATS."""
    wait_until(lambda: senders.receiving() == [*ENDPOINTS])
    senders.send(*ENDPOINTS)
    time.sleep(0.5)  # longer than an acknowledgement takes, after which the broker delivers nothing again
    broker.stop()
    wait_for_note(process, "/endpoints/mqtt: not receiving: ")
    assert senders.receiving() == ["http", "nats"]
    senders.send("http", "nats")
    broker.start()
    wait_until(lambda: senders.receiving() == [*ENDPOINTS])
    senders.send(*ENDPOINTS)
    server.kill()
    wait_for_note(process, "/endpoints/nats: not receiving: ")
    assert senders.receiving() == ["http", "mqtt"]
    senders.send("http", "mqtt")
    server.start()
    wait_until(lambda: senders.receiving() == [*ENDPOINTS])
    senders.send(*ENDPOINTS)
