"""nats-py: its own messages, and its own client against the lines of the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import nats
import pytest
from nats.aio.msg import Msg

from wirebook.bindings import Base64, HttpMessage, NatsMessage
from wirebook.convert.nats import arguments_of, record_of
from wirebook.problems import WirebookError

EVENT = NatsMessage(
    subject="ovens.7", reply_to="r.1", headers=[("ce-id", "1"), ("X-Trace", "a é b")], data=Base64(b"\xff\x00")
)
BARE = NatsMessage(subject="ovens.7", data='{"a":1}')


@pytest.mark.parametrize("wire", [EVENT, BARE])
def test_around(wire: NatsMessage) -> None:
    sent = arguments_of(wire)
    message = Msg(None, sent["subject"], sent["reply"], sent["payload"], sent["headers"])  # type: ignore[arg-type]
    assert record_of(message) == wire


async def exchange(wire: NatsMessage) -> NatsMessage:
    """Publish with the client and receive it again, by a server that only passes on."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = await nats.connect(f"nats://127.0.0.1:{port}", allow_reconnect=False)
    subscription = await client.subscribe("ovens.>")
    await client.publish(**arguments_of(wire))
    message = await subscription.next_msg(timeout=10)
    await client.close()
    server.close()
    return record_of(message)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The least of a server: answers PING, passes what is published on to the one subscription."""
    writer.write(b'INFO {"server_id":"x","version":"2.10.0","headers":true,"max_payload":1048576}\r\n')
    while line := await reader.readline():
        words = line.split()
        if words[0] == b"PING":
            writer.write(b"PONG\r\n")
        elif words[0] in (b"PUB", b"HPUB"):
            body = await reader.readexactly(int(words[-1]) + 2)
            verb = b"HMSG" if words[0] == b"HPUB" else b"MSG"
            writer.write(b" ".join((verb, words[1], b"1", *words[2:])) + b"\r\n" + body)
    writer.close()


@pytest.mark.parametrize("wire", [EVENT, BARE])
def test_through_the_client(wire: NatsMessage) -> None:
    assert asyncio.run(exchange(wire)) == wire


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (HttpMessage(), "not-expressible"),
        (NatsMessage(), "missing-required"),
        (NatsMessage(subject="a", headers=[("x", "1"), ("x", "2")]), "not-expressible"),
        (NatsMessage(subject="a", headers=[("x", Base64(b"\xff"))]), "not-expressible"),
        (NatsMessage(subject="a", headers=[("x", " 1")]), "not-expressible"),
        (NatsMessage(subject="a", headers=[("x", "1\r\ny: 2")]), "not-expressible"),
        (NatsMessage(subject="a", headers=[("x: y", "1")]), "not-expressible"),
    ],
)
def test_what_cannot_be_published(wire: Any, code: str) -> None:
    with pytest.raises(WirebookError) as error:
        arguments_of(wire)
    assert [each.code for each in error.value.problems] == [code]
