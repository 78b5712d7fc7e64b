"""nats-py: its messages, and messages sent through a server."""

from __future__ import annotations

import asyncio
from typing import Any

import nats
import pytest
from brokers import free_port
from nats.aio.msg import Msg

from tests.pages.brokers import nats_server
from wirebook.bindings import Base64, HttpMessage, NatsMessage
from wirebook.convert.nats import arguments_of, record_of
from wirebook.problems import WirebookError

EVENT = NatsMessage(
    subject="ovens.7", reply_to="r.1", headers=[("ce-id", "1"), ("X-Trace", "a é b")], data=Base64(b"\xff\x00")
)
BARE = NatsMessage(subject="ovens.7", data='{"a":1}')


@pytest.mark.parametrize("wire", [EVENT, BARE])
def test_message_survives_the_round_trip(wire: NatsMessage) -> None:
    sent = arguments_of(wire)
    message = Msg(None, sent["subject"], sent["reply"], sent["payload"], sent["headers"])  # type: ignore[arg-type]
    assert record_of(message) == wire


async def exchange(wire: NatsMessage, port: int) -> NatsMessage:
    """Publish with the client and receive it again."""
    client = await nats.connect(f"nats://127.0.0.1:{port}", allow_reconnect=False)
    subscription = await client.subscribe("ovens.>")
    await client.publish(**arguments_of(wire))
    message = await subscription.next_msg(timeout=10)
    await client.close()
    return record_of(message)


@pytest.mark.parametrize("wire", [EVENT, BARE])
def test_message_survives_a_server(wire: NatsMessage) -> None:
    with nats_server(free_port()) as port:
        assert asyncio.run(exchange(wire, port)) == wire


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
def test_inexpressible_message_is_rejected(wire: Any, code: str) -> None:
    with pytest.raises(WirebookError) as error:
        arguments_of(wire)
    assert [problem.code for problem in error.value.problems] == [code]
