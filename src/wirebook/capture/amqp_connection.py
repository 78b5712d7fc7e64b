"""A connection to an AMQP 1.0 broker with one receiving link: Proton's protocol engine on asyncio sockets.

The engine has no thread and no socket of its own here, so it runs on the gateway's event loop. TLS is Python's, as for
the other protocols.

Spec: amqp-core-transport-v1.0; endpoint/spec.md#amqp-options; docs/decisions/0212
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import proton

from wirebook.convert.proton import own_value

__all__ = ["OPTIONS", "AmqpConnection", "Login"]

IDLE_SECONDS: Final = 60
"""A connection is lost if the broker sends nothing for this long."""
TICK_SECONDS: Final = 5
FRAME_BYTES: Final = 16 << 10
WINDOW_BYTES: Final = 8 << 20
"""The maximum number of bytes that the broker may send while no message is read, whatever its credit."""
MAX_CONDITION: Final = 500
"""The maximum number of characters in the text of an error condition."""

OPTIONS: Final = (
    *("connection-properties", "connection-capabilities", "link-properties", "node-capabilities", "source-filters"),
    *("distribution-mode", "terminus-durability", "expiry-policy", "timeout", "sender-settle-mode"),
)
"""Options of an endpoint that are passed on to the broker."""
DISTRIBUTIONS: Final = {
    "move": proton.Terminus.DIST_MODE_MOVE,
    "copy": proton.Terminus.DIST_MODE_COPY,
    None: proton.Terminus.DIST_MODE_UNSPECIFIED,
}
DURABILITIES: Final = {
    "none": proton.Terminus.NONDURABLE,
    "configuration": proton.Terminus.CONFIGURATION,
    "unsettled-state": proton.Terminus.DELIVERIES,
}
EXPIRIES: Final = {
    "link-detach": proton.Terminus.EXPIRE_WITH_LINK,
    "session-end": proton.Terminus.EXPIRE_WITH_SESSION,
    "connection-close": proton.Terminus.EXPIRE_WITH_CONNECTION,
    "never": proton.Terminus.EXPIRE_NEVER,
}
SETTLE_MODES: Final = {
    "unsettled": proton.Link.SND_UNSETTLED,
    "settled": proton.Link.SND_SETTLED,
    "mixed": proton.Link.SND_MIXED,
}


@dataclass(frozen=True, slots=True, repr=False)
class Login:
    """A SASL mechanism and its credentials. It has no `repr`, so that no log contains them."""

    mechanism: str
    user: str | None = None
    password: str | None = None


class AmqpConnection(asyncio.Protocol):
    """Connects to a broker, and attaches a link to a node. `ready` is done when the broker has accepted the link.
    `lost` is done when the connection or the link has ended; its result is the reason. `changed` is called when
    messages may have arrived.

    Shape: `unsettled` counts the messages that were read but not accepted, rejected or released yet.
    """

    def __init__(
        self,
        container: str,
        host: str,
        node: str,
        login: Login,
        options: Mapping[str, Any],
        *,
        changed: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._node, self._login, self._changed = node, login, changed
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self.unsettled = 0
        self._parts, self._size = list[bytes](), 0  # of a message that has not arrived completely
        self._socket: Any = None
        self._ticking: asyncio.TimerHandle | None = None
        self._connection, self._engine, self._events = proton.Connection(), proton.Transport(), proton.Collector()
        self._connection.collect(self._events)
        self._connection.container, self._connection.hostname = container, host
        if login.mechanism == "PLAIN":
            self._connection.user, self._connection.password = login.user or "", login.password or ""
        self._connection.properties = options["connection-properties"]
        self._connection.desired_capabilities = options["connection-capabilities"]
        sasl = self._engine.sasl()
        sasl.allowed_mechs(login.mechanism)
        sasl.allow_insecure_mechs = True  # the engine does not know that TLS is below it
        self._engine.idle_timeout, self._engine.max_frame_size = IDLE_SECONDS, FRAME_BYTES
        self._engine.bind(self._connection)
        self._connection.open()
        session = self._connection.session()
        session.incoming_capacity = WINDOW_BYTES
        session.open()
        self._link = session.receiver(container)
        self._attach(options)

    def _attach(self, options: Mapping[str, Any]) -> None:
        link, source = self._link, self._link.source
        source.address = self._node
        source.distribution_mode = DISTRIBUTIONS[options["distribution-mode"]]
        source.durability = DURABILITIES[options["terminus-durability"] or "none"]
        if options["expiry-policy"] is not None:
            source.expiry_policy = EXPIRIES[options["expiry-policy"]]
        source.timeout = options["timeout"] or 0
        if options["node-capabilities"]:
            source.capabilities.put_py_array(
                proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, *map(proton.symbol, options["node-capabilities"]))
            )
        if filters := options["source-filters"]:
            described = {
                name: proton.Described(proton.symbol(name), own_value(value)) for name, value in filters.items()
            }
            source.filter.put_dict({proton.symbol(name): value for name, value in described.items()})
        link.properties = options["link-properties"]
        link.snd_settle_mode = SETTLE_MODES[options["sender-settle-mode"] or "unsettled"]
        link.rcv_settle_mode = proton.Link.RCV_FIRST
        link.open()

    # -- the socket --------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the protocol (called by asyncio)."""
        self._socket = transport
        self._tick()

    def data_received(self, data: bytes) -> None:
        """Process what the broker sent (called by asyncio)."""
        try:
            while data and (size := self._engine.capacity()) > 0:
                self._engine.push(data[:size])
                data = data[size:]
        except proton.TransportException:
            pass  # `on_transport_error` reports the reason
        self._process()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the timer and report the loss (called by asyncio)."""
        if self._ticking is not None:
            self._ticking.cancel()
        self._lose(str(error) if error else "the broker closed the connection")

    def _tick(self) -> None:
        """Send heartbeats, and detect missing heartbeats of the broker."""
        self._engine.tick(self._loop.time())
        self._ticking = self._loop.call_later(TICK_SECONDS, self._tick)
        self._process()

    def _process(self) -> None:
        self._dispatch()
        if not self.lost.done():
            self._changed()
        self.flush()

    def flush(self) -> None:
        """Send the pending output of the engine. This can end the connection, for example after a rejected login."""
        while (size := self._engine.pending()) > 0:
            self._socket.write(self._engine.peek(size))
            self._engine.pop(size)
        self._dispatch()

    def _dispatch(self) -> None:
        while (event := self._events.peek()) is not None:
            event.dispatch(self)
            self._events.pop()

    async def close(self, seconds: float) -> None:
        """Detach, and wait until the broker has processed everything sent before. A durable subscription remains."""
        self._link.detach()
        self._connection.close()
        self.flush()
        await asyncio.wait([self.lost], timeout=seconds)

    def abort(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.abort()

    # -- events of the engine ----------------------------------------------------------------------------------------

    def on_link_remote_open(self, event: Any) -> None:
        """The broker has attached the link. To refuse a link, it sends an attach without a source, then a detach."""
        if event.link.remote_source.type == proton.Terminus.SOURCE and not self.ready.done():
            self.ready.set_result(None)

    def on_link_remote_close(self, event: Any) -> None:
        """The broker refuses the link, or has ended it."""
        verb = "ended" if self.ready.done() else "refused"
        self._lose(f"the broker {verb} the link to '{self._node}'{_text(event.link.remote_condition)}")

    def on_link_remote_detach(self, event: Any) -> None:
        """The broker has ended the link for now."""
        self.on_link_remote_close(event)

    def on_session_remote_close(self, event: Any) -> None:
        """The broker has ended the session."""
        self._lose(f"the broker ended the session{_text(event.session.remote_condition)}")

    def on_connection_remote_close(self, event: Any) -> None:
        """The broker has closed the connection."""
        self._lose(f"the broker closed the connection{_text(event.connection.remote_condition)}")

    def on_transport_error(self, _: Any) -> None:
        """The broker refused the login, violated the protocol, or has stopped sending."""
        is_refused = self._engine.sasl().outcome not in (None, proton.SASL.OK)
        what = f"the broker refused the login by {self._login.mechanism}" if is_refused else "the connection failed"
        self._lose(f"{what}{_text(self._engine.condition)}")

    def _lose(self, text: str) -> None:
        if not self.lost.done():
            self.lost.set_result(text)

    # -- messages ----------------------------------------------------------------------------------------------------

    @property
    def is_within_message(self) -> bool:
        """Whether a message was read in part. The rest of it must be read to free the session window."""
        return self._size > 0

    @property
    def unused_credit(self) -> int:
        """The number of messages that the broker may still send, plus those that have arrived but were not read."""
        return int(self._link.credit)

    def grant(self, credit: int) -> None:
        """Grant the broker credit for more messages."""
        self._link.flow(credit)

    def next_message(self, limit: int) -> tuple[Any, bytes | None] | None:
        """Return the delivery and the bytes of the next message; None if no message has arrived completely. The bytes
        are None if there are more than `limit`."""
        while (delivery := self._link.current) is not None:
            if delivery.aborted:
                self._parts, self._size = [], 0
                delivery.settle()
                continue
            part = self._link.recv(delivery.pending) or b""
            self._size += len(part)
            self._parts.append(part)
            if self._size > limit:
                self._parts.clear()
            if delivery.partial:
                return None
            encoded = b"".join(self._parts) if self._size <= limit else None
            self._parts, self._size = [], 0
            self._link.advance()
            self.unsettled += 1
            return delivery, encoded
        return None

    def accept(self, delivery: Any) -> None:
        """Accept a message, because it is durable."""
        self._settle(delivery, proton.Delivery.ACCEPTED)

    def release(self, delivery: Any) -> None:
        """Release a message, so that the broker can deliver it again."""
        self._settle(delivery, proton.Delivery.RELEASED)

    def reject(self, delivery: Any, text: str) -> None:
        """Reject a message permanently."""
        delivery.local.condition = proton.Condition("amqp:decode-error", text[:MAX_CONDITION])
        self._settle(delivery, proton.Delivery.REJECTED)

    def _settle(self, delivery: Any, outcome: Any) -> None:
        delivery.update(outcome)
        delivery.settle()
        self.unsettled -= 1


def _text(condition: Any) -> str:
    """Return an error condition of the broker as the end of a sentence."""
    if condition is None:
        return ""
    return f": {condition.name}{f': {condition.description}' if condition.description else ''}"[:MAX_CONDITION]
