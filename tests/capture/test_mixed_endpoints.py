"""One gateway with endpoints of several protocols: while the broker of one is away, the others receive."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from brokers import ArtemisBroker, KafkaBroker, MosquittoBroker, NatsServer, free_port
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.brokers.kafka import running_kafka
from tests.capture.gateway import GatewayProcess, gateway, wait_for_note, wait_until, write_catalog
from tests.capture.mosquitto import mosquitto
from tests.capture.test_mqtt import publisher
from tests.capture.test_nats import publish
from wirebook.landing.stores.locations import location_of

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("servers")]
Endpoint = tuple[str, str, dict[str, Any]]
"""Usage, protocol and options."""
Broker = MosquittoBroker | NatsServer | ArtemisBroker | KafkaBroker
MEMBERS = {"http": "body", "mqtt": "payload", "nats": "data", "amqp": "body", "kafka": "value"}
"""The member of a capture record that has the message, by endpoint."""
AGAIN = ("amqp", "kafka")
"""Endpoints whose brokers may deliver again what the gateway had not acknowledged when they went away."""


class Senders:
    """Sends to each endpoint of a gateway, and remembers what was acknowledged, by endpoint: HTTP, and those of the
    `brokers`."""

    def __init__(self, folder: Path, to: str, brokers: dict[str, Any]) -> None:
        self.names, self.brokers = ["http", *brokers], brokers
        self.acknowledged: dict[str, list[str]] = {name: [] for name in self.names}
        self._to, self._number = location_of(to), 0
        self._url, self.metrics = f"http://127.0.0.1:{free_port()}/hooks", f"127.0.0.1:{free_port()}"
        endpoints = {name: getattr(self, f"_{name}_endpoint")() for name in self.names}
        self.catalog = write_catalog(
            folder,
            {
                name: {"usage": [usage], "protocol": protocol, "protocoloptions": options}
                for name, (usage, protocol, options) in endpoints.items()
            },
        )

    def _http_endpoint(self) -> Endpoint:
        return "producer", "HTTP", {"endpoints": [{"uri": self._url}]}

    def _mqtt_endpoint(self) -> Endpoint:
        address = [{"uri": f"mqtt://127.0.0.1:{self.brokers['mqtt'].port}"}]
        return "subscriber", "MQTT/5.0", {"topicfilter": "plants/#", "qos": 1, "endpoints": address}

    def _nats_endpoint(self) -> Endpoint:
        address = [{"uri": f"nats://127.0.0.1:{self.brokers['nats'].port}"}]
        return "subscriber", "NATS", {"subjectfilter": "plants.>", "endpoints": address}

    def _amqp_endpoint(self) -> Endpoint:
        return (
            "consumer",
            "AMQP/1.0",
            {"node": "plants", "endpoints": [{"uri": f"amqp://{self.brokers['amqp'].plain}"}]},
        )

    def _kafka_endpoint(self) -> Endpoint:
        servers = self.brokers["kafka"].plain
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("plants", 2, 1)])["plants"].result(60)
        options = {"topic": "plants", "consumergroup": "lake", "endpoints": [{"bootstrap.servers": [servers]}]}
        return "consumer", "KAFKA", options

    def send(self, *names: str) -> None:
        """Send five messages to each of these endpoints, and wait until they are durable."""
        for name in names:
            self._number += 5
            bodies = [f"{name} {number}" for number in range(self._number - 5, self._number)]
            getattr(self, f"_{name}")(bodies)
            self.acknowledged[name] += bodies
        wait_until(lambda: len(self.captured()) >= sum(map(len, self.acknowledged.values())))

    def _http(self, bodies: list[str]) -> None:
        for body in bodies:
            assert httpx.post(self._url, content=body, trust_env=False, timeout=60).status_code == 202

    def _mqtt(self, bodies: list[str]) -> None:
        with publisher(self.brokers["mqtt"].port) as client:
            for body in bodies:
                client.publish("plants/1", body, 1).wait_for_publish(60)

    def _nats(self, bodies: list[str]) -> None:
        publish(self.brokers["nats"], *(("plants.1", body.encode()) for body in bodies))

    def _amqp(self, bodies: list[str]) -> None:
        from proton import Message

        from tests.brokers.artemis import send

        send(self.brokers["amqp"], "plants", *(Message(body.encode(), durable=True, inferred=True) for body in bodies))

    def _kafka(self, bodies: list[str]) -> None:
        producer, errors = Producer({"bootstrap.servers": self.brokers["kafka"].plain, "log_level": 0}), list[object]()
        for number, body in enumerate(bodies):
            producer.produce("plants", body, partition=number % 2, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(60) == 0
        assert errors == [None] * len(bodies)

    def captured(self) -> Counter[tuple[str, str]]:
        """The endpoints and messages in segments, also in the one under way."""
        place = self._to
        files = place.iterdir() if isinstance(place, Path) else (path for path, _ in place.below())
        segments = [file for file in files if ".jsonl" in file.name]
        lines = (line for file in segments for line in file.read_bytes().splitlines(keepends=True))
        records = (json.loads(line) for line in lines if line.endswith(b"}\n"))
        named = ((record["endpoint"].removeprefix("/endpoints/"), record) for record in records)
        return Counter((name, record[MEMBERS[name]]) for name, record in named)

    def receiving(self) -> list[str]:
        """The endpoints that are receiving."""
        status = httpx.get(f"http://{self.metrics}/readyz", trust_env=False).json()["endpoints"]
        return [name for name in self.names if status[f"/endpoints/{name}"]["receiving"]]

    def check(self) -> None:
        """Each acknowledged message is in the segments, as of its endpoint, and nothing else is. Nothing is twice but
        what a broker may deliver again."""
        expected = {(name, body) for name, bodies in self.acknowledged.items() for body in bodies}
        captured = self.captured()
        assert captured.keys() == expected
        assert [place for place, count in captured.items() if count > 1 and place[0] not in AGAIN] == []

    def run(self, folder: str) -> None:
        """Run a gateway for all endpoints, while one broker after the other is away, and check the segments."""
        arguments = [argument for name in self.names for argument in ("--endpoint", f"/endpoints/{name}")]
        arguments += ["--metrics-address", self.metrics, "--linger", "0.05", "--segment-age", "1h"]
        with gateway(self.catalog, folder, *arguments) as process:
            self._wait_for(self.names)
            self.send(*self.names)
            for name, broker in self.brokers.items():
                self._outage(process, name, broker)
            assert process.stop()[0] == 0
        self.check()

    def _outage(self, process: GatewayProcess, name: str, broker: Broker) -> None:
        """Take a broker away, and bring it back."""
        time.sleep(0.5)  # longer than an acknowledgement takes, after which the broker delivers nothing again
        if isinstance(broker, MosquittoBroker):
            broker.stop()
        else:
            broker.kill()
        wait_for_note(process, f"/endpoints/{name}: not receiving: ")
        others = [other for other in self.names if other != name]
        self._wait_for(others)
        self.send(*others)
        assert self.receiving() == others
        broker.start()
        self._wait_for(self.names)
        self.send(*self.names)

    def _wait_for(self, names: list[str]) -> None:
        """Wait until just these endpoints are receiving."""
        wait_until(lambda: self.receiving() == names)


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[str, Any]]:
    server = NatsServer()
    try:
        with mosquitto(tmp_path / "broker") as broker:
            yield {"mqtt": broker, "nats": server}
    finally:
        server.kill()


@pytest.mark.parametrize("place", ["tmp_path", "bucket"])
def test_endpoints_receive_while_the_broker_of_another_is_away(
    request: pytest.FixtureRequest, brokers: dict[str, Any], tmp_path: Path, place: str
) -> None:
    folder = f"{request.getfixturevalue(place)}/captured"
    Senders(tmp_path, folder, brokers).run(folder)


def test_endpoints_of_all_protocols_receive_while_the_broker_of_another_is_away(
    brokers: dict[str, Any], tmp_path: Path
) -> None:
    pytest.importorskip("proton", reason="needs python-qpid-proton, which is built with a C compiler")
    from tests.brokers.artemis import running_artemis

    folders = [tmp_path / name for name in ("artemis", "kafka")]
    for folder in folders:
        folder.mkdir()
    with running_artemis(folders[0]) as artemis, running_kafka(folders[1]) as kafka:
        senders = Senders(tmp_path, str(tmp_path / "captured"), brokers | {"amqp": artemis, "kafka": kafka})
        senders.run(str(tmp_path / "captured"))
