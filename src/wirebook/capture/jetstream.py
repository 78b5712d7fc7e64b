"""Find the JetStream stream that stores the messages of a subject, and read a range of its messages.

JetStream is the persistence of NATS: a stream stores the messages of some subjects and gives them sequence numbers.
Messages can be read again at any time, so nothing is acknowledged. A range is read with an ephemeral consumer that
starts at a sequence number.

Spec: endpoint/spec.md#nats-options; docs/how-to/jetstream.md; docs/decisions/0207
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Final, NamedTuple

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, NoRespondersError
from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy, RetentionPolicy, StreamInfo
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NotFoundError, ServerError, ServiceUnavailableError

from wirebook.bindings import NatsMessage, from_bytes, to_line
from wirebook.capture.nats_client import CONNECT_SECONDS, NatsClient, NatsServers, UnqueuedClient, header_pairs
from wirebook.capture.receiver import instant_text
from wirebook.problems import Problem, WirebookError

__all__ = ["KeptStream", "MessagesLost", "ServerAway", "StreamReplaced", "find_stream", "read_messages", "stream_state"]

PER_REQUEST: Final = 256
"""The maximum number of messages in a pull request."""
IDLE_SECONDS: Final = 30
"""How long to wait for the next message, and how long the server keeps a consumer that nobody uses."""
NOTHING_THERE: Final = re.compile(rb"NATS/1\.0 (404|408)\b")
"""The status of a pull request for which there are no messages."""


class ServerAway(ConnectionError):
    """The server cannot be reached, or has not delivered everything. A later attempt may succeed."""


class MessagesLost(Exception):
    """The stream no longer has some messages that were not read yet."""


class StreamReplaced(Exception):
    """The stream was deleted. One with the same name may exist, but its sequence numbers start again at 1."""


class KeptStream(NamedTuple):
    """A stream, and the sequence numbers of its first and last message. A stream that is deleted and created again
    restarts at 1, so `created` is part of its identity."""

    name: str
    first: int
    last: int
    created: str


@asynccontextmanager
async def _connected(servers: NatsServers, client: Client) -> AsyncIterator[None]:
    """Connect a client for the duration of the block, and convert the errors of the connection. Errors of the
    JetStream API are converted only if they are temporary. Raises: ServerAway, WirebookError (``bad-setting``)"""

    async def quiet(_: Exception) -> None:
        """Ignore the error: the caller gets it where it waits."""

    try:
        await client.connect(**servers.settings("wirebook-stream"), error_cb=quiet)
    except (OSError, Error, TimeoutError) as error:
        await client.close()
        raise ServerAway(f"{', '.join(servers.addresses)}: {_text(client.last_error or error)}") from None
    try:
        yield
    except (OSError, Error, TimeoutError) as error:
        is_temporary = isinstance(error, ServerError | ServiceUnavailableError)  # such as the election of a leader
        if isinstance(error, APIError | NoRespondersError | ServerAway) and not is_temporary:
            raise
        raise ServerAway(f"{', '.join(servers.addresses)}: {_text(error)}") from error
    finally:
        with suppress(OSError, Error, TimeoutError):
            await client.close()


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def stream_state(servers: NatsServers, name: str) -> KeptStream:
    """Ask the server for the state of a stream. Raises: ServerAway, StreamReplaced"""

    async def ask() -> KeptStream:
        client = NatsClient()
        async with _connected(servers, client):
            try:
                return _kept(await client.jetstream(timeout=CONNECT_SECONDS).stream_info(name))
            except NotFoundError:
                raise StreamReplaced(f"the server no longer has the stream '{name}'") from None

    return asyncio.run(ask())


def _kept(info: StreamInfo) -> KeptStream:
    created = info.created.isoformat() if isinstance(info.created, datetime) else str(info.created)
    return KeptStream(str(info.config.name), info.state.first_seq, info.state.last_seq, created)


def find_stream(servers: NatsServers, subject: str) -> KeptStream:
    """Find the only stream that stores messages with a subject.

    Raises: broker-unreachable, unknown-topic, not-receivable
    """

    async def streams() -> list[StreamInfo]:
        client = NatsClient()
        async with _connected(servers, client):
            jetstream = client.jetstream(timeout=CONNECT_SECONDS)
            request = json.dumps({"subject": subject}).encode()
            answer = await client.request("$JS.API.STREAM.NAMES", request, CONNECT_SECONDS)
            response = json.loads(answer.data)
            if error := response.get("error"):
                APIError.from_error(error)  # raises it
            return [await jetstream.stream_info(name) for name in response.get("streams") or ()]

    try:
        infos = asyncio.run(streams())
    except NoRespondersError:
        message = f"the NATS server at {', '.join(servers.addresses)} does not run JetStream"
        hint = "enable it, or capture the messages with `wirebook capture`"
        raise WirebookError(Problem("not-receivable", message, xid=servers.xid, hint=hint)) from None
    except (APIError, ServerAway) as error:
        raise WirebookError(Problem("broker-unreachable", f"the NATS server cannot be used: {error}")) from None
    kept = [info for info in infos if info.config.retention == RetentionPolicy.LIMITS]
    if len(infos) == 1 and kept:
        return _kept(kept[0])
    if not infos:
        message = f"no JetStream stream keeps messages with the subject '{subject}'"
        hint = "create one, or capture the messages with `wirebook capture`"
        raise WirebookError(Problem("unknown-topic", message, xid=servers.xid, hint=hint))
    if len(infos) > 1:
        names = ", ".join(sorted(str(info.config.name) for info in infos))
        message = f"several JetStream streams keep messages with the subject '{subject}': {names}"
        hint = "name the subjects of one stream in 'subjectfilter' of the endpoint"
        raise WirebookError(Problem("not-receivable", message, xid=servers.xid, hint=hint))
    message = (
        f"the stream '{infos[0].config.name}' deletes messages that were acknowledged, so they cannot be read again"
    )
    hint = "use a stream with the retention policy 'limits', for example one that mirrors this one"
    raise WirebookError(Problem("not-receivable", message, xid=servers.xid, hint=hint))


async def read_messages(
    servers: NatsServers, stream: str, subject: str, first: int, last: int
) -> AsyncGenerator[tuple[int, bytes]]:
    """Yield the sequence number and the capture line of each message with a subject, from number `first` to `last`.

    The client `reader` passes everything that it receives to its inbox, so API requests need a second client.

    Raises: ServerAway
    """
    control, reader = NatsClient(), UnqueuedClient()
    async with _connected(servers, control), _connected(servers, reader):
        jetstream = control.jetstream(timeout=CONNECT_SECONDS)
        async with _consumer(jetstream, stream, subject, first) as consumer:
            inbox = await Inbox.of(reader)
            pending, delivered = consumer.num_pending or 0, 0
            while pending:
                count = min(pending, PER_REQUEST)
                await inbox.request(consumer, count)
                for _ in range(count):
                    arrived = await inbox.next()
                    if arrived.ends_request():
                        pending = (await jetstream.consumer_info(stream, consumer.name)).num_pending or 0
                        break
                    delivery, delivered = Msg(control, reply=arrived.reply.decode()).metadata, delivered + 1
                    if delivery.sequence.consumer != delivered:
                        raise ServerAway(f"message {delivered} of a consumer of '{stream}' did not arrive")
                    if delivery.sequence.stream > last:
                        return
                    pending = delivery.num_pending
                    yield delivery.sequence.stream, arrived.line(servers.xid, delivery.timestamp)


@asynccontextmanager
async def _consumer(jetstream: JetStreamContext, stream: str, subject: str, first: int) -> AsyncIterator[ConsumerInfo]:
    """Create a consumer that starts at sequence number `first`; delete it at the end of the block."""
    config = ConsumerConfig(
        filter_subject=subject,
        deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=first,
        ack_policy=AckPolicy.NONE,
        mem_storage=True,
        num_replicas=1,
        inactive_threshold=IDLE_SECONDS,
    )
    consumer = await jetstream.add_consumer(stream, config)
    try:
        yield consumer
    finally:
        with suppress(OSError, Error, TimeoutError):
            await jetstream.delete_consumer(stream, consumer.name)


class InboxMessage(NamedTuple):
    """A NATS message in an inbox, as it was on the wire: a message of the stream, or the status of a pull request."""

    subject: bytes
    reply: bytes
    data: bytes
    headers: bytes

    def ends_request(self) -> bool:
        """Return whether this is the status that there are no more messages, and not a message of the stream.

        Raises: ServerAway, for any other status
        """
        if self.reply:
            return False
        if not NOTHING_THERE.match(self.headers):
            raise ServerAway(self.headers.decode("latin-1").strip().replace("\r\n", "; "))
        return True

    def line(self, endpoint: str, stored: datetime) -> bytes:
        """Return the capture line of a message that the server stored at the time `stored`."""
        message = NatsMessage(
            received=instant_text(stored),
            endpoint=endpoint,
            subject=self.subject.decode(errors="backslashreplace"),
            headers=header_pairs(self.headers) or None,
            data=from_bytes(self.data),
        )
        return to_line(message)


class Inbox:
    """A subject that belongs to one connection, to which the server sends the requested messages."""

    def __init__(self, client: UnqueuedClient) -> None:
        self._client = client
        self._subject = client.new_inbox()
        self._arrived: asyncio.Queue[InboxMessage] = asyncio.Queue()

    @classmethod
    async def of(cls, client: UnqueuedClient) -> Inbox:
        inbox = cls(client)
        client.receive = inbox._receive
        await client.subscribe(inbox._subject)
        return inbox

    async def _receive(self, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        self._arrived.put_nowait(InboxMessage(bytes(subject), bytes(reply), bytes(data), bytes(headers or b"")))

    async def request(self, consumer: ConsumerInfo, count: int) -> None:
        """Request the next `count` messages of a consumer."""
        request = {"batch": count, "no_wait": True, "expires": IDLE_SECONDS * 10**9 // 2}
        place = f"$JS.API.CONSUMER.MSG.NEXT.{consumer.stream_name}.{consumer.name}"
        await self._client.publish(place, json.dumps(request).encode(), self._subject)

    async def next(self) -> InboxMessage:
        """Wait for the next message in the inbox. Raises: TimeoutError"""
        if self._arrived.empty():  # only then: a timeout costs as much as everything else per message
            return await asyncio.wait_for(self._arrived.get(), IDLE_SECONDS)
        return self._arrived.get_nowait()
