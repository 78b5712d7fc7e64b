"""Receive AMQP 1.0 with python-qpid-proton: messages are accepted, and settled, when they are durable.

The broker keeps a message that is not settled, and delivers it again to this gateway or another receiver. The link
credit bounds the number of such messages.

Spec: amqp-core-messaging-v1.0#2.8; endpoint/spec.md#amqp-options
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from wirebook.bindings import to_line
from wirebook.bindings.capture import MAX_RECORD_BYTES
from wirebook.capture.amqp_connection import OPTIONS, AmqpConnection, Login
from wirebook.capture.backoff import Backoff
from wirebook.capture.committer import Committer
from wirebook.capture.endpoints import Address, ReceivedEndpoint
from wirebook.capture.receiver import first_of, received_now
from wirebook.capture.status import EndpointStatus
from wirebook.convert.proton import record_of_bytes
from wirebook.problems import WirebookError

SCHEMES: Final = ("amqp", "amqps")
MECHANISMS: Final = ("PLAIN", "ANONYMOUS", "EXTERNAL")
CONNECT_SECONDS: Final = 20
STOP_SECONDS: Final = 10

MOST_OPEN: Final = 1000
"""The maximum number of unsettled messages. This many can be delivered twice after a crash."""


class AmqpReceiver:
    """Receives the messages of a node. The broker identifies the gateway by the `identity` of its `Sink`."""

    def __init__(
        self, endpoint: ReceivedEndpoint, committer: Committer, identity: str, note: Callable[[str], None]
    ) -> None:
        """Raises: WirebookError (``incomplete-endpoint``, ``not-receivable``, ``bad-option``, ``bad-address``,
        ``bad-authorization``, ``bad-setting``)"""
        self.status = EndpointStatus(endpoint.xid, endpoint.protocol)
        self._committer, self._xid = committer, endpoint.xid
        self._note: Callable[[str], None] = lambda text: note(f"{endpoint.xid}: {text}")
        self._addresses = endpoint.addresses(SCHEMES)
        self._node = str(
            endpoint.option("node")
            or unquote(self._addresses[0].uri.path.removeprefix("/"))
            or endpoint.required("node", "it is the queue or topic to receive from")
        )
        for option, value in (("dynamic", True), ("receiver-settle-mode", "second")):
            if endpoint.option(option) == value:
                message = f"'{option}: {str(value).lower()}' is not supported by capture"
                raise endpoint.problem("not-receivable", ("protocoloptions", option), message, None, value)
        self._options = {option: endpoint.option(option) for option in OPTIONS}
        self._login = _login_of(endpoint, self._addresses[0].uri.username)
        uses_tls = any(address.uses_tls for address in self._addresses)
        self._tls = endpoint.credentials.tls_context(endpoint.xid) if uses_tls else None
        self._container = f"wirebook-{identity}-{endpoint.xid.removeprefix('/endpoints/')}"
        self._loop = asyncio.get_running_loop()
        self._connection: AmqpConnection | None = None
        self._pending: dict[asyncio.Future[None], list[Any]] = {}  # deliveries of the connection, by group
        self._resuming: asyncio.Task[None] | None = None
        self._is_stopping = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Receive until the gateway stops, then accept everything that was read, and release the rest."""
        if self._options["sender-settle-mode"] == "settled":
            self._note("'sender-settle-mode' is 'settled': messages that are not durable yet can be lost")
        if self._options["distribution-mode"] == "copy":
            self._note("'distribution-mode' is 'copy': every connection receives all messages of the node again")
        backoff, attempt = Backoff(), 0
        while not stopping.is_set():
            await first_of(self._committer.room(), stopping.wait())
            try:
                await self._receive(self._addresses[attempt % len(self._addresses)], stopping, backoff)
            except OSError as error:
                self._failed(error.strerror or str(error))
            attempt += 1
            await backoff.wait(stopping)
        self.status.is_receiving = False

    async def _receive(self, address: Address, stopping: asyncio.Event, backoff: Backoff) -> None:
        """Connect, and receive until the connection ends or the gateway stops. Raises: OSError"""
        self._connection = connection = AmqpConnection(
            self._container, address.host, self._node, self._login, self._options, changed=self._read
        )
        self._pending = {}
        tls = self._tls if address.uses_tls else None
        try:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._loop.create_connection(lambda: connection, address.host, address.port, ssl=tls)
                    await first_of(connection.ready, connection.lost, stopping.wait())
            except TimeoutError:
                raise ConnectionError(f"{address}: no answer within {CONNECT_SECONDS} s") from None
            if connection.ready.done() and not connection.lost.done():
                backoff.reset()
                self.status.connections += 1
                self.status.is_receiving, self.status.failure = True, None
                self._note(f"receiving '{self._node}' from {address}")
                await first_of(connection.lost, stopping.wait())
            if connection.lost.done():
                raise ConnectionError(f"{address}: {connection.lost.result()}")
            await self._finish(connection)
        finally:
            connection.abort()

    def _failed(self, text: str) -> None:
        self.status.is_receiving = False
        if text != self.status.failure:  # once, not for every attempt
            self._note(f"not receiving: {text}; connecting again")
        self.status.failure = text

    def _read(self) -> None:
        """Capture the messages that have arrived, unless memory is full. Then grant the broker more credit."""
        connection = self._connection
        assert connection
        while connection.is_within_message or not self._committer.is_full:
            message = connection.next_message(MAX_RECORD_BYTES)
            if message is None:
                break
            if self._is_stopping and not message[0].settled:  # a settled message cannot be released
                connection.release(message[0])
            else:
                self._capture(connection, *message)
        if self._is_stopping:
            return
        if self._committer.is_full:
            self._resuming = self._resuming or asyncio.create_task(self._resume())
        elif (open_ := connection.unsettled + connection.unused_credit) <= MOST_OPEN // 2:
            connection.grant(MOST_OPEN - open_)

    async def _resume(self) -> None:
        """Read again as soon as there is room."""
        await self._committer.room()
        self._resuming = None
        if self._connection is not None and not self._connection.lost.done():
            self._read()
            self._connection.flush()

    def _capture(self, connection: AmqpConnection, delivery: Any, encoded: bytes | None) -> None:
        """Add the line of a message. A message that cannot be a record is counted and rejected, so that the broker
        does not deliver it again."""
        line = b""
        if encoded is not None:
            try:
                wire = record_of_bytes(encoded)
            except WirebookError as error:
                self._reject(connection, delivery, "malformed", str(error))
                return
            line = to_line(msgspec.structs.replace(wire, received=received_now(), endpoint=self._xid))
        if encoded is None or len(line) > MAX_RECORD_BYTES:
            self._reject(connection, delivery, "too-large", f"it has more than {MAX_RECORD_BYTES >> 20} MiB")
            return
        self.status.count(line)
        durable = self._committer.append(line)
        if durable not in self._pending:
            deliveries = self._pending[durable] = list[Any]()
            durable.add_done_callback(partial(self._accept, connection, deliveries))
        self._pending[durable].append(delivery)

    def _reject(self, connection: AmqpConnection, delivery: Any, reason: str, text: str) -> None:
        self.status.rejected[reason] += 1
        self._note(f"a message was rejected: {text}")
        connection.reject(delivery, text)

    def _accept(self, connection: AmqpConnection, deliveries: list[Any], durable: asyncio.Future[None]) -> None:
        """Accept a group on the connection that delivered it. If that connection is lost, it is delivered again."""
        if durable.cancelled() or connection.lost.done():
            return
        del self._pending[durable]
        for delivery in deliveries:
            connection.accept(delivery)
        self.status.acknowledged += len(deliveries)
        self._read()
        connection.flush()

    async def _finish(self, connection: AmqpConnection) -> None:
        """Release what arrives from now on, accept what was read, and close the connection."""
        self._is_stopping = True
        self._read()
        connection.flush()
        while self._pending and not connection.lost.done():
            await first_of(*self._pending, connection.lost)
            await asyncio.sleep(0)  # run the callbacks that accept
        if not connection.lost.done():
            await connection.close(STOP_SECONDS)


def _login_of(endpoint: ReceivedEndpoint, user: str | None) -> Login:
    """Choose the first supported mechanism of the catalogue. If it names no mechanism, the credentials decide.

    Raises: WirebookError (``bad-authorization``)
    """
    credentials = endpoint.credentials
    user = credentials.username or user
    entries = [entry for entry in endpoint.option("authorization") or () if isinstance(entry, dict)]
    stated = [str(entry["mechanism"]).upper() for entry in entries if entry.get("mechanism")]
    usable = [mechanism for mechanism in stated if mechanism in MECHANISMS]
    if stated and not usable:
        place = ("protocoloptions", "authorization")
        message = f"the SASL mechanism '{stated[0]}' is not supported by capture"
        raise endpoint.problem("bad-authorization", place, message, MECHANISMS, stated[0])
    mechanism = usable[0] if usable else "PLAIN" if user else "EXTERNAL" if credentials.certfile else "ANONYMOUS"
    return Login(mechanism, user, credentials.password)
