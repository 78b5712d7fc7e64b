"""Receive messages over HTTP: a server that answers requests with 202 when their messages are durable.

A request is captured as it is, whatever it contains: a CloudEvent in binary or structured mode, a batch, or anything
else. Only credentials are removed.

Spec: endpoint/spec.md#http-options; the CloudEvents webhook text (https://github.com/cloudevents/spec, http-webhook.md)
"""

from __future__ import annotations

import asyncio
import hmac
import math
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote, unquote_to_bytes

import msgspec

from wirebook.bindings import HttpMessage, to_line
from wirebook.bindings.capture import MAX_RECORD_BYTES
from wirebook.capture.committer import Committer
from wirebook.capture.endpoints import HttpOptions, ReceivedEndpoint
from wirebook.capture.receiver import first_of, received_now
from wirebook.capture.status import EndpointStatus
from wirebook.convert.asgi import request_of
from wirebook.httpapi.http.hosts import is_loopback
from wirebook.httpapi.logs import describe
from wirebook.httpapi.web import WebServer, send_before_close
from wirebook.problems import Problem, WirebookError

HEAD_SECONDS: Final = 10
BODY_SECONDS: Final = 60
"""Time for a client to send a body, and for a segment to become durable, before the request fails."""

GRACE_SECONDS: Final = 20
BACKLOG: Final = 2048
RETRY_AFTER: Final = "2"
SECRET_HEADERS: Final = frozenset((b"authorization", b"proxy-authorization", b"cookie"))
ANY_ORIGIN: Final = "*"
HEADER_TEXT: Final = re.compile("[ -~]*")
TOKEN_PARAMETER: Final = "access_token"  # noqa: S105 (RFC 6750#2.3)


class RateLimit:
    """A token bucket: `rate` requests per second, and bursts of the same number."""

    def __init__(self, rate: int, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._tokens, self._at = float(rate), clock()

    def seconds_to_wait(self) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        now = self._clock()
        self._tokens = min(self._tokens + (now - self._at) * self._rate, self._rate)
        self._at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0


class DeliveryTarget:
    """An endpoint that messages are sent to, at its path and everything below it."""

    def __init__(self, endpoint: ReceivedEndpoint, options: HttpOptions) -> None:
        """Raises: WirebookError (``not-receivable``, ``incomplete-endpoint``, ``bad-setting``, ...)"""
        if endpoint.usage and "producer" not in endpoint.usage:
            message = f"'{endpoint.xid}' is not a target that messages are sent to: its 'usage' is not 'producer'"
            raise endpoint.problem("not-receivable", "usage", message, ["producer"], list(endpoint.usage))
        address = endpoint.addresses(("http", "https"))[0]
        self.endpoint, self.options = endpoint, options
        self.method = str(endpoint.option("method") or "POST").upper()
        self.path = unquote(address.uri.path).rstrip("/")
        self.token = endpoint.credentials.token
        if self.token and not HEADER_TEXT.fullmatch(self.token):
            message = f"the token of '{endpoint.xid}' has characters that an HTTP header cannot carry"
            hint = "use printable ASCII characters"
            raise WirebookError(Problem("bad-setting", message, xid=endpoint.xid, hint=hint))
        self.status = EndpointStatus(endpoint.xid, endpoint.protocol)
        self.limit = RateLimit(options.rate, asyncio.get_running_loop().time) if options.rate else None
        name, place = endpoint.option("apikeyname"), endpoint.option("apikeyin") or "header"
        self.secret_headers = SECRET_HEADERS | ({name.lower().encode()} if name and place == "header" else set())
        self.secret_parameters = (TOKEN_PARAMETER, *([name] if name and place == "query" else []))
        if options.listen:
            self.listen = options.listen
        elif address.uses_tls:
            message = f"the gateway does not terminate TLS, so it cannot listen at '{address}'"
            hint = "run it behind a proxy and set --listen HOST:PORT"
            raise WirebookError(Problem("bad-setting", message, pointer=address.pointer, xid=endpoint.xid, hint=hint))
        else:
            self.listen = (address.host, address.port)
        if not (is_loopback(self.listen[0]) or self.token or options.insecure):
            message = f"anyone who can reach '{self.listen[0]}' could send messages to '{endpoint.xid}'"
            hint = "set a token in the environment or in --secrets, or add --insecure"
            raise WirebookError(Problem("bad-setting", message, xid=endpoint.xid, hint=hint))

    def serves(self, path: str) -> bool:
        """Whether requests for a path belong to the endpoint."""
        return path.rstrip("/") == self.path or path.startswith(f"{self.path}/")

    def is_allowed(self, headers: dict[bytes, bytes], query: bytes) -> bool:
        """Whether a request has the token, in the header or in the query (RFC 6750)."""
        if self.token is None:
            return True
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            match = re.search(rb"(?:^|&)access_token=([^&]*)", query)
            token = unquote_to_bytes(match[1]) if match else b""
        return hmac.compare_digest(token.strip(), self.token.encode())

    def record_of(self, scope: dict[str, Any], body: bytes) -> HttpMessage:
        """Return the record of a request without credentials."""
        headers = [pair for pair in scope["headers"] if pair[0].lower() not in self.secret_headers]
        query = scope.get("query_string") or b""
        for name in self.secret_parameters:
            query = re.sub(rb"(?:^|(?<=&))" + re.escape(name.encode()) + rb"=[^&]*&?", b"", query)
        wire = request_of({**scope, "headers": headers, "query_string": query.rstrip(b"&")}, body)
        return msgspec.structs.replace(wire, received=received_now(), endpoint=self.endpoint.xid)


class HttpReceiver:
    """The server of one address, for all endpoints with this address."""

    def __init__(self, targets: list[DeliveryTarget], committer: Committer, note: Callable[[str], None]) -> None:
        """Listen. Raises: WirebookError (``address-in-use``, ``bad-setting``)"""
        self.targets = sorted(targets, key=lambda target: -len(target.path))
        for one, other in zip(self.targets, self.targets[1:], strict=False):
            if one.path == other.path:
                message = f"'{one.endpoint.xid}' and '{other.endpoint.xid}' have the same address and path"
                hint = "give one of them another path, or capture them with two gateways"
                raise WirebookError(Problem("bad-setting", message, xid=other.endpoint.xid, hint=hint))
        self._committer, self._note = committer, note
        self._listener = listening_socket(*targets[0].listen, hint="choose another address with --listen")

    @property
    def address(self) -> str:
        """The URL that the server listens at."""
        return url_of(self._listener)

    async def run(self, stopping: asyncio.Event) -> None:
        """Answer requests until the gateway stops; then finish those that are open."""
        for target in self.targets:
            target.status.is_receiving = True
        await serve_until(stopping, self, self._listener)
        for target in self.targets:
            target.status.is_receiving = False

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answer one request (an ASGI application)."""
        target = next((target for target in self.targets if target.serves(scope["path"])), None)
        if target is None:
            await reply(send, 404, "no endpoint has this path")
            return
        try:
            await self._respond(target, scope, receive, send)
        except Exception as error:
            target.status.rejected["internal-error"] += 1
            self._note(f"{target.endpoint.xid}: internal error: {describe(error)}")
            raise  # the server answers with 500

    async def _respond(self, target: DeliveryTarget, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = {name.lower(): value for name, value in reversed(scope["headers"])}
        if scope["method"] == "OPTIONS":
            await self._shake_hands(target, headers, send)
        elif scope["method"] != target.method:
            await reply(send, 405, f"use {target.method}", {"Allow": f"{target.method}, OPTIONS"})
        elif not target.is_allowed(headers, scope.get("query_string", b"")):
            target.status.rejected["unauthorized"] += 1
            await reply(send, 401, "a bearer token is required", {"WWW-Authenticate": "Bearer"})
        elif target.limit and (wait := target.limit.seconds_to_wait()):
            target.status.rejected["rate"] += 1
            await reply(send, 429, "too many requests", {"Retry-After": str(math.ceil(wait))})
        elif self._committer.is_full or self._committer.is_failing:
            target.status.rejected["busy"] += 1
            await reply(send, 503, "the gateway cannot store more messages now", {"Retry-After": RETRY_AFTER})
        else:
            await self._capture(target, scope, headers, receive, send)

    async def _shake_hands(self, target: DeliveryTarget, headers: dict[bytes, bytes], send: Any) -> None:
        """Answer the validation request of CloudEvents webhooks. Other OPTIONS requests get the allowed methods."""
        answer = {"Allow": f"{target.method}, OPTIONS"}
        origin = headers.get(b"webhook-request-origin", b"").decode("latin-1")
        origins = target.options.origins
        if origin and (not origins or ANY_ORIGIN in origins or origin.lower() in origins):
            answer["WebHook-Allowed-Origin"] = ANY_ORIGIN if ANY_ORIGIN in origins else origin
            rate = target.options.rate
            answer["WebHook-Allowed-Rate"] = str(rate * 60) if rate else "*"  # requests per minute
        await reply(send, 200, "", answer)

    async def _capture(
        self, target: DeliveryTarget, scope: dict[str, Any], headers: dict[bytes, bytes], receive: Any, send: Any
    ) -> None:
        """Capture a request, and answer it when it is durable."""
        reason = await self._store(target, scope, headers, receive)
        if reason is None:
            target.status.acknowledged += 1
            await reply(send, 202)
            return
        target.status.rejected[reason] += 1
        if reason == "too-large":
            text = f"the body is longer than {target.options.max_body:,} bytes"
            await reply_and_close(scope, receive, send, 413, text)
        elif reason == "busy":
            text = "the gateway has no memory for the message now"
            await reply_and_close(scope, receive, send, 503, text, headers={"Retry-After": RETRY_AFTER})
        elif reason == "timeout":
            await reply(send, 503, "the message could not be stored in time", {"Retry-After": RETRY_AFTER})

    async def _store(
        self, target: DeliveryTarget, scope: dict[str, Any], headers: dict[bytes, bytes], receive: Any
    ) -> str | None:
        """Read a body and wait until its line is durable. Returns None, or the reason why it was not stored.

        The memory of the body is reserved before it is read: all of `Content-Length`, or else each part.
        """
        limit, body = target.options.max_body, bytearray()
        stated = headers.get(b"content-length", b"0")
        reserved = int(stated) if stated.isdigit() else 0
        if reserved > limit:
            return "too-large"
        if not self._committer.try_reserve(reserved):
            return "busy"
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    event = await receive()
                    if event["type"] == "http.disconnect":
                        return "disconnected"
                    body += event.get("body", b"")
                    if len(body) > limit:
                        return "too-large"
                    if (missing := len(body) - reserved) > 0:
                        if not self._committer.try_reserve(missing, reserved):
                            return "busy"
                        reserved += missing
                    more = event.get("more_body", False)
                line = to_line(target.record_of(scope, bytes(body)))
                if len(line) > MAX_RECORD_BYTES:
                    return "too-large"
                body.clear()
                self._committer.reserve(-reserved)
                reserved = 0
                target.status.count(line)
                await asyncio.shield(self._committer.append(line))
        except TimeoutError:
            return "timeout"
        finally:
            self._committer.reserve(-reserved)
        return None


async def reply_and_close(
    scope: dict[str, Any], receive: Any, send: Any, status: int, text: str, *, headers: dict[str, str] | None = None
) -> None:
    """Answer a request whose body was not read completely, and close the connection."""
    body = await start_reply(send, status, text, {"Connection": "close"} | (headers or {}))
    await send_before_close(scope, receive, send, body)


# -- shared with the server of metrics --------------------------------------------------------------------------------


async def reply(send: Any, status: int, text: str = "", headers: dict[str, str] | None = None) -> None:
    """Send an ASGI response."""
    body = await start_reply(send, status, text, headers)
    await send({"type": "http.response.body", "body": body})


async def start_reply(send: Any, status: int, text: str, headers: dict[str, str] | None) -> bytes:
    """Send the status and the headers of a response. Returns its body."""
    body = f"{text}\n".encode() if text else b""
    values = {"Content-Length": str(len(body))} | ({"Content-Type": "text/plain; charset=utf-8"} if text else {})
    values |= headers or {}
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in values.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    return body


class _Server(WebServer):
    """A server that leaves signals to the owner of the event loop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_until(stopping: asyncio.Event, app: Any, listener: socket.socket) -> None:
    """Serve an ASGI application until the event is set, then finish open requests."""
    server = _Server(
        app,
        grace_seconds=GRACE_SECONDS,
        head_seconds=HEAD_SECONDS,
        reader_seconds=BODY_SECONDS,
        on_ready=lambda: None,
        on_stop=lambda: None,
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await first_of(serving, stopping.wait())
    server.should_exit = True
    await serving


def listening_socket(host: str, port: int, *, hint: str) -> socket.socket:
    """Listen on an address; port 0 selects a free port. Raises: WirebookError (``address-in-use``)"""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        message = f"cannot listen on {host}:{port}: {error.strerror or error}"
        raise WirebookError(Problem("address-in-use", message, hint=hint)) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
