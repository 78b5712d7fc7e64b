"""Receive MQTT 3.1.1 and 5.0 with paho-mqtt, in a persistent session: messages are acknowledged when durable.

The broker discards a message at PUBACK (QoS 1) or PUBREC (QoS 2), so these are sent only when the message is durable.
The broker delivers messages that are not acknowledged again, to the next connection of the session.

Spec: mqtt-v5.0#4.3; endpoint/spec.md#mqtt-options
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from wirebook.bindings import to_line
from wirebook.capture.backoff import Backoff
from wirebook.capture.committer import Committer
from wirebook.capture.endpoints import Address, ReceivedEndpoint
from wirebook.capture.receiver import first_of, received_now
from wirebook.capture.status import EndpointStatus
from wirebook.convert.paho import record_of
from wirebook.problems import WirebookError

SCHEMES: Final = ("mqtt", "mqtts", "tcp", "ssl")
CONNECT_SECONDS: Final = 20
KEEPALIVE_SECONDS: Final = 60
STOP_SECONDS: Final = 10
QUIET_SECONDS: Final = 0.2
"""When the gateway stops, a broker that has sent nothing for this long has processed the acknowledgements."""

SESSION_SECONDS: Final = 7 * 86_400
"""How long an MQTT 5.0 broker keeps the session of a disconnected gateway, unless the endpoint specifies it."""

MOST_OPEN: Final = 1000
"""The maximum number of unacknowledged messages. This many can be delivered twice after a crash."""


class _Client(mqtt.Client):
    """A client that acknowledges messages of QoS 1 and 2 only when `acknowledge` is called.

    paho has manual acknowledgements, but for QoS 2 it sends PUBREC before the application sees the message, and it
    keeps the message in memory until PUBREL; a crash in between loses it. Here `on_arrival` is called when a message of
    QoS 2 arrives, and `on_release` at its PUBREL.
    """

    on_arrival: Callable[[mqtt.MQTTMessage], None]
    on_release: Callable[[int], None]
    _arrived: int | None = None

    def acknowledge(self, mid: int, qos: int) -> None:
        """Send PUBACK or PUBREC."""
        send = super()._send_puback if qos == 1 else super()._send_pubrec
        send(mid)

    def _send_puback(self, mid: int) -> MQTTErrorCode:  # noqa: ARG002
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _send_pubrec(self, mid: int) -> MQTTErrorCode:
        self._arrived = mid
        return MQTTErrorCode.MQTT_ERR_SUCCESS

    def _handle_publish(self) -> MQTTErrorCode:
        result = super()._handle_publish()
        if self._arrived is not None:
            message, self._arrived = self._in_messages.pop(self._arrived), None
            self.on_arrival(message)
        return result

    def _send_pubcomp(self, mid: int) -> MQTTErrorCode:
        self.on_release(mid)
        return super()._send_pubcomp(mid)


class MqttReceiver:
    """Receives the messages of a topic filter. The broker identifies the gateway by the `identity` of its `Sink`."""

    def __init__(
        self, endpoint: ReceivedEndpoint, committer: Committer, identity: str, note: Callable[[str], None]
    ) -> None:
        """Raises: WirebookError (``incomplete-endpoint``, ``bad-option``, ``bad-address``, ``bad-setting``)"""
        self.status = EndpointStatus(endpoint.xid, endpoint.protocol)
        self._endpoint, self._committer = endpoint, committer
        self._note: Callable[[str], None] = lambda text: note(f"{endpoint.xid}: {text}")
        self._is_v5 = endpoint.protocol == "MQTT/5.0"
        self._addresses = endpoint.addresses(SCHEMES)
        path = self._addresses[0].uri.path.lstrip("/")
        self._topic = str(
            endpoint.option("topicfilter")
            or endpoint.option("topic")
            or path
            or endpoint.required("topicfilter", "it is the filter to subscribe to, such as 'orders/#'")
        )
        self._qos = int(endpoint.option("qos") or 0)
        self._starts_clean = bool(endpoint.option("cleanstart" if self._is_v5 else "cleansession"))
        self._subscription: dict[str, Any] = {"qos": self._qos}
        if self._is_v5:
            if group := endpoint.option("sharedsubscriptiongroup"):
                self._topic = f"$share/{group}/{self._topic}"
            seconds = endpoint.option("sessionexpiryinterval")
            self._session_seconds = SESSION_SECONDS if seconds is None else int(seconds)
            options = SubscribeOptions(
                self._qos,
                noLocal=bool(endpoint.option("nolocal")),
                retainAsPublished=endpoint.option("retainaspublished") is not False,
                retainHandling=endpoint.option("retainhandling") or 0,
            )
            self._subscription = {"options": options}
        self._loop = asyncio.get_running_loop()
        self._client = self._make_client(f"wirebook-{identity}-{endpoint.xid.removeprefix('/endpoints/')}")
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._lost: asyncio.Future[str] = self._loop.create_future()
        self._connection = 0
        self._stored: dict[int, asyncio.Future[None]] = {}  # messages of QoS 2 until their PUBREL
        self._pending: set[asyncio.Future[None]] = set()  # groups with messages of this endpoint
        self._open = 0  # messages in these groups
        self._reading: int | None = None  # the descriptor that is watched
        self._resuming: asyncio.Task[None] | None = None

    def _make_client(self, client_id: str) -> _Client:
        version = MQTTProtocolVersion.MQTTv5 if self._is_v5 else MQTTProtocolVersion.MQTTv311
        clean = None if self._is_v5 else self._starts_clean
        client = _Client(CallbackAPIVersion.VERSION2, client_id, clean_session=clean, protocol=version)
        client.connect_timeout = CONNECT_SECONDS
        credentials = self._endpoint.credentials
        if user := credentials.username or self._addresses[0].uri.username:
            client.username_pw_set(user, credentials.password)
        if any(address.uses_tls for address in self._addresses):
            if not all(address.uses_tls for address in self._addresses):
                message = "either all addresses must use TLS, or none"
                raise self._endpoint.problem("bad-address", ("protocoloptions", "endpoints"), message)
            client.tls_set_context(credentials.tls_context(self._endpoint.xid))
        client.on_connect, client.on_subscribe = self._on_connect, self._on_subscribe
        client.on_disconnect, client.on_message = self._on_disconnect, self._on_message
        client.on_arrival = self._on_arrival
        client.on_release = self._on_release

        def watching(act: Callable[[int], Any]) -> Callable[[Any, Any, Any], None]:
            """Call `act` with the descriptor on the event loop; paho connects in another thread."""

            def handle(_: Any, __: Any, sock: Any) -> None:
                self._loop.call_soon_threadsafe(act, sock.fileno())

            return handle

        client.on_socket_open, client.on_socket_close = watching(self._watch), watching(self._unwatch)
        client.on_socket_register_write = watching(lambda number: self._loop.add_writer(number, client.loop_write))
        client.on_socket_unregister_write = watching(self._loop.remove_writer)
        return client

    # -- connecting --------------------------------------------------------------------------------------------------

    async def run(self, stopping: asyncio.Event) -> None:
        """Receive until the gateway stops, then acknowledge everything that was received."""
        if self._qos == 0:
            self._note("'qos' is 0: the broker delivers messages once, and those that are not durable yet can be lost")
        if self._starts_clean:
            self._note("the endpoint asks for a clean session: messages are lost while the gateway is not connected")
        alive = asyncio.create_task(self._keep_alive())
        backoff, attempt = Backoff(), 0
        try:
            while not stopping.is_set():
                await first_of(self._committer.room(), stopping.wait())
                try:
                    await self._connect(self._addresses[attempt % len(self._addresses)], is_first=attempt == 0)
                    backoff.reset()
                    await first_of(self._lost, stopping.wait())
                    if self._lost.done():
                        self._failed(self._lost.result())
                except (OSError, ValueError) as error:
                    self._failed(getattr(error, "strerror", None) or str(error))
                attempt += 1
                await backoff.wait(stopping)
            await self._finish()
        finally:
            self.status.is_receiving = False
            alive.cancel()

    async def _connect(self, address: Address, *, is_first: bool) -> None:
        """Connect and subscribe. Raises: OSError"""
        self._connection += 1
        self._ready, self._lost = self._loop.create_future(), self._loop.create_future()
        options: dict[str, Any] = {}
        if self._is_v5:
            properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.SessionExpiryInterval = self._session_seconds
            properties.ReceiveMaximum = MOST_OPEN
            options = {"clean_start": self._starts_clean and is_first, "properties": properties}
        connect = partial(self._client.connect, address.host, address.port, KEEPALIVE_SECONDS, **options)
        await self._loop.run_in_executor(None, connect)
        await first_of(self._ready, self._lost, asyncio.sleep(CONNECT_SECONDS))
        if not self._ready.done():
            text = self._lost.result() if self._lost.done() else f"no answer within {CONNECT_SECONDS} s"
            self._client.disconnect()
            raise ConnectionError(f"{address}: {text}")
        self.status.connections += 1
        self.status.is_receiving, self.status.failure = True, None
        self._note(f"receiving '{self._topic}' from {address}")

    def _failed(self, text: str) -> None:
        self.status.is_receiving = False
        if text != self.status.failure:  # once, not for every attempt
            self._note(f"not receiving: {text}; connecting again")
        self.status.failure = text

    def _on_connect(self, client: Any, _: Any, flags: Any, reason: Any, __: Any) -> None:
        if reason.is_failure:
            self._lose(f"the broker refused the connection: {reason}")
            return
        if not flags.session_present:
            self._stored.clear()
        client.subscribe(self._topic, **self._subscription)

    def _on_subscribe(self, _: Any, __: Any, ___: Any, reasons: Any, ____: Any) -> None:
        if reasons[0].is_failure:
            self._lose(f"the broker refused the subscription to '{self._topic}': {reasons[0]}")
            return
        if reasons[0].value < self._qos:
            self._note(f"the broker grants QoS {reasons[0].value} instead of {self._qos}")
        if not self._ready.done():
            self._ready.set_result(None)

    def _on_disconnect(self, _: Any, __: Any, ___: Any, reason: Any, ____: Any) -> None:
        self._lose(f"the connection ended: {reason}")

    def _lose(self, text: str) -> None:
        if not self._lost.done():
            self._lost.set_result(text)

    # -- reading -----------------------------------------------------------------------------------------------------

    def _watch(self, descriptor: int) -> None:
        self._reading = descriptor
        self._loop.add_reader(descriptor, self._read)

    def _unwatch(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        self._loop.remove_writer(descriptor)
        if self._reading == descriptor:
            self._reading = None

    def _read(self) -> None:
        """Read one packet, and those that TLS has decrypted with it, which the event loop cannot see."""
        while self._client.loop_read() == MQTTErrorCode.MQTT_ERR_SUCCESS:
            if self._has_enough() and self._reading is not None and self._resuming is None:
                self._resuming = asyncio.create_task(self._pause(self._reading))
            sock = self._client.socket()
            if not isinstance(sock, ssl.SSLSocket) or not sock.pending():
                break

    def _has_enough(self) -> bool:
        return self._committer.is_full or self._open >= MOST_OPEN

    async def _pause(self, descriptor: int) -> None:
        """Stop reading until there is room and messages have been acknowledged."""
        self._loop.remove_reader(descriptor)
        while self._has_enough():
            await self._committer.room()
            if self._pending:
                await asyncio.wait(self._pending, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # the callbacks that acknowledge
        self._resuming = None
        if self._reading == descriptor:
            self._loop.add_reader(descriptor, self._read)

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._client.loop_misc()

    def _on_message(self, _: Any, __: Any, message: mqtt.MQTTMessage) -> None:
        """Capture a message of QoS 0 or 1."""
        if (durable := self._capture(message)) is not None and message.qos == 1:
            durable.add_done_callback(partial(self._acknowledge, message.mid, 1, self._connection))

    def _on_arrival(self, message: mqtt.MQTTMessage) -> None:
        """Capture a message of QoS 2, unless it was delivered again before its PUBREL."""
        durable = self._stored.get(message.mid) or self._capture(message)
        if durable is not None:
            self._stored[message.mid] = durable
            durable.add_done_callback(partial(self._acknowledge, message.mid, 2, self._connection))

    def _on_release(self, mid: int) -> None:
        self._stored.pop(mid, None)

    def _capture(self, message: mqtt.MQTTMessage) -> asyncio.Future[None] | None:
        """Add the line of a message. A message that cannot be a record is counted and acknowledged, so that the broker
        does not deliver it again."""
        try:
            wire = record_of(message, "5.0" if self._is_v5 else "3.1.1")
        except WirebookError as error:
            self.status.rejected["malformed"] += 1
            self._note(f"a message was dropped: {error}")
            if message.qos:
                self._client.acknowledge(message.mid, message.qos)
            return None
        line = to_line(msgspec.structs.replace(wire, received=received_now(), endpoint=self._endpoint.xid))
        self.status.count(line)
        durable = self._committer.append(line)
        self._open += 1
        self._pending.add(durable)
        durable.add_done_callback(self._close)
        return durable

    def _close(self, durable: asyncio.Future[None]) -> None:
        self._open -= 1
        self.status.acknowledged += 1
        self._pending.discard(durable)

    def _acknowledge(self, mid: int, qos: int, connection: int, durable: asyncio.Future[None]) -> None:
        """Acknowledge a message on the connection that delivered it. On another connection, it is delivered again."""
        if connection == self._connection and not durable.cancelled():
            self._client.acknowledge(mid, qos)

    async def _finish(self) -> None:
        """Acknowledge what was read, and disconnect; the broker keeps the session.

        What the broker sends in the meantime is read, but dropped without an acknowledgement. It must be read because
        closing a socket with unread bytes resets the connection, and the broker would miss the last acknowledgements.
        """
        descriptor, self._reading = self._reading, None
        if descriptor is not None:
            self._loop.remove_reader(descriptor)
        while self._pending:
            await asyncio.wait(self._pending)
            await asyncio.sleep(0)  # the callbacks that acknowledge
        latest = self._loop.time() + STOP_SECONDS
        last_read = self._loop.time()
        while (sock := self._client.socket()) is not None and (now := self._loop.time()) < latest:
            try:
                is_open = bool(sock.recv(1 << 16))
            except (BlockingIOError, ssl.SSLWantReadError):
                if now - last_read > QUIET_SECONDS and not self._client.want_write():
                    break
                await asyncio.sleep(0.01)
            except OSError:
                break
            else:
                last_read = now
                if not is_open:
                    break
        self._client.disconnect()
        while self._client.want_write() and self._loop.time() < latest:
            await asyncio.sleep(0.01)
