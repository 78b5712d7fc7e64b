"""Receive core NATS with nats-py. The server does not keep messages and there are no acknowledgements, so messages
that are not durable are lost when the gateway or the connection fails.

Spec: endpoint/spec.md#nats-options
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from nats.aio.client import Client
from nats.errors import Error

from wirebook.bindings import NatsMessage, from_bytes, to_line
from wirebook.capture.backoff import Backoff
from wirebook.capture.committer import Committer
from wirebook.capture.endpoints import ReceivedEndpoint
from wirebook.capture.nats_client import CONNECT_SECONDS, NatsServers, UnqueuedClient, header_pairs, subject_of
from wirebook.capture.receiver import first_of, received_now
from wirebook.capture.status import EndpointStatus

STOP_SECONDS: Final = 10


class NatsReceiver:
    """Receives the messages of a subject filter."""

    def __init__(
        self, endpoint: ReceivedEndpoint, committer: Committer, identity: str, note: Callable[[str], None]
    ) -> None:
        """Raises: WirebookError (``incomplete-endpoint``, ``bad-option``, ``bad-address``, ``bad-setting``)"""
        self.status = EndpointStatus(endpoint.xid, endpoint.protocol)
        self._committer, self._xid = committer, endpoint.xid
        self._note: Callable[[str], None] = lambda text: note(f"{endpoint.xid}: {text}")
        self._subject = subject_of(endpoint)
        self._settings = NatsServers.of(endpoint).settings(
            f"wirebook-{identity}-{endpoint.xid.removeprefix('/endpoints/')}"
        )
        self._queue_group = str(endpoint.option("queuegroup") or "")
        self._pending: set[asyncio.Future[None]] = set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Receive until the gateway stops, then wait until everything is durable."""
        backoff = Backoff()
        while not stopping.is_set():
            await first_of(self._committer.room(), stopping.wait())
            try:
                await self._receive(stopping, backoff)
            except (OSError, Error, TimeoutError) as error:
                self._failed(str(error) or type(error).__name__)
            await backoff.wait(stopping)
        self.status.is_receiving = False
        while self._pending:
            await asyncio.wait(self._pending)

    async def _receive(self, stopping: asyncio.Event, backoff: Backoff) -> None:
        """Connect, and receive until the connection ends or the server reports an error, such as a subscription that
        is not permitted. Raises: OSError, Error, TimeoutError"""
        lost, errors = asyncio.Event(), list[Exception]()

        async def on_close() -> None:
            lost.set()

        async def on_error(error: Exception) -> None:
            errors.append(error)
            lost.set()

        async def receive(subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
            try:
                await self._capture(subject, reply, data, headers)
            except Exception as error:  # nats-py would stop reading and report nothing
                self.status.rejected["internal-error"] += 1
                await on_error(error)

        client = UnqueuedClient()
        client.receive = receive
        try:
            callbacks: dict[str, Any] = {"disconnected_cb": on_close, "closed_cb": on_close, "error_cb": on_error}
            await client.connect(**self._settings, **callbacks)
            subscription = await client.subscribe(self._subject, queue=self._queue_group)
            await client.flush(CONNECT_SECONDS)
            if not lost.is_set():
                backoff.reset()
                self.status.connections += 1
                self.status.is_receiving, self.status.failure = True, None
                url = client.connected_url
                self._note(f"receiving '{self._subject}' from {url.netloc if url else 'the server'}")
                await first_of(lost.wait(), stopping.wait())
            if lost.is_set():
                raise ConnectionError(str(errors[0]) if errors else "the server closed the connection")
            await subscription.unsubscribe()
            await self._read_rest(client)
        finally:
            with suppress(OSError, Error, TimeoutError):
                await client.close()

    async def _read_rest(self, client: Client) -> None:
        """Read what the server had sent before the end of the subscription. Raises: TimeoutError, if nothing arrives"""
        while True:
            received = self.status.received
            try:
                await client.flush(STOP_SECONDS)
            except TimeoutError:
                if self.status.received == received:
                    raise
            else:
                return

    async def _capture(self, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        wire = NatsMessage(
            received=received_now(),
            endpoint=self._xid,
            subject=subject.decode(errors="backslashreplace"),
            reply_to=reply.decode(errors="backslashreplace") or None,
            headers=header_pairs(headers or b"") or None,
            data=from_bytes(bytes(data)),
        )
        line = to_line(wire)
        self.status.count(line)
        durable = self._committer.append(line)
        self._pending.add(durable)
        durable.add_done_callback(self._stored)
        await self._committer.room()

    def _stored(self, durable: asyncio.Future[None]) -> None:
        self.status.acknowledged += 1
        self._pending.discard(durable)

    def _failed(self, text: str) -> None:
        self.status.is_receiving = False
        if text != self.status.failure:  # once, not for every attempt
            self._note(f"not receiving: {text}; connecting again")
        self.status.failure = text
