"""Connections to NATS with nats-py, which return messages as they are on the wire, and their settings from an endpoint.

Spec: endpoint/spec.md#nats-options
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from nats.aio.client import Client
from nats.errors import Error

from wirebook.bindings import from_bytes
from wirebook.bindings.wire import Pair
from wirebook.capture.endpoints import Credentials, ReceivedEndpoint

__all__ = ["CONNECT_SECONDS", "NatsClient", "NatsServers", "UnqueuedClient", "header_pairs", "subject_of"]

SCHEMES: Final = ("nats", "tls")
CONNECT_SECONDS: Final = 20


class NatsClient(Client):
    """A client that, with TLS settings, sends nothing to a server without TLS, and that can always be closed."""

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Require TLS. nats-py would send the password as plain text, even if the address begins with ``tls://``."""
        if initial_connection and "tls" in self.options:
            if not (info.get("tls_required") or info.get("tls_available")):
                raise Error("the server does not use TLS")
            info["tls_required"] = True  # nats-py uses TLS if the server requires it
        await super()._process_info(info, initial_connection)

    async def close(self) -> None:
        """Close the connection. nats-py would never return after a TLS handshake that failed."""
        if self.is_connected:
            await super().close()
        elif self._transport:
            self._transport.close()  # type: ignore[no-untyped-call]


class UnqueuedClient(NatsClient):
    """A client that passes messages to `receive` as they are on the wire, and reads the next one when it returns.

    nats-py puts headers into a dict, which loses repeated ones, and messages into a queue, which drops messages when
    it is full. Here the connection is not read while there is no room, so that messages wait in the server.
    """

    receive: Callable[[bytes, bytes, bytes, bytes | None], Awaitable[None]]

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:  # noqa: ARG002
        await self.receive(subject, reply, data, headers)

    async def flush(self, timeout: int = CONNECT_SECONDS) -> None:
        """Wait until the server has processed every command. Raises: TimeoutError

        nats-py writes the PING of a flush before the commands that are still queued, so only a second PING follows
        them.
        """
        await super().flush(timeout)
        await super().flush(timeout)


@dataclass(frozen=True, slots=True, repr=False)
class NatsServers:
    """The servers of an endpoint and its credentials. Can be pickled; has no `repr`, so that no log contains it."""

    xid: str
    addresses: tuple[str, ...]
    credentials: Credentials
    user: str | None
    uses_tls: bool

    @staticmethod
    def of(endpoint: ReceivedEndpoint) -> NatsServers:
        """Raises: WirebookError (``incomplete-endpoint``, ``bad-address``, ``missing-context``)"""
        addresses, credentials = endpoint.addresses(SCHEMES), endpoint.credentials
        uses_tls = any(address.uses_tls for address in addresses) or credentials.cafile or credentials.certfile
        user = credentials.username or addresses[0].uri.username
        return NatsServers(endpoint.xid, tuple(map(str, addresses)), credentials, user, bool(uses_tls))

    def settings(self, name: str) -> dict[str, Any]:
        """Return the arguments of `Client.connect`. The server shows `name` to its operators.

        Raises: WirebookError (``bad-setting``)
        """
        settings = {
            "servers": list(self.addresses),
            "allow_reconnect": False,  # callers connect again, with backoff
            "max_reconnect_attempts": 1,  # else nats-py retries the first connection for two minutes
            "reconnect_time_wait": 0.2,
            "connect_timeout": CONNECT_SECONDS,
            "name": name,
            "user": self.user,
            "password": self.credentials.password,
            "token": self.credentials.token,
        }
        return settings | ({"tls": self.credentials.tls_context(self.xid)} if self.uses_tls else {})


def subject_of(endpoint: ReceivedEndpoint) -> str:
    """Return the subject or subject filter of an endpoint. Raises: incomplete-endpoint, bad-option, missing-context"""
    return str(
        endpoint.option("subjectfilter")
        or endpoint.option("subject")
        or endpoint.required("subjectfilter", "it is the subject to subscribe to, such as 'orders.>'")
    )


def header_pairs(headers: bytes) -> list[Pair]:
    """Return the headers of a message in order, including repeated ones. The first line, the version, is skipped."""
    pairs = (line.partition(b":") for line in headers.split(b"\r\n")[1:] if line)
    return [(name.decode("latin-1"), from_bytes(value.strip()) or "") for name, _, value in pairs]
