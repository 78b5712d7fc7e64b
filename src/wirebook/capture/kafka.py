"""Receive Kafka with confluent-kafka: offsets are committed when the messages before them are durable.

Kafka keeps its messages, so `wirebook stream` can land them exactly once. The gateway is for samples: traffic to
describe, and captures for tests.

Spec: endpoint/spec.md#kafka-options
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Final

import msgspec
from confluent_kafka import OFFSET_STORED, Consumer, KafkaError, KafkaException, Message, TopicPartition

from wirebook.bindings import to_line
from wirebook.capture.backoff import Backoff
from wirebook.capture.committer import Committer
from wirebook.capture.endpoints import ReceivedEndpoint
from wirebook.capture.kafka_security import (
    MECHANISM,
    PASSWORD_MECHANISMS,
    PROTOCOL,
    require_login,
    security_of,
    without_scheme,
)
from wirebook.capture.receiver import first_of, received_now
from wirebook.capture.status import EndpointStatus
from wirebook.convert.confluent import record_of
from wirebook.problems import Problem, WirebookError

MOST_MESSAGES: Final = 1000
MOST_BYTES: Final = 1 << 20
"""The assumed size of a message before the first one is read: Kafka's default limit."""
POLL_SECONDS: Final = 0.2
COMMIT_SECONDS: Final = 1.0
REVOKE_SECONDS: Final = 30.0
CHECK_SECONDS: Final = 1.0
"""The timeout of a check whether a broker is back, and the time between two checks."""

FORGET_SECONDS: Final = 60.0
"""A failure that has not occurred again for this long is over. librdkafka and the backoff retry more often."""

QUEUE_KIBIBYTES: Final = 16 * 1024
"""The size of the messages that librdkafka fetches ahead."""

RESETS: Final = {"earliest": "earliest", "latest": "latest", "none": "error"}


class KafkaReceiver:
    """Receives the messages of a topic as a member of the endpoint's consumer group.

    The group identifies the gateway by the `identity` of its `Sink`. A single thread uses the consumer and runs its
    callbacks.
    """

    def __init__(
        self, endpoint: ReceivedEndpoint, committer: Committer, identity: str, note: Callable[[str], None]
    ) -> None:
        """Raises: WirebookError (``incomplete-endpoint``, ``bad-option``, ``bad-address``, ``bad-setting``)"""
        self.status = EndpointStatus(endpoint.xid, endpoint.protocol)
        self._committer, self._xid = committer, endpoint.xid
        self._note: Callable[[str], None] = lambda text: note(f"{endpoint.xid}: {text}")
        self._topic = str(endpoint.required("topic", "it is the topic to read"))
        self._partition: int | None = endpoint.option("partition")
        self._settings: dict[str, Any] = {
            **_connection_settings(endpoint),
            "group.id": endpoint.required("consumergroup", "its committed offsets record what was captured"),
            # a static member: after a crash it gets its partitions back at once, not after the session has timed out
            "group.instance.id": f"wirebook-{identity}-{endpoint.xid.removeprefix('/endpoints/')}",
            "auto.offset.reset": RESETS[endpoint.option("autooffsetreset") or "earliest"],
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "queued.max.messages.kbytes": QUEUE_KIBIBYTES,
            "error_cb": self._on_error,
            "log_level": 0,  # librdkafka would print to standard error what `error_cb` reports
        }
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, "wirebook-kafka")
        self._pending: set[asyncio.Future[None]] = set()
        self._durable: dict[tuple[str, int], int] = {}  # offsets to commit; changed by the event loop and the thread
        self._durable_lock = Lock()
        self._failures: dict[tuple[str, int], float] = {}  # time of the last one, by event and error code
        self._is_down = self._was_receiving = False
        self._answers = 0  # successful checks since all brokers were down
        self._line_bytes = MOST_BYTES  # size of the largest line of the last poll

    async def run(self, stopping: asyncio.Event) -> None:
        """Receive until the gateway stops, then commit what is durable."""
        consumer = await self._call(self._connect)
        backoff, committed, checked = Backoff(), self._loop.time(), self._loop.time()
        try:
            while not stopping.is_set():
                await first_of(self._committer.room(), stopping.wait())
                messages = await self._call(partial(consumer.consume, self._most_messages(), POLL_SECONDS))
                self._capture(messages)
                if self._loop.time() - committed >= COMMIT_SECONDS:
                    committed = self._loop.time()
                    await self._call(partial(self._commit, consumer))
                if self._is_down and self._loop.time() - checked >= CHECK_SECONDS:
                    await self._call(partial(self._check_brokers, consumer))
                    checked = self._loop.time()
                if any(message.error() is not None for message in messages):
                    await backoff.wait(stopping)
                elif messages:
                    backoff.reset()
            await self._everything_is_durable()
            await self._call(partial(self._commit, consumer))
        finally:
            self.status.is_receiving = False
            await self._call(consumer.close)
            self._thread.shutdown(wait=False)

    def _most_messages(self) -> int:
        """The number of messages that fit into memory, if they are as large as the largest of the last ones."""
        return min(max(self._committer.free_bytes // self._line_bytes, 1), MOST_MESSAGES)

    def _call(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        return self._loop.run_in_executor(self._thread, function)

    def _connect(self) -> Consumer:
        try:
            consumer = Consumer(self._settings)
        except KafkaException as error:  # for example, a certificate file that cannot be read
            message = f"the Kafka client of '{self._xid}' cannot start: {error.args[0].str()}"
            raise WirebookError(Problem("bad-setting", message, xid=self._xid)) from None
        if self._partition is None:
            consumer.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
        else:
            consumer.assign([TopicPartition(self._topic, self._partition, OFFSET_STORED)])
            self._receiving(f"partition {self._partition} of '{self._topic}'")
        return consumer

    def _receiving(self, what: str) -> None:
        self.status.connections += 1
        self._recovered()
        self._was_receiving = True
        self.status.is_receiving = True
        self._note(f"receiving {what}")

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        numbers = ", ".join(str(partition.partition) for partition in partitions) or "none"
        self._receiving(f"'{self._topic}', partitions {numbers}")

    def _on_revoke(self, consumer: Consumer, _: list[TopicPartition]) -> None:
        """Commit before another member of the group reads the partitions."""
        waiting = asyncio.run_coroutine_threadsafe(self._everything_is_durable(), self._loop)
        try:
            waiting.result(REVOKE_SECONDS)
        except TimeoutError:
            waiting.cancel()
        self._commit(consumer)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.status.is_receiving, self._is_down, self._answers = False, True, 0
            self._failed("not receiving", error)
        else:  # of one broker; others may answer
            self._failed("connection failed", error)

    def _failed(self, event: str, error: KafkaError) -> None:
        """Note a failure once until it is over. Failures are compared by code: their texts have addresses and times."""
        now, kind = monotonic(), (event, error.code())
        if now - self._failures.get(kind, -FORGET_SECONDS) >= FORGET_SECONDS:
            self._note(f"{event}: {error.str()}; trying again")
        self._failures[kind] = now
        self.status.failure = error.str()

    def _recovered(self) -> None:
        self._is_down, self.status.failure = False, None
        self._failures.clear()

    def _check_brokers(self, consumer: Consumer) -> None:
        """Check whether a broker is back. librdkafka reports that no broker can be reached, but not that one can be
        reached again.

        Only the second successful check counts, because errors from before the first one may still be queued.
        """
        with suppress(KafkaException):
            consumer.list_topics(self._topic, timeout=CHECK_SECONDS)
            self._answers += 1
            if self._answers > 1:
                self._recovered()
                if self._was_receiving:
                    self.status.is_receiving = True
                    self._note("receiving again")

    def _capture(self, messages: list[Message]) -> None:
        offsets: dict[tuple[str, int], int] = {}
        durable: asyncio.Future[None] | None = None
        largest = 0
        for message in messages:
            if (error := message.error()) is not None:
                self._failed("not receiving", error)
                continue
            line = to_line(msgspec.structs.replace(record_of(message), received=received_now(), endpoint=self._xid))
            self.status.count(line)
            durable = self._committer.append(line)
            largest = max(largest, len(line))
            offsets[str(message.topic()), int(message.partition() or 0)] = int(message.offset() or 0) + 1
        if durable is not None:
            self._line_bytes = largest
            self.status.is_receiving, self.status.failure = True, None
            self._pending.add(durable)
            durable.add_done_callback(partial(self._stored, offsets, sum(m.error() is None for m in messages)))

    def _stored(self, offsets: dict[tuple[str, int], int], count: int, durable: asyncio.Future[None]) -> None:
        with self._durable_lock:
            self._durable |= offsets
        self.status.acknowledged += count
        self._pending.discard(durable)

    async def _everything_is_durable(self) -> None:
        while self._pending:
            await asyncio.wait(self._pending)
            await asyncio.sleep(0)  # run the callbacks of the group

    def _commit(self, consumer: Consumer) -> None:
        """Commit the offsets of durable messages. After an error they are committed with the next ones."""
        with self._durable_lock:
            offsets, self._durable = self._durable, {}
        if not offsets:
            return
        positions = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]
        try:
            consumer.commit(offsets=positions, asynchronous=False)
        except KafkaException as error:
            with self._durable_lock:
                self._durable = offsets | self._durable
            self._failed("the offsets could not be committed", error.args[0])


def _connection_settings(endpoint: ReceivedEndpoint) -> dict[str, Any]:
    """Return the settings for the addresses, TLS and SASL.

    Raises: incomplete-endpoint, bad-address, bad-authorization, missing-credentials
    """
    servers, credentials = endpoint.bootstrap_servers().split(","), endpoint.credentials
    protocol, mechanism = security_of(endpoint, servers)
    settings = {
        "bootstrap.servers": ",".join(map(without_scheme, servers)),
        PROTOCOL: protocol,
        "ssl.ca.location": credentials.cafile,
        "ssl.certificate.location": credentials.certfile,
        "ssl.key.location": credentials.keyfile,
    }
    if mechanism is not None:
        if mechanism not in PASSWORD_MECHANISMS:
            place = ("protocoloptions", "authorization")
            message = f"the SASL mechanism '{mechanism}' is not supported by capture"
            raise endpoint.problem("bad-authorization", place, message, PASSWORD_MECHANISMS, mechanism)
        username, password = require_login(endpoint, mechanism)
        settings |= {MECHANISM: mechanism, "sasl.username": username, "sasl.password": password}
    return {name: value for name, value in settings.items() if value is not None}
