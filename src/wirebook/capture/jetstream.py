"""Streams of JetStream: which one keeps the messages of a subject, and reading a range of one.

Messages can be read again at any time, so nothing is acknowledged: a range is read by a consumer that starts at a
sequence number, and that the server forgets.

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
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy, StreamInfo
from nats.js.errors import APIError, NotFoundError

from wirebook.bindings import NatsMessage, from_bytes, to_line
from wirebook.capture.nats_client import CONNECT_SECONDS, NatsClient, NatsServers, UnqueuedClient, header_pairs
from wirebook.capture.receiver import instant_text
from wirebook.problems import Problem, WirebookError

__all__ = ["KeptStream", "MessagesLost", "ServerAway", "find_stream", "read_messages", "stream_state"]

PER_REQUEST: Final = 256
"""Messages that are asked for at once."""
IDLE_SECONDS: Final = 30
"""How long to wait for the server; after the same time the server forgets a consumer."""
NOTHING_THERE: Final = re.compile(rb"NATS/1\.0 (404|408)\b")


class ServerAway(ConnectionError):
    """The server cannot be reached, or has gone away; it may come back."""


class MessagesLost(Exception):
    """The stream no longer has messages that were not read."""


class KeptStream(NamedTuple):
    """A stream, and the sequence numbers of its first and last message. A stream that was deleted and created again
    counts from 1, so `created` is part of its identity."""

    name: str
    first: int
    last: int
    created: str


@asynccontextmanager
async def _connected(servers: NatsServers, client: Client) -> AsyncIterator[None]:
    """Raises: ServerAway, WirebookError (``bad-setting``)"""

    async def quiet(_: Exception) -> None:
        """The caller sees the error where it waits."""

    try:
        await client.connect(**servers.settings("wirebook-stream"), error_cb=quiet)
    except (OSError, Error, TimeoutError) as error:
        await client.close()
        raise ServerAway(f"{', '.join(servers.addresses)}: {_text(client.last_error or error)}") from None
    try:
        yield
    except (OSError, Error, TimeoutError) as error:
        if isinstance(error, APIError | NoRespondersError | ServerAway):
            raise
        raise ServerAway(f"{', '.join(servers.addresses)}: {_text(error)}") from error
    finally:
        with suppress(OSError, Error, TimeoutError):
            await client.close()


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def stream_state(servers: NatsServers, name: str) -> KeptStream:
    """Raises: ServerAway, MessagesLost"""

    async def ask() -> KeptStream:
        client = NatsClient()
        async with _connected(servers, client):
            try:
                return _kept(await client.jetstream(timeout=CONNECT_SECONDS).stream_info(name))
            except NotFoundError:
                raise MessagesLost(f"the server has no stream '{name}' any more") from None

    return asyncio.run(ask())


def _kept(info: StreamInfo) -> KeptStream:
    created = info.created.isoformat() if isinstance(info.created, datetime) else str(info.created)
    return KeptStream(str(info.config.name), info.state.first_seq, info.state.last_seq, created)


def find_stream(servers: NatsServers, subject: str) -> KeptStream:
    """The stream that keeps messages with a subject.

    Raises: broker-unreachable, unknown-topic, not-receivable
    """

    async def streams() -> list[StreamInfo]:
        client = NatsClient()
        async with _connected(servers, client):
            jetstream = client.jetstream(timeout=CONNECT_SECONDS)
            request = json.dumps({"subject": subject}).encode()
            answer = await client.request("$JS.API.STREAM.NAMES", request, CONNECT_SECONDS)
            names = json.loads(answer.data).get("streams") or []
            return [await jetstream.stream_info(name) for name in names]

    try:
        infos = asyncio.run(streams())
    except NoRespondersError:
        message = f"the NATS server at {', '.join(servers.addresses)} does not run JetStream"
        hint = "enable it, or capture the messages with `wirebook capture`"
        raise WirebookError(Problem("not-receivable", message, xid=servers.xid, hint=hint)) from None
    except ServerAway as error:
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
    """The messages with a subject, from sequence number `first` to `last`, as capture lines.

    Raises: ServerAway
    """
    arrived: asyncio.Queue[tuple[bytes, bytes, bytes, bytes]] = asyncio.Queue()

    async def receive(subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        arrived.put_nowait((bytes(subject), bytes(reply), bytes(data), bytes(headers or b"")))

    async def next_arrived() -> tuple[bytes, bytes, bytes, bytes]:
        """Raises: TimeoutError"""
        if arrived.empty():  # only then: a limit of time costs as much as all else that is done for a message
            return await asyncio.wait_for(arrived.get(), IDLE_SECONDS)
        return arrived.get_nowait()

    control, reader = NatsClient(), UnqueuedClient()
    reader.receive = receive
    async with _connected(servers, control), _connected(servers, reader):
        jetstream = control.jetstream(timeout=CONNECT_SECONDS)
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
        inbox, pending, delivered = reader.new_inbox(), consumer.num_pending or 0, 0
        await reader.subscribe(inbox)
        try:
            while pending:
                count = min(pending, PER_REQUEST)
                request = {"batch": count, "no_wait": True, "expires": IDLE_SECONDS * 10**9 // 2}
                place = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer.name}"
                await reader.publish(place, json.dumps(request).encode(), inbox)
                for _ in range(count):
                    of_message, reply, data, headers = await next_arrived()
                    if not reply:  # no message, but the state of the request
                        if not NOTHING_THERE.match(headers):
                            raise ServerAway(headers.decode("latin-1").strip().replace("\r\n", "; "))
                        pending = (await jetstream.consumer_info(stream, consumer.name)).num_pending or 0
                        break
                    delivery, delivered = Msg(control, reply=reply.decode()).metadata, delivered + 1
                    if delivery.sequence.consumer != delivered:
                        raise ServerAway(f"message {delivered} of a consumer of '{stream}' did not arrive")
                    if delivery.sequence.stream > last:
                        return
                    pending = delivery.num_pending
                    wire = NatsMessage(
                        received=instant_text(delivery.timestamp),
                        endpoint=servers.xid,
                        subject=of_message.decode(errors="backslashreplace"),
                        headers=header_pairs(headers) or None,
                        data=from_bytes(data),
                    )
                    yield delivery.sequence.stream, to_line(wire)
        finally:
            with suppress(OSError, Error, TimeoutError):
                await jetstream.delete_consumer(stream, consumer.name)
