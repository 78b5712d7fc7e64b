"""Sources of messages for the long runs that kill streams and gateways. Each knows which messages were acknowledged."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import httpx
import nats
import paho.mqtt.client as mqtt
from brokers import ArtemisBroker, KafkaBroker, MissingProgram, MosquittoBroker, NatsServer, free_port
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from nats.js.api import StreamConfig
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.brokers.kafka import running_kafka
from tests.capture.gateway import GatewayProcess, gateway, lines_in, wait_for_all, wait_for_note
from wirebook.landing.stores.locations import Location, files_in, location_of

STREAMED = ("kafka", "jetstream")
SOURCES = (*STREAMED, "captured", "mqtt", "amqp", "captured-kafka", "captured-nats")
SECONDS = 240
"""How long a broker may take to acknowledge."""
STRUCTURED = "application/cloudevents+json"
EVENT_HEADERS = {"content-type": STRUCTURED}
Place = tuple[str, int]
"""The file and the line of a message."""


def catalogue(endpoint: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    source = {"type": "uritemplate", "value": "/plants/{plant}"}
    definitions = {
        name: {
            "envelope": "CloudEvents/1.0",
            "envelopemetadata": {"type": {"value": f"kill.{name}"}, "source": source},
            "dataschemaformat": "JsonSchema/draft-07",
            "dataschema": schema,
        }
        for name in "abc"
    }
    return {
        "specversion": "1.0-rc4",
        "endpoints": {"e": endpoint | {"messagegroups": ["/messagegroups/g"]}},
        "messagegroups": {"g": {"messages": definitions}},
    }


def message(number: int) -> bytes:
    """A structured event; some are no JSON, match no definition, or violate their schema."""
    if number % 37 == 0:
        return b'{"specversion": "1.0", "id": "%d' % number
    kind = "abc"[number % 3] if number % 23 else "other"
    event = {"specversion": "1.0", "id": str(number), "source": f"/plants/p{number % 3}", "type": f"kill.{kind}"}
    return json.dumps(event | {"data": {"n": number if number % 10 else "no number"}}).encode()


class Source(Protocol):
    """What sends messages and knows which were acknowledged."""

    endpoint: dict[str, Any]

    @property
    def acknowledged(self) -> int:
        """The number of messages that were acknowledged."""

    def send(self, numbers: Iterable[int]) -> None: ...
    def restart(self) -> None:
        """Restart the broker, or the gateway if there is no broker."""

    def command(self) -> list[str]:
        """The command that lands, without catalogue, target and limits."""

    def rest(self) -> list[str]:
        """The options with which the command lands what is there and ends."""

    def missing(self, landed: set[Place]) -> int:
        """The number of acknowledged or captured messages that did not land."""

    def twice(self) -> int:
        """The number of messages that were captured again, because their acknowledgement was lost."""


class KeptSource:
    """Messages that a broker keeps."""

    def __init__(self, broker: KafkaBroker | NatsServer) -> None:
        self._broker, self._acknowledged = broker, set[Place]()

    @property
    def acknowledged(self) -> int:
        return len(self._acknowledged)

    def restart(self) -> None:
        self._broker.kill()
        self._broker.start()

    def twice(self) -> int:
        return 0

    def command(self) -> list[str]:
        return ["stream", "--endpoint", "/endpoints/e", "--interval", "0", "--max-per-batch", "400"]

    def rest(self) -> list[str]:
        return ["--available-now", "--max-per-batch", "20000"]

    def missing(self, landed: set[Place]) -> int:
        return len(self._acknowledged - landed)


class Topic:
    """A topic of two partitions, and its producer."""

    def __init__(self, broker: KafkaBroker) -> None:
        self.name = f"t-{uuid.uuid4().hex[:8]}"
        admin = AdminClient({"bootstrap.servers": broker.plain})
        admin.create_topics([NewTopic(self.name, 2, 1)])[self.name].result()
        settings = {"bootstrap.servers": broker.plain, "linger.ms": 5, "log_level": 0, "enable.idempotence": True}
        self._producer = Producer(settings)
        servers = [{"bootstrap.servers": [broker.plain]}]
        options = {"topic": self.name, "consumergroup": "gateway", "endpoints": servers}
        self.endpoint = {"usage": ["consumer"], "protocol": "KAFKA", "protocoloptions": options}

    def send(self, numbers: Iterable[int], note: Callable[[Message], None]) -> None:
        """Send messages; `note` is called with those that the broker has acknowledged."""

        def delivered(error: Any, sent: Message) -> None:
            if error is None:
                note(sent)

        headers = [(name, value.encode()) for name, value in EVENT_HEADERS.items()]
        for number in numbers:
            self._producer.produce(
                self.name, message(number), partition=number % 2, headers=headers, on_delivery=delivered
            )
        self._producer.flush(SECONDS)


class KafkaSource(KeptSource):
    """A topic of Kafka."""

    def __init__(self, broker: KafkaBroker) -> None:
        super().__init__(broker)
        self._topic = Topic(broker)
        self.endpoint = self._topic.endpoint

    def send(self, numbers: Iterable[int]) -> None:
        def note(sent: Message) -> None:
            offset = sent.offset()
            assert offset is not None
            self._acknowledged.add((f"kafka:{self._topic.name}/{sent.partition()}", offset))

        self._topic.send(numbers, note)


def with_nats(port: int, action: Callable[[nats.NATS], Awaitable[Any]]) -> None:
    """Connect to a NATS server and do something."""

    async def expected(_: Exception) -> None:
        """The server restarts now and then. What an action cannot do, it raises."""

    async def act() -> None:
        client = await nats.connect(f"nats://127.0.0.1:{port}", connect_timeout=10, error_cb=expected)
        try:
            await action(client)
        finally:
            await client.close()

    asyncio.run(act())


def nats_endpoint(port: int) -> dict[str, Any]:
    options = {"subjectfilter": "plants.>", "endpoints": [{"uri": f"nats://127.0.0.1:{port}"}]}
    return {"usage": ["subscriber"], "protocol": "NATS", "protocoloptions": options}


class JetStreamSource(KeptSource):
    """A stream of a NATS server."""

    def __init__(self, server: NatsServer) -> None:
        super().__init__(server)
        self._port = server.port
        config = StreamConfig(name="PLANTS", subjects=["plants.>"])
        with_nats(self._port, lambda client: client.jetstream(timeout=20).add_stream(config))
        self.endpoint = nats_endpoint(self._port)

    def send(self, numbers: Iterable[int]) -> None:
        async def publish(client: nats.NATS) -> None:
            stream = client.jetstream(timeout=20)
            for number in numbers:
                stored = await stream.publish(f"plants.p{number % 3}", message(number), headers=EVENT_HEADERS)
                self._acknowledged.add(("nats:PLANTS", stored.seq))

        with suppress(nats.errors.Error, OSError):  # the server restarts; what it did not acknowledge may be stored
            with_nats(self._port, publish)


class CapturedSource:
    """A gateway for HTTP; its segments, in a folder or in an object store, are followed. A message is known by its
    text, which no other one has."""

    body_member = "body"
    """The member of a capture record that has the text of the message."""
    is_delivered_again = False
    """Whether a message may arrive again, if it was not acknowledged."""

    def __init__(self, stack: ExitStack, folder: Path, segments: Location) -> None:
        self._stack, self._folder, self._segments = stack, folder, segments
        self._acknowledged: set[bytes] = set()
        self._gateway: GatewayProcess | None = None
        self.endpoint = self._connect()

    def _connect(self) -> dict[str, Any]:
        """Make the client; returns the endpoint."""
        self._client = self._stack.enter_context(httpx.Client(trust_env=False, timeout=30))
        self._threads = self._stack.enter_context(ThreadPoolExecutor(10))
        self._url = f"http://127.0.0.1:{free_port()}/hooks"
        return {"usage": ["producer"], "protocol": "HTTP", "protocoloptions": {"endpoints": [{"uri": self._url}]}}

    @property
    def acknowledged(self) -> int:
        return len(self._acknowledged)

    def start(self) -> None:
        """Start the gateway."""
        arguments = ["--endpoint", "/endpoints/e", "--segment-age", "1s", "--segment-size", "1", "--linger", "0.2"]
        running = gateway(self._folder / "catalogue.json", str(self._segments), *arguments)
        self._gateway = self._stack.enter_context(running)

    def send(self, numbers: Iterable[int]) -> None:
        def post(body: bytes) -> None:
            with suppress(httpx.TransportError):  # the gateway restarts
                if self._client.post(self._url, content=body, headers=EVENT_HEADERS).status_code == 202:
                    self._acknowledged.add(body)

        list(self._threads.map(post, map(message, numbers)))

    def restart(self) -> None:
        self.kill_gateway()

    def kill_gateway(self) -> None:
        """Kill the gateway and start it again."""
        assert self._gateway
        self._gateway.process.kill()
        self._gateway.process.wait()
        self.start()

    def command(self) -> list[str]:
        return ["land", str(self._segments), "--endpoint", "/endpoints/e", "--no-report"]

    def rest(self) -> list[str]:
        assert self._gateway
        wait_for_all(lambda: {body.decode() for body in self._acknowledged}, self._segments, self.body_member)
        self._gateway.stop()
        return []

    def missing(self, landed: set[Place]) -> int:
        captured = self._captured()
        places = {place for places in captured.values() for place in places}
        return len(self._acknowledged - captured.keys()) + len(places - landed)

    def twice(self) -> int:
        count = sum(len(places) - 1 for places in self._captured().values())
        if count and not self.is_delivered_again:
            raise SystemExit(f"{count} messages were captured twice, and sent once")
        return count

    def _captured(self) -> dict[bytes, list[Place]]:
        """The places of each message in the segments."""
        captured: dict[bytes, list[Place]] = {}
        for name in files_in(self._segments):
            if name.endswith(".jsonl"):
                for number, line in enumerate((self._segments / name).read_bytes().splitlines(), 1):
                    captured.setdefault(json.loads(line)[self.body_member].encode(), []).append((name, number))
        return captured


class MqttSource(CapturedSource):
    """A gateway for MQTT with QoS 1. The broker and the gateway have persistent sessions."""

    body_member = "payload"
    is_delivered_again = True

    def _connect(self) -> dict[str, Any]:
        self._broker = MosquittoBroker(self._folder / "mosquitto")
        self._stack.callback(self._broker.stop)
        self._publisher = mqtt.Client(CallbackAPIVersion.VERSION2, "publisher", protocol=mqtt.MQTTv5)
        self._publisher.reconnect_delay_set(1, 1)
        session = Properties(PacketTypes.CONNECT)
        session.SessionExpiryInterval = 3600
        self._publisher.connect("127.0.0.1", self._broker.port, clean_start=False, properties=session)
        self._publisher.loop_start()
        self._stack.callback(self._publisher.loop_stop)
        self._open: list[tuple[mqtt.MQTTMessageInfo, bytes]] = []
        uri = f"mqtt://127.0.0.1:{self._broker.port}"
        options = {"topicfilter": "plants/#", "qos": 1, "endpoints": [{"uri": uri}]}
        return {"usage": ["subscriber"], "protocol": "MQTT/5.0", "protocoloptions": options}

    def start(self) -> None:
        is_first = self._gateway is None
        super().start()
        if is_first:  # the broker keeps messages for the session from then on
            assert self._gateway
            wait_for_note(self._gateway, "receiving '")

    def send(self, numbers: Iterable[int]) -> None:
        content = Properties(PacketTypes.PUBLISH)
        content.ContentType = STRUCTURED
        for number in numbers:
            body = message(number)
            info = self._publisher.publish(f"plants/p{number % 3}", body, 1, properties=content)
            if info.rc == mqtt.MQTT_ERR_SUCCESS:  # else not connected: sent later, and never reported
                self._open.append((info, body))
        self._note_acknowledged()

    def _note_acknowledged(self) -> None:
        published = [info.is_published() for info, _ in self._open]
        pairs = list(zip(self._open, published, strict=True))
        self._acknowledged |= {body for (_, body), is_published in pairs if is_published}
        self._open = [pair for pair, is_published in pairs if not is_published]

    def restart(self) -> None:
        self._broker.stop()
        self._broker.start()

    def rest(self) -> list[str]:
        end = time.monotonic() + 10  # what is not acknowledged soon after the end does not count
        while self._open and time.monotonic() < end:
            time.sleep(0.1)
            self._note_acknowledged()
        return super().rest()


class AmqpSource(CapturedSource):
    """A gateway for AMQP 1.0, which receives from a queue of Artemis. The broker settles what it has stored."""

    is_delivered_again = True

    def _connect(self) -> dict[str, Any]:
        if find_spec("proton") is None:
            raise MissingProgram("needs python-qpid-proton, which `./run kill-streams` builds")
        (self._folder / "artemis").mkdir()
        self._broker = ArtemisBroker(self._folder / "artemis")
        self._broker.start()
        self._stack.callback(self._broker.kill)
        options = {"node": "plants", "endpoints": [{"uri": f"amqp://{self._broker.plain}"}]}
        return {"usage": ["consumer"], "protocol": "AMQP/1.0", "protocoloptions": options}

    def send(self, numbers: Iterable[int]) -> None:
        from proton import Message, ProtonException  # noqa: PLC0415
        from proton.utils import BlockingConnection  # noqa: PLC0415

        with suppress(ProtonException, OSError):  # the broker restarts; what it did not accept may be stored
            connection = BlockingConnection(f"amqp://{self._broker.plain}", 20, allowed_mechs="ANONYMOUS")
            try:
                sender = connection.create_sender("plants")
                for body in map(message, numbers):
                    sender.send(Message(body, durable=True, inferred=True, content_type=STRUCTURED))
                    self._acknowledged.add(body)
            finally:
                connection.close()

    def restart(self) -> None:
        self._broker.kill()
        self._broker.start()


class CapturedKafkaSource(CapturedSource):
    """A gateway for a topic of Kafka."""

    body_member = "value"
    is_delivered_again = True

    def _connect(self) -> dict[str, Any]:
        (self._folder / "kafka").mkdir()
        self._broker = self._stack.enter_context(running_kafka(self._folder / "kafka"))
        self._topic = Topic(self._broker)
        return self._topic.endpoint

    def send(self, numbers: Iterable[int]) -> None:
        def note(sent: Message) -> None:
            body = sent.value()
            assert body is not None
            self._acknowledged.add(body)

        self._topic.send(numbers, note)

    def restart(self) -> None:
        self._broker.kill()
        self._broker.start()


class CapturedNatsSource(CapturedSource):
    """A gateway for core NATS, which has no acknowledgements: what a gateway has not written when it is killed is lost.
    Counted as acknowledged is what was in segments whenever a gateway had been killed, and what is sent in the end,
    while the gateway is receiving."""

    body_member = "data"

    def _connect(self) -> dict[str, Any]:
        self._server = NatsServer()
        self._stack.callback(self._server.kill)
        return nats_endpoint(self._server.port)

    def start(self) -> None:
        self._acknowledged |= {record["data"].encode() for record in lines_in(self._segments)}
        super().start()
        self._wait_for_receiving()

    def _wait_for_receiving(self) -> None:
        assert self._gateway
        wait_for_note(self._gateway, "receiving '")

    def send(self, numbers: Iterable[int]) -> None:
        async def publish(client: nats.NATS) -> None:
            for number in numbers:
                await client.publish(f"plants.p{number % 3}", message(number), headers=EVENT_HEADERS)
            await client.flush(20)

        with suppress(nats.errors.Error, OSError):  # the server restarts
            with_nats(self._server.port, publish)

    def restart(self) -> None:
        self._server.kill()
        self._server.start()
        self._wait_for_receiving()

    def rest(self) -> list[str]:
        last = range(-100, 0)
        self.send(last)
        self._acknowledged |= {*map(message, last)}
        return super().rest()


CAPTURED = {
    "captured": CapturedSource,
    "mqtt": MqttSource,
    "amqp": AmqpSource,
    "captured-kafka": CapturedKafkaSource,
    "captured-nats": CapturedNatsSource,
}


@contextmanager
def source_of(name: str, folder: Path, store: str | None = None) -> Iterator[Source]:
    """A running source with its catalogue in the folder. Segments of a gateway are in the store, if there is one."""
    with ExitStack() as stack:
        source: Source
        if name == "kafka":
            (folder / "kafka").mkdir()
            source = KafkaSource(stack.enter_context(running_kafka(folder / "kafka")))
        elif name == "jetstream":
            server = NatsServer("--jetstream", "--store_dir", str(folder / "jetstream"))
            stack.callback(server.kill)
            source = JetStreamSource(server)
        else:
            segments = location_of(f"{store}/{folder.name}-captured") if store else folder / "captured"
            source = CAPTURED[name](stack, folder, segments)
        (folder / "catalogue.json").write_text(json.dumps(catalogue(source.endpoint)))
        if isinstance(source, CapturedSource):
            source.start()
        yield source
